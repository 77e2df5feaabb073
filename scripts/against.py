"""Is this tree faster than another revision? Called by ``scripts/benchmark.py --against REVISION``.

Two processes on one core, one per tree, take turns learning the same number of games: here, there; there, here; and so
on. A turn waits for the one before, so whatever slows the machine slows both. The measure is the ratio of CPU-seconds
in each pair of turns.

Each process measures with the ``Runner`` of its own tree's ``scripts/benchmark.py``, which knows where that tree keeps
things. So the interface of ``Runner(rule, words)``, ``turn(games)`` and ``seconds`` must not change.
"""

import csv
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
RULES = "tdl,tcl_exp,idbd,swift_td"
WORDS = {"swift_td": ["learner.lambda_=0.5"]}  # made for traces; words of the command line follow these
LEAST_TURNS = 20  # with 20 the interval spans the 6th to the 15th ratio


class Interval(NamedTuple):
    """A median and the ends of its confidence interval."""

    median: float
    low: float
    high: float


def median_interval(values: list[float], level: float = 0.95) -> Interval:
    """The median with its order-statistics interval, which assumes no distribution (Conover 1999, section 3.2).

    The k-th smallest and the k-th largest of n values enclose the true median unless fewer than k of them fall on one
    side of it. How many do is binomial(n, 1/2); k is the largest with a confidence of at least ``level``.

    Raises:
        ValueError: if even the smallest and the largest value give less confidence.
    """
    n, ordered = len(values), sorted(values)
    k, outside = 0, 1  # outside: of 2^n outcomes, those with at most k values below the median
    while 2 * outside / 2**n <= 1 - level:
        k += 1
        outside += math.comb(n, k)
    if k == 0:
        raise ValueError(f"{n} values are too few for an interval of level {level}")
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[n - k])


def verdict(intervals: dict[str, Interval]) -> str:
    """One line: the rules that are faster here, those that are slower, and those that the turns do not decide."""
    faster = [rule for rule, (_, low, _) in intervals.items() if low > 1]
    slower = [rule for rule, (_, _, high) in intervals.items() if high < 1]
    open_ = [rule for rule in intervals if rule not in faster + slower]
    parts = {"above 1 (faster here)": faster, "below 1 (slower here)": slower, "not told apart from 1": open_}
    return "; ".join(f"{text}: {', '.join(rules) or 'none'}" for text, rules in parts.items())


def unpack(revision: str, folder: Path) -> Path:
    """Write the files of ``revision`` below ``folder`` and return where; the repository is left as it is."""
    archive, tree = folder / "there.zip", folder / "there"
    command = ["git", "-C", HERE, "archive", "--format=zip", f"--output={archive}", "--end-of-options", revision]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        sys.exit(f"--against is {revision!r}; it must be a revision of a git checkout at {HERE} ({why})")
    shutil.unpack_archive(archive, tree)
    if not (tree / "scripts" / "benchmark.py").is_file():
        sys.exit(f"--against is {revision!r}, which has no scripts/benchmark.py; it must be a revision that has")
    return tree


class Side:
    """A process that learns with the code of ``tree`` and times itself; a warm-up turn starts at once."""

    def __init__(self, tree: Path, cache: Path, rule: str, words: list[str], games: int) -> None:
        path = [str(tree), str(tree / "scripts"), os.environ.get("PYTHONPATH", "")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path)), "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-P", __file__, json.dumps([rule, words, games])]  # -P: nothing comes before path
        pipe = subprocess.PIPE
        self._name = f"{rule} {'here' if tree == HERE else 'there'}"
        self._process = subprocess.Popen(  # a session of its own: Ctrl-C is for the first process
            command, stdin=pipe, stdout=pipe, text=True, env=env, start_new_session=True
        )

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def seconds(self) -> float:
        """Wait for the end of the turn and return its CPU-seconds."""
        answer = self._process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            sys.exit(f"{self._name}: {answer or 'the process stopped'}")

    def turn(self) -> float:
        """Learn for a turn and return its CPU-seconds."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.seconds()


def serve(rule: str, words: list[str], games: int) -> None:
    """The loop of a side's process: a turn to compile and warm up, then one for every line that it reads.

    It answers with seconds or an error.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before torch counts the cores
    answers, sys.stdout = sys.stdout, sys.stderr  # what others print is not an answer
    try:
        from benchmark import Runner

        runner = Runner(rule, words)
        while True:
            before = runner.seconds
            runner.turn(games)
            print(runner.seconds - before, file=answers, flush=True)
            if not sys.stdin.readline():
                return
    except Exception as error:  # whatever that revision's code raises
        print(f"{type(error).__name__}: {error}".splitlines()[0], file=answers, flush=True)


def ratios(there: Path, cache: Path, rule: str, words: list[str], games: int, turns: int) -> list[float]:
    """Speed here / speed there in each of ``turns`` pairs of turns of ``games`` games."""
    words = [*WORDS.get(rule, ()), *words]
    found = []
    with Side(HERE, cache, rule, words, games) as ours, Side(there, cache, rule, words, games) as theirs:
        ours.seconds(), theirs.seconds()  # both are warm
        for k in range(turns):
            seconds = {side: side.turn() for side in ((ours, theirs), (theirs, ours))[k % 2]}
            found.append(seconds[theirs] / seconds[ours])
    return found


def main(revision: str, rules: list[str], games: int, turns: int, words: list[str], file: str | None) -> None:
    """Compare rule by rule; print a line for each as soon as it is known, then the verdict."""
    if turns < LEAST_TURNS:
        sys.exit(f"--games and --turn make {turns} turns; --against needs at least {LEAST_TURNS}")
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # the folder must be removed then too
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    intervals = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        there = unpack(revision, folder)
        print(f"speed here / speed at {revision}, median [95 % interval] of {turns} turns of {games} games", flush=True)
        for rule in rules:
            found = ratios(there, folder / "cache", rule, words, games, turns)  # both compile all that they run
            intervals[rule] = median_interval(found)
            print("{:12} {:.3f} [{:.3f}, {:.3f}]".format(rule, *intervals[rule]), flush=True)
    print(verdict(intervals))
    if file:
        with open(file, "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([("rule", *Interval._fields), *((r, *x) for r, x in intervals.items())])


if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
