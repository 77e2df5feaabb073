"""Alpha-beta for chess: the value of plain minimax, and a leaf whose evaluation that value is."""

import random
import threading

import numpy as np
import pytest

from rlgames.chess.board import MOST_MOVES, START, Board, Chess, checkers, drawn, generate, piece_at, play
from rlgames.chess.evaluation import PAWN, SIZE, evaluate, features, start_values
from rlgames.chess.search import Limits, Search
from rlgames.chess.search.alphabeta import INFINITE, MATE, begin, quiescence, repeated, search_position, static
from rlgames.chess.search.ordering import VALUES, loses_material
from rlgames.chess.search.tree import evaluations, weighted_counts
from rlgames.compiled import compile_function
from rlgames.search.bounds import EXACT, LOWER, UPPER
from tests.support import DATA


@pytest.fixture(scope="module")
def coefficients():
    values = start_values()
    values[5:] += 0.05 * np.random.default_rng(0).standard_normal(SIZE - 5).astype(np.float32)
    return values


def random_positions(count, seed, longest=120):
    rng, boards = random.Random(seed), []
    while len(boards) < count:
        board = START
        for _ in range(rng.randrange(4, longest)):
            if not board.over():
                board = board.play(int(rng.choice(board.moves().tolist())))
        if not board.over():
            boards.append(board)
    return boards


@compile_function
def plain_quiet(s, b, ply):
    if drawn(b):
        return 0
    checks = checkers(b)
    best = -MATE + ply if checks else static(s, b)
    moves = np.empty(MOST_MOVES, np.int64)
    n = generate(b, checks, moves, checks == 0)
    for k in range(n):
        if checks or not loses_material(b, moves[k]) or moves[k] >> 12:
            best = max(best, -plain_quiet(s, play(b, moves[k]), ply + 1))
    return best


@compile_function
def plain(s, b, depth, ply):
    """The value by plain minimax, nothing left out down to quiescence."""
    checks = checkers(b)
    if checks:
        depth += 1
    if ply > 0 and (drawn(b) or repeated(s, b, ply)):
        return 0
    if depth <= 0:
        return quiescence(s, b, checks, ply, np.int64(-INFINITE), np.int64(INFINITE))
    moves = np.empty(MOST_MOVES, np.int64)
    n = generate(b, checks, moves, False)
    if n == 0:
        return -MATE + ply if checks else 0
    s.keys[s.root + ply] = b.key
    best = -INFINITE
    for k in range(n):
        best = max(best, -plain(s, play(b, moves[k]), depth - 1, ply + 1))
    return best


@compile_function
def plain_root(memory, b, depth):
    s = memory[0]
    begin(s, b, np.empty(0, np.int64), 0)
    s.node_limit = INFINITE
    return plain(s, b, depth, np.int64(0))


@compile_function
def both_quiet(memory, b, ply):
    s = memory[0]
    begin(s, b, np.empty(0, np.int64), 0)
    s.node_limit = INFINITE
    return plain_quiet(s, b, ply), quiescence(s, b, checkers(b), ply, np.int64(-INFINITE), np.int64(INFINITE))


@pytest.mark.parametrize("table_use", [0, 1])
def test_the_value_is_that_of_plain_minimax(coefficients, table_use):
    search = Search(coefficients, table_use=table_use, selective=False)
    kinds = set()
    for board in random_positions(6, seed=5):
        for depth in (1, 2, 3) if len(board.moves()) < 10 else (1, 2):
            found = search.run(board, limits=Limits(depth=depth))
            value = plain_root(search.state.memory, board, depth)
            assert found.depth == depth or found.mate
            if found.mate:
                assert abs(value) == MATE - (2 * found.mate - 1 if found.mate > 0 else -2 * found.mate)
            else:
                assert found.score * PAWN == value
            kinds.add(found.leaf_is_evaluation)
    assert True in kinds


@pytest.mark.thorough
@pytest.mark.parametrize("table_use", [0, 1])
def test_notes_of_the_tree_hold_for_plain_minimax(coefficients, table_use):
    search, kinds = Search(coefficients, 0.1, table_use, selective=False, tree=True), np.zeros(4, int)
    board, rng = Board.from_fen("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"), random.Random(5)
    for _ in range(4):
        board = board.play(int(rng.choice(board.moves().tolist())))
        search.clear()
        found = search.run(board, limits=Limits(depth=3))
        tree = found.tree
        boards = [Board(*row) for row in tree.boards.tolist()]
        assert len(set(boards)) == len(boards)
        root = boards.index(board)
        assert tree.bounds[root] == EXACT
        assert found.mate or tree.scores[root] == found.score
        for b, player, depth, bound, score, quiet in zip(boards, *tree[1:], strict=True):
            assert player == b.player()
            resolved = both_quiet(search.state.memory, b, np.int64(0))[0]
            assert quiet == (not b.in_check() and resolved == player * round(PAWN * evaluate(coefficients, b)))
            value = plain_root(search.state.memory, b, depth - b.in_check()) / PAWN
            kinds[bound] += 1
            assert value >= score or bound == UPPER
            assert value <= score or bound == LOWER
    assert (kinds[1:] > 20).all()


