"""The campaign tries every key of every program, tells what is wrong with what it sees, and forgets nothing."""

import contextlib
import csv
import functools
import math
import random
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf

from rlgames.build import CONF, FOR_GAMES, load
from tests.support import PROJECT, few

sys.path.insert(0, str(PROJECT / "scripts"))

from reliability import damage, runs, signals, uci, words
from reliability.cases import Book, Case, FoundError, in_turns
from reliability.processes import Done, Process

# ---- generated words


def composed(program):
    """The dotted keys of a program, whatever is chosen in its groups (experiments have no others)."""
    choices = [f"{group}={file.stem}" for group in words.groups(program) for file in (CONF / group).glob("*.yaml")]
    for choice in ["", *choices]:
        with contextlib.suppress(ConfigCompositionException):  # chess in a program that has no network to choose
            cfg = OmegaConf.to_container(load(*filter(None, [choice]), config=program), throw_on_missing=False)
            hidden = () if program == "train" else FOR_GAMES
            yield from (name for name, _ in words.leaves(cfg) if name.partition(".")[0] not in hidden)


all_lines = functools.cache(words.all_lines)


@pytest.mark.parametrize("program", few(words.programs(), "play"))
def test_every_key_of_every_program_is_tried_with_each_kind_of_value(program):
    lines = all_lines()
    kinds = {}
    for line in lines:
        kinds.setdefault((line.key.program, line.key.name), Counter())[line.kind] += 1
    for name in composed(program):
        tried = kinds[program, name]
        assert tried[words.WRONG], name
        assert tried[words.RANGE], name
        assert sum(tried.values()) >= 3, name
        inner = isinstance(next(line.key.default for line in lines if line.key[:3:2] == (program, name)), dict)
        assert tried[words.EDGE] or inner, name


def test_there_is_no_program_without_lines():
    from rlgames.__main__ import PROGRAMS

    assert {line.key.program for line in all_lines()} == set(PROGRAMS) - {"check"}


def test_the_names_of_lines_are_their_own():
    names = [str(line) for line in all_lines()]
    assert len(names) == len(set(names))


def test_the_line_of_a_key_holds_it_once_and_last():
    for line in all_lines():
        assert [word.partition("=")[0] for word in line.words()].count(line.key.name) == 1
        assert line.words()[-1] == f"{line.key.name}={line.value}"


def test_by_default_200_lines_that_the_seed_decides():
    class Lab:
        seed = 0

    first, again = (words.cases(Lab(), everything=False) for _ in range(2))
    assert [case[:2] for case in first] == [case[:2] for case in again]
    assert len({case.name for case in first}) == 200
    Lab.seed = 1
    assert [case.name for case in words.cases(Lab(), everything=False)] != [case.name for case in first]
    assert len(words.cases(Lab(), everything=True)) == len(words.all_lines())


# ---- what is wrong

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py"\nKeyError: 1\n'
GOOD = Done(0, True, 1.0, 0.0, "all is well\n", "")
BAD = [
    (GOOD._replace(ended=False, status=-9), "hang"),
    (GOOD._replace(status=1, err=TRACEBACK), "traceback"),
    (GOOD._replace(err=f"error: theta\n{TRACEBACK}"), "traceback"),
    (GOOD._replace(out="Exception ignored in: <object>\n"), "traceback"),
    (GOOD._replace(status=-11), "crash"),
    (GOOD._replace(status=2, err="usage: train\n"), "exit status"),
    (GOOD._replace(status=1, err="theta is bad\n"), "no sentence"),
]
THETA = words.Key("train", "optimizer=idbd", "optimizer.theta", 3.0, {})
REFUSED = GOOD._replace(status=1, err="error: optimizer.theta is 'abc'; it must be a number\n")


def verdict(done, kind=words.WRONG, value="abc"):
    try:
        words.judge(words.Line(THETA, kind, value), done)
    except FoundError as found:
        return found.verdict
    return "ok"


@pytest.mark.parametrize(("done", "expected"), BAD)
@pytest.mark.parametrize("kind", [words.WRONG, words.RANGE, words.EDGE])
def test_a_planted_fault_is_found(done, expected, kind):
    assert verdict(done, kind) == expected


