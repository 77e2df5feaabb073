"""The value network: sums, precision, initial weights, saving, and bad input."""

import numpy as np
import pytest
import torch

from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.networks.table import ValueNetwork

GAME = Connect4()
FEATURES = NTuples(GAME, count=10, length=4)


def network(**words):
    return ValueNetwork(FEATURES, **{"init": 1.0, "dtype": "float64", **words})


def boards(count=30, seed=0):
    """Positions of random games that are not over."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        board = GAME.board
        for _ in range(int(rng.integers(30))):
            if not board.over():
                board = board.play(int(rng.choice(board.moves())))
        if not board.over():
            found.append(board)
    return found


@pytest.mark.parametrize(
    ("output", "unit"),
    [("identity", lambda f: f), ("tanh", np.tanh), ("sigmoid", lambda f: 1 / (1 + np.exp(-f)))],
)
def test_values_are_units_of_sums(output, unit):
    net = network(output=output)
    weights = net.embedding.weight.detach().numpy()[:, 0]
    sums = np.array([weights[FEATURES.indices(board)].sum() for board in boards()])
    np.testing.assert_allclose(net.linear(net.indices(*boards())).detach(), sums, rtol=1e-12)
    np.testing.assert_allclose(net.value(*boards()), unit(sums), rtol=1e-12)
    np.testing.assert_allclose(net(net.indices(*boards())).detach(), unit(sums), rtol=1e-12)
    assert not net.value(GAME.board).requires_grad


def test_a_row_that_stands_twice_counts_twice():
    net = network(output="identity", init=0)
    rows = FEATURES.indices(GAME.board)
    with torch.no_grad():
        net.embedding.weight[rows[0]] = 1
    assert net.value(GAME.board).item() == 2
    net(net.indices(GAME.board)).sum().backward()
    gradient = net.embedding.weight.grad.coalesce()
    assert gradient.indices()[0].tolist() == sorted(set(rows.tolist()))
    assert (gradient.values() == 2).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [True, False])
def test_precision_and_kind_of_gradient(dtype, sparse):
    net = network(dtype=dtype, sparse=sparse)
    assert net.embedding.weight.dtype == net.value(GAME.board).dtype == getattr(torch, dtype)
    assert net.embedding.weight.shape == (FEATURES.size, 1)
    net(net.indices(GAME.board)).sum().backward()
    assert net.embedding.weight.grad.is_sparse == sparse


def test_initial_weights():
    weights = network(init=0.001).embedding.weight
    assert weights.abs().max() <= 0.0005
    assert weights.min() < -0.00049 < 0.00049 < weights.max()
    assert abs(weights.mean()) < 4 * 0.001 / 12**0.5 / FEATURES.size**0.5
    assert torch.equal(weights, network(init=0.001, seed=0).embedding.weight)
    assert not torch.equal(weights, network(init=0.001, seed=1).embedding.weight)
    assert not network(init=0).embedding.weight.any()


def test_initial_weights_leave_the_global_generator_alone():
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    network()
    assert torch.rand(1) == wanted


def test_state_dict_round_trip(tmp_path):
    net, other = network(seed=1), network(seed=2)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    other.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    assert torch.equal(net.value(*boards()), other.value(*boards()))
    assert list(net.state_dict()) == ["embedding.weight"]
    with pytest.raises(RuntimeError, match="size mismatch"):
        ValueNetwork(NTuples(GAME, count=9, length=4)).load_state_dict(net.state_dict())


def test_mirrored_boards_have_equal_values():
    net = network()
    pairs = [net.value(board, GAME.mirror(board)) for board in boards(300)]
    np.testing.assert_allclose(*torch.stack(pairs).T, rtol=1e-12)
    plain = ValueNetwork(NTuples(GAME, count=10, length=4, symmetric=False), init=1.0)
    assert plain.value(GAME.play("1")) != plain.value(GAME.play("7"))


def test_both_players_have_tables_of_their_own():
    net = network()
    first, second = GAME.board, GAME.board._replace(ply=1)
    assert not set(FEATURES.indices(first)) & set(FEATURES.indices(second))
    assert net.value(first) != net.value(second)


@pytest.mark.parametrize("bad", [-1, FEATURES.size, FEATURES.size + 5, 2**40])
def test_an_index_out_of_range_is_an_error(bad):
    indices = torch.from_numpy(FEATURES.indices(GAME.board))[None].clone()
    indices[0, 3] = bad
    with pytest.raises((RuntimeError, IndexError), match=r"(?i)idx|index"):
        network()(indices)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_indices_of_any_kind(dtype):
    net = network()
    indices = net.indices(*boards())
    wanted = net(indices)
    assert torch.equal(net(indices.to(dtype)), wanted)
    strided = torch.stack([indices, indices], dim=2)[:, :, 1].to(dtype)
    assert torch.equal(net(strided), wanted)


def test_an_empty_batch_has_no_values_and_no_gradient():
    net = network(output="identity")
    values = net(torch.empty(0, FEATURES.n_features, dtype=torch.int64))
    assert values.shape == (0,)
    values.sum().backward()
    assert not net.embedding.weight.grad.to_dense().any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"output": "relu"}, "network.output is 'relu'; allowed are identity, tanh, sigmoid"),
        ({"dtype": "float16"}, "network.dtype is 'float16'; allowed are float32 and float64"),
        ({"init": -0.1}, "network.init is -0.1; it must be at least 0 and finite"),
        ({"init": float("nan")}, "network.init is nan"),
        ({"init": float("inf")}, "network.init is inf"),
    ],
)
def test_bad_words(words, message):
    with pytest.raises(ValueError, match=message):
        network(**words)


def test_values_do_not_depend_on_the_batch():
    net = network()
    together = net.value(*boards(8))
    for k, board in enumerate(boards(8)):
        assert net.value(board).item() == pytest.approx(together[k].item(), rel=1e-12)
