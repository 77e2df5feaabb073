"""README, CONTRIBUTING and docs keep their word: links lead somewhere, commands compose, examples run."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import rlgames
import rlgames.testing
from rlgames.__main__ import PROGRAMS
from rlgames.build import CONF, check, load
from rlgames.tournament import named_players
from tests.support import PROJECT

DOCUMENTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))]
COMMAND = re.compile(r"^ +python -m rlgames\.(\w+)(.*?)(?:   *#.*| # .*)?$", re.MULTILINE)
BLOCK = re.compile(r"```(python|yaml)\n# ((?:rlgames|conf)/\S+)\n(.*?)```", re.DOTALL)
QUICK = ["engine=eager", "games=4", "eval_every=2", "opponent=random", "evaluation.first=2", "evaluation.second=0"]


def text(name):
    return (PROJECT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_links_lead_to_files(file):
    for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        if not link.startswith(("http", "#")):
            assert (file.parent / link.partition("#")[0]).exists(), link


def commands(file):
    """Program and words of each command in ``file``, those with our own examples left out."""
    content = file.read_text(encoding="utf-8")
    own = {Path(path).stem for _, path, _ in BLOCK.findall(content)}
    for program, words in COMMAND.findall(content):
        words = [word for word in shlex.split(words.split(" && ")[0]) if not word.startswith(("-", "["))]
        if program != "info" and not own & {word.partition("=")[2] for word in words}:
            yield program, words


def each(word):
    """``key=a`` and ``key=b`` of the sweep ``key=a,b``; the first of a range."""
    key, equals, values = word.partition("=")
    values = "0" if values.startswith("range(") else values
    return [f"{key}={value}" for value in values.split(",")] if equals and not set("[{") & set(values) else [word]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_commands_are_understood(file):
    for program, words in commands(file):
        assert program in PROGRAMS
        for run in itertools.product(*map(each, words)):
            check(load(*(named_players(list(run)) if program == "tournament" else run), config=program))


def test_the_readme_shows_every_rule():
    table = text("README.md").split("## Rules")[1]
    for file in (CONF / "optimizer").glob("*.yaml"):
        assert f"`{file.stem}`" in table, file.stem


def test_the_example_of_the_readme_runs():
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text("README.md"), re.DOTALL) if "Linear" in block)
    names = {}
    exec(code, names)
    assert names["optimizer"].state


def test_one_weight_goes_the_way_that_the_page_says(capsys):
    page = text("docs/compiled.md")
    code, shown = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL).groups()
    exec(code, {})
    assert capsys.readouterr().out == textwrap.dedent(shown)


def test_the_examples_from_python_run(tmp_path, monkeypatch):
    """The names that stay, all of them; what has to be compiled is tried elsewhere."""
    page = text("docs/python.md")
    for name in rlgames.FACE:
        assert f"rlgames.{name}" in page.replace(f"`{name}`", f"rlgames.{name}"), name
        assert getattr(rlgames, name)
    monkeypatch.chdir(tmp_path)
    for kit in ("game", "features", "network", "rule", "learner"):
        monkeypatch.setattr(f"rlgames.testing.{kit}.HAS_COMPILER", False)
    names = {"__name__": "mine"}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert names["result"]["games"] == 40
    assert len(names["values"]) == len(names["board"].moves())
    evaluation = names["Wins"](names["parts"].game, names["player"])
    agent = rlgames.restore("runs/first").greedy()
    assert 0 <= evaluation.records(agent, np.random.default_rng(0))["wins"] <= 10


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A copy of the package with the files that README and CONTRIBUTING add to it; the folder, and their commands."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("rlgames", "conf"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    found = []
    for document in ("README.md", "CONTRIBUTING.md"):
        for _, path, code in BLOCK.findall(text(document)):
            (folder / path).write_text(code, encoding="utf-8")
            found.append(Path(path).stem)
    lines = [words for words in COMMAND.findall(text("CONTRIBUTING.md")) if words[0] == "train"]
    return folder, found, [shlex.split(words) for _, words in lines]


def train(folder, runs):
    code = (
        "import sys, json\nfrom rlgames.build import load\nfrom rlgames.train import train\n"
        "for words in json.loads(sys.argv[1]): assert train(load(*words))['status'] == 'finished'"
    )
    command = [sys.executable, "-c", code, json.dumps(runs)]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def small(lines):
    """The commands, on the smallest board."""
    return [words if any("game=" in word for word in words) else ["game=tictactoe", *words] for words in lines]


def test_a_game_a_rule_a_network_and_a_learner_of_your_own_run(examples):
    folder, found, lines = examples
    assert found.count("clipped") == 4  # file and yaml, twice
    assert {"pairs", "monte_carlo", "lines"} <= set(found)
    assert len(lines) == 4
    done = train(folder, [[*words, *QUICK] for words in small(lines)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("after 4 of 4 games") == 4


@pytest.mark.slow
def test_they_run_compiled_too(examples):
    folder, _, lines = examples
    fused = [word for word in QUICK if not word.startswith("engine=")]
    done = train(folder, [[*words, *fused] for words in small(lines)])
    assert done.returncode == 0, done.stderr


KITS = """
from rlgames.features.planes import Planes
from rlgames.games.pairs import Pairs
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.monte_carlo import MonteCarlo
from rlgames.networks.lines import Lines
from rlgames.optim.clipped import Clipped
from rlgames.testing import check_game, check_learner, check_network, check_rule

game = TicTacToe()
check_game(Pairs())
check_rule(Clipped)
check_network(Lines(Planes(game)), Planes(game), game)
check_learner(MonteCarlo(game), game)
"""


@pytest.mark.slow
def test_they_keep_their_contracts(examples):
    environment = {**os.environ, "PYTHONPATH": str(examples[0])}
    command = [sys.executable, "-c", KITS]
    done = subprocess.run(command, cwd=examples[0], capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stderr
