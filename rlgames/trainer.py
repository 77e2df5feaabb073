"""The trainer: plays in chunks, and between them evaluates, logs and saves."""

import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from rlgames import checkpoint, records
from rlgames.agents import Eager, Fused
from rlgames.cli import Interrupted, Interruptible
from rlgames.learners.td import Episodes
from rlgames.policy import best_move
from rlgames.progress import ProgressBar

CHUNK = {"fused": 1000, "eager": 10}  # games, at most about a second; the result does not depend on it
LOGS = 10  # points of training curves per evaluation
SUCCESS = "success_first"  # the success rate of headlines: the published protocol


@dataclass
class Progress:
    """What a run has done so far; plain values, as they stand in a checkpoint.

    Attributes:
        games: games played.
        evaluated: games at the last evaluation.
        moves: moves made.
        since_evaluation, since_log: sums over the games since then, see ``Episodes``.
        seconds: wall and CPU seconds of training and of evaluation.
        rows: the lines of progress.csv.
    """

    games: int = 0
    evaluated: int = 0
    moves: int = 0
    since_evaluation: tuple[Any, ...] = Episodes()
    since_log: tuple[Any, ...] = Episodes()
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(
            ("wall_seconds", "cpu_seconds", "evaluation_wall_seconds", "evaluation_cpu_seconds"), 0.0
        )
    )
    rows: list[records.Row] = field(default_factory=list)


