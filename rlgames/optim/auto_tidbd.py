"""AutoTIDBD: TIDBD without a meta step size to tune (Kearney et al. 2018), as Autostep is IDBD without one."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import flag, positive
from rlgames.optim.step_size import StepSize
from rlgames.optim.transition import Transition


class Normalized(NamedTuple):
    """State per weight: β log step size, h sum of recent changes, v recent maximum of |δ d h|, z trace one step ago."""

    beta: Any
    h: Any
    v: Any
    z: Any


class AutoTIDBD(StepSize):
    """AutoTIDBD(λ) (Kearney et al. 2018), for linear units. d = x - γ x' is how much δ falls per unit of weight.

    v ← max(|δ d h|, v + α d z (|δ x h| - v) / τ),   β ← β + θ δ d h / v   where v > 0,   for all weights
    β ← β - ln M,   M = max(Σ exp(β) d z, 1),   α = exp(β)
    z ← e,   w ← w + α δ e,   h ← h [1 - α d e]⁺ + α δ e

    v begins at 0 (alberta-framework: at 1), so the first change of β is ±θ. z is the trace before the present
    features are added: without traces it is 0, and neither M nor the second part of v acts. x' are the features of
    the next position; weights active only there learn too. M divides only the step sizes of weights that take
    part (x, x' or e not 0), so the cost of a step grows with their number. With a unit of slope y' the gradient y' x
    replaces x.

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0; Connect-4: 0.005.
        theta: meta step size θ, >= 0 (paper: 0.01).
        tau: time constant τ of v in steps, > 0 (paper: 10,000).
        old_trace: z as published; False uses e instead, so that M bounds the actual step, even without traces.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Normalized
    units = ("identity",)
    transient = ("z",)
    looks_ahead = True
    learns_ahead = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        theta: float = 0.01,
        tau: float = 1e4,
        old_trace: bool = True,
    ) -> None:
        hyper = {"theta": positive("theta", theta, zero=True), "tau": positive("tau", tau, most=1e12)}
        super().__init__(params, lr=positive("lr", lr), **hyper, old_trace=flag("old_trace", old_trace))

    @staticmethod
    def initial(p: Any) -> Normalized:
        """β = ln(lr), h = v = z = 0."""
        return Normalized(math.log(p.lr), 0.0, 0.0, 0.0)

    @staticmethod
    def step_size(p: Any, s: Normalized) -> Any:
        """exp(β)."""
        return torch.exp(s.beta)

    @staticmethod
    def adapt(p: Any, s: Normalized, t: Transition) -> Normalized:
        """The new v and z, and β before the division by M."""
        x, d, z = t.slope * t.x, t.slope * (t.x - t.x_next), s.z if p.old_trace else t.e
        change = t.delta * d * s.h
        v = s.v + torch.exp(s.beta) * d * z * (torch.abs(t.delta * x * s.h) - s.v) / p.tau
        v = torch.maximum(torch.abs(change), v)
        return Normalized(s.beta + p.theta * change / torch.clamp_min(v, 1e-37), s.h, v, z)

    @staticmethod
    def total(p: Any, w: Any, s: Normalized, t: Transition) -> Any:
        """Summand of M."""
        s = p.adapt(s, t)
        return torch.exp(s.beta) * t.slope * (t.x - t.x_next) * s.z

    @staticmethod
    def update(p: Any, w: Any, s: Normalized, t: Transition) -> tuple[Any, Normalized]:
        """See the class."""
        s = p.adapt(s, t)
        d = t.slope * (t.x - t.x_next)
        scale = torch.log(torch.clamp_min(t.sum + 0 * s.beta, 1))
        beta = s.beta - torch.where(torch.abs(t.x) + torch.abs(t.x_next) + torch.abs(t.e) > 0, scale, 0 * scale)
        alpha = torch.exp(beta)
        step = alpha * t.delta * t.e
        return w + step, Normalized(beta, s.h * torch.relu(1 - alpha * d * t.e) + step, s.v, t.e)
