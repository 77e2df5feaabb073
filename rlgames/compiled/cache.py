"""Machine code on disk: a file per compiled function and types of arguments, named after all that it depends on.

numba's own cache looks at the file of the entry point only, and one index for all types means that a type which is gone
breaks all others. Here a file is found by its name alone, holds a checksum, and is written as a whole: what is damaged,
foreign or gone is compiled anew.
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
from pathlib import Path
from typing import Any

import numba
import torch
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.core.typing.templates import Signature
from numba.extending import types

from rlgames.compiled.sources import ChangedError, fingerprint

log = logging.getLogger(__name__)
FOLDER = "machine-code"
SUFFIX = ".code"


class DiskCache:
    """What a dispatcher of numba asks for machine code of ``function``, and hands it to.

    Args:
        function: that is compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str | None:
        """The folder; None where nothing can be written."""
        return cache_folder()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function for ``signature``; None if it is not there."""
        target.refresh()
        file = self._file(signature, target.codegen())
        content = _read(file) if file else None
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target, *pickle.loads(content))  # noqa: S301 # our own, with its checksum
        except Exception as error:  # a class that it names is gone, or the machine is not what it says it is
            log.warning("%s cannot be used (%s) and is compiled anew", file, error)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for ``signature``."""
        if compiled.library.has_dynamic_globals or any(not loop.can_cache for loop in compiled.lifted):
            return
        file = self._file(signature, compiled.codegen)
        if file:
            _write(file, dumps(compiled._reduce()))

    def flush(self) -> None:
        """Nothing: what is out of date has another name."""

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        """Where the machine code for ``signature`` is, or would be; None: nowhere, it is not kept."""
        folder = cache_folder()
        kinds = signature.args if isinstance(signature, Signature) else signature
        roots = [self._function, *{cls.__name__: cls for kind in kinds for cls in _classes(kind)}.values()]
        try:
            texts = fingerprint(roots)
        except ChangedError:
            return None
        versions = numba.__version__, torch.__version__, numba.config.BOUNDSCHECK, codegen.magic_tuple()
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        key = hashlib.sha256(repr((versions, name, str(signature))).encode() + texts).hexdigest()[:24]
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
    """The content of ``file``; None if it is not there, or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    checksum, content = content[:32], content[32:]
    if hashlib.sha256(content).digest() != checksum:
        log.warning("%s is damaged and is compiled anew", file)
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # the last use
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


@functools.cache  # once is enough
def _cannot_keep(folder: str, why: str) -> None:
    log.warning("machine code cannot be kept in %s (%s): the next process compiles it again", folder, why)


@functools.cache  # once a process
def _remove_unused(folder: Path, days: float = 30.0) -> None:
    """Remove machine code that no process has used for so many ``days``."""
    for file in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another process was quicker
            if time.time() - file.stat().st_mtime > days * 86_400:
                file.unlink()


def cache_folder() -> str | None:
    """Folder for machine code; None where nothing can be written."""
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
    with contextlib.suppress(OSError):  # of a machine on which nothing can be written
        owner = os.getuid() if hasattr(os, "getuid") else "user"
        yield Path(tempfile.gettempdir()) / f"rlgames-{owner}" / FOLDER
