import io
import itertools

import numpy as np
import pytest

from rlgames.chess.board import START, Board, Chess
from rlgames.chess.contest import Adjudication, Course, play
from rlgames.chess.epd import split_epd
from rlgames.chess.evaluation import start_values
from rlgames.chess.features import ChessTerms
from rlgames.chess.match_evaluation import MatchEvaluation
from rlgames.chess.openings import Openings
from rlgames.chess.pairs import play_pair
from rlgames.chess.pgn import from_san, pgn, read_pgn, san
from rlgames.chess.search import Result
from rlgames.chess.search_agent import SearchAgent
from rlgames.chess.searcher import Searcher, Untrained
from rlgames.chess.uci_engine import EngineError
from rlgames.networks.linear import LinearEvaluation
from rlgames.optim import TDL
from rlgames.players import GreedyPlayer

GAME = Chess()
FREE = Adjudication(resign=0, draw_moves=0)
SOME = Openings(random_plies=4)


def level(board):
    return 0.0


class Script:
    """Plays given moves, saying that it sees a score."""

    def __init__(self, moves, score=0.0, name="script"):
        self.moves, self.score, self.name, self.games = moves.split(), score, name, 0

    def new_game(self):
        self.games += 1
        self.left = itertools.cycle(self.moves)

    def think(self, course):
        move = course.board.from_uci(next(self.left))
        return Result(move, self.score, 0, (move,), course.board, True, 1, 1)


class Dies(Script):
    def think(self, course):
        raise EngineError("gone")


def course(fen, moves=""):
    start = Board.from_fen(fen)
    result = Course(start)
    for word in moves.split():
        result.play(result.board.from_uci(word))
    return result


