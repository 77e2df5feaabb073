"""Train an agent by self-play: ``python -m rlgames.train optimizer=tcl_exp games=500_000``."""

import sys
import traceback
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from rlgames.build import CONF, ready
from rlgames.console import cli

# torch, numpy and numba are imported where needed, so that --help answers at once.


def train(cfg: DictConfig, words: list[str] | None = None) -> dict[str, Any]:
    """Train an agent from scratch, or resume the run ``cfg.resume``.

    Args:
        cfg: the configuration; see conf/train.yaml.
        words: the keys that were named ("games=1000"); on resuming, only these are compared or changed.

    Returns:
        What the run's result.json holds.

    Raises:
        ValueError: for an invalid configuration, or if a value became infinite or NaN.
        OSError: if something cannot be read or written.
        rlgames.interrupts.Interrupted: after a signal, once a checkpoint is written.
    """
    from rlgames.training import checkpoint
    from rlgames.training.assemble import assemble, build_evaluation, notes
    from rlgames.training.trainer import Trainer
    from rlgames.training.trust import trusted

    def begin(cfg: DictConfig, saved: dict[str, Any] | None = None) -> Trainer:
        parts = assemble(cfg, saved)
        for note in notes(parts):
            print(f"note: {note}")
        return Trainer(cfg, parts, build_evaluation(cfg, parts), saved)

    words = words or []
    cfg = ready(cfg, words, resumes=cfg.resume is not None)
    if cfg.resume is None:
        return begin(cfg).run()
    with checkpoint.held(cfg):
        again = checkpoint.unbegun(cfg, words)
        if again:
            return begin(ready(again, words)).run()
        resume = lambda saved: begin(ready(checkpoint.resumed(cfg, saved, words), words), saved)  # noqa: E731
        return checkpoint.load(cfg.resume, resume, trusted(cfg)).run()


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="train")
def main(cfg: DictConfig) -> float:
    """Train with the configuration of the command line; see ``rlgames.training.study.objective``."""
    job = HydraConfig.get()
    words, sweep = list(job.overrides.task), job.mode is RunMode.MULTIRUN
    if sweep:  # a folder for each run
        folder = Path(job.runtime.output_dir)
        cfg.run_dir = str(folder if cfg.run_dir is None else Path(cfg.run_dir) / str(job.job.num))
        words.append("run_dir=")
    try:
        from rlgames.training.study import objective, run_once

        return objective(train(cfg, words) if cfg.results is None else run_once(cfg, words, train))
    except Exception as error:
        cli.report(error, run=f"run {job.job.num}: " if sweep else "")
        if not sweep:
            sys.exit(1)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        raise cli.ReportedError from error  # Hydra continues with the other runs


cli.callable_module(__name__, train)

if __name__ == "__main__":
    cli.run(main, "train")
