"""Studies: many runs that share a results file, in which every finished run is one row.

A study is a Hydra sweep with ``results=``; any launcher works::

    python -m rlgames.train -m results=table.csv optimizer=tdl,tcl_exp "seed=range(5)"

Runs in the file are not repeated, and a stopped run resumes from its last checkpoint: the same command, given again,
does the rest. Several processes may work at the same time.
"""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from rlgames.build import check_paths
from rlgames.training.files import remove_temporaries, write_atomically

COLUMNS = (
    "key",  # of the configuration
    "words",  # that distinguish the run from others of the study
    "seed",
    "status",  # finished or failed
    "error",
    "games",
    "games_to_80",  # empty: never
    "games_to_90",
    "asymptotic",  # mean of the main measure over the last 200,000 games
    "train_cpu_seconds",
    "evaluation_cpu_seconds",
    "commit",
    "curve",  # games:measure, separated by blanks
)
ASYMPTOTIC = 200_000  # games, as published (Thill 2015, section 4.2.1)
SHARED = ("seed", "results", "run_dir", "experiment", "games", "eval_every")  # words that do not name a variant
EXTERNAL = (  # what does not affect the outcome of a run
    *("results", "run_dir", "resume", "trust", "hydra", "opponent.cache"),
    *("checkpoint_minutes", "checkpoint_at_evaluations", "checkpoints_kept"),
)

Row = dict[str, str]


class Results:
    """The results file of a study.

    Args:
        path: of the csv file; created with the first row.

    Raises:
        ValueError: if the file is not a results file, or not readable.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.expanduser(path)).absolute()
        if self.path.suffix != ".csv":
            raise ValueError(f"results is {str(path)!r}; it must be a .csv file")
        self.rows()

    def rows(self) -> list[Row]:
        """All rows.

        Raises:
            ValueError: naming what is wrong with the file.
        """
        if not self.path.exists():
            return []
        try:
            with self.path.open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file, strict=True)
                rows = list(reader)
        except (OSError, UnicodeError, csv.Error) as error:
            raise ValueError(f"results {self.path} cannot be read: {error}") from error
        if tuple(reader.fieldnames or ()) != COLUMNS or any(None in (*row, *row.values()) for row in rows):
            raise ValueError(f"results {self.path} is not a file of results; name another one")
        return rows

    def find(self, key: str) -> Row | None:
        """The row of the run ``key``."""
        return next((row for row in self.rows() if row["key"] == key), None)

    def add(self, row: Row) -> None:
        """Add a row; the file is always complete, whoever else writes.

        Raises:
            OSError: if it cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock"):
            remove_temporaries(self.path.parent, self.path.name)
            rows = [old for old in self.rows() if old["key"] != row["key"]]
            text = io.StringIO()
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*rows, row])
            write_atomically(self.path, text.getvalue().encode())

    def folder(self, key: str) -> Path:
        """The run folder of ``key``, beside the file."""
        return self.path.with_suffix("") / key


Train = Callable[[DictConfig, list[str]], dict[str, Any]]


def run_once(cfg: DictConfig, words: list[str], train: Train) -> Row | None:
    """Train unless the run is in ``cfg.results``; add its row, even if it fails.

    The checkpoints of a run with a row are deleted: they are most of its folder.

    Args:
        cfg: the configuration.
        words: of the command line.
        train: see ``rlgames.train.train``.

    Returns:
        The row; None while another process works on it.

    Raises:
        ValueError: if the results file is not one.
        ValueError, OSError: as ``key_of``.
    """
    check_paths(cfg)
    results, key = Results(cfg.results), key_of(cfg)
    folder, name = results.folder(key), " ".join([*variant(words), f"seed={cfg.seed}"])
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{folder}.lock", timeout=0):
            row = results.find(key)
            if row:
                print(f"{name}: already in {results.path.name}")
                return row
            named = {"key": key, "words": " ".join(variant(words)), "seed": str(cfg.seed), "games": str(cfg.games)}
            row = dict.fromkeys(COLUMNS, "") | named | _attempt(cfg, words, train, folder)
            results.add(row)
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
            return row
    except Timeout:
        print(f"{name}: another process is working on it")
        return None


