"""Compiled learning equals plain torch: whole games in float64, weights, state and random stream, for every rule."""

import numpy as np
import pytest
import torch
from hydra.utils import get_class

from rlgames.agents import Eager, Fused
from rlgames.build import CONF, load
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.network import ValueNetwork
from rlgames.optim import StepSize

GAMES = 20
TUPLES = [[0, 1, 6, 7], [12, 18, 24, 30], [3, 8, 13, 18], [20, 21, 26, 27], [36, 37, 31, 24], [5, 11, 17, 23]]


def rules():
    """Name, class, hyper-parameters and unit of each conf/optimizer file that is a rule."""
    for file in sorted((CONF / "optimizer").glob("*.yaml")):
        cfg = load(f"optimizer={file.stem}")
        cls = get_class(cfg.optimizer["_target_"])
        if issubclass(cls, StepSize):
            yield file.stem, cls, {str(k): v for k, v in cfg.optimizer.items() if not str(k).startswith("_")}


CASES = [(name, cls, hyper, unit) for name, cls, hyper in rules() for unit in cls.units]


def learn(engine, cls, hyper, unit, game, tuples, states, games=GAMES):
    """The optimizer's tensors and the next random number after some games; two chunks, so state comes and goes."""
    features = NTuples(game, tuples=tuples, states=states)
    network = ValueNetwork(features, output=unit, dtype="float64", init=0.1)
    optimizer = cls(network.parameters(), **hyper)
    agent, rng = engine(network, optimizer), np.random.default_rng(3)
    for first in (0, games // 2):
        TD(game).play(agent, first, games - games // 2, hyper["lr"], rng)
        if engine is Fused:
            agent.store()
    state = optimizer.state[network.embedding.weight]
    return {"weight": network.embedding.weight.detach(), **state}, rng.random()


def same(a, b):
    assert a[1] == b[1]
    assert a[0].keys() == b[0].keys()
    for name, tensor in a[0].items():
        torch.testing.assert_close(b[0][name], tensor, rtol=1e-12, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize(("name", "cls", "hyper", "unit"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_connect4_games(name, cls, hyper, unit):
    game = Connect4()
    same(*(learn(engine, cls, hyper, unit, game, TUPLES, 4) for engine in (Eager, Fused)))


def test_tictactoe_games_with_symmetric_boards():
    for name in ("k1", "autostep"):
        _, cls, hyper = next(rule for rule in rules() if rule[0] == name)
        tuples = [[0, 1, 2], [3, 4, 5], [0, 4, 8]]
        same(*(learn(engine, cls, hyper, "identity", TicTacToe(), tuples, 3) for engine in (Eager, Fused)))