def test_a_value_is_judged_by_what_it_is():
    assert verdict(GOOD) == "wrong type accepted"
    assert verdict(GOOD, words.RANGE, "-1.0") == "accepted"
    assert verdict(GOOD, words.EDGE, "3.0") == "ok"
    assert verdict(REFUSED) == "ok"
    assert verdict(REFUSED, words.RANGE) == "ok"
    assert verdict(REFUSED, words.EDGE) == "refused"
    assert verdict(REFUSED._replace(err="error: it must be a number\n")) == "key not named"


def test_work_without_end_is_no_hang_if_it_was_asked_for():
    working = GOOD._replace(ended=False, status=-9, out="1,000,000,000 games of tictactoe, in run\n")
    assert verdict(working, words.RANGE, words.HUGE) == "accepted"
    assert verdict(working, words.RANGE, "1") == "hang"
    assert verdict(working._replace(out=""), words.RANGE, words.HUGE) == "hang"


# ---- rows


def case(name, part="kills"):
    return Case(part, name, lambda folder: None)


def test_rows_are_there_when_the_campaign_is_given_again(tmp_path):
    file = tmp_path / "results" / "campaign.csv"
    book = Book(file, "this")
    book.add(case("a"), "ok", "", 60.0, "command")
    book.add(case("b"), "hang", "no end", 30.0, "command, with a comma")
    Book(file, "other").add(case("c"), "ok", "", 1.0, "command")
    again = Book(file, "this")
    assert set(again.rows) == {("kills", "a"), ("kills", "b")}
    assert [row["case"] for row in again.failures()] == ["b"]
    assert again.failures()[0]["command"] == "command, with a comma"
    again.add(case("b"), "accepted", "", 30.0, "command")
    assert Book(file, "this").failures() == [], "the last row counts"
    line = again.table(Counter(kills=5)).splitlines()[-1]
    assert line == "| kills | 5 | 2 | 1 | 0 | 1 | 0 | 0 | 1.5 |"
    with file.open(newline="", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == 4


def test_the_parts_take_turns():
    order = in_turns([[case(f"a{k}") for k in range(4)], [case(f"b{k}", "uci") for k in range(2)]])
    assert [c.name for c in order] == ["a0", "b0", "a1", "a2", "b1", "a3"]


# ---- damage and difference


@pytest.mark.parametrize("how", damage.DAMAGES)
def test_every_damage_changes_the_file(tmp_path, how):
    file, content = tmp_path / "file", bytes(range(200))
    file.write_bytes(content)
    damage.damage(file, how, random.Random(3))
    if how in damage.CHANGES:
        assert file.read_bytes() != content
    elif how == "unreadable":
        assert file.stat().st_mode & 0o777 == 0
    else:
        assert file.is_dir() == (how == "a folder")
        assert file.exists() == file.is_dir()


def test_a_flip_is_one_bit():
    content = bytes(range(200))
    bits = [int.from_bytes(data, "big") for data in (content, damage.flip(content, random.Random(0)))]
    assert (bits[0] ^ bits[1]).bit_count() == 1
    assert damage.flip(b"", random.Random(0)) == b""


def test_differences_are_those_of_bits():
    one = {"w": torch.tensor([0.0, math.nan]), "n": [1, {"wall_seconds": 3.0}], "config": 1}
    same = {"w": torch.tensor([0.0, math.nan]), "n": [1, {"wall_seconds": 9.0}], "config": 2}
    assert runs.difference(one, same) == ""
    assert runs.difference(one, same | {"w": torch.tensor([-0.0, math.nan])}) == ".w differs"
    assert runs.difference(one, same | {"w": one["w"].double()}) == ".w differs"
    assert runs.difference(one, same | {"n": [1, {}, 2]}) == ".n has 2 entries and 3"
    assert runs.difference(one, same | {"n": [2, {}]}) == ".n[0] is 1 and 2"
    assert runs.difference(one, same | {"more": 1}) == ".more is in one only"
    sparse = {"trace": torch.tensor([0.0, 2.0]).to_sparse()}
    assert runs.difference(sparse, {"trace": torch.tensor([0.0, 2.0]).to_sparse()}) == ""
    assert runs.difference(sparse, {"trace": torch.tensor([0.0, 3.0]).to_sparse()}) == ".trace differs"


# ---- a chess engine that is none

ENGINE = """
import sys
for line in sys.stdin:
    if line.startswith("isready"):
        print("readyok", flush=True)
    if line.startswith(("go depth", "stop")):
        print("info depth 1\\nbestmove", sys.argv[1], flush=True)
    elif line.startswith("go"):
        sys.exit(3)
"""


@pytest.fixture
def conversation(tmp_path):
    started = []

    def start(move):
        started.append(Process([sys.executable, "-c", ENGINE, move], tmp_path, {}))
        return uci.Conversation(started[-1], random.Random(0))

    yield start
    for process in started:
        process.kill()


@pytest.mark.parametrize(("move", "legal"), [("e2e4", True), ("e2e5", False), ("0000", False), ("e9", False)])
def test_an_illegal_move_is_found(conversation, monkeypatch, move, legal):
    monkeypatch.setattr(uci, "GO", ("go depth 1",))
    talk = conversation(move)
    talk.rng.random = lambda: 0.9  # neither endless nor with searchmoves
    if legal:
        talk.go()
        talk.ready()
    else:
        with pytest.raises(FoundError, match="illegal move"):
            talk.go()


def test_an_engine_that_went_away_is_found(conversation, monkeypatch):
    monkeypatch.setattr(uci, "GO", ("go nodes 1",))
    talk = conversation("e2e4")
    talk.rng.random = lambda: 0.9
    with pytest.raises(FoundError, match="no answer: line 1"):
        talk.go()


def test_where_there_is_no_move_the_engine_says_so():
    mated = uci.chess.Board("R6k/6pp/8/8/8/8/8/K7 b - - 0 1")
    assert uci.legal(["0000"], mated)
    assert not uci.legal(["h8g8"], mated)


def test_what_is_left_of_a_bad_line():
    assert (
        uci.board_after("position startpos moves e2e4 zz e7e5").fen()
        == uci.chess.Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1").fen()
    )


# ---- the campaign itself


def campaign(*args, cwd):
    command = [sys.executable, PROJECT / "scripts" / "campaign.py", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
@pytest.mark.timeout(1200)
def test_a_small_campaign(tmp_path):
    done = campaign("--only", "kills: td eager, 0", "--keep", "files", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of " in done.stdout
    assert any(Path(tmp_path, "files").rglob("games_*.pt"))
    with (tmp_path / "results" / "campaign.csv").open(newline="", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["part"], row["case"], row["verdict"]) == ("kills", "td eager, 0", "ok")
    again = campaign("--parts", "words", "--minutes", "0.2", cwd=tmp_path)
    assert "200 of 200 cases" in again.stdout
    more = campaign("--parts", "words", "--minutes", "0.01", cwd=tmp_path)
    assert "200 of 200 cases" not in more.stdout, "what was tried is not tried again"


def test_unknown_parts_are_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["campaign.py", "--parts", "kills,wrods"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(PROJECT / "scripts" / "campaign.py"), run_name="__main__")
    assert "--parts: no wrods here; allowed are kills, damage, words, uci, signals, disk" in capsys.readouterr().err


# ---- signals

TERM = signals.signal.SIGTERM
ENDS = [
    ("train, imports", GOOD._replace(status=-TERM, out=""), "ok"),
    ("evaluate", GOOD._replace(status=128 + TERM), "ok"),
    ("evaluate", GOOD._replace(status=-TERM), "exit status"),
    ("evaluate", GOOD._replace(status=-9, ended=False), "hang"),
    ("evaluate", GOOD._replace(status=-11), "crash"),
    ("evaluate", GOOD._replace(status=128 + TERM, err=TRACEBACK), "traceback"),
    ("evaluate", GOOD._replace(status=0), "exit status"),
    ("evaluate", GOOD._replace(status=128 + TERM, out=""), "no sentence"),
    ("train, training", GOOD._replace(status=128 + TERM), "no checkpoint"),
]


@pytest.mark.parametrize(("moment", "done", "expected"), ENDS)
def test_an_end_by_a_signal_is_judged(tmp_path, moment, done, expected):
    found = "ok"
    try:
        signals.judge(signals.MOMENTS[moment], TERM, done, tmp_path)
    except FoundError as error:
        found = error.verdict
    assert found == expected
