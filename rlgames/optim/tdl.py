"""TDL: the plain rule, one step size for all weights."""

from collections.abc import Iterable
from typing import Any

from rlgames.optim.checks import positive
from rlgames.optim.step_size import NoState, StepSize, Transition


class TDL(StepSize):
    """Temporal difference learning with one global step size (Bagheri et al. 2015, eq. 5).

    w ← w + α δ e

    Args:
        params: parameters or groups of them.
        lr: step size α, > 0. The published runs let it fall exponentially from 0.004 to 0.002.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.004) -> None:
        super().__init__(params, lr=positive("lr", lr))

    @staticmethod
    def update(p: Any, w: Any, s: NoState, t: Transition) -> tuple[Any, NoState]:
        """See the class."""
        return w + p.lr * t.delta * t.e, s
