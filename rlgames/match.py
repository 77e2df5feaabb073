"""A match between two chess players: ``python -m rlgames.match first=runs/chess/2026-01-31_12-00-00 second=start``."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from rlgames.build import CONF, build, check_paths
from rlgames.console import cli

GOES_ON = ("folder", "processes", "games")  # what may change when a match goes on


def check_match(cfg: DictConfig) -> None:
    """Check what can be checked at once.

    Raises:
        ValueError: naming the key, its value and what is allowed.
    """
    check_paths(cfg)
    for key, least in {"games": 2, "nodes": 0, "depth": 0, "processes": 1, "seed": 0}.items():
        if not (type(cfg[key]) is int and cfg[key] >= least):
            raise ValueError(f"{key} is {cfg[key]!r}; it must be a whole number of at least {least}")
    if cfg.games % 2:
        raise ValueError(f"games is {cfg.games}; it must be even, since every opening is played with both colours")
    if not (type(cfg.ms) in (int, float) and 0 <= cfg.ms < float("inf")) or not cfg.nodes + cfg.depth + cfg.ms:
        raise ValueError(f"nodes is {cfg.nodes}, depth {cfg.depth}, ms {cfg.ms}; one must be above 0, none below")
    if not (type(cfg.second_nodes) is int and cfg.second_nodes > 0) and cfg.second_nodes is not None:
        raise ValueError(f"second_nodes is {cfg.second_nodes!r}; it must be null or a whole number above 0")
    if not cfg.elo0 < cfg.elo1:
        raise ValueError(f"elo0 is {cfg.elo0} and elo1 is {cfg.elo1}; elo0 must be the smaller one")


class Ledger:
    """What a match leaves in its folder: match.json and games.pgn.

    Args:
        cfg: the configuration; if its folder holds a match that was begun, it goes on.

    Attributes:
        points: of the first player in each pair; None for a pair that an engine did not survive.
        results: wins, draws and losses of the first player.
        errors: what such engines said.

    Raises:
        ValueError: if the folder holds another match.
        OSError: if it cannot be made.
    """

    def __init__(self, cfg: DictConfig) -> None:
        self.cfg: Any = OmegaConf.to_container(cfg, resolve=True)
        name = time.strftime("%Y-%m-%d_%H-%M-%S")
        self.folder = Path("runs", "match", name) if cfg.folder is None else Path(os.path.expanduser(cfg.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.points: list[float | None] = []
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
        return int(saved["pgn_bytes"])

    def add(self, pair: Any) -> None:
        """Note a pair: its points, results, errors and texts, see ``rlgames.chess.pairs.played``."""
        from rlgames.training.files import write_atomically
        from rlgames.training.records import to_json

        self.points.append(pair.points)
        for result in pair.results:
            self.results[1 - result] += 1
        self.errors += pair.errors
        with self._games.open("a", encoding="utf-8") as stream:
            stream.write("".join(pair.texts))
        content = {"config": self.cfg, "points": self.points, "results": self.results, "errors": self.errors}
        content |= {"pgn_bytes": self._games.stat().st_size, **self.figures()}
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
        """The pairs that were played to their end."""
        from rlgames.evaluation.elo import Pairs

        return Pairs.of(points for points in self.points if points is not None)

    def __str__(self) -> str:
        """The result for people."""
        won, drawn, lost = self.results
        crashed = f", {len(self.errors)} crashed (the last: {self.errors[-1]})" if self.errors else ""
        return f"{self.pairs()}; {won} won, {drawn} drawn, {lost} lost{crashed}"


def match(cfg: DictConfig) -> Ledger:
    """Play the match of ``cfg``, or what is left of it.

    Raises:
        ValueError: if the configuration makes no sense.
        OSError: if something cannot be read or written.
    """
    from rlgames.chess.pairs import Match
    from rlgames.evaluation.elo import Sprt

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
    from rlgames.chess.pairs import Seat, coefficients_of

    seats = []
    for key, nodes in (("first", cfg.nodes), ("second", cfg.second_nodes or cfg.nodes)):
        word = str(cfg[key])
        limits = {"nodes": nodes, "depth": cfg.depth, "ms": cfg.ms}
        options: Any = OmegaConf.to_container(cfg.options) if cfg.options else {}
        coefficients = None
        if word != "start" and not word.startswith("uci:"):
            from rlgames.training import checkpoint

            coefficients = coefficients_of(checkpoint.load(word), word)
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
    cli.run(main, "match", "stopped; the same command with the same folder goes on")
