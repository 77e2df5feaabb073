"""TDL: the plain rule, one step size for all weights."""

from collections.abc import Iterable
from typing import Any

from rlgames.optim.checks import flag, positive
from rlgames.optim.step_size import NoState, StepSize, Transition


class TDL(StepSize):
    """Temporal difference learning with one global step size (Bagheri et al. 2015, eq. 5).

    w ← w + α δ e

    Args:
        params: parameters or groups of them.
        lr: step size α, > 0. The default is stable for about 100 inputs of size 1; Connect-4: 0.004 to 0.002.
        cross_entropy: descend the cross-entropy of a logistic unit (targets from 0 to 1) instead of the squared error,
            as the authors' program does: the slope V (1 - V) of the unit cancels, and e is (the trace of) x. As a plain
            torch optimizer: ``grad`` is the gradient of the sum before the unit.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.01, cross_entropy: bool = False) -> None:
        super().__init__(params, lr=positive("lr", lr), cross_entropy=flag("cross_entropy", cross_entropy))

    @staticmethod
    def update(p: Any, w: Any, s: NoState, t: Transition) -> tuple[Any, NoState]:
        """See the class."""
        return w + p.lr * t.delta * t.e, s
