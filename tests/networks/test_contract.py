"""Networks of one's own: trained as they are, or refused by name; never silently something else."""

import numpy as np
import pytest
import torch
from torch import nn

from rlgames.agents import Batched, Eager, Fused
from rlgames.features.ntuples import NTuples
from rlgames.features.planes import Planes
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.networks.mlp import MLP
from rlgames.networks.table import ValueNetwork, table_of
from rlgames.optim import IDBD, TDL
from rlgames.policy import best_move
from rlgames.schedules import Constant
from rlgames.traces import Traces

GAME = TicTacToe()
FEATURES = NTuples(GAME, tuples=[[0, 1, 2], [0, 4, 8]], states=3)
BOARD = GAME.play("51")


class Minus(ValueNetwork):
    def linear(self, indices):
        return -super().linear(indices)


class Square(ValueNetwork):
    def unit(self, f):
        return torch.tanh(f) ** 3


class Biased(ValueNetwork):
    def __init__(self, features, **words):
        super().__init__(features, **words)
        self.bias = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x):
        return torch.tanh(self.linear(x) + self.bias)


class Plain(nn.Module):
    def __init__(self, features):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.EmbeddingBag(features.size, 4, mode="sum").double()
        self.out = nn.Linear(4, 1).double()

    def forward(self, x):
        return torch.tanh(self.out(self.table(x))).squeeze(1)


class Start(ValueNetwork):
    def initial(self):
        return super().initial() + 0.01


def mean_table(features, **words):
    network = ValueNetwork(features, **words)
    network.embedding.mode = "mean"
    return network


def hooked(features, **words):
    network = ValueNetwork(features, **words)
    network.register_forward_hook(lambda module, args, out: -out)
    return network


def replaced(features, **words):
    network = ValueNetwork(features, **words)
    network.forward = lambda x: torch.tanh(2 * ValueNetwork.linear(network, x))
    return network


OWN = {
    "linear": lambda: Minus(FEATURES, init=0.5, dtype="float64"),
    "unit": lambda: Square(FEATURES, init=0.5, dtype="float64"),
    "parameter": lambda: Biased(FEATURES, init=0.5, dtype="float64"),
    "module": lambda: Plain(FEATURES),
    "mean": lambda: mean_table(FEATURES, init=0.5, dtype="float64"),
    "hook": lambda: hooked(FEATURES, init=0.5, dtype="float64"),
    "method": lambda: replaced(FEATURES, init=0.5, dtype="float64"),
    "sigmoid": lambda: Minus(FEATURES, output="sigmoid", init=0.5, dtype="float64"),
}


@pytest.mark.parametrize("name", OWN)
def test_compiled_engines_refuse_what_they_would_ignore(name):
    network = OWN[name]()
    assert table_of(network) is None
    for engine, agent in (("fused", Fused), ("batched", lambda n, o: Batched(n, o, torch.device("cpu")))):
        with pytest.raises(ValueError, match=rf"engine={engine} .*{type(network).__name__}.*; use engine=eager"):
            agent(network, TDL(network.parameters()))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("rule", [TDL, IDBD, torch.optim.SGD])
def test_eager_plays_by_and_teaches_the_network_as_it_is(name, rule):
    """The best move is that of forward, and a step moves its value towards the target by the gradient of forward."""
    network = OWN[name]()
    agent = Eager(network, rule(network.parameters(), lr=0.01), features=FEATURES)
    value = lambda *boards: network(FEATURES.encode(boards))  # noqa: E731
    moves = [int(move) for move in BOARD.moves()]
    after = value(*(BOARD.play(move) for move in moves))
    move, best = best_move(agent, BOARD)
    assert move == moves[int((BOARD.player() * after).argmax())]
    assert best == pytest.approx(after[moves.index(move)].item())

    before = value(BOARD)
    grads = torch.autograd.grad(before.sum(), list(network.parameters()))
    squares = sum(float((g.to_dense() if g.is_sparse else g).square().sum()) for g in grads)
    target = before.item() + 0.1
    assert agent.learn(BOARD, target) == pytest.approx(0.1)
    moved = value(BOARD).item() - before.item()
    if rule is IDBD:  # its steps start at exp(beta) = lr
        assert moved > 0
    else:
        assert moved == pytest.approx(0.01 * 0.1 * squares, rel=0.05)


def test_a_subclass_with_another_start_stays_fast():
    weights = []
    for engine in (Eager, Fused):
        network = Start(FEATURES, init=0.1, dtype="float64")
        agent = engine(network, TDL(network.parameters(), lr=0.1))
        TD(GAME, Constant(0.1)).train(agent, 0, 20, 0.1, np.random.default_rng(0))
        agent.store()
        weights.append(network.embedding.weight.detach())
    torch.testing.assert_close(*weights, rtol=0, atol=1e-11)


def test_a_dense_network_learns_with_traces_and_in_games():
    network = MLP(Planes(GAME), hidden=16, dtype="float64")
    agent = Eager(network, TDL(network.parameters(), lr=0.05), Traces(0.5), features=Planes(GAME))
    before = [p.clone() for p in network.parameters()]
    episodes = TD(GAME, Constant(0.1), lambda_=0.5).train(agent, 0, 5, 0.05, np.random.default_rng(0))
    assert episodes.games == 5
    assert all(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_shapes_and_features_are_named():
    class Column(Plain):
        def forward(self, x):
            return self.out(self.table(x))

    network = Column(FEATURES)
    agent = Eager(network, torch.optim.SGD(network.parameters(), lr=0.1), features=FEATURES)
    with pytest.raises(ValueError, match=r"Column gives \[1, 1\] for 1 boards, not \[1\]"):
        agent.learn(BOARD, 1.0)
    with pytest.raises(ValueError, match="Plain names none; give the features that it reads"):
        Eager(Plain(FEATURES), torch.optim.SGD(network.parameters(), lr=0.1))
    with pytest.raises(ValueError, match="adds up the rows of a table, which Planes does not give"):
        ValueNetwork(Planes(GAME))
    with pytest.raises(ValueError, match="reads numbers, which NTuples does not give; use features=planes"):
        MLP(FEATURES)
    sparse = Plain(FEATURES)
    agent = Eager(sparse, torch.optim.SparseAdam(sparse.parameters()), features=FEATURES)
    with pytest.raises(ValueError, match="optimizer: SparseAdam cannot make its step"):
        agent.learn(BOARD, 1.0)
