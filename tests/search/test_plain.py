import math

import numpy as np
import pytest
import torch
from torch import nn

from rlgames.chess.board import Board, Chess
from rlgames.chess.evaluation import RESOLUTION, start_values
from rlgames.chess.features import ChessTerms
from rlgames.chess.search import Limits, Search
from rlgames.chess.search.ordering import loses_material
from rlgames.compiled import compile_function
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.interrupts import flag
from rlgames.networks.linear import LinearEvaluation
from rlgames.networks.table import ValueNetwork
from rlgames.players.minimax import WIN
from rlgames.players.minimax import negamax as compiled_search
from rlgames.search.bounds import EXACT, LOWER, UPPER
from rlgames.search.plain import search


def pawns_of(network):
    return lambda boards: network.linear(network.features.encode(boards))


class Cells(nn.Module):
    """A network of two layers over the stones of the board, in double precision: batches add in another order."""

    def __init__(self, game):
        super().__init__()
        torch.manual_seed(1)
        self.game = game
        self.layers = nn.Sequential(nn.Linear(game.n_cells, 8), nn.Tanh(), nn.Linear(8, 1), nn.Tanh()).double()
        self.batches = []

    def forward(self, boards):
        self.batches.append(len(boards))
        stones = np.stack([self.game.cells(board).ravel() for board in boards])
        with torch.no_grad():
            return self.layers(torch.from_numpy(stones).double()).squeeze(1)


def zeros(boards):
    return torch.zeros(len(boards))


def some_boards(game, plies, count):
    rng = np.random.default_rng(3)
    while count:
        board = game.board
        for _ in range(plies):
            board = board if board.over() else board.play(int(rng.choice(board.moves())))
        if not board.over():
            count -= 1
            yield board


def all_boards(board, seen):
    if board not in seen:
        seen.add(board)
        for move in board.moves():
            all_boards(board.play(int(move)), seen)
    return seen