def test_notes_are_of_the_last_whole_iteration(coefficients):
    search = Search(coefficients, 1, tree=True)
    whole = search.run(START, limits=Limits(depth=3))
    search.clear()
    broken_off = search.run(START, limits=Limits(nodes=whole.nodes + 50))
    assert broken_off.nodes > whole.nodes
    assert all((a == b).all() for a, b in zip(whole.tree, broken_off.tree, strict=True))
    assert (whole.tree.depths.max(), whole.tree.depths.min()) == (3, 1)
    assert Search(coefficients, 1).run(START).tree is None


def test_positions_of_a_tree_are_evaluated_together(coefficients):
    tree = Search(coefficients, 1, tree=True).run(START, limits=Limits(depth=3)).tree
    boards = [Board(*row) for row in tree.boards.tolist()]
    assert evaluations(tree.boards, coefficients) == pytest.approx([evaluate(coefficients, b) for b in boards])
    factors = np.random.default_rng(0).standard_normal(len(boards))
    expected = np.zeros(SIZE)
    for board, factor in zip(boards, factors, strict=True):
        indices, counts = features(board)
        expected[indices] += factor * counts
    assert weighted_counts(tree.boards, factors) == pytest.approx(expected)


def test_quiescence_is_plain_minimax_over_captures(coefficients):
    search, positions, gains = Search(coefficients), 0, 0
    for board in random_positions(150, seed=9, longest=200):
        if (board.white | board.black).bit_count() <= 16:
            wanted, got = both_quiet(search.state.memory, board, 1)
            assert got == wanted
            positions += 1
            gains += got != searched(search.state.memory, board)
    assert positions > 20
    assert gains > 3


@compile_function
def searched(memory, board):
    return static(memory[0], board)


@pytest.mark.parametrize(("table_use", "selective"), [(0, False), (2, False), (2, True)])
def test_the_leaf_has_the_value_of_the_root(coefficients, table_use, selective):
    search = Search(coefficients, table_use=table_use, selective=selective)
    judged = 0
    for board in random_positions(150, seed=6):
        found = search.run(board, limits=Limits(nodes=3_000))
        leaf = board
        for move in found.pv:
            assert move in leaf.moves()
            leaf = leaf.play(move)
        assert leaf == found.leaf
        assert found.move == found.pv[0]
        if found.leaf_is_evaluation:
            assert not leaf.in_check()
            assert board.player() * evaluate(coefficients, leaf) == found.score
            judged += 1
        else:
            assert found.mate or found.score == 0
            assert not found.mate or leaf.winner() == board.player() * np.sign(found.mate)
    assert judged > 100


MATES = [
    ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8", 1),
    ("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", "h5f7", 1),
    ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", "a1a6", 2),  # Morphy
    ("r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", "f6a6", 3),
]


@pytest.mark.parametrize(("fen", "move", "n"), MATES)
@pytest.mark.parametrize("selective", [False, True])
def test_mates_are_found(fen, move, n, selective):
    board = Board.from_fen(fen)
    found = Search(start_values(), selective=selective).run(board, limits=Limits(depth=2 * n + 2))
    assert (board.uci(found.move), found.mate, found.leaf_is_evaluation) == (move, n, False)
    assert found.leaf.winner() == 1
    assert len(found.pv) == 2 * n - 1


def test_being_mated_is_found():
    board = Board.from_fen("7k/8/5KR1/8/8/8/8/8 b - - 0 1")
    found = Search(start_values()).run(board, limits=Limits(depth=4))
    assert (board.uci(found.move), found.mate) == ("h8h7", 0) or found.mate < 0
    board = Board.from_fen("k7/2K5/8/8/8/8/8/1R6 b - - 0 1")  # Ka7 Ra1 mate is forced
    found = Search(start_values()).run(board, limits=Limits(depth=4))
    assert (board.uci(found.move), found.mate) == ("a8a7", -1)


