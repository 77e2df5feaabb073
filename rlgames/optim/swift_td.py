"""SwiftTD: true online TD(λ) with a learned step size per weight and a bound on what a step may learn (Javed 2024)."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import between, positive
from rlgames.optim.step_size import StepSize
from rlgames.optim.transition import Transition
from rlgames.traces import Traces


class Meta(NamedTuple):
    """State per weight.

    Attributes:
        beta: β, logarithm of the step size.
        h, h_old: derivative of the weight by β, now and a step ago.
        change: the last change of the weight.
        z: trace, including step sizes.
        p: trace of h x.
        z_bar: derivative of z by β.
    """

    beta: Any
    h: Any
    h_old: Any
    change: Any
    z: Any
    p: Any
    z_bar: Any


class Products(NamedTuple):
    """Sums over the active weights: value added to this position by the last changes, z x, and the rate exp(β) x²."""

    gained: Any
    overlap: Any
    rate: Any


class SwiftTD(StepSize):
    """SwiftTD (Javed, Sharifnassab & Sutton 2024), for linear units.

    g = Σ Δw x,   b = γλ Σ z x,   τ = Σ exp(β) x²,   a = min(1, η / τ) exp(β) x          (before the step)
    where τ > η and x is not 0:   h = h' = z̄ = 0,   β ← β + x² ln(decay)
    z ← γλ z + a (1 - b),   p ← γλ p + h' x,   z̄ ← γλ z̄ + a (1 - b - γλ z̄ x),   h'' = h - h' x (z - a) - h a x
    Δw = (δ + g) z - g a,   w ← w + Δw
    β ← max(min(β + θ exp(-β) δ p, ln η), -23),   h' ← h,   h ← h'' + (δ + g) z̄ - g a

    Here δ is the TD error with the current weights. True online TD uses δ + g, from the value before the last step; so
    the second half of a step and the first half of the next one, as printed in the paper, make one step here. The
    traces are SwiftTD's own; ``traces`` sets their decay and how long weights stay eligible. An exploratory move
    must end all traces (learner.traces=res): the value learned is that of greedy play.

    With traces it follows the sparse class SwiftTD of the authors' package (0.2.0): when τ > η the active weights
    forget h and z̄ before the traces are updated; their dense class does so for all weights, and afterwards. One
    difference: once a weight's trace has ended, h' is h, since nothing has changed it; their sparse class keeps an
    older h'. Hence without traces it equals their dense class, as long as no step is cut and no weight is active in
    two positions in a row. The floor of β, exp(-23) = 1e-10, is what the package means by eta_min (it compares another
    number with it): below it exp(-β) would overflow, as it does there, for features of 100 and more.

    Args:
        params: parameters or groups of them.
        lr: initial step size of every weight, > 0. All defaults are those of the authors' package.
        theta: meta step size θ, >= 0.
        eta: η, largest share of an error that a step may remove, > 0.
        decay: factor by which step sizes shrink where η would be exceeded, above 0 to 1.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Meta
    Sums = Products
    units = ("identity",)
    transient = ("change", "z", "p", "z_bar")

    def __init__(
        self, params: Iterable[Any], lr: float = 0.01, theta: float = 1e-3, eta: float = 0.1, decay: float = 0.999
    ) -> None:
        hyper = {"theta": positive("theta", theta, zero=True), "eta": positive("eta", eta)}
        super().__init__(params, lr=positive("lr", lr), **hyper, decay=between("decay", decay, 1e-6, 1))

    @classmethod
    def check_traces(cls, traces: Traces) -> None:
        """Refuse replacing traces, and traces that survive an exploratory move."""
        if traces.replacing or not traces.resetting:
            raise ValueError(
                "SwiftTD adds to its traces and ends them at exploratory moves: it needs learner.traces=res"
            )

    @staticmethod
    def initial(p: Any) -> Meta:
        """β = ln(lr), all else 0."""
        return Meta(math.log(p.lr), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def step_size(p: Any, s: Meta) -> Any:
        """exp(β)."""
        return torch.exp(s.beta)

    @staticmethod
    def total(p: Any, w: Any, s: Meta, t: Transition) -> Products:
        """Summands of g, b and τ."""
        x = t.slope * t.x
        return Products(s.change * x, t.decay * s.z * x, torch.exp(s.beta) * torch.square(x))

    @staticmethod
    def update(p: Any, w: Any, s: Meta, t: Transition) -> tuple[Any, Meta]:
        """See the class."""
        g, b, rate = t.sum.gained, t.sum.overlap, t.sum.rate
        x = t.slope * t.x
        a = torch.exp(s.beta) * x * (p.eta / torch.clamp_min(rate, p.eta))
        keep = torch.where((rate > p.eta) & (x != 0), 0 * x, 0 * x + 1)
        h, h_old = keep * s.h, keep * torch.where(s.z != 0, s.h_old, s.h)
        z_bar = keep * t.decay * s.z_bar
        z = t.decay * s.z + a * (1 - b)
        trace = t.decay * s.p + h_old * x
        z_bar = z_bar + a * (1 - b - z_bar * x)
        h_next = h - h_old * x * (z - a) - h * a * x + t.delta * z_bar + g * (z_bar - a)
        change = t.delta * z + g * (z - a)
        beta = s.beta + (1 - keep) * torch.square(x) * math.log(p.decay)
        rise = p.theta * torch.exp(torch.clamp_max(-beta, 23)) * t.delta * trace
        beta = torch.clamp(beta + rise, -23, math.log(p.eta))
        return w + change, Meta(beta, h_next, h, change, z, trace, z_bar)
