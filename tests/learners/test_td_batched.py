"""engine=batched from the command line: runs, resumed and mixed runs, and what it refuses."""

import csv
import os
import signal
import time

import numpy as np
import pytest
import torch

from rlgames.build import load
from rlgames.evaluate import evaluate
from rlgames.games.tictactoe import TicTacToe
from rlgames.interrupts import Interrupted, asked
from rlgames.learners.td_batched import BatchedTD
from rlgames.train import train
from rlgames.training.assemble import assemble
from tests.support import QUICK, few, last_checkpoint, result

LOCKSTEP = ["engine=batched", "batch=4"]
NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


def equal(a, b):
    """Whether two checkpoints hold the same, but for times and folders."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a if "seconds" not in str(key))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def content(folder):
    saved = last_checkpoint(folder)
    return {key: saved[key] for key in ("games", "network", "optimizer", "rng", "learner", "progress")}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NO_GPU)])
def test_a_run(quick, device):
    """It ends with the first step that finishes enough games, and evaluates as often as others."""
    folder = quick(*LOCKSTEP, "games=40", "eval_every=20", f"device={device}")
    last = result(folder)
    assert 40 <= last["games"] < 44
    rows = list(csv.DictReader((folder / "progress.csv").open()))
    assert len(rows) == 2
    assert 20 <= int(rows[0]["games"]) < 24
    assert 5 <= float(rows[0]["game_length"]) <= 9
    network = last_checkpoint(folder)["network"]
    assert network["embedding.weight"].device.type == "cpu"


@pytest.mark.parametrize("words", few([["learner.lambda_=0.7", "batched.horizon=3"], [], ["optimizer=adam"]]))
def test_a_resumed_run_is_the_uninterrupted_one(quick, words):
    words = [*LOCKSTEP, "eval_every=20", *words]
    whole = quick(*words, "games=40", run_dir="whole")
    parts = quick(*words, "games=20", run_dir="parts")
    quick("resume=parts", "games=40", run_dir=None)
    assert equal(content(whole), content(parts))


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("batch", [4, 64])
def test_a_signal_is_heard_between_two_steps_and_changes_nothing(quick, monkeypatch, batch):
    """One chunk is all the games here; a step is one move in each game of the batch."""
    words = [*LOCKSTEP, f"batch={batch}", "games=400", "eval_every=400"]
    whole, steps, step = quick(*words, run_dir="whole"), [], BatchedTD.step

    def signalled(self, *args):
        step(self, *args)
        steps.append(1)
        if len(steps) == 20:
            os.kill(os.getpid(), signal.SIGTERM)
            while not asked():
                time.sleep(0.001)

    monkeypatch.setattr(BatchedTD, "step", signalled)
    with pytest.raises(Interrupted):
        quick(*words, run_dir="parts")
    assert len(steps) == 20
    quick("resume=parts", run_dir=None)
    assert equal(content(whole), content(whole.with_name("parts")))


def test_a_batch_that_ended_behind_the_total_is_there(quick, capsys):
    """As if the run was killed after its last checkpoint."""
    folder = quick(*LOCKSTEP, "batch=16", "games=21", "eval_every=21")
    assert last_checkpoint(folder)["games"] > 21
    (folder / "result.json").unlink()
    quick("resume=run", run_dir=None)
    assert "already there" in capsys.readouterr().out
    assert result(folder)["status"] == "finished"
    with pytest.raises(ValueError, match="games is 20, but the run to resume has played"):
        quick("resume=run", "games=20", run_dir=None)


def test_a_run_goes_on_with_another_engine_and_back(quick):
    first = quick(*LOCKSTEP, "games=20", "eval_every=20")
    quick("resume=run", "engine=fused", "games=40", run_dir=None)
    assert last_checkpoint(first)["games"] == 40
    assert last_checkpoint(first)["learner"] is None
    quick("resume=run", "engine=batched", "batch=8", "games=60", run_dir=None)
    saved = last_checkpoint(first)
    assert 60 <= saved["games"] < 68
    assert saved["learner"]["batch"] == 8
    assert len(saved["progress"]["rows"]) == 3


@pytest.mark.thorough
def test_evaluation_is_that_of_the_fused_agent(quick):
    folder = quick(*LOCKSTEP, "games=200", "eval_every=200", "evaluation.first=50")
    words = [f"checkpoint={folder}", "opponent=random", "evaluation.first=50", "evaluation.second=0"]
    figures = [evaluate(load(*words, f"engine={engine}", config="evaluate")) for engine in ("fused", "eager")]
    assert figures[0]["scores"] == figures[1]["scores"]
    assert figures[0]["success_first"] > 0.5


BAD = [
    (["optimizer=alpha_bounds"], "engine=batched cannot use AlphaBounds: its weights share one number"),
    (["optimizer=auto_tidbd"], "engine=batched cannot use AutoTIDBD: it looks at the next position"),
    (["optimizer=swift_td"], "engine=batched cannot use SwiftTD: it looks at the next position or keeps"),
    (["learner=q", "game=tictactoe"], "engine=batched needs learner=td, not Q"),
    (["learner.lambda_=0.5", "learner.traces=rr"], "supports only learner.traces=et and res without a threshold"),
    (["learner.lambda_=0.5", "learner.threshold=0.1"], "without a threshold"),
    (["batched.combine=median"], "batched.combine is 'median'; allowed are mean and sum"),
    (
        ["batch=10_000_000_000"],
        r"batch is 10000000000, .* GiB of the .* GiB on cpu; the largest batch that fits is about \d+",
    ),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_what_has_no_meaning_is_refused_with_a_remedy(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    quick = [word for word in QUICK if not word.startswith("evaluation")] if "learner=q" in words else QUICK
    with pytest.raises(ValueError, match=message):
        train(load(*quick, *LOCKSTEP, *words))
    assert not list(tmp_path.iterdir())


def test_a_game_without_tensors(monkeypatch):
    monkeypatch.setattr(TicTacToe, "boards", None)
    with pytest.raises(ValueError, match="needs boards as tensors, which tictactoe lacks; use engine=fused"):
        assemble(load(*QUICK, *LOCKSTEP))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="device is 'cuda', which this machine does not have; available: cpu"):
        train(load(*QUICK, *LOCKSTEP, "device=cuda"))


def test_evaluation_and_play_need_no_batch():
    with pytest.raises(ValueError, match=r"engine is 'batched'.*; the engines are fused, eager here"):
        evaluate(load("checkpoint=nowhere", "engine=batched", config="evaluate"))


def test_memory_that_runs_out_on_the_way():
    parts = assemble(load(*QUICK, *LOCKSTEP))

    def step(agent, epsilon):
        raise torch.OutOfMemoryError

    parts.learner.step = step
    with pytest.raises(ValueError, match="batch is 4, too large for cpu; try batch=2"):
        parts.learner.train(parts.agent, 0, 10, 0.1, np.random.default_rng(0))


def test_values_that_are_not_finite_stop_the_run(quick):
    with pytest.raises(ValueError, match="the values became infinite or NaN"):
        quick(*LOCKSTEP, "network=identity", "optimizer.lr=1e6", "games=400", "eval_every=400")


@pytest.mark.slow
def test_learning_tictactoe_as_well_as_one_game_at_a_time(quick):
    folder = quick(
        "engine=batched", "batch=32", "games=8000", "eval_every=8000", "evaluation.first=500", "evaluation.second=500"
    )
    row = result(folder)["evaluation"]
    assert row["success_first"] >= 0.95
    assert row["success_second"] >= 0.85
