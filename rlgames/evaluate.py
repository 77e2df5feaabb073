"""Evaluate a saved agent: ``python -m rlgames.evaluate checkpoint=runs/connect4/2026-01-31_12-00-00``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from rlgames.build import CONF, ready
from rlgames.console import cli
from rlgames.lineup import chosen_run
from rlgames.training.assemble import build_evaluation
from rlgames.training.files import write_atomically
from rlgames.training.restore import restore
from rlgames.training.trust import check_outside, trusted


def evaluate(
    cfg: DictConfig, words: list[str] | None = None, begin: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Measure the agent of ``cfg.checkpoint`` by ``cfg.evaluation``.

    Args:
        cfg: the configuration; see conf/evaluate.yaml.
        words: the overrides of the command line. If none names the evaluation and training used another kind, such as
            all lines of play, that kind is used, against its opponent.
        begin: is told which agent is measured, before that takes its time.

    Returns:
        The figures by name; "scores" holds the scores of the evaluation, "report" the same as text.

    Raises:
        ValueError: if the checkpoint cannot be read or the configuration is invalid.
        OSError: if the file ``cfg.json`` cannot be written.
    """
    import numpy as np

    from rlgames.training import records

    cfg = ready(cfg)
    restored = restore(chosen_run(cfg), cfg.engine, cfg.device, cfg.lookahead, trusted(cfg))
    _, saved, saved_cfg, parts = restored
    named = {word.lstrip("+").partition("=")[0].partition(".")[0] for word in words or []}
    if "evaluation" not in named and saved_cfg.evaluation._target_ != cfg.evaluation._target_:
        cfg.evaluation = saved_cfg.evaluation
        if "opponent" not in named:
            cfg.opponent = saved_cfg.opponent
        check_outside(
            OmegaConf.to_container(OmegaConf.masked_copy(cfg, ["evaluation", "opponent"])), named, choose=True
        )
    evaluation = build_evaluation(cfg, parts)
    begin(f"{saved['games']:,} games of training, {restored.path}")
    scores = evaluation.scores(restored.greedy(), np.random.default_rng(cfg.seed))
    figures = {"games": saved["games"], **evaluation.flat(scores)}
    if cfg.json is not None:
        write_atomically(Path(os.path.expanduser(cfg.json)), records.to_json(figures))
    return {**figures, "scores": scores, "report": evaluation.report(scores)}


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="evaluate")
def main(cfg: DictConfig) -> None:
    """Evaluate as the command line describes."""
    try:
        cfg = ready(cfg)
        cfg.checkpoint = chosen_run(cfg)
        result = evaluate(cfg, list(HydraConfig.get().overrides.task), lambda text: print(text, flush=True))
    except Exception as error:
        cli.report(error, "evaluate")
        sys.exit(1)
    print(result["report"])


cli.callable_module(__name__, evaluate)

if __name__ == "__main__":
    cli.run(main, "evaluate")
