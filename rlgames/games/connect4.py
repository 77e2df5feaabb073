"""Connect-4: seven columns, six rows; four in a row wins.

Cells are numbered from the bottom left, column by column (``cell = 6 * column + row``)::

    5 11 17 23 29 35 41
    4 10 16 22 28 34 40
    3  9 15 21 27 33 39
    2  8 14 20 26 32 38
    1  7 13 19 25 31 37
    0  6 12 18 24 30 36

Bits count the same way, with a seventh row that is always empty (``bit = 7 * column + row``), so lines cannot wrap
around. A move is a column, 0 to 6 from the left; in text, columns are numbered 1 to 7 ("4435").
"""

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import compilable, value
from rlgames.games.game import Game

COLUMNS, ROWS = 7, 6
BOTTOM = sum(1 << 7 * column for column in range(COLUMNS))  # the lowest cell of every column
COLUMN = (1 << ROWS) - 1  # the six cells of column 0

# How many of the 69 four-cell lines pass through each cell, and through a column's free cell, by its code (0: full).
CELL_LINES = np.array([[3, 4, 5, 5, 4, 3], [4, 6, 8, 8, 6, 4], [5, 8, 11, 11, 8, 5], [7, 10, 13, 13, 10, 7]])[
    [0, 1, 2, 3, 2, 1, 0]
]
FREE_LINES = np.array(
    [[0] + [(*lines, 0)[code.bit_length() - 1] for code in range(1, 128)] for lines in CELL_LINES.tolist()]
)


@compilable
def has_four(stones: int) -> bool:
    """Whether the bitboard ``stones`` has four in a row (vertically, horizontally or diagonally)."""
    pairs = stones & (stones >> 1)
    if pairs & (pairs >> 2):
        return True
    pairs = stones & (stones >> 7)
    if pairs & (pairs >> 14):
        return True
    pairs = stones & (stones >> 6)
    if pairs & (pairs >> 12):
        return True
    pairs = stones & (stones >> 8)
    return (pairs & (pairs >> 16)) != 0


