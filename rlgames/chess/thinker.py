"""The thinking of the UCI engine: position and history, iterative search, lines of information."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rlgames.chess.board import START, Board, legal_moves
from rlgames.chess.contest import Course
from rlgames.chess.search import Limits, Search

OTHERS_MB = 16  # hash table for the lines after the first


class Line(NamedTuple):
    """A root move with its expected line.

    Attributes:
        score: in pawns, for the side to move.
        mate: in moves, see ``rlgames.chess.search.Result``.
        moves: the line.
    """

    score: float
    mate: int
    moves: tuple[int, ...]


class Thinker:
    """An engine's mind.

    Args:
        coefficients: of the evaluation; scaled so that a pawn is worth 100 centipawns.
        say: prints a line.
    """

    def __init__(self, coefficients: Any, say: Callable[[str], None]) -> None:
        self.coefficients = coefficients / max(coefficients[0], 0.1)
        self.say: Callable[[str], None] = lambda line: None
        self.overhead, self.lines = 30, 1
        self.search, self.others = Search(self.coefficients, 16), Search(self.coefficients, OTHERS_MB)
        self.course = Course()
        self.position(["startpos", "moves", "e2e4"])
        self.think(1, 0, threading.Event(), time.monotonic())  # compiles
        self.clear()
        self.course, self.say = Course(), say

    @property
    def board(self) -> Any:
        """The position to think about."""
        return self.course.board

    def clear(self) -> None:
        """Clear the memory."""
        self.search.clear()
        self.others.clear()

    def stop(self) -> None:
        """Stop the running search, from another thread."""
        self.search.stop()
        self.others.stop()

    def set_option(self, name: str, value: str) -> None:
        """Set a UCI option; unknown ones are ignored.

        Raises:
            ValueError: for an invalid value.
        """
        if name == "clear hash":
            self.clear()
        ranges = {"hash": (1, 4096), "multipv": (1, 64), "move overhead": (0, 5000)}
        if name not in ranges:
            return
        low, high = ranges[name]
        if not (value.isascii() and value.isdecimal() and low <= int(value) <= high):
            raise ValueError(f"option {name} is {value!r}; it must be a whole number from {low} to {high}")
        if name == "hash":
            self.search = Search(self.coefficients, int(value))
        elif name == "multipv":
            self.lines = int(value)
        else:
            self.overhead = int(value)

    def position(self, words: Sequence[str]) -> None:
        """Set the position from "startpos moves e2e4" or "fen ... moves ...".

        Raises:
            ValueError: if it is invalid; the former position stays.
        """
        words = list(words)
        split = words.index("moves") if "moves" in words else len(words)
        if words[:1] not in (["startpos"], ["fen"]):
            raise ValueError("position needs startpos or fen")
        start = START if words[0] == "startpos" else Board.from_fen(" ".join(words[1:split]))
        moves, course = [word.lower() for word in words[split + 1 :]], self.course
        if start != course.boards[0] or moves[: len(course.moves)] != course.uci():
            course = Course(start)  # another game
        new = Course(course.board)
        for word in moves[len(course.moves) :]:
            new.play(from_uci(new.board, word))
        for move in new.moves:
            course.play(move)
        self.course = course

    def think(self, depth: int, nodes: int, stop: threading.Event, began: float, only: Sequence[str] = ()) -> str:
        """Search with increasing depth.

        Args:
            depth: the last depth.
            nodes: total to search; 0: no limit.
            stop: set to end the search.
            began: when the clock started, ``time.monotonic()``.
            only: root moves to consider; empty: all.

        Returns:
            The best move, "0000" if there is none.
        """
        roots = [int(move) for move in legal_moves(self.board)]
        roots = [move for move in roots if self.board.uci(move) in only] or roots
        if not roots:
            self.say("info depth 0 score " + ("mate 0" if self.board.in_check() else "cp 0"))
            return "0000"
        best, seen = roots[0], 0
        for d in range(1, depth + 1):
            if d > 1 and (stop.is_set() or 0 < nodes <= seen):
                break
            lines, count = self._look(roots, d, nodes and max(1, nodes - seen), stop)
            seen += count
            if lines:
                best = lines[0].moves[0]
                self._tell(lines, d, seen, time.monotonic() - began)
            if len(lines) < min(self.lines, len(roots)):
                break
        return self.board.uci(best)  # type: ignore[no-any-return]

    def _look(self, roots: list[int], depth: int, nodes: int, stop: threading.Event) -> tuple[list[Line], int]:
        """The best lines from the moves ``roots``, best first, and nodes; fewer lines if stopped.

        The first line comes from its own search, so it is the same however many lines are wanted. Each other line is
        the best without the moves before it; if it seems better than the first, it is reported as equal.
        """
        lines: list[Line] = []
        count, left = 0, roots
        while left and len(lines) < self.lines and not (lines and (stop.is_set() or 0 < nodes <= count)):
            search, limits = self.others if lines else self.search, Limits(nodes and max(1, nodes - count), depth)
            found = search.run(self.board, self.course.keys, limits, left)
            count += found.nodes
            if found.depth < depth and not found.mate:
                break
            line = Line(found.score, found.mate, found.pv)
            lines.append(min(line, lines[0]._replace(moves=line.moves), key=_rank) if lines else line)
            left = [move for move in left if move != found.move]
        return [*lines[:1], *sorted(lines[1:], key=_rank, reverse=True)], count

    def _tell(self, lines: Sequence[Line], depth: int, nodes: int, seconds: float) -> None:
        """Print the lines."""
        for n, line in enumerate(lines, start=1):
            moves, board = [], self.board
            for move in line.moves:
                moves.append(board.uci(move))
                board = board.play(move)
            score = f"mate {line.mate}" if line.mate else f"cp {round(100 * line.score)}"
            speed = f"nodes {nodes} nps {int(nodes / max(seconds, 0.001))} time {int(1000 * seconds)}"
            self.say(f"info depth {depth} multipv {n} score {score} {speed} pv {' '.join(moves)}")


def _rank(line: Line) -> float:
    """Mates before scores, quickest first; being mated last, slowest first."""
    return line.score if not line.mate else (1e6 - line.mate if line.mate > 0 else -1e6 - line.mate)


def from_uci(board: Any, word: str) -> int:
    """The legal move ``word``, even if the game is drawn.

    Raises:
        ValueError: if it is not legal.
    """
    for move in map(int, legal_moves(board)):
        if board.uci(move) == word:
            return move
    raise ValueError(f"move {word[:10]!r} is not legal in {board.fen()}")
