"""The engine as people test engines: games against the clock, by the chess library's engine interface."""

import gc
import os
import random
import subprocess
import sys
import time

import pytest

from tests.support import PROJECT, few

chess = pytest.importorskip("chess")
engines = pytest.importorskip("chess.engine")

COMMAND = [sys.executable, "-m", "rlgames.uci"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}


@pytest.fixture(scope="module")
def pair():
    players = [engines.SimpleEngine.popen_uci(COMMAND, timeout=200, env=ENVIRONMENT) for _ in range(2)]
    for player in players:
        player.ping()  # compiles
    gc.collect()
    gc.freeze()  # the clocks of the players run while garbage is looked for in this process
    yield players
    for player in players:
        player.quit()
    gc.unfreeze()


def opening(seed):
    rng, board = random.Random(seed), chess.Board()
    for _ in range(4):
        board.push(rng.choice(sorted(board.legal_moves, key=str)))
    return board


def play(players, board, seconds, increment):
    """Play to the end by the rules; the time that was left on the worst clock.

    The library raises an error for an illegal move, an engine that ends, and one that does not speak UCI.
    """
    clocks, least, game = [seconds, seconds], seconds, object()
    while not board.is_game_over(claim_draw=True) and board.ply() < 400:
        white, black = clocks
        limit = engines.Limit(white_clock=max(white, 0.0), black_clock=max(black, 0.0), white_inc=increment, black_inc=increment)  # fmt: skip # noqa: E501
        began, side = time.monotonic(), 0 if board.turn else 1
        answer = players[side].play(board, limit, game=game)
        clocks[side] -= time.monotonic() - began
        least = min(least, clocks[side])
        clocks[side] += increment
        assert answer.ponder is None
        board.push(answer.move)
    return least


@pytest.mark.parametrize("seed", few(range(3)))
def test_games_against_the_clock(pair, seed):
    """Beside other tests a process may have to wait for its turn, so that time may be short by five seconds."""
    board = opening(seed)
    assert play(pair, board, 0.2, 0.01) > -5
    assert board.ply() > 10


@pytest.mark.patience
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("games", "seconds", "increment"), [(4, 10.0, 0.1), (200, 0.2, 0.01)])
def test_no_game_is_lost_on_time(pair, games, seconds, increment):
    left = [play([pair[k % 2], pair[1 - k % 2]], opening(k // 2), seconds, increment) for k in range(games)]
    assert min(left) > 0


@pytest.mark.patience
def test_the_first_move_comes_soon_after_the_start(pair):
    """Within 3 seconds on an idle machine, when the machine code is on the disk; with a margin of three."""
    began = time.monotonic()
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as engine:
        times = {}
        for line, answer in (("uci", "uciok"), ("isready", "readyok"), ("go wtime 1000 btime 1000", "bestmove")):
            engine.stdin.write(line + "\n")
            engine.stdin.flush()
            assert any(said.startswith(answer) for said in iter(engine.stdout.readline, ""))
            times[answer] = time.monotonic() - began
        engine.stdin.write("quit\n")
        engine.stdin.flush()
        assert engine.wait(5) == 0
    assert times["bestmove"] < 9
    assert times["uciok"] < 3
    assert times["bestmove"] - times["readyok"] < 0.5


@pytest.mark.patience
@pytest.mark.parametrize("words", ["infinite", "depth 40"])
def test_it_answers_while_it_thinks(words):
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as engine:

        def until(answer, *lines):
            engine.stdin.write("".join(f"{line}\n" for line in lines))
            engine.stdin.flush()
            began = time.monotonic()
            assert any(said.startswith(answer) for said in iter(engine.stdout.readline, ""))
            return time.monotonic() - began

        until("readyok", "isready")
        until("info depth 5", "setoption name MultiPV value 3", f"go {words}")
        assert until("readyok", "isready") < 1
        assert until("bestmove", "stop") < 1
        engine.stdin.write("go infinite\nquit\n")
        engine.stdin.flush()
        assert engine.wait(5) == 0
