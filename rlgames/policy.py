"""How moves are chosen: plain functions, which can also be compiled."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rlgames.compiled import borrowed, compilable

if TYPE_CHECKING:
    from rlgames.agents.agent import Afterstates, Values
    from rlgames.games.game import PartBoard

# Sums of weights closer than this count as equal. Mirror images have the same value in exact arithmetic, but sums in
# another order round differently; with a tolerance, the choice depends neither on that nor on the engine.
TOLERANCE = 1e-5


@compilable
def reward(winner: int, ply: int, win_decay: float) -> float:
    """What the first player is paid when the move after ``ply`` moves ends the game: ±(1 - win_decay * ply), or 0.

    Learners are paid this, so whatever values a decided position without the network must value it at this too.
    """
    return winner * (1.0 - win_decay * ply)


@compilable
def best_move(agent: "Afterstates", board: "PartBoard", win_decay: float = 0.0) -> tuple[int, float]:
    """The best move for the player to move, and the value it leads to, on the agent's scale.

    An immediate win comes first; ties, sums that differ by no more than TOLERANCE, go to the first in the game's order
    (Bagheri et al. 2015, table 1, step 11).
    A ``tactical`` agent looks one ply further: it lets the opponent win at once only if there is no other move.
    """
    player, ply = board.player(), board.ply
    moves = agent.move_list[: board.list_moves(agent.move_list)]
    open_moves, final, winner = put_open_first(board, moves)
    if winner == player or open_moves == 0:
        return final, agent.target(reward(winner, ply, win_decay))
    moves = moves[:open_moves]
    if agent.tactical:
        safe = put_safe_first(board, moves, agent.replies)
        if safe == 0 and final >= 0 and winner == 0:
            return final, agent.target(0.0)
        if safe == 0:
            return moves[0], agent.target(reward(-player, ply + 1, win_decay))
        moves = moves[:safe]
    sums = agent.sums(board, moves)
    best = 0
    for k in range(1, len(moves)):
        if player * sums[k] > player * sums[best] + TOLERANCE:
            best = k
    if final >= 0 and winner == 0 and player * sums[best] < 0:  # a draw at once; its sum is 0
        return final, agent.target(0.0)
    return moves[best], agent.unit(sums[best])


@compilable
def put_open_first(board: "PartBoard", moves: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Bring ``moves`` that do not end the game to the front, in order.

    Returns:
        How many they are; the best of the others for the player to move, -1 if there is none; and who wins by it.
    """
    player = board.player()
    open_moves, final, winner = 0, -1, 0
    for k in range(len(moves)):
        move = moves[k]
        after = board.play(move)
        if not after.over():
            moves[open_moves] = move
            open_moves += 1
        elif final < 0 or player * after.winner() > player * winner:
            final, winner = move, after.winner()
            if winner == player:
                break
    return open_moves, final, winner


@compilable
def put_safe_first(board: "PartBoard", moves: npt.NDArray[np.int64], replies: npt.NDArray[np.int64]) -> int:
    """Put the ``moves`` after which the opponent cannot win at once first, in order; return their number."""
    safe = 0
    for k in range(len(moves)):
        if not can_win(board.play(moves[k]), replies):
            moves[safe] = moves[k]
            safe += 1
    return safe


@compilable
def can_win(board: "PartBoard", moves: npt.NDArray[np.int64]) -> bool:
    """Whether the player to move can win at once; ``moves`` is room for all legal moves."""
    for k in range(board.list_moves(moves)):  # noqa: SIM110 # compiled code has no generators
        if board.play(moves[k]).winner() == board.player():
            return True
    return False


def afterstate_values(agent: "Afterstates", board: "PartBoard") -> npt.NDArray[np.float64]:
    """Value of each legal move for the player to move, from -1 (lost) to +1 (won)."""
    agent = borrowed(agent)
    player, moves = board.player(), board.moves()
    middle = agent.target(0.0)
    values = np.empty(len(moves), np.float64)
    for k in range(len(moves)):
        values[k] = player * (value_after(agent, board, moves[k]) - middle) / (agent.target(1.0) - middle)
    return values


@compilable
def value_after(agent: "Afterstates", board: "PartBoard", move: int, win_decay: float = 0.0) -> float:
    """The value that ``move`` leads to, on the agent's scale."""
    after = board.play(move)
    if after.over():
        return agent.target(reward(after.winner(), board.ply, win_decay))
    if agent.tactical and can_win(after, agent.replies):
        return agent.target(reward(after.player(), after.ply, win_decay))
    agent.move_list[0] = move
    return agent.unit(agent.sums(board, agent.move_list[:1])[0])


@compilable
def random_move(board: "PartBoard", moves: npt.NDArray[np.int64], rng: np.random.Generator) -> int:
    """A legal move, all with the same probability; ``moves`` is room for all of them."""
    count: int = board.list_moves(moves)
    return moves[int(rng.random() * count)]  # type: ignore[no-any-return]


@compilable
def boltzmann(values: npt.NDArray[np.float64], temperature: float) -> npt.NDArray[np.float64]:
    """Probabilities of moves with ``values``: P(a) = exp(w_a / T) / Σ_b exp(w_b / T), for a temperature T above 0.

    The largest value is subtracted from all first, so nothing overflows.
    """
    p = np.empty(len(values), np.float64)
    largest, total = max(values), 0.0
    for k in range(len(values)):
        p[k] = np.exp((values[k] - largest) / temperature)
        total += p[k]
    for k in range(len(values)):
        p[k] /= total
    return p


@compilable
def draw_index(probabilities: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
    """An index, drawn with ``probabilities``: the interval into which a random number from 0 to 1 falls."""
    u = rng.random()
    for k in range(len(probabilities)):
        u -= probabilities[k]
        if u < 0:
            return k
    return int(np.argmax(probabilities))  # they summed to a little less than 1


@compilable
def greedy_move(agent: "Values", board: "PartBoard") -> tuple[int, float]:
    """The move the agent considers best, and the value it leads to, on the agent's scale."""
    best: tuple[int, float] = borrowed(agent).best(board)
    return best


def greedy_moves(
    agent: "Values", board: "PartBoard", lines: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The best move after each of ``lines`` from ``board``, padded to ``[n, longest]``."""
    agent = borrowed(agent)
    moves = np.empty(len(lines), np.int64)
    for n in range(len(lines)):
        after = board
        for k in range(lengths[n]):
            after = after.play(lines[n, k])
        moves[n] = greedy_move(agent, after)[0]
    return moves
