import copy
import functools
import json
from typing import Any, NamedTuple

import pytest
import torch
from hydra.utils import get_class
from omegaconf import OmegaConf

import rlgames.build
from rlgames.build import CONF, load
from rlgames.optim import StepSize
from rlgames.train import train


@functools.cache
def _composed(config, words, compose=rlgames.build.compose):
    return compose(config, overrides=list(words))


# Composing takes Hydra 0.15 s, and many tests ask for the same words.
rlgames.build.compose = lambda config, overrides: copy.deepcopy(_composed(config, tuple(overrides)))


CHESS = ("chess_features", "chess_search", "contest", "match", "search_eager", "td_leaf", "uci")
SHARED_CODE = {
    **dict.fromkeys((f"test_{name}" for name in CHESS), "chess"),
    **dict.fromkeys(("test_averaging", "test_checkpoint", "test_lookahead", "test_train"), "small runs"),
    **dict.fromkeys(("test_connect4", "test_games"), "random games"),
    "test_compiled": "fused tcl_exp",
    "test_td": "fused tcl_exp",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that need the same machine code go to one process: else two would make it at the same time."""
    for item in items:
        group = SHARED_CODE.get(item.path.stem)
        if item.path.stem == "test_fused":
            group = f"fused {item.callspec.params.get('name') if hasattr(item, 'callspec') else ''}"
        elif "chess" in item.name or "ladder" in item.name:
            group = "chess"
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


class Optimizer(NamedTuple):
    """A file of conf/optimizer."""

    cls: Any
    hyper: dict[str, Any]
    unit: str


def _optimizers():
    for file in sorted((CONF / "optimizer").glob("*.yaml")):
        text = OmegaConf.load(file)
        if "defaults" in text:  # builds on another file
            text = load(f"optimizer={file.stem}")
        node = text.get("optimizer", text)
        hyper = {str(key): number for key, number in node.items() if not str(key).startswith("_")}
        yield (
            file.stem,
            Optimizer(get_class(node["_target_"]), hyper, OmegaConf.select(text, "network.output", default="tanh")),
        )


OPTIMIZERS = dict(_optimizers())
RULES = {name: optimizer for name, optimizer in OPTIMIZERS.items() if issubclass(optimizer.cls, StepSize)}

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
