"""Temporal coherence learning: a weight whose recommended changes agree in sign keeps its step size."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import positive
from rlgames.optim.step_size import StepSize, Transition

TINY = 1e-30  # start of both counters: then |N| / A is 1 before the first change, and no rule has to ask about 0 / 0


class Counters(NamedTuple):
    """State per weight: N sum, A sum of absolute values of the recommended weight changes."""

    N: Any
    A: Any


class TCL(StepSize):
    """TCL[r] (Beal & Smith 1999; Bagheri et al. 2015, table 2), transfer function g(x) = x.

    r = δ e,   w ← w + α g(|N| / A) r,   then N ← N + r,   A ← A + |r|

    Args:
        params: parameters or groups of them.
        lr: global step size α, > 0.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Counters

    def __init__(self, params: Iterable[Any], lr: float = 0.04) -> None:
        super().__init__(params, lr=positive("lr", lr))

    @staticmethod
    def initial(p: Any) -> Counters:
        """Both counters as good as 0."""
        return Counters(TINY, TINY)

    @staticmethod
    def step_size(p: Any, s: Counters) -> Any:
        """α g(|N| / A)."""
        return p.lr * torch.abs(s.N) / s.A

    @staticmethod
    def update(p: Any, w: Any, s: Counters, t: Transition) -> tuple[Any, Counters]:
        """See the class; the step size comes from the old counters."""
        r = t.delta * t.e
        return w + p.step_size(s) * r, Counters(s.N + r, s.A + torch.abs(r))


class TCLDelta(TCL):
    """TCL[δ] (Bagheri et al. 2015, eq. 8): the counters sum the TD error without the slope of the output unit.

    w ← w + α (|N| / A) δ e,   then N ← N + δ x,   A ← A + |δ x|
    """

    @staticmethod
    def update(p: Any, w: Any, s: Counters, t: Transition) -> tuple[Any, Counters]:
        """See the class."""
        r = t.delta * t.x
        return w + p.step_size(s) * t.delta * t.e, Counters(s.N + r, s.A + torch.abs(r))


class TCLEXP(TCL):
    """TCL-EXP (Bagheri et al. 2015, eq. 9): TCL with geometric step sizes, g(x) = exp(β (x - 1)).

    Args:
        params: parameters or groups of them.
        lr: global step size α, > 0.
        beta: how steeply g falls, > 0: an incoherent weight keeps exp(-β) of its step size.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.05, beta: float = 2.7) -> None:
        super(TCL, self).__init__(params, lr=positive("lr", lr), beta=positive("beta", beta))

    @staticmethod
    def step_size(p: Any, s: Counters) -> Any:
        """α exp(β (|N| / A - 1))."""
        return p.lr * torch.exp(p.beta * (torch.abs(s.N) / s.A - 1))


class TCLPL(TCLEXP):
    """TCL-PL (Bagheri et al. 2015, fig. 2): piecewise linear with the end points and the slope at 1 of TCL-EXP.

    g(x) = max(β x + 1 - β, exp(-β))
    """

    @staticmethod
    def step_size(p: Any, s: Counters) -> Any:
        """α max(β |N| / A + 1 - β, exp(-β))."""
        floor = torch.exp(0 * s.A - p.beta)
        return p.lr * torch.maximum(p.beta * torch.abs(s.N) / s.A + 1 - p.beta, floor)
