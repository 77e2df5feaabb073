"""Depth-limited minimax for any game: an opponent that needs no library and no book."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.compiled import compile_function
from rlgames.games.game import Board, Game
from rlgames.interrupts import ask, flag
from rlgames.players.player import Solution, draw_lots, refuse_finished

WIN = 1000  # a win at ply n of the game scores WIN - n: quick wins and distant losses are better


class Minimax:
    """Alpha-beta search to a fixed depth, without an evaluation function: only wins and losses count, all else is 0.

    Prefers quick wins and distant losses; chooses at random among equally good moves. Perfect if ``depth`` reaches the
    end of the game.

    Args:
        game: the game; see ``rlgames.games.game.Game``.
        depth: plies to look ahead, at least 1.

    Raises:
        ValueError: for a depth below 1.
    """

    def __init__(self, game: Game[Any], depth: int = 8) -> None:
        if depth < 1:
            raise ValueError(f"opponent.depth is {depth}; it must be at least 1")
        self.game, self.depth = game, depth

    def solve(self, board: Board) -> Solution:
        """The value for the player to move (WIN - n, n - WIN or 0 if the game ends at ply n), and all best moves.

        Raises:
            ValueError: if the game is over.
            rlgames.interrupts.Interrupted: if a signal asks for an end.
        """
        refuse_finished(board)
        value, moves = best_moves(board, self.depth, flag())
        ask()
        return Solution(int(value), tuple(map(int, moves)))

    def move(self, board: Board, rng: np.random.Generator) -> int:
        """One of the best moves.

        Raises:
            ValueError: if the game is over.
        """
        return draw_lots(self.solve(board).moves, rng)


@compile_function  # not compilable: numba supports recursion only in entry points
def negamax(board: Board, depth: int, alpha: int, beta: int, flag: npt.NDArray[np.uint8]) -> int:
    """The value for the player to move: exact between ``alpha`` and ``beta``, else a bound; anything after a signal."""
    if board.winner() != 0:
        return int(board.winner() * board.player() * (WIN - board.ply))
    if depth == 0 or board.over() or flag[0]:
        return 0
    moves = board.moves()
    for k in range(len(moves)):
        alpha = max(alpha, -negamax(board.play(moves[k]), depth - 1, -beta, -alpha, flag))
        if alpha >= beta:
            break
    return alpha


@compile_function
def best_moves(board: Board, depth: int, flag: npt.NDArray[np.uint8]) -> tuple[int, npt.NDArray[np.int64]]:
    """The value for the player to move, and all moves that reach it, in the game's order."""
    moves = board.moves()
    best, count = -WIN, 0
    for move in moves:
        value = -negamax(board.play(move), depth - 1, -WIN, 1 - best, flag)  # exact from ``best`` up, to find equals
        if value > best:
            best, count = value, 0
        if value == best:
            moves[count] = move
            count += 1
    return best, moves[:count]
