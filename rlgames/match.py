"""A match between two chess players: ``python -m rlgames.match first=runs/chess/2026-01-31_12-00-00 second=start``."""

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from rlgames.build import CONF, build, check_numbers, has_words, ready, shown
from rlgames.console import cli
from rlgames.training.trust import trusted

GOES_ON = ("folder", "processes", "games", "trust")  # what may change when a match continues


def check_match(cfg: DictConfig) -> None:
    """Check everything that needs no files.

    Raises:
        ValueError: naming the key, its value and what is allowed.
    """
    check_numbers(cfg, games=2, nodes=0, depth=0, processes=1, seed=0)
    for key in ("first", "second"):
        if not (isinstance(cfg[key], str) and cfg[key].strip()):
            raise ValueError(f"{key} is {shown(cfg[key])}; it must be a run folder, a checkpoint, start, or an engine")
    for key in ("openings", "adjudication"):
        if not isinstance(cfg[key], DictConfig):
            raise ValueError(has_words(key, shown(cfg[key])))
    if not isinstance(cfg.options, DictConfig | None):
        raise ValueError(f"options is {shown(cfg.options)}; it must be null or names and values: {{NAME: VALUE}}")
    if type(cfg.sprt) is not bool:
        raise ValueError(f"sprt is {shown(cfg.sprt)}; it must be true or false")
    for key in ("ms", "elo0", "elo1"):
        if type(cfg[key]) not in (int, float) or not math.isfinite(cfg[key]):
            raise ValueError(f"{key} is {shown(cfg[key])}; it must be a finite number")
    if cfg.games % 2:
        raise ValueError(f"games is {cfg.games}; it must be even, since every opening is played with both colours")
    if cfg.ms < 0 or not cfg.nodes + cfg.depth + cfg.ms:
        raise ValueError(f"nodes is {cfg.nodes}, depth {cfg.depth}, ms {cfg.ms}; one must be above 0, none below")
    if not (type(cfg.second_nodes) is int and cfg.second_nodes > 0) and cfg.second_nodes is not None:
        raise ValueError(f"second_nodes is {shown(cfg.second_nodes)}; it must be null or a whole number above 0")
    if not cfg.elo0 < cfg.elo1:
        raise ValueError(f"elo0 is {cfg.elo0} and elo1 is {cfg.elo1}; elo0 must be the smaller one")


class Ledger:
    """What a match leaves in its folder: match.json and games.pgn.

    Args:
        cfg: the configuration; an unfinished match in its folder is continued.

    Attributes:
        points: of the first player in each pair; None for a pair in which an engine failed.
        digests: of each pair; equal games have equal digests.
        results: wins, draws and losses of the first player.
        errors: what those engines reported.

    Raises:
        ValueError: if the folder holds another match.
        OSError: if it cannot be made.
    """

    def __init__(self, cfg: DictConfig) -> None:
        from rlgames.training.records import new_folder

        self.cfg: Any = OmegaConf.to_container(cfg, resolve=True)
        new = cfg.folder is None
        self.folder = new_folder(Path("runs", "match")) if new else Path(os.path.expanduser(str(cfg.folder)))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.points: list[float | None] = []
        self.digests: list[str] = []
        self.results, self.errors = [0, 0, 0], []  # type: list[int], list[str]
        self._file, self._games = self.folder / "match.json", self.folder / "games.pgn"
        length = 0
        if self._file.exists():
            length = self._read(json.loads(self._file.read_text(encoding="utf-8")))
        with self._games.open("ab") as stream:
            stream.truncate(length)

    def _read(self, saved: Any) -> int:
        old, new = ({k: v for k, v in cfg.items() if k not in GOES_ON} for cfg in (saved["config"], self.cfg))
        differing = "; ".join(
            f"{key} was {old.get(key)} and is now {new[key]}" for key in new if new[key] != old.get(key)
        )
        if differing:
            raise ValueError(f"{self.folder} holds another match: {differing}; name another folder")
        self.points, self.results, self.errors = saved["points"], saved["results"], saved["errors"]
        self.digests = saved.get("digests") or [str(n) for n in range(len(self.points))]  # of an older version
        return int(saved["pgn_bytes"])

    def add(self, pair: Any) -> None:
        """Record a pair, see ``rlgames.chess.pairs.Played``."""
        from rlgames.training.files import write_atomically
        from rlgames.training.records import to_json

        self.points.append(pair.points)
        self.digests.append(pair.digest)
        for result in pair.results:
            self.results[1 - result] += 1
        self.errors += pair.errors
        with self._games.open("a", encoding="utf-8") as stream:
            stream.write("".join(pair.texts))
        content = {"config": self.cfg, "points": self.points, "results": self.results, "errors": self.errors}
        content |= {"digests": self.digests, "pgn_bytes": self._games.stat().st_size, **self.figures()}
        write_atomically(self._file, to_json(content))

    def figures(self) -> dict[str, Any]:
        """Score and Elo with 95 % intervals, and the likelihood of superiority."""
        from rlgames.evaluation.elo import elo

        pairs = self.pairs()
        if not pairs.n:
            return {}
        low, high = pairs.interval
        figures: dict[str, Any] = {"score": pairs.score, "score_interval": [low, high], "los": pairs.los}
        return figures | {"elo": elo(pairs.score), "elo_interval": [elo(low), elo(high)], "pentanomial": pairs.counts}

    def pairs(self) -> Any:
        """The completed pairs; equal ones count once, since a repetition adds no information."""
        from rlgames.evaluation.elo import Pairs

        ended = {digest: points for digest, points in zip(self.digests, self.points, strict=True) if points is not None}
        return Pairs.of(ended.values())

    def __str__(self) -> str:
        """The result for people."""
        won, drawn, lost = self.results
        pairs, ended = self.pairs(), len(self.points) - self.points.count(None)
        equal = f" ({pairs.n} different pairs of {ended}; equal ones count once)" if pairs.n < ended else ""
        crashed = f", {len(self.errors)} crashed (the last: {self.errors[-1]})" if self.errors else ""
        return f"{pairs}{equal}; {won} won, {drawn} drawn, {lost} lost{crashed}"


