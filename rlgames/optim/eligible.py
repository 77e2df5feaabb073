"""Which weights of a tensor take part in a step, and what each is given."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlgames.optim.checks import finite


class Eligible(NamedTuple):
    """The entries of a parameter that take part in a step: active now, earlier (traces), or in the next position.

    Attributes:
        i: index of the entries: rows of a table, all of a dense parameter, or some entries of either.
        x, e, x_next: see ``Transition``; tensors of one shape.
        fresh: whether an entry had no trace when the step began.
    """

    i: Any
    x: Tensor
    e: Tensor
    x_next: Tensor
    fresh: Tensor


def checked(gradient: Tensor, kind: str = "gradient") -> Tensor:
    """``gradient``, if finite; a sparse one with unique, whole rows, since a rule must see each weight once.

    Entries of a row that were not gathered (``torch.gather(..., sparse_grad=True)``) get gradient 0: they do not move.

    Raises:
        ValueError: for entries that are infinite or NaN, or a layout that is neither strided nor sparse_coo.
    """
    if gradient.layout not in (torch.strided, torch.sparse_coo):
        raise ValueError(f"a {kind} is {gradient.layout}; allowed are torch.strided and torch.sparse_coo")
    gradient = _rows_of(gradient.coalesce()) if gradient.is_sparse else gradient
    if not finite(gradient):
        raise ValueError(f"a {kind} of shape {tuple(gradient.shape)} holds inf or nan; a step needs finite numbers")
    return gradient


def _rows_of(gradient: Tensor) -> Tensor:
    if gradient.sparse_dim() == 1:
        return gradient
    first, *others = gradient.indices()
    rows, place = torch.unique(first, return_inverse=True)
    values = gradient.values().new_zeros(len(rows), *gradient.shape[1:])
    values[(place, *others)] = gradient.values()
    shape = gradient.shape
    return torch.sparse_coo_tensor(rows[None], values, shape, is_coalesced=True, check_invariants=False)


def eligible(
    gradient: Tensor,
    trace: Tensor | None,
    before: Tensor | None,
    ahead: Tensor | None,
    factor: float,
    pick: bool,
) -> Eligible:
    """Collect what is known of a parameter.

    Args:
        gradient: of the sum before the output unit; ``checked``.
        trace: with the present gradient in it; None for lambda 0.
        before: the trace without it; None if there is none.
        ahead: gradient of the next position, ``checked``; None if not needed.
        factor: factor of the gradient in traces.
        pick: use only entries that are not 0 somewhere, instead of a whole dense parameter or row.
    """
    if not gradient.is_sparse or (trace is not None and not trace.is_sparse):
        x = gradient.to_dense()
        e = factor * x if trace is None else trace
        ahead = torch.zeros_like(x) if ahead is None else ahead.to_dense()
        fresh = torch.ones_like(x, dtype=torch.bool) if before is None else before.to_dense() == 0
        i: Any = ...
    else:
        ahead = ahead.to_sparse(1) if ahead is not None and not ahead.is_sparse else ahead
        i = _rows(gradient, trace, ahead)
        x = _values(gradient, i, gradient)
        e = factor * x if trace is None else _values(trace, i, gradient)
        ahead, fresh = _values(ahead, i, gradient), _values(before, i, gradient) == 0
    if not pick:
        return Eligible(i, x, e, ahead, fresh)
    some = (x != 0) | (e != 0) | (ahead != 0)
    if i is ...:
        return Eligible(some, x[some], e[some], ahead[some], fresh[some])
    row, *others = some.nonzero(as_tuple=True)
    return Eligible((i[row], *others), x[some], e[some], ahead[some], fresh[some])


def _rows(*tensors: Tensor | None) -> Tensor:
    """The rows in which any of the sparse ``tensors`` has an entry, in ascending order."""
    rows = [tensor.coalesce().indices()[0] for tensor in tensors if tensor is not None]
    return rows[0] if len(rows) == 1 else torch.unique(torch.cat(rows))


def _values(tensor: Tensor | None, rows: Tensor, like: Tensor) -> Tensor:
    """Entries of the sparse ``tensor`` in ``rows``, which include all of its rows; zeros for None."""
    values = like.values().new_zeros(len(rows), *like.shape[1:])
    if tensor is not None:
        tensor = tensor.coalesce()
        values[torch.searchsorted(rows, tensor.indices()[0])] = tensor.values()
    return values