class Trainer:
    """Runs a training run.

    Args:
        cfg: the configuration.
        player: game, network, learner, optimizer and agent, see ``rlgames.train.Learning``.
        evaluation: called with the agent and a random generator; returns numbers by name.
        saved: the checkpoint to go on from.

    Raises:
        ValueError: if the run folder is in use.
        OSError: if it cannot be made.
    """

    def __init__(self, cfg: DictConfig, player: Any, evaluation: Any, saved: dict[str, Any] | None = None) -> None:
        self.cfg, self.player, self.evaluation = cfg, player, evaluation
        self.rng = np.random.default_rng(cfg.seed)
        self.progress = Progress()
        if saved:
            self.rng.bit_generator.state = saved["rng"]
            self.progress = Progress(**saved["progress"])
        self.lr = float(player.optimizer.defaults["lr"])  # the agent's changes with the schedule
        self.folder = records.claim_folder(cfg, player.game.name)
        self._saved_at, self._stored = time.monotonic(), True

    def run(self) -> dict[str, Any]:
        """Play the games that are left; returns the content of result.json. Raises what ``rlgames.train.train`` says."""
        with ExitStack() as stack:
            self.dashboard = records.Dashboard(self.folder, self.progress.games)
            stack.callback(self.dashboard.close)
            self.signals = stack.enter_context(Interruptible())
            self.bar = stack.enter_context(ProgressBar(self.progress.games, self.cfg.games))
            self.bar.print(f"training {self.cfg.games:,} games in {_shown(self.folder)}")
            self.player.learner.play(self.player.agent, 0, 0, self.lr, self.rng)  # compiles
            try:
                self._loop()
            except Interrupted:
                self._save()
                self._finish("interrupted")
                raise
            except Exception:
                with suppress(OSError):
                    self._write_result("failed")
                raise
            return self._finish("finished")

    def _loop(self) -> None:
        p, cfg = self.progress, self.cfg
        while True:
            if p.games > p.evaluated and (p.games % cfg.eval_every == 0 or p.games == cfg.games):
                self._evaluate()
                self._save()
            if p.games == cfg.games:
                return
            self._play()
            if self.signals.signum:
                raise Interrupted(self.signals.signum)
            if time.monotonic() - self._saved_at > 60 * cfg.checkpoint_minutes:
                self._save()

    # ---- the three things it does

    def _play(self) -> None:
        """Play up to the next chunk, log or evaluation, whichever comes first."""
        p, cfg = self.progress, self.cfg
        log_every = max(1, cfg.eval_every // LOGS)
        ends = [p.games + CHUNK[cfg.engine], cfg.games, *((p.games // n + 1) * n for n in (log_every, cfg.eval_every))]
        self._stored = False
        with _Clock(p.seconds):
            episodes = self.player.learner.play(self.player.agent, p.games, min(ends) - p.games, self.lr, self.rng)
        if not np.isfinite(episodes.errors):
            raise ValueError(self._not_finite(f"in game {p.games + episodes.games}"))
        p.games += episodes.games
        p.moves += episodes.plies
        p.since_evaluation = Episodes(*p.since_evaluation).plus(episodes)
        p.since_log = Episodes(*p.since_log).plus(episodes)
        if p.games % log_every == 0 or p.games == cfg.games:
            self._log()
        self.bar.update(p.games, p.rows[-1].get(SUCCESS) if p.rows else None, self._epsilon())

    def _evaluate(self) -> None:
        """Measure the agent, without touching its random stream; log the result."""
        p = self.progress
        self._store()
        with _Clock(p.seconds, "evaluation_"), self.signals.stopping_at_once():
            numbers = self.evaluation(self.player.agent, np.random.default_rng([self.cfg.seed, p.games]))
        row = {"games": p.games, **_rounded(p.seconds), "moves": p.moves, **self._means(p.since_evaluation), **numbers}
        p.rows.append(row)
        p.evaluated, p.since_evaluation = p.games, Episodes()
        checkpoint.write_atomically(self.folder / "progress.csv", records.to_csv(p.rows))
        self.dashboard.scalars(p.games, {f"evaluation/{name}": number for name, number in numbers.items()})
        self.dashboard.step_sizes(p.games, records.step_sizes(self.player.optimizer))
        self.dashboard.text(p.games, "sample game", self._sample_game())
        self.dashboard.flush()
        self.bar.print(f"{p.games:>11,} games: {_success(row)}")

    def _save(self) -> None:
        """Write a checkpoint; never one that is not finite."""
        self._store()
        if not all(torch.isfinite(param).all() for param in self.player.network.parameters()):
            raise ValueError(self._not_finite(f"by game {self.progress.games}"))
        content = {
            "config": OmegaConf.to_container(self.cfg, resolve=True),
            "tuples": getattr(self.player.features, "tuples", None),
            "network": self.player.network.state_dict(),
            "optimizer": self.player.optimizer.state_dict(),
            "rng": self.rng.bit_generator.state,
            "progress": {name: _plain(value) for name, value in asdict(self.progress).items()},
        }
        checkpoint.save(self.folder / "checkpoints", self.progress.games, content)
        self._saved_at = time.monotonic()

    # ---- small parts of them

    def _store(self) -> None:
        """Bring what compiled code has learned into the tensors of network and optimizer."""
        if not self._stored and isinstance(self.player.agent, Fused):
            self.player.agent.store()
        self._stored = True

    def _log(self) -> None:
        """A point of the training curves."""
        p = self.progress
        means = self._means(p.since_log)
        seconds = p.seconds["wall_seconds"] - self._logged_at
        means["games_per_second"] = p.since_log[0] / seconds if seconds > 0 else math.nan
        self.dashboard.scalars(p.games, {f"train/{name}": number for name, number in means.items()})
        self._logged_at, p.since_log = p.seconds["wall_seconds"], Episodes()

    def _means(self, sums: tuple[Any, ...]) -> records.Row:
        """Means over some games, and the schedules where they end."""
        episodes = Episodes(*sums)
        return {
            "game_length": _rounded(episodes.plies / episodes.games),
            "td_error": _rounded(episodes.errors / episodes.updates) if episodes.updates else None,
            "epsilon": self._epsilon(),
            "lr": _rounded(self.player.optimizer.param_groups[0]["lr"] if self._stored else math.nan),
        }

    def _not_finite(self, when: str) -> str:
        last = f"the last good checkpoint is in {_shown(self.folder)}" if self.progress.evaluated else "no checkpoint is kept"
        return f"the values became infinite or NaN {when}; {last}; a smaller optimizer.lr may help"
