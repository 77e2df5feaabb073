"""What a game must provide: a board, which is a value with compiled methods, and a class that describes it.

Games here are finite, for two players who take turns and see everything; what one wins the other loses. A move may end
the game with a win, a loss or a draw for the player who makes it. ``rlgames.games.misfit`` says why a game is none of
these. Chance, points, passes, and moves that change several parts of the board do not fit yet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from rlgames.games.drawing import Picture, discs, marked, marks

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Board(Protocol):
    """A position: a NamedTuple of numbers, decorated with ``rlgames.compiled.value``; methods return new values."""

    def player(self) -> int:
        """+1 if the first player is to move, -1 if the second."""

    def winner(self) -> int:
        """+1 or -1 for the player who has won, else 0."""

    def over(self) -> bool:
        """Whether the game has ended."""

    def moves(self) -> npt.NDArray[np.int64]:
        """The legal moves in tie-break order, in new memory; none when the game is over."""

    def play(self, move: int) -> Self:
        """The position after the legal move ``move``."""

    @property
    def ply(self) -> int:
        """Number of moves made so far."""

    def __iter__(self) -> Iterator[int]:
        """The fields."""

    def __hash__(self) -> int:
        """Equal positions have equal hashes."""


class PartBoard(Board, Protocol):
    """A position that consists of parts (the columns of Connect-4, the cells of tic-tac-toe).

    A move changes only the part with its own number; ``code(part)`` encodes everything visible in a part as a small
    integer.
    """

    def list_moves(self, moves: npt.NDArray[np.int64]) -> int:
        """Write the legal moves into ``moves``, in tie-break order; return their number, 0 when the game is over."""

    def code(self, part: int) -> int:
        """What is visible in part ``part``, from 0 to the game's ``n_codes`` - 1."""


class TensorBoards(Protocol):
    """Many positions at once, for ``engine=batched``: the fields of the board as int64 tensors ``[n]``.

    No position is over: the caller replaces a board when a move ends its game. ``player`` and ``code`` are usually the
    board's own, since operators mean the same for numbers and tensors.
    """

    def __init__(self, *fields: Tensor) -> None: ...

    def __iter__(self) -> Iterator[Tensor]:
        """The fields."""

    @property
    def ply(self) -> Tensor:
        """Number of moves made so far; ``[n]``."""

    def player(self) -> Tensor:
        """+1 or -1 for the player to move; ``[n]``."""

    def code(self, part: Tensor) -> Tensor:
        """What is visible in the parts ``part`` (``[k, 1]``, or ``[k, n]`` if they differ by board); ``[k, n]``."""

    def moves(self) -> tuple[Tensor, Tensor]:
        """All moves, the legal ones first in tie-break order, and whether each is legal; ``[n_moves, n]``."""

    def wins(self, moves: Tensor) -> Tensor:
        """Whether the legal ``moves`` win at once, undefined for illegal ones; ``[k, n]``."""

    def last(self) -> Tensor:
        """Whether the next move ends the game, whichever it is; ``[n]``."""

    def play(self, move: Tensor) -> Self:
        """The positions after the legal moves ``move``, ``[n]`` or ``[k, n]``; illegal ones leave parts unchanged."""


B = TypeVar("B", bound=Board)
P = TypeVar("P", bound=PartBoard)


class Rules(ABC, Generic[B]):
    """What every game provides, chess too; a win of the first player counts +1.

    Attributes:
        name: as on the command line.
        board: the start position.
    """

    name: ClassVar[str]
    board: B

    @abstractmethod
    def text(self, board: B) -> str:
        """The board as text."""

    @abstractmethod
    def play(self, moves: str | Iterable[int], board: B | None = None) -> B:
        """Play ``moves`` from ``board`` (default: the start position).

        Raises:
            ValueError: for a move that does not exist, is not legal, or comes after the end of the game.
        """


