"""Schedules: numbers that change with the games played, as plain functions of an array of game numbers (from 0)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Schedule = Callable[[npt.NDArray[np.int64]], Numbers]


@dataclass(frozen=True)
class Constant:
    """Always ``value``."""

    value: float

    def __call__(self, games: npt.NDArray[np.int64]) -> Numbers:
        """One number per game."""
        return np.full(len(games), float(self.value))


@dataclass(frozen=True)
class Linear:
    """Linear from ``start`` to ``end`` over ``games`` games, constant afterwards."""

    start: float
    end: float
    games: int

    def __post_init__(self) -> None:
        """Refuse no games."""
        _above_0(games=self.games)

    def __call__(self, games: npt.NDArray[np.int64]) -> Numbers:
        """One number per game."""
        return self.start + (self.end - self.start) * np.minimum(games / self.games, 1.0)


@dataclass(frozen=True)
class Exponential:
    """From ``start`` to ``end`` over ``games`` games, by the same factor per game; continues by it afterwards.

    The published TDL goes from 0.004 to 0.002 this way (Bagheri et al. 2015).
    """

    start: float
    end: float
    games: int

    def __post_init__(self) -> None:
        """Refuse numbers without a logarithm, and no games."""
        _above_0(start=self.start, end=self.end, games=self.games)

    def __call__(self, games: npt.NDArray[np.int64]) -> Numbers:
        """One number per game."""
        return np.asarray(self.start * (self.end / self.start) ** (games / self.games), np.float64)


@dataclass(frozen=True)
class Sigmoid:
    """From ``start`` to ``end`` along a tanh with its midpoint at game ``turn`` (Thill 2012, section 4.6.1).

    ε(n) = (start - end) / 2 (1 - tanh(slope (n - turn) / turn)) + end. The former TDL uses 0.6, 0.1, turn 1e6, slope 2.
    """

    start: float
    end: float
    turn: int
    slope: float = 2.0

    def __post_init__(self) -> None:
        """Refuse a curve that rises and falls otherwise than from ``start`` to ``end``."""
        _above_0(turn=self.turn, slope=self.slope)

    def __call__(self, games: npt.NDArray[np.int64]) -> Numbers:
        """One number per game."""
        fall = 1.0 - np.tanh(self.slope * (games - self.turn) / self.turn)
        return np.asarray((self.start - self.end) / 2 * fall + self.end, np.float64)


def _above_0(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} is {number}; it must be above 0")
