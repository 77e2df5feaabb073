"""How many test positions does a chess agent solve? ``python -m rlgames.suite epd=wac.epd checkpoint=runs/chess/...``.

Positions come from EPD files (PGN standard, section 16.2): ``bm`` names the best moves, ``am`` moves to avoid; in
graded suites such as the Strategic Test Suite ``c8`` holds the points of the moves ``c9``.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from omegaconf import DictConfig

from rlgames.build import CONF, check_numbers, ready
from rlgames.chess.epd import lines_of, split_epd
from rlgames.console import cli
from rlgames.training.files import write_atomically
from rlgames.training.trust import trusted


class Position(NamedTuple):
    """A test position.

    Attributes:
        name: its id.
        board: the position.
        solved: moves that solve it.
        points: of moves in graded suites; else 1 for those that solve it.
    """

    name: str
    board: Any
    solved: frozenset[int]
    points: dict[int, int]

    @property
    def theme(self) -> str:
        """The name without its number."""
        return self.name.rpartition(".")[0]


def parse(line: str) -> Position:
    """A position from a line of EPD.

    Raises:
        ValueError: if it is invalid, or names no best move.
    """
    from rlgames.chess.board import Board, legal_moves
    from rlgames.chess.pgn import from_san

    fen, notes = split_epd(line)
    board = Board.from_fen(fen)
    best, avoid = (
        {from_san(board, word) for word in re.split(r"[\s,]+", notes.get(k, "")) if word} for k in ("bm", "am")
    )
    solved = best or set(map(int, legal_moves(board))) - avoid if best or avoid else set()
    points = dict.fromkeys(solved, 1)
    if notes.get("c8") and notes.get("c9"):
        graded = zip(notes["c9"].split(), notes["c8"].split(), strict=True)
        points = {board.from_uci(move): int(number) for move, number in graded}
    if not solved:
        raise ValueError("there is no best move (bm) and no move to avoid (am)")
    return Position(notes.get("id", ""), board, frozenset(solved), points)


def read(file: Path) -> list[Position]:
    """The positions of ``file``; invalid lines are reported on stderr and skipped.

    Raises:
        ValueError: if there is no position at all.
        OSError: if it cannot be read.
    """
    positions = []
    for n, line in lines_of(file):
        try:
            positions.append(parse(line))
        except ValueError as error:
            print(f"{file}, line {n} left out: {' '.join(str(error).split())}", file=sys.stderr)
    if not positions:
        raise ValueError(f"{file} holds no test position")
    return positions


class Figures(NamedTuple):
    """How many positions were solved, and the points reached of those that could be."""

    positions: int
    solved: int
    points: int
    most: int

    def __str__(self) -> str:
        """For people."""
        solved = f"{self.solved} of {self.positions} solved"
        return solved if self.most == self.positions else f"{solved}, {self.points} of {self.most} points"


def figures(moves: Iterable[tuple[Position, int]]) -> Figures:
    """Score the chosen ``moves``."""
    pairs = list(moves)
    solved = sum(move in position.solved for position, move in pairs)
    points = sum(position.points.get(move, 0) for position, move in pairs)
    return Figures(len(pairs), solved, points, sum(max(position.points.values()) for position, _ in pairs))


def suite(cfg: DictConfig) -> dict[str, Figures]:
    """Let the agent of ``cfg`` think about all positions; figures by theme, and for all under "".

    Raises:
        ValueError: if the configuration is invalid.
        OSError: if a file cannot be read or written.
    """
    from rlgames.chess.contest import Course
    from rlgames.chess.evaluation import start_values
    from rlgames.chess.pairs import coefficients_of
    from rlgames.chess.searcher import Searcher
    from rlgames.training import checkpoint
    from rlgames.training.records import to_json

    cfg = ready(cfg)
    check_numbers(cfg, nodes=0, depth=0)
    saved = cfg.checkpoint and checkpoint.load(cfg.checkpoint, trust=trusted(cfg))
    coefficients = coefficients_of(saved, cfg.checkpoint) if saved else start_values()
    engine = Searcher(coefficients, cfg.nodes, cfg.depth, hash_mb=16)
    chosen = []
    for position in read(Path(os.path.expanduser(str(cfg.epd)))):
        engine.new_game()
        chosen.append((position, engine.think(Course(position.board)).move))
    themes = dict.fromkeys(position.theme for position, _ in chosen)
    found = {theme: figures(pair for pair in chosen if pair[0].theme == theme) for theme in themes}
    found = (found if len(found) > 1 else {}) | {"": figures(chosen)}
    if cfg.json is not None:
        content = {theme or "all": figure._asdict() for theme, figure in found.items()}
        write_atomically(Path(os.path.expanduser(str(cfg.json))), to_json(content))
    return found


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="suite")
def main(cfg: DictConfig) -> None:
    """Solve the test positions of the command line."""
    try:
        found = suite(cfg)
    except Exception as error:
        cli.report(error, "suite")
        sys.exit(1)
    for theme, figure in found.items():
        print(f"{theme or 'all'}: {figure}")


if __name__ == "__main__":
    cli.run(main, "suite")
