"""The rules of chess; python-chess is the oracle where it is installed."""

import random

import numpy as np
import pytest

from rlgames.build import build, load
from rlgames.chess.board import MOST_MOVES, START, Board, Chess, checkers, complete, drawn, generate, play, repetitions
from rlgames.compiled import compile_function

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PERFT = [  # published numbers of move sequences
    (START.fen(), 5, 4_865_609),
    (KIWIPETE, 4, 4_085_603),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 4, 43_238),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 4, 422_333),
    ("r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1", 4, 422_333),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 4, 2_103_487),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 4, 3_894_594),
]


@compile_function
def perft(board, depth):
    moves = np.empty(MOST_MOVES, np.int64)
    n = generate(board, checkers(board), moves, False)
    if depth == 1:
        return n
    total = 0
    for k in range(n):
        total += perft(play(board, moves[k]), depth - 1)
    return total


@compile_function
def captures(board):
    moves = np.empty(MOST_MOVES, np.int64)
    return moves[: generate(board, checkers(board), moves, True)]


@pytest.mark.parametrize(("fen", "depth", "number"), PERFT)
def test_known_numbers_of_move_sequences(fen, depth, number):
    assert perft(Board.from_fen(fen), depth) == number


def uci_moves(board, moves=None):
    return sorted(board.uci(int(move)) for move in (board.moves() if moves is None else moves))


def check_random_positions(count, seed):
    """Plays random games, and compares every position with python-chess; returns what happened."""
    chess = pytest.importorskip("chess", reason="python-chess comes with the extra rlgames[chess]")
    rng, seen, keys_of = random.Random(seed), set(), {}
    positions = 0
    while positions < count:
        ours, theirs, keys = START, chess.Board(), []
        while True:
            fen = theirs.fen(en_passant="legal")
            assert ours.fen() == fen
            assert Board.from_fen(fen) == ours  # the key made move by move is the key made from nothing
            legal = sorted(move.uci() for move in theirs.legal_moves)
            dead, fifty = theirs.is_insufficient_material(), theirs.is_fifty_moves()
            assert drawn(ours) == (dead or fifty)
            assert uci_moves(ours) == ([] if dead or fifty else legal)
            material = [m.uci() for m in theirs.legal_moves if theirs.is_capture(m) or m.promotion]
            assert uci_moves(ours, captures(ours)) == sorted(material)
            assert ours.in_check() == theirs.is_check()
            assert ours.winner() == (-ours.player() if theirs.is_checkmate() else 0)
            assert (repetitions(np.array(keys, np.int64), len(keys), ours) >= 2) == theirs.is_repetition(3)
            # equal keys exactly for equal positions
            assert keys_of.setdefault(ours.key, theirs._transposition_key()) == theirs._transposition_key()
            seen |= {theirs.is_checkmate() and "mate", theirs.is_stalemate() and "stalemate", dead and "dead"}
            seen |= {fifty and "fifty", theirs.is_repetition(3) and "repetition", ours.en_passant >= 0 and "en passant"}
            positions += 1
            if not legal or dead or fifty or positions >= count:
                break
            castling = [move.uci() for move in theirs.legal_moves if theirs.is_castling(move)]
            move = rng.choice(castling if castling and rng.random() < 0.5 else legal)
            seen |= {theirs.is_castling(chess.Move.from_uci(move)) and "castling", len(move) == 5 and "promotion"}
            keys.append(ours.key)
            ours = ours.play(ours.from_uci(move))
            theirs.push_uci(move)
    assert len(set(keys_of.values())) == len(keys_of)
    return seen - {False}


