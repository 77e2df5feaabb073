"""Stochastic meta-descent: IDBD with the whole curvature instead of its diagonal (Schraudolph 1999; Thill 2015)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import between, flag, positive
from rlgames.optim.step_size import StepSize, Transition


class Gains(NamedTuple):
    """State per weight: α step size, h decaying sum of the recent weight changes."""

    alpha: Any
    h: Any


class SMD(StepSize):
    """Stochastic meta-descent for logistic units and the cross-entropy loss (Thill 2015, A.4). Targets are from 0 to 1.

    α ← α max(1/2, 1 + θ δ e h),   w ← w + α δ e,   h ← μ h - μ α V (1 - V) e Σ h x + α δ e

    e is (the trace of) x without the slope of the unit. Where e is 0, nothing changes, not even h for μ < 1. As a plain
    torch optimizer: ``grad`` is the gradient of the sum before the unit, and ``step(delta, slope)`` takes V (1 - V).

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0. Defaults of lr and theta are those of IDBD; Connect-4: 0.0302.
        theta: meta step size θ, >= 0; Connect-4: 3.1.
        mu: share of h kept per step, 0 to 1.
        extra_x: sum x² h, as the authors' Connect-4 program does, instead of the published x h. It differs only where
            an index occurs twice (x = 2, symmetric boards).

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Gains
    units = ("sigmoid",)
    cross_entropy = True

    def __init__(
        self, params: Iterable[Any], lr: float = 0.01, theta: float = 0.003, mu: float = 1.0, extra_x: bool = False
    ) -> None:
        lr, theta = positive("lr", lr), positive("theta", theta, zero=True)
        super().__init__(params, lr=lr, theta=theta, mu=between("mu", mu, 0, 1), extra_x=flag("extra_x", extra_x))

    @staticmethod
    def initial(p: Any) -> Gains:
        """α = lr, h = 0."""
        return Gains(p.lr, 0.0)

    @staticmethod
    def step_size(p: Any, s: Gains) -> Any:
        """α."""
        return s.alpha

    @staticmethod
    def total(p: Any, w: Any, s: Gains, t: Transition) -> Any:
        """Summand of Σ h x."""
        return s.h * t.x * t.x if p.extra_x else s.h * t.x

    @staticmethod
    def update(p: Any, w: Any, s: Gains, t: Transition) -> tuple[Any, Gains]:
        """See the class."""
        alpha = s.alpha * torch.clamp_min(1 + p.theta * t.delta * t.e * s.h, 0.5)
        step = alpha * t.delta * t.e
        h = p.mu * (s.h - alpha * t.slope * t.e * t.sum) + step
        return w + step, Gains(alpha, torch.where(t.e != 0, h, s.h))
