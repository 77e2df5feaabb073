"""A game of chess between two engines: its course, when it ends and why, and what each of them thought."""

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
        moves: made already, such as an opening.

    Attributes:
        boards: the positions, from the first to the present one.
        moves: the moves between them.
        opening: number of moves that no engine has thought about.
    """

    def __init__(self, start: Any = START, moves: tuple[int, ...] = ()) -> None:
        self.boards: list[Any] = [start]
        self.moves: list[int] = []
        self.opening = len(moves)
        for move in moves:
            self.play(move)

    def copy(self) -> "Course":
        """The same course so far, to go on in another way."""
        course = Course(self.boards[0], tuple(self.moves))
        course.opening = self.opening
        return course

    @property
    def board(self) -> Any:
        """The present position."""
        return self.boards[-1]

    @property
    def keys(self) -> list[int]:
        """Keys of the positions before the present one, as far back as they can come again."""
        present = len(self.boards) - 1
        return [board.key for board in self.boards[max(0, present - self.board.clock) : present]]

    def play(self, move: int) -> None:
        """Go on by the legal ``move``."""
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
    """Who thinks about positions.

    Attributes:
        name: for people.
    """

    name: str

    @abstractmethod
    def new_game(self) -> None:
        """What follows is another game."""

    @abstractmethod
    def think(self, course: Course) -> Result:
        """The move in the present position of ``course``, and what it is based on.

        Raises:
            rlgames.players.EngineError: if there is none to be had.
        """


@dataclass(frozen=True)
class Adjudication:
    """When a game is decided before the rules decide it. Scores are in pawns.

    Args:
        max_plies: a game so long is a draw.
        resign: both engines see one side ahead by so much (0: nobody resigns)
        resign_moves: in so many moves of each in a row: that side has won.
        draw: both see a score at most so far from 0
        draw_moves: in so many moves of each in a row (0: no draws are agreed)
        draw_from: from this move on.

    Raises:
        ValueError: for a negative number, or no plies at all.
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
        """The winner and the reason, if the game is decided; ``scores`` are those of the moves, from White's view."""
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
        thoughts: what was thought about each move behind the opening.
        winner: +1 White, -1 Black, 0 a draw.
        reason: why the game ended.
    """

    course: Course
    thoughts: list[Result]
    winner: int
    reason: str


def play(white: Engine, black: Engine, course: Course, rules: Adjudication) -> Record:
    """Play from ``course`` on to the end.

    Raises:
        rlgames.players.EngineError: if an engine has no move to give.
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
