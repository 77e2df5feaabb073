"""The compiled side of step-size rules: one weight at a time, by the formulas that torch applies to tensors.

Compiled code works on lanes: row 0 holds the weights, then the fields of the state; one column per eligible weight.
The hyper-parameters carry the formulas of their rule as methods, so that compiled code finds a rule by its type.
"""

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.compiled import added, compilable, divided, filled, full_name, pack, single_precision, unpack, value
from rlgames.optim.transition import Transition

Floats = npt.NDArray[np.floating[Any]]

FORMULAS = ("update", "total", "adapt", "step_size")  # of a rule, see ``StepSize``


@compilable
def update(p: Any, lanes: Floats, memory: Any, n: int, delta: Any, slope: Any) -> None:
    """Apply the rule with hyper-parameters ``p`` to the first ``n`` lanes; ``memory`` knows their x and traces."""
    for j in range(memory.kept(), n):
        p.forget(lanes, j)
    total = p.sum_total(lanes, memory, n, delta, slope)
    for j in range(n):
        w, s = p.update(lanes[0, j], p.load(lanes, j), transition(memory, j, delta, slope, total))
        lanes[0, j] = w
        pack(s, lanes, j)


@compilable
def transition(memory: Any, j: int, delta: Any, slope: Any, total: Any) -> Transition:
    """What lane ``j`` is given."""
    x_next = entry(memory.x_next, j, delta * 0)
    return Transition(delta, slope, memory.x[j], memory.e[j], x_next, memory.decay, total)


@compilable
def entry(values: Any, j: int, otherwise: Any) -> Any:
    """``values[j]``, or ``otherwise`` where there are no values."""
    if values is None:
        return otherwise
    return values[j]


def params_class(rule: Any, has_total: bool, single: bool = False) -> type:
    """NamedTuple of the hyper-parameters of ``rule``, from its constructor, whose methods are the rule's functions.

    Args:
        rule: the class.
        has_total: whether it sums over the eligible weights.
        single: whether compiled code uses it with single-precision weights.
    """
    names = [name for name in inspect.signature(rule.__init__).parameters if name not in ("self", "params", "hyper")]
    cls: Any = namedtuple("Params", (*names, *rule.shared))  # type: ignore[misc]
    cls.__module__, cls.__qualname__ = rule.__module__, f"{rule.__qualname__}.Params{32 if single else ''}"
    for name in FORMULAS:
        formula = getattr(rule, name)
        setattr(cls, name, single_precision(formula) if single else formula)
    methods = _access(rule.State, rule.transient) | {"sum_total": _summing(rule.Sums, has_total)}
    for name, function in methods.items():
        setattr(cls, name, function)
    for fields in filter(None, (rule.State, rule.Sums)):
        full_name(fields)
    return value(cls)


def _access(state: type, transient: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """Methods of hyper-parameters that move a NamedTuple ``state``; it may forget the fields ``transient``.

    The number of fields is a compile-time constant, so the loops are unrolled.
    """
    names = state._fields  # type: ignore[attr-defined]
    n, rows = len(names), np.array([1 + names.index(name) for name in transient], np.int64)

    def load(self: Any, lanes: Floats, j: int) -> Any:
        return unpack(state, lanes, j)

    def gather(self: Any, memory: Floats, row: int, lanes: Floats, j: int) -> None:
        for k in range(n):
            lanes[k + 1, j] = memory[row, k]

    def scatter(self: Any, lanes: Floats, j: int, memory: Floats, row: int) -> None:
        for k in range(n):
            memory[row, k] = lanes[k + 1, j]

    def forget(self: Any, lanes: Floats, j: int) -> None:
        for k in rows:
            lanes[k, j] = 0

    return {"load": load, "gather": gather, "scatter": scatter, "forget": forget}


# ---- sums of the rule's ``total`` over the lanes; a weight that fills x lanes counts once


def _summing(sums: Any, has_total: bool) -> Callable[..., Any]:
    """The method of hyper-parameters that sums: nothing, numbers, or the fields of NamedTuples ``sums``."""

    def nothing(self: Any, lanes: Floats, memory: Any, n: int, delta: Any, slope: Any) -> Any:
        return delta * 0

    def numbers(self: Any, lanes: Floats, memory: Any, n: int, delta: Any, slope: Any) -> Any:
        zero = delta * 0
        total = zero
        for j in range(n):
            part = self.total(lanes[0, j], self.load(lanes, j), transition(memory, j, delta, slope, zero))
            total += part if memory.distinct else part / memory.x[j]
        return total

    def fields(self: Any, lanes: Floats, memory: Any, n: int, delta: Any, slope: Any) -> Any:
        zero = delta * 0
        total = filled(sums, zero)
        for j in range(n):
            part = self.total(lanes[0, j], self.load(lanes, j), transition(memory, j, delta, slope, zero))
            total = added(total, part if memory.distinct else divided(part, memory.x[j]))
        return total

    return fields if sums else numbers if has_total else nothing
