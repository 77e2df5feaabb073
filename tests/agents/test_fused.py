"""Compiled learning equals plain torch: in float64, weights, state and random stream, for every rule.

Machine code is made per rule, unit, game and form of memory, in ten seconds each. What a rule brings is tried on a
given line of play, which compiles in half the time of a game; what the loop brings is tried on whole games of a rule
for each form of memory. The quick tests take a few rules for all, the thorough ones all of them, the slow ones all of
them in whole games.
"""

import contextlib
import itertools

import numpy as np
import pytest
import torch

from rlgames.agents import Eager, Fused
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD, TRACES
from rlgames.networks.table import ValueNetwork
from rlgames.optim import StepSize, SwiftTD
from rlgames.schedules import Constant
from rlgames.traces import Traces
from tests.support import RULES

GAMES = 20
TUPLES = [[0, 1, 6, 7], [12, 18, 24, 30], [3, 8, 13, 18], [20, 21, 26, 27], [36, 37, 31, 24], [5, 11, 17, 23]]
LINE = np.array([int(move) for move in "5450624550411045653112"])


def follow(agent, board, targets, explored, gamma):
    """Learn from ``LINE``: a target for each position, those ``explored`` left out; the sum of |td_error|."""
    errors = 0.0
    agent.begin()
    for k in range(len(LINE)):
        after = board.play(LINE[k])
        if explored is not None and explored[k]:
            agent.explored(board)
        else:
            errors += abs(agent.learn(board, targets[k], after, gamma if k + 1 < len(LINE) else 0.0))
        board = after
    return errors


def lesson(engine, name, unit=None, traces=None, gamma=1.0, tables=2, **changes):
    """The errors on a line of play taught twice, and then the optimizer's tensors."""
    cls, hyper, chosen = RULES[name]
    game, rng = Connect4(), np.random.default_rng(3)
    features = NTuples(game, tuples=TUPLES, states=4, table_per_player=tables == 2)
    network = ValueNetwork(features, output=unit or chosen, dtype="float64", init=0.1)
    optimizer = cls(network.parameters(), **hyper | changes)
    agent, errors = engine(network, optimizer, traces), []
    for _ in range(2):
        explored = rng.random(len(LINE)) < 0.2 if traces else None
        errors.append(agent.run(follow, game.board, rng.random(len(LINE)), explored, gamma))
        if engine is Fused:
            agent.store()
    return tensors(network, optimizer), errors


def tensors(network, optimizer):
    """The weights, and what the optimizer remembers of them; traces end with the game."""
    state = optimizer.state[network.embedding.weight]
    state = {name: tensor for name, tensor in state.items() if name != "trace"}
    return {"weight": network.embedding.weight.detach(), **state}


