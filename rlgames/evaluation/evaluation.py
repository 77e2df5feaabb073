"""The contract of evaluations: how good an agent is, and by which measures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rlgames.players.greedy import GreedyPlayer


class Measure(NamedTuple):
    """A figure that says how good an agent is.

    Attributes:
        name: of its column in rows of figures.
        label: what it is, for people.
        percent: whether it is a share, from 0 to 1, which people see in percent.
        more_is_better: else less is.
        low, high: columns of its 95 % interval; empty: it has none.
    """

    name: str
    label: str
    percent: bool = True
    more_is_better: bool = True
    low: str = ""
    high: str = ""

    def shown(self, row: Mapping[str, Any]) -> str:
        """It and its value in ``row``, such as "success 88.2 %"."""
        value = row.get(self.name)
        text = "-" if value is None else f"{100 * value:.1f} %" if self.percent else f"{value:.4g}"
        return f"{self.label} {text}"


class Evaluation(ABC):
    """Measures an agent, which always plays its best move. The constructor takes game and opponent.

    Attributes:
        measures: the main one first.
        columns: of the rows of figures.
        levels: of the main measure, in percent if it is a share; a run notes when it reaches each.
    """

    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    levels: tuple[int, ...] = ()

    @property
    def main(self) -> Measure:
        """The measure that makes the headlines."""
        return self.measures[0]

    @abstractmethod
    def scores(self, agent: GreedyPlayer, rng: np.random.Generator) -> dict[str, Any]:
        """What was found out about ``agent``, by name; all randomness comes from ``rng``, not the one of training."""

    @abstractmethod
    def flat(self, scores: dict[str, Any]) -> dict[str, float]:
        """What ``scores`` returned, as one row of figures; see ``columns``."""

    def records(self, agent: GreedyPlayer, rng: np.random.Generator) -> dict[str, float]:
        """Measure ``agent``; return the row of figures."""
        return self.flat(self.scores(agent, rng))

    @abstractmethod
    def headline(self, row: Mapping[str, Any]) -> str:
        """The main figures of a row, as text."""

    @abstractmethod
    def report(self, scores: dict[str, Any]) -> str:
        """What ``scores`` returned, as text."""

    @abstractmethod
    def sample(self, agent: GreedyPlayer, rng: np.random.Generator) -> str:
        """A game of the agent, as text."""
