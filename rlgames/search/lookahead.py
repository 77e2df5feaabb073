"""A trained agent looks several plies ahead: alpha-beta search over its values, in plain Python and compiled.

By itself an agent moves by a search of one ply. Deeper searches cost time in play and none in learning.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rlgames.compiled import borrowed, compilable
from rlgames.policy import TOLERANCE, put_open_first, put_safe_first

if TYPE_CHECKING:
    from rlgames.agents.agent import Afterstates
    from rlgames.games.game import PartBoard

WIN = 1e6  # a win at ply n scores WIN - n, far above any sum of weights; a draw scores 0, the sum for value 0


Flag = npt.NDArray[np.uint8]  # of ``rlgames.interrupts``: a search returns anything as soon as it is not 0


def lookahead_move(agent: "Afterstates", board: "PartBoard", plies: int, flag: Flag) -> tuple[int, float]:
    """The best move for the player to move by a search of ``plies``, and its score; see ``alpha_beta``."""
    return alpha_beta(borrowed(agent), board, plies, flag)


def lookahead_values(agent: "Afterstates", board: "PartBoard", plies: int, flag: Flag) -> npt.NDArray[np.float64]:
    """Value of each legal move for the player to move by a search of ``plies``, at least 2; -1 (lost) to +1 (won)."""
    agent = borrowed(agent)
    player, moves = board.player(), board.moves()
    middle = agent.target(0.0)
    values = np.empty(len(moves), np.float64)
    for k in range(len(moves)):
        after = board.play(moves[k])
        if after.over():
            value = agent.target(1.0 * after.winner())
        else:
            score = after.player() * alpha_beta(agent, after, plies - 1, flag)[1]
            value = agent.target(np.sign(score)) if abs(score) > WIN / 2 else agent.unit(score)
        values[k] = player * (value - middle) / (agent.target(1.0) - middle)
    return values


@compilable
def alpha_beta(agent: "Afterstates", board: "PartBoard", plies: int, flag: Flag) -> tuple[int, float]:
    """The best move for the player to move by a search of ``plies``, at least 1, and its score.

    The score is for the player to move: a sum of weights, or the score of a win, draw or loss. Forced wins are seen one
    ply deeper, as no player leaves the opponent an immediate win.
    """
    moves = np.empty((plies, len(agent.move_list)), np.int64)  # of the positions on the current line, the best last
    left = np.zeros(plies, np.int64)  # how many of them are still untried
    low, high = np.full(plies, -np.inf), np.full(plies, np.inf)  # scores that matter, for the player to move there
    line = [board] * plies
    left[0], score = expand(agent, board, moves[0])
    best, ply = moves[0, max(0, left[0] - 1)], 0
    if left[0] == 0 or plies == 1:
        return best, score
    while flag[0] == 0:
        if left[ply] > 0 and low[ply] < high[ply]:
            left[ply] -= 1
            line[ply + 1] = line[ply].play(moves[ply, left[ply]])
            left[ply + 1], score = expand(agent, line[ply + 1], moves[ply + 1])
            if left[ply + 1] > 0 and ply + 2 < plies:
                ply += 1
                low[ply], high[ply] = -high[ply - 1], -low[ply - 1]
                continue
            score = -score
        elif ply == 0:
            return best, low[0]
        else:
            score = -low[ply]
            ply -= 1
        if score > low[ply] + TOLERANCE:  # the first among equals: mirror images differ by rounding of sums
            low[ply] = score
            if ply == 0:
                best = moves[0, left[0]]
    return best, low[0]


@compilable
def expand(agent: "Afterstates", board: "PartBoard", moves: npt.NDArray[np.int64]) -> tuple[int, float]:
    """Write the moves to search into ``moves``, the most promising last; return their number and the best score.

    The number is 0 if the score is final: ``moves[0]`` then reaches it, unless the game is over.
    """
    player = board.player()
    if board.over():
        return 0, score_of(board.winner() * player, board.ply)
    count, final, winner = put_open_first(board, moves[: board.list_moves(moves)])
    result = winner * player
    if result > 0 or count == 0:
        moves[0] = final
        return 0, score_of(result, board.ply + 1)
    safe = put_safe_first(board, moves[:count], agent.replies)
    if safe == 0 and final >= 0 and result == 0:
        moves[0] = final
        return 0, score_of(0, board.ply + 1)
    if safe == 0:
        return 0, score_of(-1, board.ply + 2)
    sums = agent.sums(board, moves[:safe])
    for k in range(1, safe):  # insertion sort; equals keep the game's order, which is read from the end
        move, score, j = moves[k], sums[k], k
        while j > 0 and player * sums[j - 1] > player * score - TOLERANCE:
            moves[j], sums[j] = moves[j - 1], sums[j - 1]
            j -= 1
        moves[j], sums[j] = move, score
    best = player * sums[safe - 1]
    if final >= 0 and result == 0:  # tried before all that promise less than a draw, whose sum is 0
        place = safe
        while place > 0 and player * sums[place - 1] < 0:
            moves[place] = moves[place - 1]
            place -= 1
        moves[place] = final
        return safe + 1, max(best, 0.0)
    return safe, best


@compilable
def score_of(result: int, ply: int) -> float:
    """Score of a game that ends after ``ply`` moves with a win (+1), draw (0) or loss (-1)."""
    return result * (WIN - ply)
