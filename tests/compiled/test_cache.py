"""Machine code on disk: found again, made anew when a source of it changed, and never in the way."""

import ast
import importlib
import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import rlgames
from rlgames.agents import Eager, Fused
from rlgames.compiled import cache, sources
from rlgames.compiled.bridge import _dispatcher
from rlgames.features.ntuples import NTuples
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TCLEXP, TDL
from rlgames.schedules import Constant
from tests.support import PROJECT

GAME = TicTacToe()
OLD = time.time() - 1e6


def trained(rule, engine=Fused):
    """Weights after some games."""
    net = ValueNetwork(NTuples(GAME, [[0, 1, 2], [0, 4, 8], list(range(9))], states=3), dtype="float64", init=0.1)
    agent = engine(net, rule(net.parameters(), lr=0.01))
    TD(GAME, Constant(0.1)).train(agent, 0, 20, 0.01, np.random.default_rng(0))
    if isinstance(agent, Fused):
        agent.store()
    return net.embedding.weight.detach()[:, 0]


def run(text, cwd=PROJECT, **environment):
    """Run ``text`` in a new process; what it prints as JSON, and all that it writes on stderr."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(cwd)]), **environment}
    env = {name: value for name, value in env.items() if value is not None}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


TRAIN = """
import json, tests.compiled.test_cache as t
from rlgames.compiled import compile_function
from rlgames.learners.td import play_games
weights = t.trained(t.TCLEXP)
stats = compile_function(play_games).stats
print(json.dumps([weights.tolist(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""


def test_a_second_process_compiles_nothing():
    """Closures that the compiler is handed on the way do not keep machine code from being found."""
    here = trained(TCLEXP)
    (weights, *counts), _ = run(TRAIN)
    assert counts == [1, 0]
    assert torch.equal(torch.tensor(weights, dtype=torch.float64), here)


@pytest.mark.slow
def test_with_bounds_checks_the_result_is_the_same_and_the_code_kept_apart():
    trained(TCLEXP)
    (weights, *counts), _ = run(TRAIN, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(cache.cache_folder()))
    np.testing.assert_allclose(weights, trained(TCLEXP).numpy(), rtol=0, atol=1e-12)
    assert counts == [0, 1]


def test_without_compiler_the_result_is_the_same():
    """Only rules without torch names: torch's functions take tensors, and compiled agents hold single numbers."""
    text = "import json, tests.compiled.test_cache as t; print(json.dumps(t.trained(t.TDL).tolist()))"
    weights, _ = run(text, NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(weights, trained(TDL, Eager).numpy(), rtol=0, atol=1e-12)


# ---- one function, as two processes would: each dispatcher looks for its code on the disk


def third_move(board):
    return board.play(board.moves()[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for once in (cache._writable, cache._cannot_keep, cache._remove_unused):
        once.cache_clear()
    return tmp_path / "rlgames"


def call(function=third_move, argument=GAME.board):
    """The result of a fresh dispatcher, and whether its code came from the disk."""
    dispatcher = _dispatcher.__wrapped__(function)
    return dispatcher(argument), sum(dispatcher.stats.cache_hits.values()) == 1


def test_code_is_kept_where_it_is_told(folder):
    assert call() == (third_move(GAME.board), False)
    assert [file.suffix for file in folder.iterdir()] == [".code"]
    assert call() == (third_move(GAME.board), True)


def flip(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGE = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one byte": lambda content: flip(content, len(content) // 2),
    "checksum": lambda content: flip(content, 3),
    "another program's": lambda content: b"no machine code at all, but long enough to hold a checksum",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_compiled_anew_with_one_line(folder, caplog, damage):
    call()
    (file,) = folder.iterdir()
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert call() == (third_move(GAME.board), False)
    assert [record.getMessage() for record in caplog.records] == [f"{file} is damaged and is recompiled"]
    assert call() == (third_move(GAME.board), True)


def test_code_of_a_class_that_is_gone_is_compiled_anew(folder, caplog, monkeypatch):
    call()

    def gone(*_):
        raise ModuleNotFoundError("No module named 'mygame'")

    with monkeypatch.context() as patch:
        patch.setattr(cache.CompileResult, "_rebuild", gone)
        assert call() == (third_move(GAME.board), False)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "No module named 'mygame'" in line
    assert "recompiled" in line


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_a_full_disk_stops_nothing(folder, caplog, monkeypatch, failing):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((Path, "write_bytes") if failing == "write_bytes" else (os, "replace")), full)
    assert call() == call() == (third_move(GAME.board), False)
    (line,) = [record.getMessage() for record in caplog.records]
    assert str(folder) in line
    assert "No space left on device" in line
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "variables",
    [("NUMBA_CACHE_DIR",), ("HOME", "XDG_CACHE_HOME", "TMPDIR")],
)
def test_without_a_folder_to_write_in_it_works_too(folder, tmp_path, monkeypatch, variables):
    """A file in place of the folder: also the administrator cannot write below it."""
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path / "file" / "folder"))
    for variable in variables:
        monkeypatch.setenv(variable, str(tmp_path / "file" / "folder"))
    assert cache.cache_folder() is None
    assert call()[0] == third_move(GAME.board)


def test_code_that_nobody_used_for_a_month_is_removed(folder):
    call()
    (used,) = folder.iterdir()
    for name, days in {"gone.code": 31, "young.code": 29, "not ours": 31}.items():
        (folder / name).touch()
        os.utime(folder / name, (time.time() - 86_400 * days,) * 2)
    os.utime(used, (OLD, OLD))
    call()  # uses it again
    cache._remove_unused.cache_clear()
    call(lambda board: board.moves()[1])
    names = {file.name for file in folder.iterdir()}
    assert "gone.code" not in names
    assert {used.name, "young.code", "not ours"} <= names


@pytest.mark.slow
def test_processes_that_compile_at_once_do_not_disturb_one_another(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", TRAIN]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) for _ in range(4)]
    outputs = [json.loads(p.communicate(timeout=280)[0]) for p in processes]
    assert [weights for weights, *_ in outputs] == [outputs[0][0]] * 4
    assert run(TRAIN, NUMBA_CACHE_DIR=str(tmp_path))[0][1:] == [1, 0]
    assert not [file for file in (tmp_path / "rlgames").iterdir() if file.suffix != ".code"]


# ---- what a key depends on

ENTRIES = {
    "connect4": ("rlgames.learners.td", "rlgames.games.connect4", "rlgames.features.ntuples", "rlgames.optim.swift_td"),
    "chess": ("rlgames.chess.search.alphabeta",),
    "q": ("rlgames.learners.q", "rlgames.learners.q_table", "rlgames.games.tictactoe"),
    "search": ("rlgames.search.lookahead", "rlgames.agents.fused"),
    "minimax": ("rlgames.players.minimax",),
}


def roots(entry):
    """A class or function of each module."""
    modules = map(importlib.import_module, ENTRIES[entry])
    return [next(v for v in vars(m).values() if getattr(v, "__module__", 0) == m.__name__) for m in modules]


PARTS = [  # an entry, and a module from which it takes compiled text or constants: one of each folder
    ("connect4", "rlgames.learners.td"),
    ("connect4", "rlgames.games.connect4"),
    ("connect4", "rlgames.features.ntuples"),
    ("connect4", "rlgames.optim.swift_td"),
    ("connect4", "rlgames.optim.lanes"),
    ("connect4", "rlgames.compiled.torch_names"),
    ("connect4", "rlgames.policy"),
    ("search", "rlgames.agents.fused"),
    ("search", "rlgames.traces"),
    ("search", "rlgames.search.lookahead"),
    ("minimax", "rlgames.players.minimax"),
    ("q", "rlgames.learners.q_table"),
    ("chess", "rlgames.chess.terms"),
    ("chess", "rlgames.chess.bitboards"),
    ("chess", "rlgames.chess.search.ordering"),
]


class OtherNumber(ast.NodeTransformer):
    """Changes the last number of a tree."""

    def __init__(self, tree):
        numbers = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
        self.last = max(numbers, key=lambda n: (n.lineno, n.col_offset))

    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant(node.value + 1), node) if node is self.last else node


def rewritten(module, tmp_path, monkeypatch, change):
    """Let the source of ``module`` be a copy with a ``change``, written before this process began."""
    copy = tmp_path / "copy.py"
    copy.write_text(change(Path(module.__file__).read_text()))
    os.utime(copy, (OLD, OLD))
    monkeypatch.setattr(module, "__file__", str(copy))


def other_number(text):
    tree = ast.parse(text)
    return ast.unparse(OtherNumber(tree).visit(tree))


@pytest.mark.parametrize(("entry", "name"), PARTS)
def test_one_constant_in_any_folder_makes_another_key(tmp_path, monkeypatch, entry, name):
    before = sources.fingerprint(roots(entry))
    rewritten(sys.modules[name], tmp_path, monkeypatch, other_number)
    assert sources.fingerprint(roots(entry)) != before


@pytest.mark.parametrize(("entry", "name"), PARTS)
def test_comments_and_docstrings_make_none(tmp_path, monkeypatch, entry, name):
    def reworded(text):
        return text.replace('"""\n', ' and more."""\n').replace("\n\n\n", "\n\n\n# a comment\n\n")

    before = sources.fingerprint(roots(entry))
    rewritten(sys.modules[name], tmp_path, monkeypatch, reworded)
    assert "and more" in Path(sys.modules[name].__file__).read_text()
    assert sources.fingerprint(roots(entry)) == before


@pytest.mark.parametrize("name", ["rlgames.console.progress", "rlgames.chess.board", "rlgames.optim.idbd"])
def test_what_compiled_code_does_not_come_from_makes_none(tmp_path, monkeypatch, name):
    """A change in chess, or in another rule, does not compile Connect-4 anew."""
    module, before = importlib.import_module(name), sources.fingerprint(roots("connect4"))
    rewritten(module, tmp_path, monkeypatch, other_number)
    assert sources.fingerprint(roots("connect4")) == before


def test_parts_name_every_folder_that_registers_compiled_text():
    package = Path(rlgames.__file__).parent
    registers = re.compile(r"^ *@(compilable|compile_function|value)$", re.MULTILINE)
    files = [file.relative_to(package) for file in package.rglob("*.py") if registers.search(file.read_text())]
    folders = {file.parts[0] for file in files}
    assert {part.removesuffix(".py") for part in folders} <= {name.split(".")[1] for _, name in PARTS}


def test_code_of_a_source_written_while_the_process_runs_is_not_kept(folder, tmp_path, monkeypatch):
    """What was loaded may be older than what is read."""
    rewritten(sys.modules["rlgames.games.tictactoe"], tmp_path, monkeypatch, other_number)
    os.utime(tmp_path / "copy.py")
    assert call() == (third_move(GAME.board), False)
    assert not folder.exists() or list(folder.iterdir()) == []


# ---- sources outside the package

HELPER = "import numpy as np\nGAIN = 1\nTABLE = np.arange(3)\n"
OWN = """
'''A game of one's own.'''
from helper import GAIN, TABLE
import relative.part
from rlgames.compiled import compilable
NAME = 'shown to nobody'
@compilable
def gain(x):
    return GAIN * x + TABLE[1] + relative.part.MORE
"""
CHANGES = {
    "a constant in a module that it imports": ("helper.py", "GAIN = 1", "GAIN = 3"),
    "an array in a module that it imports": ("helper.py", "arange(3)", "arange(4)"),
    "a module of a package": ("relative/part.py", "MORE = 5", "MORE = 6"),
    "its own text": ("own.py", "GAIN * x", "x * GAIN"),
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Imports the module own from ``tmp_path``, anew at each call."""
    (tmp_path / "relative").mkdir()
    for name, text in {"helper.py": HELPER, "own.py": OWN, "relative/part.py": "MORE = 5\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    times = itertools.count(OLD)

    def load():
        now = next(times)
        for file in tmp_path.rglob("*.py"):
            os.utime(file, (now, now))
        for name in ("own", "helper", "relative", "relative.part"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own")

    yield load
    for name in ("own", "helper", "relative", "relative.part"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("what", CHANGES)
def test_sources_outside_count(own, tmp_path, what):
    name, old, new = CHANGES[what]
    before = sources.fingerprint([own().gain])
    assert sources.fingerprint([own().gain]) == before
    (tmp_path / name).write_text((tmp_path / name).read_text().replace(old, new))
    assert sources.fingerprint([own().gain]) != before


def test_docstrings_outside_do_not_count(own, tmp_path):
    before = sources.fingerprint([own().gain])
    (tmp_path / "own.py").write_text(OWN.replace("of one's own", "of mine") + "# the end\n")
    assert sources.fingerprint([own().gain]) == before


def test_a_constant_counts_wherever_it_came_from(own, monkeypatch):
    """As of a file, or of the environment, which no source shows."""
    module = own()
    before = sources.fingerprint([module.gain])
    monkeypatch.setattr(module, "NAME", "which no function reads")
    assert sources.fingerprint([module.gain]) == before
    monkeypatch.setattr(module, "GAIN", 2)
    assert sources.fingerprint([module.gain]) != before


CELL = """
from typing import NamedTuple
GAIN = {gain}
def helper(x):
    return GAIN * x
class Cell(NamedTuple):
    x: int
    def more(self):
        '''{doc}'''
        return helper(self.x) + {more}
"""


def test_what_a_notebook_defines_counts_by_its_code():
    def key(**words):
        cell = {"__name__": "__main__"}
        exec(CELL.format(**{"gain": 2, "more": 1, "doc": "", **words}), cell)
        return sources.fingerprint([cell["Cell"]])

    assert key() == key() == key(doc="a docstring")
    assert len({key(), key(gain=3), key(more=7)}) == 3


@pytest.mark.thorough
def test_an_own_game_and_rule_change_and_go(tmp_path):
    """An own board whose helper changes is compiled anew; without the module others' runs go on as ever."""
    (tmp_path / "gains.py").write_text("GAIN = 1\n")
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        from typing import NamedTuple
        from gains import GAIN
        from rlgames.compiled import compile_function, value
        @value
        class Mine(NamedTuple):
            x: int
            def gained(self):
                return GAIN * self.x
        def gain(board):
            return board.gained()
        """)
    )
    for file in tmp_path.glob("*.py"):
        os.utime(file, (OLD, OLD))
    words = "import json; from mine import *; f = compile_function(gain); print(json.dumps([f(Mine(5)), {}]))"
    mine = words.format("sum(f.stats.cache_hits.values())")
    store = {"cwd": tmp_path, "NUMBA_CACHE_DIR": str(tmp_path / "code"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert [run(mine, **store)[0] for _ in range(2)] == [[5, 0], [5, 1]]
    (tmp_path / "gains.py").write_text("GAIN = 3\n")
    os.utime(tmp_path / "gains.py", (OLD, OLD))
    assert run(mine, **store)[0] == [15, 0]
    (tmp_path / "mine.py").unlink()
    assert run(TRAIN, **store)[1] == ""
