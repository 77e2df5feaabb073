"""TensorBoard events, written in the calling thread: a full disk is an error of the run that names the file.

TensorBoard's own writer has a thread; an error there prints a traceback and reaches the run later, without the file.
"""

import itertools
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import FileWriter, SummaryWriter

FLUSH_EVERY = 30.0  # seconds
_numbers = itertools.count()


class EventFile:
    """A file of events, with the methods of TensorBoard's ``EventFileWriter``.

    Args:
        folder: where it is made.

    Raises:
        OSError: here and later, if it cannot be written.
    """

    def __init__(self, folder: str) -> None:
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.file, self._folder, self._flushed = Path(folder) / name, folder, 0.0
        self._records = RecordWriter(self.file.open("wb"))
        self.add_event(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Any) -> None:
        """Write ``event``."""
        with self._named():
            self._records.write(event.SerializeToString())
        if time.monotonic() - self._flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Flush everything to disk."""
        self._flushed = time.monotonic()
        with self._named():
            self._records.flush()

    def close(self) -> None:
        """Flush everything to disk; nothing to close."""
        with self._named():
            self._records.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.file)) from error


class _Writer(FileWriter):
    def __init__(self, folder: str) -> None:
        self.event_writer = EventFile(folder)


class Summaries(SummaryWriter):
    """A ``SummaryWriter`` of an ``EventFile``.

    Args:
        folder: where the file is made.
        purge: dashboards hide what earlier files say about this step and later ones; None: nothing.
    """

    def __init__(self, folder: Path, purge: int | None) -> None:
        super().__init__(str(folder))
        if purge is not None:
            log = SessionLog(status=SessionLog.START)
            for event in (Event(step=purge, file_version="brain.Event:2"), Event(step=purge, session_log=log)):
                self._get_file_writer().add_event(event)

    def _get_file_writer(self) -> Any:
        if self.file_writer is None:
            writer: Any = _Writer(self.log_dir)
            writers: Any = {self.log_dir: writer}
            self.file_writer, self.all_writers = writer, writers
        return self.file_writer
