"""Real processes and real signals: within 5 seconds they end with a checkpoint, one sentence and the usual status.

Run alone, by ``python -m pytest -m patience -n 0``: promises about time are tested with a margin of three.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from rlgames.interrupts import SIGNALS, name_of
from tests.support import QUICK, last_checkpoint, result

pytestmark = [pytest.mark.patience, pytest.mark.skipif(os.name == "nt", reason="signals")]
WITHIN = 3 * 5  # seconds
FUSED = ["game=tictactoe", "engine=fused", "opponent=random", "evaluation.second=0"]
CHESS = ["+experiment=chess_td_leaf", "learner.self_play.nodes=30", "evaluation.nodes=30", "opponent.nodes=30"]
BUSY = {  # words, and what is there when it is time
    "playing": ([*FUSED, "games=100_000_000", "eval_every=50_000_000", "checkpoint_minutes=0.01"], "checkpoints/*.pt"),
    "evaluating": ([*FUSED, "games=400", "eval_every=200", "evaluation.first=5_000_000"], None),
    "evaluating against a search": (
        [*FUSED, "games=400", "eval_every=200", "opponent=minimax", "evaluation.first=5_000_000"],
        None,
    ),
    "evaluating by a search": (
        [*FUSED, "games=400", "eval_every=200", "lookahead=9", "evaluation.first=5_000_000"],
        None,
    ),
    "evaluating chess": ([*CHESS, "games=8", "eval_every=8", "evaluation.games=4000"], "games.pgn"),
    "playing chess": ([*CHESS, "games=80_000", "eval_every=80_000", "learner.update_every=8"], "games.pgn"),
    "playing chess in two processes": (
        [*CHESS, "games=80_000", "eval_every=80_000", "learner.self_play.processes=2"],
        "games.pgn",
    ),
}


def start(folder, *words, program="train"):
    command = [sys.executable, "-m", f"rlgames.{program}", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(folder, pattern):
    end = time.monotonic() + 240
    while not any(folder.glob(pattern)):
        assert time.monotonic() < end, f"no {pattern}"
        time.sleep(0.1)


@pytest.mark.parametrize("signum", SIGNALS, ids=name_of)
@pytest.mark.parametrize("what", BUSY)
def test_a_signal_leaves_a_checkpoint_in_time(tmp_path, what, signum):
    words, sign = BUSY[what]
    for seconds in (5, 25, 100):  # until the first games are played: nobody says when code is compiled
        process = start(tmp_path, *words, "run_dir=run")
        wait_for(tmp_path / "run", sign or "events*")
        time.sleep(seconds)
        process.send_signal(signum)
        began = time.monotonic()
        out, err = process.communicate(timeout=100)
        took = time.monotonic() - began
        if err != "stopped\n":
            break
    assert took < WITHIN
    assert (process.returncode, err) == (128 + signum, "")
    assert out.splitlines()[-1].startswith(f"stopped by {name_of(signum)} after ")
    games = last_checkpoint(tmp_path / "run")["games"]
    assert (result(tmp_path / "run")["status"], games > 0) == ("interrupted", True)


@pytest.mark.parametrize("after", [0.05, 0.2, 0.5, 1, 2, 4])
@pytest.mark.parametrize("program", ["train", "evaluate", "tournament", "uci"])
def test_a_signal_in_the_first_seconds_is_one_word(tmp_path, program, after):
    long = {"train": QUICK, "tournament": ["random", "minimax", "game=connect4", "matches=100000"]}
    command = [sys.executable, "-m", f"rlgames.{program}", *long.get(program, [])]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    time.sleep(after)
    if process.poll() is not None:
        pytest.skip("it was quicker")
    process.send_signal(signal.SIGTERM)  # before Python itself is there this is its end too
    process.wait(timeout=WITHIN)  # with its input still open
    _, err = process.communicate()
    assert (process.returncode, err) in ((143, "stopped\n"), (-signal.SIGTERM, ""))


def test_a_reader_that_goes_away_leaves_a_checkpoint(tmp_path):
    command = f'"{sys.executable}" -m rlgames.train {" ".join(QUICK)} games=100000 eval_every=100 run_dir=run | head -1'
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, "")
    assert last_checkpoint(tmp_path / "run")["games"] > 0
