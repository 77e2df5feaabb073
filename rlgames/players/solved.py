"""Solved positions in a file, so that later runs and other processes can reuse what a slow solver found.

The file helps but is never needed: whatever is wrong with it causes one warning, and the solver works without it.
"""

import contextlib
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

APPLICATION = 0x726C676D  # marks the file as ours
BATCH, SECONDS = 100, 2.0  # new positions are written this many at a time, or after this time

_inherited: list[sqlite3.Connection] = []  # SQLite forbids a child process even to close its parent's connections


def cache_folder(cache: str | None = None) -> Path:
    """Where solved positions are kept: ``cache``, else $RLGAMES_CACHE, else rlgames in the user's cache folder."""
    chosen = cache or os.environ.get("RLGAMES_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "rlgames"


class SolvedPositions:
    """A table from position to (value, best moves), shared by all processes that open the same file.

    Every process uses its own connection, even after a fork. SQLite's locks keep the file consistent.

    Args:
        file: the SQLite file; created, with its folder, when first needed.
        solver: name, version and scale of the solver: one solver's answers are never returned for another.
    """

    def __init__(self, file: Path, solver: str) -> None:
        self.file, self.solver = file, solver
        self._connection: sqlite3.Connection | None = None
        self._reads = self._writes = True
        self._start(os.getpid())

    def get(self, key: int) -> tuple[int, int] | None:
        """Value and bit mask of the best moves of position ``key``, if known."""
        if os.getpid() != self._process:
            self._start(os.getpid())
        if key in self._new:
            return self._new[key]
        query = "SELECT value, moves, checksum FROM solved WHERE solver = ? AND position = ?"
        for value, moves, checksum in self._try(query, [(self.solver, key)]):
            if checksum == self._checksum(key, value, moves):
                return value, moves
            self._give_up(sqlite3.DatabaseError(f"the checksum of position {key} is wrong"))
        return None

    def put(self, key: int, value: int, moves: int) -> None:
        """Remember the value and the best moves (a bit mask) of position ``key``."""
        if not self._writes:
            return
        self._new[key] = value, moves
        if len(self._new) >= BATCH or time.monotonic() - self._written > SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what was found since the last write."""
        if os.getpid() == self._process and self._new:
            rows = [(self.solver, key, *found, self._checksum(key, *found)) for key, found in self._new.items()]
            self._try("INSERT OR IGNORE INTO solved VALUES (?, ?, ?, ?, ?)", rows)
            self._start(self._process)

    def _checksum(self, *row: object) -> int:
        """Of the key and the answer of a row: SQLite notices damage to the structure of a file, but not to a number."""
        return zlib.crc32(repr((self.solver, *row)).encode())

    def _start(self, process: int) -> None:
        """Forget unwritten positions: they are written by now, or the parent process writes them."""
        if getattr(self, "_process", process) != process and self._connection:
            _inherited.append(self._connection)
            self._connection = None
        self._process = process
        self._new: dict[int, tuple[int, int]] = {}
        self._written = time.monotonic()

    def _try(self, statement: str, rows: Iterable[tuple[object, ...]]) -> list[tuple[Any, ...]]:
        """Run ``statement`` for each of ``rows`` in one transaction; return nothing if the file fails."""
        if not self._reads:
            return []
        try:
            self._connection = self._connection or self._open()
            with self._connection:
                return [row for values in rows for row in self._connection.execute(statement, values)]
        except (sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
            self._give_up(error)
            return []

    def _open(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.file, timeout=10, check_same_thread=False)
        with connection:
            connection.execute("PRAGMA synchronous = OFF")  # a crash of the machine may cost the file, nothing else
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables and application != APPLICATION:
                raise sqlite3.DatabaseError("it belongs to another program")
            if not tables:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS solved (solver TEXT, position INTEGER, value INTEGER, moves INTEGER,"
                    " checksum INTEGER, PRIMARY KEY (solver, position)) WITHOUT ROWID"
                )
        return connection

    def _give_up(self, error: Exception) -> None:
        """Continue without the file. A file that can never work again is set aside; the next run starts a new one."""
        self._writes = False
        text = f"solved positions are not kept: {self.file}: {error}"
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY:  # a shared cache may well be read-only
            log.warning(text)
            return
        self._reads, self._connection = False, None
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            aside = self.file.with_suffix(".damaged")
            with contextlib.suppress(OSError):
                os.replace(self.file, aside)
                text += f"; the file was set aside as {aside.name}, the next run starts a new one"
        log.warning(text)
