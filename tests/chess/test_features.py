"""The chess evaluation: one text counts and sums, colours are symmetric, terms mean what their names say."""

import random
import re

import numpy as np
import pytest

from rlgames.chess.bitboards import swap_bytes
from rlgames.chess.board import START, Board, complete
from rlgames.chess.evaluation import (
    NAMES,
    PAWN,
    SIZE,
    evaluate,
    evaluate_packed,
    features,
    packed_coefficients,
    start_values,
)
from rlgames.chess.search import Search
from rlgames.chess.search.alphabeta import static
from rlgames.compiled import compile_function


def random_positions(count, seed):
    rng, boards = random.Random(seed), []
    while len(boards) < count:
        board = START
        while not board.over() and len(boards) < count:
            board = board.play(int(rng.choice(board.moves().tolist())))
            boards.append(board)
    return boards


@pytest.fixture(scope="module")
def positions():
    return random_positions(3_000, seed=3)


@pytest.fixture(scope="module")
def coefficients():
    """Random, with a resolution that the whole numbers of the search keep exactly."""
    return np.round(np.random.default_rng(4).normal(size=SIZE) * 2**10).astype(np.float32) / 2**10


def flip(board):
    """The position with colours exchanged."""
    words = [swap_bytes(word) for word in board[:6]]
    rights = board.castling >> 2 | (board.castling & 3) << 2
    square = board.en_passant ^ 56 if board.en_passant >= 0 else -1
    return complete(
        Board(*words, swap_bytes(board.black), swap_bytes(board.white), 0, rights, square, 0, board.ply ^ 1)
    )


def test_names_are_different_and_readable():
    assert 800 <= SIZE <= 1700
    assert len(set(NAMES)) == len(NAMES) == SIZE
    assert NAMES[:5] == ["pawn", "knight", "bishop", "rook", "queen"]
    assert {"knight f3, middlegame", "passed pawn on rank 7, endgame", "bishop pair, middlegame"} <= set(NAMES)
    assert all(re.fullmatch(r"[a-zA-Z0-9 ,/\-]+", name) for name in NAMES)


@pytest.mark.thorough
def test_the_sum_over_features_is_the_evaluation(positions, coefficients):
    packed, wide = packed_coefficients(coefficients), coefficients.astype(np.float64)
    largest = 0.0
    for board in positions:
        indices, counts = features(board)
        assert (np.diff(indices) > 0).all()  # every index once
        assert counts.all()
        j = evaluate_packed(packed, board) / PAWN
        assert wide[indices] @ counts == pytest.approx(j, abs=2e-5)  # the rounding of counts like 7 / 24
        largest = max(largest, abs(j))
    assert largest > 10


def test_colours_are_symmetric(positions, coefficients):
    packed = packed_coefficients(coefficients)
    for board in positions[::2]:
        other = flip(board)
        assert evaluate_packed(packed, other) == -evaluate_packed(packed, board)
        (indices, counts), (mirrored, opposite) = features(board), features(other)
        assert indices.tolist() == mirrored.tolist()
        assert counts.tolist() == (-opposite).tolist()


def test_positions_equal_to_their_mirror_have_the_value_of_the_move_only():
    assert [NAMES[i] for i in features(START)[0]] == ["side to move, middlegame"]
    assert features(START)[1].tolist() == [1.0]


@compile_function
def searched(memory, board):
    return static(memory[0], board)


def test_the_search_sees_the_same_evaluation(positions, coefficients):
    search = Search(coefficients)
    packed = packed_coefficients(coefficients)
    for board in [*positions, *positions]:  # the second time pawns are remembered
        assert searched(search.state.memory, board) == board.player() * evaluate_packed(packed, board)


