"""Where chess games begin: positions from a file, random moves, or both; without them all games would be the same."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rlgames.chess.board import START, Board
from rlgames.chess.contest import Course
from rlgames.chess.epd import lines_of, split_epd
from rlgames.chess.pgn import Game, from_san, read_pgn

MOST_PLIES = 100  # random ones; the rest of a game is for the players
BOOK_PLIES = 16  # taken from a game in a PGN file
STANDARD = ("", "standard", "chess", "normal", "from position")  # names in files for the usual rules


class Openings:
    """Draws openings.

    Args:
        file: positions (EPD or FEN, one per line) or games (PGN, the first 16 plies of each); null: the start position.
            Entries that cannot be read, or are over, are skipped and reported on stderr.
        random_plies: random moves after it.
        limit: openings in which a side is ahead by more pawns are redrawn.

    Raises:
        ValueError: for numbers out of range, or a file without a position.
        OSError: if the file cannot be read.
    """

    def __init__(self, file: str | None = None, random_plies: int = 8, limit: float = 5.0) -> None:
        if file is not None and not file.strip():
            raise ValueError(f"openings.file is {file!r}; it must be a path")
        if not 0 <= random_plies <= MOST_PLIES:
            raise ValueError(f"openings.random_plies is {random_plies}; it must be from 0 to {MOST_PLIES}")
        if not limit > 0:
            raise ValueError(f"openings.limit is {limit}; it must be above 0")
        self.random_plies, self.limit = random_plies, limit
        self.book = [(START, ())] if file is None else _read(Path(os.path.expanduser(str(file))))

    def draw(self, rng: np.random.Generator, score: Callable[[Any], float]) -> Course:
        """An opening that is not over and, by ``score`` (pawns), not decided.

        Raises:
            ValueError: if a thousand draws in a row were rejected.
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
        raise ValueError(f"openings.limit is {self.limit}; a thousand openings in a row were beyond it")


def _read(file: Path) -> list[tuple[Any, tuple[int, ...]]]:
    """The openings of ``file``, each a position and moves from it; unusable ones are reported on stderr."""
    games = file.suffix.lower() == ".pgn"
    found = read_pgn(file.read_text(encoding="utf-8-sig", errors="replace")) if games else None
    entries = (
        enumerate(found, 1) if found else ((n, Game({"FEN": split_epd(line)[0]}, [])) for n, line in lines_of(file))
    )
    book, left_out = [], []
    for n, game in entries:
        try:
            if games and not game.moves:
                raise ValueError("it has no moves")
            book.append(_opening(game))
        except ValueError as error:
            left_out.append(f"{'game' if games else 'line'} {n}: {error}")
    words = "; ".join(left_out[:3]) + (f"; and {len(left_out) - 3} more" if len(left_out) > 3 else "")
    if not book:
        raise ValueError(f"{file} holds no position to begin with{f' ({words})' if words else ''}")
    if left_out:
        total = len(book) + len(left_out)
        print(f"{file}: {len(left_out)} of {total} {'games' if games else 'lines'} left out: {words}", file=sys.stderr)
    return book


def _opening(game: Game) -> tuple[Any, tuple[int, ...]]:
    """Where ``game`` begins, and its first moves.

    Raises:
        ValueError: if it has other rules, or is over.
    """
    variant = game.tags.get("Variant", "standard")
    if variant.lower() not in STANDARD:
        raise ValueError(f"its variant is {variant}")
    course = Course(Board.from_fen(game.tags["FEN"]) if "FEN" in game.tags else START)
    for word in game.moves[:BOOK_PLIES]:
        _check_on(course)
        course.play(from_san(course.board, word))
    _check_on(course)
    return course.boards[0], tuple(course.moves)


def _check_on(course: Course) -> None:
    end = course.end()
    if end is not None:
        raise ValueError(f"it is over after {len(course.moves)} plies: {end[1]}")
