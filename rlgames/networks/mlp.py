"""A small network of dense layers over whatever the features give: an example for networks of one's own."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.features.features import DenseFeatures
from rlgames.networks.network import Network, check_dtype


class MLP(Network):
    """V(board) = tanh of a network with two hidden layers, from the first player's view.

    Args:
        features: numbers, such as ``features=planes``.
        hidden: width of the hidden layers.
        dtype: ``float32`` or ``float64``.
        seed: for the initial weights, which are torch's own.

    Raises:
        ValueError: for other features, a width below 1 or an unknown dtype.
    """

    def __init__(self, features: DenseFeatures[Any], hidden: int = 64, dtype: str = "float32", seed: int = 0) -> None:
        super().__init__()
        if not isinstance(features, DenseFeatures):
            raise ValueError(
                f"network=mlp reads numbers, which {type(features).__name__} does not give; use features=planes"
            )
        if hidden < 1:
            raise ValueError(f"network.hidden is {hidden}; it must be at least 1")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = nn.Sequential(
                nn.Flatten(),
                nn.Linear(math.prod(features.shape), hidden),
                nn.ReLU(),
                nn.Linear(hidden, hidden),
                nn.ReLU(),
                nn.Linear(hidden, 1),
                nn.Tanh(),
            )
        self.layers = layers.to(check_dtype(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Values ``[batch]`` of ``x``, ``[batch, *shape]``."""
        values: Tensor = self.layers(x.to(next(self.parameters()).dtype))
        return values.squeeze(1)
