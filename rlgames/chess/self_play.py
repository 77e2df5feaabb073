"""Chess training games: an agent against itself, its earlier selves, or an engine; in several processes."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, util
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rlgames.chess.contest import Adjudication, Engine, Record, play
from rlgames.chess.evaluation import start_values
from rlgames.chess.openings import Openings
from rlgames.chess.pgn import pgn
from rlgames.chess.search_agent import SearchAgent
from rlgames.chess.searcher import Searcher
from rlgames.chess.uci_engine import EngineError, UciEngine
from rlgames.interrupts import follow_parent, results

Weights = npt.NDArray[np.float32]


class Game(NamedTuple):
    """A training game.

    Attributes:
        record: the game.
        learners: colours the agent plays, +1 White, -1 Black; both against itself.
        text: the game as PGN.
    """

    record: Record
    learners: tuple[int, ...]
    text: str


class Task(NamedTuple):
    """A game to be played.

    Attributes:
        number: of the game, from 1.
        seed: of its randomness.
        opponent: ``self``, ``past`` or ``engine``.
        colour: of the agent, unless it plays itself.
        past: coefficients of its earlier self.
    """

    number: int
    seed: int
    opponent: str
    colour: int
    past: Weights | None


class SelfPlay:
    """Who plays whom, how deeply they search, and where games begin and end.

    Args:
        openings: see ``rlgames.chess.openings.Openings``.
        adjudication: see ``rlgames.chess.contest.Adjudication``.
        nodes, depth: limits of the agent's search per move; 0: none.
        hash_mb: of its transposition table.
        processes: how many play games at the same time; the result is the same.
        past: share of the games against an earlier self, 0 to 1.
        past_every: an earlier self is kept every so many games; the last 20 remain.
        engine: path of a UCI engine; null: none.
        engine_share: share of the games against it, 0 to 1.
        engine_nodes: its limit per move.
        engine_options: its UCI options.

    Attributes:
        trees: whether thoughts include the positions of the tree, for TreeStrap.

    Raises:
        ValueError: for a number out of range.
    """

    trees = False

    def __init__(
        self,
        openings: Openings = Openings(),  # noqa: B008
        adjudication: Adjudication = Adjudication(),  # noqa: B008
        nodes: int = 2000,
        depth: int = 0,
        hash_mb: float = 4.0,
        processes: int = 1,
        past: float = 0.0,
        past_every: int = 200,
        engine: str | None = None,
        engine_share: float = 0.0,
        engine_nodes: int = 1000,
        engine_options: dict[str, Any] | None = None,
    ) -> None:
        for name, number in (("processes", processes), ("past_every", past_every), ("engine_nodes", engine_nodes)):
            if number < 1:
                raise ValueError(f"learner.self_play.{name} is {number}; it must be at least 1")
        if not (past >= 0 and engine_share >= 0 and past + engine_share <= 1):
            raise ValueError(
                f"learner.self_play.past is {past} and learner.self_play.engine_share is {engine_share};"
                " both are shares, together at most 1"
            )
        if engine is not None and not engine.strip():
            raise ValueError(f"learner.self_play.engine is {engine!r}; it must be null or the path of an engine")
        if engine_share and engine is None:
            raise ValueError("learner.self_play.engine is null; name the path of an engine for its share of the games")
        if nodes < 0 or depth < 0 or not nodes + depth:
            raise ValueError(f"learner.self_play.nodes is {nodes}, depth is {depth}; one must be above 0, none below")
        self.openings, self.adjudication = openings, adjudication
        self.nodes, self.depth, self.hash_mb, self.processes = nodes, depth, hash_mb, processes
        self.shares, self.past_every = (past, engine_share), past_every
        self.engine = engine and (engine, engine_options or {}, engine_nodes)
        self._past: list[tuple[int, Weights]] = []
        self._table: Table | None = None
        self._pool: ProcessPoolExecutor | None = None

    def agent(self, network: nn.Module, optimizer: torch.optim.Optimizer, fixed: int) -> SearchAgent:
        """The agent that plays and learns with ``network``, whose coefficient ``fixed`` does not learn (-1: all do).

        Raises:
            ValueError: if it is not a linear evaluation.
        """
        return SearchAgent(network, optimizer, self.player, fixed)

    def player(self, coefficients: Weights) -> Searcher:
        """The agent of these games with ``coefficients``."""
        return Searcher(coefficients, self.nodes, self.depth, 0, self.hash_mb, "agent")

    def games(self, coefficients: Weights, first: int, rng: np.random.Generator, count: int) -> Iterator[Game]:
        """Play ``count`` games with the same ``coefficients`` and yield each when over; ``first`` games came before.

        Raises:
            ValueError: if an engine fails, or all openings are rejected.
        """
        tasks = [self._task(first + k + 1, rng) for k in range(count)]
        try:
            if self.processes == 1:
                self._table = self._table or Table(self)
                yield from (self._table.play(coefficients, task) for task in tasks)
            else:
                yield from results(self._workers(), _play, [coefficients] * count, tasks)
        except EngineError as error:
            raise ValueError(str(error)) from error

    def _task(self, number: int, rng: np.random.Generator) -> Task:
        """The random choices for a game, always the same number."""
        seed, u, colour = int(rng.integers(2**63)), rng.random(), 1 - 2 * int(rng.integers(2))
        which = int(rng.integers(2**31))
        past, engine = self.shares
        if u < past and self._past:
            return Task(number, seed, "past", colour, self._past[which % len(self._past)][1])
        return Task(number, seed, "engine" if past <= u < past + engine else "self", colour, None)

    def _workers(self) -> ProcessPoolExecutor:
        """The processes; they start after compilation, so that they find the code on disk."""
        if self._pool is None:
            Table(self).play(start_values(), Task(0, 0, "self", 1, None))
            self._pool = ProcessPoolExecutor(self.processes, get_context("spawn"), _begin, (self,))
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        """For the processes: everything that does not belong to this one."""
        return self.__dict__ | {"_pool": None, "_table": None, "_past": []}

    def remember(self, games: int, coefficients: Weights) -> None:
        """Keep ``coefficients`` as an earlier self, if ``games`` is a multiple of ``past_every``."""
        if self.shares[0] and games % self.past_every == 0:
            self._past = [*self._past, (games, coefficients.copy())][-20:]

    def state_dict(self) -> dict[str, Any]:
        """The earlier selves, for checkpoints."""
        return {"past": [(games, torch.from_numpy(weights)) for games, weights in self._past]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the earlier selves of a checkpoint."""
        self._past = [(games, weights.numpy()) for games, weights in state["past"]]

    def close(self) -> None:
        """End processes and engines."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._table is not None:
            self._table.close()
        self._pool = self._table = None


class Table:
    """A board and two players, who play one game after another; each process has one."""

    def __init__(self, setting: SelfPlay) -> None:
        self.setting = setting
        self.agent, self.past = (
            Searcher(start_values(), setting.nodes, setting.depth, 0, setting.hash_mb, name, tree)
            for name, tree in (("agent", setting.trees), ("past", False))
        )
        self.engine: UciEngine | None = None

    def play(self, coefficients: Weights, task: Task) -> Game:
        """Play a game."""
        rng = np.random.default_rng(task.seed)
        self.agent.load(coefficients)
        course = self.setting.openings.draw(rng, self.agent.score)
        opponent = self._opponent(task)
        white, black = (self.agent, opponent) if task.colour > 0 else (opponent, self.agent)
        record = play(white, black, course, self.setting.adjudication)
        learners = (1, -1) if task.opponent == "self" else (task.colour,)
        tags = {"Event": "training", "Round": str(task.number), "White": white.name, "Black": black.name}
        return Game(record, learners, pgn(record, tags))

    def _opponent(self, task: Task) -> Engine:
        if task.opponent == "past":
            assert task.past is not None
            self.past.load(task.past)
            return self.past
        if task.opponent == "engine" and self.setting.engine:
            path, options, nodes = self.setting.engine
            self.engine = self.engine or UciEngine(path, options, nodes=nodes)
            return self.engine
        return self.agent

    def close(self) -> None:
        """End the engine, if there is one."""
        if self.engine is not None:
            self.engine.close()


_table: Table | None = None  # of a worker process


def _begin(setting: SelfPlay) -> None:
    """Set up a worker process."""
    global _table
    follow_parent()
    torch.set_num_threads(1)
    _table = Table(setting)
    util.Finalize(None, _table.close, exitpriority=1)


def _play(coefficients: Weights, task: Task) -> Game:
    assert _table is not None
    return _table.play(coefficients, task)
