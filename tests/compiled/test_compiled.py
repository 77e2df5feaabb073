"""Compiled code: torch names, precision, types that look alike, borrowed arrays."""

import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import torch

from rlgames.agents import Eager, Fused
from rlgames.compiled import borrowed, compile_function, single_precision
from rlgames.compiled.bridge import OPTIONS
from rlgames.features.ntuples import NTuples
from rlgames.games import connect4, tictactoe
from rlgames.learners.td import TD
from rlgames.networks.table import ValueNetwork
from rlgames.schedules import Constant

GAME = tictactoe.TicTacToe()


def agent_of(rule, engine=Fused):
    net = ValueNetwork(NTuples(GAME, [[0, 1, 2], [0, 4, 8], list(range(9))], states=3), dtype="float64", init=0.1)
    return engine(net, rule(net.parameters(), lr=0.01))


def trained(agent, games=20):
    """Weights after some games."""
    TD(GAME, Constant(0.1)).train(agent, 0, games, 0.01, np.random.default_rng(0))
    if isinstance(agent, Fused):
        agent.store()
    return agent.network.embedding.weight.detach()[:, 0]


# ---- torch in compiled code

ONE = {
    "abs": (torch.abs, [-2.5, -0.0, 0.0, 3.0, np.inf, -np.inf]),
    "exp": (torch.exp, [-700.0, -87.0, -10.0, -1e-3, 0.0, 1e-8, 0.3465, 0.3466, 1.0, 10.0, 88.0]),
    "log": (torch.log, [1e-30, 0.5, 1.0, 2.0, 1e30]),
    "sqrt": (torch.sqrt, [0.0, 1e-30, 2.0, 1e30]),
    "sign": (torch.sign, [-3.0, 0.0, 1e-30]),
    "relu": (torch.relu, [-3.0, -0.0, 0.0, 2.0]),
    "square": (torch.square, [-3.0, 0.0, 1e-10]),
}
TWO = ["minimum", "maximum", "clamp_min", "clamp_max"]


def one_argument(x, out):
    for k in range(len(x)):
        out[0, k], out[1, k], out[2, k], out[3, k] = torch.abs(x[k]), torch.exp(x[k]), torch.log(x[k]), torch.sqrt(x[k])
        out[4, k], out[5, k], out[6, k] = torch.sign(x[k]), torch.relu(x[k]), torch.square(x[k])


def two_arguments(x, y, out):
    for k in range(len(x)):
        out[0, k], out[1, k] = torch.minimum(x[k], y[k]), torch.maximum(x[k], y[k])
        out[2, k], out[3, k] = torch.clamp_min(x[k], y[k]), torch.clamp_max(x[k], y[k])
        out[4, k] = torch.where(x[k] < y[k], x[k], 2 * y[k])


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def precision(request):
    return request.param


@pytest.mark.parametrize("name", ONE)
def test_torch_names_of_one_argument(name, precision):
    function, corners = ONE[name]
    grid = np.linspace(-40, 40, 4001) if name not in ("log", "sqrt") else np.linspace(1e-3, 100, 4001)
    x = np.concatenate([corners, grid]).astype(precision)
    if precision == np.float32 and name == "exp":
        x = x[np.abs(x) <= 87]
    out = np.zeros((7, len(x)), precision)
    compile_function(one_argument)(x, out)
    wanted = function(torch.from_numpy(x)).numpy()
    rtol = 1e-6 if precision == np.float32 else 1e-12
    np.testing.assert_allclose(out[list(ONE).index(name)], wanted, rtol=rtol)


def test_exp_of_extreme_numbers(precision):
    """Beyond what float32 can hold compiled exp stays at the edge: 0 but for 1e-37, and above 1e38."""
    x = np.array([-np.inf, -1e30, -1000, -100, 100, 1000, 1e30, np.inf], precision)
    out = np.zeros((7, len(x)), precision)
    compile_function(one_argument)(x, out)
    assert np.all((out[1, :4] >= 0) & (out[1, :4] < 1e-37))
    assert np.all(out[1, 4:] > 1e38)
    assert out[1].tolist() == sorted(out[1])


@pytest.mark.parametrize("row", [0, 1, 3, 4, 5, 6], ids=lambda row: list(ONE)[row])
def test_not_a_number_stays_not_a_number(row, precision):
    x = np.array([np.nan, 1.0], precision)
    out = np.zeros((7, 2), precision)
    compile_function(one_argument)(x, out)
    assert np.isnan(out[row, 0])
    assert not np.isnan(out[row, 1])


