"""Alpha-bounds: one step size, as large as the steps so far allowed without overshooting (Dabney & Barto 2012)."""

from collections.abc import Iterable
from typing import Any

import torch

from rlgames.optim.checks import flag, positive
from rlgames.optim.step_size import NoState, StepSize, Transition


class AlphaBounds(StepSize):
    """Alpha-bounds, nonlinear form (Bagheri et al. 2015; Thill 2015, eq. 5.1).

    α ← min(α, 1 / |y' Σ e (γ x' - x)|),   w ← w + α δ e

    y' is the slope of the unit, x' the features of the next position. In Connect-4 without traces x' and e do not
    overlap: the tables of the two players share no weight. α never rises: a symmetric board with its features of 2
    bounds it for good (the empty Connect-4 board: to 1 / 280).

    Args:
        params: parameters or groups of them.
        lr: initial step size α, > 0 (paper: 1).
        original: Dabney & Barto's bound for linear units, applied only where Σ e (γ x' - x) < 0, i.e. where a step
            reduces the error. The published Connect-4 runs take the absolute value.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    shared = ("peak",)  # the largest sum so far; α = min(lr, 1 / peak)
    units = ("tanh", "identity")
    looks_ahead = True

    def __init__(self, params: Iterable[Any], lr: float = 1.0, original: bool = False) -> None:
        super().__init__(params, lr=positive("lr", lr), original=flag("original", original))

    @staticmethod
    def step_size(p: Any, s: NoState) -> Any:
        """α, the same for all weights."""
        return 1 / torch.clamp_min(p.peak[()], 1 / p.lr)

    @staticmethod
    def total(p: Any, w: Any, s: NoState, t: Transition) -> Any:
        """Summand of the bound."""
        return t.slope * t.e * (t.x_next - t.x)

    @staticmethod
    def update(p: Any, w: Any, s: NoState, t: Transition) -> tuple[Any, NoState]:
        """See the class; every weight computes the same peak."""
        p.peak[()] = torch.maximum(p.peak[()], -t.sum if p.original else torch.abs(t.sum))
        return w + p.step_size(s) * t.delta * t.e, s
