"""Autostep: IDBD without a meta step size to tune (Mahmood, Sutton, Degris & Pilarski 2012)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import positive
from rlgames.optim.step_size import StepSize, Transition


class Normalized(NamedTuple):
    """State per weight: α step size, h decaying sum of the recent changes, v recent maximum of |δ x h|."""

    alpha: Any
    h: Any
    v: Any


class Autostep(StepSize):
    """Autostep (Mahmood et al. 2012, table 1), for linear units.

    v ← max(|δ x h|, v + α x² (|δ x h| - v) / τ)
    α ← α exp(μ δ x h / v)   where v > 0,   for all active weights
    α ← α / M,   M = max(Σ α x², 1),   w ← w + α δ x,   h ← h [1 - α x²]⁺ + α δ x

    M keeps a step from overshooting. It divides only the step sizes of active weights (x not 0), as in the authors'
    Connect-4 program: the cost of a step grows with the active weights. With a unit of slope y' the gradient y' x
    replaces x.

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0; Connect-4: 0.005.
        mu: meta step size μ, >= 0. The paper's default; Connect-4: 0.0001.
        tau: time constant τ of v in steps, > 0 (paper: 10,000).

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Normalized
    units = ("identity",)
    traced = False

    def __init__(self, params: Iterable[Any], lr: float = 0.05, mu: float = 0.01, tau: float = 1e4) -> None:
        mu = positive("mu", mu, zero=True)
        super().__init__(params, lr=positive("lr", lr), mu=mu, tau=positive("tau", tau, most=1e12))

    @staticmethod
    def initial(p: Any) -> Normalized:
        """α = lr, h = v = 0."""
        return Normalized(p.lr, 0.0, 0.0)

    @staticmethod
    def step_size(p: Any, s: Normalized) -> Any:
        """α."""
        return s.alpha

    @staticmethod
    def adapt(p: Any, s: Normalized, t: Transition) -> Normalized:
        """The new v, and α before the division by M."""
        change = t.delta * t.e * s.h
        size = torch.abs(change)
        v = torch.maximum(size, s.v + s.alpha * torch.square(t.e) * (size - s.v) / p.tau)
        return Normalized(s.alpha * torch.exp(p.mu * change / torch.clamp_min(v, 1e-37)), s.h, v)

    @staticmethod
    def total(p: Any, w: Any, s: Normalized, t: Transition) -> Any:
        """Summand of M."""
        return p.adapt(s, t).alpha * torch.square(t.e)

    @staticmethod
    def update(p: Any, w: Any, s: Normalized, t: Transition) -> tuple[Any, Normalized]:
        """See the class."""
        s = p.adapt(s, t)
        alpha = torch.where(t.e != 0, s.alpha / torch.clamp_min(t.sum, 1), s.alpha)
        step = alpha * t.delta * t.e
        return w + step, Normalized(alpha, s.h * torch.relu(1 - alpha * torch.square(t.e)) + step, s.v)
