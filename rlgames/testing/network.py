"""The kit for networks."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.agents import Eager, Fused
from rlgames.compiled import HAS_COMPILER
from rlgames.features.features import Features
from rlgames.games.game import Game, Rules
from rlgames.networks.network import Network
from rlgames.networks.table import table_of
from rlgames.optim import TDL
from rlgames.testing.contract import broken, kit, name_of, random_boards, require, saved

COUNT = 40  # boards


@kit
def check_network(network: nn.Module, features: Features[Any], game: Rules[Any], seed: int = 0) -> None:
    """Check whether ``network`` keeps the contract of ``rlgames.networks.network``, and can learn.

    Its values must have their shape and scale and depend on nothing but the board; gradients must reach its
    parameters; its state must hold all that it learned. If compiled code takes it, both must agree.

    Args:
        network: the network, which stays as it is.
        features: what it reads; they keep their own contract.
        game: whose boards it values.
        seed: of the boards.

    Raises:
        ContractError: naming what is broken.
    """
    name = name_of(network)
    if not isinstance(network, nn.Module) or not any(p.requires_grad for p in network.parameters()):
        broken(f"{name} is not a torch.nn.Module with parameters that learn")
    for path, module in network.named_modules():
        for key, tensor in vars(module).items():
            if isinstance(tensor, Tensor):
                where = f"{path}.{key}" if path else key
                broken(f"{name}: {where} is a plain tensor, which is neither learned nor saved; see nn.Parameter")
    network = copy.deepcopy(network)
    boards = random_boards(game, COUNT, seed)
    x = features.encode(boards).to(next(network.parameters()).device)
    _check_values(network, x, name)
    _check_gradients(network, x, name)
    _check_state(network, x, name)
    table = table_of(network)
    if HAS_COMPILER and table is not None and table.features.compact is not None and isinstance(game, Game):
        _check_compiled(network, features, boards[:10], name)


@torch.no_grad()
def _check_values(network: nn.Module, x: Tensor, name: str) -> None:
    """Values have their shape and scale, and depend on nothing but the board."""
    values = network(x)
    if not isinstance(values, Tensor) or values.shape != (len(x),):
        given = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        broken(f"{name} gives {given} for {len(x)} boards, not [{len(x)}]")
    require(values.is_floating_point(), f"{name} gives {values.dtype}; values are floating-point numbers")
    require(bool(values.isfinite().all()), f"{name} gives values that are not finite")
    near = 1e-4 if values.dtype == torch.float32 else 1e-9
    again = network(x)
    require(
        bool(torch.allclose(again, values, rtol=0, atol=near)),
        f"{name} gives other values for the same boards again, up to {float((again - values).abs().max()):.2g} apart;"
        " agents do not switch dropout and the like off",
    )
    alone = torch.cat([network(row) for row in torch.split(x, 1)])
    require(
        bool(torch.allclose(alone, values, rtol=0, atol=near)),
        f"{name} gives a board another value alone than among others, up to {float((alone - values).abs().max()):.2g} "
        "apart; batch norm does so",
    )
    output = network.output if isinstance(network, Network) else "identity"
    low = 0 if output == "sigmoid" else -1
    require(
        bool((values >= low).all() and (values <= 1).all())
        if output != "identity"
        else float(values.abs().mean()) <= 1,
        f"{name} gives values from {float(values.min()):.3g} to {float(values.max()):.3g}; with output {output} they "
        f"are from {low} (the second player wins) to 1",
    )


def _check_gradients(network: nn.Module, x: Tensor, name: str) -> None:
    network.zero_grad(set_to_none=True)
    values = network(x)
    require(values.requires_grad, f"{name} gives values without a gradient, so that nothing is learned")
    values.sum().backward()
    grads = {key: p.grad for key, p in network.named_parameters() if p.requires_grad}
    for key, grad in grads.items():
        require(grad is not None, f"{name}: no gradient reaches {key}, so that it never learns")
    sizes = [float(grad.to_dense().abs().sum()) for grad in grads.values() if grad is not None]
    require(any(sizes), f"{name}: all gradients are 0, so that nothing is learned")
    require(bool(np.isfinite(sizes).all()), f"{name} has gradients that are not finite")


@torch.no_grad()
def _check_state(network: nn.Module, x: Tensor, name: str) -> None:
    """A network that has learned something is the same after a checkpoint."""
    other = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    for tensor in network.parameters():
        tensor.add_(0.01 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype).to(tensor.device))
    state = saved(network.state_dict())
    other.load_state_dict(state)
    require(
        bool(torch.equal(other(x), network(x))), f"{name}: state_dict() does not hold all that the values depend on"
    )


def _check_compiled(network: nn.Module, features: Features[Any], boards: list[Any], name: str) -> None:
    """Compiled code gives moves the same values."""
    network = copy.deepcopy(network).double().cpu()
    eager, fused = (kind(network, TDL(network.parameters()), features=features) for kind in (Eager, Fused))
    for board in boards:
        here, there = eager.move_values(board), fused.move_values(board)
        require(
            bool(np.allclose(here, there, rtol=0, atol=1e-9)),
            f"{name}: on {tuple(board)}, moves have the values {here.round(4)} in torch, but {there.round(4)} compiled",
        )
