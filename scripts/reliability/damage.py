"""Files of run folders and caches cut, emptied, changed or gone: programs say so or go on, and learn nothing wrong."""

import logging
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from reliability.cases import Case, FoundError
from reliability.processes import Done, Lab
from reliability.runs import CHESS, SMALL, Finished, Q, expect_same, newest
from rlgames.players.solved import SolvedPositions
from rlgames.players.solver import SOLVED

RUNS = {  # without schedules that follow the total: a run may go on from its first checkpoint to another one
    "td": (*SMALL, "games=2000", "eval_every=1000"),
    "q": (*Q, "games=200", "eval_every=100", "learner.games=200"),
    "td_leaf": (*CHESS, "games=16", "learner.lr=1.0"),
}
TOTAL = {"td": 3000, "q": 300, "td_leaf": 24}  # games to go on to
FILES = (  # of a run folder, as patterns, and which of those that match: the first is the oldest
    *(("config.yaml", 0), ("versions.json", 0), ("progress.csv", 0), ("result.json", 0)),
    *(("checkpoints/*.pt", 0), ("checkpoints/*.pt", 1), ("events.*", 0)),
)
MOST_CODE = 6  # files of machine code that the run "td" may have
NONE = ("evaluation.second=0", "evaluation.first_distant=0", "evaluation.second_distant=0")
CONNECT4 = (
    *("game=connect4", "features.tuples=[[0,1,2,3],[3,4,5,6]]", "engine=eager", "games=2", "eval_every=2"),
    *("opponent=random", "evaluation.first=2", *NONE),
)
AGAINST_PERFECT = ("checkpoint=run", "engine=eager", "evaluation.first=2", *NONE)
FLIPS = 300  # of one bit of the solved positions, read directly
DEFAULT = {"run folders": 24, "machine code": 6, "solved positions": 8}  # cases


def flip(content: bytes, rng: random.Random) -> bytes:
    """``content`` with one bit changed."""
    place, bit = rng.randrange(len(content)) if content else 0, 1 << rng.randrange(8)
    return content[:place] + bytes(byte ^ bit for byte in content[place : place + 1]) + content[place + 1 :]


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": lambda content, rng: content[: rng.randrange(1 + len(content))],
    "emptied": lambda content, rng: b"",
    "flipped": flip,
    "garbage": lambda content, rng: rng.randbytes(1 + len(content)),
}
DAMAGES = (*CHANGES, "missing", "a folder", "unreadable")


def damage(file: Path, how: str, rng: random.Random) -> None:
    """Make ``file`` bad in one of the ``DAMAGES``."""
    if how in CHANGES:
        file.write_bytes(CHANGES[how](file.read_bytes(), rng))
    elif how == "unreadable":
        file.chmod(0)
    else:
        file.unlink()
        if how == "a folder":
            file.mkdir()


def cases(lab: Lab, everything: bool) -> list[Case]:
    """Every file in every way; by default some of each kind."""
    kinds = {"run folders": run_cases(lab), "machine code": code_cases(lab), "solved positions": solved_cases(lab)}
    rng, chosen = random.Random(lab.seed), []
    for kind, found in kinds.items():
        chosen += found if everything else rng.sample(found, min(len(found), DEFAULT[kind]))
    return chosen


# ---- run folders


class Saved:
    """A run with two checkpoints, what programs say of it with and without the last, and where it goes on to."""

    def __init__(self, lab: Lab, kind: str, folder: Path) -> None:
        self.run = Finished(lab, RUNS[kind], folder).folder
        older, longer = (shutil.copytree(self.run, folder / name / "run") for name in ("older", "longer"))
        max((older / "checkpoints").glob("*.pt")).unlink()
        self.answers = {
            program: {look(lab, program, kind, run.parent).inspect().out for run in (self.run, older)}
            for program in ("evaluate", "play")
        }
        resume(lab, kind, longer.parent).inspect()
        self.content = newest(longer)


def resume(lab: Lab, kind: str, folder: Path) -> Done:
    return lab.run("train", ["resume=run", f"games={TOTAL[kind]}"], folder)


def look(lab: Lab, program: str, kind: str, folder: Path) -> Done:
    """What ``program`` says of the run."""
    words = ["checkpoint=run"]
    if program == "play":
        words += ["against=random", "side=first"]
    elif kind == "td_leaf":
        words += [
            "opponent=untrained",
            "opponent.nodes=20",
            "evaluation=match",
            "evaluation.games=2",
            "evaluation.nodes=20",
        ]
    return lab.run(program, words, folder)


def run_cases(lab: Lab) -> list[Case]:
    def case(kind: str, pattern: str, which: int, how: str) -> Case:
        name = f"{kind}, {pattern}{which or ''}, {how}"
        rng = random.Random(f"{lab.seed} {name}")
        return Case("damage", name, lambda folder: damaged_run(lab, kind, (pattern, which), how, folder, rng))

    return [case(kind, *file, how) for kind in RUNS for file in FILES for how in DAMAGES]


