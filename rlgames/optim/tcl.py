"""Temporal coherence learning: a weight whose recommended changes agree in sign keeps its step size."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import flag, positive
from rlgames.optim.step_size import StepSize, Transition

TINY = 1e-30  # start of both counters: |N| / A is then 1 before the first change, and no rule divides 0 by 0


class Counters(NamedTuple):
    """State per weight: N sum, A sum of absolute values of the recommended weight changes."""

    N: Any
    A: Any


class TCL(StepSize):
    """TCL[r] (Beal & Smith 1999; Bagheri et al. 2015, table 2), transfer function g(x) = x.

    r = δ e,   w ← w + α g(|N| / A) r,   then N ← N + r,   A ← A + |r|

    Args:
        params: parameters or groups of them.
        lr: global step size α, > 0. The default is that of Bagheri et al. 2015 and suits other tasks too.
        cross_entropy: descend the cross-entropy of a logistic unit instead of the squared error, see TDL.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Counters

    def __init__(self, params: Iterable[Any], lr: float = 0.04, cross_entropy: bool = False) -> None:
        super().__init__(params, lr=positive("lr", lr), cross_entropy=flag("cross_entropy", cross_entropy))

    @staticmethod
    def initial(p: Any) -> Counters:
        """Both counters practically 0."""
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
    """TCL[δ] (Bagheri et al. 2015, eq. 8): the counters of every weight that takes part sum the TD error itself.

    w ← w + α (|N| / A) δ e,   then N ← N + δ,   A ← A + |δ|   where x or e is not 0

    Args:
        params: parameters or groups of them.
        lr: global step size α, > 0.
        cross_entropy: see TCL.
        extra_x: count δ x, as this package did before; weights with x = 0 that still learn by their trace then count
            nothing. In Connect-4 it differs where an index occurs twice (x = 2, symmetric boards), and with traces.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 0.04, cross_entropy: bool = False, extra_x: bool = False
    ) -> None:
        hyper = {"lr": positive("lr", lr), "cross_entropy": flag("cross_entropy", cross_entropy)}
        super(TCL, self).__init__(params, **hyper, extra_x=flag("extra_x", extra_x))

    @staticmethod
    def update(p: Any, w: Any, s: Counters, t: Transition) -> tuple[Any, Counters]:
        """See the class."""
        r = t.delta * (t.x if p.extra_x else torch.sign(torch.abs(t.x) + torch.abs(t.e)))
        return w + p.step_size(s) * t.delta * t.e, Counters(s.N + r, s.A + torch.abs(r))


class TCLEXP(TCL):
    """TCL-EXP (Bagheri et al. 2015, eq. 9): TCL with geometric step sizes, g(x) = exp(β (x - 1)).

    Args:
        params: parameters or groups of them.
        lr: global step size α, > 0. α and β are those of Bagheri et al. 2015 and suit other tasks too.
        beta: how steeply g falls, > 0: an incoherent weight keeps exp(-β) of its step size.
        cross_entropy: see TCL.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.05, beta: float = 2.7, cross_entropy: bool = False) -> None:
        hyper = {"lr": positive("lr", lr), "beta": positive("beta", beta)}
        super(TCL, self).__init__(params, **hyper, cross_entropy=flag("cross_entropy", cross_entropy))

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