def _attempt(cfg: DictConfig, words: list[str], train: Train, folder: Path) -> Row:
    """Train in ``folder``, from its checkpoint if there is one; return the outcome."""
    games = max((int(file.stem.split("_")[1]) for file in (folder / "checkpoints").glob("games_*.pt")), default=0)
    begun = 0 < games <= cfg.games
    if not begun:  # stopped before the first checkpoint
        shutil.rmtree(folder, ignore_errors=True)
    cfg.run_dir, cfg.resume = str(folder), str(folder) if begun else None
    try:
        return {"status": "finished"} | _figures(train(cfg, [*words, "run_dir=", "resume="]))
    except Exception as error:
        print(f"failed: {error}")
        return {"status": "failed", "error": " ".join(str(error).split())}


def _figures(result: dict[str, Any]) -> Row:
    curve = result["curve"]
    last = [value for games, value in curve if games > result["games"] - ASYMPTOTIC]
    numbers = {
        "games_to_80": result.get("games_to_80"),
        "games_to_90": result.get("games_to_90"),
        "asymptotic": round(sum(last) / len(last), 4) if last else None,
        "train_cpu_seconds": round(result["seconds"]["cpu_seconds"], 1),
        "evaluation_cpu_seconds": round(result["seconds"]["evaluation_cpu_seconds"], 1),
        "commit": result["versions"]["commit"],
        "curve": " ".join(f"{games}:{value:.4g}" for games, value in curve),
    }
    return {name: "" if number is None else str(number) for name, number in numbers.items()}


def objective(figures: dict[str, Any] | None) -> float:
    """What a sweeper such as Optuna's minimises: games to the first level of the evaluation, in a study to 80 %.

    It is twice the games of the run if never reached; for an evaluation without levels the main measure at the
    end, with a minus if more is better.
    """
    if figures is None:
        return float("inf")
    levels = figures.get("levels", [80])
    if levels:
        return float(figures.get(f"games_to_{levels[0]}") or 2 * int(figures["games"]))
    measure = figures["measure"]
    return (-1 if measure["more_is_better"] else 1) * float(figures["evaluation"][measure["name"]])


def key_of(cfg: DictConfig) -> str:
    """A short name for everything that affects the outcome of a run: the same configuration, the same name.

    A class counts by name, not by module; a file of tuples or openings by content, not by path.

    Raises:
        ValueError: for a tuple file that is missing or invalid.
        OSError: for an openings file that cannot be read.
    """
    decisive = _decisive(OmegaConf.to_container(cfg, resolve=True))
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def _decisive(value: Any, path: tuple[str, ...] = ()) -> Any:
    """The part of the ``value`` at ``path`` that counts.

    Null and false do not count: a new option that is off leaves the names of runs unchanged.
    """
    if ".".join(path) in EXTERNAL:
        return None
    if isinstance(value, dict):
        kept = {name: _decisive(item, (*path, str(name))) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None and item is not False}
    if isinstance(value, list):
        return [_decisive(item, (*path, "")) for item in value]
    if isinstance(value, str) and path[-1] == "_target_":
        return value.rpartition(".")[2]
    read = CONTENT.get(path[-2:])
    return read(value) if read and isinstance(value, str) else value


def _tuples(file: str) -> list[list[int]]:
    from rlgames.features.ntuples import read_tuples  # here: it imports numba, and few runs name a file

    return read_tuples(file)


def _text(file: str) -> str:
    return Path(os.path.expanduser(file)).read_text(encoding="utf-8", errors="replace")


CONTENT: dict[tuple[str, ...], Callable[[str], Any]] = {  # of files that affect the outcome of a run
    ("features", "tuples"): _tuples,
    ("openings", "file"): _text,
}


def variant(words: Iterable[str]) -> list[str]:
    """The words that name a variant of the study, without "+"."""
    named = [word.lstrip("+~") for word in words]
    return [word for word in named if word.partition("=")[0].partition(".")[0] not in SHARED]
