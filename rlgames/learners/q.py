"""Q-learning by self-play on one shared table; a Boltzmann machine chooses the moves (Referat, GRIN 102354, 2000)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.agents.agent import Agent
from rlgames.compiled import borrowed, compilable
from rlgames.episodes import Episodes
from rlgames.games.game import Game, PartBoard
from rlgames.learners.learner import Learner, Numbers
from rlgames.learners.q_table import CompiledTable, QTable, TableAgent
from rlgames.policy import boltzmann, draw_index
from rlgames.schedules import Constant, Schedule


class Q(Learner):
    """Q-learning: a player's action learns from the situation that the opponent's reply leaves.

    w ← w + α (r + γ max w' - w), where max w' is the highest value of the player's next situation. The reward r is 0
    during the game. At its end max w' is r / (1 - γ), the limit that values would approach if r came forever.

    Moves are drawn with P(a) = exp(w_a / T) / Σ_b exp(w_b / T). The temperature T falls by the same factor after every
    game, from ``temperature_start`` to ``temperature_end``.

    Args:
        game: the game, with few enough boards for a table.
        games: number of games over which the temperature falls; afterwards it is constant.
        temperature_start, temperature_end: what it falls from and to.
        alpha: step size by game number, above 0 and at most 1.
        gamma: discount per move of a player, 0 to 1.
        limit: False: the end of a game counts r alone.
        win, draw, loss: the rewards.
        self_play: False: the second player moves at random, and nothing is learned from its moves.
        symmetric, init, dtype, seed: of the table; see ``rlgames.learners.q_table.QTable``.

    Attributes:
        network: the table.

    Raises:
        ValueError: for a number out of range.
    """

    brings = ("features", "network", "optimizer")

    def __init__(
        self,
        game: Game[Any],
        games: int = 20_000,
        temperature_start: float = 1.0,
        temperature_end: float = 0.002,
        alpha: Schedule = Constant(0.5),  # noqa: B008
        gamma: float = 0.9,
        limit: bool = True,
        win: float = 1.0,
        draw: float = 0.0,
        loss: float = -1.0,
        self_play: bool = True,
        symmetric: bool = False,
        init: float = 1.0,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        if games < 1:
            raise ValueError(f"learner.games is {games}; it must be at least 1")
        if not 0 < temperature_end < temperature_start < float("inf"):
            raise ValueError(
                f"learner.temperature_start is {temperature_start} and learner.temperature_end {temperature_end};"
                " the temperature must fall, and end above 0"
            )
        if not (0 <= gamma < 1 if limit else 0 <= gamma <= 1):
            raise ValueError(
                f"learner.gamma is {gamma}; it must be at least 0 and "
                + ("below 1, because learner.limit divides by 1 - gamma" if limit else "at most 1")
            )
        self.game, self.alpha, self.gamma, self.self_play = game, alpha, gamma, self_play
        self.games, self.temperatures = games, (temperature_start, temperature_end)
        self.curves(np.zeros(1, np.int64))  # refuse a schedule that is wrong from the start
        self.ends = np.array([loss, draw, win]) / (1 - gamma if limit else 1)  # r + γ r / (1 - γ) = r / (1 - γ)
        self.table = self.network = QTable(game, symmetric, init, dtype, seed)

    def temperature(self, games: npt.NDArray[np.int64]) -> Numbers:
        """T = start (end / start)^(min(n, S) / S) for each n in ``games``, where S is the learner's ``games``."""
        start, end = self.temperatures
        return np.asarray(start * (end / start) ** np.minimum(games / self.games, 1.0), np.float64)

    def curves(self, games: npt.NDArray[np.int64], lr: float = 1.0) -> dict[str, Numbers]:
        """Values of the schedules at ``games``; there is no optimizer, hence no lr.

        Raises:
            ValueError: if ``alpha`` leaves its range.
        """
        alphas = self.alpha(games)
        for k in np.flatnonzero(~((alphas > 0) & (alphas <= 1)))[:1]:
            raise ValueError(f"learner.alpha is {alphas[k]:g} at game {games[k]}; it must be above 0 and at most 1")
        return {"temperature": self.temperature(games), "alpha": alphas}

    def agent(self, engine: str, *_: object) -> TableAgent:
        """The agent that plays and learns with the learner's table."""
        return TableAgent(self.table, compiled=engine == "fused")

    def train(self, agent: Agent[Any], first_game: int, games: int, lr: float, rng: np.random.Generator) -> Episodes:
        """See ``Learner``; there is no optimizer, hence no lr."""
        temperatures, alphas = self.curves(np.arange(first_game, first_game + games)).values()
        args = self.game.board, temperatures, alphas, float(self.gamma), self.ends, self.self_play, rng
        return Episodes(*agent.run(play_games, *args))

    def look(self, agent: Agent[Any], games: int) -> dict[str, float | str]:
        """The choice of the first move after ``games`` games: its entropy in bits, and a picture."""
        moves = self.game.board.moves()
        q = agent.move_values(self.game.board)
        p = boltzmann(q, float(self.temperature(np.array([max(0, games - 1)]))[0]))
        cells = [f"{self.game.labels[move]}: {q[k]:+6.2f} {100 * p[k]:3.0f} %" for k, move in enumerate(moves)]
        entropy = -float(np.sum(p[p > 0] * np.log2(p[p > 0])))
        width = self.game.grid.shape[1]
        rows = ["   ".join(cells[k : k + width]) for k in range(0, len(cells), width)]
        return {"first_move_entropy": entropy, "first_move": "\n".join(rows)}


@compilable
def play_game(
    table: CompiledTable,
    board: PartBoard,
    temperature: float,
    alpha: float,
    gamma: float,
    ends: npt.NDArray[np.float64],
    self_play: bool,
    rng: np.random.Generator,
) -> tuple[int, int, int, float]:
    """Play one game of self-play and learn from it; ``ends`` are the targets of last actions that lost, drew and won.

    Returns:
        The winner (+1, -1 or 0), plies, updates, and the sum of |td_error|.
    """
    plies, updates, errors = 0, 0, 0.0
    mine, theirs = -1, -1  # entries of the last actions of the player to move and of the other; -1: none
    while not board.over():
        moves = board.moves()
        entries = table.places(board)
        q = table.q_values(entries, moves)
        if mine >= 0:
            errors += abs(table.correct(mine, gamma * max(q), alpha))
            updates += 1
        if self_play or board.player() > 0:
            move = moves[draw_index(boltzmann(q, temperature), rng)]
            mine = entries[move]
        else:
            move = moves[int(rng.random() * len(moves))]
            mine = -1
        board = board.play(move)
        mine, theirs = theirs, mine
        plies += 1
    result = board.winner() * board.player()  # of the player who would be to move, whose last action ``mine`` is
    for entry, target in ((mine, ends[1 + result]), (theirs, ends[1 - result])):
        if entry >= 0:
            errors += abs(table.correct(entry, target, alpha))
            updates += 1
    return board.winner(), plies, updates, errors


def play_games(
    table: CompiledTable,
    board: PartBoard,
    temperatures: Numbers,
    alphas: Numbers,
    gamma: float,
    ends: npt.NDArray[np.float64],
    self_play: bool,
    rng: np.random.Generator,
) -> tuple[int, int, int, float, int, int]:
    """Play a game per entry of ``temperatures`` and ``alphas``; stop after a game whose values are not finite."""
    table = borrowed(table)
    plies = updates = first = second = games = 0
    errors = 0.0
    for k in range(len(temperatures)):
        winner, length, learned, error = play_game(
            table, board, temperatures[k], alphas[k], gamma, ends, self_play, rng
        )
        games += 1
        plies += length
        updates += learned
        errors += error
        first += winner > 0
        second += winner < 0
        if not errors < np.inf:  # np.isfinite tests x - x == 0, which always holds in reordered compiled sums
            break
    return games, plies, updates, errors, first, second