class Game(Rules[P]):
    """A game on a board of parts, each move of which changes one part.

    Attributes:
        n_moves: moves are the integers from 0 to ``n_moves`` - 1.
        n_parts, n_codes, n_cells: sizes of the board; cells are numbered part by part, and a game has at most
            ``n_cells`` plies.
        previous: for each code of a part, its code before the last move there (itself if none); ``[n_codes]``.
        symmetries: permutations of the cells that leave the game unchanged, the identity first. Cells of one part stay
            together in one part.
        grid: cells as displayed, ``[rows, columns]``, top row first.
        labels: one character per move, for display.
        boards: a NamedTuple that implements ``TensorBoards``; None: ``engine=batched`` is not supported. There only the
            player who moves can win, and only a full board is a draw.
    """

    n_moves: ClassVar[int]
    n_parts: ClassVar[int]
    n_codes: ClassVar[int]
    n_cells: ClassVar[int]
    previous: ClassVar[npt.NDArray[np.int64]]
    symmetries: ClassVar[tuple[tuple[int, ...], ...]]
    grid: ClassVar[npt.NDArray[np.int64]]
    labels: ClassVar[str]
    boards: ClassVar[type[TensorBoards] | None] = None

    @abstractmethod
    def states(self, n_states: int) -> npt.NDArray[np.int8]:
        """Cell states of each part by code, -1 for impossible codes; ``[n_parts, n_codes, n_cells / n_parts]``."""

    def cells(self, board: P) -> npt.NDArray[np.int8]:
        """Stones as displayed, top row first: 0 empty, 1 first, 2 second player; ``[rows, columns]``."""
        codes = [board.code(part) for part in range(self.n_parts)]
        return self.states(3)[range(self.n_parts), codes].ravel()[self.grid]

    def start_boards(self, n: int, device: torch.device | str = "cpu") -> TensorBoards:
        """``n`` start positions as tensors.

        Raises:
            ValueError: for a game without such boards.
        """
        import torch

        if self.boards is None:
            raise ValueError(f"engine=batched needs boards as tensors, which {self.name} lacks; use engine=fused")
        return self.boards(*(torch.full((n,), field, device=device) for field in self.board))

    @abstractmethod
    def text(self, board: P) -> str:
        """The board as text, with the labels of the moves."""

    def picture(self, board: P, values: Mapping[int, float] | None = None, cells: Iterable[int] = ()) -> Picture:
        """The board as a picture, which notebooks show.

        Args:
            board: the position.
            values: move values, from -1 (lost) to +1 (won) for the player to move.
            cells: cells to mark, such as those of an n-tuple.
        """
        draw = marks if self.n_moves == self.n_cells else discs
        places = (np.argwhere(self.grid == cell)[0] for cell in cells)
        return marked(draw(self.cells(board), self.labels, values), [(int(row), int(column)) for row, column in places])

    def play(self, moves: str | Iterable[int], board: P | None = None) -> P:
        """Play ``moves`` (labels such as "4435", or integers) from ``board`` (default: the start position).

        Raises:
            ValueError: for a move that does not exist, is not legal, or comes after the end of the game.
        """
        board = self.board if board is None else board
        for move in self.parse(moves) if isinstance(moves, str) else moves:
            if board.over():
                raise ValueError(f"the game is over after {board.ply} moves:\n{self.text(board)}")
            if move not in board.moves():
                label = self.labels[move] if 0 <= move < self.n_moves else str(move)
                allowed = " ".join(self.labels[m] for m in sorted(board.moves()))
                raise ValueError(f"move {label} is not legal here; legal moves are {allowed}\n{self.text(board)}")
            board = board.play(int(move))
        return board

    def parse(self, text: str) -> list[int]:
        """Moves from their labels.

        Raises:
            ValueError: for a character that is not a label, which it names.
        """
        for label in text:
            if label not in self.labels:
                raise ValueError(f"{label!r} is not a move of {self.name}; moves are {' '.join(self.labels)}")
        return [self.labels.index(label) for label in text]
