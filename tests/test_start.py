"""What a process needs to start: imports that it can do without, and systems and packages that lack something.

Each test is a process of its own, in which something is taken away before the package is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import PureWindowsPath

import pytest
import torch

from rlgames.optim.undecorated import Optimizer, _undecorated
from rlgames.training import records
from tests.support import PROJECT, QUICK, last_checkpoint

MODULES = """
import importlib, pkgutil, rlgames
for module in pkgutil.walk_packages(rlgames.__path__, "rlgames."):
    if module.name not in LEFT_OUT:
        importlib.import_module(module.name)
"""

RUNS = """
import json, sys
from rlgames.build import load
from rlgames.train import train

def run(words):
    try:
        train(load(*words), words)
    except ValueError as error:
        return str(error)

print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
print(json.dumps(sorted(sys.modules)))
"""

NO_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
TALKS_TO_NUMBA = {  # imported by rlgames.compiled if there is numba
    f"rlgames.compiled.{name}" for name in ("bridge", "cache", "instructions", "torch_names", "tuple_code", "views")
}

# What Windows or macOS lacks, as far as Python's documentation tells.
NOT_EVERYWHERE = """
import os, signal, sys
for name in ("fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "setsid", "sysconf", "uname", "nice",
             "sched_getaffinity", "sched_setaffinity", "register_at_fork", "posix_spawn", "getloadavg"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGCHLD", "SIGTSTP", "SIGCONT", "pthread_sigmask",
             "alarm", "setitimer", "sigwait", "SIG_BLOCK", "SIG_SETMASK"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("resource", "fcntl", "termios", "tty", "pty", "pwd", "grp", "readline", "_posixsubprocess"):
    sys.modules[name] = None
"""
# Other packages choose by the platform, which stays: they are imported before all this.
OTHERS = """
import asyncio, multiprocessing, subprocess, concurrent.futures.process
import torch, numba, filelock, hydra, chess.engine, PIL.Image, rich.progress, torch.utils.tensorboard
"""


def python(code, *args, cwd=None):
    """What a process that runs ``code`` prints."""
    env = os.environ | {"PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs(code, words, cwd):
    """Train with each of ``words`` in one process: the errors, and the modules that are there at the end."""
    *_, errors, modules = python(code + RUNS, json.dumps(words), cwd=cwd).splitlines()
    return json.loads(errors), json.loads(modules)


def assert_equal(a, b):
    for name, value in a.items():
        if isinstance(value, dict):
            assert_equal(value, b[name])
        elif isinstance(value, torch.Tensor):
            assert torch.equal(value, b[name]), name


@pytest.mark.parametrize("engine", ["eager", "fused"])
def test_training_and_resuming_need_neither_the_compiler_of_torch_nor_bars(tmp_path, engine):
    words = [*QUICK, f"engine={engine}", "games=4"]
    again = ["resume=run", "games=8"]
    errors, modules = runs("", [[*words, "run_dir=run"], again], tmp_path)
    assert errors == [None, None]
    assert last_checkpoint(tmp_path / "run")["games"] == 8
    assert not {"torch._dynamo", "sympy", "rich"} & set(modules)


def test_a_chess_engine_needs_no_torch():
    modules = python("import sys, rlgames.chess.thinker, rlgames.uci; print(*sys.modules)").split()
    assert {"numba", "torch"} & set(modules) == {"numba"}


def test_methods_that_torch_does_not_decorate_stay():
    def method():
        pass

    assert _undecorated(method) is method
    for name in vars(Optimizer).keys() & vars(torch.optim.Optimizer).keys() - {"__module__", "__doc__"}:
        assert getattr(Optimizer, name).__qualname__ == f"Optimizer.{name}"


@pytest.fixture(scope="module")
def without_numba(tmp_path_factory):
    """Training without numba: the errors by name, and the folder with their runs."""
    folder = tmp_path_factory.mktemp("without_numba")
    fast = ["games=2", "eval_every=2", "evaluation.first=1", "evaluation.second=0"]
    words = {
        "eager": QUICK,
        "traces": [*QUICK, "optimizer=swift_td", "learner.lambda_=0.5", "average_from=0"],
        "torch": [*QUICK, "optimizer=adam"],
        "minimax": [*QUICK, "opponent=minimax", "lookahead=2"],
        "connect4": ["engine=eager", *fast, "opponent=minimax", "opponent.depth=2"],
        "batched": ["engine=batched", "batch=2", *fast, "opponent=random"],
        "q": ["game=tictactoe", "learner=q", "engine=eager", "games=2", "eval_every=2"],
        "fused": ["game=tictactoe", "engine=fused"],
        "q fused": ["game=tictactoe", "learner=q", "engine=fused"],
        "chess": ["game=chess", "engine=eager"],
    }
    errors, modules = runs(NO_NUMBA, [[*w, f"run_dir={name}"] for name, w in words.items()], folder)
    assert not [name for name in modules if name.startswith(("numba.", "llvmlite."))]
    return dict(zip(words, errors, strict=True)), folder


@pytest.mark.parametrize("name", ["eager", "traces", "torch", "minimax", "connect4", "batched", "q"])
def test_agents_train_and_are_measured_without_numba(without_numba, name):
    errors, folder = without_numba
    assert errors[name] is None
    assert last_checkpoint(folder / name)["games"] >= 2


@pytest.mark.parametrize("name", ["fused", "q fused"])
def test_without_numba_fused_says_what_to_install(without_numba, name):
    errors, folder = without_numba
    assert errors[name] == "engine=fused needs numba: python -m pip install numba; or use engine=eager"
    assert not (folder / name).exists()


def test_without_numba_chess_says_what_to_install(without_numba):
    assert without_numba[0]["chess"] == "game=chess needs numba: python -m pip install numba"


def test_eager_training_is_the_same_without_numba(without_numba, quick):
    here = last_checkpoint(quick())
    there = last_checkpoint(without_numba[1] / "eager")
    for part in ("network", "optimizer"):
        assert_equal(here[part], there[part])


def test_without_numba_a_checkpoint_that_looks_ahead_is_measured_in_plain_python(without_numba):
    words = ["checkpoint=minimax", "engine=null", "opponent=random", "evaluation.first=2", "lookahead=3"]
    code = f"import runpy; sys.argv[1:] = {words}; runpy.run_module('rlgames.evaluate', run_name='__main__')"
    assert "first: " in python(NO_NUMBA + code, cwd=without_numba[1])


def test_without_numba_the_perfect_player_plays():
    pytest.importorskip("bitbully", reason="the perfect player needs the extra rlgames[solver]")
    code = "from rlgames.games.connect4 import Connect4; from rlgames.players import Perfect; import numpy as np\n"
    text = python(
        NO_NUMBA + code + "g = Connect4(); print(Perfect(g).move(g.play([0, 1, 0, 1, 0, 1]), np.random.default_rng(0)))"
    )
    assert text == "0\n"


def test_rules_learn_without_numba():
    code = """
import torch
from rlgames import optim
for name in optim.__all__:
    rule = getattr(optim, name)
    if isinstance(rule, type) and issubclass(rule, optim.StepSize) and rule is not optim.StepSize:
        w = torch.nn.Parameter(torch.zeros(3))
        optimizer = rule([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            w[:2].sum().backward()
            optimizer.step(0.5)
        assert (w[:2] > 0).all() and w[2] == 0, name
print(len(optim.__all__))
"""
    assert int(python(NO_NUMBA + code)) > 20


def test_without_numba_info_says_so():
    text = python(f"{NO_NUMBA}import runpy; runpy.run_module('rlgames.info', run_name='__main__')")
    assert "compiled code: none without numba, engine=eager only; python -m pip install numba\n" in text


def test_without_numba_every_module_can_be_imported():
    python(f"{NO_NUMBA}LEFT_OUT = {TALKS_TO_NUMBA}\n{MODULES}")


def test_every_module_can_be_imported_and_trains_where_signals_forks_and_the_like_are_missing(tmp_path):
    code = f"{OTHERS}{NOT_EVERYWHERE}LEFT_OUT = ()\n{MODULES}"
    errors, _ = runs(code, [[*QUICK, "run_dir=run"], ["resume=run", "games=16"]], tmp_path)
    assert errors == [None, None]
    assert last_checkpoint(tmp_path / "run")["games"] == 16


def test_commands_name_folders_with_slashes_that_every_shell_takes():
    assert records.shown(PureWindowsPath(r"C:\runs\connect4")) == "C:/runs/connect4"
