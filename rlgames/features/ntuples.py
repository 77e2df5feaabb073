"""N-tuples: each tuple of cells reads its cell states as one number, which indexes a table of its own.

For a tuple of cells ``a``, the row is k = sum_j s[a_j] P^j (Bagheri et al. 2015, eq. 1), where P is the number of cell
states. A tuple reads every symmetric image of the board with the same table, so a board has
``len(tuples) * symmetries`` indices; if two images read the same row, the index occurs twice, which means x = 2.

A row is a sum over cells, hence also a sum over the parts of the board, and a part is determined by its code:

    row(board) = sum over parts of  table[part, code(part)]

A move changes one part, so it adds the difference of two table lines; there is no work per cell anywhere.
Few of a tuple's P^n rows can occur (8 % in Connect-4: no stone floats). Numbering only those, part by part, gives
**compact** rows in the same additive form. Compiled code works on a compact copy of the weights, which fits in the
processor's caches (measured: 1.6 times the games per second of the full tables).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import value
from rlgames.features.features import TableFeatures, physical_memory
from rlgames.features.tensors import TensorNTuples
from rlgames.games.game import Game, PartBoard

Tuples = Sequence[Sequence[int]]


@value
class CompactNTuples(NamedTuple):
    """The compiled side of ``NTuples``: compact rows of boards, relative to the tables of the player to move.

    Attributes:
        lines: ``[n_parts, n_codes, n_features]`` int32, what each code of each part adds to the rows.
        steps: the same shape, how the move that gives a part its code changes the rows.
        images: number of symmetric images; the features are those of the first image, then of the second, and so on.
        table_size: compact rows in one set of tables.
        second: first row of the second player's tables (0: both players share one set).
    """

    lines: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int32]
    images: int
    table_size: int
    second: int

    def active(self, board: PartBoard, rows: npt.NDArray[np.int32]) -> None:
        """Write the compact rows of ``board`` into ``rows`` (``[n_features]``)."""
        line = self.lines[0, board.code(0)]
        for f in range(len(rows)):
            rows[f] = line[f]
        for part in range(1, len(self.lines)):
            line = self.lines[part, board.code(part)]
            for f in range(len(rows)):
                rows[f] += line[f]

    def step(self, board: PartBoard, move: int) -> npt.NDArray[np.int32]:
        """How the compact rows change from ``board`` to the board after ``move``; ``[n_features]``."""
        step: npt.NDArray[np.int32] = self.steps[move, board.play(move).code(move)]
        return step

    def begin_of(self, player: int) -> int:
        """The first compact row of the tables for boards with ``player`` to move."""
        return self.second if player < 0 else 0

    def tables(self, table: npt.NDArray[Any], player: int) -> npt.NDArray[Any]:
        """The part of ``table`` for boards with ``player`` to move."""
        first = self.begin_of(player)
        return table[first : first + self.table_size]


class NTuples(TableFeatures):
    """N-tuples over a game's board as rows of one embedding table.

    Args:
        game: the game, see ``rlgames.games.game.Game``.
        tuples: lists of cells, or a text file with one tuple per line (``#`` starts a comment); None draws random
            walks.
        count, length, seed: number, length and random seed of the walks.
        states: number of cell states P.
        symmetric: read every tuple in all symmetric images of the board.
        table_per_player: separate tables for boards with the first and with the second player to move.

    Attributes:
        tuples: the cells of every tuple.
        size: number of table rows: the sum of P^n over tuples, doubled with a table per player.
        n_features: number of indices per board.
        n_moves: the most moves that a board can have.
        capacity: the most rows that a game can touch.
        compact: the compiled side.
        rows: ``[compact rows]`` int64, the table row of each compact row.

    Raises:
        ValueError: for tuples that leave the board or repeat a cell, walks that cannot be made, an unreadable file, or
            tables that do not fit in memory.
    """

    compact: CompactNTuples

    def __init__(
        self,
        game: Game[Any],
        tuples: Tuples | str | None = None,
        count: int = 70,
        length: int = 8,
        seed: int = 0,
        states: int = 4,
        symmetric: bool = True,
        table_per_player: bool = True,
    ) -> None:
        sets = 2 if table_per_player else 1
        self._states = game.states(states)
        if tuples is None:
            check_walks(game.grid.size, count, length)
            self._check_room(game, count, length, states**length, sets * count * states**length)
            tuples = random_walks(game.grid, count, length, np.random.default_rng(seed))
        elif isinstance(tuples, str):
            tuples = read_tuples(tuples)
        if not all(isinstance(cells, Sequence) and all(type(cell) is int for cell in cells) for cells in tuples):
            raise ValueError(f"features.tuples is {tuples!r}; it must be a list of lists of cell numbers")
        self.tuples = [list(cells) for cells in tuples]
        self._check(game.n_cells)
        rows = sets * sum(states ** len(cells) for cells in self.tuples)
        longest = max(map(len, self.tuples))
        self._check_room(game, len(self.tuples), longest, states**longest, rows)
        self._symmetries = np.array(game.symmetries if symmetric else game.symmetries[:1])
        self._two = table_per_player
        self.n_features = len(self.tuples) * len(self._symmetries)
        self.n_moves = game.n_moves
        self.capacity = self.n_features * game.n_cells
        self._lines = np.zeros((game.n_parts, game.n_codes, self.n_features), np.int64)
        compact = np.zeros_like(self._lines)
        numbered, first_row, first_compact = [], 0, 0
        for t, cells in enumerate(self.tuples):
            tuple_rows = self._number(t, cells, states, compact)
            self._lines[0, :, t :: len(self.tuples)] += first_row
            compact[0, :, t :: len(self.tuples)] += first_compact
            numbered.append(first_row + tuple_rows)
            first_row += states ** len(cells)
            first_compact += len(tuple_rows)
        self.table_size = first_row
        self.size = first_row * (2 if table_per_player else 1)
        table = np.concatenate(numbered)
        self.rows = np.concatenate([table, table + first_row]) if table_per_player else table
        self.compact = CompactNTuples(
            compact.astype(np.int32),
            (compact - compact[:, game.previous]).astype(np.int32),
            len(self._symmetries),
            len(table),
            len(table) if table_per_player else 0,
        )

    def encode(self, boards: Sequence[PartBoard]) -> Tensor:
        """Table rows of ``boards``; int64 ``[len(boards), n_features]``."""
        return torch.from_numpy(np.stack([self.indices(board) for board in boards]))

    def kept(self) -> dict[str, Any]:
        """The tuples, whatever becomes of their file."""
        return {"tuples": self.tuples}

    def indices(self, board: PartBoard) -> npt.NDArray[np.int64]:
        """Table rows of ``board``; ``[n_features]``, a row that occurs k times has x = k."""
        codes = [board.code(part) for part in range(len(self._lines))]
        rows: npt.NDArray[np.int64] = self._lines[range(len(codes)), codes].sum(0)
        return rows + self.table_size if self._two and board.player() < 0 else rows

    def tensors(self, device: torch.device) -> TensorNTuples:
        """The same features for many boards at once, as compact rows on a torch device."""
        return TensorNTuples(self.compact, device)

    def _number(self, t: int, cells: list[int], states: int, compact: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Fill in what tuple ``t`` reads from every part; return the table row of each of its compact rows."""
        per_part = self._states.shape[2]
        rows, stride = np.zeros(1, np.int64), 1
        for group in sorted({cell // per_part for cell in cells}):
            places = [j for j, cell in enumerate(cells) if cell // per_part == group]
            occurring: npt.NDArray[np.int64] | None = None
            for image, permutation in enumerate(self._symmetries):
                seen = permutation[[cells[j] for j in places]]
                part, f = int(seen[0]) // per_part, image * len(self.tuples) + t
                read = self._states[part][:, seen % per_part].astype(np.int64)
                possible = read.min(1) >= 0
                share = read @ np.array([states**j for j in places], np.int64)
                if occurring is None:
                    occurring = np.unique(share[possible])
                self._lines[part, possible, f] += share[possible]
                compact[part, possible, f] += stride * np.searchsorted(occurring, share[possible])
            assert occurring is not None
            rows = (occurring[:, None] + rows).ravel()
            stride *= len(occurring)
        return rows

    def _check(self, n_cells: int) -> None:
        if not self.tuples:
            raise ValueError("features.tuples is empty; at least one tuple is needed")
        for cells in self.tuples:
            if not cells:
                raise ValueError("features.tuples has a tuple without cells")
            outside = [cell for cell in cells if not 0 <= cell < n_cells]
            if outside:
                raise ValueError(f"features.tuples: tuple {cells} leaves the board; cells are 0 to {n_cells - 1}")
            if len(set(cells)) < len(cells):
                raise ValueError(f"features.tuples: tuple {cells} names a cell twice")

    @staticmethod
    def _check_room(game: Game[Any], count: int, longest: int, most: int, rows: int) -> None:
        weights, available = 4 * rows / 2**30, physical_memory() / 2**30
        codes = 24 * count * len(game.symmetries) * game.n_parts * game.n_codes / 2**30  # as 64 and 32 bits, twice
        # The largest rules keep three numbers of state per weight.
        if 4 * weights + codes > available or rows >= 2**31:
            raise ValueError(
                f"features: tables for {count:,} tuples ({longest} cells, {most:,} rows) need {weights:,.1f} GiB of "
                f"weights, up to three times that for the optimizer, and {codes:,.1f} GiB to find their rows; this "
                f"machine has {available:.1f} GiB and a table at most 2^31 rows"
            )


def read_tuples(path: str) -> list[list[int]]:
    """Read tuples from a text file: one per line, cells separated by blanks or commas; ``#`` starts a comment.

    Raises:
        ValueError: if the file cannot be read, has no tuples, or has a line with anything but cell numbers.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"features.tuples: no such file {file.absolute()}")
    tuples = []
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        words = line.split("#")[0].replace(",", " ").split()
        if words:
            if not all(word.isdecimal() for word in words):
                raise ValueError(
                    f"features.tuples: {file}, line {number}: {line.strip()!r} is not a list of cell numbers"
                )
            tuples.append([int(word) for word in words])
    if not tuples:
        raise ValueError(f"features.tuples: {file} contains no tuples")
    return tuples


def random_walks(grid: npt.NDArray[np.int64], count: int, length: int, rng: np.random.Generator) -> list[list[int]]:
    """Draw distinct random walks over the 8-neighbourhood that visit no cell twice (Thill et al. 2012).

    Args:
        grid: cell numbers, ``[rows, columns]``.
        count: number of walks.
        length: cells per walk.
        rng: source of randomness.

    Returns:
        The cells of each walk in ascending order.

    Raises:
        ValueError: if ``length`` or ``count`` is out of range, or too few distinct walks are found.
    """
    check_walks(grid.size, count, length)
    walks: dict[tuple[int, ...], None] = {}
    failures = 0
    while len(walks) < count:
        walk = _walk(grid, length, rng)
        failures = failures + 1 if walk is None or tuple(walk) in walks else 0
        if walk is not None:
            walks[tuple(walk)] = None
        if failures > 10_000:
            raise ValueError(
                f"features.count is {count}, but only {len(walks)} different walks of {length} cells were found"
            )
    return [list(walk) for walk in walks]


def check_walks(cells: int, count: int, length: int) -> None:
    """Refuse what is no number of walks, or no length of one on so many ``cells``.

    Raises:
        ValueError: naming the key.
    """
    if not (isinstance(length, int) and 1 <= length <= cells):
        raise ValueError(f"features.length is {length}; a tuple has 1 to {cells} cells")
    if not (isinstance(count, int) and count >= 1):
        raise ValueError(f"features.count is {count}; at least 1 tuple is needed")


def _walk(grid: npt.NDArray[np.int64], length: int, rng: np.random.Generator) -> list[int] | None:
    """One walk, or None if it hits a dead end."""
    rows, columns = grid.shape
    place = (int(rng.integers(rows)), int(rng.integers(columns)))
    walk = [place]
    while len(walk) < length:
        row, column = walk[-1]
        free = [
            (r, c)
            for r in range(max(row - 1, 0), min(row + 2, rows))
            for c in range(max(column - 1, 0), min(column + 2, columns))
            if (r, c) not in walk
        ]
        if not free:
            return None
        walk.append(free[int(rng.integers(len(free)))])
    return sorted(int(grid[cell]) for cell in walk)