def damaged_run(lab: Lab, kind: str, file: tuple[str, int], how: str, folder: Path, rng: random.Random) -> str:
    """Damage a file of a run, look at it and go on.

    Raises:
        FoundError: if a program does not say what is wrong, or goes on to something else than without the damage.
    """
    saved = lab.reference(f"saved {kind}", lambda place: Saved(lab, kind, place))
    run = shutil.copytree(saved.run, folder / "run")
    damage(sorted(run.glob(file[0]))[file[1]], how, rng)
    said = []
    for program, answers in saved.answers.items():
        done = look(lab, program, kind, folder).inspect()
        if not done.status and done.out not in answers:
            raise FoundError("wrong result", f"{program}: {done.last_line()}")
        said.append(done.sentence)
    done = resume(lab, kind, folder).inspect()
    if not done.status:
        expect_same(run, saved.content)
    return "; ".join(filter(None, [*said, done.sentence]))


# ---- machine code


def code_cases(lab: Lab) -> list[Case]:
    def case(number: int, how: str) -> Case:
        name = f"machine code, file {number}, {how}"
        rng = random.Random(f"{lab.seed} {name}")
        return Case("damage", name, lambda folder: damaged_code(lab, number, how, folder, rng))

    return [case(number, how) for number in range(MOST_CODE) for how in DAMAGES]


class Compiled(Finished):
    """A run whose machine code lies in a folder of its own."""

    def __init__(self, lab: Lab, words: tuple[str, ...], folder: Path) -> None:
        lab.run("train", [*words, "run_dir=run"], folder, limit=600, NUMBA_CACHE_DIR=str(folder / "code")).inspect()
        self.code, self.content = folder / "code", newest(folder / "run")


def damaged_code(lab: Lab, number: int, how: str, folder: Path, rng: random.Random) -> str:
    """Damage a file of machine code and run what needs it.

    Raises:
        FoundError: if the run ends, or learns something else.
    """
    compiled = lab.reference("compiled", lambda place: Compiled(lab, RUNS["td"], place))
    code = shutil.copytree(compiled.code, folder / "code")
    files = sorted(file for file in code.rglob("*") if file.is_file())
    if len(files) > MOST_CODE:
        raise FoundError("campaign", f"there are {len(files)} files of machine code; MOST_CODE is {MOST_CODE}")
    if number >= len(files):
        raise FoundError("skipped", f"there are {len(files)} files of machine code only")
    damage(files[number], how, rng)
    done = lab.run("train", [*RUNS["td"], "run_dir=run"], folder, limit=300, NUMBA_CACHE_DIR=str(code)).inspect()
    if done.status:
        raise FoundError("cannot go on", done.sentence)
    expect_same(folder / "run", compiled.content)
    lab.run("info", [], folder, NUMBA_CACHE_DIR=str(code)).inspect()
    return f"{files[number].name}: {done.err.strip()}"


# ---- solved positions


class Solved:
    """A Connect-4 agent, its matches against the perfect player, and the positions that were solved for them."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        lab.run("train", [*CONNECT4, "run_dir=run"], folder).inspect()
        self.folder, self.cache = folder, folder / "cache"
        done = lab.run("evaluate", AGAINST_PERFECT, folder, limit=600, RLGAMES_CACHE=str(self.cache)).inspect()
        self.out = done.out


def solved_cases(lab: Lab) -> list[Case]:
    def case(how: str) -> Case:
        rng = random.Random(f"{lab.seed} solved {how}")
        return Case("damage", f"solved positions, {how}", lambda folder: damaged_positions(lab, how, folder, rng))

    flips = Case("damage", f"solved positions, {FLIPS} flips", lambda folder: flipped_positions(lab, folder))
    return [*map(case, DAMAGES), flips]


def damaged_positions(lab: Lab, how: str, folder: Path, rng: random.Random) -> str:
    """Damage the file of solved positions and play against the perfect player.

    Raises:
        FoundError: if the matches end otherwise, or not at all.
    """
    solved = lab.reference("solved", lambda place: Solved(lab, place))
    shutil.copytree(solved.folder, folder, dirs_exist_ok=True)
    damage(folder / "cache" / SOLVED, how, rng)
    for program, words in (("info", ()), ("evaluate", AGAINST_PERFECT)):
        done = lab.run(program, words, folder, limit=600, RLGAMES_CACHE=str(folder / "cache")).inspect()
    if done.status:
        raise FoundError("cannot go on", done.sentence)
    if done.out != solved.out:
        raise FoundError("wrong result", done.last_line())
    return done.err.strip()


def flipped_positions(lab: Lab, folder: Path) -> str:
    """Flip a bit of the file of solved positions, and ask for each of them, again and again.

    Raises:
        FoundError: if one is answered otherwise than it was solved.
    """
    file = lab.reference("solved", lambda place: Solved(lab, place)).cache / SOLVED
    with sqlite3.connect(file) as connection:
        right = {
            (solver, key): [value, moves] for solver, key, value, moves, _ in connection.execute("SELECT * FROM solved")
        }
    content, copy = file.read_bytes(), folder / SOLVED
    rng, wrong, gone = random.Random(lab.seed), 0, 0
    logging.getLogger("rlgames").setLevel(logging.CRITICAL)
    for _ in range(FLIPS):
        copy.write_bytes(flip(content, rng))
        positions = {solver: SolvedPositions(copy, solver) for solver, _ in right}
        found = {(solver, key): positions[solver].get(key) for solver, key in right}
        wrong += any(answer is not None and list(answer) != right[key] for key, answer in found.items())
        gone += None in found.values()
    if wrong:
        raise FoundError("wrong result", f"after {wrong} of {FLIPS} flips of one bit in {len(content)} bytes")
    return f"{len(right)} positions; some of them were gone after {gone} of {FLIPS} flips"
