"""The figures and tables of a study come from its results file alone."""

import json
import runpy
import subprocess
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgames.training.study import COLUMNS, Results
from tests.support import PROJECT

SCRIPT = PROJECT / "scripts" / "figures.py"
pytest.importorskip("matplotlib")


def row(words, seed, to_80, **more):
    curve = " ".join(f"{games}:{min(0.9, games / 1e6):.2f}" for games in range(100_000, 1_000_001, 100_000))
    known = {
        "key": f"{words}{seed}",
        "words": words,
        "seed": str(seed),
        "status": "finished",
        "games": "1000000",
        "games_to_80": str(to_80),
        "asymptotic": "0.9",
        "train_cpu_seconds": "100",
        "curve": curve,
    }
    return dict.fromkeys(COLUMNS, "") | known | more


@pytest.fixture
def figures(monkeypatch, capsys):
    """Runs the script in this process: what it prints, and with what it ends (None: well)."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, args)])
        end = None
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as stop:
            end = stop.code
        return capsys.readouterr().out, end

    return run


def test_table_and_figures(figures, tmp_path):
    results = Results(tmp_path / "table.csv")
    for seed, games in enumerate((300_000, 340_000, 380_000, 420_000, 460_000)):
        results.add(row("evaluation=published optimizer=tcl_exp", seed, games))
    for seed, games in enumerate((500_000, "", "")):
        results.add(row("evaluation=published optimizer=smd", seed, games))
    for seed, games in enumerate((600_000, "", 500_000, 540_000, 520_000)):
        results.add(row("evaluation=published optimizer=tdl", seed, games))
    results.add(row("optimizer=k1 evaluation=published", 0, "", status="failed", error="NaN", curve=""))
    out, end = figures(tmp_path / "table.csv", "--out", tmp_path / "out")
    assert end is None
    lines = {line.split("|")[1].strip(): line for line in out.splitlines() if line.startswith("|")}
    assert "| 340 / 380 / 420 | 324 / 382 / 432 | inside |" in lines["tcl_exp"]
    assert "| 10,000 |" in lines["tcl_exp"]
    assert "| inside | 800 | above |" in lines["tcl_exp"]
    assert "| 0.900 | 0.878 |" in lines["tcl_exp"], "the published curve half-way between its points"
    assert "| never [- to -] | never / never / never | 287 / 317 / 349 | above |" in lines["smd"]
    assert "| 540 [- to -] | 520 / 540 / 600 | 512 / 557 / 619 | inside |" in lines["tdl"], "one of five never"
    assert "0, 1 failed" in lines["k1"]
    names = {"table.md", "table_curves.png", "table_boxes.png", "transfer_functions.png"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == names
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in (tmp_path / "out").glob("*.png"))


@pytest.mark.thorough
def test_sensitivity(figures, tmp_path):
    results = Results(tmp_path / "lr.csv")
    for lr in (0.001, 0.01, 0.1):
        results.add(row(f"optimizer=tdl optimizer.lr={lr}", 0, 400_000))
    _, end = figures(tmp_path / "lr.csv", "--over", "optimizer.lr", "--out", tmp_path / "out")
    assert end is None
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["lr_sensitivity.png"]


def test_a_file_without_runs_is_one_sentence(figures, tmp_path):
    assert "does not exist or holds no runs" in figures(tmp_path / "none.csv")[1]
    (tmp_path / "foreign.csv").write_text("a,b\n1,2\n")
    assert "is not a file of results" in figures(tmp_path / "foreign.csv")[1]


@pytest.mark.thorough
def test_a_ladder(tmp_path):
    players = ["games_000000000400.pt", "start", "games_000000001200.pt"]
    content = {
        "names": players,
        "ratings": [{"elo": elo, "low": elo - 30, "high": elo + 40} for elo in (100.0, -50.0, -50.04)],
        "wins": [[0, 5, 6], [1, 0, 2], [2, 3, 0]],
        "games": [[0, 10, 10], [10, 0, 10], [10, 10, 0]],
    }
    (tmp_path / "ladder.json").write_text(json.dumps(content))
    command = [sys.executable, str(SCRIPT.with_name("ladder.py")), str(tmp_path / "ladder.json")]
    words = ["--against", "start", "--run", str(tmp_path)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    expected = [
        "start,0.0,-30.0,40.0,7.5,20",
        "400 games,150.0,120.0,190.0,14.0,20",
        '"1,200 games",-0.0,-30.0,40.0,8.5,20',
    ]
    assert done.stdout.splitlines()[1:] == expected
    assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, round(e.value)) for e in events.Scalars("ladder/elo")] == [(0, 0), (400, 150), (1200, 0)]
    assert [e.step for e in events.Images("ladder")] == [1200]
    done = subprocess.run([*command, "--against", "nobody"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.thorough
def test_curves_of_batches(tmp_path):
    command = [sys.executable, str(SCRIPT.with_name("batched_curve.py")), "--csv", str(tmp_path / "rows.csv")]
    measure = ["--batches", "2,8", "--seconds", "0.2", "--every", "0.1", "--target", "2"]
    words = ["game=tictactoe", "opponent=random", "evaluation.first=2"]
    subprocess.run([*command, *measure, *words], check=True)
    batches = [line.partition(",")[0] for line in (tmp_path / "rows.csv").read_text().splitlines()]
    assert set(batches) == {"batch", "2", "8"}
    subprocess.run([*command, "--plot", str(tmp_path / "curves.png")], check=True)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
