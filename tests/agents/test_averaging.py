"""The mean of the weights: what it is of, that learning goes on without it, and that it is what plays afterwards."""

import math

import pytest
import torch

from rlgames.build import load
from rlgames.train import train
from rlgames.training.restore import restore
from tests.support import few, last_checkpoint

RUN = ["games=40", "eval_every=20", "average_from=20", "checkpoints_kept=0"]


def weight(state):
    return state["embedding.weight"]


def test_the_mean_is_that_of_the_samples_and_one_that_forgets(quick):
    """Beside a run that saves its weights wherever a sample is taken: every 2 games from game 20 on."""
    run = last_checkpoint(quick(*RUN))
    steps = quick("games=40", "eval_every=2", "checkpoints_kept=0", run_dir="steps")
    files = sorted((steps / "checkpoints").glob("*.pt"))
    weights = [weight(torch.load(file, weights_only=True)["network"]) for file in files if int(file.stem[6:]) >= 20]
    assert run["average"]["samples"] == len(weights) == 11
    torch.testing.assert_close(weight(run["average"]["network"]), torch.stack(weights).mean(0))
    assert torch.equal(weight(run["network"]), weights[-1]), "learning goes on with the last weights"
    assert not torch.equal(weight(run["network"]), weight(run["average"]["network"]))
    run = last_checkpoint(quick(*RUN, "average_over=10", run_dir="forgets"))
    mean = weights[0]  # of which every sample leaves exp(-2 / 10)
    for w in weights[1:]:
        mean = math.exp(-0.2) * mean + (1 - math.exp(-0.2)) * w
    torch.testing.assert_close(weight(run["average"]["network"]), mean)


@pytest.mark.parametrize("engine", few(["eager", "fused", "batched"]))
def test_evaluation_and_play_take_the_mean(quick, monkeypatch, engine):
    seen = []
    monkeypatch.setattr(
        "rlgames.evaluation.matches.Evaluation.records",
        lambda self, greedy, rng: seen.append(weight(greedy.agent.network.state_dict()).clone()) or {},
    )
    folder = quick(*RUN, f"engine={engine}", "batch=2")
    saved = last_checkpoint(folder)
    assert torch.equal(seen[-1], weight(saved["average"]["network"]))
    assert not torch.equal(seen[-1], weight(saved["network"]))
    restored = restore(folder)
    assert torch.equal(weight(restored.parts.network.state_dict()), seen[-1])


@pytest.mark.parametrize("engine", few(["eager", "fused"]))
def test_a_resumed_run_is_the_uninterrupted_one(quick, engine):
    words = [f"engine={engine}", *RUN, "eval_every=10"]
    whole = last_checkpoint(quick(*words, run_dir="whole"))
    parts = quick(*words, "games=30", run_dir="parts")
    quick("resume=parts", "games=40", run_dir=None)
    parts = last_checkpoint(parts)
    for state in (lambda saved: saved["network"], lambda saved: saved["average"]["network"]):
        assert torch.equal(weight(state(whole)), weight(state(parts)))
    assert whole["average"]["samples"] == parts["average"]["samples"] == 21


def test_where_it_has_no_meaning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="average_from is -1; it must be null or a whole number of at least 0"):
        train(load("game=tictactoe", "average_from=-1"))
    for words in (["average_over=0", "average_from=9"], ["average_over=5"]):
        with pytest.raises(ValueError, match=r"average_over is .; it must be null or a number above 0, beside"):
            train(load("game=tictactoe", *words))
    words = ["+experiment=tictactoe_q", "average_from=0"]
    with pytest.raises(ValueError, match="average_from is for learner=td"):
        train(load(*words), words)
    assert not list(tmp_path.iterdir())