def learn(engine, name, unit, game=None, games=GAMES, **traces):
    """The optimizer's tensors and the next random number after some games; two chunks, so state comes and goes."""
    cls, hyper, _ = RULES[name]
    game = game or Connect4()
    tuples, states = (TUPLES, 4) if game.name == "connect4" else ([[0, 1, 2], [3, 4, 5], [0, 4, 8]], 3)
    features = NTuples(game, tuples=tuples, states=states)
    network = ValueNetwork(features, output=unit, dtype="float64", init=0.1)
    optimizer = cls(network.parameters(), **hyper)
    learner = TD(game, **traces)
    agent, rng = engine(network, optimizer, learner.traces, learner.tactical), np.random.default_rng(3)
    for first in (0, games // 2):
        learner.train(agent, first, games - games // 2, hyper["lr"], rng)
        if engine is Fused:
            agent.store()
    return tensors(network, optimizer), rng.random()


def kinds(cls):
    """The kinds of traces with which a rule is defined."""
    for kind, (replacing, resetting) in TRACES.items():
        with contextlib.suppress(ValueError):
            cls.check_traces(Traces(0.5, replacing, resetting))
            yield kind


def same(a, b):
    assert b[1] == pytest.approx(a[1], rel=1e-12)
    assert a[0].keys() == b[0].keys()
    for name, tensor in a[0].items():
        torch.testing.assert_close(b[0][name], tensor, rtol=1e-12, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")


def traced(name):
    """Whether traces can be a matter of their own: rules that see the lanes of other weights, or remember more."""
    cls = RULES[name].cls
    return any(kinds(cls)) and (name in ("tcl", "tcl_delta") or cls.total is not StepSize.total or cls.looks_ahead)


def every_unit():
    """Each rule with each of its units; those that are tried with traces anyway are slow without them."""
    for name, rule in RULES.items():
        for unit in rule.cls.units:
            quick = name == "idbd" and unit == rule.unit
            marks = pytest.mark.slow if traced(name) else () if quick else pytest.mark.thorough
            yield pytest.param(name, unit, marks=marks)


def every_kind():
    """Rules for which traces are a matter of their own with each kind of them, and with or without a threshold."""
    for name in filter(traced, RULES):
        for case in itertools.product(kinds(RULES[name].cls), (0, 0.01)):
            quick = (name, *case) == ("swift_td", "res", 0.01)
            yield pytest.param(name, *case, marks=() if quick else pytest.mark.thorough)


@pytest.mark.parametrize(("name", "unit"), list(every_unit()))
def test_every_rule(name, unit):
    same(*(lesson(engine, name, unit) for engine in (Eager, Fused)))


@pytest.mark.parametrize(("name", "traces", "threshold"), list(every_kind()))
def test_kinds_of_traces(name, traces, threshold):
    traces = Traces(0.8, *TRACES[traces], threshold)
    same(*(lesson(engine, name, traces=traces, gamma=0.9) for engine in (Eager, Fused)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tdl", "tcl_delta"])
def test_the_cross_entropy_of_a_logistic_unit(name):
    ours, theirs = (lesson(engine, name, "sigmoid", cross_entropy=True) for engine in (Eager, Fused))
    same(ours, theirs)
    assert ours[1] != lesson(Eager, name, "sigmoid")[1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tcl_exp"])
def test_learning_from_exploratory_moves_by_a_tactical_agent(name):
    words = {"epsilon": Constant(0.5), "learn_exploratory": True, "tactical": True}
    same(*(learn(engine, name, "tanh", **words) for engine in (Eager, Fused)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["alpha_bounds", "tidbd_ordinary"])
def test_one_table_for_both_players(name):
    """Then the next position has weights in common with the present one."""
    same(*(lesson(engine, name, gamma=0.9, tables=1) for engine in (Eager, Fused)))


def some(*fast, marks=()):
    """All rules; those that are not among the first words are slow, the others have ``marks``."""
    return [pytest.param(name, marks=marks if name in fast else pytest.mark.slow) for name in RULES]


@pytest.mark.parametrize("name", some("tcl_exp"))
def test_connect4_games(name):
    for unit in RULES[name].cls.units:
        same(*(learn(engine, name, unit) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", some("tcl_exp", marks=pytest.mark.thorough))
def test_tictactoe_games_with_symmetric_boards(name):
    same(*(learn(engine, name, RULES[name].unit, TicTacToe()) for engine in (Eager, Fused)))


TRACED = [case for case in some("tcl_exp", marks=pytest.mark.thorough) if any(kinds(RULES[case.values[0]].cls))]


@pytest.mark.parametrize("name", TRACED)
def test_connect4_games_with_traces(name):
    for kind in kinds(RULES[name].cls):
        words = {"lambda_": 0.5, "gamma": 0.9, "traces": kind, "threshold": 0.01}
        same(*(learn(engine, name, RULES[name].unit, games=6, **words) for engine in (Eager, Fused)))


@pytest.mark.parametrize("name", [name for name, (cls, *_) in RULES.items() if not any(kinds(cls))])
def test_rules_that_are_not_defined_with_traces_say_so(name):
    cls, hyper, _ = RULES[name]
    network = ValueNetwork(NTuples(TicTacToe(), tuples=[[0, 1]], states=3))
    for engine in (Eager, Fused):
        with pytest.raises(ValueError, match=rf"learner.lambda_ .* {cls.__name__} is not defined"):
            engine(network, cls(network.parameters(), **hyper), Traces(0.5))


def test_swift_td_says_which_traces_it_needs():
    network = ValueNetwork(NTuples(TicTacToe(), tuples=[[0, 1]], states=3))
    with pytest.raises(ValueError, match=r"SwiftTD .* learner\.traces=res"):
        Fused(network, SwiftTD(network.parameters()), Traces(0.5))
