"""The contract of agents, and of what the functions that they run are handed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

if TYPE_CHECKING:
    from rlgames.games.game import Board, PartBoard

B = TypeVar("B", bound="Board", contravariant=True)
Floats = npt.NDArray[np.floating[Any]]


class Values(Protocol):
    """What a player asks of an agent, in Python or compiled."""

    def best(self, board: "PartBoard") -> tuple[int, float]:
        """The best move, and the value it leads to."""


class Afterstates(Values, Protocol):
    """An agent that values the boards after moves; a search looks further with it.

    All values are from the first player's view.
    """

    @property
    def move_list(self) -> npt.NDArray[np.int64]:
        """Room for the legal moves of a board, ``[n_moves]``."""

    @property
    def replies(self) -> npt.NDArray[np.int64]:
        """Room for the opponent's legal moves, ``[n_moves]``."""

    @property
    def tactical(self) -> bool:
        """Whether it avoids moves that let the opponent win at once; see ``rlgames.policy.best_move``."""

    def sums(self, board: "PartBoard", moves: npt.NDArray[np.int64]) -> Floats:
        """The sum of weights, before the output unit, of the board after each of ``moves``, none of which ends it."""

    def unit(self, f: float) -> float:
        """The value of the sum ``f``."""

    def target(self, reward: float) -> float:
        """A reward from -1 to +1 on the scale of the values."""


class Learning(Afterstates, Protocol):
    """An agent that learns, one board at a time: what the loop of a learner is handed, in Python or compiled."""

    def begin(self) -> None:
        """Start a game and end all traces."""

    def learn(self, board: "PartBoard", target: float, after: "PartBoard | None" = None, gamma: float = 0.0) -> float:
        """Move the value of ``board`` one step of the rule towards ``target``; return the TD error before the step.

        Args:
            board: the board.
            target: what its value should be.
            after: the next board, for rules that look ahead.
            gamma: how much of its value is in ``target``; 0 if the game is over.
        """

    def explored(self, board: "PartBoard") -> None:
        """Note an exploratory move in ``board``: nothing is learned, but traces continue (or end)."""

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""


class Agent(ABC, Generic[B]):
    """Value and learning. Whatever plays or learns is a function, which ``run`` calls with the agent.

    Attributes:
        network: what values boards.
        optimizer: what changes it; None: the learner does so itself.
        afterstates: whether the functions that it runs are handed ``Afterstates``; such an agent can look ahead, and
            play with the mean of its weights.
    """

    afterstates: ClassVar[bool] = True
    network: nn.Module
    optimizer: torch.optim.Optimizer | None

    @abstractmethod
    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(agent, *args)``, in Python or compiled."""

    @abstractmethod
    def move_values(self, board: B) -> npt.NDArray[np.float64]:
        """Value of each legal move for the player to move, from -1 (lost) to +1 (won) unless a network goes beyond."""

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        for group in self.optimizer.param_groups if self.optimizer else ():
            group["lr"] = float(lr)

    def store(self) -> None:
        """Bring all that was learned into the tensors of network and optimizer."""

    def forget(self) -> None:
        """Note that others changed these tensors."""
