"""The speed of two trees is compared by ratios of turns; nothing is left behind."""

import csv
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import PROJECT

against = runpy.run_path(str(PROJECT / "scripts" / "against.py"))
Interval, median_interval, verdict = against["Interval"], against["median_interval"], against["verdict"]

# A tree whose turns take as long as it says, and are noted beside it.
TREE = """
import os
from pathlib import Path

class Runner:
    def __init__(self, rule, words):
        if rule == "unknown":
            raise ValueError("rule is 'unknown'\\nand more")
        self.rule, self.seconds = rule, 0.0
        Path(LOG).open("a").write(f"{rule} {' '.join(words)}\\n")
        Path(LOG).with_name(f"{os.getpid()}.pid").touch()
        print("no answer")

    def turn(self, games):
        self.seconds += games * SECONDS
        Path(LOG).open("a").write(f"{NAME} {games}\\n")
        if self.rule == "endless":
            import time
            time.sleep(60)
"""


# ---- statistics


@pytest.mark.parametrize(("n", "k"), [(6, 1), (8, 1), (9, 2), (20, 6), (21, 6), (50, 18), (100, 40)])
def test_the_ranks_at_which_the_interval_ends(n, k):
    values = [float(x) for x in range(1, n + 1)]
    assert median_interval(values[::-1]) == Interval((n + 1) / 2, k, n + 1 - k)


def test_other_levels_and_many_values():
    values = [float(x) for x in range(1, 21)]
    assert median_interval(values, 0.99)[1:] == (4, 17)
    assert median_interval(values, 0.5)[1:] == (8, 13)
    _, low, high = median_interval([float(x) for x in range(1, 1201)])  # 2^1200 is no float
    assert low == pytest.approx(600 - 1.96 * 300**0.5, abs=2)
    assert low + high == 1201


def test_an_outlier_moves_nothing():
    values = [1 + k / 100 for k in range(-10, 11)]
    assert median_interval([*values[:-1], 1000.0]) == median_interval(values)


def test_too_few_values():
    with pytest.raises(ValueError, match="5 values are too few"):
        median_interval([1.0] * 5)


def test_verdict():
    intervals = {
        "a": Interval(1.2, 1.1, 1.3),
        "b": Interval(0.9, 0.8, 0.99),
        "c": Interval(1.1, 1.0, 1.2),
        "d": Interval(1, 0.9, 1.1),
    }
    text = "above 1 (faster here): a; below 1 (slower here): b; not told apart from 1: c, d"
    assert verdict(intervals) == text
    assert verdict({}) == "above 1 (faster here): none; below 1 (slower here): none; not told apart from 1: none"


# ---- processes


def write_tree(root, name, seconds):
    values = f"NAME, SECONDS, LOG = {name!r}, {seconds}, {str(root / 'log')!r}\n"
    (root / "scripts" / "benchmark.py").write_text(values + TREE)


@pytest.fixture
def tree(tmp_path):
    """A checkout whose last commit needs 0.03 s per game and whose working tree needs 0.02."""
    root = tmp_path / "tree"
    (root / "scripts").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    shutil.copy(PROJECT / "scripts" / "against.py", root / "scripts")
    write_tree(root, "there", 0.03)
    git = ["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "slow"], check=True)
    write_tree(root, "here", 0.02)
    return root


def compare(tree, *args):
    """The process of ``against.main(*args)`` in ``tree``."""
    command = [sys.executable, "-c", f"import against; against.main(*{args!r})"]
    env = os.environ | {"TMPDIR": str(tree.parent / "tmp"), "PYTHONPATH": str(tree / "scripts")}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tree.parent, env=env, text=True, stdout=pipe, stderr=pipe)


