"""A game of chess between two engines: its course, its end and the reason, and what each engine thought."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlgames.chess.board import START, legal_moves, repetitions
from rlgames.chess.search import Result
from rlgames.interrupts import ask


class Course:
    """The course of a game.

    Args:
        start: its first position.
        moves: already made, such as an opening.

    Attributes:
        boards: the positions, from the first to the present one.
        moves: the moves between them.
        opening: number of moves that no engine chose.
    """

    def __init__(self, start: Any = START, moves: tuple[int, ...] = ()) -> None:
        self.boards: list[Any] = [start]
        self.moves: list[int] = []
        self.opening = len(moves)
        for move in moves:
            self.play(move)

    def copy(self) -> "Course":
        """A copy of the course, to be continued differently."""
        course = Course(self.boards[0], tuple(self.moves))
        course.opening = self.opening
        return course

    @property
    def board(self) -> Any:
        """The present position."""
        return self.boards[-1]

    @property
    def keys(self) -> list[int]:
        """Keys of the earlier positions that can still recur."""
        present = len(self.boards) - 1
        return [board.key for board in self.boards[max(0, present - self.board.clock) : present]]

    def play(self, move: int) -> None:
        """Make the legal ``move``."""
        self.boards.append(self.board.play(move))
        self.moves.append(move)

    def uci(self) -> list[str]:
        """The moves as text."""
        return [board.uci(move) for board, move in zip(self.boards, self.moves, strict=False)]

    def end(self) -> tuple[int, str] | None:
        """The winner and the reason, if the rules end the game here."""
        board = self.board
        if not len(legal_moves(board)):
            return (-board.player(), "mate") if board.in_check() else (0, "stalemate")
        if board.over():
            return 0, "fifty moves" if board.clock >= 100 else "dead material"
        keys = np.array(self.keys, np.int64)
        if repetitions(keys, len(keys), board) >= 2:
            return 0, "threefold repetition"
        return None


class Engine(ABC):
    """Anything that chooses moves.

    Attributes:
        name: the name for people.
    """

    name: str

    @abstractmethod
    def new_game(self) -> None:
        """A new game begins."""

    @abstractmethod
    def think(self, course: Course) -> Result:
        """The move in the present position of ``course``, and its basis.

        Raises:
            rlgames.players.EngineError: if it gives none.
        """


@dataclass(frozen=True)
class Adjudication:
    """When a game ends before the rules end it. Scores are in pawns.

    Args:
        max_plies: a game of this length is a draw.
        resign: a side wins if both engines see it ahead by this much (0: nobody resigns)
        resign_moves: in this many consecutive moves of each.
        draw: a game is drawn if both see a score within this distance of 0
        draw_moves: in this many consecutive moves of each (0: no agreed draws)
        draw_from: first move at which this counts.

    Raises:
        ValueError: for a negative number, or 0 plies.
    """

    max_plies: int = 400
    resign: float = 10.0
    resign_moves: int = 4
    draw: float = 0.1
    draw_moves: int = 8
    draw_from: int = 40

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        for name, number in vars(self).items():
            if not number >= (name == "max_plies"):
                raise ValueError(f"adjudication.{name} is {number}; it must be at least {int(name == 'max_plies')}")

    def decide(self, course: Course, scores: list[float]) -> tuple[int, str] | None:
        """The winner and the reason, if the game is decided; ``scores`` are the moves', from White's view."""
        last = scores[-2 * self.resign_moves :] if self.resign else []
        if len(last) == 2 * self.resign_moves > 0 and (min(last) >= self.resign or max(last) <= -self.resign):
            return (1 if last[0] > 0 else -1), "adjudication: decisive score"
        last = scores[-2 * self.draw_moves :] if len(course.moves) >= 2 * self.draw_from else []
        if len(last) == 2 * self.draw_moves > 0 and max(map(abs, last)) <= self.draw:
            return 0, "adjudication: even score"
        return (0, "adjudication: too long") if len(course.moves) >= self.max_plies else None


class Record(NamedTuple):
    """A finished game.

    Attributes:
        course: from the opening to the end.
        thoughts: the engine's thought on each move after the opening.
        winner: +1 White, -1 Black, 0 a draw.
        reason: why the game ended.
    """

    course: Course
    thoughts: list[Result]
    winner: int
    reason: str


def play(white: Engine, black: Engine, course: Course, rules: Adjudication) -> Record:
    """Play ``course`` to its end.

    Raises:
        rlgames.players.EngineError: if an engine gives no move.
    """
    thoughts: list[Result] = []
    scores: list[float] = []  # White's view
    for engine in {id(white): white, id(black): black}.values():
        engine.new_game()
    while (end := course.end() or rules.decide(course, scores)) is None:
        ask()
        player = course.board.player()
        thoughts.append((white if player > 0 else black).think(course))
        scores.append(player * thoughts[-1].score)
        course.play(thoughts[-1].move)
    return Record(course, thoughts, *end)
