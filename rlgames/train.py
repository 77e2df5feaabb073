"""Train an agent by self-play: ``python -m rlgames.train optimizer=tcl_exp games=500_000``."""

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from rlgames import cli
from rlgames.build import CONF, build, check, settle, torch_device

# torch, numpy and numba are imported where they are needed: --help answers at once.


def train(cfg: DictConfig, words: list[str] | None = None) -> dict[str, Any]:
    """Train an agent from nothing, or go on with the run ``cfg.resume``.

    Args:
        cfg: the configuration, conf/train.yaml says what it holds.
        words: those of its keys that were named ("games=1000"); on resuming only they are compared and taken over.

    Returns:
        What the run's result.json holds.

    Raises:
        ValueError: for a configuration that makes no sense, or when a value was not finite.
        OSError: if something cannot be read or written.
        rlgames.cli.Interrupted: after Ctrl-C or SIGTERM, when a checkpoint has been written.
    """
    from rlgames import checkpoint
    from rlgames.trainer import Trainer

    settle(cfg, words or [])
    check(cfg)
    saved = None
    if cfg.resume is not None:
        saved = checkpoint.load(cfg.resume)
        cfg = checkpoint.resumed(cfg, saved, words or [])
        check(cfg)
    player = assemble(cfg, saved)
    for note in notes(player):
        print(f"note: {note}")
    evaluation = build_evaluation(cfg, player)
    return Trainer(cfg, player, evaluation, saved).run()


class Learning(NamedTuple):
    """A player that learns: the game, how the agent sees, values and changes it, and the loop in which it does.

    A learner that brings its own network has neither features nor optimizer.
    """

    game: Any
    features: Any
    network: Any
    learner: Any
    optimizer: Any
    agent: Any


def notes(player: Learning) -> Iterable[str]:
    """What is odd about a combination of rule, unit and learner, but not wrong."""
    from rlgames.schedules import Constant

    rule, units = type(player.optimizer).__name__, getattr(player.optimizer, "units", ())
    output = player.network.output if units else None
    if units and output not in units:
        yield f"{rule} is derived for {' or '.join(units)} units, not {output}; network={units[0]} suits it"
    changes_lr = getattr(player.learner, "lr", Constant(1.0)) != Constant(1.0)
    if changes_lr and getattr(player.optimizer, "lr_is_start", False):
        yield f"learner.lr has no effect on {rule}, whose lr is only the step size with which weights begin"
    images = getattr(getattr(player.features, "compact", None), "images", 1)
    if images > 2 and any(group.get("extra_x") for group in getattr(player.optimizer, "param_groups", ())):
        yield (
            f"{rule} with optimizer.extra_x multiplies its steps by up to {images} on symmetric boards of "
            f"{player.game.name} and diverges; optimizer.extra_x=false does not"
        )


def assemble(cfg: DictConfig, saved: dict[str, Any] | None = None) -> Learning:
    """Build the player that ``cfg`` describes, with the weights and the optimizer's state of the checkpoint ``saved``.

    Raises:
        ValueError: if a constructor refuses its values.
    """
    from rlgames.agents import Eager, Fused

    if cfg.engine == "batched":
        return _assemble_batched(cfg, saved)
    device = torch_device(cfg.device)
    tuples = {"tuples": saved["tuples"]} if saved and saved["tuples"] else {}  # a file may have changed since
    game = build(cfg, "game")
    learner = build(cfg, "learner", game=game)
    features = None if "features" in learner.brings else build(cfg, "features", game=game, **tuples)
    network = (build(cfg, "network", features=features) if features else learner.network).to(device)
    optimizer = build(cfg, "optimizer", params=network.parameters()) if features else None
    if saved:
        network.load_state_dict(saved["network"])
    if saved and optimizer:
        optimizer.load_state_dict(saved["optimizer"])
    if saved and saved.get("learner") and hasattr(learner, "load_state_dict"):  # not if it was another engine's
        learner.load_state_dict(saved["learner"])
    if hasattr(learner, "agent"):  # of a kind of its own
        agent = learner.agent(cfg.engine, network, optimizer)
    else:
        kind: Any = {"fused": Fused, "eager": Eager}[cfg.engine]
        agent = kind(network, optimizer, learner.traces, getattr(learner, "tactical", False))
    return Learning(game, features, network, learner, optimizer, agent)


def _assemble_batched(cfg: DictConfig, saved: dict[str, Any] | None) -> Learning:
    """The player of ``assemble``, whose network and optimizer stay on the CPU while it learns on the device."""
    from rlgames.agents.batched import Batched
    from rlgames.learners.td import TD
    from rlgames.learners.td_batched import BatchedTD

    device = torch_device(cfg.device)
    single = cfg.copy()
    single.update(engine="eager", device="cpu")
    parts = assemble(single, saved)
    if not isinstance(parts.learner, TD):
        raise ValueError(f"engine=batched plays learner=td, not {type(parts.learner).__name__}; use engine=fused")
    if parts.game.boards is None:
        raise ValueError(f"engine=batched needs boards as tensors, which {parts.game.name} has not; use engine=fused")
    agent = Batched(parts.network, parts.optimizer, device, cfg.batched.combine)
    agent.check_room(cfg.batch)
    learner = BatchedTD(parts.learner, cfg.batch, device, parts.network.embedding.weight.dtype, cfg.batched.horizon)
    if saved and saved.get("learner"):
        learner.load_state_dict(saved["learner"])
    return parts._replace(learner=learner, agent=agent)


def build_evaluation(cfg: DictConfig, player: Learning) -> Any:
    """The evaluation of ``player`` against the opponent of ``cfg``: call it with an agent and a random generator."""
    return build(cfg, "evaluation", game=player.game, opponent=build(cfg, "opponent", game=player.game))


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="train")
def main(cfg: DictConfig) -> float:
    """Train with the configuration of the command line; see ``rlgames.study.objective``."""
    job = HydraConfig.get()
    words, sweep = list(job.overrides.task), job.mode is RunMode.MULTIRUN
    folder = Path(job.runtime.output_dir)
    if sweep:  # a folder for each run
        cfg.run_dir = str(folder if cfg.run_dir is None else Path(cfg.run_dir) / str(job.job.num))
        words.append("run_dir=")
    try:
        from rlgames.study import objective, run_once

        return objective(train(cfg, words) if cfg.results is None else run_once(cfg, words, train))
    except Exception as error:
        cli.report(error, run=f"run {job.job.num}: " if sweep else "")
        if not sweep:
            sys.exit(1)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        raise cli.ReportedError from error  # Hydra goes on with the other runs


if __name__ == "__main__":
    cli.run(main, "train")
