"""How Ctrl-C, SIGTERM and SIGHUP end a program: at once, or in good order where there is something to save.

Python runs a signal's handler in the main thread, between two steps of Python. An exception raised there may come out
of compiled code, which cannot pass it on, and crash the process; so handlers here only set a number. Code
with something to save enters ``Interruptible`` and calls ``ask`` where it is safe to stop; compiled loops that may last
a second check ``flag``. A thread, which hears of signals while the main thread is in compiled code, ends the program at
once if nothing is to be saved, and at the second signal.
"""

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))  # Windows has no SIGHUP
SIGPIPE = 13  # the reader is gone; Windows has no name for it
PATIENCE = 0.1  # seconds between checks while waiting
SAVING = 4.0  # seconds granted to runs of a sweep

_asked = bytearray(1)  # the signal that asks for an end; 0: none
_entered = 0  # how many ``Interruptible`` are entered, without those of programs
_programs = 0  # those of programs, which may end their process
_stops: list[Callable[[], None]] = []  # each ends what runs in compiled code


class Interrupted(KeyboardInterrupt):
    """A signal stopped the program, in good order."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)  # so that it can be pickled
        self.signum = int(signum)


def ask() -> None:
    """Stop here if a signal has asked for it.

    Raises:
        Interrupted: then.
    """
    if _asked[0]:
        raise Interrupted(_asked[0])


def asked() -> int:
    """The signal that asks for an end; 0: none."""
    return _asked[0]


@functools.cache
def flag() -> Any:
    """``asked`` as an array for compiled loops, ``[1]`` uint8: they return when it is not 0."""
    import numpy as np  # here: a program's first import must be quick

    return np.frombuffer(_asked, np.uint8)


def name_of(signum: int) -> str:
    """Such as "SIGTERM"."""
    return signal.Signals(signum).name if signum in list(signal.Signals) else f"signal {signum}"


class Interruptible:
    """While entered, the first signal only asks, see ``ask``; the second ends a program at once.

    In a thread that is not the main one it does nothing: signals do not arrive there.

    Args:
        program: this process is one of our programs, which may be ended.
        words: what to print then.

    Attributes:
        at_once: the first signal ends a program at once too, as there is nothing to save.
    """

    def __init__(self, program: bool = False, words: str = "stopped") -> None:
        self._program, self._words, self._heard, self.at_once = program, words, 0, True
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        global _entered, _programs
        if threading.current_thread() is not threading.main_thread():
            return self
        _entered, _programs = _entered + (not self._program), _programs + self._program
        reading, self._writing = os.pipe()
        if hasattr(os, "set_blocking"):
            os.set_blocking(self._writing, False)
        self._thread = threading.Thread(target=self._listen, args=(reading,), daemon=True)
        self._thread.start()
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for signum in SIGNALS:
            if name_of(signum) != "SIGHUP" or signal.getsignal(signum) is not signal.SIG_IGN:  # else nohup is in effect
                self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        global _entered, _programs
        if not self._before:
            return
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        os.close(self._writing)
        self._thread.join()  # once it has seen all signals
        _entered, _programs = _entered - (not self._program), _programs - self._program
        _asked[0] = 0
        self._before = {}

    def _handle(self, signum: int, _frame: Any) -> None:
        if not (_programs and self.at_once):
            _asked[0] = _asked[0] or signum

    def _listen(self, reading: int) -> None:
        with contextlib.closing(os.fdopen(reading, "rb", 0)) as stream:
            while heard := stream.read(1):
                if heard[0] in SIGNALS:
                    self._hear(heard[0])

    def _hear(self, signum: int) -> None:
        self._heard += 1
        if _programs and (self.at_once or self._heard > 1):
            end(signum, self._words)
        _asked[0] = _asked[0] or signum
        for stop in list(_stops):
            stop()


def end(signum: int, words: str) -> None:
    """End this process and its workers at once, from any thread."""
    _asked[0] = signum
    workers = sys.modules.get("multiprocessing.process")
    children = workers.active_children() if workers else []
    runs = [child for child in children if "loky" in type(child).__module__]  # of a sweep: they have something to save
    for child in runs:
        with contextlib.suppress(OSError):
            os.kill(child.pid, signal.SIGTERM)
    limit = time.monotonic() + SAVING
    while any(child.is_alive() for child in runs) and time.monotonic() < limit:
        time.sleep(PATIENCE)
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    with contextlib.suppress(OSError):
        os.write(2, f"{os.linesep if os.isatty(2) else ''}{words}{os.linesep}".encode())
    os._exit(128 + signum)


def at_fork() -> None:
    """A forked process is not our program, and has no listening thread."""
    global _entered, _programs
    if _programs or _entered:
        _entered = _programs = _asked[0] = 0
        signal.set_wakeup_fd(-1)
        for signum in SIGNALS:
            default = signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL
            signal.signal(signum, default)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=at_fork)


# ---- while waiting


@contextlib.contextmanager
def telling(stop: Callable[[], None]) -> Iterator[None]:
    """While entered, a signal calls ``stop``, from another thread; it ends running compiled code."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


def answer(call: Callable[[], Any]) -> Any:
    """What ``call`` returns, which may wait for another process.

    Raises:
        Interrupted: if a signal asks for an end meanwhile.
    """
    if not _entered:
        return call()
    from concurrent.futures import Future

    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return patient(future)


def patient(future: Any) -> Any:
    """The result of ``future``.

    Raises:
        Interrupted: if a signal asks for an end meanwhile.
    """
    from concurrent.futures import wait

    while not wait([future], PATIENCE).done:
        ask()
    return future.result()


def results(pool: Any, call: Callable[..., Any], *columns: Iterable[Any]) -> Iterator[Any]:
    """The results of ``pool.map``; its processes are killed if the caller stops early.

    Raises:
        Interrupted: if a signal asks for an end meanwhile.
    """
    with held():  # workers are started here
        futures = [pool.submit(call, *row) for row in zip(*columns, strict=True)]
    try:
        yield from map(patient, futures)
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise


@contextlib.contextmanager
def held() -> Iterator[None]:
    """While entered, signals wait; processes that are started inherit that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """Of a worker process: leave signals, which reach all processes of a terminal, to the parent; end with it."""
    import multiprocessing

    for signum in SIGNALS:
        signal.signal(signum, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
