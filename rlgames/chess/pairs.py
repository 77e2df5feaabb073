"""Pairs of games between two players: the same opening twice, with colours exchanged."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, util
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.contest import Adjudication, Engine, Record, play
from rlgames.chess.evaluation import SIZE, start_values
from rlgames.chess.openings import Openings
from rlgames.chess.pgn import pgn
from rlgames.chess.searcher import Searcher
from rlgames.chess.uci_engine import EngineError, UciEngine, command_of
from rlgames.interrupts import follow_parent

START = "start"  # the name of the engine before learning


class Pair(NamedTuple):
    """Two games from the same opening.

    Attributes:
        records: the first player has White in the first game; None for a game in which an engine failed.
        errors: what that engine reported.
    """

    records: tuple[Record | None, Record | None]
    errors: tuple[str, ...]

    @property
    def results(self) -> list[int]:
        """+1, 0, -1 for the first player in every completed game."""
        return [side * record.winner for side, record in zip((1, -1), self.records, strict=True) if record is not None]

    @property
    def digest(self) -> str:
        """A word that distinguishes it from pairs with other games."""
        courses = [record.course for record in self.records if record is not None]
        games = [(course.boards[0].fen(), course.moves) for course in courses]
        return hashlib.sha256(repr(games).encode()).hexdigest()[:16]

    @property
    def points(self) -> float | None:
        """Points of the first player, 0 to 2; None if a game is missing."""
        return 1 + sum(self.results) / 2 if len(self.results) == 2 else None


def play_pair(
    first: Engine,
    second: Engine,
    openings: Openings,
    rules: Adjudication,
    score: Callable[[Any], float],
    rng: np.random.Generator,
) -> Pair:
    """Play both games of a pair.

    Args:
        first: a player.
        second: the other player.
        openings: where they begin.
        rules: when they end early.
        score: rates openings, see ``Openings.draw``.
        rng: draws the opening.
    """
    opening = openings.draw(rng, score)
    records: list[Record | None] = []
    errors = []
    for white, black in ((first, second), (second, first)):
        try:
            records.append(play(white, black, opening.copy(), rules))
        except EngineError as error:
            records.append(None)
            errors.append(str(error))
    return Pair((records[0], records[1]), tuple(errors))


class Seat(NamedTuple):
    """A player, as words and arrays that can be sent to another process.

    Attributes:
        name: path of a checkpoint, ``start``, or an engine, see ``rlgames.chess.uci_engine.command_of``.
        coefficients: of a checkpoint.
        limits: nodes, depth and ms per move, 0 for none.
        options: UCI options of an engine.
    """

    name: str
    coefficients: npt.NDArray[np.float32] | None
    limits: dict[str, Any]
    options: dict[str, Any]

    def take(self) -> Any:
        """The player.

        Raises:
            ValueError: if an engine cannot be started.
        """
        command = command_of(self.name)
        if self.name == START or command is None:
            coefficients = start_values() if self.coefficients is None else self.coefficients
            return Searcher(coefficients, **self.limits, name=self.name)
        nodes, depth, ms = (self.limits[key] or None for key in ("nodes", "depth", "ms"))
        return UciEngine(command, self.options, depth, nodes, ms and ms / 1000)


class Match(NamedTuple):
    """A match; its pairs can be played in any order and in several processes, with the same result.

    Attributes:
        openings: where games begin.
        rules: when they end early.
        first, second: the players.
        seed: of the openings.
    """

    openings: Openings
    rules: Adjudication
    first: Seat
    second: Seat
    seed: int


class Played(NamedTuple):
    """The result of a pair, see ``Pair``; ``texts`` are its games as PGN."""

    points: float | None
    digest: str
    results: list[int]
    errors: list[str]
    texts: list[str]


_here: tuple[Match, Any, Any, Searcher] | None = None  # this process's match, players and judge


def begin(match: Match) -> None:
    """Set up the players in this process."""
    global _here
    _here = match, match.first.take(), match.second.take(), Searcher(start_values(), depth=1, nodes=0)
    for player in _here[1:3]:
        if isinstance(player, UciEngine):
            util.Finalize(player, player.close, exitpriority=1)


def _begin_worker(match: Match) -> None:
    follow_parent()
    begin(match)


def workers(match: Match, processes: int) -> ProcessPoolExecutor:
    """Processes that play pairs."""
    Searcher(start_values(), depth=1, nodes=0).score(match.openings.book[0][0])  # compiles, once
    return ProcessPoolExecutor(processes, get_context("spawn"), _begin_worker, (match,))


def play_number(number: int) -> Played:
    """Play pair ``number`` of the match of this process."""
    assert _here is not None
    match, first, second, judge = _here
    rng = np.random.default_rng([match.seed, number])
    pair = play_pair(first, second, match.openings, match.rules, judge.score, rng)
    texts = []
    for k, record in enumerate(pair.records):
        white, black = (first.name, second.name) if k == 0 else (second.name, first.name)
        if record is not None:
            tags = {"Event": "match", "Round": f"{number + 1}.{k + 1}", "White": white, "Black": black}
            texts.append(pgn(record, tags))
    return Played(pair.points, pair.digest, pair.results, list(pair.errors), texts)


def coefficients_of(saved: dict[str, Any], path: str) -> npt.NDArray[np.float32]:
    """The coefficients that a checkpoint holds.

    Raises:
        ValueError: if it is not a chess checkpoint.
    """
    for tensor in saved["network"].values():
        if tensor.numel() == SIZE:
            coefficients: npt.NDArray[np.float32] = tensor.numpy().reshape(-1).astype(np.float32)
            return coefficients
    game = str(saved["config"].get("game", {}).get("_target_", "")).rpartition(".")[2]
    raise ValueError(f"{path} holds no chess agent with {SIZE} coefficients, but one for {game}")
