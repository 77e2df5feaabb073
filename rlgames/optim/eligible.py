"""Which weights of a tensor take part in a step, and what each of them is told."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Eligible(NamedTuple):
    """The entries of a parameter that take part in a step: those active now, before (traces), or in the next position.

    Attributes:
        i: index of the entries: rows of a table, or all of a dense parameter.
        x, e, x_next: see ``Transition``; tensors of one shape.
        fresh: whether an entry had no trace when the step began; broadcasts to x.
    """

    i: Any
    x: Tensor
    e: Tensor
    x_next: Tensor
    fresh: Tensor


def eligible(
    gradient: Tensor,
    trace: Tensor | None,
    before: Tensor | None,
    ahead: Tensor | None,
    factor: float | Tensor,
    pick: bool,
) -> Eligible:
    """Bring together what is known of a parameter.

    A sparse gradient is made unique, because rules are not linear in x and must meet a weight once.

    Args:
        gradient: of the sum before the output unit.
        trace: with the present gradient in it; None for lambda 0.
        before: the trace without it; None if there is none.
        ahead: gradient of the next position, None if it is not looked at.
        factor: what the gradient is multiplied by in traces.
        pick: of a dense gradient too, let only those entries take part which are not 0 somewhere.
    """
    if not gradient.is_sparse:
        e = factor * gradient if trace is None else trace
        ahead = torch.zeros_like(gradient) if ahead is None else ahead.to_dense()
        fresh = torch.ones_like(gradient, dtype=torch.bool) if before is None else before == 0
        i = ((gradient != 0) | (e != 0) | (ahead != 0)) if pick else ...
        return Eligible(i, gradient[i], e[i], ahead[i], fresh[i])
    gradient = gradient.coalesce()
    ahead = ahead.to_sparse(1) if ahead is not None and not ahead.is_sparse else ahead
    rows = _rows(gradient, trace, ahead)
    x = _values(gradient, rows, gradient)
    e = factor * x if trace is None else _values(trace, rows, gradient)
    fresh = ~torch.isin(rows, _rows(before)) if before is not None else torch.ones_like(rows) > 0
    return Eligible(rows, x, e, _values(ahead, rows, gradient), fresh.reshape(-1, *(1 for _ in x.shape[1:])))


def _rows(*tensors: Tensor | None) -> Tensor:
    """The rows in which any of the sparse ``tensors`` has an entry, in ascending order."""
    rows = [tensor.coalesce().indices()[0] for tensor in tensors if tensor is not None]
    return rows[0] if len(rows) == 1 else torch.unique(torch.cat(rows))


def _values(tensor: Tensor | None, rows: Tensor, like: Tensor) -> Tensor:
    """Entries of the sparse ``tensor`` in ``rows``, which hold all of its own; zeros for None."""
    values = like.values().new_zeros(len(rows), *like.shape[1:])
    if tensor is not None:
        tensor = tensor.coalesce()
        values[torch.searchsorted(rows, tensor.indices()[0])] = tensor.values()
    return values
