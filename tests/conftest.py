import json

import pytest
import torch

from rlgames.build import load
from rlgames.train import train

QUICK = [
    "game=tictactoe",
    "engine=eager",
    "games=12",
    "eval_every=4",
    "opponent=random",
    "evaluation.first=2",
    "evaluation.second=0",
]


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Runs a very small training in a folder of its own: ``quick("games=4", run_dir="a")`` returns the run folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words, run_dir="run"):
        if not any(word.startswith("resume=") for word in words):
            words = [*QUICK, *words]
        if run_dir:
            words = [*words, f"run_dir={run_dir}"]
        train(load(*words), list(words))
        return tmp_path / (run_dir or "run")

    return run


def last_checkpoint(folder):
    return torch.load(sorted((folder / "checkpoints").glob("*.pt"))[-1], weights_only=True)


def result(folder):
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    return json.loads((folder / "result.json").read_text(), parse_constant=refuse)
