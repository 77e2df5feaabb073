"""Agents: value and learning, twice. ``Eager`` is plain torch for everyone to read; ``Fused`` compiles the same steps.

Both offer what learners and players call:

* ``values(board, moves)``: values of the boards after each of ``moves``;
* ``observe(board)``: the value of ``board``, remembered as the board to learn about;
* ``learn(delta)``: move that value by one step of the rule; 
* ``target(reward)``: a reward from -1 to +1 on the scale of the output unit;
* ``set_lr(lr)``.

Values are the first player's throughout.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import compilable, compile_function, value
from rlgames.network import OUTPUTS, ValueNetwork
from rlgames.optim.step_size import StepSize, Transition

Floats = npt.NDArray[np.floating[Any]]


class Eager:
    """Learns with plain torch, on any device, with a step-size rule of ours or any optimizer of torch.

    Args:
        network: the value network.
        optimizer: over the network's parameters.
    """

    def __init__(self, network: ValueNetwork, optimizer: torch.optim.Optimizer) -> None:
        self.network, self.optimizer = network, optimizer
        self._observed: tuple[Tensor, Tensor] | None = None  # sum before the output unit, value

    def values(self, board: Any, moves: npt.NDArray[np.int64]) -> Floats:
        """Values after each of ``moves``, none of which may end the game; ``[len(moves)]`` float64."""
        values: Floats = self.network.value(*(board.play(int(move)) for move in moves)).double().cpu().numpy()
        return values

    def observe(self, board: Any) -> float:
        """Value of ``board``; the next ``learn`` is about it."""
        f = self.network.linear(self.network.indices(board))
        v = self.network.unit(f)
        self._observed = f, v
        return v.item()

    def learn(self, delta: float) -> None:
        """Move the value of the observed board by TD error ``delta``."""
        assert self._observed is not None, "observe a board first"
        f, v = self._observed
        self.optimizer.zero_grad()
        if isinstance(self.optimizer, StepSize):
            f.sum().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step(delta, slope(self.network.output, v.item()))
        else:
            (-delta * v.sum()).backward()  # the gradient of half the squared TD error, the target being fixed
            self.optimizer.step()

    def target(self, reward: float) -> float:
        """``reward`` on the scale of the output unit."""
        return target(self.network.output, reward)

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def run(self, text: Callable[..., Any], *args: Any) -> Any:
        """Call ``text(agent, *args)``."""
        return text(self, *args)


def slope(output: str, v: float) -> float:
    """Derivative of the output unit where its value is ``v``."""
    return 1.0 if output == "identity" else 1.0 - v * v if output == "tanh" else v * (1.0 - v)


def target(output: str, reward: float) -> float:
    """A reward from -1 to +1 as a target of the output unit: sigmoid units predict from 0 to 1."""
    return (reward + 1) / 2 if output == "sigmoid" else reward


@value
class Compiled(NamedTuple):
    """The agent inside compiled code; see the module for its methods.

    Attributes:
        features: the compiled side of the features.
        p: hyper-parameters of the rule, in the precision of the weights.
        unit: index of the output unit in ``OUTPUTS``.
        table: ``[rows, 1 + state]``, a weight and its state side by side in memory (one cache line serves an update).
        indices: ``[n_features]``, rows of the observed board.
        x: ``[n_features]``, how often each of them stands there.
        lanes: ``[1 + state, n_features]``, what ``table`` holds for the active rows.
        rows: ``[n_moves + 1, n_features]``, rows of the boards after each move, and before.
        observed: slope of the output unit at the observed board, lr.
    """

    features: Any
    p: Any
    unit: int
    table: Floats
    indices: npt.NDArray[np.int32]
    x: Floats
    lanes: Floats
    rows: npt.NDArray[np.int32]
    observed: npt.NDArray[np.float64]

    def values(self, board: Any, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Values after each of ``moves``, none of which may end the game."""
        rows = self.rows[: len(moves) + 1]
        self.features.active(board, rows[-1])
        for k in range(len(moves)):
            self.features.moved(board, board.play(moves[k]), moves[k], rows[-1], rows[k])
        values = table_sums(self.table, rows[:-1])
        for k in range(len(moves)):
            values[k] = squash(self.unit, values[k])
        return values

    def observe(self, board: Any) -> float:
        """Value of ``board``; the next ``learn`` is about it."""
        self.features.active(board, self.indices)
        f = table_sum(self.table, self.indices)
        v = squash(self.unit, f)
        self.observed[0] = 1.0 if self.unit == 0 else 1.0 - v * v if self.unit == 1 else v * (1.0 - v)
        return v

    def learn(self, delta: float) -> None:
        """Move the value of the observed board by TD error ``delta``."""
        multiplicity(self.indices, self.features.images, self.x)
        for j in range(len(self.indices)):
            self.p.gather(self.table, np.uint32(self.indices[j]), self.lanes, j)
        number = self.lanes.dtype.type
        update(
            self.p.with_lr(number(self.observed[1])), self.lanes, self.x, number(delta), number(self.observed[0])
        )
        for j in range(len(self.indices)):
            self.p.scatter(self.lanes, j, self.table, np.uint32(self.indices[j]))

    def target(self, reward: float) -> float:
        """``reward`` on the scale of the output unit."""
        return (reward + 1.0) / 2.0 if self.unit == 2 else reward

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        self.observed[1] = lr


