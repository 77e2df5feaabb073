"""From a checkpoint to the agent saved in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from rlgames.build import target_of
from rlgames.training.assemble import Parts, assemble
from rlgames.training.trust import without_outside


class Restored(NamedTuple):
    """A saved agent.

    Attributes:
        path: what it was read from.
        saved: the checkpoint.
        cfg: its configuration, with the requested engine, device and lookahead.
        parts: see ``rlgames.training.assemble.Parts``.
    """

    path: str
    saved: dict[str, Any]
    cfg: DictConfig
    parts: Parts

    @property
    def lookahead(self) -> int:
        """Plies it looks ahead."""
        return self.cfg.get("lookahead") or 1

    def greedy(self) -> Any:
        """The agent as a player, see ``rlgames.players.GreedyPlayer``."""
        from rlgames.players import GreedyPlayer

        return GreedyPlayer(self.parts.agent, self.lookahead)

    @property
    def description(self) -> str:
        """Such as "TCLEXP, 500,000 games"."""
        optimizer = self.parts.optimizer
        return f"{type(optimizer or self.parts.learner).__name__}, {self.saved['games']:,} games"


def restore(
    path: str | Path,
    engine: str | None = None,
    device: str = "cpu",
    lookahead: int | None = None,
    trust: str | Iterable[str] = (),
) -> Restored:
    """Read the agent of a run folder or checkpoint, with its mean weights if it kept them.

    Args:
        path: of the folder or file.
        engine: fused or eager; None: that of the agent which evaluated the run, if it works here.
        device: of its weights.
        lookahead: plies it looks ahead; None: as in the evaluations of its training.
        trust: modules outside the package whose classes may be built; see ``rlgames.training.trust``.

    Raises:
        ValueError: if it cannot be read or built.
    """
    from rlgames.training import checkpoint

    def use(saved: dict[str, Any]) -> Restored:
        for part in ("learner", "features"):  # it plays and does not train: no book, no engine
            without_outside(saved["config"].get(part))
        cfg = OmegaConf.create(saved["config"])
        plies = lookahead or cfg.get("lookahead") or 1
        cfg.update(engine=engine or _engine(cfg, device), device=device, lookahead=plies)
        average = saved.get("average")
        if average and average["samples"]:
            saved["network"] = average["network"]
        return Restored(str(path), saved, cfg, assemble(cfg, saved))

    return checkpoint.load(path, use, trust)


def _engine(cfg: DictConfig, device: str) -> str:
    """The engine of the agent that evaluated the run of ``cfg``, or else the one that works on ``device``."""
    from rlgames.compiled import HAS_COMPILER
    from rlgames.optim import StepSize

    batched = cfg.engine == "batched" and issubclass(target_of(cfg.optimizer._target_, "optimizer"), StepSize)
    return "fused" if HAS_COMPILER and device == "cpu" and (batched or cfg.engine == "fused") else "eager"
