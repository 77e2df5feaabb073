"""Looking several plies ahead: the value of plain minimax over the agent's values, found with fewer positions."""

from types import SimpleNamespace

import numpy as np
import pytest

from rlgames.agents import Eager, Fused
from rlgames.build import load
from rlgames.evaluate import evaluate
from rlgames.evaluation.exhaustive import Exhaustive
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.interrupts import flag
from rlgames.learners.q import Q
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TDL
from rlgames.play import Opponent
from rlgames.players import GreedyPlayer
from rlgames.search.lookahead import WIN, lookahead_move, lookahead_values
from rlgames.train import train
from rlgames.training.restore import restore
from tests.support import random_boards, result

CONNECT4, TICTACTOE = Connect4(), TicTacToe()
TUPLES = {
    "connect4": [[0, 1, 6, 7], [12, 18, 24, 30], [3, 8, 13, 18], [20, 21, 26, 27]],
    "tictactoe": [[0, 1, 2], [0, 4, 8]],
}


def agent(game, engine=Eager, output="tanh"):
    """An agent with random weights."""
    network = ValueNetwork(NTuples(game, TUPLES[game.name], states=3), output, dtype="float64", init=1.0)
    return engine(network, TDL(network.parameters()))


def values_of(scores, output):
    """Scores as values: a win is 1 whenever it comes."""
    unit = {"tanh": np.tanh, "identity": float, "sigmoid": lambda f: 2 / (1 + np.exp(-f)) - 1}[output]
    return [np.sign(score) if abs(score) > WIN / 2 else unit(score) for score in scores]


def plain(agent, board, plies):
    """Score of each legal move for the player to move, without pruning; an immediate win is never left to the other."""
    player, scores = board.player(), {}
    for move in map(int, board.moves()):
        after = board.play(move)
        replies = [after.play(int(reply)) for reply in after.moves()]
        if after.winner():
            scores[move] = WIN - after.ply
        elif after.over():
            scores[move] = 0.0
        elif any(reply.winner() for reply in replies):
            scores[move] = after.ply + 1 - WIN
        elif plies == 1:
            scores[move] = player * agent.sums(board, np.array([move]))[0]
        else:
            scores[move] = -max(plain(agent, after, plies - 1).values())
    return scores


@pytest.mark.parametrize("plies", [2, 3, 4])
@pytest.mark.parametrize("game", [CONNECT4, TICTACTOE], ids=["connect4", "tictactoe"])
def test_it_is_minimax(game, plies):
    one = agent(game)
    rng = np.random.default_rng(plies)
    for board in random_boards(game, 15 if plies < 4 else 5, range(plies, game.n_cells - 1), rng):
        scores = plain(one, board, plies)
        move, score = lookahead_move(one, board, plies, flag())
        assert score == pytest.approx(max(scores.values()), abs=1e-4)
        assert scores[move] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("plies", "output", "engine"),
    [
        *((plies, output, Eager) for plies in (2, 3) for output in ("tanh", "sigmoid", "identity")),
        pytest.param(3, "tanh", Fused, marks=pytest.mark.thorough),
    ],
)
def test_values_of_all_moves_are_those_of_minimax(plies, output, engine):
    one, two = agent(CONNECT4, output=output), agent(CONNECT4, engine, output)
    for board in random_boards(CONNECT4, 10, range(20, 41), np.random.default_rng(plies)):
        scores = plain(one, board, plies)
        values = two.run(lookahead_values, board, np.int64(plies), flag())
        expected = values_of([scores[move] for move in map(int, board.moves())], output)
        assert values == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("game", [pytest.param(CONNECT4, marks=pytest.mark.thorough), TICTACTOE])
def test_compiled_it_is_the_same(game):
    rng = np.random.default_rng(1)
    boards = random_boards(game, 20, range(game.n_cells - 2), rng)
    players = [GreedyPlayer(agent(game, engine), 3) for engine in (Eager, Fused)]
    moves = [[player.move(board, rng) for board in boards] for player in players]
    assert moves[0] == moves[1]


def test_to_the_end_of_the_game_it_is_perfect():
    proof = Exhaustive(TICTACTOE).scores(GreedyPlayer(agent(TICTACTOE, Fused), 9), np.random.default_rng(0))
    assert (proof["optimal"], proof["first"].tree.losses, proof["second"].tree.losses) == (1.0, 0, 0)


def test_forced_wins_and_losses_are_seen():
    board = CONNECT4.play("4455")  # 3 or 6 makes three with both ends free
    move, score = lookahead_move(agent(CONNECT4), board, 3, flag())
    assert (move in (2, 5), score) == (True, WIN - 7)
    _, score = lookahead_move(agent(CONNECT4), board.play(move), 2, flag())
    assert score == 7 - WIN


def test_a_run_is_measured_and_played_as_deep_as_it_says(quick):
    folder = quick("lookahead=3", "learner.epsilon=0.5")
    assert restore(folder).greedy().lookahead == 3
    assert restore(folder, lookahead=2).greedy().lookahead == 2
    assert [restore(folder, lookahead=plies).cfg.engine for plies in (1, 2)] == ["eager", "eager"], "as it was trained"
    words = [f"checkpoint={folder}", "evaluation.first=100", "engine=eager"]
    deep, greedy = (evaluate(load(*words, f"lookahead={plies}", config="evaluate")) for plies in ("null", 1))
    assert deep["success_first"] > greedy["success_first"]
    quick(f"resume={folder}", "lookahead=1", "games=16", run_dir=None)
    assert restore(folder).greedy().lookahead == 1
    assert result(folder)["games"] == 16


def test_at_the_board_too():
    thoughts = Opponent(SimpleNamespace(agent=agent(CONNECT4)), lookahead=5).think(CONNECT4.play("44"))
    values = dict(zip(thoughts.moves, thoughts.values, strict=True))
    assert thoughts.best in (2, 4)  # three in a row with both ends free
    assert values[thoughts.best] == max(values.values())


@pytest.mark.parametrize("value", ["0", "43", "2.5", "deep"])
def test_other_depths_are_refused(value):
    with pytest.raises(ValueError, match=r"lookahead is .*; it must be null or a whole number from 1 to 42"):
        train(load(f"lookahead={value}"))


def test_a_table_looks_no_further(tmp_path):
    with pytest.raises(ValueError, match="lookahead is 2, but that is for learner=td"):
        GreedyPlayer(Q(TICTACTOE).agent("eager"), 2)
    with pytest.raises(ValueError, match="lookahead is 2"):
        Opponent(SimpleNamespace(agent=Q(TICTACTOE).agent("eager")), lookahead=2)
    with pytest.raises(ValueError, match="lookahead is 2"):
        train(load("+experiment=tictactoe_q", "lookahead=2", f"run_dir={tmp_path / 'run'}"))
    assert not (tmp_path / "run").exists()
