"""A linear evaluation: the sum of coefficient times count over named features, squashed."""

import math
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlgames.features.features import Terms
from rlgames.networks.network import Network, check_dtype

V = TypeVar("V", float, npt.NDArray[np.floating[Any]])


class LinearEvaluation(Network):
    """V(board) = unit(J), where J is the sum of coefficient × count over named features.

    J is in pawns, from the first player's view.

    Args:
        features: the terms and their start values.
        output: ``tanh``: V = tanh(β J); ``identity``: V = J / 4 clipped to [-1, +1]: 4 pawns count as a win (FUSc#).
        pawn_value: V of being a pawn ahead, with tanh; 0.25 makes β = 0.255 (Baxter, Tridgell & Weaver 1999).
        dtype: ``float32`` or ``float64``.

    Raises:
        ValueError: for features without start values, an unknown output or dtype, or a pawn value not in (0, 1).
    """

    def __init__(
        self, features: Terms[Any], output: str = "tanh", pawn_value: float = 0.25, dtype: str = "float32"
    ) -> None:
        super().__init__()
        if not isinstance(features, Terms):
            raise ValueError(f"network=linear cannot use {type(features).__name__}: they have no start values")
        if output not in ("tanh", "identity"):
            raise ValueError(f"network.output is {output!r}; allowed with network=linear are tanh and identity")
        if not 0 < pawn_value < 1:
            raise ValueError(f"network.pawn_value is {pawn_value}; it must be above 0 and below 1")
        self.features, self.output = features, output
        self.beta = math.atanh(pawn_value) if output == "tanh" else 1 / 4
        weight = torch.from_numpy(features.start_values())[:, None].to(check_dtype(dtype))
        self.embedding = nn.EmbeddingBag.from_pretrained(weight, freeze=False, mode="sum")

    @torch.no_grad()
    def share_changed(self) -> float:
        """Share of the coefficients that have changed since the start."""
        start = torch.from_numpy(self.features.start_values())[:, None].to(self.embedding.weight.dtype)
        return float((self.embedding.weight.cpu() != start).sum()) / len(start)

    def linear(self, counts: Tensor) -> Tensor:
        """J ``[batch]`` of boards with these ``counts`` of the terms, ``[batch, size]``."""
        weight = self.embedding.weight
        return (counts.to(weight) @ weight).squeeze(1)

    def forward(self, counts: Tensor) -> Tensor:
        """V ``[batch]`` of boards with these ``counts`` of the terms, ``[batch, size]``."""
        return self.unit(self.linear(counts))

    def unit(self, j: Tensor) -> Tensor:
        """The output unit."""
        return torch.tanh(self.beta * j) if self.output == "tanh" else torch.clamp(self.beta * j, -1, 1)

    def slope(self, v: V) -> V:
        """Derivative of the output unit where its value is ``v``; for ``identity`` it ignores the clipping of V."""
        return self.beta * (1 - v * v if self.output == "tanh" else 1 + 0 * v)