def test_start_values_are_material():
    values = start_values()
    assert values[:5].tolist() == [1, 4, 4, 6, 12]
    assert not values[5:].any()
    assert evaluate(values, Board.from_fen("4k3/8/8/8/8/8/PP6/RNBQK3 w - - 0 1")) == 2 + 6 + 4 + 4 + 12
    assert evaluate(values, Board.from_fen("rnbqk3/pp6/8/8/8/8/8/4K3 w - - 0 1")) == -28


TERMS = [  # position, name of a term without its stage, count from White's view
    ("4k3/8/8/8/8/P7/8/4K3 w - - 0 1", "isolated pawn on file a", 1),
    ("4k3/8/8/8/8/PP6/8/4K3 w - - 0 1", "isolated pawn on file a", 0),
    ("4k3/8/8/8/8/PP6/8/4K3 w - - 0 1", "pawn beside pawn on rank 3", 2),
    ("4k3/8/8/8/1P6/P7/8/4K3 w - - 0 1", "supported pawn on rank 4", 1),
    ("4k3/8/8/8/P7/P7/8/4K3 w - - 0 1", "doubled pawn on file a", 1),
    ("4k3/8/p7/8/p7/8/8/4K3 w - - 0 1", "doubled pawn on file a", -1),
    ("4k3/8/8/8/P7/P7/8/4K3 w - - 0 1", "passed pawn on rank 3", 0),
    ("4k3/8/8/8/P7/P7/8/4K3 w - - 0 1", "passed pawn on rank 4", 1),
    ("4k3/1p6/8/8/P7/8/8/4K3 w - - 0 1", "passed pawn on rank 4", 0),
    ("4k3/8/8/1p6/8/P7/8/4K3 w - - 0 1", "passed pawn on rank 3", 0),
    ("4k3/8/8/8/1p6/P7/8/4K3 w - - 0 1", "passed pawn on rank 5", 0),
    ("4k3/8/8/8/8/1p6/P7/4K3 w - - 0 1", "passed pawn on rank 6", 0),
    ("4k3/8/8/8/1P6/8/2P5/4K3 w - - 0 1", "backward pawn", 0),
    ("4k3/8/8/1P1p4/3p4/8/2P5/4K3 w - - 0 1", "backward pawn", 1),
    ("4k3/8/8/1P1p4/3p4/8/2P5/4K3 w - - 0 1", "backward pawn on half-open file", 1),
    ("4k3/8/2p5/1P1p4/3p4/8/2P5/4K3 w - - 0 1", "backward pawn on half-open file", 0),
    ("4k3/8/8/8/n7/P7/8/4K3 w - - 0 1", "blocked passed pawn on rank 3", 1),
    ("4k3/8/8/8/8/P7/8/4K3 w - - 0 1", "passed pawn with free path on rank 3", 1),
    ("8/8/8/P6k/8/8/8/4K3 w - - 0 1", "unstoppable passed pawn", 1),
    ("8/8/8/P3k3/8/8/8/4K3 w - - 0 1", "unstoppable passed pawn", 1),
    ("8/8/8/P3k3/8/8/8/4K3 b - - 0 1", "unstoppable passed pawn", 0),
    ("4k3/8/8/8/8/8/P2P4/4K3 w - - 0 1", "pawn islands", 2),
    ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", "rook on open file", 1),
    ("4k3/p7/8/8/8/8/8/R3K3 w - - 0 1", "rook on half-open file", 1),
    ("4k3/p7/8/8/8/8/P7/R3K3 w - - 0 1", "rook on half-open file", 0),
    ("4k3/R7/8/8/8/8/8/4K3 w - - 0 1", "rook on seventh rank", 1),
    ("8/R7/8/4k3/8/8/8/4K3 w - - 0 1", "rook on seventh rank", 0),
    ("4k3/8/8/8/8/8/8/R2RK3 w - - 0 1", "connected rooks", 2),
    ("4k3/8/8/8/8/8/8/B2BK3 w - - 0 1", "bishop pair", 1),
    ("4k3/8/8/8/8/8/8/N3K3 w - - 0 1", "knight mobility 2", 1),
    ("4k3/8/8/3N4/8/8/8/4K3 w - - 0 1", "knight mobility 8", 1),
    ("4k3/8/8/8/8/8/8/R3K3 w - - 0 1", "rook mobility 10", 1),
    ("4k3/8/8/3N4/4P3/8/8/4K3 w - - 0 1", "knight outpost on rank 5", 1),
    ("4k3/2p5/8/3N4/4P3/8/8/4K3 w - - 0 1", "knight outpost on rank 5", 0),
    ("4k3/8/8/3n4/4P3/8/8/4K3 w - - 0 1", "pawn attacks knight", 1),
    ("4k3/8/8/3r4/8/4N3/8/4K3 w - - 0 1", "minor piece attacks rook", 1),
    ("4k3/8/8/3q4/8/8/8/3RK3 w - - 0 1", "rook attacks queen", 1),
    ("4k3/8/8/3q4/8/8/8/3RK3 w - - 0 1", "attacked and undefended queen", 1),
    ("4k3/8/4p3/3q4/8/8/8/3RK3 w - - 0 1", "attacked and undefended queen", 0),
    ("4k3/8/8/8/8/8/3PP3/R3K2R w KQ - 0 1", "may castle short", 1),
    ("r3k2r/8/8/8/8/8/3PP3/4K2R w Kkq - 0 1", "may castle long", -1),
    ("4k3/8/8/8/8/8/5PPP/6K1 w - - 0 1", "king shelter b/g-file pawn on rank 2", 1),
    ("4k3/8/8/8/8/6P1/5P1P/6K1 w - - 0 1", "king shelter b/g-file pawn on rank 3", 1),
    ("6k1/5ppp/8/8/6P1/8/8/6K1 w - - 0 1", "pawn storm b/g-file pawn on rank 5", -1),
    ("4k3/8/8/8/8/8/8/6K1 w - - 0 1", "king on open file", 0),
    ("4k3/8/8/8/8/8/4p3/6K1 w - - 0 1", "king on open file", 1),
    ("6k1/5p2/8/8/8/8/5R2/4K3 w - - 0 1", "pieces near enemy king 1", 1),
    ("4k3/8/8/8/8/4N3/4P3/4K3 w - - 0 1", "blocked pawn e2", 1),
    ("4k3/8/8/8/8/8/8/4K3 b - - 0 1", "side to move", -1),
    ("4k3/8/8/8/8/3K4/8/8 w - - 0 1", "king d3", 1),
]


