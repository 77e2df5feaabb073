"""The perfect Connect-4 player, the yardstick of the literature."""

import copy
import functools
import logging
from typing import Any

import numpy as np

from rlgames.players.minimax import Minimax
from rlgames.players.player import Solution, draw_lots
from rlgames.players.solver import Solver, last_ply

log = logging.getLogger(__name__)

LOSING = ("random", "distant")
RANDOM_STONES = 10  # losing moves are random while at most this many stones are on the board
QUICK_LOSS = 12  # a random losing move must delay defeat by at least this many plies


class Perfect:
    """Never gives away a win or a draw; its ``losing`` mode decides what it does in a lost position.

    Chooses at random among the moves with the highest score (the quickest win, a draw, the most distant loss). To vary
    matches, mode "random" plays lost positions with at most 10 stones differently (Thill 2015, section 4.2.1): any move
    that delays defeat to the 12th ply after it or later, all with the same probability; without such a move, a most
    distant loss. Mode "distant" is harder to beat: always a most distant loss.

    The authors' program takes the first of equally distant losses; random choice shows more of an agent's play.

    Args:
        game: Connect-4.
        losing: "random" or "distant".
        cache: folder for solved positions; None: $RLGAMES_CACHE, or rlgames in the user's cache folder.

    Raises:
        ImportError: if the library bitbully is not installed.
        ValueError: for another game or mode.
    """

    def __init__(self, game: Any, losing: str = "random", cache: str | None = None) -> None:
        if game.name != "connect4":
            raise ValueError(f"opponent=perfect plays connect4 only, not {game.name}; use opponent=minimax")
        self.game, self.losing = game, _mode(losing)
        self.solver = Solver(cache)

    def playing(self, losing: str) -> "Perfect":
        """The same player in another mode, with the same solver.

        Raises:
            ValueError: for an unknown mode.
        """
        player = copy.copy(self)
        player.losing = _mode(losing)
        return player

    def solve(self, board: Any) -> Solution:
        """The score of the position for the player to move (see ``Solver``) and all best moves.

        Raises:
            ValueError: if the game is over.
        """
        return self.solver.best(board)

    def candidates(self, board: Any) -> tuple[int, ...]:
        """The moves among which ``move`` chooses at random.

        Raises:
            ValueError: if the game is over.
        """
        value, best = self.solver.best(board)
        if value >= 0 or self.losing == "distant" or board.ply > RANDOM_STONES:
            return best
        scores = self.solver.scores(board)
        far = (move for move in scores if last_ply(scores[move], board.ply) - (board.ply + 1) >= QUICK_LOSS)
        return tuple(far) or best

    def move(self, board: Any, rng: np.random.Generator) -> int:
        """A perfect move.

        Raises:
            ValueError: if the game is over.
        """
        return draw_lots(self.candidates(board), rng)


def _mode(losing: str) -> str:
    if losing not in LOSING:
        raise ValueError(f"opponent.losing is {losing!r}; allowed are {' and '.join(LOSING)}")
    return losing


def perfect_or_minimax(game: Any, cache: str | None = None, depth: int = 8) -> Perfect | Minimax:
    """The best opponent available for ``game``.

    Connect-4: ``Perfect``, or ``Minimax`` with a notice if the library bitbully is missing. Games of at most 9 plies:
    ``Minimax`` to the end, which is perfect. Other games: ``Minimax``.

    Args:
        game: the game.
        cache: folder for solved positions; see ``Perfect``.
        depth: of the minimax search.

    Raises:
        ValueError: for a depth below 1.
    """
    minimax = Minimax(game, game.n_cells if game.n_cells <= 9 else depth)
    if game.name != "connect4":
        return minimax
    try:
        return Perfect(game, cache=cache)
    except ImportError:
        _notice(depth)
        return minimax


@functools.cache
def _notice(depth: int) -> None:
    """Warn once that the library is missing."""
    log.warning(
        "The perfect Connect-4 player needs the library bitbully, which is not installed: the opponent is a minimax"
        " search of depth %d instead, and success rates are not comparable with published ones."
        ' pip install "rlgames[solver]"',
        depth,
    )
