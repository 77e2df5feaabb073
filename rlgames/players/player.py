"""The player protocol, and what players share."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rlgames.games.game import Board


class Player(Protocol):
    """Someone who chooses moves."""

    def move(self, board: Board, rng: np.random.Generator) -> int:
        """A legal move; all randomness comes from ``rng``.

        Raises:
            ValueError: if the game is over.
        """


class Solution(NamedTuple):
    """What a search found.

    Attributes:
        value: value for the player to move; above 0 a win, below 0 a loss, the larger the better.
        moves: all moves that reach it, in the game's order.
    """

    value: int
    moves: tuple[int, ...]


def refuse_finished(board: Board) -> None:
    """Raise ValueError if the game is over: there is no move to return."""
    if board.over():
        raise ValueError(f"the game is over after {board.ply} moves; there is no move to choose")


def draw_lots(moves: Sequence[int], rng: np.random.Generator) -> int:
    """One of ``moves``, all with the same probability."""
    return moves[int(rng.random() * len(moves))]
