"""Machine code on disk: one file per compiled function and argument types, named after everything it depends on.

numba's own cache checks only the file of the entry point, and as it has one index for all types, one missing type
breaks all others. Here a file is found by its name alone, holds a checksum, and is written atomically: what is damaged,
foreign or gone is recompiled.
"""

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.core.typing.templates import Signature
from numba.extending import types

from rlgames.compiled.sources import ChangedError, fingerprint

log = logging.getLogger(__name__)
FOLDER = "machine-code"
SUFFIX = ".code"


class DiskCache:
    """Where numba's dispatcher finds and keeps the machine code of ``function``.

    Args:
        function: the function that is compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str | None:
        """The folder; None if nothing can be written."""
        return cache_folder()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function for ``signature``; None if it is not kept."""
        target.refresh()
        file = self._file(signature, target.codegen())
        content = _read(file) if file else None
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target, *pickle.loads(content))  # noqa: S301 # our own, with its checksum
        except Exception as error:  # a class that it names is gone, or the machine is not what it claims to be
            log.warning("%s cannot be used (%s) and is recompiled", file, error)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for ``signature``."""
        if compiled.library.has_dynamic_globals or any(not loop.can_cache for loop in compiled.lifted):
            return
        file = self._file(signature, compiled.codegen)
        if file:
            _write(file, dumps(compiled._reduce()))

    def flush(self) -> None:
        """Do nothing: outdated code has another name."""

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        """The file for the machine code of ``signature``, existing or not; None if it is not kept."""
        folder = cache_folder()
        kinds = signature.args if isinstance(signature, Signature) else signature
        roots = [self._function, *{cls.__name__: cls for kind in kinds for cls in _classes(kind)}.values()]
        try:
            sources = fingerprint(roots)
        except ChangedError:
            return None
        versions = numba.__version__, version("torch"), numba.config.BOUNDSCHECK, codegen.magic_tuple()
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        key = hashlib.sha256(repr((versions, name, str(signature))).encode() + sources).hexdigest()[:24]
        return Path(folder) / f"{_plain(name)}-{key}{SUFFIX}" if folder else None


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._" else "_" for c in name)[-80:]


def _classes(kind: Any) -> Iterator[type]:
    """The NamedTuples in the compiler's type ``kind``."""
    if isinstance(kind, types.BaseTuple):
        if isinstance(kind, types.BaseNamedTuple):
            yield kind.instance_class
        for part in kind:
            yield from _classes(part)


def _read(file: Path) -> bytes | None:
    """The content of ``file``; None if it is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    checksum, content = content[:32], content[32:]
    if hashlib.sha256(content).digest() != checksum:
        log.warning("%s is damaged and is recompiled", file)
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # records the last use
    return content


def _write(file: Path, content: bytes) -> None:
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        try:
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        _cannot_keep(str(file.parent), error.strerror or str(error))
        return
    _remove_unused(file.parent)


@functools.cache  # warn once
def _cannot_keep(folder: str, why: str) -> None:
    log.warning("machine code cannot be kept in %s (%s): the next process compiles it again", folder, why)


@functools.cache  # once per process
def _remove_unused(folder: Path, days: float = 30.0) -> None:
    """Remove machine code that no process has used for ``days``."""
    for file in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another process was faster
            if time.time() - file.stat().st_mtime > days * 86_400:
                file.unlink()


def cache_folder() -> str | None:
    """Folder for machine code; None if nothing can be written."""
    return next(filter(None, map(_writable, _folders())), None)


@functools.cache
def _writable(folder: Path) -> str | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None


def _folders() -> Iterable[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "rlgames"
        return
    user = os.environ.get("XDG_CACHE_HOME")
    yield Path(user or os.path.expanduser("~/.cache")) / "rlgames" / FOLDER
    with contextlib.suppress(OSError):  # on a machine where nothing can be written
        owner = os.getuid() if hasattr(os, "getuid") else "user"
        yield Path(tempfile.gettempdir()) / f"rlgames-{owner}" / FOLDER
