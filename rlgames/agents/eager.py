"""The agent in plain torch: easy to read, and for every device."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlgames.agents.agent import Agent, Floats
from rlgames.features.features import Features
from rlgames.games.game import PartBoard
from rlgames.networks.network import target
from rlgames.networks.table import ValueNetwork, split
from rlgames.optim.step_size import DivergenceError, StepSize
from rlgames.policy import afterstate_values, best_move
from rlgames.traces import Traces


class Eager(Agent[PartBoard]):
    """Learns with plain torch, on any device, with one of our step-size rules or any torch optimizer.

    Args:
        network: any module; see ``rlgames.networks.network.Network``.
        optimizer: over the network's parameters.
        traces: kind of eligibility traces, None for lambda 0.
        tactical: avoid moves that let the opponent win at once; see ``rlgames.policy.best_move``.
        features: what the network reads; None: those of a ``ValueNetwork``.

    Raises:
        ValueError: for traces with an optimizer that is not defined with them, or if there are no features.
    """

    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        traces: Traces | None = None,
        tactical: bool = False,
        features: Features[Any] | None = None,
    ) -> None:
        check_traces(optimizer, traces)
        self.network, self.optimizer, self.traces, self.tactical = network, optimizer, traces, tactical
        self.features, self._split = features_of(network, features), split(network)
        self.move_list, self.replies = (np.empty(self.features.n_moves, np.int64) for _ in range(2))

    def _sums(self, *boards: PartBoard) -> Tensor:
        """Sums before the output unit of ``boards``; ``[len(boards)]``."""
        weight = next(self.network.parameters())
        return self._split.linear(self.features.encode(boards).to(weight.device))

    @torch.no_grad()
    def sums(self, board: PartBoard, moves: npt.NDArray[np.int64]) -> Floats:
        """Sums of weights after each of ``moves``, none of which may end the game; ``[len(moves)]`` float64."""
        sums: Floats = self._sums(*(board.play(int(move)) for move in moves)).double().cpu().numpy()
        return sums

    def best(self, board: PartBoard) -> tuple[int, float]:
        """The best move, and the value it leads to."""
        return best_move(self, board)

    def unit(self, f: float) -> float:
        """Value of the sum ``f``."""
        return self._split.unit(torch.tensor(f, dtype=torch.float64)).item()

    def begin(self) -> None:
        """Start a game."""
        if isinstance(self.optimizer, StepSize):
            self.optimizer.end_traces()

    def learn(self, board: PartBoard, target: float, after: PartBoard | None = None, gamma: float = 0.0) -> float:
        """Move the value of ``board`` towards ``target``; return the TD error before the step.

        Args:
            board: the board.
            target: what its value should be.
            after: the next board, for rules that look ahead.
            gamma: how much of its value is in ``target``; 0 if the game is over.
        """
        f = self._sums(board)
        v = self._split.unit(f)
        delta = target - v.item()
        if not math.isfinite(delta):
            return delta  # the learner's sum of errors shows it and stops the run
        self.optimizer.zero_grad()
        if isinstance(self.optimizer, StepSize):
            f.sum().backward()  # type: ignore[no-untyped-call]
            ahead = self._gradients(after, gamma) if self.optimizer.looks_ahead and after and gamma else ()
            try:
                self.optimizer.step(delta, self._split.slope(v.item()), traces=self.traces, next_grads=ahead)
            except DivergenceError:
                return math.nan
        else:
            (-delta * v.sum()).backward()  # type: ignore[no-untyped-call]  # the gradient of half the squared TD error, with the target fixed
            self._step()
        return delta

    def _step(self) -> None:
        try:
            self.optimizer.step()
        except RuntimeError as error:  # such as Adam and sparse gradients
            raise ValueError(f"optimizer: {type(self.optimizer).__name__} cannot make its step: {error}") from error

    def _gradients(self, board: PartBoard, factor: float) -> tuple[torch.Tensor, ...]:
        """Gradients of ``factor`` times the sum of weights of ``board``."""
        f = factor * self._sums(board).sum()
        return torch.autograd.grad(f, list(self.network.parameters()))

    def explored(self, board: PartBoard) -> None:
        """Note an exploratory move in ``board``."""
        if self.traces is None or not isinstance(self.optimizer, StepSize):
            return
        if self.traces.resetting:
            self.optimizer.end_traces()
            return
        f = self._sums(board)
        self.optimizer.zero_grad()
        f.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.add_traces(self.traces, self._split.slope(self._split.unit(f).item()))

    def target(self, reward: float) -> float:
        """``reward`` on the scale of the output unit."""
        return target(self._split.output, reward)

    def move_values(self, board: PartBoard) -> npt.NDArray[np.float64]:
        """See ``Agent``."""
        return afterstate_values(self, board)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(agent, *args)``."""
        return function(self, *args)


def features_of(network: nn.Module, features: Features[Any] | None) -> Features[Any]:
    """``features``, or else those of the network.

    Raises:
        ValueError: if there are none.
    """
    if features is not None:
        return features
    if isinstance(network, ValueNetwork):
        return network.features
    raise ValueError(f"features is None, and {type(network).__name__} names none; give the features that it reads")


def check_traces(optimizer: torch.optim.Optimizer, traces: Traces | None) -> None:
    """Refuse ``traces`` for an optimizer that is not defined with them.

    Raises:
        ValueError: naming the optimizer.
    """
    if traces is None:
        return
    if not isinstance(optimizer, StepSize):
        name = type(optimizer).__name__
        raise ValueError(f"learner.lambda_ above 0 needs eligibility traces, with which {name} is not defined")
    optimizer.check_traces(traces)
