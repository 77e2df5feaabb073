"""Signals to real processes: 12 moments of programs, 3 signals each; they end soon, say so, and lose nothing."""

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from reliability.cases import Case, FoundError
from reliability.processes import Done, Lab, Process
from reliability.runs import CHESS, SMALL, newest
from rlgames.training.checkpoint import load

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 15.0  # seconds to the end; the promise is 5 on a quiet machine
COMPILING = 120.0  # seconds: what is being compiled is compiled to its end
LONG = ("games=100000000", "eval_every=2000")
CHESS_LONG = (*CHESS[:1], *CHESS[2:], "games=8000")
EVALUATION = ("evaluation.first=10000000",)
Ready = Callable[[Process, Path], bool]


def printed(text: str) -> Ready:
    """Whether the program has printed ``text``."""
    return lambda process, folder: text in "".join(process.texts())


def checkpoint(process: Process, folder: Path) -> bool:
    """Whether a checkpoint has been written."""
    return any(folder.rglob("games_*.pt"))


def loaded(library: str) -> Ready:
    """Whether the program has loaded a shared library of that name, so that imports are under way."""

    def ready(process: Process, folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return library in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
        return False

    return ready


def working(process: Process, folder: Path) -> bool:
    """Whether the program has run for 3 CPU-seconds more than an import takes."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]) > 900  # hundredths of a second
    return False


class Moment(NamedTuple):
    """When a program gets a signal.

    Attributes:
        program: its name.
        words: of its command line.
        ready: whether the moment has come.
        after: seconds from then to the signal.
        patience: seconds to the end.
        saved: the least number of games that a checkpoint must hold then.
        stdin: what the program is told before.
        env: of the program; "code" becomes an empty folder for machine code.
    """

    program: str
    words: tuple[str, ...]
    ready: Ready
    after: float = 0.0
    patience: float = PATIENCE
    saved: int = 0
    stdin: str = ""
    env: tuple[tuple[str, str], ...] = ()


MOMENTS = {
    "train, imports": Moment("train", (*SMALL, *LONG, "run_dir=run"), loaded("libtorch_cpu")),
    "train, compiling": Moment(
        "train",
        (*SMALL, *LONG, "run_dir=run"),
        printed("games of"),
        1.0,
        COMPILING,
        env=(("NUMBA_CACHE_DIR", "code"),),
    ),
    "train, training": Moment(
        "train", (*SMALL, *LONG[:1], "eval_every=20000", "run_dir=run"), checkpoint, 0.3, saved=1
    ),
    "train, evaluation": Moment(
        "train", (*SMALL, *LONG, "run_dir=run", "opponent=minimax", *EVALUATION), printed("games of"), 3.0
    ),
    "train, chess": Moment("train", (*CHESS_LONG, "run_dir=run"), checkpoint, 0.5, saved=8),
    "train, chess evaluation": Moment(
        "train", (*CHESS_LONG, "evaluation.games=4000", "run_dir=run"), printed("games of"), 12.0
    ),
    "study": Moment(
        "train",
        ("-m", *SMALL, *LONG, "seed=0,1", "results=table.csv"),
        lambda process, folder: checkpoint(process, folder),
        1.0,
        saved=1,
    ),
    "evaluate": Moment("evaluate", ("checkpoint=saved", *EVALUATION), working),
    "tournament": Moment("tournament", ("players=[saved,minimax,random]", "matches=10000000"), working),
    "match": Moment("match", ("first=start", "second=start", "games=100000", "folder=match"), printed("games:")),
    "play, waiting": Moment("play", ("checkpoint=saved", "side=first"), printed("Type a move"), 0.5),
    "uci, thinking": Moment("uci", (), printed("info depth 2"), stdin="go infinite\n"),
}


def cases(lab: Lab, everything: bool) -> list[Case]:
    """36; with ``everything`` as many again with a second signal of the same kind right behind the first."""

    def case(name: str, number: signal.Signals, times: int) -> Case:
        twice = ", twice" * (times > 1)
        return Case("signals", f"{name}, {number.name}{twice}", lambda folder: hit(lab, name, number, times, folder))

    return [case(name, number, times) for times in (1, 2)[: 1 + everything] for name in MOMENTS for number in SIGNALS]


def hit(lab: Lab, name: str, number: signal.Signals, times: int, folder: Path) -> str:
    """Send a signal at its moment.

    Raises:
        FoundError: if the program does not end as ``judge`` expects, or that moment never came.
    """
    moment = MOMENTS[name]
    if "saved" in " ".join(moment.words):
        saved = lab.reference("saved for signals", lambda place: save(lab, place))
        folder.joinpath("saved").symlink_to(saved)
    env = {key: str(folder / value) for key, value in moment.env}
    with lab.start(moment.program, moment.words, folder, **env) as process:
        process.stdin.write(moment.stdin.encode())
        process.stdin.flush()
        if not process.until(lambda: moment.ready(process, folder), 180):
            raise FoundError("campaign", f"the moment never came: {process.end(1).last_line()}")
        time.sleep(moment.after)
        began = time.monotonic()
        for _ in range(times):
            process.send(number)
            time.sleep(0.2 * (times - 1))
        done = process.wait(moment.patience)._replace(seconds=time.monotonic() - began)
    judge(moment, number, done, folder)
    return f"ended after {done.seconds:.1f} s"


def save(lab: Lab, place: Path) -> Path:
    """A run to look at."""
    lab.run("train", [*SMALL, "games=2000", "eval_every=1000", "run_dir=run"], place, limit=600).inspect()
    return place / "run"


def judge(moment: Moment, number: signal.Signals, done: Done, folder: Path) -> None:
    """Expect 128 + the signal's number, a word, and a checkpoint; during imports it may simply die of the signal.

    Raises:
        FoundError: else.
    """
    early = moment is MOMENTS["train, imports"] and number != signal.SIGINT
    if not (early and done.status == -number):
        if done.ended and done.status == -number:
            raise FoundError("exit status", f"it died of {number.name}; {done.last_line()}")
        done.sound()
        if done.status != 128 + number:
            raise FoundError("exit status", f"{done.status}, not {128 + number}; {done.last_line()}")
        if not (done.out + done.err).strip():
            raise FoundError("no sentence", "nothing was printed")
    if moment.saved:
        runs = {file.parents[1] for file in folder.rglob("games_*.pt")}
        if not runs:
            raise FoundError("no checkpoint", done.last_line())
        for run in runs:
            newest(run)
        games = max(load(run)["games"] for run in runs)
        if games < moment.saved:
            raise FoundError("no checkpoint", f"the newest has {games} games")
