"""What a run leaves for people and programs: progress.csv, result.json, TensorBoard events, versions."""

import csv
import functools
import io
import json
import math
import os
import platform
import re
import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from rlgames.evaluation.evaluation import Measure
from rlgames.games.game import PartBoard
from rlgames.networks.network import Network, slope
from rlgames.networks.table import ValueNetwork, table_of
from rlgames.optim import DivergenceError, StepSize
from rlgames.training.files import LOCK, owned, remove_temporaries, write_atomically
from rlgames.training.trust import read_config, words_for

PACKAGES = ("rlgames", "torch", "numpy", "numba", "hydra-core", "omegaconf", "tensorboard", "bitbully", "chess")
MAX_STEP_SIZES = 50_000  # of a histogram
SMOOTHING = "first evaluation at which the running median of 3 evaluations reaches it"

LEFT = (  # by a run without a checkpoint
    *("config.yaml", "versions.json", "progress.csv", "result.json", "games.pgn", "events.out.tfevents.*"),
    *(LOCK, ".*.tmp"),
)

Row = dict[str, Any]


@contextmanager
def claimed_folder(cfg: DictConfig, game: str) -> Iterator[Path]:
    """Make the run folder, ``cfg.run_dir`` or a new one under runs/, and write config.yaml and versions.json into it.

    While entered, it belongs to this process. Remains of a run stopped before its first checkpoint are removed.

    Raises:
        ValueError: if the folder is not empty and not the one being resumed, or another process is using it.
        OSError: if it cannot be made.
    """
    folder = Path(os.path.expanduser(cfg.run_dir)).absolute() if cfg.run_dir else new_folder(Path("runs") / game)
    folder.mkdir(parents=True, exist_ok=True)
    with owned(folder):
        mine = cfg.resume is not None and Path(os.path.expanduser(cfg.resume)).absolute().is_relative_to(folder)
        if not mine:
            _empty(folder)
        for place in (folder, folder / "checkpoints"):
            remove_temporaries(place)
        write_atomically(folder / "config.yaml", OmegaConf.to_yaml(cfg, resolve=True).encode())
        write_atomically(folder / "versions.json", to_json(versions()))
        yield folder


