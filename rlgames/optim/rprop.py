"""Resilient propagation: only the sign of the gradient counts (Riedmiller & Braun 1993).

Four variants are published (Igel & Hüsken 2003). They differ in what happens when a sign changes:

=============  =========================================================================================
``RpropMinus``   only a smaller step size
``IRpropMinus``  no weight change in this step, and no comparison in the next one
``RpropPlus``    the last weight change is taken back, and no comparison in the next step
``IRpropPlus``   the same, but it is taken back only if the error has grown
=============  =========================================================================================

They are designed for whole batches; online, with one TD error at a time, none learns Connect-4 (Thill 2015).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import MOST, between, positive
from rlgames.optim.step_size import StepSize, Transition


class Signs(NamedTuple):
    """State per weight: its step size, sign to compare with (0: none), last change, size of its last error."""

    width: Any
    sign: Any
    change: Any
    error: Any


class RpropMinus(StepSize):
    """Rprop- (Riedmiller & Braun 1993, without backtracking).

    r = sign(δ e),   Δ ← min(η⁺ Δ, Δmax) if r equals the previous sign, max(η⁻ Δ, Δmin) if it does not,   w ← w + r Δ

    Weights with e = 0 stay unchanged.

    Args:
        params: parameters or groups of them.
        lr: initial step size Δ of every weight, > 0. All defaults are those of ``torch.optim.Rprop``.
        up: factor η⁺ >= 1.
        down: factor η⁻, above 0 and below 1.
        lr_min, lr_max: limits of the step size, > 0 (an lr outside them moves inside with the first change).

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Signs
    traced = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        up: float = 1.2,
        down: float = 0.5,
        lr_min: float = 1e-6,
        lr_max: float = 50.0,
    ) -> None:
        super().__init__(
            params,
            lr=positive("lr", lr),
            up=between("up", up, 1, 1000),
            down=between("down", positive("down", down), 0, 1),
            lr_min=positive("lr_min", lr_min),
            lr_max=between("lr_max", positive("lr_max", lr_max), lr_min, MOST),
        )

    @staticmethod
    def initial(p: Any) -> Signs:
        """Δ = lr, nothing to compare with."""
        return Signs(p.lr, 0.0, 0.0, 0.0)

    @staticmethod
    def step_size(p: Any, s: Signs) -> Any:
        """Δ."""
        return s.width

    @staticmethod
    def adapt(p: Any, s: Signs, t: Transition) -> Signs:
        """The new Δ."""
        agree = torch.sign(t.delta * t.e) * s.sign
        grown, shrunk = torch.clamp_max(p.up * s.width, p.lr_max), torch.clamp_min(p.down * s.width, p.lr_min)
        width = torch.where(agree > 0, grown, torch.where(agree < 0, shrunk, s.width))
        return Signs(width, s.sign, s.change, s.error)

    @staticmethod
    def update(p: Any, w: Any, s: Signs, t: Transition) -> tuple[Any, Signs]:
        """See the class."""
        width, r = p.adapt(s, t).width, torch.sign(t.delta * t.e)
        return w + r * width, Signs(width, torch.where(t.e != 0, r, s.sign), s.change, s.error)


class IRpropMinus(RpropMinus):
    """iRprop- (Igel & Hüsken 2003).

    As Rprop-, but where the sign has changed, r is set to 0: w stays, and the next step has nothing to compare with.
    """

    @staticmethod
    def update(p: Any, w: Any, s: Signs, t: Transition) -> tuple[Any, Signs]:
        """See the class."""
        width, r = p.adapt(s, t).width, torch.sign(t.delta * t.e)
        r = torch.where(r * s.sign < 0, 0 * r, r)
        return w + r * width, Signs(width, torch.where(t.e != 0, r, s.sign), s.change, s.error)


class RpropPlus(RpropMinus):
    """Rprop+ (Riedmiller & Braun 1993, with weight backtracking).

    As iRprop-, but where the sign has changed, the last change of w is taken back.
    """

    @staticmethod
    def update(p: Any, w: Any, s: Signs, t: Transition) -> tuple[Any, Signs]:
        """See the class."""
        width, r = p.adapt(s, t).width, torch.sign(t.delta * t.e)
        turned = r * s.sign < 0
        change = torch.where(turned, -s.change, r * width)
        r = torch.where(turned, 0 * r, r)
        active = t.e != 0
        return w + change, Signs(width, torch.where(active, r, s.sign), torch.where(active, change, s.change), s.error)


class IRpropPlus(RpropMinus):
    """iRprop+ (Igel & Hüsken 2003).

    As Rprop+, but the last change of w is taken back only if |δ| has grown since the weight's last step.
    """

    @staticmethod
    def update(p: Any, w: Any, s: Signs, t: Transition) -> tuple[Any, Signs]:
        """See the class."""
        width, r = p.adapt(s, t).width, torch.sign(t.delta * t.e)
        error = torch.abs(t.delta + 0 * w)
        turned = r * s.sign < 0
        back = torch.where(error > s.error, -s.change, 0 * w)
        change = torch.where(turned, back, r * width)
        r = torch.where(turned, 0 * r, r)
        active = t.e != 0
        sign, last = torch.where(active, r, s.sign), torch.where(active, change, s.change)
        return w + change, Signs(width, sign, last, torch.where(active, error, s.error))
