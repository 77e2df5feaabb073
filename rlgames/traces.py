"""Eligibility traces: how much each weight of the positions before still takes part in what is learned now.

The trace e of a weight decays by gamma * lambda per ply and grows by the gradient of the value; every rule changes
weights by its step size times the TD error times e. Work follows the number of eligible weights (about 1,800 in a game
of Connect-4 with 70 tuples), never the size of the table. Both forms below do the same: ``add_trace`` for torch,
``Memory`` compiled.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import value

Floats = npt.NDArray[np.floating[Any]]


class Traces(NamedTuple):
    """Kind of traces.

    Attributes:
        decay: gamma * lambda, above 0 and at most 1.
        replacing: an active weight's trace becomes the gradient, instead of growing by it.
        resetting: an exploratory move ends all traces.
        threshold: traces smaller than this are dropped.
    """

    decay: float
    replacing: bool = False
    resetting: bool = False
    threshold: float = 0.0


def add_trace(old: Tensor | None, gradient: Tensor, traces: Traces) -> Tensor:
    """The trace after one more ply.

    Args:
        old: the trace before, None at the begin of a game; sparse if the gradient is.
        gradient: of the value; coalesced if sparse.
        traces: kind of traces.
    """
    if old is None:
        return gradient.clone()
    old = old * traces.decay
    if not gradient.is_sparse:
        old = torch.where(old.abs() < traces.threshold, 0, old)
        return torch.where(gradient != 0, gradient, old) if traces.replacing else old + gradient
    old = old.coalesce()
    kept = (old.values().abs() >= traces.threshold).flatten()
    if traces.replacing:
        kept &= ~torch.isin(old.indices()[0], gradient.indices()[0])
    old = torch.sparse_coo_tensor(old.indices()[:, kept], old.values()[kept], old.shape, check_invariants=False)
    return (old + gradient).coalesce()


@value
class NoMemory(NamedTuple):
    """Lambda is 0: only the rows of the board at hand learn, an array entry (lane) per index.

    Attributes:
        rows, x: ``[n_features]``, row and feature of each lane, the agent's own arrays; the lanes of a row that stands
            x times are equal.
        e: ``[n_features]``, trace of each lane.
        distinct: False, since a row may fill several lanes.
        resetting: True, since nothing outlives a move.
    """

    rows: npt.NDArray[np.int32]
    x: Floats
    e: Floats
    distinct: bool
    resetting: bool

    def clear(self) -> None:
        """Forget all traces."""

    def add(self, rows: npt.NDArray[np.int32], x: Floats, slope: float) -> int:
        """Take in the gradient slope * x of the board with ``rows`` and ``x``; the number of lanes."""
        for j in range(len(rows)):
            self.e[j] = slope * x[j]
        return len(rows)


@value
class Memory(NamedTuple):
    """Lambda is above 0: the eligible rows, a lane for each.

    Attributes:
        rows, x, e: ``[capacity]``, row, feature (0 unless active at hand) and trace of each lane.
        distinct: True, a row fills one lane.
        lane: ``[table rows]``, the lane of each row, -1 if it is not eligible.
        size: ``[1]``, number of eligible rows.
        decay, replacing, resetting, threshold: see ``Traces``.
    """

    rows: npt.NDArray[np.int32]
    x: Floats
    e: Floats
    distinct: bool
    lane: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    decay: float
    replacing: bool
    resetting: bool
    threshold: float

    def clear(self) -> None:
        """Forget all traces."""
        for k in range(self.size[0]):
            self.lane[self.rows[k]] = -1
        self.size[0] = 0

    def add(self, rows: npt.NDArray[np.int32], x: Floats, slope: float) -> int:
        """Let the traces decay, then add the gradient slope * x; the number of lanes."""
        n = self.age()
        for j in range(len(rows)):
            k = self.lane[rows[j]]
            if k < 0:
                k = n
                n += 1
                self.rows[k], self.lane[rows[j]], self.e[k] = rows[j], k, 0
            # A row that stands x times comes by x times.
            self.e[k] = slope * x[j] if self.replacing else self.e[k] + slope
            self.x[k] = x[j]
        self.size[0] = n
        return n

    def age(self) -> int:
        """Let the traces decay and drop the small ones; how many are left."""
        n = int(self.size[0])
        decay = self.e.dtype.type(self.decay)
        for k in range(n):
            self.e[k] *= decay
            self.x[k] = 0
        if self.threshold > 0:
            for k in range(n - 1, -1, -1):
                if abs(self.e[k]) < self.threshold:
                    n -= 1
                    self.lane[self.rows[k]] = -1
                    if k < n:
                        self.rows[k], self.e[k] = self.rows[n], self.e[n]
                        self.lane[self.rows[k]] = k
        return n


def memory(
    traces: Traces | None, rows: int, indices: npt.NDArray[np.int32], x: Floats, capacity: int
) -> NoMemory | Memory:
    """Empty memory for compiled code.

    Args:
        traces: kind of traces, None for lambda 0.
        rows: number of table rows.
        indices: ``[n_features]``, where the agent keeps the rows of the board at hand.
        x: ``[n_features]``, where it keeps their features.
        capacity: the most rows that can become eligible in a game.
    """
    if traces is None:
        return NoMemory(indices, x, np.zeros_like(x), False, True)
    n = min(rows, capacity)
    lanes = np.zeros(n, np.int32), np.zeros(n, x.dtype), np.zeros(n, x.dtype)
    decay, replacing, resetting, threshold = traces
    lane, size = np.full(rows, -1, np.int32), np.zeros(1, np.int64)
    return Memory(*lanes, True, lane, size, float(decay), replacing, resetting, float(threshold))
