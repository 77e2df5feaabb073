"""The weakest opponent."""

from typing import Any

import numpy as np

from rlgames.games.game import Board, Game
from rlgames.players.player import draw_lots, refuse_finished


class RandomPlayer:
    """Plays any legal move with the same probability.

    Args:
        game: not used; accepted because all opponents are built alike.
    """

    def __init__(self, game: Game[Any] | None = None) -> None:
        self.game = game

    def move(self, board: Board, rng: np.random.Generator) -> int:
        """A random legal move.

        Raises:
            ValueError: if the game is over.
        """
        refuse_finished(board)
        return draw_lots(board.moves().tolist(), rng)