def unbegun(folder: Path) -> bool:
    """Whether ``folder`` holds only a run that was stopped before its first checkpoint."""
    files = [file for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    return folder / "config.yaml" in files and all(any(map(file.match, LEFT)) for file in files)


def _empty(folder: Path) -> None:
    """Remove what a run without a checkpoint left.

    Raises:
        ValueError: if there is anything else.
    """
    if unbegun(folder):
        for file in folder.iterdir():
            if file.is_file() and file.name != LOCK:
                file.unlink()
        remove_temporaries(folder / "checkpoints")
        with suppress(FileNotFoundError):
            (folder / "checkpoints").rmdir()
    if any(file.name != LOCK for file in folder.iterdir()):
        raise ValueError(f"run_dir {folder} is not empty; name another one, or use resume={folder} to continue it")


def new_folder(parent: Path) -> Path:
    """A folder named after date and time, with a number if another run began in the same second."""
    parent.mkdir(parents=True, exist_ok=True)
    name, number = time.strftime("%Y-%m-%d_%H-%M-%S"), 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def shown(folder: PurePath) -> str:
    """``folder`` as people type it: relative if it is below the working folder, with slashes even on Windows."""
    here = Path.cwd()
    return (folder.relative_to(here) if folder.is_relative_to(here) else folder).as_posix()


def next_commands(folder: Path, games: int) -> str:
    """The commands to view the run in ``folder``, to evaluate it, and to resume it up to ``games``."""
    path = shown(folder)
    trust = "".join(f" {word}" for word in words_for(_config(folder), resumes=False))
    return (
        f"view: tensorboard --logdir {shlex.quote(path)}   "
        f"evaluate: python -m rlgames.evaluate {_word('checkpoint', path)}{trust}   "
        f"resume: {go_on(folder)} games={games}"
    )


def go_on(folder: Path) -> str:
    """The command that resumes the run in ``folder``."""
    return " ".join(
        ["python -m rlgames.train", _word("resume", shown(folder)), *words_for(_config(folder), resumes=True)]
    )


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "config.yaml"
    return read_config(file) if file.is_file() else {}


def _word(key: str, path: str) -> str:
    """``key=path`` quoted for the shell and for Hydra, to which "=" and others are special."""
    return f"{key}={path}" if re.fullmatch(r"[\w./:-]+", path) else shlex.quote(f'{key}="{path}"')


@functools.cache  # the files do not change for this process
def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that matter (None: not installed), and the git commit of a checkout."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return {**found, "commit": _commit()}


def _commit() -> str | None:
    """Commit of the checkout this package runs from, marked if files have changed since; None if installed."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def to_json(content: Any) -> bytes:
    """Strict JSON: infinity and NaN become null."""

    def strict(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: strict(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [strict(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return (json.dumps(strict(content), indent=2, allow_nan=False) + "\n").encode()


def to_csv(rows: Iterable[Row]) -> bytes:
    """``rows`` as csv text; missing fields stay empty."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def curve(rows: list[Row], key: str) -> list[tuple[int, float]]:
    """Games and ``key`` of every evaluation that measured it."""
    return [(row["games"], row[key]) for row in rows if row.get(key) is not None]


def games_to(level: float, rows: list[Row], measure: Measure) -> int | None:
    """Games after which the running median of 3 evaluations first reached ``level``; None if never.

    The median is over an evaluation and its two neighbours. The first one's missing neighbour counts as 0, the rate of
    an untrained agent, or as the worst value; the last one is its own.

    Args:
        level: in percent, if the measure is a share.
        rows: of figures.
        measure: which of them.
    """
    series = curve(rows, measure.name)
    sign, goal = 1 if measure.more_is_better else -1, level / 100 if measure.percent else level
    values = [sign * value for _, value in series]
    padded = [0.0 if measure.more_is_better else -math.inf, *values, *values[-1:]]
    for k, (games, _) in enumerate(series):
        if sorted(padded[k : k + 3])[1] >= sign * goal:
            return int(games)
    return None


def rule_numbers(network: nn.Module, optimizer: torch.optim.Optimizer | None) -> dict[str, float]:
    """The share of weights that have learned; for rules with shared numbers also these and the step size.

    Args:
        network: the value network.
        optimizer: None if the learner brings its own network; the result is then empty.
    """
    share = network.share_changed() if optimizer and isinstance(network, Network) else None
    numbers = {} if share is None else {"optimizer/active_share": share}
    if isinstance(optimizer, StepSize) and optimizer.shared:
        p = optimizer.hyper(optimizer.param_groups[0])
        numbers |= {f"optimizer/{name}": float(getattr(p, name)) for name in optimizer.shared}
        if not optimizer.State._fields:  # type: ignore[attr-defined]
            numbers["optimizer/step_size"] = float(optimizer.step_size(p, optimizer.State()))
    return numbers


def step_share(
    network: nn.Module, optimizer: torch.optim.Optimizer | None, boards: Sequence[PartBoard], delta: float = 0.1
) -> dict[str, float]:
    """The share of a board's error that a step removes: the change of the value divided by ``delta``.

    The steps are made on copies of the active weights, separately for each board and without traces.

    Args:
        network: the result is empty if it is more than a sum of table rows.
        optimizer: or if it is not one of our rules.
        boards: the result is their mean.
        delta: the TD error; the change of rules that normalise by it is not proportional to it.
    """
    table = table_of(network)
    if not isinstance(optimizer, StepSize) or table is None:
        return {}
    shares = [_share(table, optimizer, rows, delta) for rows in table.indices(*boards)]
    return {"optimizer/step_share": sum(shares) / len(shares)}


@torch.no_grad()
def _share(network: ValueNetwork, optimizer: StepSize, rows: torch.Tensor, delta: float) -> float:
    """``step_share`` of the board with these active ``rows``."""
    rows, x = torch.unique(rows, return_counts=True)  # a weight that is active twice has x = 2
    trial = optimizer.excerpt(rows)
    (w,) = trial.param_groups[0]["params"]
    w.grad = x.to(w.dtype)[:, None]
    before = float(network.unit((w.grad * w).sum()))
    try:
        trial.step(delta, slope(network.output, before))
    except DivergenceError:
        return math.nan
    return (float(network.unit((w.grad * w).sum())) - before) / delta


def step_sizes(optimizer: torch.optim.Optimizer | None) -> torch.Tensor:
    """A sample of the effective step sizes of weights whose state has changed; empty if one serves all weights."""
    if not isinstance(optimizer, StepSize):
        return torch.empty(0)
    sizes = []
    for group in optimizer.param_groups:
        p = optimizer.hyper(group)
        initial = optimizer.initial(p)
        for param in group["params"]:
            state = optimizer.state_of(param, group)
            if not state:
                continue
            touched = functools.reduce(torch.logical_or, map(torch.ne, state, initial))
            rows = touched.flatten().nonzero().flatten()
            rows = rows[:: max(1, math.ceil(len(rows) / MAX_STEP_SIZES))]
            sizes.append(optimizer.step_size(p, type(state)(*(tensor.flatten()[rows] for tensor in state))))
    return torch.cat(sizes) if sizes else torch.empty(0)
