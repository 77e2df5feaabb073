"""Eligibility traces: how much each weight of earlier positions still learns now.

The trace e of a weight decays by gamma * lambda per ply and grows by the gradient of the value; every rule changes
weights by its step size times the TD error times e. Work grows with the number of eligible weights (about 1,800 in a
game of Connect-4 with 70 tuples), never the size of the table. The two forms below agree: ``add_trace`` for torch,
``Memory`` compiled.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import value

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Traces:
    """Kind of traces.

    Attributes:
        decay: gamma * lambda, from 0 to 1.
        replacing: an active weight's trace becomes the gradient, instead of growing by it.
        resetting: an exploratory move ends all traces.
        threshold: traces smaller than this are dropped; from 0 to 1.

    Raises:
        ValueError: naming what is out of range.
    """

    decay: float
    replacing: bool = False
    resetting: bool = False
    threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("decay", "threshold"):
            number = getattr(self, name)
            if isinstance(number, str | bool) or not 0 <= number <= 1:
                raise ValueError(f"traces: {name} is {number!r}; allowed are numbers from 0 to 1")
        for name in ("replacing", "resetting"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"traces: {name} is {getattr(self, name)!r}; it must be true or false")


def faded(trace: Tensor | None, traces: Traces) -> Tensor | None:
    """What is left of ``trace`` after one ply; None if there is none."""
    if trace is None:
        return None
    trace = trace * traces.decay
    if not trace.is_sparse:
        return torch.where(trace.abs() < traces.threshold, 0, trace)
    trace = trace.coalesce()
    large = trace.values().abs() >= traces.threshold
    kept = large.reshape(len(large), trace.shape[1:].numel()).any(1)
    indices, values = trace.indices()[:, kept], torch.where(large, trace.values(), 0)[kept]
    return torch.sparse_coo_tensor(indices, values, trace.shape, check_invariants=False).coalesce()


def add_trace(old: Tensor | None, gradient: Tensor, traces: Traces) -> Tensor:
    """The trace with the gradient of one more ply.

    Args:
        old: what is left of the previous trace, None at the start of a game; sparse if the gradient is.
        gradient: of the value; coalesced if sparse.
        traces: kind of traces.
    """
    if old is None:
        return gradient.clone()
    if old.is_sparse != gradient.is_sparse:
        old, gradient = old.to_dense(), gradient.to_dense()
    if not traces.replacing:
        return (old + gradient).coalesce() if gradient.is_sparse else old + gradient
    if not gradient.is_sparse:
        return torch.where(gradient != 0, gradient, old)
    kept = ~torch.isin(old.indices()[0], gradient.indices()[0])
    old = torch.sparse_coo_tensor(old.indices()[:, kept], old.values()[kept], old.shape, check_invariants=False)
    return (old + gradient).coalesce()


@value
class NoMemory(NamedTuple):
    """Lambda is 0: only the rows of the current board learn, one array entry (lane) per index.

    Attributes:
        rows, x: ``[n_features]``, row and feature of each lane, the agent's own arrays; the lanes of a row that occurs
            x times are equal.
        e: ``[n_features]``, trace of each lane.
        x_next: None, the next board is not needed.
        distinct: False, since a row may fill several lanes.
        resetting: True, since nothing outlives a move.
        decay: 0.
    """

    rows: npt.NDArray[np.int32]
    x: Floats
    e: Floats
    x_next: None
    distinct: bool
    resetting: bool
    decay: float | np.floating[Any]

    def clear(self) -> None:
        """Clear all traces."""

    def add(self, rows: npt.NDArray[np.int32], x: Floats, slope: float) -> int:
        """Add the gradient slope * x of the board with ``rows`` and ``x``; return the number of lanes."""
        for j in range(len(rows)):
            self.e[j] = slope * x[j]
        return len(rows)

    def kept(self) -> int:
        """How many lanes had a trace before the last board."""
        return 0


@value
class Memory(NamedTuple):
    """Lambda is above 0: the eligible rows, one lane each.

    Attributes:
        rows, x, e: ``[capacity]``, row, feature (0 unless currently active) and trace of each lane.
        x_next: ``[capacity]``, gamma times the feature on the next board; None if not needed.
        distinct: True, a row fills one lane.
        lane: ``[table rows]``, the lane of each row, -1 if it is not eligible.
        size: ``[2]``, number of eligible rows, and how many of them had a trace before the last board.
        decay, replacing, resetting, threshold: see ``Traces``.
    """

    rows: npt.NDArray[np.int32]
    x: Floats
    e: Floats
    x_next: Floats | None
    distinct: bool
    lane: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    decay: float | np.floating[Any]
    replacing: bool
    resetting: bool
    threshold: float

    def clear(self) -> None:
        """Clear all traces."""
        for k in range(self.size[0]):
            self.lane[self.rows[k]] = -1
        self.size[0] = 0

    def add(self, rows: npt.NDArray[np.int32], x: Floats, slope: float) -> int:
        """Decay the traces, then add the gradient slope * x; return the number of lanes."""
        n = self.age()
        for j in range(len(rows)):
            k = self.lane[rows[j]]
            if k < 0:
                k = n
                n += 1
                self.rows[k], self.lane[rows[j]], self.e[k] = rows[j], k, 0
            # A row that occurs x times is visited x times.
            self.e[k] = slope * x[j] if self.replacing else self.e[k] + slope
            self.x[k] = x[j]
        self.size[0] = n
        return n

    def kept(self) -> int:
        """How many lanes, the first ones, had a trace before the last board."""
        return int(self.size[1])

    def foresee(self, rows: npt.NDArray[np.int32], gamma: float) -> int:
        """Add the ``rows`` of the next board; return the number of lanes, those without a trace last."""
        n, ahead = int(self.size[0]), self.x_next
        for k in range(n):
            ahead[k] = 0  # type: ignore[index]
        for j in range(len(rows)):
            k = self.lane[rows[j]]
            if k < 0:
                k = n
                n += 1
                self.rows[k], self.lane[rows[j]] = rows[j], k
                self.x[k] = self.e[k] = ahead[k] = 0  # type: ignore[index]
            ahead[k] += gamma  # type: ignore[index]
        self.size[0] = n
        return n

    def age(self) -> int:
        """Decay the traces and drop the small ones; return how many are left."""
        n = int(self.size[0])
        for k in range(n):
            self.e[k] *= self.decay
            self.x[k] = 0
        if self.threshold > 0:
            for k in range(n - 1, -1, -1):
                if abs(self.e[k]) < self.threshold:
                    n -= 1
                    self.lane[self.rows[k]] = -1
                    if k < n:
                        self.rows[k], self.e[k] = self.rows[n], self.e[n]
                        self.lane[self.rows[k]] = k
        self.size[1] = n
        return n


def memory(
    traces: Traces | None, rows: int, indices: npt.NDArray[np.int32], x: Floats, capacity: int, ahead: bool
) -> NoMemory | Memory:
    """Empty memory for compiled code.

    Args:
        traces: kind of traces, None for lambda 0.
        rows: number of table rows.
        indices: ``[n_features]``, where the agent keeps the rows of the current board.
        x: ``[n_features]``, where it keeps their features.
        capacity: the most rows that can become eligible in a game.
        ahead: whether the next board is needed too.
    """
    if traces is None and not ahead:
        return NoMemory(indices, x, np.zeros_like(x), None, False, True, x.dtype.type(0))
    traces = traces or Traces(0.0, resetting=True, threshold=1e-30)  # drops all
    n = min(rows, capacity)
    lanes = np.zeros(n, np.int32), np.zeros(n, x.dtype), np.zeros(n, x.dtype)
    lane, size, x_next = np.full(rows, -1, np.int32), np.zeros(2, np.int64), np.zeros(n, x.dtype) if ahead else None
    decay, threshold = x.dtype.type(traces.decay), float(traces.threshold)
    return Memory(*lanes, x_next, True, lane, size, decay, traces.replacing, traces.resetting, threshold)
