"""Where games of chess begin: positions of a file, random moves, or both; without them all games would be the same."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlgames.chess.board import START, Board
from rlgames.chess.contest import Course

BOOK_PLIES = 16  # of a game in a PGN file


class Openings:
    """Draws openings.

    Args:
        file: positions (EPD or FEN, one per line) or games (PGN, the first 16 plies of each; needs the library chess);
            null: the start position.
        random_plies: random moves behind it.
        limit: openings in which one side is ahead by more pawns are drawn again.

    Raises:
        ValueError: for numbers out of range, or a file without a position.
        OSError: if the file cannot be read.
    """

    def __init__(self, file: str | None = None, random_plies: int = 8, limit: float = 5.0) -> None:
        if random_plies < 0:
            raise ValueError(f"openings.random_plies is {random_plies}; it must be at least 0")
        if not limit > 0:
            raise ValueError(f"openings.limit is {limit}; it must be above 0")
        self.random_plies, self.limit = random_plies, limit
        self.book = [(START, ())] if file is None else list(_read(Path(os.path.expanduser(file))))
        if not self.book:
            raise ValueError(f"{file} holds no position to begin with")

    def draw(self, rng: np.random.Generator, score: Callable[[Any], float]) -> Course:
        """An opening that is not over and, by ``score`` (pawns), not decided.

        Raises:
            ValueError: if a thousand draws in a row were refused.
        """
        for _ in range(1000):
            course = Course(*self.book[int(rng.integers(len(self.book)))])
            for _ in range(self.random_plies):
                moves = course.board.moves()
                if len(moves):
                    course.play(int(moves[int(rng.integers(len(moves)))]))
            course.opening = len(course.moves)
            if course.end() is None and abs(score(course.board)) <= self.limit:
                return course
        raise ValueError(f"openings.limit is {self.limit}; a thousand openings in a row were decided by more")


def _read(file: Path) -> Iterator[tuple[Board, tuple[int, ...]]]:
    if file.suffix.lower() == ".pgn":
        yield from _read_pgn(file)
        return
    for n, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                yield Board.from_fen(fen_of_epd(line)), ()
            except ValueError as error:
                raise ValueError(f"{file}, line {n}: {error}") from error


def fen_of_epd(line: str) -> str:
    """The position of an EPD line as FEN; its counters are kept if it has them."""
    words = line.split(";")[0].split()
    counters = words[4:6] if len(words) >= 6 and all(word.isdecimal() for word in words[4:6]) else ["0", "1"]
    return " ".join(words[:4] + counters)


def _read_pgn(file: Path) -> Iterator[tuple[Board, tuple[int, ...]]]:
    try:
        import chess.pgn
    except ImportError as error:
        raise ValueError(f"to read {file} the library chess is needed: pip install 'rlgames[chess]'") from error
    with file.open(encoding="utf-8", errors="replace") as stream:
        while (game := chess.pgn.read_game(stream)) is not None:
            board = start = Board.from_fen(game.board().fen())
            moves = []
            for move in list(game.mainline_moves())[:BOOK_PLIES]:
                moves.append(board.from_uci(move.uci()))
                board = board.play(moves[-1])
            yield start, tuple(moves)
