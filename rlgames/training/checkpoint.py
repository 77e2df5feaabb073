"""Checkpoints: one file with everything needed to resume, made of tensors and plain containers only.

``torch.load(file, weights_only=True)`` reads it without this package. Its keys:

    format          version of this layout
    games           games played
    config          the configuration as a plain dict
    tuples          the cells of the n-tuples, wherever they came from
    network         state_dict of the network
    average         with average_from: state_dict of a network with the mean weights, and the sample count; else None
    optimizer       state_dict of the optimizer
    rng             state of the random generator of the training games
    learner         state of the learner (engine=batched: games under way and their random stream); None if it has none
    progress        the trainer's counters, including the rows of progress.csv
"""

import os
import sys
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import torch
from omegaconf import DictConfig, OmegaConf

from rlgames.build import did_you_mean
from rlgames.training import records
from rlgames.training.files import DamagedError, atomic, owned
from rlgames.training.trust import check_outside, check_saved, read_config, trusted

T = TypeVar("T")

FORMAT = 1
KINDS = {"games": int, "config": dict, "network": dict, "rng": dict, "progress": dict}  # of the required keys
PARTS = ("game", "learner", "games", "eval_every", "seed", "engine", "device", "evaluation", "opponent")  # of config
FREE = (  # keys that may change when a run is resumed
    *("games", "eval_every", "checkpoint_minutes", "checkpoint_at_evaluations", "checkpoints_kept"),
    *("run_dir", "resume", "results", "trust"),
    *("engine", "device", "batch", "batched", "opponent", "evaluation", "lookahead"),
)