@pytest.mark.parametrize(
    ("fen", "moves", "end"),
    [
        (START.fen(), "f2f3 e7e5 g2g4 d8h4", (-1, "mate")),
        (START.fen(), "e2e4", None),
        ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", "g5g6", (0, "stalemate")),
        ("7k/8/8/6K1/8/8/8/6R1 w - - 99 80", "g1f1", (0, "fifty moves")),
        ("7k/8/6K1/8/8/8/8/R7 w - - 99 80", "a1a8", (1, "mate")),
        ("5K2/8/8/1B6/8/k7/6b1/8 w - - 0 39", "", (0, "dead material")),
        (START.fen(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1", None),
        (START.fen(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8", (0, "threefold repetition")),
    ],
)
def test_the_rules_end_a_game(fen, moves, end):
    assert course(fen, moves).end() == end


def test_a_game_between_scripts():
    white, black = Script("f2f3 g2g4"), Script("e7e5 d8h4")
    record = play(white, black, Course(), FREE)
    assert (record.winner, record.reason) == (-1, "mate")
    assert record.course.uci() == ["f2f3", "e7e5", "g2g4", "d8h4"]
    assert len(record.thoughts) == 4
    assert (white.games, black.games) == (1, 1)


def shuffle(white_score, black_score, rules):
    return play(Script("g1f3 f3g1", white_score), Script("b8c6 c6b8", black_score), Course(), rules)


def test_adjudication():
    rules = Adjudication(max_plies=6, resign=5.0, resign_moves=2, draw=0.1, draw_moves=2, draw_from=2)
    assert shuffle(6.0, -6.0, rules)[2:] == (1, "adjudication: decisive score")
    assert shuffle(-6.0, 6.0, rules)[2:] == (-1, "adjudication: decisive score")
    assert len(shuffle(6.0, -6.0, rules).thoughts) == 4
    assert shuffle(0.1, -0.1, rules)[2:] == (0, "adjudication: even score")
    assert shuffle(6.0, -4.0, rules)[2:] == (0, "adjudication: too long")
    assert shuffle(6.0, 6.0, rules)[2:] == (0, "adjudication: too long")
    assert shuffle(6.0, -6.0, FREE)[2:] == (0, "threefold repetition")


def test_opening_moves_are_not_thoughts():
    opening = Course(START, (START.from_uci("e2e4"),))
    record = play(Script("d2d4"), Script("e7e5"), opening, Adjudication(max_plies=2))
    assert (record.course.opening, len(record.thoughts)) == (1, 1)


@pytest.mark.parametrize(
    ("fen", "move", "text"),
    [
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "O-O"),
        ("r3k3/8/8/8/8/8/8/4K3 b q - 0 1", "e8c8", "O-O-O"),
        ("3rk3/4P3/8/8/8/8/8/4K3 w - - 0 1", "e7d8q", "exd8=Q+"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"),
        ("4k3/8/8/8/8/8/1N3N2/4K3 w - - 0 1", "b2d1", "Nbd1"),
        ("4k3/8/8/8/1N6/8/1N6/4K3 w - - 0 1", "b2d3", "N2d3"),
        ("2k5/8/8/8/Q6Q/8/8/K6Q w - - 0 1", "h4e4", "Qh4e4"),
        ("7k/R7/6K1/8/8/8/8/8 w - - 0 1", "a7a8", "Ra8#"),
    ],
)
def test_san_by_hand(fen, move, text):
    board = Board.from_fen(fen)
    assert san(board, board.from_uci(move)) == text


def test_san_and_pgn_as_the_library_reads_them():
    chess = pytest.importorskip("chess")
    pytest.importorskip("chess.pgn")
    rng = np.random.default_rng(0)
    for number in range(10):
        opening = Openings(random_plies=60).draw(rng, level)
        moves, end = opening.moves, len(opening.moves)
        start = opening.boards[number]
        told = [Result(move, 0.5, 0, (move,), START, True, 1, 3) for move in moves[number:]]
        rest = Course(start, tuple(moves[number:]))
        rest.opening = 3
        record = play(Script("a"), Script("a"), rest, Adjudication(max_plies=1))._replace(thoughts=told[3:])
        read = chess.pgn.read_game(io.StringIO(pgn(record, {"Event": "a b", "White": "x"})))
        assert not read.errors
        assert [move.uci() for move in read.mainline_moves()] == rest.uci()
        assert read.headers["Event"] == "a b"
        assert read.headers["Result"] == "1/2-1/2"
        assert read.board().fen(en_passant="legal") == start.fen()
        board = read.board()
        for n, move in enumerate(read.mainline_moves()):
            assert san(rest.boards[n], rest.moves[n]) == board.san(move)
            board.push(move)
        assert end == 60
        assert list(read.mainline())[3].comment == "+0.50/3"


def test_random_openings_are_different_and_repeatable():
    drawn = [tuple(SOME.draw(np.random.default_rng(seed), level).moves) for seed in range(20)]
    assert len(set(drawn)) == 20
    assert drawn[3] == tuple(SOME.draw(np.random.default_rng(3), level).moves)
    assert SOME.draw(np.random.default_rng(0), level).opening == 4


def test_decided_openings_are_refused():
    seen = []

    def score(board):
        seen.append(board)
        return 9.0 if len(seen) < 3 else -1.0

    SOME.draw(np.random.default_rng(0), score)
    assert len(seen) == 3
    with pytest.raises(ValueError, match="a thousand openings in a row"):
        SOME.draw(np.random.default_rng(0), lambda board: -9.0)


def test_books(tmp_path, capsys):
    file = tmp_path / "book.epd"
    file.write_text(
        '\ufeff# comment\r\n4k3/8/8/8/8/8/8/4K2R w K - bm O-O; id "x";\r\n\r\n4k2r/8/8/8/8/8/8/4K3 b k - 3 9\r\n'
        "4k2r/8/8/8/8/8/8/4K3 w - - hmvc 7; fmvn 50;\n",
        encoding="utf-8",
    )
    assert [start.fen() for start, _ in Openings(str(file), random_plies=0).book] == [
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
        "4k2r/8/8/8/8/8/8/4K3 b k - 3 9",
        "4k2r/8/8/8/8/8/8/4K3 w - - 7 50",
    ]
    assert capsys.readouterr().err == ""
    file.write_text("4k3/8/8/8/8/8/8/4K2R w K -\nrubbish\n4k3/8/8/8/8/8/8/4K3 w - -\n7k/5Q2/6K1/8/8/8/8/8 b - -\n")
    assert len(Openings(str(file)).book) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"{file}: 3 of 4 lines left out: line 2: FEN 'rubbish': it has 1 ranks; a board has 8; line 3: "
    )
    assert "line 4: it is over after 0 plies: stalemate" in said
    file.write_text("rubbish")
    with pytest.raises(ValueError, match=r"holds no position to begin with .line 1: FEN 'rubbish'"):
        Openings(str(file))
    file.write_text("\n")
    with pytest.raises(ValueError, match="no position"):
        Openings(str(file))
    with pytest.raises(FileNotFoundError):
        Openings(str(tmp_path / "missing.epd"))


ORDINARY = '[Event "?"]\n\n1. e4 e5 2. Nf3 *\n\n'
LEFT_OUT = [  # PGN, and why
    ('[Event "none"]\n\n*\n', "it has no moves"),
    ('[Event "none"]\n[Result "1-0"]\n\n1-0\n', "it has no moves"),
    ("1. e4 -- 2. d4 *", "move '--' is not legal"),
    ("1. e4 Z0 2. d4 *", "move 'Z0' is not legal"),
    ("1. e4 e5 2. Nf6 *", "move 'Nf6' is not legal"),
    ('[Variant "Chess960"]\n\n1. e4 e5 *', "its variant is Chess960"),
    ('[FEN "bnrbkrqn/pppppppp/8/8/8/8/PPPPPPPP/BNRBKRQN w FCfc - 0 1"]\n\n1. e4 *', "castling rights are 'FCfc'"),
    ('[FEN "8/8/4k3/8/8/4K3/8/R7 w - - 98 80"]\n\n1. Ra2 Kd5 2. Ra3 *', "it is over after 2 plies: fifty moves"),
    ('[FEN "8/8/4k3/8/8/4Kp2/8/8 w - - 0 80"]\n\n1. Kxf3 Ke5 *', "it is over after 1 plies: dead material"),
    ("1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 *", "it is over after 8 plies: threefold repetition"),
    ("1. f3 e5 2. g4 Qh4# 0-1", "it is over after 4 plies: mate"),
    ('[FEN "nonsense"]\n\n1. e4 *', "FEN 'nonsense'"),
]


@pytest.mark.parametrize(("text", "why"), LEFT_OUT)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_games_that_cannot_be_used_are_left_out_and_told(tmp_path, capsys, text, why, end):
    file = tmp_path / "book.pgn"
    file.write_text((ORDINARY + text + "\n\n" + ORDINARY).replace("\n", end), newline="")
    assert [len(moves) for _, moves in Openings(str(file), random_plies=0).book] == [3, 3]
    said = capsys.readouterr().err
    assert said.startswith(f"{file}: 1 of 3 games left out: game 2: ")
    assert why in said
    assert said.count("\n") == 1
    file.write_text(text)
    with pytest.raises(ValueError, match=r"holds no position to begin with .game 1: "):
        Openings(str(file))


def test_a_book_of_games(tmp_path, capsys):
    file = tmp_path / "book.pgn"
    file.write_text(
        '\ufeff[Event "two blank lines"]\n[Site "a \\"b\\" [c]; {d}"]\n\n\n1. e4 e5 2. Nf3 *\n\n'
        '[Event "?"]\n[FEN "4k3/8/8/8/8/8/8/4K2R w K - 3 9"]\n\n9. 0-0+ {castles (early)} Kd7 $1 *\n'
        '[Event "no result"]\n1.d4! (1.e4 e5 (1...c5 {x) y}) 2.Nf3 *) 1...d5?! ; the rest of the line 2. e4\n2. c4\n'
        '% also this one\n[Event "long algebraic"]\n1. e2-e4 e7e5 2. Ng1-f3 g8f6 3. Bb5 a6 4. Bxd4?? 1-0\n'
    )
    book = Openings(str(file), random_plies=0).book
    assert [Course(start, moves).uci() for start, moves in book] == [
        ["e2e4", "e7e5", "g1f3"],
        ["e1g1", "e8d7"],
        ["d2d4", "d7d5", "c2c4"],
    ]
    assert book[1][0].fen() == "4k3/8/8/8/8/8/8/4K2R w K - 3 9"
    assert "1 of 4 games left out: game 4: move 'Bxd4??' is not legal" in capsys.readouterr().err


def test_games_are_read_as_the_library_reads_them():
    chess = pytest.importorskip("chess")
    pgn_of = pytest.importorskip("chess.pgn")
    rng = np.random.default_rng(1)
    games = []
    for _ in range(30):
        game = pgn_of.Game({"Event": 'a "b" \\ c'})
        node = game
        for _ in range(int(rng.integers(1, 80))):
            moves = sorted(node.board().legal_moves, key=str)
            if not moves:
                break
            if rng.random() < 0.2:
                side = node.add_variation(moves[0], comment="1. e4 (?) 1-0")
                if any(side.board().legal_moves):
                    side.add_main_variation(next(iter(side.board().legal_moves)))
            node = node.add_main_variation(moves[int(rng.integers(len(moves)))])
            if rng.random() < 0.2:
                node.nags, node.comment = {1, 44}, "[%clk 0:01:00] see ; ( 0-1"
        games.append(game)
    text = "\n\n".join(map(str, games))
    read = list(read_pgn(text))
    assert len(read) == len(games)
    for ours, theirs in zip(read, games, strict=True):
        assert ours.tags == dict(theirs.headers)
        course = Course()
        for word in ours.moves:
            course.play(from_san(course.board, word))
        assert course.uci() == [move.uci() for move in theirs.mainline_moves()]
    assert START.fen() == chess.STARTING_FEN


@pytest.mark.parametrize(
    ("line", "fen", "notes"),
    [
        ("8/8/8/8/8/8/8/8 w - - bm Qd1+; id x;", "8/8/8/8/8/8/8/8 w - - 0 1", {"bm": "Qd1+", "id": "x"}),
        ("8/8/8/8/8/8/8/8 w - - 3 9 bm Qe4+;", "8/8/8/8/8/8/8/8 w - - 3 9", {"bm": "Qe4+"}),
        ("8/8/8/8/8/8/8/8 w - - 3 9; bm Qe4+", "8/8/8/8/8/8/8/8 w - - 3 9", {"bm": "Qe4+"}),
        ("8/8/8/8/8/8/8/8 w - - 3 bm Qe4+;", "8/8/8/8/8/8/8/8 w - - 3 1", {"bm": "Qe4+"}),
        ("8/8/8/8/8/8/8/8 w - - 3", "8/8/8/8/8/8/8/8 w - - 3 1", {}),
        ("8/8/8/8/8/8/8/8 w - - hmvc 99; fmvn 70;", "8/8/8/8/8/8/8/8 w - - 99 70", {"hmvc": "99", "fmvn": "70"}),
        ('8/8 b  -\t- id "a; b";  am\tQe4 ', "8/8 b - - 0 1", {"id": "a; b", "am": "Qe4"}),
        ("8/8/8/8/8/8/8/8 w", "8/8/8/8/8/8/8/8 w", {}),
        ("8/8/8/8/8/8/8/8 w - -;", "8/8/8/8/8/8/8/8 w - - 0 1", {}),
    ],
)
def test_positions_and_operations_of_epd(line, fen, notes):
    assert split_epd(line) == (fen, notes)


def test_pairs_exchange_colours_and_repeat_the_opening():
    first, second = (Searcher(start_values(), depth=1, nodes=0, name=name) for name in "ab")
    pair = play_pair(first, second, SOME, Adjudication(max_plies=30), level, np.random.default_rng(1))
    a, b = pair.records
    assert a.course.moves[:4] == b.course.moves[:4]
    assert pair.points == 1 + (a.winner - b.winner) / 2


def test_a_player_against_itself_is_even():
    """Games of a pair are the same game, so that every pair has one point."""
    player = Searcher(start_values(), nodes=200)
    for seed in range(3):
        pair = play_pair(player, player, SOME, Adjudication(), player.score, np.random.default_rng(seed))
        assert pair.points == 1
        assert pair.records[0].course.moves == pair.records[1].course.moves


def test_equal_pairs_of_an_evaluation_count_once():
    network = LinearEvaluation(ChessTerms(GAME))
    agent = GreedyPlayer(SearchAgent(network, TDL(network.parameters()), Searcher))
    rules, game = Adjudication(max_plies=40), GAME
    for plies, different in ((0, 1), (4, 3)):
        match = MatchEvaluation(game, Untrained(game, nodes=20), Openings(random_plies=plies), rules, games=6, nodes=60)
        scores = match.scores(agent, np.random.default_rng(0))
        assert (scores["pairs"].n, len(scores["results"])) == (different, 6)


def test_a_crash_spoils_its_pair_only():
    pair = play_pair(Dies("a"), Searcher(start_values(), nodes=50), SOME, FREE, level, np.random.default_rng(0))
    assert (pair.points, pair.errors) == (None, ("gone", "gone"))
