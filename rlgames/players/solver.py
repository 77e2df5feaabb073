"""Exact values of Connect-4 positions, from the library bitbully (Thill; an optional extra of this package)."""

import weakref
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlgames.players.player import Solution, refuse_finished
from rlgames.players.solved import SolvedPositions, cache_folder

SOLVED = "connect4-solved-2.sqlite"  # the number counts layouts of the file
COLUMNS, BOTTOM = 7, sum(1 << 7 * column for column in range(7))
BOOK_PLY = 12  # below this ply, the opening book answers at once
KEPT_PLY = 24  # from this ply on, solving is faster than a file
MEMORY = 500_000  # positions kept in memory, some 150 bytes each


class Solver:
    """Scores of positions and moves by perfect play.

    A score is for the player to move: 0 is a draw, s > 0 a win and s < 0 a loss in which the winner's last stone is its
    stone number 22 - |s|. So quick wins and distant losses score higher.

    Solving is slow from 12 to 16 stones (up to a second), so these answers are kept in memory and in a file.

    Args:
        cache: folder of the file; see ``rlgames.players.solved.cache_folder``.

    Raises:
        ImportError: if the library is not installed.
    """

    def __init__(self, cache: str | None = None) -> None:
        self._library = import_module("bitbully.bitbully_core")  # imported here because it is an optional extra
        book = import_module("bitbully_databases").BitBullyDatabases.get_database_path("12-ply-dist")
        self._core = self._library.BitBullyCore(Path(book))
        self._known: dict[Any, Solution] = {}
        self._scores: dict[Any, dict[int, int]] = {}
        solver = f"bitbully {version('bitbully')}"
        self._kept = SolvedPositions(cache_folder(cache) / SOLVED, solver)
        weakref.finalize(self, self._kept.flush)

    def scores(self, board: Any) -> dict[int, int]:
        """Scores of all legal moves, in the game's order.

        Raises:
            ValueError: if the game is over.
        """
        scores = self._scores.get(board)
        if scores is None:
            refuse_finished(board)
            by_column = self._core.scoreMoves(self._position(board))
            scores = {int(move): by_column[move] for move in board.moves()}
            if board.ply < BOOK_PLY:  # asked for in every match
                self._scores[board] = scores
        return scores

    def best(self, board: Any) -> Solution:
        """The score of ``board`` and all moves that reach it, in the game's order.

        Raises:
            ValueError: if the game is over.
        """
        solution = self._known.get(board)
        if solution is None:
            refuse_finished(board)
            if len(self._known) >= MEMORY:
                self._known.clear()
            solution = self._known[board] = self._look_up(board)
        return solution

    def _look_up(self, board: Any) -> Solution:
        if board.ply < BOOK_PLY:
            scores = self.scores(board)
            value = max(scores.values())
            return Solution(value, tuple(move for move, score in scores.items() if score == value))
        if board.ply >= KEPT_PLY:
            return self._search(board)
        key, mirrored = _canonical(board)
        moves = [int(move) for move in board.moves()]
        found = self._kept.get(key)
        if found is not None:
            value, mask = found
            best = tuple(move for move in moves if mask >> (COLUMNS - 1 - move if mirrored else move) & 1)
            if best:
                return Solution(value, best)
        solution = self._search(board)
        self._kept.put(key, solution.value, sum(1 << (COLUMNS - 1 - m if mirrored else m) for m in solution.moves))
        return solution

    def _search(self, board: Any) -> Solution:
        """Find the exact value first, then only test which moves reach it; this is twice as fast."""
        position = self._position(board)
        value = self._core.mtdf(position, first_guess=0)
        moves = (int(move) for move in board.moves())
        return Solution(value, tuple(move for move in moves if self._reaches(position, move, value)))

    def _reaches(self, position: Any, move: int, value: int) -> bool:
        """Whether ``move`` reaches ``value``, the best possible."""
        if position.canWin(move):
            return value > 0  # no win is quicker, so this one has the value
        after = position.playMoveOnCopy(move)
        if not after.movesLeft():
            return value == 0
        return bool(self._core.negamax(after, alpha=-value, beta=1 - value, depth=0) <= -value)

    def _position(self, board: Any) -> Any:
        """The library's board."""
        columns = []
        for column in range(COLUMNS):
            code = board.code(column)
            height = code.bit_length() - 1
            columns.append([1 if code >> row & 1 else 2 for row in range(height)] + [0] * (6 - height))
        position = self._library.BoardCore()
        if not position.setBoard(columns):
            raise ValueError(f"not a Connect-4 position: {board}")
        return position


def last_ply(score: int, ply: int) -> int:
    """Stones at the end of a game won or lost with ``score`` for the player to move after ``ply`` stones."""
    winner_is_first = (score > 0) == (ply % 2 == 0)
    return 2 * (22 - abs(score)) - winner_is_first


def _canonical(board: Any) -> tuple[int, bool]:
    """A number shared by the position and its mirror image, and whether it was computed from the mirror image.

    It encodes every stone and, by their number, who is to move.
    """
    key = ((board.first | board.second) + BOTTOM) | board.first
    mirror = sum((key >> 7 * column & 127) << 7 * (COLUMNS - 1 - column) for column in range(COLUMNS))
    return min(key, mirror), mirror < key
