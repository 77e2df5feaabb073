"""IDBD: every weight learns its own step size by gradient descent on its logarithm (Sutton 1992; Koop 2008)."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.compiled import compilable
from rlgames.optim.checks import flag, positive
from rlgames.optim.step_size import StepSize, Transition


class LogStepSize(NamedTuple):
    """State per weight: β logarithm of the step size, h decaying sum of the recent weight changes."""

    beta: Any
    h: Any


@compilable
def moved(p: Any, beta: Any, change: Any) -> Any:
    """β after a ``change``, within the guards, if any."""
    if p.guards:
        change = torch.maximum(torch.clamp(change, -2, 2), torch.clamp_max(-10 - beta, 0))
    return beta + change


class IDBD(StepSize):
    """Incremental Delta-Bar-Delta (Sutton 1992, fig. 2), for linear units.

    β ← β + θ δ e h,   α = exp(β),   w ← w + α δ e,   h ← h [1 - α e x]⁺ + α δ e

    [.]⁺ is max(0, .); e is (the trace of) x. With a unit of slope y' the gradient y' x replaces x. β starts at
    ln(lr): a later lr affects only parameters that were never stepped, as in ``torch.optim.Rprop``.

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0. The defaults of lr and theta are tuned, see
            docs/optimizers.md; Connect-4: 0.0067 (β = -5).
        theta: meta step size θ, >= 0; at 0 all step sizes stay at lr. Sutton's example: 0.001; Connect-4: 3.
        guards: |change of β| <= 2 and β >= -10 (or where it started, if lower). They are in the authors' Connect-4
            program, which made the published curves, but in no paper; False is Sutton's rule.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = LogStepSize
    units = ("identity",)

    def __init__(self, params: Iterable[Any], lr: float = 0.01, theta: float = 0.003, guards: bool = True) -> None:
        theta = positive("theta", theta, zero=True)
        super().__init__(params, lr=positive("lr", lr), theta=theta, guards=flag("guards", guards))

    @staticmethod
    def initial(p: Any) -> LogStepSize:
        """β = ln(lr), h = 0."""
        return LogStepSize(math.log(p.lr), 0.0)

    @staticmethod
    def step_size(p: Any, s: LogStepSize) -> Any:
        """exp(β)."""
        return torch.exp(s.beta)

    @staticmethod
    def adapt(p: Any, s: LogStepSize, t: Transition) -> LogStepSize:
        """The new β."""
        return LogStepSize(moved(p, s.beta, p.theta * t.delta * t.e * s.h), s.h)

    @staticmethod
    def update(p: Any, w: Any, s: LogStepSize, t: Transition) -> tuple[Any, LogStepSize]:
        """See the class."""
        s = p.adapt(s, t)
        alpha = torch.exp(s.beta)
        step = alpha * t.delta * t.e
        return w + step, LogStepSize(s.beta, s.h * torch.relu(1 - alpha * t.e * t.slope * t.x) + step)


class IDBDnl(IDBD):
    """IDBD for logistic units and the cross-entropy loss (Koop 2008; Thill 2015, eq. 3.45). Targets are from 0 to 1.

    β ← β + θ δ e h,   α = exp(β),   w ← w + α δ e,   h ← h [1 - α V (1 - V) e x]⁺ + α δ e

    e is (the trace of) x: the slope V (1 - V) of the unit cancels except in the decay of h. As a plain torch optimizer:
    ``grad`` is the gradient of the sum before the unit, and ``step(delta, slope)`` takes V (1 - V).

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0. Defaults are those of IDBD; Connect-4: 0.0302 (β = -3.5).
        theta: meta step size θ, >= 0; Connect-4: 3.1.
        guards: see IDBD; without them weights can grow without bound at bad settings.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    units = ("sigmoid",)
    cross_entropy = True

    def __init__(self, params: Iterable[Any], lr: float = 0.01, theta: float = 0.003, guards: bool = True) -> None:
        super().__init__(params, lr, theta, guards)
