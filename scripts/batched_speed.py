"""Speed of ``engine=batched`` per batch size; called by ``scripts/benchmark.py --engine batched``."""

import csv
import resource
import time
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from rlgames.build import load
from rlgames.training.assemble import assemble

BATCHES = tuple(2**k for k in range(8, 18))  # 256 to 131,072
PHASES = ("rows", "sums", "look", "learn", "rest")  # rest: game rules, choice of the move, targets
COLUMNS = ("rule", "batch", "games_per_second", "moves_per_second", "moves_per_cpu_second", "memory_mib", *PHASES)
SECONDS = 4.0  # per batch and measurement


def now(device: torch.device) -> tuple[float, float]:
    """Seconds and CPU-seconds, once the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter(), time.process_time()


def steps(parts: Any, epsilon: float, most: int, seconds: float) -> int:
    """Make steps for ``seconds``, at least one and at most ``most``; return their number."""
    begin = time.perf_counter()
    for n in range(1, most + 1):
        parts.learner.step(parts.agent, epsilon)
        if n % 4 == 0 and parts.agent.device.type == "cuda":
            torch.cuda.synchronize()  # else the queue grows without end
        if time.perf_counter() - begin > seconds:
            break
    return n


def phases(parts: Any, epsilon: float) -> dict[str, float]:
    """The share of each phase in a step, measured by waiting for the device after each."""
    agent, spent = parts.agent, defaultdict(float)
    kind = 0 if agent.device.type == "cuda" else 1  # CPU-seconds where others may share the processor

    def timed(name: str, method: Any) -> Any:
        def call(*args: Any) -> Any:
            begin = now(agent.device)[kind]
            result = method(*args)
            spent[name] += now(agent.device)[kind] - begin
            return result

        return call

    places = {"rows": agent.features, "sums": agent, "look": agent, "learn": agent}
    for name, place in places.items():
        setattr(place, name, timed(name, getattr(place, name)))
    begin = now(agent.device)[kind]
    steps(parts, epsilon, 20, SECONDS / 2)
    total = now(agent.device)[kind] - begin
    for name, place in places.items():
        delattr(place, name)
    return {name: spent[name] / total for name in PHASES[:-1]} | {"rest": 1 - sum(spent.values()) / total}


def measure(rule: str, batch: int, device: str, words: list[str]) -> tuple[Any, ...]:
    """Measure a row of the table."""
    cfg = load(f"optimizer={rule}", "engine=batched", f"device={device}", f"batch={batch}", *words)
    parts = assemble(cfg)
    where, epsilon = parts.agent.device, 0.1
    cuda = where.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    parts.learner.train(parts.agent, 0, 0, float(parts.optimizer.defaults["lr"]), np.random.default_rng(0))
    steps(parts, epsilon, 40, SECONDS / 2)  # games drift apart, memory is allocated
    before = parts.learner.played().games
    (begin, cpu_begin), n = now(where), steps(parts, epsilon, 10**9, SECONDS)
    end, cpu_end = now(where)
    games = (parts.learner.played().games - before) / (end - begin)
    moves = n * batch
    peak = torch.cuda.max_memory_allocated() if cuda else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shares = phases(parts, epsilon)
    speeds = games, moves / (end - begin), moves / (cpu_end - cpu_begin)
    return rule, batch, *(round(x) for x in speeds), peak // 2**20, *(round(shares[name], 3) for name in PHASES)


def main(rules: list[str], batches: list[int], device: str, words: list[str], file: str | None) -> None:
    """Print each row as soon as it is known; then print and write the table."""
    table, rows = Table(*COLUMNS), []
    for rule in rules:
        for batch in batches:
            try:
                rows.append(measure(rule, batch, device, words))
            except ValueError as error:  # does not fit
                print(error, flush=True)
                break
            print(*rows[-1], flush=True)
            table.add_row(*(f"{x:,}" if isinstance(x, int) else str(x) for x in rows[-1]))
            if file:
                with open(file, "w", newline="", encoding="utf-8") as stream:
                    csv.writer(stream).writerows([COLUMNS, *rows])
    Console(width=160).print(table)
