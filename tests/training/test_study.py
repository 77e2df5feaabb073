"""Studies: a row for every run, nothing run twice, nothing lost."""

import csv
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from rlgames.build import load
from rlgames.interrupts import Interrupted
from rlgames.train import train
from rlgames.training.study import COLUMNS, Results, key_of, objective, run_once, variant
from tests.support import DATA, PROJECT

SMALL = [
    *("game=tictactoe", "engine=eager", "opponent=random", "games=20", "eval_every=10"),
    *("evaluation.first=8", "evaluation.second=0"),
]
DOCS = PROJECT / "docs" / "results"
PUBLISHED = DATA / "connect4_tuples_70x8.txt"
STUDIES = {  # what docs/studies.md says besides the words that stand in the rows
    "connect4_fast": ("+experiment=connect4_fast",),
    "connect4_spacing": ("+experiment=connect4_table", "eval_every=10_000"),
    "connect4_table": ("+experiment=connect4_table",),
}


def once(tmp_path, *words, by=train):
    words = [*SMALL, f"results={tmp_path / 'table.csv'}", *words]
    return run_once(load(*words), words, by)


def sweep(tmp_path, *words):
    return [sys.executable, "-m", "rlgames.train", "-m", *SMALL, f"results={tmp_path / 'table.csv'}", *words]


def stopped(games):
    """Training that is stopped after ``games``."""

    def run(cfg, words):
        train(OmegaConf.merge(cfg, {"games": games}), [*words, f"games={games}"])
        raise Interrupted(15)

    return run


def going_on(cfg, words):
    """Training that must not begin anew."""
    assert cfg.resume is not None
    return train(cfg, words)


def never(cfg, words):
    raise AssertionError("it must not run again")


def test_a_finished_run_is_a_row_and_not_run_again(tmp_path):
    row = once(tmp_path, "optimizer=tdl", "seed=3")
    assert once(tmp_path, "optimizer=tdl", "seed=3", by=never) == row
    assert Results(tmp_path / "table.csv").rows() == [row]
    assert (row["seed"], row["status"], row["error"], row["games"]) == ("3", "finished", "", "20")
    assert "optimizer=tdl" in row["words"].split()
    points = [point.split(":") for point in row["curve"].split()]
    assert [games for games, _ in points] == ["10", "20"]
    assert float(row["asymptotic"]) == pytest.approx(sum(float(success) for _, success in points) / 2, abs=1e-4)
    assert not list((tmp_path / "table" / row["key"]).glob("checkpoints"))
    assert (tmp_path / "table" / row["key"] / "progress.csv").is_file()


def test_a_run_that_fails_is_a_row_with_its_error(tmp_path, capsys):
    def fail(cfg, words):
        raise ValueError("the values became infinite\nor NaN")

    row = once(tmp_path, by=fail)
    assert (row["status"], row["error"]) == ("failed", "the values became infinite or NaN")
    assert "failed" in capsys.readouterr().out
    assert once(tmp_path, by=never) == row
    assert once(tmp_path, "seed=1")["status"] == "finished"
    assert len(Results(tmp_path / "table.csv").rows()) == 2


def test_a_stopped_run_goes_on_from_its_checkpoint(tmp_path):
    straight = once(tmp_path / "a", "optimizer=tcl")
    with pytest.raises(Interrupted):
        once(tmp_path / "b", "optimizer=tcl", by=stopped(10))
    assert not Results(tmp_path / "b" / "table.csv").rows()
    row = once(tmp_path / "b", "optimizer=tcl", by=going_on)
    assert row["curve"] == straight["curve"]


def test_a_run_stopped_before_its_first_checkpoint_begins_again(tmp_path):
    words = "optimizer=tcl", "checkpoint_at_evaluations=false"
    with pytest.raises(Interrupted):
        once(tmp_path, *words, by=stopped(10))
    for file in (tmp_path / "table").rglob("games_*10.pt"):
        file.unlink()
    assert once(tmp_path, *words)["status"] == "finished"


