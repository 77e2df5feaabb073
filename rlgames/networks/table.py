"""The value network: the table rows of the active features, summed and squashed."""

from typing import Any

import torch
from torch import Tensor, nn

OUTPUTS = ("identity", "tanh", "sigmoid")  # compiled code identifies an output unit by its index here


class ValueNetwork(nn.Module):
    """V(board) = unit(sum of the weights of the active features), from the first player's view.

    Args:
        features: provides ``size`` (rows of the table) and ``indices(board)``.
        output: ``tanh`` or ``identity`` (values from -1 to +1), or ``sigmoid`` (0 to 1: the chance that the first
            player wins).
        init: weights start uniform in [-init / 2, init / 2] (0.001 in Thill 2015); 0 starts from zeros.
        sparse: gradients hold only the active rows; False for optimizers that reject these (torch's Adam), on small
            tables.
        dtype: ``float32`` or ``float64``.
        seed: for the initial weights.

    Raises:
        ValueError: for an unknown output or dtype, or a negative init.
    """

    def __init__(
        self,
        features: Any,
        output: str = "tanh",
        init: float = 0.001,
        sparse: bool = True,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if output not in OUTPUTS:
            raise ValueError(f"network.output is {output!r}; allowed are {', '.join(OUTPUTS)}")
        if dtype not in ("float32", "float64"):
            raise ValueError(f"network.dtype is {dtype!r}; allowed are float32 and float64")
        if not 0 <= init < float("inf"):
            raise ValueError(f"network.init is {init}; it must be at least 0 and finite")
        self.features = features
        self.output = output
        self._drawn = init, seed, getattr(torch, dtype)
        self.embedding = nn.EmbeddingBag.from_pretrained(self.initial(), freeze=False, mode="sum", sparse=sparse)

    def initial(self) -> Tensor:
        """The initial weights, ``[rows, 1]``."""
        init, seed, dtype = self._drawn
        weight = torch.zeros(self.features.size, 1, dtype=dtype)
        return weight.uniform_(-init / 2, init / 2, generator=torch.Generator().manual_seed(seed)) if init else weight

    @torch.no_grad()
    def share_changed(self) -> float:
        """Share of the weights that have changed, among those that can become active."""
        rows = torch.from_numpy(self.features.rows)
        changed = self.embedding.weight.cpu()[rows] != self.initial()[rows]
        return float(changed.sum()) / len(rows)

    def linear(self, indices: Tensor) -> Tensor:
        """Sum of the active weights before the output unit; ``[batch]`` for ``indices`` of ``[batch, n_features]``."""
        out: Tensor = self.embedding(indices)
        return out.squeeze(1)

    def forward(self, indices: Tensor) -> Tensor:
        """Values ``[batch]`` of ``indices``, int32 or int64 ``[batch, n_features]``."""
        return self.unit(self.linear(indices))

    def unit(self, f: Tensor) -> Tensor:
        """The output unit."""
        return f if self.output == "identity" else torch.tanh(f) if self.output == "tanh" else torch.sigmoid(f)

    @torch.no_grad()
    def value(self, *boards: Any) -> Tensor:
        """Values of ``boards`` (none of them over), on the network's own scale; ``[len(boards)]``."""
        values: Tensor = self(self.indices(*boards))
        return values

    def indices(self, *boards: Any) -> Tensor:
        """Active rows of ``boards`` on the device of the weights; ``[len(boards), n_features]``."""
        rows = torch.stack([torch.from_numpy(self.features.indices(board)) for board in boards])
        return rows.to(self.embedding.weight.device)
