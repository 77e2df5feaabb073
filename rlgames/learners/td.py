"""Temporal difference learning by self-play on afterstates (Bagheri et al. 2015, table 1)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.agents.agent import Agent, Learning
from rlgames.compiled import borrowed, compilable
from rlgames.episodes import Episodes
from rlgames.games.game import Game, PartBoard
from rlgames.learners.learner import Learner, Numbers
from rlgames.policy import best_move, random_move, reward, value_after
from rlgames.schedules import Constant, Schedule
from rlgames.traces import Traces

TRACES = {  # replacing, resetting
    "et": (False, False),
    "res": (False, True),
    "rep": (True, False),
    "rr": (True, True),
}


class TD(Learner):
    """TD(lambda) by self-play: every position learns from the next one, and so, to a decaying degree, do those before.

    Args:
        game: the game.
        epsilon: probability of an exploratory move, by game number.
        lr: factor on the optimizer's lr, by game number.
        gamma: discount per ply, 0 to 1.
        lambda_: decay of the eligibility traces per ply, 0 to 1.
        traces: ``et`` accumulating, ``rep`` replacing, ``res`` accumulating and ended by exploratory moves, ``rr`` both
            (Thill 2015, table 5.2).
        threshold: traces below it are dropped.
        win_decay: a win after n plies is worth 1 - win_decay * n; the article has 0, the authors' program 0.01.
        learn_exploratory: whether positions also learn from exploratory moves; their values are then those for a
            player who explores, which suits an epsilon that falls to 0.
        tactical: whether the agent avoids moves that let the opponent win at once, in training and in play.

    Raises:
        ValueError: for a probability, discount or decay out of range.
    """

    def __init__(
        self,
        game: Game[Any],
        epsilon: Schedule = Constant(0.1),  # noqa: B008
        lr: Schedule = Constant(1.0),  # noqa: B008
        gamma: float = 1.0,
        lambda_: float = 0.0,
        traces: str = "et",
        threshold: float = 0.0,
        win_decay: float = 0.0,
        learn_exploratory: bool = False,
        tactical: bool = False,
    ) -> None:
        if not isinstance(game, Game):
            raise ValueError(f"learner=td is for boards of cells, not for {game.name}; use learner=td_leaf")
        for name, number in (("gamma", gamma), ("lambda_", lambda_), ("threshold", threshold)):
            if not 0 <= number <= 1:
                raise ValueError(f"learner.{name} is {number}; allowed are numbers from 0 to 1")
        if traces not in TRACES:
            raise ValueError(f"learner.traces is {traces!r}; allowed are {', '.join(TRACES)}")
        if learn_exploratory and lambda_ and TRACES[traces][1]:
            raise ValueError(
                f"learner.traces={traces} ends at exploratory moves, from which learner.learn_exploratory=true learns;"
                " use learner.traces=et or rep"
            )
        if not 0 <= win_decay * game.n_cells < 1:
            raise ValueError(f"learner.win_decay is {win_decay}; allowed are numbers from 0 to 1 / {game.n_cells}")
        self.game, self.epsilon, self.lr, self.gamma, self.win_decay = game, epsilon, lr, gamma, win_decay
        self.learn_exploratory, self.tactical = learn_exploratory, tactical
        self.curves(np.zeros(1, np.int64))  # refuse schedules that are wrong from the start
        self.traces = Traces(gamma * lambda_, *TRACES[traces], threshold) if gamma * lambda_ else None

    def train(self, agent: Agent[Any], first_game: int, games: int, lr: float, rng: np.random.Generator) -> Episodes:
        """See ``Learner``."""
        epsilons, lrs = self.curves(np.arange(first_game, first_game + games), lr).values()
        return Episodes(
            *agent.run(
                play_games,
                self.game.board,
                epsilons,
                lrs,
                float(self.gamma),
                float(self.win_decay),
                bool(self.learn_exploratory),
                rng,
            )
        )

    def curves(self, games: npt.NDArray[np.int64], lr: float = 1.0) -> dict[str, Numbers]:
        """Values of the schedules at ``games`` (from 0), given the optimizer's ``lr``; the first one is exploration.

        Raises:
            ValueError: if a schedule leaves its range.
        """
        epsilons = self.epsilon(games)
        for k in np.flatnonzero(~((epsilons >= 0) & (epsilons <= 1)))[:1]:
            raise ValueError(f"learner.epsilon is {epsilons[k]:g} at game {games[k]}; allowed are numbers from 0 to 1")
        return {"epsilon": epsilons, **super().curves(games, lr)}


@compilable
def play_game(
    agent: Learning,
    board: PartBoard,
    epsilon: float,
    gamma: float,
    win_decay: float,
    learn_exploratory: bool,
    rng: np.random.Generator,
) -> tuple[int, int, int, float]:
    """Play one game of self-play and learn from it (table 1 of the article).

    Returns:
        The winner (+1, -1 or 0), plies, updates, and the sum of |td_error|.
    """
    plies, updates, errors = 0, 0, 0.0
    agent.begin()
    while not board.over():
        explore = rng.random() < epsilon
        if explore:
            move = random_move(board, agent.move_list, rng)
            v_next = value_after(agent, board, move, win_decay) if learn_exploratory else 0.0
        else:
            move, v_next = best_move(agent, board, win_decay)
        after = board.play(move)
        target = agent.target(reward(after.winner(), plies, win_decay)) if after.over() else gamma * v_next
        if not explore or learn_exploratory or after.over():  # else a random move would set the value
            updates += 1
            errors += abs(agent.learn(board, target, after, 0.0 if after.over() else gamma))
        else:
            agent.explored(board)
        board = after
        plies += 1
    return board.winner(), plies, updates, errors


def play_games(
    agent: Learning,
    board: PartBoard,
    epsilons: npt.NDArray[np.float64],
    lrs: npt.NDArray[np.float64],
    gamma: float,
    win_decay: float,
    learn_exploratory: bool,
    rng: np.random.Generator,
) -> tuple[int, int, int, float, int, int]:
    """Play a game per entry of ``epsilons`` and ``lrs``; stop after a game whose values are not finite."""
    agent = borrowed(agent)
    plies = updates = first = second = games = 0
    errors = 0.0
    for k in range(len(epsilons)):
        agent.set_lr(lrs[k])
        winner, length, learned, error = play_game(agent, board, epsilons[k], gamma, win_decay, learn_exploratory, rng)
        games += 1
        plies += length
        updates += learned
        errors += error
        first += winner > 0
        second += winner < 0
        if not errors < np.inf:  # np.isfinite tests x - x == 0, which always holds in reordered compiled sums
            break
    return games, plies, updates, errors, first, second
