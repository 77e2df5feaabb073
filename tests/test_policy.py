"""Choice of moves: immediate wins, ties in a fixed order, uniform exploration."""

import collections

import numpy as np
import pytest

from rlgames.agents import Eager
from rlgames.compiled import compile_function
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TDL
from rlgames.players import GreedyPlayer
from rlgames.policy import TOLERANCE, afterstate_values, best_move, random_move, value_after

CONNECT4, TICTACTOE = Connect4(), TicTacToe()
RNG = np.random.default_rng(0)


class Values:
    """An agent that values moves by a table, in the game's order of moves."""

    def __init__(self, *sums, tactical=False):
        self._sums, self.tactical = sums, tactical
        self.move_list, self.replies = np.empty(9, np.int64), np.empty(9, np.int64)

    def sums(self, board, moves):
        return np.array([self._sums[k % len(self._sums)] for k in range(len(moves))])

    def unit(self, f):
        return 10 * f

    def target(self, reward):
        return reward

    def run(self, text, *args):
        return text(self, *args)


def eager(game, seed=0, **words):
    tuples = {"count": 10, "length": 4} if game is CONNECT4 else {"tuples": [[0, 1, 2], [0, 4, 8]], "states": 3}
    net = ValueNetwork(NTuples(game, **tuples), dtype="float64", seed=seed, **words)
    return Eager(net, TDL(net.parameters()))


@pytest.mark.parametrize(
    ("game", "moves", "win"),
    [
        (CONNECT4, "121212", 0),
        (CONNECT4, "1212323", 1),
        (CONNECT4, "112233", 3),
        (TICTACTOE, "1425", 2),
        (TICTACTOE, "14257", 5),
    ],
)
def test_an_immediate_win_comes_first(game, moves, win):
    board = game.play(moves)
    winner = board.player()
    for sums in ((5, 4, 3, 2, 1), (-5, -4, -3, -2, -1), (0,)):
        assert best_move(Values(*sums), board) == (win, winner)


def test_the_first_of_two_wins_in_the_games_order():
    board = CONNECT4.play("223344")  # 1 and 5 both win
    assert board.moves().tolist().index(4) < board.moves().tolist().index(0)
    assert best_move(Values(0), board)[0] == 4


@pytest.mark.parametrize(
    ("sums", "first", "second"),
    [
        ([1, 1, 1, 1, 1, 1, 1], 0, 0),
        ([2, 1, 2, 0, 0, 0, 0], 0, 3),
        ([1, 2, 2, 1, 1, 1, 1], 1, 0),
        ([0, 0, 0, 0, 0, 0, -1], 0, 6),
        ([0, TOLERANCE / 2, 0, 0, -TOLERANCE / 2, 0, 0], 0, 0),  # equal but for rounding
        ([0, 2 * TOLERANCE, 0, 0, -2 * TOLERANCE, 0, 0], 1, 4),
    ],
)
def test_the_first_player_maximises_the_second_minimises_and_ties_go_in_order(sums, first, second):
    for board, place in ((CONNECT4.board, first), (CONNECT4.play("4"), second)):
        assert best_move(Values(*sums), board) == (board.moves()[place], 10 * sums[place])


@pytest.mark.parametrize(
    ("game", "moves", "block"),
    [(CONNECT4, "12131", 0), (CONNECT4, "112233", 3), (CONNECT4, "717273", 6), (TICTACTOE, "152", 2)],
)
def test_a_tactical_agent_blocks(game, moves, block):
    """Whatever it thinks of the moves; an immediate win of its own still comes first."""
    board = game.play(moves)
    for sums in ((1, 2, 3), (3, 2, 1)):
        move, value = best_move(Values(*sums, tactical=True), board)
        assert move == block
        assert abs(value) in ((1,) if board.play(move).winner() else (10, 20, 30))
        values = afterstate_values(Values(*sums, tactical=True), board)
        for k, move in enumerate(board.moves()):
            lets_win = any(board.play(move).play(m).winner() for m in board.play(move).moves())
            assert (values[k] == -1) == lets_win or board.play(move).winner()


def test_a_tactical_agent_that_cannot_block_knows_that_it_has_lost():
    board = CONNECT4.play("33445")  # the first player threatens columns 2 and 6
    assert best_move(Values(0.5, tactical=True), board) == (board.moves()[0], 1)
    assert best_move(Values(0.5), board)[1] == 5


