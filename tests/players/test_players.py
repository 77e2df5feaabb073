"""Players: minimax against brute force, greedy agents, and what all of them do with a finished game."""

import functools

import numpy as np
import pytest
import torch

from rlgames.agents import Eager
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.networks.table import ValueNetwork
from rlgames.players import GreedyPlayer, Minimax, RandomPlayer, perfect_or_minimax
from rlgames.policy import best_move
from tests.support import DRAW, moves_of, random_boards

GAME, TTT = Connect4(), TicTacToe()


# ---- minimax


@functools.cache
def plain_minimax(board):
    """Value for the player to move, on the scale of Minimax."""
    if board.winner():
        return board.ply - 1000
    return max((-plain_minimax(board.play(int(move))) for move in board.moves()), default=0)


def reachable(board, seen):
    if board not in seen:
        seen.add(board)
        for move in board.moves():
            reachable(board.play(int(move)), seen)
    return seen


def test_minimax_on_all_positions_of_tictactoe():
    player = perfect_or_minimax(TTT)
    boards = reachable(TTT.board, set())
    assert len(boards) == 5478
    for board in boards:
        if not board.over():
            value = plain_minimax(board)
            best = tuple(int(m) for m in board.moves() if -plain_minimax(board.play(int(m))) == value)
            assert player.solve(board) == (value, best)


def test_minimax_finds_wins_and_blocks():
    player, rng = Minimax(GAME, 4), np.random.default_rng(0)
    assert player.move(GAME.play("414141"), rng) == 3  # wins
    assert player.move(GAME.play("41414"), rng) == 3  # blocks
    assert player.solve(GAME.play("4455")).moves == (2, 5)  # three in a row, open on both sides
    assert player.solve(GAME.play("4455")).value == 1000 - 7


def test_minimax_chooses_among_equals():
    player, rng = Minimax(GAME, 2), np.random.default_rng(0)
    assert {player.move(GAME.board, rng) for _ in range(100)} == set(range(7))


# ---- all of them


def agent_of(game):
    """A small agent with random weights."""
    network = ValueNetwork(NTuples(game, [[0, 1, 2], [3, 4, 5]], states=3), init=1.0)
    return Eager(network, torch.optim.SGD(network.parameters(), lr=0.1))


def test_greedy_plays_the_best_move_and_remembers_it():
    player, rng = GreedyPlayer(agent_of(GAME)), np.random.default_rng(0)
    boards = random_boards(GAME, 20, range(30), rng)
    moves = [player.move(board, rng) for board in boards]
    assert moves == [best_move(player.agent, board)[0] for board in boards]
    assert player.move(GAME.play("717171"), rng) == 6  # an immediate win
    player.agent = None
    assert moves == [player.move(board, rng) for board in boards]


@pytest.mark.parametrize("make", [RandomPlayer, Minimax, lambda game: GreedyPlayer(agent_of(game))])
@pytest.mark.parametrize("board", [moves_of(DRAW), GAME.play("4141414")])
def test_a_finished_game_has_no_move(make, board):
    with pytest.raises(ValueError, match=f"the game is over after {board.ply} moves"):
        make(GAME).move(board, np.random.default_rng(0))