@pytest.mark.parametrize(("fen", "term", "count"), TERMS)
def test_terms_mean_what_their_names_say(fen, term, count):
    indices, counts = features(Board.from_fen(fen))
    found = dict(zip([NAMES[i] for i in indices], counts.tolist(), strict=True))
    assert f"{term}, endgame" in NAMES
    assert sum(found.get(f"{term}, {stage}", 0) for stage in ("middlegame", "endgame")) == pytest.approx(count)


def test_stages_share_a_count_by_the_material():
    indices, counts = features(Board.from_fen("3qk3/8/8/8/8/8/8/RN2K3 w - - 0 1"))  # phase 2 + 1 + 4 of 24
    found = dict(zip([NAMES[i] for i in indices], counts.tolist(), strict=True))
    assert found["side to move, middlegame"] == pytest.approx(7 / 24)
    assert found["side to move, endgame"] == pytest.approx(17 / 24)
    assert (found["rook"], found["knight"], found["queen"]) == (1, 1, -1)


def test_bad_coefficients_are_refused():
    with pytest.raises(ValueError, match=f"the evaluation has {SIZE}"):
        packed_coefficients(np.zeros(SIZE - 1))
    for bad in (np.nan, np.inf, -1001):
        values = start_values()
        values[3] = bad
        with pytest.raises(ValueError, match=r"coefficients: rook is .* pawns; it must be at most 1000"):
            packed_coefficients(values)
