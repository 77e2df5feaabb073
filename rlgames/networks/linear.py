"""A linear evaluation: the sum of coefficient times count over named features, squashed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class LinearEvaluation(nn.Module):
    """V(board) = unit(J), where J is the sum of coefficient × count over named features.

    J is in pawns, from the first player's view.

    Args:
        features: provides ``size``, ``start_values()`` and ``features(board)``: the indices and counts that are not 0.
        output: ``tanh``: V = tanh(β J); ``identity``: V = J / 4 clipped to [-1, +1]: 4 pawns count as a win (FUSc#).
        pawn_value: V of being a pawn ahead, with tanh; 0.25 makes β = 0.255 (Baxter, Tridgell & Weaver 1999).
        dtype: ``float32`` or ``float64``.

    Raises:
        ValueError: for features without start values, an unknown output or dtype, or a pawn value not in (0, 1).
    """

    def __init__(self, features: Any, output: str = "tanh", pawn_value: float = 0.25, dtype: str = "float32") -> None:
        super().__init__()
        if not hasattr(features, "start_values"):
            raise ValueError(f"network=linear cannot use {type(features).__name__}: they have no start values")
        if output not in ("tanh", "identity"):
            raise ValueError(f"network.output is {output!r}; allowed with network=linear are tanh and identity")
        if not 0 < pawn_value < 1:
            raise ValueError(f"network.pawn_value is {pawn_value}; it must be above 0 and below 1")
        if dtype not in ("float32", "float64"):
            raise ValueError(f"network.dtype is {dtype!r}; allowed are float32 and float64")
        self.features, self.output = features, output
        self.beta = math.atanh(pawn_value) if output == "tanh" else 1 / 4
        weight = torch.from_numpy(features.start_values())[:, None].to(getattr(torch, dtype))
        self.embedding = nn.EmbeddingBag.from_pretrained(weight, freeze=False, mode="sum")

    @torch.no_grad()
    def share_changed(self) -> float:
        """Share of the coefficients that have changed since the start."""
        start = torch.from_numpy(self.features.start_values())[:, None].to(self.embedding.weight.dtype)
        return float((self.embedding.weight.cpu() != start).sum()) / len(start)

    def linear(self, boards: Sequence[Any]) -> Tensor:
        """J of ``boards``, ``[len(boards)]``."""
        parts = [self.features.features(board) for board in boards]
        weight = self.embedding.weight
        indices, counts = (
            torch.from_numpy(np.concatenate(part)).to(weight.device) for part in zip(*parts, strict=True)
        )
        ends = torch.tensor([0, *(len(part) for part, _ in parts[:-1])], device=weight.device).cumsum(0)
        j: Tensor = self.embedding(indices.long(), ends, per_sample_weights=counts.to(weight.dtype))
        return j.squeeze(1)

    def forward(self, boards: Sequence[Any]) -> Tensor:
        """V of ``boards``, ``[len(boards)]``."""
        return self.unit(self.linear(boards))

    def unit(self, j: Tensor) -> Tensor:
        """The output unit."""
        return torch.tanh(self.beta * j) if self.output == "tanh" else torch.clamp(self.beta * j, -1, 1)

    def slope(self, v: float) -> float:
        """Derivative of the output unit where its value is ``v``; for ``identity`` it ignores the clipping of V."""
        return self.beta * (1 - v * v) if self.output == "tanh" else self.beta
