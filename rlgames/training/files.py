"""Files that are always complete, whatever stops the program, and folders that belong to one process."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

LOCK = ".lock"


@contextlib.contextmanager
def atomic(file: Path) -> Iterator[BinaryIO]:
    """A stream that writes ``file`` completely or not at all.

    Raises:
        OSError: if it cannot be written; an existing file stays unchanged.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OSError):
            cause = cause.__context__  # torch raises its own error over that of the disk
        if cause is None:
            raise
        raise OSError(cause.errno, cause.strerror, str(file)) from error


def write_atomically(file: Path, content: bytes) -> None:
    """Write ``file`` completely or not at all.

    Raises:
        OSError: if it cannot be written; an existing file stays unchanged.
    """
    with atomic(file) as stream:
        stream.write(content)


def remove_temporaries(folder: Path, name: str = "") -> None:
    """Remove the temporary files that killed processes left in ``folder``, or only those of the file ``name``."""
    for file in folder.glob(f".{name}*.tmp"):
        with contextlib.suppress(OSError):
            file.unlink()


@contextlib.contextmanager
def owned(folder: Path) -> Iterator[None]:
    """While entered, ``folder`` belongs to this process; may be nested. A lock ends with its process.

    Raises:
        ValueError: if it belongs to another process.
        OSError: if it cannot be written to.
    """
    lock = FileLock(folder / LOCK, timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"another process is using {folder}; wait until it ends, or name another run_dir") from None
    except NotImplementedError:  # a file system without locks
        yield
        return
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            with contextlib.suppress(OSError):  # Windows does not remove open files
                (folder / LOCK).unlink()
        lock.release()


class DamagedError(ValueError):
    """A file lacks something, or holds what does not fit."""


@contextlib.contextmanager
def whole(what: str) -> Iterator[None]:
    """Any error inside means that ``what`` is damaged or from another version.

    Raises:
        DamagedError: in place of it.
    """
    try:
        yield
    except Exception as error:
        text = str(error) if isinstance(error, ValueError | RuntimeError) else repr(error)
        raise DamagedError(f"its {what} does not fit ({' '.join(text.split())[:200]})") from error