def test_what_is_lost_is_worth_what_the_game_will_pay():
    """The first player wins by the move after six: TD pays 1 - 6 win_decay; a win at once, after six too, the same."""
    lost, won = CONNECT4.play("33445"), CONNECT4.play("334455")
    paid = 1 - 0.01 * (lost.ply + 1)
    assert best_move(Values(0.5, tactical=True), lost, 0.01)[1] == pytest.approx(paid)
    assert best_move(Values(0.5), won, 0.01)[1] == pytest.approx(paid)
    assert value_after(Values(0.5, tactical=True), lost, int(lost.moves()[0]), 0.01) == pytest.approx(paid)


def test_the_last_cell_of_a_draw():
    board = TICTACTOE.play("15928746")
    assert not board.over()
    assert len(board.moves()) == 1
    assert best_move(Values(7), board) == (board.moves()[0], 0)


@pytest.mark.parametrize("init", [0.0, 1.0])
def test_exact_ties_on_the_empty_board(init):
    """Mirror images are tied: of those the game's order decides, not rounding; with zero weights all moves are tied."""
    for seed in range(5):
        agent = eager(CONNECT4, seed, init=init)
        moves = CONNECT4.board.moves()
        sums = agent.sums(CONNECT4.board, moves)
        np.testing.assert_allclose(sums[[1, 3, 5]], sums[[2, 4, 6]], rtol=0, atol=1e-12)
        first_of_each_pair = np.array([0, 1, 3, 5])
        best = moves[first_of_each_pair[np.argmax(sums[first_of_each_pair])]]
        assert best_move(agent, CONNECT4.board)[0] == (best if init else 3)


def test_mirrored_boards_get_mirrored_moves():
    agent, rng, compared = eager(CONNECT4, init=1.0), np.random.default_rng(1), 0
    for _ in range(200):
        board = CONNECT4.board
        for _ in range(int(rng.integers(1, 20))):
            if not board.over():
                board = board.play(int(rng.choice(board.moves())))
        mirror = CONNECT4.mirror(board)
        wins = [m for m in board.moves().tolist() if board.play(m).winner()]
        if not board.over() and board != mirror and not wins:
            (move, value), (mirrored, mirrored_value) = best_move(agent, board), best_move(agent, mirror)
            assert mirrored_value == pytest.approx(value, rel=1e-12)
            best = np.sort(board.player() * agent.sums(board, board.moves()))[::-1]
            if len(best) > 1 and best[0] > best[1] + TOLERANCE:
                assert mirrored == 6 - move
                compared += 1
    assert compared > 100


@pytest.mark.parametrize(("game", "move"), [(CONNECT4, 3), (TICTACTOE, 0)])
def test_greedy_play_of_a_fresh_agent_is_deterministic(game, move):
    for seed in range(20):
        player = GreedyPlayer(eager(game, init=0.0))
        assert {player.move(game.board, np.random.default_rng(seed)) for _ in range(10)} == {move}


BOARDS = [CONNECT4.board, *map(CONNECT4.play, ("444444", "44444415")), TICTACTOE.board, TICTACTOE.play("159")]


def draws(board, count, rng):
    """Random moves from one board."""
    moves, room = np.empty(count, np.int64), np.empty(9, np.int64)
    for k in range(count):
        moves[k] = random_move(board, room, rng)
    return moves


@pytest.mark.parametrize("run", [draws, compile_function(draws)], ids=["python", "compiled"])
@pytest.mark.parametrize("board", BOARDS)
def test_random_moves_are_uniform_and_legal(run, board):
    n, legal = 20_000, board.moves().tolist()
    counts = collections.Counter(run(board, n, np.random.default_rng(1)).tolist())
    assert set(counts) == set(legal)
    sigma = (n * (1 / len(legal)) * (1 - 1 / len(legal))) ** 0.5
    assert max(abs(count - n / len(legal)) for count in counts.values()) < 3 * sigma


def test_random_moves_are_the_same_compiled():
    board = CONNECT4.play("444444")
    ours = draws(board, 100, np.random.default_rng(2))
    assert ours.tolist() == compile_function(draws)(board, 100, np.random.default_rng(2)).tolist()