def test_a_run_stopped_after_its_last_game_is_not_played_again(tmp_path, monkeypatch):
    with pytest.raises(Interrupted):
        once(tmp_path, by=stopped(20))
    monkeypatch.setattr("rlgames.training.trainer.Trainer._learn", never)
    row = once(tmp_path, by=going_on)
    assert (row["status"], row["games"]) == ("finished", "20")
    assert len(row["curve"].split()) == 2


def test_keys_name_what_decides_a_run():
    cfg = load(*SMALL)
    for word in (
        "results=x.csv",
        "run_dir=x",
        "checkpoint_minutes=3",
        "checkpoint_at_evaluations=false",
        "checkpoints_kept=0",
    ):
        assert key_of(load(*SMALL, word)) == key_of(cfg)
    for word in ("seed=1", "games=21", "optimizer.lr=0.5", "evaluation.first=9"):
        assert key_of(load(*SMALL, word)) != key_of(cfg)
    words = [
        "+experiment=connect4_table",
        "optimizer=tdl",
        "seed=3",
        "+learner.lambda_=0.5",
        "games=5",
        "results=x.csv",
    ]
    assert variant(words) == ["optimizer=tdl", "learner.lambda_=0.5"]


def test_what_sweepers_make_small():
    assert objective({"games_to_80": 300_000, "games": 1_000_000}) == 300_000
    assert objective({"games_to_80": "300000", "games": "1000000"}) == 300_000
    assert objective({"games_to_80": "", "games": "1000000"}) == objective({"games_to_80": None, "games": 10**6}) == 2e6
    assert objective(None) == float("inf")


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\xff\xfe\x00", b'"', b"key,words\n"])
def test_a_foreign_results_file_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"results .*table\.csv (is not a file of results|cannot be read)"):
        once(tmp_path, by=never)
    assert file.read_bytes() == content


def test_a_results_file_is_a_csv_file(tmp_path):
    with pytest.raises(ValueError, match=r"results is .*; it must be a \.csv file"):
        Results(tmp_path / "table.txt")


@pytest.mark.thorough
def test_two_processes_share_a_study(tmp_path):
    command = sweep(tmp_path, "seed=0,1", "optimizer=tdl,tcl")
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=250)
        assert process.returncode == 0, errors
    rows = Results(tmp_path / "table.csv").rows()
    assert sorted((row["seed"], row["words"].split()[-1]) for row in rows) == sorted(
        (seed, f"optimizer={rule}") for seed in "01" for rule in ("tdl", "tcl")
    )
    assert all(row["status"] == "finished" for row in rows)


