"""Full disks, folders that cannot be written, and two processes at one run folder."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from reliability.cases import Case, FoundError
from reliability.processes import Done, Lab
from reliability.runs import CHESS, SMALL, Finished, expect_same, finished
from rlgames.training.files import LOCK

RUN = (*SMALL, "games=3000", "eval_every=500")
LONG_RUN = (*SMALL, "games=30000", "eval_every=3000")
SPACE = (0, 8, 30, 100, 300)  # kB that are free on the full disk
PLACES = {  # what lies on the bad disk: words and environment
    "run folder": (("run_dir=bad/run",), {}),
    "run folder of chess": (("run_dir=bad/run",), {}),
    "runs": ((), {}),
    "results": (("results=bad/table.csv",), {}),
    "machine code": (("run_dir=run",), {"NUMBA_CACHE_DIR": "bad"}),
    "solved positions": (
        ("run_dir=run", "opponent=perfect", "game=connect4", "games=2", "engine=eager"),
        {"RLGAMES_CACHE": "bad"},
    ),
    "json": (("checkpoint=saved", "opponent=random", "evaluation.first=2", "json=bad/figures.json"), {}),
}


def cases(lab: Lab, everything: bool) -> list[Case]:
    """Every place on a disk with every space left, and in a folder that cannot be written; three meetings of two."""

    def full(name: str, kilobytes: int) -> Case:
        return Case("disk", f"{name}, {kilobytes} kB free", lambda folder: full_disk(lab, name, kilobytes, folder))

    def read_only(name: str) -> Case:
        return Case("disk", f"{name}, read-only", lambda folder: read_only_folder(lab, name, folder))

    def meeting(name: str, k: int) -> Case:
        return Case("disk", f"two at one folder, {name}, {k}", lambda folder: MEETINGS[name](lab, folder))

    spaces = SPACE if everything else SPACE[::2]
    return [
        *(read_only(name) for name in PLACES),
        *(meeting(name, k) for k in range(4 if everything else 1) for name in MEETINGS),
        *(full(name, kilobytes) for kilobytes in spaces for name in PLACES),
    ]


# ---- one bad place


def use(lab: Lab, name: str, folder: Path) -> Done:
    """Run the program that writes to ``name``, in the folder ``bad``."""
    words, env = PLACES[name]
    saved = lab.reference("saved for disks", lambda place: Finished(lab, RUN, place)).folder
    with contextlib.suppress(FileExistsError):
        folder.joinpath("saved").symlink_to(saved)
    cwd = folder / "bad" if name == "runs" else folder
    program = "evaluate" if name == "json" else "train"
    base = {"evaluate": (), "train": (*CHESS, "games=8") if "chess" in name else RUN}[program]
    return lab.run(program, [*base, *words], cwd, limit=300, **{key: str(folder / path) for key, path in env.items()})


def check(name: str, done: Done) -> None:
    """A cache that cannot be written never stops a program; nothing else is there without a word.

    Raises:
        FoundError: else.
    """
    done.inspect()
    if done.status and name in ("machine code", "solved positions"):
        raise FoundError("cannot go on", done.sentence)


def read_only_folder(lab: Lab, name: str, folder: Path) -> str:
    """Write to a folder that may not be written.

    Raises:
        FoundError: see ``check``.
    """
    bad = folder / "bad"
    bad.mkdir(mode=0o555)
    done = use(lab, name, folder)
    bad.chmod(0o755)
    check(name, done)
    if any(bad.iterdir()):
        raise FoundError("skipped", "this user may write everywhere")
    return done.sentence or done.err.strip()


@contextlib.contextmanager
def small_disk(bad: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of 16 MB at ``bad``, room for a run, with so many ``kilobytes`` free; yields the file that fills it.

    Raises:
        FoundError: if this user may not mount one.
    """
    bad.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "none", bad], capture_output=True, check=False)
    if mount.returncode:
        raise FoundError("skipped", f"mounting a disk needs root: {mount.stderr.decode().strip()}")
    try:
        filler = bad / "filler"
        filler.write_bytes(bytes(1024 * (16 * 1024 - kilobytes) // 4096 * 4096))
        yield filler
    finally:
        subprocess.run(["umount", "-l", bad], check=True)


def full_disk(lab: Lab, name: str, kilobytes: int, folder: Path) -> str:
    """Let the disk become full, and go on when there is space again.

    Raises:
        FoundError: if a program ends otherwise than with a sentence, or learns something else than on a good disk.
    """
    with small_disk(folder / "bad", kilobytes) as filler:
        done = use(lab, name, folder)
        check(name, done)
        filler.unlink()
        run = folder / "bad" / "run"
        if name == "run folder":
            go_on(lab, run, folder)
        return done.sentence or done.err.strip()


def go_on(lab: Lab, run: Path, folder: Path) -> None:
    """Finish the run that met the full disk, and compare it with one that did not.

    Raises:
        FoundError: if that is not possible, or they differ.
    """
    done = None
    if any(run.rglob("games_*.pt")):
        done = lab.run("train", [f"resume={run}"], folder).inspect()
    if done is None or done.status:
        refused = done.sentence if done else ""
        done = lab.run("train", [*RUN, f"run_dir={run}"], folder).inspect()
        if done.status:
            raise FoundError("cannot go on", f"{refused} {done.sentence}")
    expect_same(run, finished(lab, RUN).content)


# ---- two processes


def two(lab: Lab, first: list[str], second: list[str], folder: Path, later: bool) -> tuple[Done, Done]:
    """Two trainings at the same time; ``later``: the second while the first, at work on a checkpoint, is halted."""

    def at_work() -> bool:
        return any(folder.rglob("games_*.pt")) and (folder / "run" / LOCK).exists()

    with lab.start("train", first, folder) as one:
        if later:
            if not one.until(at_work):
                raise FoundError("campaign", f"there was no checkpoint: {one.end(1).last_line()}")
            one.send(signal.SIGSTOP)
        with lab.start("train", second, folder) as other:
            ends = [other.end(300)] if later else []
            one.send(signal.SIGCONT)
            return one.end(300), *(ends or [other.end(300)])


def one_wins(ends: tuple[Done, Done], lab: Lab, words: tuple[str, ...], run: Path) -> str:
    """One trains to the end, undisturbed, the other says that it cannot.

    Raises:
        FoundError: else.
    """
    for done in ends:
        done.inspect()
    if [done.status for done in ends].count(0) != 1:
        raise FoundError("two at work", "; ".join(f"{done.status} {done.last_line()}" for done in ends))
    expect_same(run, finished(lab, words).content)
    return max(ends, key=lambda done: done.status).sentence


def two_starts(lab: Lab, folder: Path) -> str:
    words = [*LONG_RUN, "run_dir=run"]
    return one_wins(two(lab, words, words, folder, later=False), lab, LONG_RUN, folder / "run")


def resume_while_it_trains(lab: Lab, folder: Path) -> str:
    ends = two(lab, [*LONG_RUN, "run_dir=run"], ["resume=run"], folder, later=True)
    return one_wins(ends, lab, LONG_RUN, folder / "run")


def two_resume(lab: Lab, folder: Path) -> str:
    lab.run("train", [*LONG_RUN[:-2], "games=3000", "eval_every=3000", "run_dir=run"], folder).inspect()
    again = ["resume=run", "games=30000"]
    return one_wins(two(lab, again, again, folder, later=True), lab, LONG_RUN, folder / "run")


def two_studies(lab: Lab, folder: Path) -> str:
    """Two processes share the runs of a study."""
    words = ["-m", *RUN, "results=table.csv", "seed=0,1"]
    ends = two(lab, words, words, folder, later=False)
    for done in ends:
        done.inspect()
    rows = folder.joinpath("table.csv").read_text(encoding="utf-8").splitlines()
    if len(rows) != 3 or not all(",finished," in row for row in rows[1:]):
        raise FoundError("wrong result", f"{len(rows) - 1} rows for 2 runs")
    return ""


MEETINGS = {
    "two starts": two_starts,
    "resumed while it trains": resume_while_it_trains,
    "resumed twice": two_resume,
    "a study": two_studies,
}