def test_torch_names_of_two_arguments(precision):
    x, y = (a.ravel().astype(precision) for a in np.meshgrid(np.linspace(-3, 3, 61), np.linspace(-3, 3, 61)))
    out = np.zeros((5, len(x)), precision)
    compile_function(two_arguments)(x, y, out)
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    for row, name in zip(out, TWO, strict=False):
        np.testing.assert_array_equal(row, getattr(torch, name)(a, b).numpy())
    np.testing.assert_array_equal(out[4], torch.where(a < b, a, 2 * b).numpy())


def test_single_precision_turns_constants_into_float32():
    def f(x):
        return (1 - 0.1 * x) * 2

    single = single_precision(f)
    assert {type(c) for c in single.__code__.co_consts if c is not None} == {np.float32}
    wide, narrow = (numba.njit(text) for text in (f, single))
    wide(np.float32(3)), narrow(np.float32(3))
    assert [str(text.nopython_signatures[0].return_type) for text in (wide, narrow)] == ["float64", "float32"]
    assert single(np.float32(3)) == pytest.approx(1.4)


# ---- types that look alike


CELL = """
from typing import Any, NamedTuple
from rlgames.optim import StepSize
class State(NamedTuple):
    {fields[0]}: Any
    {fields[1]}: Any
class Rule(StepSize):
    State = State
    def __init__(self, params, lr=0.01):
        super().__init__(params, lr=lr)
    @staticmethod
    def initial(p):
        return State({fields[0]}=0.0, {fields[1]}=0.0)
    @staticmethod
    def update(p, w, s, t):
        return w + {factor} * p.lr * t.delta * t.e + 0.001 * s.last, State(last=t.delta, steps=s.steps + 1)
"""


def learn_twice(agent, board):
    agent.learn(board, 1.0)
    return agent.learn(board, -1.0)


@pytest.mark.thorough
def test_a_rule_that_is_defined_anew_is_not_taken_for_the_old_one():
    """As in a notebook, or in a function that makes rules: same names, another formula, another order of fields."""
    for factor, fields in [(1, "last steps"), (3, "steps last")]:
        cell = {"__name__": __name__}
        exec(CELL.format(factor=factor, fields=fields.split()), cell)
        results = []
        for engine in (Eager, Fused):
            agent = agent_of(cell["Rule"], engine)
            error = agent.run(learn_twice, GAME.board)
            if engine is Fused:
                agent.store()
            weight = agent.network.embedding.weight
            results.append([torch.tensor(error), weight, *agent.optimizer.state[weight].values()])
        for eager, fused in zip(*results, strict=True):
            torch.testing.assert_close(fused, eager, rtol=0, atol=1e-12, check_dtype=False)


def first_moves(board):
    """The legal moves of a board and of the board after the first of them."""
    moves = board.moves()
    return moves, board.play(moves[0]).moves(), board.code(0)


def test_boards_of_the_same_fields_are_not_confused():
    assert connect4.Board._fields == tictactoe.Board._fields
    compiled = compile_function(first_moves)
    for game in (connect4.Connect4(), GAME, connect4.Connect4()):
        ours, theirs = first_moves(game.board), compiled(game.board)
        assert [a.tolist() for a in ours[:2]] == [a.tolist() for a in theirs[:2]]
        assert ours[2] == theirs[2]


# ---- borrowed arrays


class Shelf(NamedTuple):
    """Two arrays, one of them in a tuple, and a number."""

    numbers: Any
    inner: Any
    times: int


def scale(shelf, count):
    """Write through a borrowed tuple, its slices and its parts."""
    shelf = borrowed(shelf)
    part = shelf.numbers[1:count]
    for k in range(len(part)):
        part[k] *= shelf.times
    shelf.inner.numbers[:] = shelf.numbers[0]
    return part.sum()


def test_borrowed_arrays_are_the_same_memory_and_count_no_references():
    compiled, results = numba.njit(**OPTIONS)(scale), []  # not from the disk, whose code cannot be inspected
    for run in (scale, compiled):
        inner = Shelf(np.zeros((2, 3), np.float32), 0, 0)
        shelf = Shelf(np.arange(5.0), inner, 10)
        results.append((run(shelf, 4), shelf.numbers.tolist(), inner.numbers.tolist(), sys.getrefcount(shelf.numbers)))
    assert results[0] == results[1]
    assert results[0][1] == [0, 10, 20, 30, 4]
    code = compiled.inspect_llvm(compiled.signatures[0])
    body = code[code.index("define") : code.index("\n}")]  # of the function itself; its Python wrapper follows
    assert "NRT_incref" not in body