@compilable
def squash(unit: int, f: float) -> float:
    """The output unit."""
    return f if unit == 0 else math.tanh(f) if unit == 1 else 1.0 / (1.0 + math.exp(-f))


@compilable
def table_sums(table: Floats, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Sums of the weights in each line of ``rows`` (``[lines, n_features]``).

    Four sums at a time: one chain of additions alone would wait for itself, and boards one move apart share most rows.
    """
    sums = np.empty(len(rows), np.float64)
    last = len(rows) - 1
    for k in range(0, len(rows), 4):
        r0, r1, r2, r3 = rows[k], rows[min(k + 1, last)], rows[min(k + 2, last)], rows[min(k + 3, last)]
        s0 = s1 = s2 = s3 = table[0, 0] * 0
        for f in range(rows.shape[1]):
            s0 += table[np.uint32(r0[f]), 0]
            s1 += table[np.uint32(r1[f]), 0]
            s2 += table[np.uint32(r2[f]), 0]
            s3 += table[np.uint32(r3[f]), 0]
        sums[k], sums[min(k + 1, last)], sums[min(k + 2, last)], sums[min(k + 3, last)] = s0, s1, s2, s3
    return sums


@compilable
def table_sum(table: Floats, rows: npt.NDArray[np.int32]) -> float:
    """Sum of the weights in ``rows``, in two chains of additions."""
    even = odd = table[0, 0] * 0
    for f in range(0, len(rows) - 1, 2):
        even += table[np.uint32(rows[f]), 0]
        odd += table[np.uint32(rows[f + 1]), 0]
    return even + odd + (table[np.uint32(rows[-1]), 0] if len(rows) & 1 else 0)


@compilable
def multiplicity(indices: npt.NDArray[np.int32], images: int, x: Floats) -> None:
    """Write into ``x`` how often each of ``indices`` stands there.

    Only the ``images`` indices of one tuple, side by side, can coincide. Each keeps its lane: lanes of one weight hold the
    same numbers, so they compute the same update.
    """
    for first in range(0, len(indices), images):
        for f in range(first, first + images):
            count = 0
            for g in range(first, first + images):
                count += indices[f] == indices[g]
            x[f] = count


@compilable
def update(p: Any, lanes: Floats, x: Floats, delta: float, slope: float) -> None:
    """Apply the rule to every lane."""
    total = p.sum_total(lanes, x, delta, slope)
    for j in range(len(x)):
        w, s = p.update(lanes[0, j], p.load(lanes, j), Transition(delta, slope, x[j], slope * x[j], total))
        p.store(lanes, j, w, s)


class Fused:
    """Learns in compiled code on the CPU. The weights and the optimizer's state stay torch tensors.

    Compiled code works on a compact copy: ``load`` makes it, ``store`` writes it back. In between the tensors are out of
    date; ``run`` does both.

    Args:
        network: the value network, on the CPU.
        optimizer: one of this package's rules, over the network's parameters.

    Raises:
        ValueError: for an optimizer without compiled form, or a network on another device.
    """

    def __init__(self, network: ValueNetwork, optimizer: torch.optim.Optimizer) -> None:
        if not isinstance(optimizer, StepSize):
            raise ValueError(f"engine=fused has no compiled form of {type(optimizer).__name__}; use engine=eager")
        if network.embedding.weight.device.type != "cpu":
            raise ValueError(f"engine=fused runs on device=cpu, not {network.embedding.weight.device}; use engine=eager")
        self.network, self.optimizer = network, optimizer
        self._rows = torch.from_numpy(network.features.rows)
        self._compiled: Compiled | None = None

    def load(self) -> Compiled:
        """Copy weights and state into compact memory; the agent for compiled code."""
        param, group = self._param()
        tensors = [param.detach(), *self.optimizer.state_of(param, group)]
        table = torch.stack([tensor[self._rows, 0] for tensor in tensors], dim=1).contiguous().numpy()
        features, n = self.network.features.compact, self.network.features.n_features
        floats = [table.dtype.type(v) if isinstance(v, float) else v for v in self.optimizer.hyper(group)]
        self._compiled = Compiled(
            features=features,
            p=self.optimizer.Params(*floats),
            unit=OUTPUTS.index(self.network.output),
            table=table,
            indices=np.zeros(n, np.int32),
            x=np.zeros(n, table.dtype),
            lanes=np.zeros((table.shape[1], n), table.dtype),
            rows=np.zeros((len(features.lines) + 1, n), np.int32),
            observed=np.array([1.0, group["lr"]]),
        )
        return self._compiled

    def store(self) -> None:
        """Write weights, state and lr back to torch."""
        assert self._compiled is not None, "load first"
        param, group = self._param()
        tensors = [param.detach(), *self.optimizer.state_of(param, group)]
        for tensor, column in zip(tensors, torch.from_numpy(self._compiled.table).unbind(1), strict=True):
            tensor[self._rows, 0] = column
        group["lr"] = float(self._compiled.observed[1])
        self._compiled = None

    def run(self, text: Callable[..., Any], *args: Any) -> Any:
        """Call the compiled ``text(agent, *args)``."""
        return compile_function(text)(self._compiled or self.load(), *args)

    def _param(self) -> tuple[Tensor, dict[str, Any]]:
        group = self.optimizer.param_groups[0]
        return group["params"][0], group
