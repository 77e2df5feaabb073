"""A UCI chess engine in its own process, through the library chess (GPL, optional extra ``chess``)."""

import math
import os
import shlex
import shutil
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from rlgames.chess.contest import Course, Engine
from rlgames.chess.search import Result
from rlgames.interrupts import answer as when_answered

MATE = 100_000  # centipawns; a mate in n moves scores this much less n


class EngineError(ValueError):
    """The engine ended, hung, or gave an illegal move."""


def command_of(player: str) -> str | None:
    """The command if ``player`` names an engine: what follows "uci:", or a path of a program; None if it does not."""
    if player.startswith("uci:"):
        return player.removeprefix("uci:")
    file = Path(player).expanduser()
    return player if file.is_file() and os.access(file, os.X_OK) and file.suffix != ".pt" else None


class UciEngine(Engine):
    """Another program's engine as an opponent.

    Args:
        command: path of the engine, and its arguments.
        options: UCI options, such as ``{"UCI_LimitStrength": True, "UCI_Elo": 1350}``; Ponder and MultiPV cannot
            be set.
        depth, nodes, seconds: limits per move; at least one must be given.
        timeout: seconds an engine may take for anything, in addition to ``seconds`` for moves.
        game: chess; unused, since all opponents are built alike.

    Raises:
        ValueError: if the library or the engine is missing, does not speak UCI, or refuses an option.
    """

    def __init__(
        self,
        command: str = "stockfish",
        options: Mapping[str, Any] | None = None,
        depth: int | None = None,
        nodes: int | None = None,
        seconds: float | None = None,
        timeout: float = 30.0,
        game: Any = None,
    ) -> None:
        chess, engine = _library()
        words = _words(command)
        limits = {"depth": depth, "nodes": nodes, "seconds": seconds, "timeout": timeout}
        for name, limit in limits.items():
            if limit is not None and not 0 < limit < math.inf:
                raise ValueError(f"opponent.{name} is {limit}; it must be finite and above 0")
        if depth is None and nodes is None and seconds is None:
            raise ValueError(f"the engine {words[0]} has no limit; give it depth, nodes or seconds")
        if shutil.which(words[0]) is None:
            raise ValueError(f"there is no engine {words[0]}, or it cannot be run")
        self._chess, self._errors = chess, (engine.EngineError, TimeoutError)
        self._words, self._options, self._timeout = words, dict(options or {}), timeout + (seconds or 0)
        # a time limit ends even an engine that hangs
        self._limit = engine.Limit(depth=depth, nodes=nodes, time=timeout if seconds is None else seconds)
        self._engine = self._open()
        self.name = str(self._engine.id.get("name", words[0]))
        self._game, self._died = 0, False

    def _open(self) -> Any:
        opened: Future[Any] = Future()

        def start() -> None:
            try:
                popen = self._chess.engine.SimpleEngine.popen_uci
                opened.set_result(popen(self._words, timeout=self._timeout, setpgrp=True))  # Ctrl-C must not reach it
            except Exception as error:
                opened.set_exception(error)

        # The library's own thread inherits being a daemon, so it does not keep the program alive.
        threading.Thread(target=start, daemon=True).start()
        try:
            engine = opened.result()
        except (*self._errors, OSError) as error:
            raise ValueError(f"{self._words[0]} does not answer as a UCI engine: {error}") from error
        try:
            engine.configure(self._options)
        except self._errors as error:
            engine.close()
            raise ValueError(f"{self._words[0]} refuses its options {self._options}: {error}") from error
        return engine

    def new_game(self) -> None:
        """A new game begins: the engine may forget the last one; if it died, it is restarted."""
        self._game += 1
        if self._died:
            self.close()
            self._engine, self._died = self._open(), False

    def think(self, course: Course) -> Result:
        """The move in the present position of ``course``, its score (0 if not given), and the line it expects.

        Raises:
            EngineError: if it gives no legal move.
        """
        board = self._chess.Board(course.boards[0].fen())
        for word in course.uci():
            board.push_uci(word)
        try:
            answer = when_answered(
                lambda: self._engine.play(board, self._limit, game=self._game, info=self._chess.engine.INFO_ALL)
            )
        except self._errors as error:
            self._died = True
            raise EngineError(f"{self.name}: {error}") from error
        if answer.move is None:
            raise EngineError(f"{self.name} gave no move")
        played, after = playable(course.board, [answer.move.uci()])
        if not played:
            raise EngineError(f"{self.name} played {answer.move.uci()}, which is not legal in {course.board.fen()}")
        told = answer.info
        line, leaf = playable(course.board, (move.uci() for move in told.get("pv", [])))
        if line[:1] != played:  # none was given, or one for another move
            line, leaf = played, after
        score = told["score"].relative if "score" in told else self._chess.engine.Cp(0)
        mate, points = score.mate() or 0, score.score(mate_score=MATE) / 100
        return Result(played[0], points, mate, line, leaf, False, told.get("nodes", 0), told.get("depth", 0))

    def close(self) -> None:
        """End the engine's process."""
        try:
            self._engine.quit()
        except self._errors:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def playable(board: Any, words: Iterable[str]) -> tuple[tuple[int, ...], Any]:
    """The moves ``words`` from ``board``, up to the first that the rules forbid, and the board after them.

    Engines report lines that continue past a draw by fifty moves or dead material.
    """
    line: list[int] = []
    for word in words:
        move = next((int(move) for move in board.moves() if board.uci(move) == word), None)
        if move is None:
            break
        line.append(move)
        board = board.play(move)
    return tuple(line), board


def _words(command: str) -> list[str]:
    """Path of the engine, which may contain blanks if nothing follows, and its arguments."""
    whole = os.path.expanduser(command)
    try:
        words = [whole] if shutil.which(whole) else shlex.split(command)
    except ValueError as error:
        raise ValueError(f"the engine {command!r} cannot be read as a command: {error}") from error
    if not words:
        raise ValueError(f"the command of the engine is {command!r}; it must be the path of a program and arguments")
    return [os.path.expanduser(words[0]), *words[1:]]


def _library() -> tuple[Any, Any]:
    try:
        import chess
        import chess.engine
    except ImportError as error:
        raise ValueError("external engines need the library chess: pip install 'rlgames[chess]'") from error
    return chess, chess.engine
