"""The agent in plain torch: easy to read, and for every device."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rlgames.networks.table import ValueNetwork
from rlgames.optim.step_size import DivergenceError, StepSize
from rlgames.policy import best_move
from rlgames.traces import Traces

Floats = npt.NDArray[np.floating[Any]]


class Eager:
    """Learns with plain torch, on any device, with one of our step-size rules or any torch optimizer.

    Args:
        network: the value network.
        optimizer: over the network's parameters.
        traces: kind of eligibility traces, None for lambda 0.
        tactical: avoid moves that let the opponent win at once; see ``rlgames.policy.best_move``.

    Raises:
        ValueError: for traces with an optimizer that is not defined with them.
    """

    def __init__(
        self,
        network: ValueNetwork,
        optimizer: torch.optim.Optimizer,
        traces: Traces | None = None,
        tactical: bool = False,
    ) -> None:
        check_traces(optimizer, traces)
        self.network, self.optimizer, self.traces, self.tactical = network, optimizer, traces, tactical
        self.move_list, self.replies = (np.empty(network.features.n_moves, np.int64) for _ in range(2))

    @torch.no_grad()
    def sums(self, board: Any, moves: npt.NDArray[np.int64]) -> Floats:
        """Sums of weights after each of ``moves``, none of which may end the game; ``[len(moves)]`` float64."""
        after = self.network.indices(*(board.play(int(move)) for move in moves))
        sums: Floats = self.network.linear(after).double().cpu().numpy()
        return sums

    def best(self, board: Any) -> tuple[int, float]:
        """The best move, and the value it leads to."""
        return best_move(self, board)

    def unit(self, f: float) -> float:
        """Value of the sum ``f``."""
        return self.network.unit(torch.tensor(f, dtype=torch.float64)).item()

    def begin(self) -> None:
        """Start a game."""
        if isinstance(self.optimizer, StepSize):
            self.optimizer.end_traces()

    def learn(self, board: Any, target: float, after: Any = None, gamma: float = 0.0) -> float:
        """Move the value of ``board`` towards ``target``; return the TD error before the step.

        Args:
            board: the board.
            target: what its value should be.
            after: the next board, for rules that look ahead.
            gamma: how much of its value is in ``target``; 0 if the game is over.
        """
        f = self.network.linear(self.network.indices(board))
        v = self.network.unit(f)
        delta = target - v.item()
        if not math.isfinite(delta):
            return delta  # the learner's sum of errors shows it and stops the run
        self.optimizer.zero_grad()
        if isinstance(self.optimizer, StepSize):
            f.sum().backward()  # type: ignore[no-untyped-call]
            ahead = self._gradients(after, gamma) if self.optimizer.looks_ahead and gamma else ()
            try:
                self.optimizer.step(delta, slope(self.network.output, v.item()), traces=self.traces, next_grads=ahead)
            except DivergenceError:
                return math.nan
        else:
            (-delta * v.sum()).backward()  # type: ignore[no-untyped-call]  # the gradient of half the squared TD error, with the target fixed
            self.optimizer.step()
        return delta

    def _gradients(self, board: Any, factor: float) -> tuple[torch.Tensor, ...]:
        """Gradients of ``factor`` times the sum of weights of ``board``."""
        f = factor * self.network.linear(self.network.indices(board)).sum()
        return torch.autograd.grad(f, list(self.network.parameters()))

    def explored(self, board: Any) -> None:
        """Note an exploratory move in ``board``."""
        if self.traces is None or not isinstance(self.optimizer, StepSize):
            return
        if self.traces.resetting:
            self.optimizer.end_traces()
            return
        f = self.network.linear(self.network.indices(board))
        self.optimizer.zero_grad()
        f.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.add_traces(self.traces, slope(self.network.output, self.network.unit(f).item()))

    def target(self, reward: float) -> float:
        """``reward`` on the scale of the output unit."""
        return target(self.network.output, reward)

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        for group in self.optimizer.param_groups:
            group["lr"] = float(lr)

    def forget(self) -> None:
        """Note that others changed the tensors: nothing to do, as this agent keeps no copy."""

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(agent, *args)``."""
        return function(self, *args)


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


def slope(output: str, v: float) -> float:
    """Derivative of the output unit where its value is ``v``."""
    return 1.0 if output == "identity" else 1.0 - v * v if output == "tanh" else v * (1.0 - v)


def target(output: str, reward: float) -> float:
    """A reward from -1 to +1 as a target of the output unit; sigmoid units predict from 0 to 1."""
    return (reward + 1) / 2 if output == "sigmoid" else reward
