"""Sutton's tracking task (1992): 20 inputs, 5 of them relevant with weights of ±1, one of which flips every 20 steps.

A rule that learns step sizes finds out which inputs matter. Prints for each rule and meta parameter the mean squared
error over 10,000 steps after a warm-up of 20,000 (predicting 0 scores 5), and the learned step sizes.

    python scripts/tracking.py                             # all rules that suit linear units, 5 seeds
    python scripts/tracking.py --rules idbd,k1 --seeds 30
    python scripts/tracking.py --csv tracking.csv --plot docs/tracking.png          # needs the extra "plots"
    python scripts/tracking.py --defaults        # constructor defaults, here and on noiseless regressions

Expected: TDL (LMS) at best 3.36, IDBD 1.55 at θ = 0.009, K1 1.03 at θ = 0.02, Autostep 2.09 at μ = 0.05.
"""

import argparse
import csv
import math
from typing import Any, NamedTuple

import numpy as np
import torch

import rlgames.optim
from rlgames.compiled import compile_function
from rlgames.optim import IDBD, K1, TCL, TCLEXP, TDL, AdaptiveObGD, AlphaBounds, Autostep, AutoTIDBD, StepSize, SwiftTD
from rlgames.optim.lanes import update
from rlgames.traces import NoMemory

INPUTS, RELEVANT, FLIP = 20, 5, 20
ALPHAS = [0.005, 0.01, 0.02, 0.03, 0.035, 0.04, 0.05, 0.06]
THETAS = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1]
SETTINGS: dict[str, tuple[type[StepSize], str, dict[str, Any], list[float]]] = {
    "tdl": (TDL, "lr", {}, ALPHAS),
    "tcl": (TCL, "lr", {}, [*ALPHAS, 0.1, 0.2, 0.4]),
    "tcl_exp": (TCLEXP, "lr", {}, [*ALPHAS, 0.1, 0.2, 0.4]),
    "alpha_bounds": (AlphaBounds, "lr", {}, ALPHAS),
    "adaptive_obgd": (AdaptiveObGD, "lr", {}, [*ALPHAS, 0.1, 0.2, 0.4]),
    "idbd": (IDBD, "theta", {"lr": 0.05, "guards": False}, [1e-4, 3e-4, 1e-3, 3e-3, 5e-3, 7e-3, 9e-3, 0.01, 0.015]),
    "autostep": (Autostep, "mu", {"lr": 0.05}, THETAS),
    "auto_tidbd": (AutoTIDBD, "theta", {"lr": 0.05, "old_trace": False}, THETAS),
    "k1": (K1, "theta", {"lr": 0.05, "guards": False}, THETAS),
    "swift_td": (SwiftTD, "theta", {"lr": 0.05, "eta": 0.5}, THETAS),
}
REGRESSIONS = (5, 20, 50)  # inputs
COLUMNS = ("rule", "parameter", "value", "error", "deviation", "relevant", "irrelevant", "failures", "seeds")


class Result(NamedTuple):
    """Mean over the seeds that did not fail, its standard error, step sizes of both kinds of input, failed seeds."""

    error: float
    deviation: float
    relevant: float
    irrelevant: float
    failures: int


def track(p: Any, lanes: Any, memory: Any, warm_up: int, steps: int, rng: np.random.Generator) -> float:
    """Mean squared error over ``steps`` after ``warm_up`` of the rule with hyper-parameters ``p``; compiled."""
    targets = np.ones(RELEVANT)
    squares = 0.0
    for k in range(warm_up + steps):
        if k % FLIP == 0:
            targets[rng.integers(0, RELEVANT)] *= -1
        delta = 0.0
        for j in range(INPUTS):
            x = rng.standard_normal()
            memory.x[j] = memory.e[j] = x
            delta -= lanes[0, j] * x
            if j < RELEVANT:
                delta += targets[j] * x
        if k >= warm_up:
            squares += delta * delta
        update(p, lanes, memory, INPUTS, delta, 1.0)
    return squares / steps


