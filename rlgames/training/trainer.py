"""The trainer: plays in chunks; between them it evaluates, logs and saves."""

import copy
import math
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from rlgames.agents.averaging import Average
from rlgames.console.progress import ProgressBar
from rlgames.episodes import Episodes
from rlgames.evaluation.evaluation import Evaluation
from rlgames.games.game import Game
from rlgames.interrupts import SIGPIPE, Interrupted, Interruptible, ask, asked, name_of
from rlgames.optim import StepSize
from rlgames.players import GreedyPlayer
from rlgames.training import checkpoint, records
from rlgames.training.assemble import Parts, set_state, state_of
from rlgames.training.dashboard import Dashboard, own_game, thoughts
from rlgames.training.files import whole, write_atomically

CHUNK = {"fused": 1000, "eager": 10}  # most games in a chunk, about a second; does not affect the result
CHUNK_BATCHED = 10  # or the batch size: how often schedules are read and the device is awaited
LOGS = 10  # points of the training curves per evaluation


def _no_seconds() -> dict[str, float]:
    return {f"{part}{kind}_seconds": 0.0 for part in ("", "evaluation_") for kind in ("wall", "cpu")}


@dataclass
class Progress:
    """What a run has done so far.

    Attributes:
        games: games played.
        evaluated: games at the last evaluation.
        moves: moves made.
        since_evaluation, since_log: sums over the games since then.
        seconds: wall and CPU seconds of training and of evaluation.
        rows: the lines of progress.csv.
    """

    games: int = 0
    evaluated: int = 0
    moves: int = 0
    since_evaluation: Episodes = field(default_factory=Episodes)
    since_log: Episodes = field(default_factory=Episodes)
    seconds: dict[str, float] = field(default_factory=_no_seconds)
    rows: list[records.Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Checkpoints hold lists instead of Episodes."""
        self.since_evaluation, self.since_log = Episodes(*self.since_evaluation), Episodes(*self.since_log)


class Trainer:
    """Executes a training run.

    Args:
        cfg: the configuration.
        parts: game, network, learner, optimizer and agent, see ``rlgames.training.assemble.Parts``.
        evaluation: measures the agent.
        saved: the checkpoint to resume.

    Raises:
        ValueError: if the run folder is in use.
        OSError: if it cannot be made.
    """

    def __init__(
        self, cfg: DictConfig, parts: Parts, evaluation: Evaluation, saved: dict[str, Any] | None = None
    ) -> None:
        self.cfg, self.parts, self.evaluation = cfg, parts, evaluation
        self.chunk = parts.learner.chunk
        self.log_every = max(1, cfg.eval_every // LOGS // self.chunk) * self.chunk
        self.rng = np.random.default_rng(cfg.seed)
        self.progress = Progress()
        self.average = self._averaging() if cfg.average_from is not None else None
        if saved:
            with whole("random stream"):
                self.rng.bit_generator.state = saved["rng"]
            with whole("progress"):
                self.progress = Progress(**saved["progress"])
            with whole("mean of the weights"):
                if self.average and saved.get("average"):
                    self.average.load_state_dict(saved["average"])
        self.lr = parts.optimizer.defaults["lr"] if parts.optimizer else 1.0  # the schedule changes the groups' lr
        if cfg.eval_every % self.chunk:
            raise ValueError(
                f"eval_every is {cfg.eval_every}; it must be a multiple of learner.update_every={self.chunk}"
            )
        future = np.linspace(self.progress.games, max(self.progress.games, cfg.games - 1), 10_001).astype(np.int64)
        parts.learner.curves(np.unique(future), self.lr)  # refuses what would leave its range later
        self._greedy()  # refuses a bad lookahead before the first games
        self._claim = ExitStack()
        self.folder = self._claim.enter_context(records.claimed_folder(cfg, parts.game.name))
        self._began = self.progress.seconds["wall_seconds"]
        self._logged = self.progress.games, self._began
        self._saved_at, self._stored = time.monotonic(), True
        self._at_once = CHUNK.get(cfg.engine, 0)  # games

    def run(self) -> dict[str, Any]:
        """Play the remaining games; return the content of result.json. Raises what ``rlgames.train.train`` lists."""
        with self._claim as stack:
            self.dashboard = stack.enter_context(Dashboard(self.folder, self.progress.games))
            self.dashboard.begin(self.progress.games, self.cfg, self.evaluation.measures)
            self.parts.learner.open_folder(self.folder, self.progress.games)
            stack.callback(self.parts.learner.close)
            p, total = self.progress, self.cfg.games
            there = ", already there" if p.evaluated == p.games >= total else ""
            print(f"{total:,} games of {self.parts.game.name}, in {records.shown(self.folder)}{there}", flush=True)
            if p.games < total:
                self._learn(0)  # compiles
            self.signals = stack.enter_context(Interruptible())
            self.bar = stack.enter_context(ProgressBar(p.games, total))
            try:
                self._loop()
            except (Interrupted, BrokenPipeError) as error:
                self._stop(getattr(error, "signum", SIGPIPE))
            except Exception:
                if asked():  # the interrupted call raised its own error
                    self._stop(asked())
                with suppress(OSError):
                    self._write_result("failed")
                raise
            return self._finish()

    def _stop(self, signum: int) -> NoReturn:
        """Save a checkpoint, and print how to resume if anybody still reads."""
        self._save()
        self._write_result("interrupted")
        p, total = self.progress, self.cfg.games
        done = f"{p.games:,} of {total:,} games" if p.games < total else f"all {total:,} games, in the evaluation"
        words = f"stopped by {name_of(signum)} after {done}; resume: {records.go_on(self.folder)}"
        with suppress(OSError):
            self.bar.print(words)
        raise Interrupted(signum)

    def _loop(self) -> None:
        p, cfg = self.progress, self.cfg
        while True:
            if _passed(p.evaluated, p.games, cfg.eval_every) or p.evaluated < p.games >= cfg.games:
                self._evaluate()
                if cfg.checkpoint_at_evaluations or p.games >= cfg.games:
                    self._save()
            if p.games >= cfg.games:
                return
            self._play()
            ask()
            if time.monotonic() - self._saved_at > 60 * cfg.checkpoint_minutes:
                self._save()

    def _play(self) -> None:
        """Play up to the end of a chunk, to the next log or to the next evaluation, whichever comes first."""
        p, cfg = self.progress, self.cfg
        chunk = self.chunk if self.chunk > 1 else self._at_once or max(CHUNK_BATCHED, cfg.batch)
        begin, ends = p.games, [cfg.games, *((p.games // n + 1) * n for n in (chunk, self.log_every, cfg.eval_every))]
        before = p.seconds["wall_seconds"]
        with _Clock(p.seconds):
            episodes = self._learn(min(ends) - p.games)
        if p.seconds["wall_seconds"] - before > 1:  # signals must not wait
            self._at_once = -(-self._at_once // 2)
        if not np.isfinite(episodes.errors):
            raise ValueError(self._not_finite(f"in game {p.games + episodes.games}"))
        self.signals.at_once = False  # from now on there is something to save
        p.games += episodes.games
        p.moves += episodes.plies
        p.since_evaluation, p.since_log = p.since_evaluation.plus(episodes), p.since_log.plus(episodes)
        if _passed(begin, p.games, self.log_every) or p.games >= cfg.games:
            self._log()
            if self.average and p.games >= cfg.average_from:
                with _Clock(p.seconds):
                    self._store()
                    self.average.add()
        strength = self.evaluation.main.shown(p.rows[-1] if p.rows else {})
        name, number = next(iter(self._curves().items()))
        self.bar.update(p.games, p.seconds["wall_seconds"] - self._began, strength, f"{name} {number:.3g}")

    def _learn(self, games: int) -> Episodes:
        """Play ``games`` and learn from them; from games that belong together, all or none."""
        self._stored = False
        before = copy.deepcopy(self._state()) if self.chunk > 1 else None
        try:
            episodes: Episodes = self.parts.learner.train(
                self.parts.agent, self.progress.games, games, self.lr, self.rng
            )
            return episodes
        except Interrupted:
            if before:
                set_state(before, self.parts.network, self.parts.optimizer, self.parts.learner)
                self.rng.bit_generator.state = before["rng"]
            raise

    def _state(self) -> dict[str, Any]:
        """What the games change."""
        return {**state_of(self.parts), "rng": self.rng.bit_generator.state}

    def _log(self) -> None:
        """Log a point of the training curves."""
        p = self.progress
        numbers = self._means(p.since_log)
        if p.since_log.games == p.games - self._logged[0]:  # not in an interval in which the run was resumed
            numbers["games_per_second"] = p.since_log.games / (p.seconds["wall_seconds"] - self._logged[1])
        self.dashboard.scalars(p.games, {f"train/{name}": number for name, number in numbers.items()})
        p.since_log, self._logged = Episodes(), (p.games, p.seconds["wall_seconds"])

    def _evaluate(self) -> None:
        """Measure the agent and record the result; the random stream of training stays untouched."""
        self.signals.at_once = False
        self._store()
        with self.average.playing() if self.average else nullcontext():
            self._measure()

    def _averaging(self) -> Average:
        over = self.cfg.average_over
        return Average(self.parts.network, self.parts.agent, over and math.exp(-self.log_every / over))

    def _greedy(self) -> GreedyPlayer:
        return GreedyPlayer(self.parts.agent, self.cfg.lookahead or 1)

    def _measure(self) -> None:
        p = self.progress
        greedy = self._greedy()
        rng = np.random.default_rng([self.cfg.seed, p.games])
        with _Clock(p.seconds, "evaluation_"):
            numbers = self.evaluation.records(greedy, rng)
        seconds = {name: round(number, 3) for name, number in p.seconds.items()}
        p.rows.append(
            {"games": p.games, **seconds, "moves": p.moves, **self._means(p.since_evaluation), **_plain(numbers)}
        )
        p.evaluated, p.since_evaluation = p.games, Episodes()
        write_atomically(self.folder / "progress.csv", records.to_csv(p.rows))
        self.dashboard.scalars(p.games, {f"evaluation/{name}": number for name, number in numbers.items()})
        self.dashboard.scalars(p.games, records.rule_numbers(self.parts.network, self.parts.optimizer))
        self.dashboard.step_sizes(p.games, records.step_sizes(self.parts.optimizer))
        self.dashboard.text(p.games, "sample_game", self.evaluation.sample(greedy, rng))
        self.dashboard.show(p.games, self.parts.learner.look(self.parts.agent, p.games))
        game = self.parts.game
        if isinstance(game, Game):  # others need other pictures, which the learner's look may hold
            boards = own_game(game, greedy, rng)
            self.dashboard.picture(p.games, "boards", thoughts(game, self.parts.agent, boards))
            error = p.rows[-1]["td_error"] or 0.1  # None or 0: no learning steps
            shares = records.step_share(self.parts.network, self.parts.optimizer, boards[:-1], error)
            self.dashboard.scalars(p.games, shares)
        self.dashboard.flush()
        self.bar.print(f"{p.games:>11,} games: {self.evaluation.headline(p.rows[-1])}")

    def _save(self) -> None:
        """Write a checkpoint; refuse one that is not finite."""
        self._store()
        if not all(torch.isfinite(param).all() for param in self.parts.network.parameters()):
            raise ValueError(self._not_finite(f"by game {self.progress.games}"))
        content = {
            "config": OmegaConf.to_container(self.cfg),  # keeps "${games}", which follows a new total
            "tuples": self.parts.features.kept().get("tuples") if self.parts.features else None,
            "average": self.average.state_dict() if self.average else None,
            **self._state(),
            "progress": asdict(self.progress),
        }
        checkpoint.save(self.folder / "checkpoints", self.progress.games, _plain(content), self.cfg.checkpoints_kept)
        self._saved_at = time.monotonic()

    def _finish(self) -> dict[str, Any]:
        """Write the result of a finished run; print it, and how to continue."""
        p = self.progress
        result = self._write_result("finished")
        names = [measure.name for measure in self.evaluation.measures]
        self.dashboard.hparams(p.games, self.cfg, {name: p.rows[-1][name] for name in names if name in p.rows[-1]})
        row = p.rows[-1] if p.rows else {}
        unit = " %" if self.evaluation.main.percent else ""
        levels = [f"{level}{unit}: {_count(result[f'games_to_{level}'])}" for level in self.evaluation.levels]
        headline = self.evaluation.headline(row)
        self.bar.print(f"{headline} after {row.get('games', 0):,} of {self.cfg.games:,} games")
        if levels:
            self.bar.print(f"games to {', to '.join(levels)} ({records.SMOOTHING})")
        self.bar.print(records.next_commands(self.folder, 2 * p.games))
        return result

    def _write_result(self, status: str) -> dict[str, Any]:
        p = self.progress
        result = {
            "status": status,
            "games": p.games,
            "moves": p.moves,
            "seconds": p.seconds,
            "evaluation": p.rows[-1] if p.rows else None,
            **{
                f"games_to_{level}": records.games_to(level, p.rows, self.evaluation.main)
                for level in self.evaluation.levels
            },
            "levels": list(self.evaluation.levels),
            "measure": self.evaluation.main._asdict(),
            "smoothing": records.SMOOTHING,
            "curve": records.curve(p.rows, self.evaluation.main.name),
            "config": OmegaConf.to_container(self.cfg, resolve=True),
            "versions": records.versions(),
        }
        write_atomically(self.folder / "result.json", records.to_json(result))
        return result

    def _store(self) -> None:
        """Copy what compiled code has learned into the tensors of network and optimizer."""
        if not self._stored:
            self.parts.agent.store()
        self._stored = True

    def _means(self, sums: Episodes) -> records.Row:
        """Means over some games, and the schedules at the last one."""
        return {
            "game_length": float(f"{sums.plies / sums.games:.6g}"),
            "td_error": float(f"{sums.errors / sums.updates:.6g}") if sums.updates else None,
            **self._curves(),
        }

    def _curves(self) -> dict[str, float]:
        """The learner's schedules at the last game."""
        curves = self.parts.learner.curves(np.array([max(0, self.progress.games - 1)]), self.lr)
        return {name: float(numbers[0]) for name, numbers in curves.items()}

    def _not_finite(self, when: str) -> str:
        kept = any((self.folder / "checkpoints").glob("*.pt"))
        last = f"the last good checkpoint is in {records.shown(self.folder)}" if kept else "there is no checkpoint yet"
        optimizer = self.parts.optimizer
        remedy = optimizer.remedy("optimizer.") if isinstance(optimizer, StepSize) else "lower optimizer.lr"
        return f"the values became infinite or NaN {when}; {last}; the optimizer diverged, {remedy}"


def _passed(before: int, now: int, every: int) -> bool:
    """Whether a multiple of ``every`` was passed; many games at once may end slightly past it."""
    return now // every > before // every


def _count(games: int | None) -> str:
    return "not reached" if games is None else f"{games:,}"


class _Clock:
    """Adds the wall and CPU seconds spent inside to ``seconds``."""

    def __init__(self, seconds: dict[str, float], part: str = "") -> None:
        self._seconds, self._part = seconds, part

    def __enter__(self) -> None:
        self._begin = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = self._begin
        self._seconds[f"{self._part}wall_seconds"] += time.perf_counter() - wall
        self._seconds[f"{self._part}cpu_seconds"] += time.process_time() - cpu


def _plain(value: Any) -> Any:
    """``value`` in Python's own numbers, lists and dicts."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
