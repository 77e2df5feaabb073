"""Planes: the board as a stack of pictures, for networks of one's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.features.features import DenseFeatures
from rlgames.games.game import Game, PartBoard


class Planes(DenseFeatures[PartBoard]):
    """Three planes over the cells as displayed: 1 for the first player's stones, for the second's, and who moves.

    The third plane is +1 everywhere if the first player is to move, else -1.

    Args:
        game: a game on a board of cells.

    Attributes:
        shape: of a board, ``(3, rows, columns)``.

    Raises:
        ValueError: for a game without such a board.
    """

    def __init__(self, game: Game[Any]) -> None:
        if not isinstance(game, Game):
            raise ValueError("features=planes are for boards of cells, not for this game")
        self.game, self.n_moves = game, game.n_moves
        self.shape = (3, *game.grid.shape)

    def encode(self, boards: Sequence[PartBoard]) -> Tensor:
        """Planes of ``boards``; float32 ``[len(boards), 3, rows, columns]``."""
        planes = np.empty((len(boards), *self.shape), np.float32)
        for n, board in enumerate(boards):
            cells = self.game.cells(board)
            planes[n] = cells == 1, cells == 2, np.full_like(cells, board.player())
        return torch.from_numpy(planes)
