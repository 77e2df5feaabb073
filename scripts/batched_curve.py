"""How fast does a batch learn? Success over games and seconds, batch by batch: ``python scripts/batched_curve.py``.

Each batch size learns from scratch until its success rate (running median of three evaluations) reaches the target or
its time is up. Every evaluation writes its row at once, so nothing is lost when the time on a machine ends. It uses the
published protocol: 200 matches as first player against the perfect player. ``--plot`` draws the rows instead (extra
"plots").
"""

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from rlgames.build import load
from rlgames.players import GreedyPlayer
from rlgames.training.assemble import assemble, build_evaluation

COLUMNS = ("batch", "rule", "words", "games", "moves", "seconds", "cpu_seconds", "success", "low", "high")


def learn(batch: int, args: argparse.Namespace, writer, file) -> None:
    """Measure one batch size, from scratch."""
    cfg = load(
        "engine=batched",
        f"batch={batch}",
        f"optimizer={args.rule}",
        f"device={args.device}",
        "evaluation=published",
        *args.words,
    )
    parts = assemble(cfg)
    evaluation = build_evaluation(cfg, parts)
    rng, lr = np.random.default_rng(cfg.seed), float(parts.optimizer.defaults["lr"])
    games = moves = 0
    seconds = cpu = 0.0
    rates: list[float] = []
    clock = time.process_time if args.cpu else time.perf_counter
    while (cpu if args.cpu else seconds) < args.seconds:
        begin, cpu_begin, until = time.perf_counter(), time.process_time(), clock() + args.every
        while clock() < until:
            episodes = parts.learner.train(parts.agent, games, max(10, batch), lr, rng)
            games, moves = games + episodes.games, moves + episodes.plies
        seconds, cpu = seconds + time.perf_counter() - begin, cpu + time.process_time() - cpu_begin
        parts.agent.store()
        score = evaluation.scores(GreedyPlayer(parts.agent), np.random.default_rng([cfg.seed, games]))["first"]
        low, high = score.interval
        words = " ".join(args.words)
        row = (
            batch,
            args.rule,
            words,
            games,
            moves,
            f"{seconds:.1f}",
            f"{cpu:.1f}",
            score.success,
            f"{low:.3f}",
            f"{high:.3f}",
        )
        writer.writerow(row)
        file.flush()
        print(*row, flush=True)
        rates.append(score.success)
        if len(rates) >= 3 and statistics.median(rates[-3:]) >= args.target:
            break


def plot(file: str, picture: str) -> None:
    """Draw success over games and over seconds, with a line for each batch size in ``file``."""
    from matplotlib import pyplot as plt

    with open(file, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axis, column, label in zip(axes, ("games", "cpu_seconds"), ("games", "CPU-seconds of learning"), strict=True):
        for batch in sorted({int(row["batch"]) for row in rows}):
            mine = [row for row in rows if int(row["batch"]) == batch]
            numbers = [(float(row[column]), float(row["success"])) for row in mine]
            axis.plot(*zip((0, 0), *numbers, strict=True), marker=".", label=f"batch {batch:,}")
        axis.set(xlabel=label, ylim=(0, 1))
    axes[0].set_ylabel("success rate")
    axes[0].legend()
    figure.savefig(picture, dpi=120)


def main() -> None:
    """Measure one batch size after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="8192", help="batch sizes, separated by commas (default 8192)")
    parser.add_argument("--rule", default="tcl_exp", help="name of a file in conf/optimizer (default tcl_exp)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--target", type=float, default=0.8, help="success rate that ends a batch (default 0.8)")
    parser.add_argument("--seconds", type=float, default=480, help="of learning per batch size (default 480)")
    parser.add_argument("--every", type=float, default=20, help="seconds of learning between evaluations (default 20)")
    parser.add_argument("--cpu", action="store_true", help="count CPU-seconds, for a processor shared with others")
    parser.add_argument("--csv", default="batched_curve.csv", help="file to append the rows to")
    parser.add_argument("words", nargs="*", help="as for rlgames.train, such as batched.combine=sum")
    parser.add_argument("--plot", metavar="PNG", help="draw the rows of --csv and measure nothing")
    args = parser.parse_args()
    if args.plot:
        plot(args.csv, args.plot)
        return
    new = not Path(args.csv).exists()
    with open(args.csv, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for batch in map(int, args.batches.split(",")):
            learn(batch, args, writer, file)


if __name__ == "__main__":
    sys.exit(main())
