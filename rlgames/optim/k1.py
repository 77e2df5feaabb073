"""K1 and ELK1: step sizes learned per weight, with the normalisation of a Kalman filter (Sutton 1992b; Schraudolph)."""

from collections.abc import Iterable
from typing import Any

import torch

from rlgames.optim.checks import flag, positive
from rlgames.optim.idbd import IDBD, LogStepSize
from rlgames.optim.step_size import StepSize, Transition


class K1(IDBD):
    """K1 (Sutton 1992, Gain adaptation beats least squares?), for linear units.

    β ← β + θ δ x h   for all active weights,   p = exp(β)
    k = p x / (R + Σ p x²),   w ← w + k δ,   h ← (h + k δ) [1 - k x]⁺

    p estimates the variance of the error of a weight, k is its gain. With a unit of slope y' the gradient y' x
    replaces x.

    Args:
        params: parameters or groups of them.
        lr: initial p of every weight, > 0. The defaults of lr and theta are tuned, see docs/optimizers.md;
            Connect-4: 0.009 (β = -4.7).
        theta: meta step size θ, >= 0; Connect-4: 6.
        R: estimated variance of the noise of the target, > 0.
        guards: β >= -10 (or where it started, if lower), as in the authors' Connect-4 program, but in no paper.
        extra_x: multiply the weight change by x once more, as the authors' program does. It differs only where an index
            occurs twice (x = 2, symmetric boards), and fails for inputs other than 0 and 1; hence off.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    units = ("identity",)
    traced = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.05,
        theta: float = 0.01,
        R: float = 1.0,
        guards: bool = True,
        extra_x: bool = False,
    ) -> None:
        StepSize.__init__(
            self,
            params,
            lr=positive("lr", lr),
            theta=positive("theta", theta, zero=True),
            R=positive("R", R),
            guards=flag("guards", guards),
            extra_x=flag("extra_x", extra_x),
        )

    @staticmethod
    def adapt(p: Any, s: LogStepSize, t: Transition) -> LogStepSize:
        """The new β."""
        change = p.theta * t.delta * t.e * s.h
        if p.guards:
            change = torch.maximum(change, torch.clamp_max(-10 - s.beta, 0))
        return LogStepSize(s.beta + change, s.h)

    @staticmethod
    def total(p: Any, w: Any, s: LogStepSize, t: Transition) -> Any:
        """The summand p x², with the new β."""
        return torch.exp(p.adapt(s, t).beta) * torch.square(t.e)

    @staticmethod
    def update(p: Any, w: Any, s: LogStepSize, t: Transition) -> tuple[Any, LogStepSize]:
        """See the class."""
        s = p.adapt(s, t)
        k = torch.exp(s.beta) * t.e / (p.R + t.sum)
        step = k * t.delta
        return w + (step * t.x if p.extra_x else step), LogStepSize(s.beta, (s.h + step) * torch.relu(1 - k * t.e))


class ELK1(K1):
    """ELK1, the extension of K1 to nonlinear units, as programmed by the article's authors (Bagheri et al. 2015).

    β ← β + θ δ e h   for all active weights,   p = exp(β),   e = y' x
    k = p x / ((1 + Σ p x²) y'),   w ← w + k δ y',   h ← (h + k δ) [1 - k e]⁺

    y' is the slope of the output unit, so the weight change is p x δ / (1 + Σ p x²). For a linear unit this is K1 with
    R = 1. Schraudolph's text was not available; the other rule of this name is K1 on a nonlinear unit.

    Args:
        params: parameters or groups of them.
        lr: initial p of every weight, > 0. Defaults are those of K1; Connect-4: 0.0111 (β = -4.5).
        theta: meta step size θ, >= 0; Connect-4: 5.
        guards: β >= -10 (or where it started, if lower), as in the authors' program, but in no paper.
        extra_x: multiply the weight change by x once more, k δ e, as the authors' program does. It differs only where
            x is not 0 or 1; there the step may overshoot (x = 8 on the symmetric boards of tic-tac-toe, normally
            distributed inputs), until all values are infinite.
        slope_min: lower bound of y' in h. Ours; at 0 a saturated unit makes h and then everything infinite, which
            happens with rewards of ±1. With the program's (learner.win_decay=0.01, as in the yaml) it hardly acts.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    units = ("tanh",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.05,
        theta: float = 0.01,
        guards: bool = True,
        extra_x: bool = False,
        slope_min: float = 0.01,
    ) -> None:
        StepSize.__init__(
            self,
            params,
            lr=positive("lr", lr),
            theta=positive("theta", theta, zero=True),
            guards=flag("guards", guards),
            extra_x=flag("extra_x", extra_x),
            slope_min=positive("slope_min", slope_min, zero=True),
        )

    @staticmethod
    def total(p: Any, w: Any, s: LogStepSize, t: Transition) -> Any:
        """The summand p x², with the new β."""
        return torch.exp(p.adapt(s, t).beta) * torch.square(t.x)

    @staticmethod
    def update(p: Any, w: Any, s: LogStepSize, t: Transition) -> tuple[Any, LogStepSize]:
        """See the class; k y' is computed first, since y' may be 0 where the unit saturates."""
        s = p.adapt(s, t)
        gain = torch.exp(s.beta) * t.x / (1 + t.sum)  # k y'
        step = gain * t.delta
        h = (s.h + step / torch.clamp_min(t.slope + 0 * w, p.slope_min)) * torch.relu(1 - gain * t.x)
        return w + (step * t.x if p.extra_x else step), LogStepSize(s.beta, h)
