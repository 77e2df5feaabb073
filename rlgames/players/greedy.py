"""The trained agent as a player."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.players.player import refuse_finished
from rlgames.policy import greedy_move, greedy_moves


class GreedyPlayer:
    """Plays the move an agent values most, without exploration: always the same move on the same board.

    Remembers its moves, so that a board which returns costs nothing. A player therefore belongs to one state of the
    weights: make a new one after learning.

    Args:
        agent: an agent of ``rlgames.agents``.
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self._moves: dict[Any, int] = {}

    def move(self, board: Any, rng: np.random.Generator) -> int:
        """The best move in the agent's eyes; ``rng`` is not used.

        Raises:
            ValueError: if the game is over.
        """
        move = self._moves.get(board)
        if move is None:
            refuse_finished(board)
            move = self._moves[board] = int(self.agent.run(greedy_move, board)[0])
        return move

    def moves(self, board: Any, lines: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The best move after each of ``lines`` from ``board``: ``[n, longest]``, the first ``lengths`` count."""
        moves: npt.NDArray[np.int64] = self.agent.run(greedy_moves, board, lines, lengths)
        return moves
