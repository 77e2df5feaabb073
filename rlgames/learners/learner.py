"""The contract of learners: they play games with an agent and teach it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rlgames.agents.agent import Agent
from rlgames.episodes import Episodes
from rlgames.features.features import Features
from rlgames.schedules import Constant, Schedule
from rlgames.traces import Traces

Numbers = npt.NDArray[np.floating[Any]]


class Learner(ABC):
    """Plays games and learns from them. The constructor takes the game, and whatever its yaml names.

    Only ``train`` has to be written. What is the agent's, such as the values of moves, is not asked of a learner.

    Attributes:
        brings: parts that it brings itself, of features, network and optimizer; they are not built from conf/.
        network: the network, if it brings one.
        lr: factor on the optimizer's lr, by game number.
        traces: kind of eligibility traces of the agent; None for lambda 0.
        tactical: whether the agent avoids moves that let the opponent win at once.
        chunk: number of games that belong together: what is learned depends on where its multiples fall.
    """

    brings: ClassVar[tuple[str, ...]] = ()
    network: nn.Module
    lr: Schedule = Constant(1.0)
    traces: Traces | None = None
    tactical: bool = False
    chunk: int = 1

    @abstractmethod
    def train(self, agent: Any, first_game: int, games: int, lr: float, rng: np.random.Generator) -> Episodes:
        """Play ``games`` games and learn from them; stop after a game in which a value was not finite.

        Args:
            agent: the agent.
            first_game: number of games played before, on which schedules depend.
            games: number of games to play.
            lr: the optimizer's lr, which the schedule multiplies.
            rng: source of all randomness.
        """

    def agent(
        self, engine: str, network: nn.Module, optimizer: torch.optim.Optimizer | None, features: Features[Any] | None
    ) -> Agent[Any] | None:
        """The agent that plays and learns with ``network``; None: that of ``engine``.

        Raises:
            ValueError: if it cannot learn with ``network``.
        """
        return None

    def curves(self, games: npt.NDArray[np.int64], lr: float = 1.0) -> dict[str, Numbers]:
        """Values of the schedules at ``games`` (from 0), given the optimizer's ``lr``; the first one is shown.

        Raises:
            ValueError: if a schedule leaves its range.
        """
        return {"lr": positive_factors("learner.lr", self.lr(games), games) * lr}

    def look(self, agent: Any, games: int) -> dict[str, Any]:
        """Figures, texts and pictures for the dashboard after ``games`` games, beyond the trainer's own."""
        return {}

    def state_dict(self) -> dict[str, Any] | None:
        """What a checkpoint must hold besides network and optimizer; None: nothing."""
        return None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what ``state_dict`` returned."""

    def open_folder(self, folder: Path, games: int) -> None:
        """Write what is worth keeping of the games into the run ``folder``, which may hold that of ``games`` games."""

    def close(self) -> None:
        """End all processes: the run is over."""


def positive_factors(key: str, factors: Numbers, games: npt.NDArray[np.int64]) -> Numbers:
    """``factors``, which a schedule gave at ``games``.

    Raises:
        ValueError: for one that is not above 0 and finite, naming ``key`` and the game.
    """
    for k in np.flatnonzero(~((factors > 0) & np.isfinite(factors)))[:1]:
        raise ValueError(f"{key} is {factors[k]:g} at game {games[k]}; it must be finite and above 0")
    return factors


def adopted(cls: type) -> type[Learner]:
    """``cls`` as a learner: itself, or, if it only has a ``train``, with all that it lacks from ``Learner``.

    Raises:
        ValueError: if it has no ``train``.
    """
    if issubclass(cls, Learner):
        return cls
    if "train" not in dir(cls):
        raise ValueError(f"learner._target_ is {cls.__name__}, which is not a learner: it has no method train")
    return type(cls.__name__, (cls, Learner), {"__module__": cls.__module__, "__doc__": cls.__doc__})
