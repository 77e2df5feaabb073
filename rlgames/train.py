"""Train an agent by self-play: ``python -m rlgames.train optimizer=tcl_exp games=500_000``."""

import sys
import traceback
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

    check(cfg)
    settle(cfg, words or [])
    saved = None
    if cfg.resume is not None:
        saved = checkpoint.load(cfg.resume)
        cfg = checkpoint.resumed(cfg, saved, words or [])
        check(cfg)
    player = assemble(cfg, saved)
    units = getattr(player.optimizer, "units", ())
    if units and player.network.output not in units:
        rule, output = type(player.optimizer).__name__, player.network.output
        print(f"note: {rule} is derived for {' or '.join(units)} units, not {output}; network={units[0]} suits it")
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


def assemble(cfg: DictConfig, saved: dict[str, Any] | None = None) -> Learning:
    """Build the player that ``cfg`` describes, with the weights and the optimizer's state of the checkpoint ``saved``.

    Raises:
        ValueError: if a constructor refuses its values.
    """
    from rlgames.agents import Eager, Fused

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
    if not optimizer:
        agent = learner.agent(cfg.engine)
    else:
        agent = {"fused": Fused, "eager": Eager}[cfg.engine](network, optimizer, learner.traces)
    return Learning(game, features, network, learner, optimizer, agent)


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