def test_stalemate_is_a_draw():
    board = Board.from_fen("2Q5/8/8/8/3r4/8/2K5/k7 b - - 0 1")  # the end of Saavedra's study, if White makes a queen
    found = Search(start_values()).run(board, limits=Limits(depth=4))
    assert (board.uci(found.move), found.score, found.leaf_is_evaluation) == ("d4c4", 0, False)
    board = Board.from_fen("8/8/3k4/8/8/7K/6pP/4b3 b - - 1 4")
    found = Search(start_values()).run(board, limits=Limits(depth=4))
    assert board.uci(found.move) not in ("g2g1q", "g2g1r")


def test_one_repetition_before_the_root_is_no_draw():
    boards = [START]
    for move in ["e2e4", "b8c6", "d2d4", "c6b8", "d4d5", "b8c6", "g1f3", "c6b8", "f3g1"]:
        boards.append(boards[-1].play(boards[-1].from_uci(move)))
    keys = [board.key for board in boards[:-1]]
    found = Search(start_values()).run(boards[-1], keys, Limits(depth=3))
    assert boards[-1].uci(found.move) != "b8c6"  # d5c6 wins the knight; the position has been there but once


def test_a_lost_game_is_saved_by_repetition():
    board = Board.from_fen(
        "6k1/6p1/5p2/7Q/8/2q5/r7/6K1 w - - 0 30"
    )  # a rook down, but Qe8+ Kh7 Qh5+ and so on for ever
    found = Search(start_values()).run(board, limits=Limits(depth=6))
    assert (board.uci(found.move), found.score, found.mate, found.leaf_is_evaluation) == ("h5e8", 0, 0, False)


@pytest.mark.parametrize(("times", "drawn"), [(1, False), (2, True)])
def test_positions_before_the_root_count_if_they_were_there_twice(times, drawn):
    board = Board.from_fen("kb6/p7/P7/8/8/8/8/7K b - - 40 60")
    after = [board.play(int(move)).key for move in board.moves()]
    keys = [key for k in after * times for key in (k, 0)] + [0]  # such positions, with others in between
    found = Search(start_values()).run(board, keys, Limits(depth=1))
    assert (found.score, found.leaf_is_evaluation) == ((0, False) if drawn else (4, True))


@pytest.mark.parametrize("selective", [False, True])
def test_only_some_moves_at_the_root(coefficients, selective):
    search, plain = Search(coefficients, selective=selective), Search(coefficients, table_use=0, selective=False)
    for board in random_positions(5, seed=11):
        moves = [int(move) for move in board.moves()]
        assert search.run(board, limits=Limits(depth=2), roots=moves) == Search(coefficients, selective=selective).run(
            board, limits=Limits(depth=2)
        )
        search.clear()
        scores = {}
        for move in moves:
            found = plain.run(board, limits=Limits(depth=2), roots=[move])
            assert (found.move, found.pv[0]) == (move, move)
            scores[move] = found.score
        while len(moves) > 1:
            found = search.run(board, limits=Limits(depth=2), roots=moves)
            assert found.mate or found.score == max(scores[move] for move in moves)
            moves.remove(found.move)
        assert search.run(board, limits=Limits(depth=2), roots=moves).move == moves[0]
        search.clear()


def test_results_do_not_depend_on_earlier_searches_after_clear(coefficients):
    search, boards = Search(coefficients), random_positions(10, seed=7)
    for limits in (Limits(nodes=5_000), Limits(depth=3)):
        alone = []
        for board in boards:
            search.clear()
            alone.append(search.run(board, limits=limits))
        assert alone == [Search(coefficients).run(board, limits=limits) for board in boards]
        for board in reversed(boards):  # and without clear they are legal at least
            assert search.run(board, limits=limits).move in board.moves()


@pytest.mark.parametrize("nodes", [1, 2, 1_000, 20_000])
def test_node_limit(coefficients, nodes):
    """Depth 1 is always completed."""
    found = Search(coefficients).run(START, limits=Limits(nodes=nodes))
    assert found.nodes <= max(nodes, 200)
    assert found.depth >= 1
    assert found.move in START.moves()


def test_an_endless_search_can_be_stopped(coefficients):
    search, found = Search(coefficients), []
    thread = threading.Thread(target=lambda: found.append(search.run(START, limits=Limits())))
    thread.start()
    while thread.is_alive():
        search.stop()
        thread.join(0.1)
    assert found[0].move in START.moves()


def test_time_limit(coefficients):
    found = Search(coefficients).run(START, limits=Limits(ms=30))
    assert found.move in START.moves()


def test_positions_without_a_move_and_bad_limits_are_refused():
    search = Search(start_values())
    with pytest.raises(ValueError, match="the game is over; there is no move to choose"):
        search.run(Chess().play("f2f3 e7e5 g2g4 d8h4"))
    with pytest.raises(ValueError, match="limits must not be negative"):
        search.run(START, limits=Limits(depth=-1))
    with pytest.raises(ValueError, match="hash_mb is 0"):
        Search(start_values(), hash_mb=0)


