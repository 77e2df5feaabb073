"""Speed of chess on one core, in CPU-seconds: moves made, positions evaluated, positions searched.

python scripts/benchmark_chess.py
"""

import time

import numpy as np

from rlgames.chess.board import MOST_MOVES, START, Board, checkers, generate, play
from rlgames.chess.evaluation import SIZE, start_values
from rlgames.chess.search import Limits, Search
from rlgames.chess.search.alphabeta import static
from rlgames.compiled import compile_function

POSITIONS = [
    START.fen(),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "2rr3k/pp3pp1/1nnqbN1p/3pN3/2pP4/2P3Q1/PPB4P/R4RK1 w - - 0 1",
]


@compile_function
def walk(b, depth):
    """Count the moves made on all paths of ``depth`` moves."""
    if depth == 0:
        return 0
    moves = np.empty(MOST_MOVES, np.int64)
    n = total = generate(b, checkers(b), moves, False)
    for k in range(n):
        total += walk(play(b, moves[k]), depth - 1)
    return total


@compile_function
def evaluations(memory, b, n):
    """Sum ``n`` evaluations of the positions after the moves of ``b``."""
    s, total = memory[0], 0
    moves = np.empty(MOST_MOVES, np.int64)
    count = generate(b, checkers(b), moves, False)
    for k in range(n):
        total += static(s, play(b, moves[k % count]))
    return total


def measure(name, unit, run):
    """Print how many ``unit`` per CPU-second ``run`` does."""
    run()
    start = time.process_time()
    done = sum(run() for _ in range(3))
    print(f"{name:40} {done / (time.process_time() - start) / 1e6:6.2f} M {unit} per CPU-second")


def main():
    rng = np.random.default_rng(0)
    coefficients = start_values()
    coefficients[5:] += 0.05 * rng.standard_normal(SIZE - 5).astype(np.float32)
    search = Search(coefficients)
    boards = [Board.from_fen(fen) for fen in POSITIONS]
    measure("rules", "moves", lambda: sum(walk(board, 4 if board is boards[3] else 3) for board in boards))

    def evaluate_all(n=100_000):
        for board in boards:
            evaluations(search.state.memory, board, n)
        return n * len(boards)

    measure("evaluation", "positions", evaluate_all)
    for board in boards:

        def run(board=board):
            search.clear()
            return search.run(board, limits=Limits(nodes=300_000)).nodes

        measure(f"search of {board.fen()[:30]}", "nodes", run)


if __name__ == "__main__":
    main()