@pytest.mark.skipif(not find_spec("hydra_plugins.hydra_joblib_launcher"), reason="hydra-joblib-launcher is missing")
@pytest.mark.thorough
def test_a_study_runs_side_by_side_by_joblib(tmp_path):
    command = sweep(tmp_path, "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(row["seed"] for row in Results(tmp_path / "table.csv").rows()) == ["0", "1"]


def test_options_that_are_off_leave_the_name_of_a_run():
    cfg = load("game=tictactoe")
    more = load("game=tictactoe", "+new=null", "+learner.newer=false")
    assert key_of(more) == key_of(cfg)
    assert key_of(load("game=tictactoe", "+learner.newer=true")) != key_of(cfg)
    assert key_of(load("game=tictactoe", "learner.lambda_=0.5")) != key_of(cfg)


def test_every_results_file_in_the_documents_is_looked_through():
    headers = {file.stem: next(csv.reader(file.open(encoding="utf-8"))) for file in DOCS.glob("*.csv")}
    assert {name for name, header in headers.items() if "key" in header} == set(STUDIES)
    assert all(tuple(headers[name]) == COLUMNS for name in STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_every_row_in_the_documents_is_found(name, tmp_path, monkeypatch):
    results = Results(DOCS / f"{name}.csv")
    rows = results.rows()
    assert rows
    if any("tuples70.txt" in row["words"] for row in rows):
        if not PUBLISHED.exists():
            pytest.skip("the published tuples are not here")
        shutil.copy(PUBLISHED, tmp_path / "tuples70.txt")
    monkeypatch.chdir(tmp_path)
    for row in rows:
        cfg = load(*STUDIES[name], *row["words"].split(), f"games={row['games']}")
        cfg.seed = int(row["seed"])
        assert results.find(key_of(cfg)) == row


def moved(node):
    """The configuration ``node`` with every class in another module."""
    if isinstance(node, list):
        return [moved(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {name: moved(value) for name, value in node.items()}
    return kept | ({"_target_": f"new.place.{node['_target_'].split('.')[-1]}"} if "_target_" in node else {})


@pytest.mark.parametrize(
    "words",
    [
        ("optimizer=tcl_exp", "learner.epsilon={_target_: rlgames.schedules.Linear, start: 0.3, end: 0.1, games: 9}"),
        ("+experiment=chess_td_leaf",),
        ("+mine=[{_target_: a.b.Part, size: 1}]",),
    ],
)
def test_keys_name_classes_without_their_modules(words):
    cfg = load(*words)
    elsewhere = OmegaConf.create(moved(OmegaConf.to_container(cfg, resolve=True)))
    assert elsewhere != cfg
    assert key_of(elsewhere) == key_of(cfg)


@pytest.mark.parametrize("part", ["optimizer", "learner.epsilon", "mine.0"])
def test_another_class_has_another_key(part):
    cfg = load("learner.epsilon={_target_: a.Linear, start: 1}", "+mine=[{_target_: a.Part}]")
    other = OmegaConf.merge(cfg)
    OmegaConf.select(other, part)["_target_"] += "2"
    assert key_of(other) != key_of(cfg)


def key_with(path, value):
    cfg = load("+experiment=chess_td_leaf") if "openings" in path else load("game=connect4")
    OmegaConf.update(cfg, path, value)
    return key_of(cfg)


def test_tuples_count_by_their_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("0 1 2\n7, 8, 9\n", encoding="utf-8")
    Path("deep").mkdir()
    Path("deep/b.text").write_text("# the same\n0,1,2 # first\n\n7 8 9", encoding="utf-8")
    Path("c.txt").write_text("0 1 2\n7 8 10\n", encoding="utf-8")
    same = {key_with("features.tuples", v) for v in ("a.txt", str(tmp_path / "deep/b.text"), [[0, 1, 2], [7, 8, 9]])}
    assert len(same) == 1
    others = {key_with("features.tuples", v) for v in ("c.txt", [[7, 8, 9], [0, 1, 2]], [[0, 1, 2]], None)}
    assert len(same | others) == 5
    Path("a.txt").write_text("0 1 2\n", encoding="utf-8")
    assert key_with("features.tuples", "a.txt") == key_with("features.tuples", [[0, 1, 2]])


@pytest.mark.parametrize("path", ["learner.self_play.openings.file", "evaluation.openings.file"])
def test_openings_count_by_their_content(path, tmp_path):
    files = [tmp_path / name for name in ("a.epd", "b.epd", "c.epd")]
    for file, content in zip(
        files, ("8/8/4k3/8/8/4K3/4P3/8 w - -\n",) * 2 + ("8/8/4k3/8/8/4K3/4P3/8 b - -\n",), strict=True
    ):
        file.write_text(content, encoding="utf-8")
    one, same, other = (key_with(path, str(file)) for file in files)
    assert one == same
    assert len({one, other, key_with(path, None)}) == 3
    with pytest.raises(FileNotFoundError):
        key_with(path, str(tmp_path / "none.epd"))


def test_where_solved_positions_are_kept_does_not_count():
    assert key_with("opponent.cache", "/somewhere") == key_with("opponent.cache", None)


def test_tuples_that_are_missing_are_one_sentence_and_no_row(tmp_path):
    with pytest.raises(ValueError, match=r"^features\.tuples: no such file .*none\.txt$"):
        once(tmp_path, f"features.tuples={tmp_path / 'none.txt'}", by=never)
    assert not Results(tmp_path / "table.csv").rows()


def test_a_stopped_run_goes_on_after_its_tuples_were_moved(tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("0 1 2\n0 4 8\n", encoding="utf-8")
    with pytest.raises(Interrupted):
        once(tmp_path, f"features.tuples={old}", by=stopped(10))
    old.rename(new)
    assert once(tmp_path, f"features.tuples={new}", by=going_on)["status"] == "finished"
