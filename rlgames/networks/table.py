"""The value network: the table rows of the active features, summed and squashed."""

import inspect

import torch
from torch import Tensor, nn

from rlgames.features.features import CompiledFeatures, TableFeatures
from rlgames.games.game import PartBoard
from rlgames.networks.network import Network, Split, check_dtype, check_init, slope, whole

OUTPUTS = ("identity", "tanh", "sigmoid")  # compiled code identifies an output unit by its index here


class ValueNetwork(Network):
    """V(board) = unit(sum of the weights of the active features), from the first player's view.

    Args:
        features: the rows of the table.
        output: ``tanh`` or ``identity`` (values from -1 to +1), or ``sigmoid`` (0 to 1: the chance that the first
            player wins).
        init: weights start uniform in [-init / 2, init / 2] (0.001 in Thill 2015); 0 starts from zeros.
        sparse: gradients hold only the active rows; False for optimizers that reject these (torch's Adam), on small
            tables.
        dtype: ``float32`` or ``float64``.
        seed: for the initial weights.

    Raises:
        ValueError: for features without a table, an unknown output or dtype, or a negative init.
    """

    def __init__(
        self,
        features: TableFeatures,
        output: str = "tanh",
        init: float = 0.001,
        sparse: bool = True,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(features, TableFeatures):
            raise ValueError(
                f"network: {type(self).__name__} adds up the rows of a table, which {type(features).__name__} does not "
                "give; network=linear (chess) and network=mlp read numbers"
            )
        if output not in OUTPUTS:
            raise ValueError(f"network.output is {output!r}; allowed are {', '.join(OUTPUTS)}")
        check_init(init)
        self.features = features
        self.output = output
        self._drawn = init, seed, check_dtype(dtype)
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
    def value(self, *boards: PartBoard) -> Tensor:
        """Values of ``boards`` (none of them over), on the network's own scale; ``[len(boards)]``."""
        values: Tensor = self(self.indices(*boards))
        return values

    def indices(self, *boards: PartBoard) -> Tensor:
        """Active rows of ``boards`` on the device of the weights; ``[len(boards), n_features]``."""
        return self.features.encode(boards).to(self.embedding.weight.device)

    def split(self) -> Split:
        """The network as agents use it; in one piece if a subclass or a hook changes how it computes."""
        if not (_same(self.forward, ValueNetwork.forward) and _same(self.unit, ValueNetwork.unit)):
            return whole(self)
        if self._forward_hooks or self._forward_pre_hooks:
            return whole(self)
        return Split(self.linear, self.unit, lambda v: slope(self.output, v), self.output)


def table_of(network: nn.Module) -> ValueNetwork | None:
    """``network`` if its value is the sum of the active rows of one table, through a unit; else None.

    That is what compiled code and many games at once compute by themselves. A subclass with another start is one; a
    subclass with its own ``forward``, ``linear`` or ``unit``, with more parameters, or another kind of table is not.
    """
    if not isinstance(network, ValueNetwork) or network.split().linear != network.linear:
        return None
    table = network.embedding
    plain = type(table) is nn.EmbeddingBag and table.mode == "sum" and table.max_norm is None
    plain = plain and table.padding_idx is None and not (table._forward_hooks or table._forward_pre_hooks)
    names = [name for name, _ in network.named_parameters()]
    return network if plain and names == ["embedding.weight"] and _same(network.linear, ValueNetwork.linear) else None


def split(network: nn.Module) -> Split:
    """Any ``network`` as agents use it."""
    return network.split() if isinstance(network, ValueNetwork) else whole(network)


def require_table(network: nn.Module, engine: str) -> tuple[ValueNetwork, CompiledFeatures]:
    """``network`` and the compiled side of its features, if ``engine`` can compute it; see ``table_of``.

    Raises:
        ValueError: naming the network and the engine that can.
    """
    table = table_of(network)
    if table is None:
        raise ValueError(
            f"engine={engine} computes sums of table rows by itself and would ignore what {type(network).__name__} does"
            " differently; use engine=eager"
        )
    if table.features.compact is None:
        raise ValueError(f"engine={engine} has no compiled form of {type(table.features).__name__}; use engine=eager")
    return table, table.features.compact


def _same(method: object, function: object) -> bool:
    """Whether ``method`` is ``function`` of the class itself, neither overridden nor replaced."""
    return inspect.ismethod(method) and method.__func__ is function