def test_a_drawn_position_with_moves_can_be_searched():
    board = Board.from_fen("8/8/8/4k3/8/8/8/R3K3 w - - 100 90")
    found = Search(start_values()).run(board, limits=Limits(depth=3))
    assert found.move in [int(move) for move in Board.from_fen("8/8/8/4k3/8/8/8/R3K3 w - - 0 90").moves()]


def test_many_moves():
    board = Board.from_fen("3Q4/1Q4Q1/4Q3/2Q4R/Q4Q2/3Q4/1Q4Rp/1K1BBNNk w - - 0 1")
    assert Search(start_values()).run(board, limits=Limits(depth=1)).move in board.moves()


def exchange(board, target, side):
    """Plain recursion: what the player ``side`` gains by taking on ``target`` or not, the least piece first."""
    takers = [m for m in map(int, board.moves()) if m >> 6 & 63 == target and m >> 12 in (0, 4)]
    if not takers:
        return 0
    move = min(takers, key=lambda m: VALUES[piece_at(board, m & 63)])
    gain = VALUES[piece_at(board, target)]
    return max(0, gain - exchange(board.play(move), target, -side))


def test_losing_captures():
    cases = [
        ("4k3/8/3p4/4p3/8/8/8/4R1K1 w - - 0 1", "e1e5", True),
        ("4k3/8/8/4p3/8/8/8/4R1K1 w - - 0 1", "e1e5", False),
        ("4k3/8/3p4/4n3/3P4/8/8/4K3 w - - 0 1", "d4e5", False),
        ("4k3/4r3/8/4p3/8/8/4R3/4R1K1 w - - 0 1", "e2e5", False),  # two rooks against one
        ("4k3/4r3/3p4/4p3/8/8/4R3/4R1K1 w - - 0 1", "e2e5", True),
        ("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "d3e5", True),
        ("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", False),
        ("4k3/8/8/3q4/8/4K3/8/3R4 w - - 0 1", "d1d5", False),
        ("8/8/3k4/4p3/8/8/4R3/4K3 w - - 0 1", "e2e5", True),  # the king takes back
        ("8/8/3k4/4p3/8/8/4R3/K3R3 w - - 0 1", "e2e5", False),  # and here it may not
    ]
    for fen, move, loses in cases:
        board = Board.from_fen(fen)
        assert losing(board, board.from_uci(move)) == loses, fen


@compile_function
def losing(board, move):
    return loses_material(board, move)


def test_losing_captures_agree_with_plain_recursion():
    compared = 0
    for board in random_positions(300, seed=8):
        if board.pawns & (0xFF << 8 | 0xFF << 48) or board.in_check():
            continue  # promotions and checks are beyond the quick count
        for move in map(int, board.moves()):
            target = move >> 6 & 63
            if piece_at(board, target) != 6 and piece_at(board, move & 63) != 5:
                after = board.play(move)
                if after.in_check() or after.over():
                    continue
                gain = VALUES[piece_at(board, target)] - exchange(after, target, 0)
                compared += losing(board, move) == (gain < 0)
                compared -= 20 * (losing(board, move) != (gain < 0))
    assert compared > 0


def solved(path, nodes, coefficients):
    """Number of positions of a test suite whose move is found, and number of positions."""
    chess = pytest.importorskip("chess", reason="python-chess comes with the extra rlgames[chess]")
    search, found, total = Search(coefficients), 0, 0
    with open(path) as lines:
        for line in lines:
            theirs, operations = chess.Board.from_epd(line)
            if "bm" not in operations:
                continue
            board = Board.from_fen(theirs.fen())
            search.clear()
            total += 1
            found += board.uci(search.run(board, limits=Limits(nodes=nodes)).move) in [
                m.uci() for m in operations["bm"]
            ]
    return found, total


@pytest.mark.slow
def test_tactics():
    """Win at Chess (Reinfeld 1958)."""
    try:
        found, total = solved(DATA / "wac.epd", 100_000, start_values())
    except FileNotFoundError:
        pytest.skip("no test suite")
    assert found > 0.7 * total


def test_compiled_entry_gives_what_the_class_gives(coefficients):
    search = Search(coefficients)
    found = search_position(search.state, START, np.empty(0, np.int64), 0, 2_000, 0)
    search.clear()
    result = search.run(START, limits=Limits(nodes=2_000))
    assert (found.move, found.score / PAWN, found.nodes) == (result.move, result.score, result.nodes)
