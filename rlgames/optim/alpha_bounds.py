"""Alpha-bounds: one step size, as large as the steps so far allowed without overshooting (Dabney & Barto 2012)."""

from collections.abc import Iterable
from typing import Any

import torch

from rlgames.optim.checks import positive
from rlgames.optim.step_size import NoState, StepSize, Transition


class AlphaBounds(StepSize):
    """Alpha-bounds, nonlinear form (Bagheri et al. 2015; Thill 2015, eq. 5.1). On a linear unit it is the original.

    α ← min(α, 1 / |y' Σ e x|),   w ← w + α δ e

    y' is the slope of the unit. The bound of the papers is |y' Σ e (γ x' - x)| with the features x' of the next
    position; here those are taken not to meet e, as in Connect-4, where the tables of the two players have no weight
    in common. α never rises: a symmetric board with its features of 2 bounds it for good (the empty Connect-4 board to
    1 / 280).

    Args:
        params: parameters or groups of them.
        lr: initial step size α, > 0.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    shared = ("peak",)  # the largest |y' Σ e x| so far; α = min(lr, 1 / peak)
    units = ("tanh", "identity")

    def __init__(self, params: Iterable[Any], lr: float = 1.0) -> None:
        super().__init__(params, lr=positive("lr", lr))

    @staticmethod
    def step_size(p: Any, s: NoState) -> Any:
        """α, the same for all weights."""
        return 1 / torch.clamp_min(p.peak[()], 1 / p.lr)

    @staticmethod
    def total(p: Any, w: Any, s: NoState, t: Transition) -> Any:
        """Summand of the bound."""
        return t.e * t.slope * t.x

    @staticmethod
    def update(p: Any, w: Any, s: NoState, t: Transition) -> tuple[Any, NoState]:
        """See the class; every weight finds the same peak."""
        p.peak[()] = torch.maximum(p.peak[()], torch.abs(t.sum))
        return w + p.step_size(s) * t.delta * t.e, s
