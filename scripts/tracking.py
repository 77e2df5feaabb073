"""Sutton's tracking task (1992): 20 inputs, 5 of them relevant with weights of ±1, one of which flips every 20 steps.

A rule that learns step sizes finds out which inputs matter. Prints, for each rule and meta parameter, the mean squared
error after 20,000 steps of warm-up over the next 10,000 (predicting 0 has 5), and the learned step sizes.

    python scripts/tracking.py              # the table of the literature, 5 seeds, half a minute
    python scripts/tracking.py idbd 30      # one rule, 30 seeds

Expected: TDL (LMS) at best 3.36, IDBD 1.55 at θ = 0.009, K1 1.03 at θ = 0.02, Autostep 2.09 at μ = 0.05.
"""

import math
import sys
from typing import Any, NamedTuple

import numpy as np
import torch

from rlgames.agents.fused import update
from rlgames.compiled import compile_function
from rlgames.optim import IDBD, K1, TDL, Autostep, StepSize
from rlgames.traces import NoMemory

INPUTS, RELEVANT, FLIP = 20, 5, 20
SETTINGS: dict[str, tuple[type[StepSize], str, dict[str, float], list[float]]] = {
    "tdl": (TDL, "lr", {}, [0.005, 0.01, 0.02, 0.03, 0.035, 0.04, 0.05, 0.06]),
    "idbd": (IDBD, "theta", {"lr": 0.05, "guards": False}, [1e-4, 3e-4, 1e-3, 3e-3, 5e-3, 7e-3, 9e-3, 0.01, 0.015]),
    "autostep": (Autostep, "mu", {"lr": 0.05}, [1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1]),
    "k1": (K1, "theta", {"lr": 0.05, "guards": False}, [1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1]),
}


class Result(NamedTuple):
    """Mean over the seeds that did not fail, its standard error, step sizes of both kinds of inputs, failed seeds."""

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


def measure(
    cls: type[StepSize], hyper: dict[str, float], seeds: int, warm_up: int = 20_000, steps: int = 10_000
) -> Result:
    """Run the task for ``seeds`` random streams."""
    errors, sizes = [], []
    for seed in range(seeds):
        weight = torch.nn.Parameter(torch.zeros(INPUTS, dtype=torch.float64))
        optimizer = cls([weight], **hyper)  # type: ignore[call-arg]
        p = optimizer.hyper(optimizer.param_groups[0])
        state = optimizer.state_of(weight, optimizer.param_groups[0])
        lanes = np.stack([weight.detach().numpy(), *(tensor.numpy() for tensor in state)])
        inputs = NoMemory(np.arange(INPUTS, dtype=np.int32), np.zeros(INPUTS), np.zeros(INPUTS), True, True)
        rng = np.random.default_rng(seed)
        errors.append(compile_function(track)(p, lanes, inputs, warm_up, steps, rng))
        if state:
            sizes.append(optimizer.step_size(p, type(state)(*map(torch.from_numpy, lanes[1:]))).numpy())
    good = [k for k, error in enumerate(errors) if math.isfinite(error) and error < RELEVANT]
    size = np.mean([sizes[k] for k in good], 0) if sizes and good else np.full(INPUTS, math.nan)
    kept = [errors[k] for k in good]
    error, deviation = (np.mean(kept), np.std(kept) / math.sqrt(len(kept))) if kept else (math.nan, math.nan)
    return Result(error, deviation, size[:RELEVANT].mean(), size[RELEVANT:].mean(), seeds - len(good))


def main(names: list[str], seeds: int) -> None:
    print(f"{'rule':10}{'setting':>16}{'error':>9}{'+-':>7}{'relevant':>10}{'irrelevant':>12}{'failures':>10}")
    for name in names:
        cls, key, fixed, values = SETTINGS[name]
        for value in values:
            r = measure(cls, fixed | {key: value}, seeds)
            print(
                f"{name:10}{f'{key} {value:g}':>16}{r.error:9.3f}{r.deviation:7.3f}"
                f"{r.relevant:10.4f}{r.irrelevant:12.5f}{r.failures:6} of {seeds}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:2] or list(SETTINGS), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
