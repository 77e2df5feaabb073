"""Games in which a move may win, lose or draw: every player and learner plays them right, whoever wins by a move."""

import functools

import numpy as np
import pytest

from rlgames.agents import Eager, Fused
from rlgames.evaluation.exhaustive import Exhaustive
from rlgames.features.ntuples import NTuples
from rlgames.games.tictactoe import TicTacToe
from rlgames.interrupts import flag
from rlgames.learners.q import Q
from rlgames.learners.td import TD
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TCLEXP, TDL
from rlgames.players import GreedyPlayer, Minimax, RandomPlayer
from rlgames.policy import best_move, value_after
from rlgames.schedules import Constant
from rlgames.search.lookahead import lookahead_move, lookahead_values
from tests.small_games import GAMES
from tests.support import few, random_boards

TTT = TicTacToe()
ALL = [*GAMES, TTT]


def names(game):
    return game.name


@functools.lru_cache(None, typed=True)  # boards of two games may be equal as tuples
def value_of(board):
    """The value for the first player, by brute force."""
    if board.over():
        return board.winner()
    return board.player() * max(board.player() * value_of(board.play(int(move))) for move in board.moves())


def right_moves(board):
    return {int(m) for m in board.moves() if value_of(board.play(int(m))) == value_of(board)}


def agent_of(game, engine=Eager, rule=TDL, **words):
    features = NTuples(game, [[0, 1, 2], [0, 4, 8], list(range(9))], states=3)
    network = ValueNetwork(features, dtype="float64", init=0.1)
    return engine(network, rule(network.parameters(), lr=0.05), **words)


def boards(game, count=40, plies=range(9)):
    return random_boards(game, count, plies, np.random.default_rng(0))


@pytest.mark.parametrize("game", ALL, ids=names)
def test_minimax_is_right(game):
    player = Minimax(game, 9)
    for board in boards(game, 20):
        solution = player.solve(board)
        assert np.sign(solution.value) == board.player() * value_of(board), str(board)
        assert set(solution.moves) <= right_moves(board), str(board)


@pytest.mark.parametrize("plies", [range(3, 9), pytest.param(range(3), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("game", ALL, ids=names)
def test_a_search_to_the_end_is_right(game, plies):
    agent = agent_of(game)
    for board in boards(game, 20, plies):
        move, _ = lookahead_move(agent, board, 9, flag())
        assert move in right_moves(board), str(board)
        values = lookahead_values(agent, board, 9, flag())
        expected = [board.player() * value_of(board.play(int(move))) for move in board.moves()]
        assert values.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("tactical", [False, True])
@pytest.mark.parametrize("game", ALL, ids=names)
def test_one_ply_takes_what_is_decided(game, tactical):
    """A win at once is taken; a loss at once is not, while there is anything else; a draw is worth its value."""
    agent = agent_of(game, tactical=tactical)
    for board in boards(game, 200):
        move, value = best_move(agent, board)
        ends = {
            int(m): board.player() * board.play(int(m)).winner() for m in board.moves() if board.play(int(m)).over()
        }
        if 1 in ends.values():
            assert ends[move] == 1
            assert value == board.player()
        elif len(ends) < len(board.moves()):
            assert ends.get(move, 0) == 0
            assert ends.get(move) is None or value == 0
        else:
            assert ends[move] == max(ends.values())
            assert value == board.player() * ends[move]
        assert value == pytest.approx(value_after(agent, board, move))


@pytest.mark.parametrize("game", few(GAMES, GAMES[-1]), ids=names)
def test_compiled_it_is_the_same(game):
    weights = []
    for engine in (Eager, Fused):
        agent = agent_of(game, engine, TCLEXP)
        episodes = TD(game, Constant(0.1)).train(agent, 0, 40, 0.05, np.random.default_rng(0))
        if engine is Fused:
            agent.store()
        weights.append(agent.network.embedding.weight.detach().numpy())
        weights.append(np.array(episodes, np.float64))
    np.testing.assert_allclose(weights[2], weights[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights[3], weights[1], rtol=0, atol=1e-9)


def lost_lines(game, agent):
    """Of the colours for which the start position is not lost."""
    value = value_of(game.board)
    scores = Exhaustive(game, RandomPlayer()).scores(GreedyPlayer(agent), np.random.default_rng(0))
    return (value >= 0) * scores["first"].tree.losses + (value <= 0) * scores["second"].tree.losses


@pytest.mark.thorough
@pytest.mark.parametrize("game", GAMES, ids=names)
def test_td_learns_not_to_lose(game):
    agent = agent_of(game, Fused, TCLEXP)
    TD(game, Constant(0.2)).train(agent, 0, 60_000, 0.05, np.random.default_rng(0))
    agent.store()
    assert lost_lines(game, agent) <= 10  # of hundreds; with the wrong sign most of them are lost


@pytest.mark.thorough
@pytest.mark.parametrize("game", GAMES, ids=names)
def test_q_learns_not_to_lose(game):
    """20,000 games, as in tic-tac-toe; ten seeds of misère, one of the others."""
    for seed in range(10 if game.name == "misere" else 1):
        learner = Q(game, games=20_000, alpha=Constant(0.5), seed=seed)
        agent = learner.agent("fused")
        learner.train(agent, 0, 20_000, 1.0, np.random.default_rng(seed))
        assert lost_lines(game, agent) == 0, seed
