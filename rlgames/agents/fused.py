"""The compiled agent: the same steps as ``Eager``, on a compact copy of weights and state."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlgames.agents.agent import Agent, Floats
from rlgames.agents.eager import check_traces
from rlgames.compiled import compilable, compile_function, require_compiler, value, with_lr
from rlgames.features.features import CompiledFeatures, Features
from rlgames.games.game import PartBoard
from rlgames.networks.table import OUTPUTS, ValueNetwork, require_table
from rlgames.optim.lanes import update
from rlgames.optim.step_size import StepSize
from rlgames.policy import afterstate_values, best_move
from rlgames.traces import Traces, memory


@value
class Compiled(NamedTuple):
    """The agent inside compiled code; ``rlgames.agents`` describes its methods.

    Attributes:
        features: the compiled side of the features.
        p: hyper-parameters of the rule, in the precision of the weights.
        output: index of the output unit in ``OUTPUTS``.
        cross_entropy: see ``StepSize``.
        weights: ``[rows]``; choosing a move reads seven times as many of them as learning does, so they lie
            close together.
        state: ``[rows, fields]``, what the rule remembers about a weight, side by side in memory.
        move_list: ``[n_moves]``, room for the legal moves.
        replies: ``[n_moves]``, room for the opponent's legal moves.
        results: ``[n_moves]``, room for the sums after the moves.
        indices: ``[n_features]``, rows of the current board.
        x: ``[n_features]``, how often each of them occurs there.
        next_indices: ``[n_features]``, rows of the next board; None if the rule does not look ahead.
        memory: the rows that learn, and their traces.
        lanes: ``[1 + fields, lanes of memory]``, weight and state of those rows.
        lr: ``[1]``, the global step size.
        tactical: see ``Fused``.
    """

    features: CompiledFeatures
    p: Any
    output: int
    cross_entropy: bool
    weights: Floats
    state: Floats
    move_list: npt.NDArray[np.int64]
    replies: npt.NDArray[np.int64]
    results: npt.NDArray[np.float64]
    indices: npt.NDArray[np.int32]
    x: Floats
    next_indices: npt.NDArray[np.int32] | None
    memory: Any
    lanes: Floats
    lr: npt.NDArray[np.float64]
    tactical: bool

    def sums(self, board: PartBoard, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Sums of weights after each of ``moves``, none of which may end the game.

        Seven boards at a time: a single chain of additions would stall on itself, and boards that differ in one move
        share most of their rows.
        """
        sums = self.results[: len(moves)]
        self.features.active(board, self.indices)
        w = self.features.tables(self.weights, -board.player())
        last = len(moves) - 1
        for k in range(0, len(moves), 7):
            k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
            k4, k5, k6 = min(k + 4, last), min(k + 5, last), min(k + 6, last)
            d0 = self.features.step(board, moves[k])
            d1, d2 = self.features.step(board, moves[k1]), self.features.step(board, moves[k2])
            d3, d4 = self.features.step(board, moves[k3]), self.features.step(board, moves[k4])
            d5, d6 = self.features.step(board, moves[k5]), self.features.step(board, moves[k6])
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = w.dtype.type(0)
            for f in range(len(self.indices)):
                row = self.indices[f]
                s0 += w[np.uint32(row + d0[f])]
                s1 += w[np.uint32(row + d1[f])]
                s2 += w[np.uint32(row + d2[f])]
                s3 += w[np.uint32(row + d3[f])]
                s4 += w[np.uint32(row + d4[f])]
                s5 += w[np.uint32(row + d5[f])]
                s6 += w[np.uint32(row + d6[f])]
            sums[k], sums[k1], sums[k2], sums[k3], sums[k4], sums[k5], sums[k6] = s0, s1, s2, s3, s4, s5, s6
        return sums

    def best(self, board: PartBoard) -> tuple[int, float]:
        """The best move, and the value it leads to."""
        return best_move(self, board)

    def unit(self, f: Any) -> Any:
        """Value of the sum ``f``."""
        return f if self.output == 0 else math.tanh(f) if self.output == 1 else 1.0 / (1.0 + math.exp(-f))

    def begin(self) -> None:
        """Start a game."""
        self.memory.clear()

    def learn(self, board: PartBoard, target: float, after: PartBoard | None = None, gamma: float = 0.0) -> float:
        """Move the value of ``board`` towards ``target``; return the TD error before the step. See ``Eager``."""
        v, slope = self.look(board)
        delta = target - v
        n = self.memory.add(self.indices, self.x, self.factor(slope))
        n = look_ahead(self.next_indices, self, after, gamma, n)
        rows, w, lanes, number = self.memory.rows, self.weights, self.lanes, self.lanes.dtype.type
        for j in range(n):
            lanes[0, j] = w[np.uint32(rows[j])]
            self.p.gather(self.state, np.uint32(rows[j]), lanes, j)
        update(with_lr(self.p, number(self.lr[0])), lanes, self.memory, n, number(delta), slope)
        for j in range(n):
            w[np.uint32(rows[j])] = lanes[0, j]
            self.p.scatter(lanes, j, self.state, np.uint32(rows[j]))
        return delta  # type: ignore[no-any-return]

    def explored(self, board: PartBoard) -> None:
        """Note an exploratory move in ``board``."""
        if self.memory.resetting:
            self.memory.clear()
        else:
            _, slope = self.look(board)
            self.memory.add(self.indices, self.x, self.factor(slope))

    def factor(self, slope: Any) -> Any:
        """The factor of x in traces: the slope, or 1 for cross-entropy rules."""
        return self.x.dtype.type(1) if self.cross_entropy else slope

    def look(self, board: PartBoard) -> tuple[Any, Any]:
        """Value of ``board`` and slope of the output unit there; leaves its rows and x in ``indices`` and ``x``."""
        rows, w = self.indices, self.weights
        self.features.active(board, rows)
        multiplicity(rows, self.features.images, self.x)
        first = self.features.begin_of(board.player())
        f0 = f1 = f2 = f3 = w.dtype.type(0)  # four chains of additions: a single one would stall on itself
        for j in range(len(rows)):
            rows[j] += first
        for j in range(0, len(rows) - 3, 4):
            f0 += w[np.uint32(rows[j])]
            f1 += w[np.uint32(rows[j + 1])]
            f2 += w[np.uint32(rows[j + 2])]
            f3 += w[np.uint32(rows[j + 3])]
        for j in range(len(rows) // 4 * 4, len(rows)):
            f0 += w[np.uint32(rows[j])]
        v = self.unit((f0 + f1) + (f2 + f3))
        slope = 1.0 if self.output == 0 else 1.0 - v * v if self.output == 1 else v * (1.0 - v)
        return v, w.dtype.type(slope)

    def target(self, reward: float) -> float:
        """``reward`` on the scale of the output unit."""
        return (reward + 1.0) / 2.0 if self.output == 2 else reward

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        self.lr[0] = lr


@compilable
def multiplicity(indices: npt.NDArray[np.int32], images: int, x: Floats) -> None:
    """Write into ``x`` how often each of ``indices`` occurs.

    Only indices that one tuple reads in different ``images`` can coincide. Each keeps its lane: lanes of the same
    weight hold the same numbers, so they compute the same update.
    """
    tuples, number = len(indices) // images, x.dtype.type
    x[:] = 0
    for i in range(images):
        mine, count = indices[i * tuples : (i + 1) * tuples], x[i * tuples : (i + 1) * tuples]
        for j in range(images):
            other = indices[j * tuples : (j + 1) * tuples]
            for t in range(tuples):
                count[t] += number(1) if mine[t] == other[t] else number(0)


@compilable
def look_ahead(
    rows: npt.NDArray[np.int32] | None, agent: Compiled, after: PartBoard | None, gamma: float, n: int
) -> int:
    """Add the rows of the board ``after`` to the ``n`` lanes, unless ``rows`` is None; return the number of lanes."""
    if rows is None:
        return n
    if after is None or gamma == 0:
        return agent.memory.foresee(rows[:0], 0)  # type: ignore[no-any-return]
    agent.features.active(after, rows)
    first = agent.features.begin_of(after.player())
    for j in range(len(rows)):
        rows[j] += first
    return agent.memory.foresee(rows, agent.x.dtype.type(gamma))  # type: ignore[no-any-return]


class Fused(Agent[PartBoard]):
    """Learns in compiled code on the CPU. The weights and the optimizer's state stay torch tensors.

    Compiled code works on a compact copy: ``load`` makes it, ``store`` writes it back. In between, the tensors are out
    of date. ``run`` loads if needed, but does not store.

    Args:
        network: the value network, on the CPU; see ``rlgames.networks.table.table_of``.
        optimizer: one of this package's rules, over the network's parameters.
        traces: kind of eligibility traces, None for lambda 0.
        tactical: avoid moves that let the opponent win at once; see ``rlgames.policy.best_move``.
        features: not used: they are the network's; accepted because all agents are built alike.

    Raises:
        ValueError: without numba, for an optimizer without a compiled form, a network that computes in another way, or
            one on another device.
    """

    network: ValueNetwork
    optimizer: StepSize

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        traces: Traces | None = None,
        tactical: bool = False,
        features: Features[Any] | None = None,
    ) -> None:
        require_compiler("engine=fused", "engine=eager")
        if not isinstance(optimizer, StepSize):
            raise ValueError(f"engine=fused has no compiled form of {type(optimizer).__name__}; use engine=eager")
        check_traces(optimizer, traces)
        table, self._features = require_table(network, "fused")
        if table.embedding.weight.device.type != "cpu":
            raise ValueError(f"engine=fused runs on device=cpu, not {table.embedding.weight.device}; use engine=eager")
        self.network, self.optimizer, self.traces, self.tactical = table, optimizer, traces, tactical
        self._rows = torch.from_numpy(table.features.rows)
        self._compiled: Compiled | None = None

    def load(self) -> Compiled:
        """Copy weights and state into compact memory; return the agent for compiled code."""
        param, group = self._param()
        weights = param.detach()[self._rows, 0].numpy()
        state = np.empty((len(weights), len(self.optimizer.State._fields)), weights.dtype)  # type: ignore[attr-defined]
        for field, tensor in enumerate(self.optimizer.state_of(param, group)):
            state[:, field] = tensor[self._rows, 0].numpy()
        features = self.network.features
        indices, x = np.zeros(features.n_features, np.int32), np.zeros(features.n_features, weights.dtype)
        ahead = self._looks_ahead()
        learning = memory(self.traces, len(weights), indices, x, features.capacity, ahead)
        floats = [weights.dtype.type(v) if isinstance(v, float) else v for v in self.optimizer.hyper(group)]
        params = self.optimizer.Params32 if weights.dtype == np.float32 else self.optimizer.Params
        hyper = [v.numpy() if isinstance(v, Tensor) else v for v in floats]  # shared numbers keep their memory
        self._compiled = Compiled(
            features=self._features,
            p=params(*hyper),
            output=OUTPUTS.index(self.network.output),
            cross_entropy=self.optimizer.cross_entropy,
            weights=weights,
            state=state,
            move_list=np.zeros(features.n_moves, np.int64),
            replies=np.zeros(features.n_moves, np.int64),
            results=np.zeros(features.n_moves),
            indices=indices,
            x=x,
            next_indices=np.zeros_like(indices) if ahead else None,
            memory=learning,
            lanes=np.zeros((1 + state.shape[1], len(learning.rows)), weights.dtype),
            lr=np.array([group["lr"]]),
            tactical=self.tactical,
        )
        return self._compiled

    def store(self) -> None:
        """Write weights, state and lr back to torch, if there is a compact copy."""
        if self._compiled is None:
            return
        param, group = self._param()
        param.detach()[self._rows, 0] = torch.from_numpy(self._compiled.weights)
        for field, tensor in enumerate(self.optimizer.state_of(param, group)):
            tensor[self._rows, 0] = torch.from_numpy(self._compiled.state[:, field].copy())
        group["lr"] = float(self._compiled.lr[0])
        self._compiled = None

    def forget(self) -> None:
        """Note that others changed the tensors: drop the compact copy."""
        self._compiled = None

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the compiled ``function(agent, *args)``."""
        return compile_function(function)(self._compiled or self.load(), *args)

    def move_values(self, board: PartBoard) -> npt.NDArray[np.float64]:
        """See ``Agent``."""
        values: npt.NDArray[np.float64] = self.run(afterstate_values, board)
        return values

    def _looks_ahead(self) -> bool:
        """Whether the next board matters; with a table per player, only if its weights learn too or have traces."""
        shared = self._features.begin_of(1) == self._features.begin_of(-1)
        wanted: StepSize = self.optimizer
        return wanted.looks_ahead and (wanted.learns_ahead or shared or self.traces is not None)

    def _param(self) -> tuple[Tensor, dict[str, Any]]:
        group = self.optimizer.param_groups[0]
        return group["params"][0], group
