"""The perfect Connect-4 player, the yardstick of the literature."""

import copy
import functools
import logging
from typing import Any, TypeGuard

import numpy as np

from rlgames.games.game import Board, Game, Rules
from rlgames.players.minimax import Minimax
from rlgames.players.player import Solution, draw_lots
from rlgames.players.solver import Solver, last_ply

log = logging.getLogger(__name__)

LOSING = ("random", "distant")
RANDOM_STONES = 10  # losing moves are random while at most this many stones are on the board
PERFECT_CELLS = 9  # up to this many cells, a minimax search to the end is fast
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

    def __init__(self, game: Rules[Any], losing: str = "random", cache: str | None = None) -> None:
        if game.name != "connect4":
            raise ValueError(f"the solver plays connect4 only, not {game.name}; use opponent=minimax")
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

    def solve(self, board: Board) -> Solution:
        """The score of the position for the player to move (see ``Solver``) and all best moves.

        Raises:
            ValueError: if the game is over.
        """
        return self.solver.best(board)

    def candidates(self, board: Board) -> tuple[int, ...]:
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

    def move(self, board: Board, rng: np.random.Generator) -> int:
        """A perfect move.

        Raises:
            ValueError: if the game is over.
        """
        return draw_lots(self.candidates(board), rng)


def _mode(losing: str) -> str:
    if losing not in LOSING:
        raise ValueError(f"opponent.losing is {losing!r}; allowed are {' and '.join(LOSING)}")
    return losing


def perfect_of(game: Rules[Any], cache: str | None = None) -> Perfect | Minimax:
    """The perfect player of ``game``: ``Perfect`` for Connect-4, ``Minimax`` to the end for games of at most 9 cells.

    Args:
        game: the game.
        cache: folder for solved positions; see ``Perfect``.

    Raises:
        ValueError: if there is none, or if the library bitbully is not installed.
    """
    if searchable(game):
        return Minimax(game, game.n_cells)
    if game.name != "connect4":
        raise ValueError(f"there is no perfect player of {game.name}")
    try:
        return Perfect(game, cache=cache)
    except ImportError as error:
        raise ValueError("perfect play of connect4 needs bitbully (python -m pip install bitbully)") from error


def perfect_player(game: Rules[Any], cache: str | None = None) -> Perfect | Minimax:
    """``perfect_of`` for ``opponent=perfect``.

    Raises:
        ValueError: naming the word to use instead.
    """
    try:
        return perfect_of(game, cache)
    except ValueError as error:
        instead = "minimax" if isinstance(game, Game) else "untrained"
        raise ValueError(f"opponent=perfect: {error}; use opponent={instead} instead") from error


def perfect_or_minimax(game: Rules[Any], cache: str | None = None, depth: int = 8) -> Perfect | Minimax:
    """The best opponent available for ``game``: its perfect player, or else ``Minimax``, with a notice.

    Args:
        game: the game.
        cache: folder for solved positions; see ``Perfect``.
        depth: of the minimax search.

    Raises:
        ValueError: for a depth below 1, or a game without cells.
    """
    if not isinstance(game, Game):
        raise ValueError(f"there is no minimax of {game.name}; use opponent=untrained")
    minimax = Minimax(game, depth)
    if game.name == "connect4":
        try:
            return Perfect(game, cache=cache)
        except ImportError:
            _notice(depth)
            return minimax
    if searchable(game):
        return perfect_of(game)
    print(f"note: opponent: minimax, {depth} plies; no perfect player of {game.name}")
    return minimax


def searchable(game: Rules[Any]) -> TypeGuard[Game[Any]]:
    """Whether ``game`` is small enough for a fast search to its end."""
    return isinstance(game, Game) and game.n_cells <= PERFECT_CELLS


@functools.cache
def _notice(depth: int) -> None:
    """Warn once that the library is missing."""
    log.warning(
        "The perfect Connect-4 player needs the library bitbully, which is not installed: the opponent is a minimax"
        " search of depth %d instead, and success rates are not comparable with published ones."
        ' pip install "rlgames[solver]"',
        depth,
    )