def save(folder: Path, games: int, content: dict[str, Any], keep: int = 2) -> Path:
    """Write a checkpoint into ``folder``, which always holds a complete one.

    Args:
        folder: where to.
        games: games played, which name the file.
        content: see the module.
        keep: how many of the newest to keep; an older one is the fallback if the newest is damaged. 0: all.

    Raises:
        OSError: if it cannot be written; existing files stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"games_{games:012d}.pt"
    with atomic(file) as stream:
        torch.save({"format": FORMAT, "games": games, **content}, stream)
    files = _newest_first(folder)  # later ones predate a resume from an earlier one
    here = files.index(file)
    for other in files[:here] + files[here + (keep or len(files)) :]:
        other.unlink(missing_ok=True)
    return file


def same(content: dict[str, Any]) -> Any:
    """``content``."""
    return content


def load(path: str | Path, use: Callable[[dict[str, Any]], T] = same, trust: str | Iterable[str] = ()) -> T:
    """Read a checkpoint file, or the newest usable one of a run folder, and return what ``use`` makes of its content.

    A damaged file of a run folder is reported on stderr and the previous one is used. A configuration that names
    classes it may not name is refused; ``trust`` allows more, see ``rlgames.training.trust``.

    Raises:
        ValueError: if there is none, naming the file and what is wrong with it.
        Exception: whatever ``use`` raises, except ``DamagedError``, which means that the content does not fit.
    """
    path = Path(os.path.expanduser(path))
    if path.is_file():
        return _used(path, use, trust)
    if not path.is_dir():
        raise ValueError(f"there is no run folder or checkpoint {path.absolute()}")
    files = _newest_first(path / "checkpoints") or _newest_first(path)
    for file in files:
        try:
            return _used(file, use, trust)
        except DamagedError as error:
            print(f"{error}; trying the previous one", file=sys.stderr)
    raise ValueError(f"{path.absolute()} holds no {'readable ' if files else ''}checkpoint")


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("games_*.pt"), reverse=True)


def _used(file: Path, use: Callable[[dict[str, Any]], T], trust: str | Iterable[str]) -> T:
    content = _read(file)
    _check_saved(file, content["config"], trust)
    try:
        return use(content)
    except DamagedError as error:
        raise DamagedError(f"{file.absolute()} is damaged or from another version: {error}") from error


def _check_saved(file: Path, config: Any, trust: str | Iterable[str]) -> None:
    try:
        check_saved(config, trust)
    except ValueError as error:
        raise ValueError(f"{file.absolute()} is not opened: {error}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive:  # torch does not verify checksums
            damaged = archive.testzip()
        content = None if damaged else torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DamagedError(f"{file.absolute()} cannot be read: {error.strerror}") from error
    except Exception as error:  # damaged files raise many kinds in torch and zipfile
        raise DamagedError(f"{file.absolute()} is damaged or not a checkpoint") from error
    if damaged:
        raise DamagedError(f"{file.absolute()} is damaged")
    if not isinstance(content, dict) or "format" not in content:
        raise DamagedError(f"{file.absolute()} is not a checkpoint of rlgames")
    if content["format"] != FORMAT:
        raise DamagedError(f"{file.absolute()} has format {content['format']}; this version of rlgames reads {FORMAT}")
    missing = [name for name, kind in KINDS.items() if not isinstance(content.get(name), kind)]
    missing += [name for name in ("tuples", "optimizer") if name not in content]
    missing += ["tuples"] if isinstance(content.get("tuples"), str) else []  # a file is none of ours to read
    missing += [f"config.{name}" for name in PARTS if not missing and name not in content["config"]]
    if missing:
        raise DamagedError(f"{file.absolute()} is damaged or from another version: it lacks {', '.join(missing)}")
    return content


def resumed(cfg: DictConfig, saved: dict[str, Any], words: list[str]) -> DictConfig:
    """The configuration of a resumed run: the checkpoint's, with what may change taken from the command line.

    Args:
        cfg: the configuration of the command line.
        saved: the checkpoint.
        words: the words of the command line, such as "games=1000"; only the keys they name are compared or changed.

    Raises:
        ValueError: naming the words that contradict the checkpoint, a total already exceeded, or the words without
            which programs and files named in the checkpoint are not used.
    """
    if cfg.results is not None:  # a study finds its runs by their keys, so the configurations agree
        return cfg
    config: DictConfig = OmegaConf.create(saved["config"])
    for key in set(map(str, cfg)) - set(map(str, config)):  # keys that are newer than the checkpoint
        config[key] = cfg[key]
    named: list[str] = [word.lstrip("+~").partition("=")[0].partition("@")[0].replace("/", ".") for word in words]
    if "experiment" in named:
        named += [str(key) for key in cfg]
    named = [key for key in dict.fromkeys(named) if key.partition(".")[0] not in ("hydra", "experiment")]
    fixed = [key for key in named if key.partition(".")[0] not in FREE]
    for key in set(named) - set(fixed):
        OmegaConf.update(config, key, OmegaConf.select(cfg, key), merge=False)
    for key in fixed:
        _check_known(config, key)
    differing = [text for key in fixed for text in _differences(cfg, config, key)]
    if differing:
        changes = "; ".join(differing)
        raise ValueError(f"the run to resume differs: {changes}; leave these words out, or start a new run")
    plain: Any = OmegaConf.to_container(config)
    if saved.get("tuples") and plain["features"]:  # they stand in for the file that they were read from
        plain["features"]["tuples"] = saved["tuples"]
    check_outside(plain, named)
    if config.games < saved["games"] and config.games != saved["config"]["games"]:  # a batch may end behind its total
        raise ValueError(
            f"games is {config.games}, but the run to resume has played {saved['games']} games; "
            f"name a larger total, such as games={2 * saved['games']}"
        )
    config.trust, config.results = cfg.trust, None
    if "run_dir" not in named:
        folder = run_folder(cfg.resume)
        config.run_dir = None if folder is None else str(folder)
    return config


def held(cfg: DictConfig) -> AbstractContextManager[None]:
    """While entered, no other process can resume the run that ``cfg`` resumes in place.

    Raises:
        ValueError: if one is doing so.
    """
    folder = run_folder(cfg.resume)
    in_place = folder is not None and cfg.run_dir in (None, str(folder))
    return owned(folder.absolute()) if folder is not None and in_place else nullcontext()


def unbegun(cfg: DictConfig, words: list[str]) -> DictConfig | None:
    """The configuration to restart ``cfg.resume``, if that run was stopped before its first checkpoint.

    Raises:
        ValueError: naming the words that contradict it.
    """
    folder = run_folder(cfg.resume)
    if folder is None or not records.unbegun(folder):
        return None
    print(f"note: {records.shown(folder)} was stopped before its first checkpoint and starts over")
    file = folder / "config.yaml"
    saved = read_config(file)
    if missing := [part for part in PARTS if part not in saved]:
        raise ValueError(f"{file} is damaged: it lacks {', '.join(missing)}; start over in another folder")
    _check_saved(file, saved, trusted(cfg))
    config = resumed(cfg, {"config": saved, "games": 0}, words)
    config.resume = None
    return config


def run_folder(path: str) -> Path | None:
    """The run folder of ``path``, which is that folder or a checkpoint in it; None for a checkpoint kept elsewhere."""
    given = Path(os.path.expanduser(path))
    folder = given.parent if given.is_file() else given
    if folder.name == "checkpoints":
        return folder.parent
    return folder if given.is_dir() else None


def _check_known(config: DictConfig, key: str) -> None:
    part, _, name = key.rpartition(".")
    node = OmegaConf.select(config, part) if part else config
    if not isinstance(node, DictConfig) or name not in node:
        names = [str(key) for key in node if str(key)[0] != "_"] if isinstance(node, DictConfig) else []
        has = f"its {part} has {', '.join(names)}" if names else f"it has no {part}"
        raise ValueError(f"the run to resume has no {key}{did_you_mean(name, names)}; {has}")


def _differences(cfg: DictConfig, saved: DictConfig, key: str) -> list[str]:
    new, old = OmegaConf.select(cfg, key), OmegaConf.select(saved, key)
    if isinstance(new, DictConfig) and isinstance(old, DictConfig):
        return [text for name in map(str, {**old, **new}) for text in _differences(cfg, saved, f"{key}.{name}")]
    return [] if new == old else [f"{key} was {old} and is now {new}"]
