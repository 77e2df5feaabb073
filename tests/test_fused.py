"""Compiled learning equals plain torch: whole games in float64, weights, state and random stream, for every rule."""

import contextlib

import numpy as np
import pytest
import torch
from hydra.utils import get_class

from rlgames.agents import Eager, Fused
from rlgames.build import CONF, load
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD, TRACES
from rlgames.network import ValueNetwork
from rlgames.optim import StepSize, SwiftTD
from rlgames.schedules import Constant
from rlgames.traces import Traces

GAMES = 20
TUPLES = [[0, 1, 6, 7], [12, 18, 24, 30], [3, 8, 13, 18], [20, 21, 26, 27], [36, 37, 31, 24], [5, 11, 17, 23]]


def rules():
    """Name, class, hyper-parameters and unit of each conf/optimizer file that is a rule."""
    for file in sorted((CONF / "optimizer").glob("*.yaml")):
        cfg = load(f"optimizer={file.stem}")
        cls = get_class(cfg.optimizer["_target_"])
        if issubclass(cls, StepSize):
            yield file.stem, cls, {str(k): v for k, v in cfg.optimizer.items() if not str(k).startswith("_")}


RULES = {name: (cls, hyper) for name, cls, hyper in rules()}
CASES = [(name, cls, hyper, unit) for name, cls, hyper in rules() for unit in cls.units]


def learn(engine, cls, hyper, unit, game, tuples, states, games=GAMES, tables=2, **traces):
    """The optimizer's tensors and the next random number after some games; two chunks, so state comes and goes."""
    features = NTuples(game, tuples=tuples, states=states, table_per_player=tables == 2)
    network = ValueNetwork(features, output=unit, dtype="float64", init=0.1)
    optimizer = cls(network.parameters(), **hyper)
    learner = TD(game, **traces)
    agent, rng = engine(network, optimizer, learner.traces, learner.tactical), np.random.default_rng(3)
    for first in (0, games // 2):
        learner.play(agent, first, games - games // 2, hyper["lr"], rng)
        if engine is Fused:
            agent.store()
    state = optimizer.state[network.embedding.weight]
    state = {name: tensor for name, tensor in state.items() if name != "trace"}  # ends with the game
    return {"weight": network.embedding.weight.detach(), **state}, rng.random()


def kinds(cls):
    """The kinds of traces with which a rule is defined."""
    for kind, (replacing, resetting) in TRACES.items():
        with contextlib.suppress(ValueError):
            cls.check_traces(Traces(0.5, replacing, resetting))
            yield kind


def same(a, b):
    assert a[1] == b[1]
    assert a[0].keys() == b[0].keys()
    for name, tensor in a[0].items():
        torch.testing.assert_close(b[0][name], tensor, rtol=1e-12, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize(("name", "cls", "hyper", "unit"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_connect4_games(name, cls, hyper, unit):
    game = Connect4()
    same(*(learn(engine, cls, hyper, unit, game, TUPLES, 4) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", ["k1", "autostep", "smd"])
def test_tictactoe_games_with_symmetric_boards(name):
    cls, hyper = RULES[name]
    tuples = [[0, 1, 2], [3, 4, 5], [0, 4, 8]]
    same(*(learn(engine, cls, hyper, cls.units[0], TicTacToe(), tuples, 3) for engine in (Eager, Fused)))


def test_learning_from_exploratory_moves_by_a_tactical_agent():
    cls, hyper = RULES["tcl_exp"]
    words = {"epsilon": Constant(0.5), "learn_exploratory": True, "tactical": True}
    same(*(learn(engine, cls, hyper, "tanh", Connect4(), TUPLES, 4, **words) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", ["alpha_bounds", "tidbd_ordinary"])
def test_one_table_for_both_players(name):
    """Then the next position has weights in common with the present one."""
    cls, hyper = RULES[name]
    case = cls, hyper, cls.units[0], TicTacToe(), [[0, 1, 2], [3, 4, 5], [0, 4, 8]], 3
    same(*(learn(engine, *case, gamma=0.9, tables=1) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", [name for name, (cls, _) in RULES.items() if any(kinds(cls))])
def test_connect4_games_with_traces(name):
    cls, hyper = RULES[name]
    traces = {"lambda_": 0.5, "gamma": 0.9, "traces": next(kinds(cls))}
    same(*(learn(engine, cls, hyper, cls.units[0], Connect4(), TUPLES, 4, 10, **traces) for engine in (Eager, Fused)))


@pytest.mark.parametrize("threshold", [0, 0.01])
@pytest.mark.parametrize("traces", ["et", "res", "rep", "rr"])
@pytest.mark.parametrize("name", ["tcl_exp", "idbd_nl", "auto_tidbd", "swift_td"])
def test_kinds_of_traces(name, traces, threshold):
    cls, hyper = RULES[name]
    if traces not in kinds(cls):
        pytest.skip("not defined")
    kind = {"lambda_": 0.8, "traces": traces, "threshold": threshold}
    same(*(learn(engine, cls, hyper, cls.units[0], Connect4(), TUPLES, 4, 10, **kind) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", [name for name, (cls, _) in RULES.items() if not any(kinds(cls))])
def test_rules_that_are_not_defined_with_traces_say_so(name):
    cls, hyper = RULES[name]
    network = ValueNetwork(NTuples(TicTacToe(), tuples=[[0, 1]], states=3))
    for engine in (Eager, Fused):
        with pytest.raises(ValueError, match=rf"learner.lambda_ .* {cls.__name__} is not defined"):
            engine(network, cls(network.parameters(), **hyper), Traces(0.5))


def test_swift_td_says_which_traces_it_needs():
    network = ValueNetwork(NTuples(TicTacToe(), tuples=[[0, 1]], states=3))
    with pytest.raises(ValueError, match=r"SwiftTD .* learner\.traces=res"):
        Fused(network, SwiftTD(network.parameters()), Traces(0.5))
