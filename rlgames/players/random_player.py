"""The weakest opponent."""

from typing import Any

import numpy as np

from rlgames.players.player import refuse_finished
from rlgames.policy import random_move


class RandomPlayer:
    """Plays any legal move with the same probability.

    Args:
        game: not used; accepted because all opponents are built alike.
    """

    def __init__(self, game: Any = None) -> None:
        self.game = game

    def move(self, board: Any, rng: np.random.Generator) -> int:
        """A random legal move.

        Raises:
            ValueError: if the game is over.
        """
        refuse_finished(board)
        return int(random_move(board, board.moves(), rng))
