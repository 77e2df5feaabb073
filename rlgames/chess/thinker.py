"""What the UCI engine does when it thinks: position and history, deeper and deeper search, lines of information."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rlgames.chess.board import START, Board, legal_moves
from rlgames.chess.contest import Course
from rlgames.chess.search import Limits, Result, Search


class Line(NamedTuple):
    """A root move with what is to be expected.

    Attributes:
        score: in pawns, for the player to move.
        mate: in moves, see ``rlgames.chess.search.Result``.
        moves: the line.
    """

    score: float
    mate: int
    moves: tuple[int, ...]


class Thinker:
    """An engine's mind.

    Args:
        coefficients: of the evaluation; they are scaled so that a pawn is worth 100 centipawns.
        say: prints a line.
    """

    def __init__(self, coefficients: Any, say: Callable[[str], None]) -> None:
        self.coefficients, self.say = coefficients / max(coefficients[0], 0.1), say
        self.overhead, self.lines = 30, 1
        self.search = Search(self.coefficients, 16)
        self.course = Course()
        self.search.run(START, (), Limits(depth=1))  # compiles

    @property
    def board(self) -> Any:
        """The position to think about."""
        return self.course.board

    def clear(self) -> None:
        """Forget what was found."""
        self.search.clear()

    def set_option(self, name: str, value: str) -> None:
        """Set a UCI option; unknown ones are left alone.

        Raises:
            ValueError: for a value that makes no sense.
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
        """Take over the position of "startpos moves e2e4" or "fen ... moves ...".

        Raises:
            ValueError: if there is something wrong with it; the former position stays.
        """
        words = list(words)
        split = words.index("moves") if "moves" in words else len(words)
        if words[:1] not in (["startpos"], ["fen"]):
            raise ValueError("position needs startpos or fen")
        course = Course(START if words[0] == "startpos" else Board.from_fen(" ".join(words[1:split])))
        for word in words[split + 1 :]:
            course.play(from_uci(course.board, word.lower()))
        self.course = course

    def think(self, depth: int, nodes: int, stop: threading.Event, began: float, only: Sequence[str] = ()) -> str:
        """Search deeper and deeper.

        Args:
            depth: the last one.
            nodes: to look at in all; 0 sets no limit.
            stop: set when it is enough.
            began: when the clock began to run, ``time.monotonic()``.
            only: root moves to look at; empty for all.

        Returns:
            The best move, "0000" if there is none.
        """
        roots = [int(move) for move in legal_moves(self.board)]
        wanted = [move for move in roots if self.board.uci(move) in only]
        roots = wanted or roots
        if not roots:
            self.say("info depth 0 score " + ("mate 0" if self.board.in_check() else "cp 0"))
            return "0000"
        best, seen = roots[0], 0
        for d in range(1, depth + 1):
            if d > 1 and (stop.is_set() or 0 < nodes <= seen):
                break
            left = max(1, nodes - seen) if nodes else 0
            single = self.lines == 1 and not wanted
            lines, count, complete = self._single(d, left) if single else self._each(roots, d, left, stop)
            seen += count
            if complete or d == 1:
                best = lines[0].moves[0]
                self._tell(lines[: self.lines], d, seen, time.monotonic() - began)
            if not complete:
                break
        return self.board.uci(best)  # type: ignore[no-any-return]

    def _single(self, depth: int, nodes: int) -> tuple[list[Line], int, bool]:
        """The best line to ``depth``, nodes looked at, and whether the search came to its end."""
        found = self.search.run(self.board, self.course.keys, Limits(nodes, depth))
        enough = found.depth >= depth or found.mate != 0
        return [Line(found.score, found.mate, found.pv)], found.nodes, enough

    def _each(self, roots: list[int], depth: int, nodes: int, stop: threading.Event) -> tuple[list[Line], int, bool]:
        """The best line behind each of ``roots``, the best first; nodes; whether no search was stopped."""
        lines, count, keys = [], 0, [*self.course.keys, self.board.key]
        for move in roots:
            after = self.board.play(move)
            if not len(legal_moves(after)):
                lines.append(Line(1000.0, 1, (move,)) if after.in_check() else Line(0.0, 0, (move,)))
                continue
            if depth > 1 and (stop.is_set() or 0 < nodes <= count):
                return [], count, False
            found = self.search.run(after, keys, Limits(max(1, nodes - count) if nodes else 0, max(1, depth - 1)))
            count += found.nodes
            lines.append(_turned(move, found))
        return sorted(lines, key=_rank, reverse=True), count, True

    def _tell(self, lines: Sequence[Line], depth: int, nodes: int, seconds: float) -> None:
        """Print what was found."""
        for n, line in enumerate(lines, start=1):
            moves, board = [], self.board
            for move in line.moves:
                moves.append(board.uci(move))
                board = board.play(move)
            score = f"mate {line.mate}" if line.mate else f"cp {round(100 * line.score)}"
            speed = f"nodes {nodes} nps {int(nodes / max(seconds, 0.001))} time {int(1000 * seconds)}"
            self.say(f"info depth {depth} multipv {n} score {score} {speed} pv {' '.join(moves)}")


def _turned(move: int, found: Result) -> Line:
    """What was found behind ``move``, for the player who makes it."""
    mate = 1 - found.mate if found.mate < 0 else -found.mate
    return Line(-found.score, mate, (move, *found.pv))


def _rank(line: Line) -> float:
    """Mates before scores, the quickest first; being mated last, the slowest first."""
    return line.score if not line.mate else (1e6 - line.mate if line.mate > 0 else -1e6 - line.mate)


def from_uci(board: Any, word: str) -> int:
    """The legal move ``word``, be the game drawn or not.

    Raises:
        ValueError: if it is none.
    """
    for move in map(int, legal_moves(board)):
        if board.uci(move) == word:
            return move
    raise ValueError(f"move {word[:10]!r} is not legal in {board.fen()}")
