"""Tic-tac-toe: nine cells; three in a row wins.

Cells, which are also the moves (left), and their labels in text (right)::

    0 1 2      1 2 3
    3 4 5      4 5 6
    6 7 8      7 8 9
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import compilable, value
from rlgames.games.game import Game

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
FULL = (1 << 9) - 1


@compilable
def has_three(marks: int) -> bool:
    """Whether the bitboard ``marks`` (bit = cell) contains one of the eight lines."""
    for a, b, c in LINES:
        line = 1 << a | 1 << b | 1 << c
        if marks & line == line:
            return True
    return False


@value
class Board(NamedTuple):
    """A position: the marks of the first and the second player as bitboards, and the number of marks."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def __str__(self) -> str:
        """The board as text; see ``TicTacToe.text``."""
        return TicTacToe().text(self)

    def _repr_svg_(self) -> str:
        """The board as a picture, for notebooks."""
        return TicTacToe().picture(self).svg()

    def player(self) -> int:
        """+1 if the first player is to move, -1 if the second."""
        return 1 - 2 * (self.ply & 1)

    def winner(self) -> int:
        """+1 or -1 for the player with three in a row, else 0. Only the player who moved last can have one."""
        if self.ply & 1:
            return 1 if has_three(self.first) else 0
        return -1 if has_three(self.second) else 0

    def over(self) -> bool:
        """Whether the game has ended: a win, or nine marks."""
        return self.ply == 9 or self.winner() != 0

    def moves(self) -> npt.NDArray[np.int64]:
        """Free cells, in ascending order; none if the game is over."""
        moves = np.empty(9, np.int64)
        return moves[: self.list_moves(moves)]

    def list_moves(self, moves: npt.NDArray[np.int64]) -> int:
        """Write ``moves()`` into an array; return their number."""
        count = 0
        if not self.over():
            for cell in range(9):
                if not (self.first | self.second) >> cell & 1:
                    moves[count] = cell
                    count += 1
        return count

    def play(self, move: int) -> "Board":
        """The position after a mark is placed on the free cell ``move``."""
        if self.ply & 1:
            return Board(self.first, self.second | 1 << move, self.ply + 1)
        return Board(self.first | 1 << move, self.second, self.ply + 1)

    def code(self, part: int) -> int:
        """Cell ``part``: 0 free, 1 first, 2 second player."""
        return (self.first >> part & 1) + 2 * (self.second >> part & 1)


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
        cell = torch.arange(9, device=self.ply.device).unsqueeze(1)
        keys = (cell + 9 * ((self.first | self.second) >> cell & 1)).sort(0)[0]
        return keys % 9, keys < 9

    def wins(self, moves: Tensor) -> Tensor:
        """See ``TensorBoards``."""
        marks = torch.where(self.ply % 2 == 1, self.second, self.first) | 1 << moves
        three = torch.zeros_like(marks, dtype=torch.bool)
        for a, b, c in LINES:
            line = 1 << a | 1 << b | 1 << c
            three |= marks & line == line
        return three

    def last(self) -> Tensor:
        """See ``TensorBoards``."""
        return self.ply == 8

    def play(self, move: Tensor) -> "Boards":
        """See ``TensorBoards``."""
        free, odd = ~(self.first | self.second), self.ply & 1
        mark = 1 << move & free
        return Boards(self.first | mark * (1 - odd), self.second | mark * odd, self.ply + 1)


def _symmetries() -> tuple[tuple[int, ...], ...]:
    """The eight symmetries of the square as permutations of the cells, the identity first."""
    square = np.arange(9).reshape(3, 3)
    turned = [np.rot90(square, k) for k in range(4)]
    return tuple(tuple(map(int, s.ravel())) for s in [*turned, *(s.T for s in turned)])


class TicTacToe(Game[Board]):
    """The rules of tic-tac-toe and what features need to know about its board."""

    name = "tictactoe"
    board = Board()
    n_moves = 9
    n_parts, n_codes, n_cells = 9, 3, 9
    previous = np.array([0, 0, 0])
    symmetries = _symmetries()
    grid = np.arange(9).reshape(3, 3)
    labels = "123456789"
    boards = Boards

    def states(self, n_states: int) -> npt.NDArray[np.int8]:
        """Cell states: 0 free, 1 first, 2 second player; ``[9, 3, 1]``."""
        if n_states != 3:
            raise ValueError(f"features.states is {n_states}; tic-tac-toe cells have 3 states")
        return np.broadcast_to(np.arange(3, dtype=np.int8).reshape(1, 3, 1), (9, 3, 1))

    def text(self, board: Board) -> str:
        """The board: ``X`` first player, ``O`` second player, labels in the free cells."""
        marks = [self.labels[cell] if not board.code(cell) else " XO"[board.code(cell)] for cell in range(9)]
        return "\n".join(" ".join(marks[row : row + 3]) for row in range(0, 9, 3))
