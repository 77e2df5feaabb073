"""Between the arrays of compiled code and the NamedTuples of a rule."""

from collections.abc import Callable
from typing import Any


def access(params: Any, state: Any) -> dict[str, Callable[..., Any]]:
    """Functions between lanes (row 0 the weights, then the fields of the state; a column per active weight) and tuples.

    Compiled code cannot loop over the fields of a NamedTuple, so their text is made here.
    """
    load = ", ".join(f"lanes[{k}, j]" for k, _ in enumerate(state._fields, 1))
    store = "".join(f"\n    lanes[{k}, j] = s.{name}" for k, name in enumerate(state._fields, 1))
    gather = "; ".join(f"lanes[{k + 1}, j] = state[row, {k}]" for k, _ in enumerate(state._fields)) or "pass"
    scatter = "; ".join(f"state[row, {k}] = lanes[{k + 1}, j]" for k, _ in enumerate(state._fields)) or "pass"
    with_lr = ", ".join("lr" if name == "lr" else f"self.{name}" for name in params._fields)
    text = f"""
def load(self, lanes, j):
    return State({load})
def store(self, lanes, j, w, s):
    lanes[0, j] = w{store}
def gather(self, state, row, lanes, j):
    {gather}
def scatter(self, lanes, j, state, row):
    {scatter}
def with_lr(self, lr):
    return Params({with_lr})
"""
    scope: dict[str, Any] = {"State": state, "Params": params}
    exec(text, scope)
    return {name: scope[name] for name in ("load", "store", "gather", "scatter", "with_lr")}
