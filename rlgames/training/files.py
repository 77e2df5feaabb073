"""Files that are whole at any time, whatever stops the program."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic(file: Path) -> Iterator[BinaryIO]:
    """A stream to write ``file`` as a whole or not at all.

    Raises:
        OSError: if it cannot be written; a former file stays as it was.
    """
    temporary = file.with_name(f".{file.name}.tmp")
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
            cause = cause.__context__  # torch puts an error of its own in front of that of the disk
        if cause is None:
            raise
        raise OSError(cause.errno, cause.strerror, str(file)) from error


def write_atomically(file: Path, content: bytes) -> None:
    """Write ``file`` as a whole or not at all.

    Raises:
        OSError: if it cannot be written; a former file stays as it was.
    """
    with atomic(file) as stream:
        stream.write(content)