def regress(p: Any, lanes: Any, memory: Any, steps: int, rng: np.random.Generator) -> float:
    """Mean squared error over the last tenth of a noiseless linear regression on inputs of N(0, 1); compiled."""
    targets, squares = rng.standard_normal(len(memory.x)), 0.0
    for k in range(steps):
        delta = 0.0
        for j in range(len(memory.x)):
            memory.x[j] = memory.e[j] = rng.standard_normal()
            delta += (targets[j] - lanes[0, j]) * memory.x[j]
        if k >= steps - steps // 10:
            squares += delta * delta
        update(p, lanes, memory, len(memory.x), delta, 1.0)
    return squares / (steps // 10)


def prepare(cls: type[StepSize], hyper: dict[str, Any], inputs: int) -> tuple[StepSize, Any, Any, NoMemory]:
    """The optimizer of some weights, and what compiled code works on: hyper-parameters, lanes and memory."""
    weight = torch.nn.Parameter(torch.zeros(inputs, dtype=torch.float64))
    optimizer = cls([weight], **hyper)  # type: ignore[call-arg]
    (group,) = optimizer.param_groups
    p, state = optimizer.hyper(group), optimizer.state_of(weight, group)
    numbers = p._replace(**{name: getattr(p, name).numpy() for name in optimizer.shared})  # of the same memory
    lanes = np.stack([weight.detach().numpy(), *(tensor.numpy() for tensor in state)])
    memory = NoMemory(np.arange(inputs, dtype=np.int32), np.zeros(inputs), np.zeros(inputs), None, True, True, 0.0)
    return optimizer, numbers, lanes, memory


def measure(
    cls: type[StepSize], hyper: dict[str, Any], seeds: int, warm_up: int = 20_000, steps: int = 10_000
) -> Result:
    """Run the task on ``seeds`` random streams."""
    errors, sizes = [], []
    for seed in range(seeds):
        optimizer, p, lanes, memory = prepare(cls, hyper, INPUTS)
        rng = np.random.default_rng(seed)
        errors.append(compile_function(track)(p, lanes, memory, warm_up, steps, rng))
        state = optimizer.State(*map(torch.from_numpy, lanes[1:]))
        size = torch.as_tensor(optimizer.step_size(optimizer.hyper(optimizer.param_groups[0]), state))
        sizes.append(size.double().expand(INPUTS).numpy())
    good = [k for k, error in enumerate(errors) if math.isfinite(error) and error < RELEVANT]
    size = np.mean([sizes[k] for k in good], 0) if good else np.full(INPUTS, math.nan)
    kept = [errors[k] for k in good]
    error, deviation = (np.mean(kept), np.std(kept) / math.sqrt(len(kept))) if kept else (math.nan, math.nan)
    return Result(error, deviation, size[:RELEVANT].mean(), size[RELEVANT:].mean(), seeds - len(good))


def defaults(seeds: int) -> None:
    """Print how each rule does with the defaults of its constructor."""
    print(f"{'rule':16}{'tracking':>10}{'failures':>10}" + "".join(f"{n:>8} inputs" for n in REGRESSIONS))
    rules = [getattr(rlgames.optim, name) for name in rlgames.optim.__all__]
    for cls in sorted((c for c in rules if issubclass(c, StepSize) and c is not StepSize), key=lambda c: c.__name__):
        r = measure(cls, {}, seeds)
        worst = [
            max(
                compile_function(regress)(*prepare(cls, {}, n)[1:], 100 * n, np.random.default_rng(s))
                for s in range(20)
            )
            for n in REGRESSIONS
        ]
        print(f"{cls.__name__:16}{r.error:10.2f}{r.failures:10}" + "".join(f"{e:15.1e}" for e in worst), flush=True)


def plot(rows: list[tuple[Any, ...]], path: str) -> None:
    """Draw the error over the parameter: rules with a step size on the left, rules that learn it on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for rule in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == rule and row[7] == 0]  # without failures
        axis = left if SETTINGS[rule][1] == "lr" else right
        axis.errorbar([r[2] for r in mine], [r[3] for r in mine], [r[4] for r in mine], marker=".", label=rule)
    for axis, label in ((left, "step size (lr)"), (right, "meta step size (theta, mu)")):
        axis.set(xscale="log", xlabel=label, ylim=(0, RELEVANT))
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(fontsize=8)
    left.set_ylabel("mean squared error")
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default=",".join(SETTINGS), help="separated by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=5, help="random streams per setting (default 5)")
    parser.add_argument("--defaults", action="store_true", help="measure the constructor defaults of all rules")
    parser.add_argument("--csv", help="write the table to this file too")
    parser.add_argument("--plot", help="draw it into this file, such as tracking.png")
    args = parser.parse_args()
    if args.defaults:
        defaults(args.seeds)
        return
    unknown = set(args.rules.split(",")) - set(SETTINGS)
    if unknown:
        parser.error(f"--rules: no {', '.join(sorted(unknown))} here; allowed are {', '.join(SETTINGS)}")
    print(f"{'rule':14}{'setting':>16}{'error':>9}{'+-':>7}{'relevant':>10}{'irrelevant':>12}{'failures':>10}")
    rows: list[tuple[Any, ...]] = []
    for rule in args.rules.split(","):
        cls, key, fixed, values = SETTINGS[rule]
        for value in values:
            r = measure(cls, fixed | {key: value}, args.seeds)
            rows.append((rule, key, value, *r, args.seeds))
            print(
                f"{rule:14}{f'{key} {value:g}':>16}{r.error:9.3f}{r.deviation:7.3f}"
                f"{r.relevant:10.4f}{r.irrelevant:12.5f}{r.failures:6} of {args.seeds}",
                flush=True,
            )
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