@value
class Board(NamedTuple):
    """A position: the stones of the first and the second player as bitboards, and the number of stones."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def __str__(self) -> str:
        """The board as text; see ``Connect4.text``."""
        return Connect4().text(self)

    def _repr_svg_(self) -> str:
        """The board as a picture, for notebooks."""
        return Connect4().picture(self).svg()

    def player(self) -> int:
        """+1 if the first player is to move, -1 if the second."""
        return 1 - 2 * (self.ply & 1)

    def winner(self) -> int:
        """+1 or -1 for the player with four in a row, else 0. Only the player who moved last can have one."""
        if self.ply & 1:
            return 1 if has_four(self.first) else 0
        return -1 if has_four(self.second) else 0

    def over(self) -> bool:
        """Whether the game has ended: a win, or 42 stones."""
        return self.ply == ROWS * COLUMNS or self.winner() != 0

    def legal(self, move: int) -> bool:
        """Whether column ``move`` has room; does not check whether the game is over."""
        return ((self.first | self.second) >> (7 * move + ROWS - 1)) & 1 == 0

    def moves(self) -> npt.NDArray[np.int64]:
        """Columns with room, most lines through the free cell first, then from the left; none when the game is over."""
        moves = np.empty(COLUMNS, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves: npt.NDArray[np.int64]) -> int:
        """Write ``moves()`` into an array; return their number."""
        count = 0
        if not self.over():
            for move in range(COLUMNS):
                lines = FREE_LINES[move, self.code(move)]
                if lines:
                    k = count
                    while k > 0 and FREE_LINES[moves[k - 1], self.code(moves[k - 1])] < lines:
                        moves[k] = moves[k - 1]
                        k -= 1
                    moves[k] = move
                    count += 1
        return count

    def play(self, move: int) -> "Board":
        """The position after a stone is dropped into column ``move``, which must have room."""
        stone = ((self.first | self.second) + (1 << (7 * move))) & (COLUMN << (7 * move))
        if self.ply & 1:
            return Board(self.first, self.second | stone, self.ply + 1)
        return Board(self.first | stone, self.second, self.ply + 1)

    def code(self, part: int) -> int:
        """Column ``part`` in seven bits: a 1 for each stone of the first player, and a 1 above the topmost stone."""
        stones = self.first | self.second
        return (((stones + BOTTOM) | self.first) >> (7 * part)) & 127


@functools.cache
def move_keys(device: torch.device) -> tuple[Tensor, Tensor]:
    """The columns, ``[7, 1]``, and the sort key of a move by column and code, ``[7 * 128]``.

    The key is 8 times the lines through the free cell, plus 6 for column 0 down to 0 for column 6; below 8: full.
    """
    columns = np.arange(COLUMNS)[:, None]
    keys = 8 * FREE_LINES + columns[::-1]
    return torch.from_numpy(columns).to(device), torch.from_numpy(keys).flatten().to(device)


def fours(stones: Tensor) -> Tensor:
    """``has_four`` for many bitboards."""
    lines = torch.zeros_like(stones)
    for step in (1, 7, 6, 8):
        pairs = stones & stones >> step
        lines |= pairs & pairs >> 2 * step
    return lines != 0


class Boards(NamedTuple):
    """Many positions; see ``TensorBoards``."""

    first: Tensor
    second: Tensor
    ply: Tensor

    def player(self) -> Tensor:
        """See ``TensorBoards``."""
        player: Tensor = Board.player(self)  # type: ignore[arg-type, assignment] # operators work as on numbers
        return player

    def code(self, part: Tensor) -> Tensor:
        """See ``TensorBoards``."""
        code: Tensor = Board.code(self, part)  # type: ignore[arg-type, assignment]
        return code

    def moves(self) -> tuple[Tensor, Tensor]:
        """See ``TensorBoards``."""
        column, table = move_keys(self.ply.device)
        keys = table[128 * column + self.code(column)].sort(0, descending=True)[0]
        return COLUMNS - 1 - keys % 8, keys >= 8

    def wins(self, moves: Tensor) -> Tensor:
        """See ``TensorBoards``."""
        return fours(torch.where(self.ply % 2 == 1, self.second, self.first) | self.stone(moves))

    def last(self) -> Tensor:
        """See ``TensorBoards``."""
        return self.ply == ROWS * COLUMNS - 1

    def play(self, move: Tensor) -> "Boards":
        """See ``TensorBoards``."""
        stone, odd = self.stone(move), self.ply & 1
        return Boards(self.first | stone * (1 - odd), self.second | stone * odd, self.ply + 1)

    def stone(self, move: Tensor) -> Tensor:
        """The bit of a new stone in each column ``move``, 0 if the column is full."""
        column = 7 * move
        return (self.first | self.second) + (1 << column) & COLUMN << column


class Connect4(Game[Board]):
    """The rules of Connect-4 (7 columns, 6 rows) and what features need to know about its board."""

    name = "connect4"
    board = Board()
    n_moves = COLUMNS
    n_parts, n_codes, n_cells = COLUMNS, 128, COLUMNS * ROWS
    previous = np.array(
        [code & ~(3 << code.bit_length() - 2) | 1 << code.bit_length() - 2 if code > 1 else code for code in range(128)]
    )
    symmetries = (
        tuple(range(ROWS * COLUMNS)),
        tuple((COLUMNS - 1 - cell // ROWS) * ROWS + cell % ROWS for cell in range(ROWS * COLUMNS)),
    )
    grid = np.arange(COLUMNS * ROWS).reshape(COLUMNS, ROWS).T[::-1]
    labels = "1234567"
    boards = Boards

    def states(self, n_states: int) -> npt.NDArray[np.int8]:
        """Cell states of every column code: 0 empty, 1 first, 2 second player; with 4 states, 3 is the next free cell.

        Args:
            n_states: 3 or 4 (Bagheri et al. 2015, section 3.2).

        Returns:
            ``[7, 128, 6]``; all -1 for code 0, which does not occur.
        """
        if n_states not in (3, 4):
            raise ValueError(f"features.states is {n_states}; Connect-4 cells have 3 or 4 states")
        states = np.full((self.n_codes, ROWS), -1, np.int8)
        for code in range(1, self.n_codes):
            height = code.bit_length() - 1
            stones = [1 if code >> row & 1 else 2 for row in range(height)]
            free = [3 if n_states == 4 else 0] + [0] * ROWS
            states[code] = (stones + free)[:ROWS]
        return np.broadcast_to(states, (COLUMNS, self.n_codes, ROWS))

    def text(self, board: Board) -> str:
        """The board as people draw it: ``X`` first player, ``O`` second player, with column numbers below."""
        rows = [" ".join(".XO"[cell] for cell in row) for row in self.cells(board)]
        return "\n".join([*rows, " ".join(self.labels)])

    def mirror(self, board: Board) -> Board:
        """The board seen from behind: column 0 becomes column 6."""
        first, second = (
            sum((stones >> 7 * column & 127) << 7 * (COLUMNS - 1 - column) for column in range(COLUMNS))
            for stones in (board.first, board.second)
        )
        return Board(first, second, board.ply)
