"""kill -9 at random moments: the run goes on and ends with the same weights and optimizer state, to the bit."""

import random
from pathlib import Path

from reliability.cases import Case, FoundError
from reliability.processes import Done, Lab
from reliability.runs import FUSED, RUNS, expect_same, finished

KILLS = 3  # per case


def cases(lab: Lab, everything: bool) -> list[Case]:
    """Two for each run; with ``everything`` eight, and all rules."""
    from rlgames.build import CONF

    runs = dict(RUNS)
    if everything:
        rules = sorted(file.stem for file in (CONF / "optimizer").glob("*.yaml"))
        runs |= {f"td {rule}": (*FUSED, f"optimizer={rule}") for rule in rules if rule not in ("adam", "sgd")}
        runs |= {
            f"td {rule} traces": (*words, "learner.lambda_=0.5") for rule, words in list(runs.items())[len(RUNS) :]
        }

    def case(name: str, words: tuple[str, ...], k: int) -> Case:
        rng = random.Random(f"{lab.seed} {name} {k}")
        return Case("kills", f"{name}, {k}", lambda folder: kill(lab, words, folder, rng))

    return [case(name, words, k) for k in range(8 if everything else 2) for name, words in runs.items()]


def kill(lab: Lab, words: tuple[str, ...], folder: Path, rng: random.Random) -> str:
    """Kill a run and go on with it, some times, and compare it with one that nobody killed.

    Raises:
        FoundError: if it cannot go on, or leaves other than the other.
    """
    reference, moments = finished(lab, words), []
    done = None
    for _ in range(KILLS):
        moments.append(rng.random() * reference.seconds)
        done = go_on(lab, words, folder, moments[-1])
        if done.ended:
            break
    while not done.ended:
        done = go_on(lab, words, folder, 600)
    expect_same(folder / "run", reference.content)
    left = [file.name for file in (folder / "run").rglob("*.tmp")]
    if left:
        raise FoundError("left behind", " ".join(left))
    return "killed after " + ", ".join(f"{moment:.2f} s" for moment in moments)


def go_on(lab: Lab, words: tuple[str, ...], folder: Path, limit: float) -> Done:
    """Begin the run, or resume it; what has no checkpoint yet is begun again.

    Raises:
        FoundError: if neither is possible.
    """
    begin = [*words, "run_dir=run"]
    there = folder.joinpath("run").exists()
    done = lab.run("train", ["resume=run"] if there else begin, folder, limit=limit)
    if done.ended and done.status and there:
        refused = done.inspect().sentence
        done = lab.run("train", begin, folder, limit=limit)
        if done.ended and done.status:
            raise FoundError("cannot go on", f"{refused}; begun again: {done.inspect().sentence}")
    if done.ended:
        done.inspect()
    return done
