"""N-tuples for many boards at once, on any device: the additive tables of ``CompactNTuples`` as tensors."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlgames.games.game import TensorBoards

if TYPE_CHECKING:
    from rlgames.features.ntuples import CompactNTuples

# Boards whose afterstates are looked up at a time: on a CPU as many as fit in its caches (measured with 512 KiB of L2:
# 128 to 512 boards differ by 10 %), elsewhere as many as keep memory bounded.
SLICE = {"cpu": 256}
OTHER_SLICE = 16384


class TensorNTuples:
    """Compact rows of boards and of their afterstates.

    Args:
        compact: the tables, ``CompactNTuples``.
        device: where the tensors live.

    Attributes:
        n_features: number of rows per board.
        slice: number of boards that are looked up at a time.
    """

    def __init__(self, compact: "CompactNTuples", device: torch.device) -> None:
        self.n_parts, self.n_codes, self.n_features = compact.lines.shape
        self.images, self._table_size, self._second = compact.images, compact.table_size, compact.second
        self._lines = torch.from_numpy(compact.lines).flatten(0, 1).to(device)
        steps = torch.from_numpy(compact.steps).flatten(0, 1)
        self._steps = torch.cat([steps, torch.zeros_like(steps[:1])]).to(device)  # the last line: nothing changes
        self._part = torch.arange(self.n_parts, device=device).unsqueeze(1)
        self.slice = SLICE.get(device.type, OTHER_SLICE)
        self._buffers: dict[str, Tensor] = {}

    def rows(self, boards: TensorBoards) -> Tensor:
        """Rows relative to the tables of the player to move; int32 ``[n, n_features]``."""
        line: Tensor = self._part * self.n_codes + boards.code(self._part)
        rows = self._lines.new_empty(line.shape[1], self.n_features)
        for some in self._slices(len(rows)):
            parts = self._buffer("lines", self._lines, self.n_parts, some)
            torch.index_select(self._lines, 0, line[:, some].flatten(), out=parts)
            torch.sum(parts.view(self.n_parts, -1, self.n_features), 0, dtype=torch.int32, out=rows[some])
        return rows

    def begin_of(self, player: Tensor) -> Tensor:
        """First row of the tables for boards with ``player`` to move; int32, in the shape of ``player``."""
        begin: Tensor = (player < 0) * self._second
        return begin.int()

    def sums(self, weights: Tensor, boards: TensorBoards, rows: Tensor, moves: Tensor, legal: Tensor) -> Tensor:
        """Sums of weights after each move, ``[k, n]``; arbitrary for illegal moves.

        Args:
            weights: ``[compact rows]``.
            boards: many boards.
            rows: their rows, as ``rows`` returns them.
            moves: ``[k, n]``.
            legal: whether each move is legal, ``[k, n]``.
        """
        k, n = moves.shape
        step = moves * self.n_codes + boards.play(moves).code(moves)
        step = step.masked_fill(~legal, len(self._steps) - 1)
        begin = self.begin_of(-boards.player()).unsqueeze(1) + rows
        sums = weights.new_empty(k, n)
        for some in self._slices(n):
            after = self._buffer("after", rows, k, some)
            torch.index_select(self._steps, 0, step[:, some].flatten(), out=after)
            after.view(k, -1, self.n_features).add_(begin[some])
            seen = self._buffer("seen", weights, k, some).flatten()
            torch.index_select(weights, 0, after.flatten(), out=seen)
            sums[:, some] = seen.view(k, -1, self.n_features).sum(2)
        return sums

    def counts(self, rows: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """How often each of ``rows`` occurs on its board, and 1 at its first occurrence there, else 0.

        Only rows that one tuple reads in different images can coincide. Numbers replace booleans because multiplying
        is much faster than selecting (measured on a CPU: 0.03 against 0.6 us per board).
        """
        images = rows.view(len(rows), self.images, -1)
        x, first = torch.ones(2, *images.shape, dtype=dtype, device=rows.device)
        for j in range(1, self.images):
            for i in range(j):
                same = (images[:, i] == images[:, j]).to(dtype)
                x[:, i] += same
                x[:, j] += same
                first[:, j] *= 1 - same
        return x.flatten(1), first.flatten(1)

    def _slices(self, n: int) -> list[slice]:
        return [slice(k, min(k + self.slice, n)) for k in range(0, n, self.slice)]

    def _buffer(self, name: str, like: Tensor, k: int, some: slice) -> Tensor:
        """Memory for ``k`` rows per board of the slice ``some``: ``[k * boards, n_features]``."""
        lines = k * (some.stop - some.start)
        if name not in self._buffers or len(self._buffers[name]) < lines:
            self._buffers[name] = like.new_empty(lines, self.n_features)
        return self._buffers[name][:lines]
