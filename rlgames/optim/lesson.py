"""One step of learning: what it tells the parameters of an optimizer, and what changes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlgames.optim.checks import finite
from rlgames.optim.eligible import checked, eligible
from rlgames.optim.transition import Transition
from rlgames.traces import Traces, add_trace, faded

Change = tuple[Tensor, Any, Tensor]  # a tensor, an index into it, and its new values there
Traced = dict[Tensor, tuple[Tensor | None, Tensor]]


class Lesson(NamedTuple):
    """What a step tells the parameters that take part.

    Attributes:
        delta, slope, decay: see ``Transition``.
        gradients: of the sum before the output unit, for each parameter that takes part.
        traces: for each, what was left of its trace, and the trace with the gradient added; empty for lambda 0.
        ahead: gradients of the next position, where there is one.
    """

    delta: float
    slope: float
    decay: float
    gradients: dict[Tensor, Tensor]
    traces: Traced
    ahead: dict[Tensor, Tensor]


def ahead_of(rule: Any, grads: Sequence[Tensor | None]) -> dict[Tensor, Tensor]:
    """See ``Lesson``; ``grads`` holds one per parameter, or none. Rules that do not look ahead need none.

    Raises:
        ValueError: if their number is wrong, or one is not finite.
    """
    params = parameters(rule)
    if grads and len(grads) != len(params):
        raise ValueError(f"next_grads holds {len(grads)} gradients; the optimizer has {len(params)} parameters")
    pairs = zip(params, grads, strict=True) if grads and rule.looks_ahead else ()
    return {param: checked(grad, "next gradient") for param, grad in pairs if grad is not None}


def gradients_of(rule: Any, traced: bool, ahead: dict[Tensor, Tensor]) -> dict[Tensor, Tensor]:
    """The gradients of the parameters that take part.

    One without a gradient gets zeros if it has a trace or a next gradient: its trace decays and learns.

    Raises:
        ValueError: for a gradient that is not finite.
    """
    gradients = {}
    for param in parameters(rule):
        trace = rule.state[param].get("trace") if traced and param in rule.state else None
        like = ahead.get(param) if trace is None else trace
        if param.grad is not None:
            gradients[param] = checked(param.grad)
        elif like is not None:
            gradients[param] = torch.zeros_like(like).coalesce() if like.is_sparse else torch.zeros_like(like)
    return gradients


def parameters(rule: Any) -> list[Tensor]:
    """The parameters of all groups."""
    return [param for group in rule.param_groups for param in group["params"]]


def traces_of(rule: Any, gradients: dict[Tensor, Tensor], traces: Traces, slope: float) -> Traced:
    """See ``Lesson``."""
    traced = {}
    for param, gradient in gradients.items():
        left = faded(rule.state[param].get("trace"), traces)
        traced[param] = left, add_trace(left, gradient if rule.cross_entropy else gradient * slope, traces)
    return traced


def changes(rule: Any, group: dict[str, Any], lesson: Lesson) -> Iterator[Change]:
    """What the step changes in a group's parameters, their state, and the numbers they share."""
    p, factor = rule.hyper(group), 1.0 if rule.cross_entropy else lesson.slope
    shared = {name: getattr(p, name) for name in rule.shared}
    p = p._replace(**{name: number.clone() for name, number in shared.items()})
    parts = []
    for param in filter(lesson.gradients.__contains__, group["params"]):
        state, (before, trace) = rule.state_of(param, group), lesson.traces.get(param, (None, None))
        gradient, ahead = lesson.gradients[param], lesson.ahead.get(param)
        i, x, e, x_next, fresh = eligible(gradient, trace, before, ahead, factor, pick=bool(rule.transient))
        w, *fields = (tensor.clone() if i is ... else tensor[i] for tensor in (param, *state))  # copies
        s = type(state)(*fields)
        s = s._replace(**{name: getattr(s, name).masked_fill(fresh, 0) for name in rule.transient})
        t = Transition(lesson.delta, lesson.slope, x, e, x_next, lesson.decay, 0.0)
        parts.append(((param, *state), i, w, s, t))
    if not parts:
        return
    total = _sum(rule, [p.total(w, s, t) for *_, w, s, t in parts])
    for tensors, i, w, s, t in parts:
        weight, new = p.update(w, s, t._replace(sum=total))
        yield from ((tensor, i, values) for tensor, values in zip(tensors, (weight, *new), strict=True))
    yield from ((number, ..., getattr(p, name)) for name, number in shared.items())


def _sum(rule: Any, summands: list[Any]) -> Any:
    """Sum of ``total`` over the parameters of a group."""
    if rule.Sums is None:
        return sum(torch.as_tensor(summand).sum() for summand in summands)
    return rule.Sums(*(sum(column.sum() for column in columns) for columns in zip(*summands, strict=True)))


def largest(gradients: dict[Tensor, Tensor]) -> float:
    """The largest absolute entry of the ``gradients``."""
    values = [(gradient.values() if gradient.is_sparse else gradient).abs() for gradient in gradients.values()]
    return max((float(entries.max()) for entries in values if entries.numel()), default=0.0)


def all_finite(made: list[Change]) -> bool:
    """Whether all new values are finite."""
    return all(finite(values) for *_, values in made)
