"""ObGD: steps are cut where they would overshoot (Elsayed, Vasan & Mahmood 2024, Streaming deep RL finally works)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from rlgames.optim.checks import between, positive
from rlgames.optim.step_size import StepSize, Transition


class ObGD(StepSize):
    """Overshooting-bounded gradient descent (Elsayed et al. 2024, algorithm 3).

    d = α κ max(|δ|, 1) Σ |e|,   w ← w + α δ e / max(d, 1)

    The sum runs over a parameter group; put all parameters into one group, as the paper does.

    Args:
        params: parameters or groups of them.
        lr: step size α, > 0 (paper: 1).
        kappa: how cautious the bound is, κ > 0 (paper: 2 for values, 3 for policies).

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1.0, kappa: float = 2.0) -> None:
        super().__init__(params, lr=positive("lr", lr), kappa=positive("kappa", kappa))

    @staticmethod
    def total(p: Any, w: Any, s: Any, t: Transition) -> Any:
        """|e|."""
        return torch.abs(t.e)

    @staticmethod
    def update(p: Any, w: Any, s: Any, t: Transition) -> tuple[Any, Any]:
        """See the class."""
        d = p.lr * p.kappa * torch.maximum(torch.abs(t.delta * t.sum), t.sum)
        return w + p.lr * t.delta * t.e / torch.clamp_min(d, 1), s


class Moment(NamedTuple):
    """State per weight: v decaying mean of (δ e)², b share of its start, β₂ⁿ after n steps of this weight."""

    v: Any
    b: Any


class AdaptiveObGD(ObGD):
    """ObGD with a second moment per weight, as in Adam (Elsayed et al. 2024, published code).

    v ← β₂ v + (1 - β₂) (δ e)²,   u = e / √(v / (1 - β₂ⁿ) + ε)
    d = α κ max(|δ|, 1) Σ |u|,   w ← w + α δ u / max(d, 1)

    n counts the steps in which the weight took part (e not 0), as in ``torch.optim.SparseAdam``: other steps leave v
    unchanged.

    Args:
        params: parameters or groups of them.
        lr: step size α, > 0. All defaults are those of the published code.
        kappa: how cautious the bound is, κ > 0.
        beta2: decay β₂ of the second moment, 0 to below 1.
        eps: ε, > 0.

    Raises:
        ValueError: for hyper-parameters out of range.
    """

    State = Moment

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, kappa: float = 2.0, beta2: float = 0.999, eps: float = 1e-8
    ) -> None:
        hyper = {"lr": positive("lr", lr), "kappa": positive("kappa", kappa), "eps": positive("eps", eps)}
        StepSize.__init__(self, params, **hyper, beta2=between("beta2", beta2, 0, 1 - 1e-7))

    @staticmethod
    def initial(p: Any) -> Moment:
        """No steps yet."""
        return Moment(0.0, 1.0)

    @staticmethod
    def step_size(p: Any, s: Moment) -> Any:
        """α / √(v / (1 - β₂ⁿ) + ε), before the cut; α / √ε for a weight that never took part."""
        return p.lr / torch.sqrt(s.v / torch.clamp_min(1 - s.b, 1e-30) + p.eps)

    @staticmethod
    def adapt(p: Any, s: Moment, t: Transition) -> Moment:
        """The new moment."""
        v = p.beta2 * s.v + (1 - p.beta2) * torch.square(t.delta * t.e)
        return Moment(torch.where(t.e != 0, v, s.v), torch.where(t.e != 0, p.beta2 * s.b, s.b))

    @staticmethod
    def total(p: Any, w: Any, s: Moment, t: Transition) -> Any:
        """|u|."""
        return torch.abs(t.e) * p.step_size(p.adapt(s, t)) / p.lr

    @staticmethod
    def update(p: Any, w: Any, s: Moment, t: Transition) -> tuple[Any, Moment]:
        """See the class."""
        s = p.adapt(s, t)
        d = p.kappa * p.lr * torch.maximum(torch.abs(t.delta * t.sum), t.sum)
        return w + p.step_size(s) * t.delta * t.e / torch.clamp_min(d, 1), s