@pytest.mark.parametrize("game", [TicTacToe(), Connect4()], ids=["tictactoe", "connect4"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_alpha_beta_is_plain_minimax(game, depth):
    network = Cells(game)
    for board in some_boards(game, 3, 4):
        pruned, plain = (search(board, depth, network, prune=prune) for prune in (True, False))
        assert pruned == plain


def test_value_is_that_of_the_leaf_at_the_end_of_the_line():
    game = Connect4()
    network = Cells(game)
    for board in some_boards(game, 12, 4):
        found = search(board, 4, network)
        assert game.play(found.line, board) == found.leaf
        assert len(found.line) == 4 or found.leaf.over()
        value = found.leaf.winner() if found.leaf.over() else network([found.leaf]).item()
        assert found.value == pytest.approx(board.player() * value)


def test_pruning_saves_work_and_siblings_share_a_batch():
    game = Connect4()
    network = Cells(game)
    search(game.board, 4, network, prune=False)
    assert network.batches == [7] * 7**3
    network.batches = []
    search(game.board, 4, network)
    assert len(network.batches) < 7**3 / 2


def test_tictactoe_to_the_end():
    boards = all_boards(TicTacToe().board, set())
    assert len(boards) == 5478
    assert search(TicTacToe().board, 9, zeros).value == 0
    for board in [board for board in boards if board.ply >= 4]:
        exact = (
            np.sign(compiled_search(board, 9, -WIN, WIN, flag()))
            if not board.over()
            else board.player() * board.winner()
        )
        assert search(board, 9, zeros).value == exact


def test_it_finds_the_same_wins_as_compiled_search():
    game = Connect4()
    decided = 0
    for board in some_boards(game, 16, 30):
        exact = np.sign(compiled_search(board, 4, -WIN, WIN, flag()))
        assert search(board, 4, zeros).value == exact
        decided += exact != 0
    assert decided > 5


def test_a_value_network_from_the_first_players_view():
    game = TicTacToe()
    features = NTuples(game, tuples=[[0, 1, 2], [0, 4, 8]], states=3)
    network = ValueNetwork(features, init=0.5)
    best = min(network.value(game.board.play(4).play(move)).item() for move in range(9) if move != 4)
    found = search(game.board.play(4), 1, lambda boards: network.value(*boards))
    assert found.value == pytest.approx(-best)


def test_the_window_bounds_the_value():
    game = Connect4()
    network = Cells(game)
    for board in some_boards(game, 8, 5):
        value = search(board, 3, network).value
        assert search(board, 3, network, alpha=value, beta=math.inf).value <= value
        assert search(board, 3, network, beta=value).value >= value
        inside = search(board, 3, network, alpha=value - 0.01, beta=value + 0.01)
        assert inside.value == pytest.approx(value)


@pytest.mark.parametrize("prune", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_notes_hold_for_plain_minimax(prune):
    game = Connect4()
    network, kinds = Cells(game), set()
    for board in some_boards(game, 9, 4):
        notes = []
        found = search(board, 3, network, prune=prune, notes=notes)
        assert notes[-1] == (board, 3, EXACT, found.value)
        for note in notes:
            value = search(note.board, note.depth, network, prune=False).value
            kinds.add(note.bound)
            if note.bound == EXACT:
                assert note.value == value
            else:
                assert note.value <= value if note.bound == LOWER else note.value >= value
    assert kinds == ({EXACT, LOWER, UPPER} if prune else {EXACT})


def test_a_finished_game():
    lost = TicTacToe().play("14253")
    assert search(lost, 3, zeros) == (-1.0, (), lost)


@compile_function
def loses(board, move):
    return loses_material(board, move)


class Exchanges:
    """What compiled chess search looks at beyond its depth."""

    def extension(self, board):
        return int(board.in_check())

    def may_stand(self, board):
        return not board.in_check()

    def moves(self, board):
        occupied = board.white | board.black
        legal = [int(move) for move in board.moves()]
        loud = [
            move
            for move in legal
            if move >> 12 or ((occupied >> (move >> 6 & 63) & 1 or en_passant(board, move)) and not loses(board, move))
        ]
        return loud if self.may_stand(board) else legal


def en_passant(board, move):
    return board.pawns >> (move & 63) & 1 and move >> 6 & 63 == board.en_passant


def interval(bound, value):
    """Where the value lies of which ``value`` is a bound of that kind, with room for counts in float32."""
    value = min(max(value, -1000.0), 1000.0)  # mates are more than that in compiled search
    return (-math.inf if bound == UPPER else value - 1e-6), (math.inf if bound == LOWER else value + 1e-6)


def agreeing(tree, notes):
    """The number of positions about which compiled and eager search say something; both of it must be possible."""
    theirs = {tuple(note.board): note for note in notes}
    count = 0
    for board, bound, score in zip(tree.boards.tolist(), tree.bounds, tree.scores, strict=True):
        note = theirs.get(tuple(board))
        if note:
            (low, high), (least, most) = interval(bound, score), interval(note.bound, note.value)
            assert max(low, least) <= min(high, most)
            count += 1
    return count


@pytest.mark.thorough
def test_chess_as_compiled_search_plays_it():
    """The linear evaluation as a network of torch gives the same value and leaf as the compiled search."""
    coefficients = start_values()
    coefficients[5:] += 0.05 * np.random.default_rng(0).standard_normal(len(coefficients) - 5).astype(np.float32)
    network = LinearEvaluation(ChessTerms(Chess()), dtype="float64")
    network.embedding.weight.data[:, 0] = torch.from_numpy(np.rint(coefficients * RESOLUTION) / RESOLUTION)
    compiled = Search(coefficients, hash_mb=1, table_use=0, selective=False, tree=True)
    equal, both = 0, 0
    with torch.no_grad():
        for board in some_boards(Chess(), 14, 12):
            for depth in (1, 2):
                compiled.clear()
                found = compiled.run(board, limits=Limits(depth=depth))
                notes = []
                eager = search(board, depth, pawns_of(network), win=1000.0, tactics=Exchanges(), notes=notes)
                assert notes[-1].bound == EXACT
                both += agreeing(found.tree, notes)
                if found.mate:
                    assert eager.value == np.sign(found.mate) * 1000
                else:
                    assert eager.value == pytest.approx(found.score, abs=1e-6)  # counts are float32
                    equal += eager.leaf == found.leaf
    assert equal > 18
    assert both > 100


def test_tactics_look_beyond_the_depth():
    """A rook that takes a protected pawn is lost: seen without any depth left."""
    board = Board.from_fen("4k3/8/2p5/3p4/8/8/8/3RK3 w - - 0 1")
    network = LinearEvaluation(ChessTerms(Chess()))
    with torch.no_grad():
        short, long = (search(board, 1, pawns_of(network), 1000.0, tactics=t) for t in (None, Exchanges()))
    assert board.uci(short.line[0]) == "d1d5"
    assert board.uci(long.line[0]) != "d1d5"
