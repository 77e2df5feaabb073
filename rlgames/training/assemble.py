"""From a configuration to the parts of a run: game, features, network, learner, optimizer and agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from omegaconf import DictConfig

from rlgames.build import build, torch_device
from rlgames.training.files import whole

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from rlgames.agents.agent import Agent
    from rlgames.evaluation.evaluation import Evaluation
    from rlgames.features.features import Features
    from rlgames.games.game import Rules
    from rlgames.learners.learner import Learner

# torch, numpy and numba are imported where needed, so that --help answers at once.


LARGE = 1e3  # step size


class Parts(NamedTuple):
    """The parts of a run: the game, how the agent sees, values and learns it, and its loop.

    With a learner that brings its own network, features and optimizer are None.
    """

    game: Rules[Any]
    features: Features[Any] | None
    network: nn.Module
    learner: Learner
    optimizer: Optimizer | None
    agent: Agent[Any]


def notes(parts: Parts) -> Iterable[str]:
    """What is unusual, but not wrong, about a combination of rule, unit and learner."""
    from rlgames.features.features import TableFeatures
    from rlgames.networks.network import Network
    from rlgames.optim import StepSize
    from rlgames.schedules import Constant

    optimizer, network = parts.optimizer, parts.network
    if optimizer is None:
        return
    rule, lr = type(optimizer).__name__, optimizer.defaults["lr"]
    if lr > LARGE:
        yield f"optimizer.lr is {lr:g}, far above what any rule needs"
    if not isinstance(optimizer, StepSize):
        return
    if optimizer.units and isinstance(network, Network) and network.output not in optimizer.units:
        units = " or ".join(optimizer.units)
        yield f"{rule} is derived for {units} units, not {network.output}; network={optimizer.units[0]} suits it"
    if optimizer.lr_is_start and parts.learner.lr != Constant(1.0):
        yield f"learner.lr has no effect on {rule}, whose lr is only the initial step size of weights"
    compact = parts.features.compact if isinstance(parts.features, TableFeatures) else None
    if compact and compact.images > 2 and any(group.get("extra_x") for group in optimizer.param_groups):
        yield (
            f"{rule} with optimizer.extra_x multiplies its steps by up to {compact.images} on symmetric boards of "
            f"{parts.game.name} and diverges; optimizer.extra_x=false does not"
        )


def assemble(cfg: DictConfig, saved: dict[str, Any] | None = None) -> Parts:
    """Build the parts that ``cfg`` describes, with weights and optimizer state from the checkpoint ``saved``.

    Raises:
        ValueError: if a constructor refuses its values, or if parts do not fit each other.
    """
    from rlgames.agents import Eager, Fused
    from rlgames.optim.checks import positive

    if cfg.engine == "batched":
        return _assemble_batched(cfg, saved)
    device = torch_device(cfg.device)
    kept = saved.get("tuples") if saved else None
    given = {"tuples": kept} if kept else {}  # a tuple file may have changed since
    game = _game(cfg)
    learner = _learner(cfg, game)
    brings = learner.brings
    features = None if "features" in brings else build(cfg, "features", game=game, **given)
    network = learner.network if "network" in brings else build(cfg, "network", features=features)
    network = _module(network).to(device)
    optimizer = None if "optimizer" in brings else build(cfg, "optimizer", params=network.parameters())
    if optimizer:
        positive("lr", optimizer.defaults["lr"])  # torch's own have no limit
    if saved:
        set_state(saved, network, optimizer, learner)
    agent = learner.agent(cfg.engine, network, optimizer, features)
    if agent is None:
        if optimizer is None:
            raise ValueError(f"learner: {type(learner).__name__} brings its own optimizer, so it must bring its agent")
        kind = Fused if cfg.engine == "fused" else Eager
        agent = kind(network, optimizer, learner.traces, learner.tactical, features)
    return Parts(game, features, network, learner, optimizer, agent)


def _game(cfg: DictConfig) -> Rules[Any]:
    """The game of ``cfg``, if it is one that fits.

    Raises:
        ValueError: naming what of the contract it breaks.
    """
    from rlgames.games.game import Game, Rules
    from rlgames.games.misfit import misfit

    game = build(cfg, "game")
    if not isinstance(game, Rules):
        raise ValueError(f"game: {type(game).__name__} is not an rlgames.games.game.Game")
    broken = misfit(game) if isinstance(game, Game) and not type(game).__module__.startswith("rlgames.") else None
    if broken:
        raise ValueError(f"game: {broken}")
    return game


def _learner(cfg: DictConfig, game: Rules[Any]) -> Learner:
    """The learner of ``cfg``."""
    from rlgames.learners.learner import Learner, adopted

    learner = build(cfg, "learner", game=game)
    if not isinstance(learner, Learner):
        learner.__class__ = adopted(type(learner))
    found: Learner = learner
    return found


def _module(network: Any) -> nn.Module:
    """``network``, if it is a module of torch that can learn.

    Raises:
        ValueError: if it is none.
    """
    from torch import nn

    if not isinstance(network, nn.Module) or not any(True for _ in network.parameters()):
        raise ValueError(f"network: {type(network).__name__} is not a torch.nn.Module with parameters")
    return network


def _assemble_batched(cfg: DictConfig, saved: dict[str, Any] | None) -> Parts:
    """The parts of ``assemble``; network and optimizer stay on the CPU while learning runs on the device."""
    from rlgames.agents.batched import Batched
    from rlgames.learners.td import TD
    from rlgames.learners.td_batched import BatchedTD

    device = torch_device(cfg.device)
    single = cfg.copy()
    single.update(engine="eager", device="cpu")
    parts = assemble(single, saved)
    td, optimizer = parts.learner, parts.optimizer
    if not isinstance(td, TD) or type(td).train is not TD.train or optimizer is None:
        raise ValueError(f"engine=batched needs learner=td, not {type(parts.learner).__name__}; use engine=fused")
    agent = Batched(parts.network, optimizer, device, cfg.batched.combine)
    agent.check_room(cfg.batch)
    learner = BatchedTD(td, cfg.batch, device, next(parts.network.parameters()).dtype, cfg.batched.horizon)
    if saved and saved.get("learner"):
        with whole("learner"):
            learner.load_state_dict(saved["learner"])
    return parts._replace(learner=learner, agent=agent)


def state_of(parts: Parts) -> dict[str, Any]:
    """What ``parts`` have learned, for checkpoints; None for parts without state."""
    network, learner, optimizer = parts.network, parts.learner, parts.optimizer
    return {
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict() if optimizer else None,
        "learner": learner.state_dict(),
    }


def set_state(state: dict[str, Any], network: nn.Module, optimizer: Optimizer | None, learner: Learner) -> None:
    """Restore what ``state_of`` returned.

    Raises:
        DamagedError: if it does not fit the parts.
    """
    with whole("network"):
        network.load_state_dict(state["network"])
    with whole("optimizer"):
        if optimizer:
            optimizer.load_state_dict(state["optimizer"])
            _check_shapes(optimizer)
    with whole("learner"):
        if state.get("learner"):
            learner.load_state_dict(state["learner"])


def _check_shapes(optimizer: Optimizer) -> None:
    from torch import Tensor

    for param, state in optimizer.state.items():
        for name, tensor in state.items():
            if isinstance(tensor, Tensor) and tensor.shape not in (param.shape, param.new_zeros(()).shape):
                raise ValueError(f"{name} has shape {list(tensor.shape)}, not {list(param.shape)}")


def build_evaluation(cfg: DictConfig, parts: Parts) -> Evaluation:
    """The evaluation of ``parts`` against the opponent of ``cfg``."""
    evaluation: Evaluation = build(cfg, "evaluation", game=parts.game, opponent=build(cfg, "opponent", game=parts.game))
    return evaluation
