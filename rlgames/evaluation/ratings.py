"""Elo ratings of many players, from the points they scored against one another."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

POINTS_PER_UNIT = 400 / math.log(10)  # Elo points per unit of the logistic function's argument
PRIOR = 1.0  # extra draws between any two players who met; without them, winning every game would mean infinite Elo

Matrix = npt.NDArray[np.floating[Any]]


class Rating(NamedTuple):
    """How strong a player is.

    Attributes:
        elo: relative to the mean of all players.
        low, high: 95 % interval.
    """

    elo: float
    low: float
    high: float


def ratings(points: Matrix, games: Matrix) -> list[Rating]:
    """The most probable Elo ratings: P(i beats j) = 1 / (1 + 10^((R_j - R_i) / 400)), where a draw is half a win.

    This is the model of Bradley and Terry (1952), with one extra draw between any two players who met as a prior,
    solved by Newton's method. The interval is that of the normal distribution with the curvature at the maximum; games
    count as independent, and draws make it a little too wide.

    Args:
        points: of player i against player j, ``[n, n]``: a win 1, a draw 1/2.
        games: number of games between them, ``[n, n]``, symmetric.

    Raises:
        ValueError: if the games do not connect all players.
    """
    met = games > 0
    if not (np.linalg.matrix_power(met + np.eye(len(games)), len(games)) > 0).all():
        raise ValueError("ratings need games that connect all players")
    points, games = points + PRIOR / 2 * met, games + PRIOR * met
    strengths = np.zeros(len(games))
    for _ in range(1000):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        spread = games * chance * (1 - chance)
        covariance = np.linalg.pinv(np.diag(spread.sum(1)) - spread, hermitian=True)
        step = covariance @ (points - games * chance).sum(1)
        strengths += step / max(1.0, np.abs(step).max())  # far from the maximum, a full step may overshoot
        if np.abs(step).max() < 1e-10:
            break
    half = 1.96 * np.sqrt(np.diag(covariance))
    bounds = (strengths, strengths - half, strengths + half)
    return [Rating(*map(float, row)) for row in POINTS_PER_UNIT * np.stack(bounds, 1)]
