import csv
import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlgames.build import load
from rlgames.console.progress import ProgressBar
from rlgames.evaluation.evaluation import Measure
from rlgames.interrupts import SIGNALS, Interrupted
from rlgames.train import train
from rlgames.training import records, trainer
from tests.support import QUICK, few, last_checkpoint, result

SCHEDULES = [
    "learner.epsilon={_target_:rlgames.schedules.Linear,start:0.5,end:0.0,games:20}",
    "learner.lr={_target_:rlgames.schedules.Exponential,start:1.0,end:0.5,games:10}",
]


def claimed(cfg):
    with records.claimed_folder(cfg, "tictactoe") as folder:
        return folder


def rows(folder):
    with (folder / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def assert_equal(a, b):
    """The same, to the last bit."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    else:
        assert a == b


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The folder of an uninterrupted run, to look at."""
    folder = tmp_path_factory.mktemp("finished") / "straight"
    train(load(*QUICK, f"run_dir={folder}"))
    return folder


@pytest.fixture
def finished(straight, tmp_path, monkeypatch):
    """A copy of it that is called run, in the folder in which ``quick`` works."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(straight, tmp_path / "run")


def assert_same_player(one, other):
    for part in ("network", "optimizer", "rng", "games"):
        assert_equal(last_checkpoint(one)[part], last_checkpoint(other)[part])


def test_a_run_folder_holds_all_that_is_promised(straight):
    folder = straight
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"config", "versions", "progress", "result", "checkpoints", "events"}
    assert [row["games"] for row in rows(folder)] == ["4", "8", "12"]
    columns = {
        "wall_seconds",
        "cpu_seconds",
        "evaluation_cpu_seconds",
        "moves",
        "game_length",
        "td_error",
        "epsilon",
        "lr",
    }
    assert columns | {"success_first", "low_first", "high_first"} <= set(rows(folder)[0])
    final = result(folder)
    assert final["status"] == "finished"
    assert final["games"] == 12
    assert final["versions"]["torch"]
    assert {"commit", "python"} <= set(final["versions"])
    assert {"games_to_80", "games_to_90"} <= set(final)
    assert final["config"]["network"]["seed"] == 0  # resolved
    assert not list(folder.rglob("*.tmp"))


def test_three_lines_at_the_end(quick, capsys):
    quick()
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\r" not in out
    success, games, commands = out.splitlines()[-3:]
    assert "95 % interval" in success
    assert games.startswith("games to 80 %: ")
    for command in ("tensorboard --logdir run", "rlgames.evaluate checkpoint=run", "rlgames.train resume=run games=24"):
        assert command in commands


@pytest.mark.parametrize(
    "words",
    few(
        [
            ["optimizer=tdl", *SCHEDULES],
            ["optimizer=tcl_exp"],
            ["optimizer=adam"],
            ["optimizer=sgd", "+optimizer.momentum=0.5", "network.sparse=false"],
            ["engine=fused", *SCHEDULES],
        ]
    ),
    ids=lambda words: words[0],
)
def test_resumed_equals_uninterrupted(quick, words):
    straight = quick(*words, run_dir="straight")
    quick(*words, "games=8", run_dir="resumed")
    resumed = quick("resume=resumed", "games=12", run_dir=None).with_name("resumed")
    assert_same_player(straight, resumed)
    for one, other in zip(rows(straight), rows(resumed), strict=True):
        assert {k: v for k, v in one.items() if "seconds" not in k} == {
            k: v for k, v in other.items() if "seconds" not in k
        }


def test_chunks_and_evaluations_do_not_change_training(quick, monkeypatch):
    one = quick("engine=fused", "games=23")
    monkeypatch.setattr(trainer, "CHUNK", {"fused": 3})
    other = quick("engine=fused", "games=23", "eval_every=7", run_dir="other")
    assert_same_player(one, other)


def test_seeds_make_different_runs(quick, straight):
    same, other = quick(run_dir="b"), quick("seed=1", run_dir="c")
    assert_same_player(straight, same)
    assert last_checkpoint(same)["rng"] != last_checkpoint(other)["rng"]


@pytest.mark.parametrize("signum", few(SIGNALS))
def test_a_signal_leaves_a_checkpoint(quick, straight, tmp_path, monkeypatch, signum):
    update = ProgressBar.update

    def killed(self, games, *args):
        update(self, games, *args)
        if games == 6:
            os.kill(os.getpid(), signum)

    monkeypatch.setattr(trainer, "CHUNK", {"eager": 2})
    monkeypatch.setattr(ProgressBar, "update", killed)
    with pytest.raises(Interrupted) as stopped:
        quick()
    assert stopped.value.signum == signum
    monkeypatch.setattr(ProgressBar, "update", update)
    folder = tmp_path / "run"
    assert last_checkpoint(folder)["games"] == 6
    assert result(folder)["status"] == "interrupted"
    assert [row["games"] for row in rows(folder)] == ["4"]
    quick("resume=run", run_dir=None)
    assert_same_player(straight, folder)
    assert [row["games"] for row in rows(folder)] == ["4", "8", "12"]


def test_signals_are_handed_back(quick):
    before = signal.getsignal(signal.SIGTERM)
    quick()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("engine", ["eager", "fused"])
def test_values_that_are_not_finite_stop_the_run(quick, engine):
    with pytest.raises(ValueError, match=r"infinite or NaN (in|by) game \d+.*no checkpoint") as stopped:
        quick("network=identity", "optimizer.lr=1e6", "games=400", "eval_every=400", f"engine={engine}")
    assert "optimizer.lr" in str(stopped.value)


def test_a_full_disk_loses_nothing(quick, tmp_path, monkeypatch):
    quick("games=4")
    before = last_checkpoint(tmp_path / "run")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        save = trainer.checkpoint.save
        patch.setattr(trainer.checkpoint, "save", lambda *args: (patch.setattr(os, "fsync", full), save(*args)))
        with pytest.raises(OSError, match=r"No space left.*games_0+8\.pt"):
            quick("resume=run", "games=8", run_dir=None)
    assert_equal(last_checkpoint(tmp_path / "run"), before)
    assert not list((tmp_path / "run").rglob("*.tmp"))


def test_a_full_disk_under_the_events_names_them(quick, tmp_path, monkeypatch, capfd):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rlgames.training.events.RecordWriter.write", full)
    with pytest.raises(OSError, match=r"No space left on device: .*run/events.out.tfevents"):
        quick()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("lr", ["1e6", "-"])
def test_step_sizes_outside_the_bins_do_not_end_a_run(quick, monkeypatch, lr):
    """The largest that are allowed, and not finite ones."""
    if lr == "-":
        sizes = torch.tensor([0.1, float("nan"), float("inf")])
        monkeypatch.setattr(trainer.records, "step_sizes", lambda _: sizes)
        words = []
    else:
        words = ["optimizer=tcl", f"optimizer.lr={lr}"]
    assert result(quick(*words))["status"] == "finished"


def test_a_schedule_that_will_leave_its_range_is_refused_at_once(quick, tmp_path):
    falling = "learner.epsilon={_target_: rlgames.schedules.Linear, start: 0.5, end: -0.5, games: 100}"
    with pytest.raises(ValueError, match=r"learner\.epsilon is -0.\d+ at game \d+"):
        quick(falling, "games=90", "eval_every=90")
    assert not list(tmp_path.iterdir())
    quick(falling, "games=40", "eval_every=40")
    with pytest.raises(ValueError, match=r"learner\.epsilon is -0.\d+ at game \d+"):
        quick("resume=run", "games=90", run_dir=None)


def test_a_broken_pipe_leaves_a_checkpoint(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(trainer, "CHUNK", {"eager": 2})

    def update(self, games, *_):
        if games == 6:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(ProgressBar, "update", update)
    with pytest.raises(Interrupted) as stopped:
        quick()
    assert stopped.value.signum == 13
    assert last_checkpoint(tmp_path / "run")["games"] == 6


def stop(monkeypatch, at):
    """Let a signal come in the evaluation after ``at`` games."""
    measure = trainer.Trainer._measure

    def stopped(self):
        if self.progress.games == at:
            os.kill(os.getpid(), signal.SIGTERM)
        measure(self)

    return monkeypatch.setattr(trainer.Trainer, "_measure", stopped)


@pytest.mark.parametrize("at", [4, 12])
def test_a_signal_in_an_evaluation_leaves_a_checkpoint_that_goes_on_with_it(
    quick, straight, tmp_path, monkeypatch, capsys, at
):
    with monkeypatch.context() as patch:
        stop(patch, at)
        with pytest.raises(Interrupted):
            quick()
    done = "4 of 12 games" if at == 4 else "all 12 games, in the evaluation"
    assert capsys.readouterr().out.endswith(
        f"stopped by SIGTERM after {done}; resume: python -m rlgames.train resume=run\n"
    )
    folder = tmp_path / "run"
    assert last_checkpoint(folder)["games"] == at
    assert result(folder)["status"] == "interrupted"
    quick("resume=run", run_dir=None)
    assert_same_player(straight, folder)
    assert [row["games"] for row in rows(folder)] == ["4", "8", "12"]
    assert result(folder)["status"] == "finished"


@pytest.mark.parametrize("how", ["the same words", "resume"])
def test_a_run_stopped_before_its_first_checkpoint_begins_again(quick, straight, tmp_path, monkeypatch, how):
    with monkeypatch.context() as patch:  # as if it was killed
        patch.setattr(trainer.Trainer, "_save", lambda _: os.close(-1))
        with pytest.raises(OSError, match="Bad file"):
            quick()
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / ".games_000000000004.pt.77.tmp").write_bytes(b"half")
    quick("resume=run", run_dir=None) if how == "resume" else quick()
    assert_same_player(straight, folder)
    assert len(list(folder.glob("events*"))) == 1
    assert not list(folder.rglob(".*"))


def test_a_folder_with_something_of_yours_is_left_alone(quick, tmp_path):
    for name in ("config.yaml", "notes.txt"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(ValueError, match="is not empty"):
        quick()
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [[], ["resume=run"]])
def test_a_run_folder_belongs_to_one_process(quick, finished, tmp_path, words):
    """Another process holds it; a dead one does not."""
    hold = "with owned(Path('run')): print(1, flush=True); time.sleep(60)"
    code = f"import time\nfrom pathlib import Path\nfrom rlgames.training.files import owned\n{hold}"
    other = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    other.stdout.readline()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"another process is using .*run; wait until it ends"):
        quick(*words, "games=16", run_dir=None if words else "run")
    assert sorted(tmp_path.rglob("*")) == before
    other.kill()
    other.wait()
    if words:
        quick(*words, "games=16", run_dir=None)
        assert last_checkpoint(tmp_path / "run")["games"] == 16


def test_what_a_killed_process_was_writing_is_removed(quick, finished):
    folder = finished
    for name in ("checkpoints/.games_0012.pt.tmp", "checkpoints/.games_0014.pt.9.tmp", ".result.json.9.tmp"):
        (folder / name).write_bytes(b"half")
    quick("resume=run", "games=16", run_dir=None)
    assert not list(folder.rglob(".*"))


def test_a_run_folder_is_not_used_twice(quick, finished):
    with pytest.raises(ValueError, match=r"run_dir .*run is not empty"):
        quick()


def test_runs_of_one_second_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = load(*QUICK)
    assert len({claimed(cfg) for _ in range(3)}) == 3


def test_events_have_each_step_once(quick, tmp_path):
    quick("games=6")  # the points of games 5 and 6 are written again after resuming from game 4
    (tmp_path / "run" / "checkpoints" / "games_000000000006.pt").unlink()
    quick("resume=run", "games=12", run_dir=None)
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    scalars = events.Tags()["scalars"]
    assert {"train/td_error", "train/game_length", "train/epsilon", "train/lr", "evaluation/success_first"} <= set(
        scalars
    )
    assert "train/games_per_second" in scalars
    for tag in scalars:
        steps = [event.step for event in events.Scalars(tag)]
        assert steps == sorted(set(steps))
        assert len(steps) <= 12
    assert [event.step for event in events.Scalars("evaluation/success_first")] == [4, 8, 12]
    assert "optimizer/step_size" in events.Tags()["histograms"]
    assert events.Tags()["tensors"]  # the sample game
    assert not [path for path in (tmp_path / "run").iterdir() if path.is_dir() and path.name != "checkpoints"]


def test_training_twice_in_one_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        assert train(load(*QUICK, "games=4", f"seed={seed}"))["status"] == "finished"


@pytest.mark.parametrize(
    ("rates", "games"),
    [([0.5, 0.9, 0.5, 0.5, 0.9, 0.9], 50), ([0.9], 10), ([0.9, 0.1, 0.1], None), ([], None), ([0.1, 0.1, 0.8], 30)],
)
def test_games_to_a_level_are_smoothed(rates, games):
    table = [{"games": 10 * (k + 1), "success": rate} for k, rate in enumerate(rates)]
    assert records.games_to(80, table, Measure("success", "success")) == games
    lost = [{"games": row["games"], "lost": 1000 * (1 - row["success"])} for row in table]
    fewer = Measure("lost", "lines lost", percent=False, more_is_better=False)
    assert records.games_to(200.0001, lost, fewer) == games
    assert fewer.shown({"lost": 7}) == "lines lost 7"


def test_json_is_strict():
    assert (
        records.to_json({"a": float("nan"), "b": [float("inf"), 1]})
        == b'{\n  "a": null,\n  "b": [\n    null,\n    1\n  ]\n}\n'
    )


def test_commands_are_quoted(tmp_path):
    assert "'resume=\"" in records.next_commands(tmp_path / "a=b c", 5)


def test_a_schedule_that_a_rule_ignores_is_noted(quick, capsys):
    falling = "learner.lr={_target_: rlgames.schedules.Linear, start: 1.0, end: 0.5, games: 12}"
    quick("optimizer=idbd", falling, run_dir="a")
    assert "note: learner.lr has no effect on IDBD" in capsys.readouterr().out
    quick("optimizer=tcl", falling, run_dir="b")
    assert "note:" not in capsys.readouterr().out


def test_steps_that_symmetric_boards_multiply_are_noted(quick, capsys):
    quick("optimizer=elk1", "games=4", run_dir="a")
    assert "note: ELK1 with optimizer.extra_x multiplies its steps by up to 8 on symmetric" in capsys.readouterr().out
    quick("optimizer=elk1", "optimizer.extra_x=false", "games=4", run_dir="b")
    quick("optimizer=k1", "games=4", run_dir="c")
    assert "note:" not in capsys.readouterr().out


@pytest.mark.thorough
def test_steps_that_symmetric_boards_multiply_end_a_run_that_says_what_to_lower(quick):
    with pytest.raises(
        ValueError, match=r"in game .* lower optimizer.lr or optimizer.theta, or set optimizer.extra_x to"
    ):
        quick("optimizer=elk1", "engine=fused", "games=1000", "eval_every=1000", run_dir="a")
    quick("optimizer=elk1", "optimizer.extra_x=false", "engine=fused", "games=1000", "eval_every=1000", run_dir="b")


def test_a_step_size_out_of_all_proportion_is_noted(quick, capsys):
    quick("optimizer=tcl", "optimizer.lr=1e4", "games=2", "eval_every=2")
    assert "note: optimizer.lr is 10000" in capsys.readouterr().out


def test_events_tell_how_many_weights_have_learned(quick):
    events = EventAccumulator(str(quick("optimizer=alpha_bounds")))
    events.Reload()
    shares = [event.value for event in events.Scalars("optimizer/active_share")]
    assert 0 < shares[0] <= shares[-1] < 1
    peaks, sizes = (events.Scalars(f"optimizer/{name}")[-1].value for name in ("peak", "step_size"))
    assert sizes == pytest.approx(1 / peaks)
