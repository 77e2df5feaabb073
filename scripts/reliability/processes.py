"""Programs of the package as children, and what is wrong with the way in which one ended."""

import contextlib
import ctypes
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reliability.cases import FoundError

PROJECT = Path(__file__).resolve().parents[2]
MEMORY = 3 * 2**30  # bytes of data that a program may have
LIMIT = 90.0  # seconds; one that takes longer hangs
BAD = re.compile(
    r"^\s*(Traceback \(most recent call last\)|Fatal Python error|Exception ignored in|Segmentation fault)",
    re.MULTILINE,
)


class Done(NamedTuple):
    """How a program ended.

    Attributes:
        status: its exit status, or the negative number of the signal that killed it.
        ended: whether it ended by itself in time.
        seconds: that it took.
        memory: peak in MB; 0 if it was not measured.
        out, err: what it printed.
    """

    status: int
    ended: bool
    seconds: float
    memory: float
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it said was wrong; empty if it said nothing."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return lines[-1] if lines else ""

    def last_line(self) -> str:
        """Of the errors, or else of the output."""
        lines = [line for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        return lines[-1] if lines else "nothing was printed"

    def inspect(self) -> "Done":
        """Itself, if it ended in good order: in time, with status 0, or with 1 and a sentence.

        Raises:
            FoundError: else.
        """
        self.sound()
        if self.status not in (0, 1):
            raise FoundError("exit status", f"{self.status}; {self.last_line()}")
        if self.status and not self.sentence:
            raise FoundError("no sentence", self.last_line())
        return self

    def sound(self) -> "Done":
        """The same with any exit status."""
        if not self.ended:
            raise FoundError("hang", f"no end within {self.seconds:.0f} s; {self.last_line()}")
        if bad := BAD.search(self.out + "\n" + self.err):
            raise FoundError("traceback", f"{bad[1]}: {self.last_line()}")
        if self.status < 0:
            raise FoundError("crash", f"{signal.Signals(-self.status).name}; {self.last_line()}")
        return self


def as_people_start_it() -> None:
    """Of programs started here: SIGHUP counts, even under nohup, and root may not open what is forbidden."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if sys.platform == "linux":
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; refused to others, who need none


class Nursery:
    """Runs programs in forks of one process that has imported everything: a start costs seconds, a fork does not."""

    def __init__(self, env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=env, preexec_fn=as_people_start_it, start_new_session=True
        )
        self._process.stdout.readline()

    def run(self, **request: Any) -> Done:
        """Run a program to its end; see ``Lab.run``."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class Lab:
    """Where the cases of a campaign work.

    Args:
        folder: for all that they leave.
        seed: of what they draw.

    Attributes:
        env: of all programs.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.folder, self.seed = folder, seed
        path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
        self.env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}  # one thread: forks and shared cores
        self._local, self._nurseries = threading.local(), []  # type: threading.local, list[Nursery]
        self._references: dict[str, Any] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._locking = threading.Lock()

    def run(
        self,
        program: str,
        words: Iterable[str],
        cwd: Path,
        stdin: str = "",
        limit: float = LIMIT,
        memory: int = MEMORY,
        **env: str,
    ) -> Done:
        """Run ``python -m rlgames.PROGRAM WORDS`` in a fork.

        Args:
            program: such as "train".
            words: of the command line.
            cwd: where it runs.
            stdin: what it reads.
            limit: seconds after which it is killed.
            memory: bytes of data that it may have.
            env: of the environment, beside ``self.env``.
        """
        if not hasattr(self._local, "nursery"):
            self._local.nursery = Nursery(self.env)
            self._nurseries.append(self._local.nursery)
        request = {"program": program, "words": list(words), "cwd": str(cwd), "stdin": stdin, "env": env}
        return self._local.nursery.run(**request, limit=limit, memory=memory)

    @contextlib.contextmanager
    def start(self, program: str, words: Iterable[str], cwd: Path, **env: str) -> Iterator["Process"]:
        """The same as a process of its own, killed in the end if it still runs."""
        process = Process([sys.executable, "-m", f"rlgames.{program}", *words], cwd, self.env | env)
        try:
            yield process
        finally:
            process.kill()

    def reference(self, name: str, make: Callable[[Path], Any]) -> Any:
        """What ``make`` returned when it was called first, in a folder of that ``name``."""
        with self._locking:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._references:
                folder = self.folder / "references" / re.sub(r"\W+", "_", name)
                folder.mkdir(parents=True)
                self._references[name] = make(folder)
        return self._references[name]

    def close(self) -> None:
        """End the processes that fork."""
        for nursery in self._nurseries:
            nursery.close()


class Process:
    """A program in a process of its own, whose output goes into files that can be read while it runs."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._files = [cwd / f".{name}{id(self)}" for name in ("out", "err")]
        self._began = time.monotonic()
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(file.open("wb")) for file in self._files)
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env | {"PYTHONUNBUFFERED": "1"},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                preexec_fn=as_people_start_it,
                start_new_session=True,
            )
        self.stdin, self.pid = self._process.stdin, self._process.pid

    def texts(self) -> list[str]:
        """Output and errors so far."""
        return [file.read_bytes().decode(errors="replace") for file in self._files]

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def until(self, what: Callable[[], Any], limit: float = LIMIT) -> bool:
        """Wait until ``what`` is true; False if the program ended or ``limit`` seconds passed before."""
        end = time.monotonic() + limit
        while self.runs() and time.monotonic() < end:
            if what():
                return True
            time.sleep(0.02)
        return bool(what())

    def end(self, limit: float = LIMIT) -> Done:
        """Close its input and wait for the end."""
        with contextlib.suppress(OSError):
            self.stdin.close()
        return self.wait(limit)

    def wait(self, limit: float = LIMIT) -> Done:
        """Wait for the end."""
        ended = True
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            ended = False
            self.kill()
        return Done(self._process.returncode, ended, time.monotonic() - self._began, 0.0, *self.texts())

    def kill(self) -> None:
        """Kill -9, its children too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            self.stdin.close()


def command_line(program: str, words: Iterable[str]) -> str:
    """As people type it."""
    return shlex.join(["python", "-m", f"rlgames.{program}", *words])
