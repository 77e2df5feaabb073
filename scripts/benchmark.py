"""How fast is learning? Games and moves per CPU-second, rule by rule: ``python scripts/benchmark.py``.

The rules take turns of a thousand games each, from scratch to ``--games`` games. So all of them see the same ups and
downs of the machine, and the ratios to the first rule hold even where the figures do not. The best turn shows what an
idle machine does.

``--engine batched`` (with ``--device cuda``) measures batch sizes instead: games and moves per second, memory, and each
phase's share of a step (``scripts/batched_speed.py``).

``--against REVISION`` measures the ratio of this tree's speed to that of another revision (``scripts/against.py``).
"""

import argparse
import csv
import sys
import time
from typing import Any

import against
import numpy as np
from batched_speed import BATCHES
from batched_speed import main as batched
from rich.console import Console
from rich.table import Table

from rlgames.build import load
from rlgames.training.assemble import assemble

RULES = "tdl,tcl_exp"
COLUMNS = ("rule", "games_per_cpu_second", "moves_per_cpu_second", "ratio", "best_turn", "moves_per_game")


class Runner:
    """One rule, learning from scratch; ``against.py`` also uses the runners of older revisions."""

    def __init__(self, rule: str, words: list[str]) -> None:
        cfg = load(f"optimizer={rule}", *words)
        self.rule, self.parts = rule, assemble(cfg)
        self.rng, self.lr = np.random.default_rng(cfg.seed), float(self.parts.optimizer.defaults["lr"])
        self.games, self.moves, self.seconds, self.best = 0, 0, 0.0, 0.0
        self._learn(0)  # compiles

    def _learn(self, games: int) -> Any:
        return self.parts.learner.train(self.parts.agent, self.games, games, self.lr, self.rng)

    def turn(self, games: int) -> None:
        """Learn from ``games`` games and time it."""
        begin = time.process_time()
        episodes = self._learn(games)
        seconds = time.process_time() - begin
        self.seconds += seconds
        self.games += episodes.games
        self.moves += episodes.plies
        self.best = max(self.best, games / seconds)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="compare with this revision, such as main or HEAD")
    parser.add_argument(
        "--rules", help=f"files of conf/optimizer, separated by commas ({RULES}; with --against {against.RULES})"
    )
    parser.add_argument("--games", type=int, default=100_000, help="games per rule (default 100000)")
    parser.add_argument("--turn", type=int, default=1000, help="games per turn (default 1000)")
    parser.add_argument("--csv", help="also write the table to this file")
    parser.add_argument("words", nargs="*", help="as for rlgames.train, such as features.tuples=FILE or engine=eager")
    parser.add_argument("--engine", choices=("single", "batched"), default="single", help="one game at a time, or many")
    parser.add_argument("--device", default="cpu", help="for --engine batched")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)), help="for --engine batched")
    args = parser.parse_args()
    rules = (args.rules or (against.RULES if args.against else RULES)).split(",")
    turns = range(0, args.games, args.turn)
    if args.against:
        if args.engine == "batched":
            parser.error("--against compares --engine single only")
        against.main(args.against, rules, args.turn, len(turns), args.words, args.csv)
        return
    if args.engine == "batched":
        batched(rules, [int(n) for n in args.batches.split(",")], args.device, args.words, args.csv)
        return
    runners = [Runner(rule, args.words) for rule in rules]
    for _ in turns:
        for runner in runners:
            runner.turn(args.turn)
    base = runners[0].games / runners[0].seconds
    rows = [
        (r.rule, r.games / r.seconds, r.moves / r.seconds, r.games / r.seconds / base, r.best, r.moves / r.games)
        for r in runners
    ]
    table = Table(*COLUMNS)
    for rule, games, moves, ratio, best, length in rows:
        table.add_row(rule, f"{games:,.0f}", f"{moves:,.0f}", f"{ratio:.2f}", f"{best:,.0f}", f"{length:.1f}")
    Console().print(table)
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])


if __name__ == "__main__":
    sys.exit(main())
