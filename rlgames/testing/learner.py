"""The kit for learners."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.agents import Eager, Fused
from rlgames.agents.agent import Agent
from rlgames.compiled import HAS_COMPILER
from rlgames.episodes import Episodes
from rlgames.features.features import Features
from rlgames.features.ntuples import NTuples
from rlgames.games.game import Game, Rules
from rlgames.learners.learner import Learner, adopted
from rlgames.networks.table import ValueNetwork, table_of
from rlgames.optim import TDL, StepSize
from rlgames.testing.contract import ContractError, broken, kit, name_of, require, saved

LR = 0.02
HALF = 3  # games before a checkpoint, and after it
TRIES = 60  # games, until one ends with the first move

Optimizers = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Run(NamedTuple):
    """A learner and the agent that it teaches."""

    learner: Learner
    agent: Agent[Any]

    def play(self, first: int, games: int, rng: np.random.Generator) -> Episodes:
        """Learn from ``games`` games after ``first`` others."""
        lr = self.agent.optimizer.defaults["lr"] if self.agent.optimizer else LR
        episodes = self.learner.train(self.agent, first, games, lr, rng)
        self.agent.store()
        return episodes

    def weights(self) -> Tensor:
        """All that the network has learned, as one vector."""
        state = self.agent.network.state_dict().values()
        return torch.cat([tensor.detach().double().flatten().cpu() for tensor in state])


class Bench(NamedTuple):
    """What the kit builds runs from."""

    learner: Learner
    game: Rules[Any]
    features: Features[Any] | None
    network: nn.Module | None
    optimizer: Optimizers
    name: str

    def run(self, engine: str = "eager", game: Rules[Any] | None = None) -> Run:
        """A run from the start, on another ``game`` if given."""
        learner = copy.deepcopy(self.learner)
        if game is not None:
            learner.game = game  # type: ignore[attr-defined] # asked for by _check_end
        network = learner.network if self.network is None else copy.deepcopy(self.network)
        optimizer = None if "optimizer" in learner.brings else self.optimizer(network.parameters())
        agent = learner.agent(engine, network, optimizer, self.features)
        if agent is None:
            if optimizer is None:
                broken(f"{self.name} brings its own optimizer, so it must bring its agent")
            kind = Fused if engine == "fused" else Eager
            agent = kind(network, optimizer, learner.traces, learner.tactical, self.features)
        return Run(learner, agent)


@kit
def check_learner(
    learner: Any,
    game: Rules[Any],
    features: Features[Any] | None = None,
    network: nn.Module | None = None,
    optimizer: Optimizers | None = None,
) -> None:
    """Check whether ``learner`` keeps the contract of ``rlgames.learners.learner`` on ``game``.

    It plays some games. Their counts must agree. The same seed must teach the same, also compiled, and in two halves
    with a checkpoint between. The end of a game must move values towards the result. Schedules must stay in range.

    Args:
        learner: the learner, which stays as it is; a class with nothing but ``train`` is adopted.
        game: the game that it was built with.
        features: what the agent sees; None: those of a small table.
        network: what it values with; None: that table, unless the learner brings its own.
        optimizer: makes the optimizer of parameters; None: TDL.

    Raises:
        ContractError: naming what is broken.
    """
    name = name_of(learner)
    learner = copy.deepcopy(learner)
    if not isinstance(learner, Learner):
        learner.__class__ = adopted(type(learner))
    if "network" in learner.brings:
        network = None
    elif network is None:
        if not isinstance(game, Game):
            broken(f"{name}: without features and network the kit plays on boards of cells only, not {game.name}")
        if features is None:
            cells = list(range(game.n_cells))
            features = NTuples(game, [cells[k : k + 3] for k in range(0, len(cells), 2)], states=3)
        network = ValueNetwork(features, init=0.1, dtype="float64")  # type: ignore[arg-type] # it refuses others
    bench = Bench(learner, game, features, network, optimizer or _tdl, name)
    try:
        _check_curves(bench)
        _check_games(bench)
        _check_compiled(bench)
        if isinstance(game, Game) and vars(learner).get("game") is not None:
            _check_end(bench, game)
    finally:
        learner.close()


def _tdl(params: Iterable[nn.Parameter]) -> TDL:
    return TDL(params, lr=LR)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _check_curves(bench: Bench) -> None:
    """Every curve has a number for each game; schedules that leave their range are refused."""
    games = np.arange(5)
    for key, curve in bench.learner.curves(games, LR).items():
        right = isinstance(curve, np.ndarray) and curve.shape == (5,) and bool(np.isfinite(curve).all())
        require(right, f"{bench.name}: curves gives {curve!r} for {key} at 5 games; it must be an array of 5 numbers")
    schedules = [key for key, value in vars(bench.learner).items() if _is_schedule(value)]
    for key in {"lr", *schedules}:
        run = bench.run()
        setattr(run.learner, key, lambda games: np.full(len(games), np.nan))
        try:
            curves = run.learner.curves(games, LR)
            lost = [name for name, curve in curves.items() if not np.isfinite(curve).all()]
            if lost:
                run.play(0, 1, _rng())
                broken(
                    f"{bench.name}: curves gives {lost[0]} = nan if {key} does; refuse a schedule that leaves its range"
                )
        except ContractError:
            raise
        except ValueError:
            continue


def _is_schedule(value: Any) -> bool:
    return callable(value) and type(value).__module__ == "rlgames.schedules"


def _check_games(bench: Bench) -> None:
    """Counts agree, games are repeated by their seed, and a checkpoint between them changes nothing."""
    half = -(-HALF // bench.learner.chunk) * bench.learner.chunk
    one, rng = bench.run(), _rng()
    start = one.weights()
    episodes = one.play(0, 2 * half, rng)
    _check_episodes(bench, episodes, 2 * half)
    learned = one.weights()
    require(not torch.equal(learned, start), f"{bench.name}: {2 * half} games teach nothing")
    again = bench.run()
    same = again.play(0, 2 * half, _rng()) == episodes and torch.equal(again.weights(), learned)
    require(same, f"{bench.name}: the same seed leads to other games; all randomness must come from rng")
    first, rng = bench.run(), _rng()
    before = first.play(0, half, rng)
    second = bench.run()
    _continue(first, second)
    both = before.plus(second.play(half, half, rng))
    require(
        torch.equal(second.weights(), learned) and both[:3] == episodes[:3],
        f"{bench.name}: {half} games, a checkpoint and {half} more teach something else than {2 * half} games;"
        " state_dict() must hold all that it remembers, and schedules follow the number of the game",
    )


def _continue(first: Run, second: Run) -> None:
    """Let ``second`` go on where ``first`` stopped, as a run does that is resumed."""
    second.agent.network.load_state_dict(saved(first.agent.network.state_dict()))
    if first.agent.optimizer and second.agent.optimizer:
        second.agent.optimizer.load_state_dict(saved(first.agent.optimizer.state_dict()))
    state = saved(first.learner.state_dict())
    if state:
        second.learner.load_state_dict(state)
    second.agent.forget()


def _check_episodes(bench: Bench, episodes: Any, games: int) -> None:
    name = bench.name
    require(isinstance(episodes, Episodes), f"{name}: train gives {type(episodes).__name__}, not Episodes")
    require(episodes.games == games, f"{name}: train was to play {games} games and counts {episodes.games}")
    most = games * bench.game.n_cells if isinstance(bench.game, Game) else np.inf
    require(games <= episodes.plies <= most, f"{name}: Episodes counts {episodes.plies} plies in {games} games")
    require(
        0 < episodes.updates <= 2 * episodes.plies,
        f"{name}: Episodes counts {episodes.updates} updates in {games} games",
    )
    require(0 <= episodes.errors < np.inf, f"{name}: Episodes gives {episodes.errors} as the sum of |td_error|")
    won = episodes.first + episodes.second
    require(
        episodes.first >= 0 and episodes.second >= 0 and won <= games,
        f"{name}: Episodes counts {won} wins in {games} games",
    )


def _check_compiled(bench: Bench) -> None:
    """The loop teaches the same compiled, if it can be."""
    if not HAS_COMPILER or not isinstance(bench.game, Game):
        return
    if bench.network is not None:
        table = table_of(bench.network)
        if table is None or table.features.compact is None:
            return
        if not isinstance(bench.optimizer(bench.network.parameters()), StepSize):
            return
    eager, fused = bench.run("eager"), bench.run("fused")
    here = eager.play(0, HALF, _rng())
    try:
        there = fused.play(0, HALF, _rng())
    except Exception as error:
        if type(error).__module__.startswith("numba."):  # it is none of those that can be compiled
            return
        raise
    network = eager.agent.network
    near = 1e-4 if next(network.parameters()).dtype == torch.float32 else 1e-9
    difference = float((eager.weights() - fused.weights()).abs().max())
    require(
        difference <= near and here[:3] == there[:3],
        f"{bench.name}: compiled, {HALF} games lead to weights {difference:.2g} away from those in Python",
    )


def _check_end(bench: Bench, game: Game[Any]) -> None:
    """A game that ends with its first move moves the value of the position before towards the result."""
    for player in (1, -1):
        late = _late(game, player)
        if late is None:
            continue
        run, rng = bench.run(game=late), _rng()
        for k in range(TRIES):
            before = _value(run, bench.features, late.board)
            episodes = run.play(k, 1, rng)
            change, result = _value(run, bench.features, late.board) - before, episodes.first - episodes.second
            if episodes.plies == 1 and result:
                winner = "first" if result > 0 else "second"
                require(
                    result * change >= 0,
                    f"{bench.name}: the {winner} player has won, which moves the value of the position before by "
                    f"{change:+.3g}; values are the first player's",
                )
                break


def _late(game: Game[Any], player: int) -> Game[Any] | None:
    """``game`` from the position before its end, with ``player`` to move and as many deciding moves as can be found."""
    rng, most, found = np.random.default_rng(0), 0, None
    for _ in range(200):
        board = before = game.board
        while not board.over():
            before, board = board, board.play(int(rng.choice(board.moves())))
        if before.player() == player:
            deciding = sum(before.play(int(move)).winner() != 0 for move in before.moves())
            share = deciding / len(before.moves())
            if share > most:
                most, found = share, before
    if found is None:
        return None
    late = copy.copy(game)
    late.board = found
    return late


def _value(run: Run, features: Features[Any] | None, board: Any) -> float:
    """The value of ``board`` for the first player, as learned."""
    agent = run.agent
    if not agent.afterstates or features is None:
        total: float = agent.move_values(board).sum()
        return total if board.player() > 0 else -total
    with torch.no_grad():
        x = features.encode([board]).to(next(agent.network.parameters()).device)
        value: float = agent.network(x).item()
        return value
