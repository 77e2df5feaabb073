"""Tic-tac-toe by Q-learning, one change at a time: ``python scripts/tictactoe_ablations.py seeds=20 [word=value ...]``.

Without further words it prints the table of docs/tictactoe.md; with words, the row of that one configuration.
"""

import sys
import time

import numpy as np

from rlgames.build import build, load, ready
from rlgames.evaluation.exhaustive import Exhaustive
from rlgames.games.tictactoe import TicTacToe
from rlgames.players import GreedyPlayer

ABLATIONS = {
    "as in the document": [],
    "no limit at the end": ["learner.limit=false"],
    "a loss counts 0": ["learner.loss=0"],
    "a draw counts +0.5": ["learner.draw=0.5"],
    "alpha 0.1": ["learner.alpha=0.1"],
    "learns against random moves": ["learner.self_play=false"],
    "start values 0": ["learner.init=0"],
    "temperature from 10": ["learner.temperature_start=10"],
    "temperature from 100": ["learner.temperature_start=100"],
    "symmetric table": ["learner.symmetric=true"],
}
FIGURES = ("losses_first", "losses_second", "optimal", "random_wins_first", "random_wins_second")
HEAD = "| configuration | lost lines, first | second | seeds without | best moves | wins, first | second | games/s |"


def measure(evaluation, words, seeds):
    """The figures of ``FIGURES`` per seed, ``[seeds, 5]``, and the games per CPU-second."""
    rows, games, seconds = [], 0, 0.0
    cfg = ready(load("game=tictactoe", "learner=q", *words), words)
    for cfg.seed in range(seeds):
        learner = build(cfg, "learner", game=evaluation.game)
        agent, rng = learner.agent("fused"), np.random.default_rng(cfg.seed)
        learner.train(agent, 0, 0, 1.0, rng)  # compiles
        begin = time.process_time()
        learner.train(agent, 0, cfg.games, 1.0, rng)
        games, seconds = games + cfg.games, seconds + time.process_time() - begin
        row = evaluation.records(GreedyPlayer(agent), rng)
        rows.append([row[name] for name in FIGURES])
    return np.array(rows), games / seconds


def line(name, rows, speed):
    """A row of the table."""
    lost = (rows[:, 0] + rows[:, 1] > 0).sum()
    first, second, optimal, random_first, random_second = rows.mean(axis=0)
    return (
        f"| {name} | {first:.1f} | {second:.1f} | {len(rows) - lost} of {len(rows)} | {100 * optimal:.1f} % |"
        f" {100 * random_first:.1f} % | {100 * random_second:.1f} % | {speed:,.0f} |"
    )


def main():
    seeds = int(next((word.split("=")[1] for word in sys.argv[1:] if word.startswith("seeds=")), 20))
    words = [word for word in sys.argv[1:] if not word.startswith("seeds=")]
    evaluation = Exhaustive(TicTacToe())
    print(HEAD, "|" + "---|" * 8, sep="\n")
    for name, change in ({" ".join(words): words} if words else ABLATIONS).items():
        print(line(name, *measure(evaluation, change, seeds)), flush=True)


if __name__ == "__main__":
    main()
