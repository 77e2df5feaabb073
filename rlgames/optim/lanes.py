"""The compiled side of step-size rules: their hyper-parameters carry them, so that compiled code finds a rule by type.

Lanes are what compiled code works on: row 0 the weights, then the fields of the state; a column per eligible weight.
"""

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from numba import types

from rlgames.compiled import bridge, check_names, full_name, single_precision
from rlgames.optim.transition import transition

_SIGNATURES: dict[str, Callable[..., Any]] = {  # of a rule; in single precision there is a "single_..." of each as well
    "update": lambda p, w, s, t: None,
    "total": lambda p, w, s, t: None,
    "adapt": lambda p, s, t: None,
    "step_size": lambda p, s: None,
}


def params_class(rule: Any, has_total: bool) -> type:
    """NamedTuple of the hyper-parameters of ``rule``, from its constructor, whose methods are the rule's functions.

    Args:
        rule: the class.
        has_total: whether it sums over the eligible weights.
    """
    names = [name for name in inspect.signature(rule.__init__).parameters if name not in ("self", "params", "hyper")]
    cls: Any = namedtuple("Params", (*names, *rule.shared))  # type: ignore[misc]
    cls.__module__, cls.__qualname__ = rule.__module__, f"{rule.__qualname__}.Params"
    for fields in filter(None, (cls, rule.State, rule.Sums)):
        full_name(fields)
        check_names(fields)
    for name in _SIGNATURES:
        setattr(cls, name, getattr(rule, name))
        setattr(cls, f"single_{name}", single_precision(getattr(rule, name)))
    for name, function in _access(cls, rule, has_total).items():
        setattr(cls, name, function)
    return cls


def _access(params: Any, rule: Any, has_total: bool) -> dict[str, Callable[..., Any]]:
    """Functions between lanes and tuples.

    Compiled code cannot loop over the fields of a NamedTuple, so their text is made here.
    """
    fields = list(enumerate(rule.State._fields))
    parts = [f"part.{name}" for name in rule.Sums._fields] if rule.Sums else ["part"] if has_total else []
    sums = ", ".join(f"sum{k}" for k, _ in enumerate(parts))
    text = f"""
def load(self, lanes, j):
    return State({", ".join(f"lanes[{k + 1}, j]" for k, _ in fields)})
def store(self, lanes, j, w, s):
    lanes[0, j] = w
    {"; ".join(f"lanes[{k + 1}, j] = s.{name}" for k, name in fields) or "pass"}
def gather(self, state, row, lanes, j):
    {"; ".join(f"lanes[{k + 1}, j] = state[row, {k}]" for k, _ in fields) or "pass"}
def scatter(self, lanes, j, state, row):
    {"; ".join(f"state[row, {k}] = lanes[{k + 1}, j]" for k, _ in fields) or "pass"}
def forget(self, lanes, j):
    {"; ".join(f"lanes[{k + 1}, j] = 0" for k, name in fields if name in rule.transient) or "pass"}
def with_lr(self, lr):
    return Params({", ".join("lr" if name == "lr" else f"self.{name}" for name in params._fields)})
def sum_total(self, lanes, memory, n, delta, slope):
    zero = delta * 0
"""
    if parts:  # a weight that fills x lanes counts once
        text += f"""
    {"; ".join(f"sum{k} = zero" for k, _ in enumerate(parts))}
    for j in range(n):
        part = self.total(lanes[0, j], self.load(lanes, j), transition(memory, j, delta, slope, zero))
        {"; ".join(f"sum{k} += {part} if memory.distinct else {part} / memory.x[j]" for k, part in enumerate(parts))}
    return {f"Sums({sums})" if rule.Sums else sums}
"""
    else:
        text += "    return zero\n"
    scope: dict[str, Any] = {"State": rule.State, "Sums": rule.Sums, "Params": params, "transition": transition}
    exec(text, scope)
    return {name: scope[name] for name in _LANES}


_LANES: dict[str, Callable[..., Any]] = {
    "load": lambda self, lanes, j: None,
    "store": lambda self, lanes, j, w, s: None,
    "gather": lambda self, state, row, lanes, j: None,
    "scatter": lambda self, lanes, j, state, row: None,
    "forget": lambda self, lanes, j: None,
    "with_lr": lambda self, lr: None,
    "sum_total": lambda self, lanes, memory, n, delta, slope: None,
}


def _by_precision(name: str) -> Callable[..., Any]:
    def choose(self: Any, *args: Any) -> Any:
        single = self[self.fields.index("lr")] == types.float32
        return getattr(self.instance_class, f"single_{name}" if single else name, None)

    return choose


for _name, _signature in _SIGNATURES.items():
    bridge(_name, _signature, _by_precision(_name))
for _name, _signature in _LANES.items():
    bridge(_name, _signature, lambda self, *args, name=_name: getattr(self.instance_class, name, None))
