"""What a process needs to start: imports that it can do without, and systems and packages that lack something.

Something is taken away in a process of its own before the package is imported.
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

RUN = """
from rlgames.build import load
from rlgames.train import train
train(load(*WORDS), WORDS)
"""

# Each part by itself, one after the other: what it prints, its traceback too; at the end the modules that are there.
PARTS = """
import contextlib, io, json, sys, traceback
told = []
for part in json.loads(sys.argv.pop()):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        try:
            exec(part, {})
        except Exception:
            traceback.print_exc(file=said)
    told.append(said.getvalue())
print(json.dumps([told, sorted(sys.modules)]))
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


def together(before, parts, cwd):
    """Run ``before`` and the named ``parts`` in one process: what each says, by name, and the modules at the end."""
    env = os.environ | {"PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", before + PARTS, json.dumps(list(parts.values()))]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, modules = json.loads(done.stdout)
    return dict(zip(parts, told, strict=True)), modules


def runs(words):
    """Parts that train, each in a folder of its own name."""
    return {name: f"WORDS = {[*w, f'run_dir={name}']}\n{RUN}" for name, w in words.items()}


def assert_equal(a, b):
    for name, value in a.items():
        if isinstance(value, dict):
            assert_equal(value, b[name])
        elif isinstance(value, torch.Tensor):
            assert torch.equal(value, b[name]), name


