"""TIDBD: IDBD for temporal differences with traces (Kearney et al. 2018)."""

from typing import Any

import torch

from rlgames.optim.idbd import IDBD, LogStepSize, moved
from rlgames.optim.transition import Transition


class TIDBD(IDBD):
    """TIDBD(λ) with semi-gradients (Kearney et al. 2018, algorithm 1), for linear units.

    β ← β + θ δ x h,   α = exp(β),   w ← w + α δ e,   h ← h [1 - α x e]⁺ + α δ e

    Only currently active weights change their step size; IDBD(λ) has e in place of x. Without traces the two rules are
    the same, so the defaults are IDBD's. With a unit of slope y' the gradient y' x replaces x.

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0.
        theta: meta step size θ, >= 0.
        guards: see IDBD; False is the published rule.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    @staticmethod
    def adapt(p: Any, s: LogStepSize, t: Transition) -> LogStepSize:
        """The new β."""
        return LogStepSize(moved(p, s.beta, p.theta * t.delta * t.slope * t.x * s.h), s.h)


class OrdinaryTIDBD(TIDBD):
    """TIDBD(λ) with ordinary gradients (Kearney et al. 2018): the target moves with the weights too.

    β ← β - θ δ (γ x' - x) h,   α = exp(β),   w ← w + α δ e,   h ← h [1 + α e (γ x' - x)]⁺ + α δ e

    x' are the features of the next position; weights active only there change their step size too. Defaults and
    arguments are those of TIDBD.
    """

    looks_ahead = True
    learns_ahead = True

    @staticmethod
    def adapt(p: Any, s: LogStepSize, t: Transition) -> LogStepSize:
        """The new β."""
        return LogStepSize(moved(p, s.beta, p.theta * t.delta * t.slope * (t.x - t.x_next) * s.h), s.h)

    @staticmethod
    def update(p: Any, w: Any, s: LogStepSize, t: Transition) -> tuple[Any, LogStepSize]:
        """See the class."""
        s = p.adapt(s, t)
        alpha = torch.exp(s.beta)
        step = alpha * t.delta * t.e
        return w + step, LogStepSize(s.beta, s.h * torch.relu(1 - alpha * t.e * t.slope * (t.x - t.x_next)) + step)
