"""From a configuration to the parts of a run: game, features, network, learner, optimizer and agent."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from omegaconf import DictConfig

from rlgames.build import build, torch_device
from rlgames.training.files import whole

# torch, numpy and numba are imported where needed, so that --help answers at once.


LARGE = 1e3  # step size


class Parts(NamedTuple):
    """The parts of a run: the game, how the agent sees, values and learns it, and its loop.

    With a learner that brings its own network, features and optimizer are None.
    """

    game: Any
    features: Any
    network: Any
    learner: Any
    optimizer: Any
    agent: Any


def notes(parts: Parts) -> Iterable[str]:
    """What is unusual, but not wrong, about a combination of rule, unit and learner."""
    from rlgames.schedules import Constant

    rule, units = type(parts.optimizer).__name__, getattr(parts.optimizer, "units", ())
    output = parts.network.output if units else None
    if units and output not in units:
        yield f"{rule} is derived for {' or '.join(units)} units, not {output}; network={units[0]} suits it"
    changes_lr = getattr(parts.learner, "lr", Constant(1.0)) != Constant(1.0)
    lr = parts.optimizer.defaults["lr"] if parts.optimizer else 0.0
    if lr > LARGE:
        yield f"optimizer.lr is {lr:g}, far above what any rule needs"
    if changes_lr and getattr(parts.optimizer, "lr_is_start", False):
        yield f"learner.lr has no effect on {rule}, whose lr is only the initial step size of weights"
    images = getattr(getattr(parts.features, "compact", None), "images", 1)
    if images > 2 and any(group.get("extra_x") for group in getattr(parts.optimizer, "param_groups", ())):
        yield (
            f"{rule} with optimizer.extra_x multiplies its steps by up to {images} on symmetric boards of "
            f"{parts.game.name} and diverges; optimizer.extra_x=false does not"
        )


def assemble(cfg: DictConfig, saved: dict[str, Any] | None = None) -> Parts:
    """Build the parts that ``cfg`` describes, with weights and optimizer state from the checkpoint ``saved``.

    Raises:
        ValueError: if a constructor refuses its values.
    """
    from rlgames.agents import Eager, Fused
    from rlgames.optim.checks import positive

    if cfg.engine == "batched":
        return _assemble_batched(cfg, saved)
    device = torch_device(cfg.device)
    tuples = {"tuples": saved["tuples"]} if saved and saved["tuples"] else {}  # a tuple file may have changed since
    game = build(cfg, "game")
    learner = build(cfg, "learner", game=game)
    features = None if "features" in learner.brings else build(cfg, "features", game=game, **tuples)
    network = (build(cfg, "network", features=features) if features else learner.network).to(device)
    optimizer = build(cfg, "optimizer", params=network.parameters()) if features else None
    if optimizer:
        positive("lr", optimizer.defaults["lr"])  # torch's own have no limit
    if saved:
        set_state(saved, network, optimizer, learner)
    if hasattr(learner, "agent"):  # its own kind of agent
        agent = learner.agent(cfg.engine, network, optimizer)
    else:
        kind: Any = {"fused": Fused, "eager": Eager}[cfg.engine]
        agent = kind(network, optimizer, learner.traces, getattr(learner, "tactical", False))
    return Parts(game, features, network, learner, optimizer, agent)


def _assemble_batched(cfg: DictConfig, saved: dict[str, Any] | None) -> Parts:
    """The parts of ``assemble``; network and optimizer stay on the CPU while learning runs on the device."""
    from rlgames.agents.batched import Batched
    from rlgames.learners.td import TD
    from rlgames.learners.td_batched import BatchedTD

    device = torch_device(cfg.device)
    single = cfg.copy()
    single.update(engine="eager", device="cpu")
    parts = assemble(single, saved)
    if not isinstance(parts.learner, TD):
        raise ValueError(f"engine=batched needs learner=td, not {type(parts.learner).__name__}; use engine=fused")
    if parts.game.boards is None:
        raise ValueError(f"engine=batched needs boards as tensors, which {parts.game.name} lacks; use engine=fused")
    agent = Batched(parts.network, parts.optimizer, device, cfg.batched.combine)
    agent.check_room(cfg.batch)
    learner = BatchedTD(parts.learner, cfg.batch, device, parts.network.embedding.weight.dtype, cfg.batched.horizon)
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
        "learner": learner.state_dict() if hasattr(learner, "state_dict") else None,
    }


def set_state(state: dict[str, Any], network: Any, optimizer: Any, learner: Any) -> None:
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
        if state.get("learner") and hasattr(learner, "load_state_dict"):  # not from another engine
            learner.load_state_dict(state["learner"])


def _check_shapes(optimizer: Any) -> None:
    for param, state in optimizer.state.items():
        for name, tensor in state.items():
            if getattr(tensor, "shape", param.shape) not in (param.shape, param.new_zeros(()).shape):
                raise ValueError(f"{name} has shape {list(tensor.shape)}, not {list(param.shape)}")


def build_evaluation(cfg: DictConfig, parts: Parts) -> Any:
    """The evaluation of ``parts`` against the opponent of ``cfg``: call it with an agent and a random generator."""
    return build(cfg, "evaluation", game=parts.game, opponent=build(cfg, "opponent", game=parts.game))