def left_behind(tree):
    """Temporary files, worktrees, and processes (where the platform shows them)."""
    listed = subprocess.run(["git", "-C", tree, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    running = [file for file in tree.glob("*.pid") if Path("/proc", file.stem).exists()]
    return list((tree.parent / "tmp").iterdir()) + listed.splitlines()[1:] + running


def test_each_side_runs_its_own_code_in_turns(tree):
    done = compare(tree, "HEAD", ["tdl", "swift_td"], 5, 20, ["a=1"], "table.csv")
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    title, tdl, swift, last = out.splitlines()
    assert title == "speed here / speed at HEAD, median [95 % interval] of 20 turns of 5 games"
    assert tdl == "tdl          1.500 [1.500, 1.500]"
    assert swift == "swift_td     1.500 [1.500, 1.500]"
    assert last == "above 1 (faster here): tdl, swift_td; below 1 (slower here): none; not told apart from 1: none"
    log = (tree / "log").read_text().splitlines()
    assert log.count("tdl a=1") == log.count("swift_td learner.lambda_=0.5 a=1") == 2
    turns = [line for line in log if line.endswith(" 5")][:42]
    assert turns[2:] == ["here 5", "there 5", "there 5", "here 5"] * 10
    assert sorted(turns[:2]) == ["here 5", "there 5"], "to warm up"
    with open(tree.parent / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["rule"] for row in rows] == ["tdl", "swift_td"]
    assert [round(float(row["median"]), 6) for row in rows] == [1.5, 1.5]
    assert left_behind(tree) == []


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(tree, number):
    running = compare(tree, "HEAD", ["endless"], 5, 20, [], None)
    deadline = time.monotonic() + 30
    while not (tree / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_behind(tree) != []
    running.send_signal(number)
    running.communicate(timeout=30)
    assert running.returncode != 0
    assert left_behind(tree) == []


SENTENCES = [
    (("nowhere", ["tdl"], 5, 20), "--against is 'nowhere'; it must be a revision of a git checkout at "),
    (("--list", ["tdl"], 5, 20), "--against is '--list'; it must be a revision of a git checkout at "),
    (("HEAD:scripts", ["tdl"], 5, 20), "--against is 'HEAD:scripts', which has no scripts/benchmark.py"),
    (("HEAD", ["tdl"], 5, 19), "--games and --turn make 19 turns; --against needs at least 20"),
    (("HEAD", ["unknown"], 5, 20), "unknown here: ValueError: rule is 'unknown'"),
]


@pytest.mark.parametrize(("args", "sentence"), SENTENCES)
def test_bad_input_is_one_sentence(tree, args, sentence):
    done = compare(tree, *args, [], None)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 1
    assert err.startswith(sentence)
    assert len(err.splitlines()) == 1
    assert left_behind(tree) == []


def test_without_a_checkout(tree):
    shutil.rmtree(tree / ".git")
    _, err = compare(tree, "HEAD", ["tdl"], 5, 20, [], None).communicate(timeout=60)
    assert err.startswith("--against is 'HEAD'; it must be a revision of a git checkout at ")
    assert "not a git repository" in err
    assert len(err.splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="no checkout")
def test_the_program_itself(tmp_path):
    script = [sys.executable, PROJECT / "scripts" / "benchmark.py", "--against", "HEAD"]
    few = ["--rules", "swift_td", "--games", "40", "--turn", "2", "game=tictactoe"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    before = subprocess.run(["git", "-C", PROJECT, "worktree", "list"], capture_output=True, check=True).stdout
    done = subprocess.run([*script, *few], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    title, *lines, last = done.stdout.splitlines()
    assert title == "speed here / speed at HEAD, median [95 % interval] of 20 turns of 2 games"
    assert [line.split()[0] for line in lines] == ["swift_td"]
    for line in lines:
        median, low, high = (float(word.strip("[],")) for word in line.split()[1:])
        assert 0.1 < low <= median <= high < 10
    assert last.startswith("above 1 (faster here): ")
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run(["git", "-C", PROJECT, "worktree", "list"], capture_output=True, check=True).stdout == before
