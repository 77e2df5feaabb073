"""The trained agent as a player."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.agents.agent import Agent
from rlgames.games.game import Board
from rlgames.interrupts import ask, flag
from rlgames.players.player import refuse_finished
from rlgames.policy import greedy_move, greedy_moves


class GreedyPlayer:
    """Plays the move an agent values most, without exploration: always the same move on the same board.

    It remembers its moves, so a board that recurs costs nothing. A player therefore belongs to one state of the
    weights: make a new one after learning.

    Args:
        agent: an agent of ``rlgames.agents``.
        lookahead: plies to look ahead; 1 compares the values after its moves.

    Raises:
        ValueError: for a lookahead of more than one ply with an agent that does not value boards by a network.
    """

    def __init__(self, agent: Agent[Any], lookahead: int = 1) -> None:
        if lookahead > 1 and not agent.afterstates:
            raise ValueError(f"lookahead is {lookahead}, but that is for learner=td; leave it out here")
        self.agent, self.lookahead = agent, np.int64(lookahead)
        self._moves: dict[Board, int] = {}

    def move(self, board: Board, rng: np.random.Generator) -> int:
        """The move the agent considers best; ``rng`` is not used.

        Raises:
            ValueError: if the game is over.
            rlgames.interrupts.Interrupted: if a signal asks for an end.
        """
        move = self._moves.get(board)
        if move is None:
            refuse_finished(board)
            move = self._moves[board] = self._choose(board)
        return move

    def _choose(self, board: Board) -> int:
        if self.lookahead > 1:
            from rlgames.search.lookahead import lookahead_move

            move = int(self.agent.run(lookahead_move, board, self.lookahead, flag())[0])
            ask()
            return move
        return int(self.agent.run(greedy_move, board)[0])

    def moves(
        self, board: Board, lines: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The best move after each of ``lines`` from ``board``: ``[n, longest]``, the first ``lengths`` moves count."""
        if self.lookahead > 1:
            ends = (functools.reduce(type(board).play, line[:n], board) for line, n in zip(lines, lengths, strict=True))
            return np.array([self._choose(end) for end in ends])
        moves: npt.NDArray[np.int64] = self.agent.run(greedy_moves, board, lines, lengths)
        return moves