def match(cfg: DictConfig) -> Ledger:
    """Play the match of ``cfg``, or the rest of it.

    Raises:
        ValueError: if the configuration is invalid.
        OSError: if something cannot be read or written.
    """
    from rlgames.chess.pairs import Match
    from rlgames.evaluation.elo import Sprt

    cfg = ready(cfg)
    check_match(cfg)
    setting = Match(build(cfg, "openings"), build(cfg, "adjudication"), *_players(cfg), cfg.seed)
    ledger, test = Ledger(cfg), Sprt(cfg.elo0, cfg.elo1)
    shown = time.monotonic()
    for pair in _pairs(setting, len(ledger.points), cfg.games // 2, cfg.processes):
        ledger.add(pair)
        if time.monotonic() - shown > 10:
            print(f"{2 * len(ledger.points)}/{cfg.games} games: {ledger}", flush=True)
            shown = time.monotonic()
        if cfg.sprt and (verdict := test.verdict(ledger.pairs())):
            hypothesis = cfg.elo1 if verdict == "H1" else cfg.elo0
            print(f"SPRT: LLR {test.llr(ledger.pairs()):+.2f}, {hypothesis:+g} Elo accepted")
            break
    return ledger


def _players(cfg: DictConfig) -> tuple[Any, Any]:
    from rlgames.chess.pairs import START, Seat, coefficients_of
    from rlgames.chess.uci_engine import command_of

    seats = []
    for key, nodes in (("first", cfg.nodes), ("second", cfg.second_nodes or cfg.nodes)):
        word = str(cfg[key])
        limits = {"nodes": nodes, "depth": cfg.depth, "ms": cfg.ms}
        options: Any = OmegaConf.to_container(cfg.options) if cfg.options else {}
        coefficients = None
        if word != START and command_of(word) is None:
            from rlgames.training import checkpoint

            if shutil.which(word) and not Path(word).expanduser().exists():
                raise ValueError(f"{key} is {word}, which is no run folder or checkpoint; an engine is uci:{word}")
            coefficients = coefficients_of(checkpoint.load(word, trust=trusted(cfg)), word)
        seats.append(Seat(word, coefficients, limits, options))
    return seats[0], seats[1]


def _pairs(setting: Any, first: int, last: int, processes: int) -> Iterator[Any]:
    """The pairs from number ``first`` to ``last``, in order."""
    from rlgames.chess.pairs import begin, play_number, workers

    if processes == 1:
        begin(setting)
        yield from map(play_number, range(first, last))
        return
    pool = workers(setting, processes)
    try:
        yield from pool.map(play_number, range(first, last))
    finally:
        pool.shutdown(cancel_futures=True)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="match")
def main(cfg: DictConfig) -> None:
    """Play the match of the command line."""
    try:
        ledger = match(cfg)
    except Exception as error:
        cli.report(error, "match")
        sys.exit(1)
    print(f"{cfg.first} against {cfg.second}: {ledger}\n{ledger.folder}")


if __name__ == "__main__":
    cli.run(main, "match", "stopped; the same command with the same folder continues")