def test_a_chess_engine_needs_no_torch():
    code = "import sys, rlgames.chess.thinker, rlgames.uci; print(*sys.modules)"
    env = os.environ | {"PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert {"numba", "torch"} & set(done.stdout.split()) == {"numba"}


def test_methods_that_torch_does_not_decorate_stay():
    def method():
        pass

    assert _undecorated(method) is method
    for name in vars(Optimizer).keys() & vars(torch.optim.Optimizer).keys() - {"__module__", "__doc__"}:
        assert getattr(Optimizer, name).__qualname__ == f"Optimizer.{name}"


def assert_light(modules):
    """Training needs neither the compiler of torch nor bars."""
    assert not {"torch._dynamo", "sympy", "rich"} & set(modules)


@pytest.mark.thorough
def test_training_and_resuming_compiled_are_light_too(tmp_path):
    fused = [*QUICK, "engine=fused", "games=4"]
    parts = runs({"run": fused}) | {"again": f"WORDS = ['resume=run', 'games=8']\n{RUN}"}
    told, modules = together("", parts, tmp_path)
    assert last_checkpoint(tmp_path / "run")["games"] == 8, told
    assert_light(modules)


FAST = ["games=2", "eval_every=2", "evaluation.first=1", "evaluation.second=0"]
Q = ["game=tictactoe", "learner=q", "games=2", "eval_every=2"]
RULES = """
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
        print(name)
"""


@pytest.fixture(scope="module")
def without_numba(tmp_path_factory):
    """What is said in a process without numba, by name, the modules after training, and the folder with its runs."""
    folder = tmp_path_factory.mktemp("without_numba")
    words = {
        "eager": QUICK,
        "q": [*Q, "engine=eager"],
        "fused": ["game=tictactoe", "engine=fused"],
        "q fused": [*Q, "engine=fused"],
        "chess": ["game=chess", "engine=eager"],
    }
    again = f"WORDS = ['resume=q', 'games=4']\n{RUN}"
    after = {
        "modules": "import json, sys\nprint(json.dumps(list(sys.modules)))",
        "rules": RULES,
        "info": "import runpy; runpy.run_module('rlgames.info', run_name='__main__')",
        "imports": f"LEFT_OUT = {TALKS_TO_NUMBA}\n{MODULES}",
    }
    told, _ = together(NO_NUMBA, runs(words) | {"again": again} | after, folder)
    return told, folder


@pytest.mark.parametrize(("name", "games"), [("eager", 12), ("q", 4)])
def test_agents_train_go_on_and_are_measured_without_numba(without_numba, name, games):
    told, folder = without_numba
    assert last_checkpoint(folder / name)["games"] == games, told
    modules = json.loads(told["modules"])
    assert not [name for name in modules if name.startswith(("numba.", "llvmlite."))]
    assert_light(modules)


@pytest.mark.parametrize("name", ["fused", "q fused"])
def test_without_numba_fused_says_what_to_install(without_numba, name):
    told, folder = without_numba
    message = "ValueError: engine=fused needs numba: python -m pip install numba; or use engine=eager\n"
    assert told[name].endswith(message)
    assert not (folder / name).exists()


def test_without_numba_chess_says_what_to_install(without_numba):
    assert without_numba[0]["chess"].endswith("ValueError: game=chess needs numba: python -m pip install numba\n")


def test_eager_training_is_the_same_without_numba(without_numba, quick):
    here = last_checkpoint(quick())
    there = last_checkpoint(without_numba[1] / "eager")
    for part in ("network", "optimizer"):
        assert_equal(here[part], there[part])


def test_rules_learn_without_numba(without_numba):
    assert "Traceback" not in without_numba[0]["rules"]
    assert len(without_numba[0]["rules"].split()) > 20


def test_without_numba_info_says_so(without_numba):
    text = "compiled code: none without numba, engine=eager only; python -m pip install numba\n"
    assert text in without_numba[0]["info"]


def test_without_numba_every_module_can_be_imported(without_numba):
    assert without_numba[0]["imports"] == ""


@pytest.mark.thorough
def test_without_numba_agents_of_other_kinds_train_too(tmp_path):
    words = {
        "traces": [*QUICK, "optimizer=swift_td", "learner.lambda_=0.5", "average_from=0"],
        "torch": [*QUICK, "optimizer=adam"],
        "minimax": [*QUICK, "opponent=minimax", "lookahead=2"],
        "connect4": ["engine=eager", *FAST, "opponent=minimax", "opponent.depth=2"],
        "batched": ["engine=batched", "batch=2", *FAST, "opponent=random"],
    }
    looks = ["checkpoint=minimax", "engine=null", "opponent=random", "evaluation.first=2", "lookahead=3"]
    evaluate = f"import runpy, sys; sys.argv[1:] = {looks}; runpy.run_module('rlgames.evaluate', run_name='__main__')"
    told, modules = together(NO_NUMBA, runs(words) | {"evaluate": evaluate}, tmp_path)
    for name in words:
        assert last_checkpoint(tmp_path / name)["games"] >= 2, told[name]
    assert "first: " in told["evaluate"]
    assert not [name for name in modules if name.startswith(("numba.", "llvmlite."))]


@pytest.mark.thorough
def test_without_numba_the_perfect_player_plays(tmp_path):
    pytest.importorskip("bitbully", reason="the perfect player needs the extra rlgames[solver]")
    code = "from rlgames.games.connect4 import Connect4; from rlgames.players import Perfect; import numpy as np\n"
    move = "g = Connect4(); print(Perfect(g).move(g.play([0, 1, 0, 1, 0, 1]), np.random.default_rng(0)))"
    told, _ = together(NO_NUMBA, {"move": code + move}, tmp_path)
    assert told["move"] == "0\n"


def test_every_module_can_be_imported_and_trains_where_signals_forks_and_the_like_are_missing(tmp_path):
    parts = {"imports": f"LEFT_OUT = ()\n{MODULES}"} | runs({"run": QUICK})
    parts |= {"again": f"WORDS = ['resume=run', 'games=16']\n{RUN}"}
    told, _ = together(OTHERS + NOT_EVERYWHERE, parts, tmp_path)
    assert told["imports"] == ""
    assert last_checkpoint(tmp_path / "run")["games"] == 16, told


def test_commands_name_folders_with_slashes_that_every_shell_takes():
    assert records.shown(PureWindowsPath(r"C:\runs\connect4")) == "C:/runs/connect4"