def test_agrees_with_python_chess():
    assert {"castling", "promotion"} <= check_random_positions(2_000, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_agrees_with_python_chess_in_many_positions():
    seen = check_random_positions(100_000, seed=2)
    assert seen >= {"mate", "stalemate", "dead", "fifty", "repetition", "en passant", "castling", "promotion"}


RULES = [  # position, a move, whether it is legal, number of legal moves
    ("rnbqk2r/pppPppbp/5np1/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 4", "e8g8", False, 6),  # out of check
    ("1r2k3/8/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1", True, 16),  # b1 may be attacked
    ("3rk3/8/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1", False, 13),  # d1 may not
    ("4kr2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", False, 12),
    ("k3r3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", False, 4),  # nor the king
    ("8/8/8/r2Pp2K/8/8/4k3/8 w - e6 0 1", "d5e6", False, 6),  # two pawns leave the rank at once
    ("1b6/8/8/3Pp3/8/8/4k2K/8 w - e6 0 1", "d5e6", False, None),
    ("4k3/2b5/8/3pP3/8/6K1/8/8 w - d6 0 1", "e5d6", True, 9),  # stays on the line of the pin
    ("8/8/8/2k1K3/2pP4/8/8/8 b - d3 0 1", "c4d3", True, 5),  # takes the pawn that gives check
    ("3Q4/1Q4Q1/4Q3/2Q4R/Q4Q2/3Q4/1Q4Rp/1K1BBNNk w - - 0 1", "g2h2", True, 218),  # the most that is known
    ("1B6/p5p1/N4p2/1P6/2p1k3/8/P2R1p2/7K b - - 1 40", "f2f1n", True, 11),
]


@pytest.mark.parametrize(("fen", "move", "legal", "number"), RULES)
def test_rules(fen, move, legal, number):
    board = Board.from_fen(fen)
    assert (move in uci_moves(board)) == legal
    if number:
        assert len(board.moves()) == number
    if not legal:
        with pytest.raises(ValueError, match=f"move '{move}' is not legal here; legal moves are "):
            board.from_uci(move)


@pytest.mark.parametrize("text", ["f2f1", "f2f1k", "f2f1Q", "", "0000", "e9e8", "e2e4e5", "O-O"])
def test_bad_moves_are_refused(text):
    with pytest.raises(ValueError, match="is not legal here; legal moves are c4c3 e4e3"):
        Board.from_fen("1B6/p5p1/N4p2/1P6/2p1k3/8/P2R1p2/7K b - - 1 40").from_uci(text)


def test_promotion_to_all_pieces():
    board = Board.from_fen("1B6/p5p1/N4p2/1P6/2p1k3/8/P2R1p2/7K b - - 1 40")
    ends = [board.play(board.from_uci(f"f2f1{letter}")).fen().split()[0][-2:] for letter in "qrbn"]
    assert ends == ["1K"] * 4
    assert [board.play(board.from_uci(f"f2f1{c}")).fen().split()[0].split("/")[-1] for c in "qrbn"] == [
        f"5{c}1K" for c in "qrbn"
    ]


def test_mate_stalemate_and_dead_material():
    mated = Chess().play("f2f3 e7e5 g2g4 d8h4")
    assert (mated.winner(), mated.over(), mated.in_check()) == (-1, True, True)
    stalemate = Board.from_fen("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
    assert (stalemate.winner(), stalemate.over(), stalemate.in_check()) == (0, True, False)
    assert Board.from_fen("5K2/8/8/1B6/8/k7/6b1/8 w - - 0 39").over()  # bishops on squares of one colour
    board = Board.from_fen("7k/8/7K/2Bb4/8/8/8/8 b - - 0 1")  # and of two: a mate exists
    assert not board.over()
    assert Chess().play("d5g8 c5d4", board).winner() == 1


def test_fifty_moves_but_mate_comes_first():
    assert Board.from_fen("8/8/8/4k3/8/8/8/R3K3 w - - 100 90").over()
    assert not Board.from_fen("8/8/8/4k3/8/8/8/R3K3 w - - 99 90").over()
    board = Board.from_fen("7k/8/6K1/8/8/8/8/R7 w - - 99 90")
    assert board.play(board.from_uci("a1a8")).winner() == 1


def test_threefold_repetition_needs_the_same_rights():
    moves = ["g1f3", "g8f6", "f3g1", "f6g8"]
    board, keys = START, []
    for move in moves * 2:
        keys.append(board.key)
        board = board.play(board.from_uci(move))
    assert repetitions(np.array(keys), len(keys), board) == 2
    board, keys = Chess().play("e2e4 e7e5"), []
    for move in ["e1e2", "e8e7", "e2e1", "e7e8"] * 2:
        keys.append(board.key)
        board = board.play(board.from_uci(move))
    assert repetitions(np.array(keys), len(keys), board) == 1  # castling was still possible the first time


def test_long_games():
    board, keys = START, []
    for k in range(2000):
        keys.append(board.key)
        board = board.play(board.from_uci(["g1f3", "g8f6", "f3g1", "f6g8"][k % 4])) if k < 100 else board
    assert board.over()  # fifty moves
    assert board.ply == 100


BAD_FEN = [
    ("", "it has 0 fields"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1", "it has 7 ranks; a board has 8"),
    ("rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "'9' is not a piece"),
    ("rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "rank 7 is 'ppppppppp', which has 9 squares"),
    ("rnbqkbnr/ppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "rank 7 is 'ppppppp', which has 7 squares"),
    ("rnbqxbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "'x' is not a piece"),
    ("rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "Black has 0 kings"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKKBNR w kq - 0 1", "White has 2 kings"),
    ("rnbqkbnP/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "White has 17 pieces"),
    ("rnbqkbnP/pppppppp/8/8/8/8/PPPPPPP1/RNBQKBNR w KQ - 0 1", "a pawn on the first or last rank"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1", "the side to move is 'x'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KX - 0 1", "castling rights are 'KX'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e9 0 1", "the en passant square is 'e9'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq x 0 1", "the en passant square is 'x'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - -1 1", "the half-move clock is '-1'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 x", "the move number is 'x'"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 2", "it has 7 fields"),
    ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR b KQkq - 1 3", "the side not to move is in check"),
    ("knNnNnNn/nNnNnNnN/NnNnNnNn/nNnNnNnN/NnNnNnNn/nNnNnNnN/NnNnNnNn/KNnNnNnN w - - 0 1", "pieces, 0 of them pawns"),
]


@pytest.mark.parametrize(("text", "wrong"), BAD_FEN)
def test_a_bad_fen_is_answered_with_one_sentence(text, wrong):
    with pytest.raises(ValueError, match=r"^FEN ") as error:
        Board.from_fen(text)
    assert wrong in str(error.value)
    assert "\n" not in str(error.value)


IMPOSSIBLE_RIGHTS = [  # as people and programs write them, and what is left
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/1NBQKBNR w KQkq - 0 1", "Kkq", "-"),  # a rook is gone
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQBKNR w KQkq - 0 1", "kq", "-"),  # a king has moved
    ("r3k2r/8/8/8/8/8/8/n3K2r w KQkq - 0 1", "kq", "-"),  # rooks of the other colour
    ("4k3/8/8/8/8/8/4P3/4K3 w KQkq - 0 1", "-", "-"),
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e6 0 1", "KQkq", "-"),  # no pawn has moved
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e3 0 1", "KQkq", "-"),  # of the wrong rank
    ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1", "KQkq", "-"),  # nobody can take
    ("4k3/4p3/8/3Pp3/8/8/8/4K3 w - e6 0 1", "-", "-"),  # the pawn has not come from e7
    ("4k3/8/4n3/3Pp3/8/8/8/4K3 w - e6 0 1", "-", "-"),  # nor over e6
    ("4k3/8/8/3Pp3/8/8/8/4K3 w - e6 0 1", "-", "e6"),
    ("4k3/8/8/3Pp3/8/8/8/4K3 w - a4 0 1", "-", "-"),
]


@pytest.mark.parametrize(("fen", "castling", "en_passant"), IMPOSSIBLE_RIGHTS)
def test_impossible_rights_are_dropped(fen, castling, en_passant):
    board = Board.from_fen(fen)
    assert board.fen().split()[2:4] == [castling, en_passant]
    assert Board.from_fen(board.fen()) == board
    chess = pytest.importorskip("chess", reason="python-chess comes with the extra rlgames[chess]")
    theirs = chess.Board(board.fen())
    assert theirs.is_valid()
    assert uci_moves(board) == sorted(move.uci() for move in theirs.legal_moves)
    assert theirs.clean_castling_rights() == chess.Board(fen).clean_castling_rights()


def test_short_fen_and_positions_of_test_suites():
    assert Board.from_fen("8/7p/5k2/5p2/p1p2P2/Pr1pPK2/1P1R3P/8 b - -").fen().endswith(" b - - 0 1")
    assert Board.from_fen(START.fen()) == START == complete(START)
    assert START.fen() == "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def test_text_and_picture():
    lines = str(Chess().play("e2e4")).splitlines()
    assert lines[4] == "4  . . . . P . . ."
    assert lines[-1] == "Black to move"
    assert lines[-2] == "   a b c d e f g h"
    assert START._repr_svg_().count("♟") == START._repr_svg_().count("♙") == 8


def test_game_is_built_from_its_yaml():
    game = build(load("game=chess"), "game")
    assert (game.name, game.board) == ("chess", START)
    assert game.play([int(move) for move in game.board.moves()[:1]]).ply == 1
    with pytest.raises(ValueError, match="move 'e2e5' is not legal here"):
        game.play("e2e5")
    with pytest.raises(ValueError, match="the game is over"):
        game.play("f2f3 e7e5 g2g4 d8h4 a2a3")
