"""Signals: handlers set a number, loops ask for it, and a program with nothing to save ends at once."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from rlgames import interrupts
from rlgames.evaluation.matches import Evaluation
from rlgames.games.connect4 import Connect4
from rlgames.interrupts import SIGNALS, Interrupted, Interruptible, answer, ask, asked, flag
from rlgames.players import Minimax, RandomPlayer

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows cannot send signals to a process")


def wait_for(signum):
    end = time.monotonic() + 5
    while not asked():
        assert time.monotonic() < end, f"{signum} was not heard"
        time.sleep(0.001)


@pytest.mark.parametrize("signum", SIGNALS, ids=interrupts.name_of)
def test_a_signal_only_asks(signum):
    before = signal.getsignal(signum)
    with Interruptible():
        ask()
        os.kill(os.getpid(), signum)
        wait_for(signum)
        assert flag().tolist() == [signum]
        with pytest.raises(Interrupted) as stopped:
            ask()
        assert stopped.value.signum == signum
        os.kill(os.getpid(), signum)  # in a notebook, which must not end
    ask()
    assert signal.getsignal(signum) is before


def test_other_signals_do_not_ask():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with Interruptible():
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.05)
        ask()
    signal.signal(signal.SIGUSR1, before)


def test_nohup_is_obeyed():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interruptible():
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.05)
        ask()
    signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone():
    before = signal.getsignal(signal.SIGTERM)

    def work():
        with Interruptible():
            seen.append(signal.getsignal(signal.SIGTERM))

    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_compiled_search_ends_when_a_signal_asks():
    """By itself this search would take years."""
    game = Connect4()
    Minimax(game, 2).solve(game.board)  # compiles
    with Interruptible():
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(Interrupted):
            Minimax(game, 42).solve(game.board)


def test_an_evaluation_asks_between_moves():
    game = Connect4()

    class Signalling(RandomPlayer):
        moves = 0

        def move(self, board, rng):
            self.moves += 1
            if self.moves == 20:
                os.kill(os.getpid(), signal.SIGTERM)
                wait_for(signal.SIGTERM)
            return super().move(board, rng)

    player = Signalling(game)
    with Interruptible(), pytest.raises(Interrupted):
        Evaluation(game, RandomPlayer(game), 1000, 0).records(player, np.random.default_rng(0))
    assert player.moves == 20


def test_waiting_asks():
    with Interruptible():
        assert answer(lambda: 3) == 3
        with pytest.raises(KeyError):
            answer(lambda: {}[1])
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP)).start()
        began = time.monotonic()
        with pytest.raises(Interrupted):
            answer(lambda: time.sleep(60))
        assert time.monotonic() - began < 15


def program(code, **options):
    text = f"import os, signal, sys, time\nfrom rlgames.interrupts import Interruptible\n{code}"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)


def test_a_program_with_nothing_to_save_ends_at_once():
    done = program("Interruptible(True, 'so long').__enter__()\nos.kill(os.getpid(), 15)\ntime.sleep(60)")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "so long\n")


def test_the_second_signal_ends_a_program_at_once():
    code = """
with Interruptible(True), Interruptible() as signals:
    signals.at_once = False
    os.kill(os.getpid(), 2)
    time.sleep(0.3)
    print("still here", flush=True)
    os.kill(os.getpid(), 2)
    time.sleep(60)
"""
    done = program(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "still here\n", "stopped\n")


def test_a_forked_process_has_no_thread_that_listens_and_ends_by_default():
    code = """
Interruptible(True).__enter__()
child = os.fork()
if not child:
    time.sleep(60)
time.sleep(0.1)
os.kill(child, 15)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
"""
    done = program(code)
    assert (done.returncode, done.stdout) == (0, "15\n")


@pytest.mark.parametrize("signum", SIGNALS, ids=interrupts.name_of)
def test_a_program_listens_before_it_imports(signum, tmp_path):
    """A module that takes long stands for hydra and torch."""
    (tmp_path / "hydra.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "rlgames.train"]
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, **pipes)
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signum)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signum, "stopped\n")


def test_an_interruption_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(Interrupted(15))).signum == 15
