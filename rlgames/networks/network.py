"""The contract of networks, and what an agent may take apart of one."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T", float, Tensor)
DTYPES = ("float32", "float64")


class Network(nn.Module):
    """What values boards: ``forward(x)`` gives their values ``[batch]``, from the first player's view.

    ``x`` is what ``encode`` of the features gives: rows of a table from n-tuples, planes from ``features=planes``. The
    constructor takes the features and whatever its yaml names. ``engine=eager`` trains any ``nn.Module`` of this kind
    with any optimizer; this class adds what a network may say about itself.

    Attributes:
        output: ``sigmoid`` for values from 0 (the second player wins) to 1, else they reach from -1 to +1.
    """

    output: str = "identity"

    def forward(self, x: Tensor) -> Tensor:
        """Values ``[batch]`` of the boards that the features encoded as ``x``."""
        raise NotImplementedError

    def share_changed(self) -> float | None:
        """Share of the weights that have changed since the start; None: not known."""
        return None


class Split(NamedTuple):
    """A network in two steps, V = unit(linear(x)), as agents use it.

    Attributes:
        linear: sums ``[batch]`` of ``x``, before the unit.
        unit: value of a sum.
        slope: derivative of the unit where its value is v.
        output: as in ``Network``: the scale of the values.
    """

    linear: Callable[[Tensor], Tensor]
    unit: Callable[[Tensor], Tensor]
    slope: Callable[[float], float]
    output: str


def whole(network: nn.Module) -> Split:
    """A network whose inside is its own affair: the sum is the value itself, on a scale from -1 to +1."""

    def value(x: Tensor) -> Tensor:
        values = network(x)
        if not isinstance(values, Tensor) or values.shape != (len(x),):
            given = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"network: {type(network).__name__} gives {given} for {len(x)} boards, not [{len(x)}]")
        return values

    output = network.output if isinstance(network, Network) else "identity"
    if output == "sigmoid":
        return Split(lambda x: 2 * value(x) - 1, lambda f: (f + 1) / 2, lambda v: 0.5, output)
    return Split(value, lambda f: f, lambda v: 1.0, output)


def slope(output: str, v: float) -> float:
    """Derivative of the output unit where its value is ``v``."""
    return 1.0 if output == "identity" else 1.0 - v * v if output == "tanh" else v * (1.0 - v)


def target(output: str, reward: T) -> T:
    """A reward from -1 to +1 as a target of the output unit; sigmoid units predict from 0 to 1."""
    return (reward + 1) / 2 if output == "sigmoid" else reward


def check_dtype(dtype: str) -> torch.dtype:
    """The torch dtype of that name.

    Raises:
        ValueError: for any but ``DTYPES``.
    """
    if dtype not in DTYPES:
        raise ValueError(f"network.dtype is {dtype!r}; allowed are {' and '.join(DTYPES)}")
    found: torch.dtype = getattr(torch, dtype)
    return found


def check_init(init: float) -> None:
    """Refuse a width of the initial weights that is negative or not finite.

    Raises:
        ValueError: naming the key.
    """
    if not 0 <= init < math.inf:
        raise ValueError(f"network.init is {init}; it must be at least 0 and finite")
