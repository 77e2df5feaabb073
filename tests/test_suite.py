import pytest

from rlgames.build import load
from rlgames.chess.board import Board
from rlgames.chess.epd import operations
from rlgames.chess.pgn import from_san, san
from rlgames.suite import figures, parse, read, suite
from tests.support import DATA

BK = '1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - - bm Qd1+; id "BK.01";'
GRADED = '4k3/8/8/8/8/8/4P3/4K3 w - - bm e4; id "STS(v1.0) Pawns.007"; c0 "a; b"; c8 "100 40"; c9 "e2e4 e2e3";'


def test_operations():
    assert operations('bm Qd1+ Nf3; id "a; b"; ce 10;') == {"bm": "Qd1+ Nf3", "id": "a; b", "ce": "10"}


def test_best_moves_and_moves_to_avoid():
    position = parse(BK)
    assert {position.board.uci(move) for move in position.solved} == {"d6d1"}
    assert (position.name, position.theme) == ("BK.01", "BK")
    kings = parse("4k3/8/8/8/8/8/8/4K2R w - - am Rh8+;")
    assert kings.board.from_uci("h1h8") not in kings.solved
    assert len(kings.solved) == len(kings.board.moves()) - 1


def test_graded_moves():
    position = parse(GRADED)
    e4, e3, king = (position.board.from_uci(word) for word in ("e2e4", "e2e3", "e1d1"))
    assert figures([(position, e4)]) == (1, 1, 100, 100)
    assert figures([(position, e3), (position, king)]) == (2, 0, 40, 200)
    assert str(figures([(position, e3)])) == "0 of 1 solved, 40 of 100 points"


@pytest.mark.parametrize("line", ["rubbish", '4k3/8/8/8/8/8/8/4K3 w - - id "x";', "4k3/8/8/8/8/8/8/4K3 w - - bm Qd1;"])
def test_bad_lines_are_reported_and_left_out(line, tmp_path, capsys):
    file = tmp_path / "bad.epd"
    file.write_text(f"{line}\n# a comment\n{BK}\n\n")
    assert len(read(file)) == 1
    assert "line 1 left out" in capsys.readouterr().err
    file.write_text(line)
    with pytest.raises(ValueError, match="holds no test position"):
        read(file)


@pytest.mark.parametrize(
    ("fen", "text", "move"),
    [
        ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "exd5", "e4d5"),
        ("4k3/8/8/3p4/3PP3/8/8/4K3 w - - 0 1", "ed5", "e4d5"),
        ("4k3/8/8/8/3PP3/8/8/4K3 w - - 0 1", "d5", "d4d5"),
        ("4k3/8/8/8/8/8/1N6/4K3 w - - 0 1", "Nbd1!", "b2d1"),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8N", "a7a8n"),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "0-0", "e1g1"),
        ("3rk3/8/8/8/8/8/8/3RK3 w - - 0 1", "Rd8+", "d1d8"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6", "e5d6"),
        ("4k3/8/8/1P1pP3/8/8/8/4K3 w - d6 0 1", "e6", "e5e6"),
        ("4k3/8/2n5/2PpP3/8/8/8/3QK3 w - d6 0 1", "d6", None),
        ("4k3/8/8/8/8/8/1N6/4K3 w - - 0 1", "b2d1", "b2d1"),
        ("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1", "e1c1"),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7-a8=Q", "a7a8q"),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8(r)", "a7a8r"),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8", None),
    ],
)
def test_san_is_read_as_people_write_it(fen, text, move):
    board = Board.from_fen(fen)
    if move is None:
        with pytest.raises(ValueError, match=r"is (ambiguous|not legal) in"):
            from_san(board, text)
    else:
        assert board.uci(from_san(board, text)) == move


def test_ambiguous_san():
    with pytest.raises(ValueError, match="ambiguous"):
        from_san(Board.from_fen("4k3/8/8/8/8/8/1N3N2/4K3 w - - 0 1"), "Nd1")


@pytest.mark.skipif(not DATA.is_dir(), reason="no test suites here")
@pytest.mark.parametrize(
    ("name", "count", "most"),
    [("wac", 300, 300), ("bratko_kopec", 24, 24), pytest.param("sts_v6", 1188, 118800, marks=pytest.mark.slow)],
)
def test_published_suites_are_read_whole(name, count, most, capsys):
    positions = read(DATA / f"{name}.epd")
    assert len(positions) == count
    assert sum(max(position.points.values()) for position in positions) == most
    assert capsys.readouterr().err == ""
    for position in positions[:30]:
        for move in map(int, position.board.moves()):
            assert from_san(position.board, san(position.board, move)) == move


FIFTY = [  # with a clock that is read only the pawn's moves keep the win
    '8/8/8/8/8/5k2/7P/R5K1 w - - bm h3 h4; hmvc 99; id "50mr.1";',
    '8/8/8/8/8/5k2/7P/R5K1 w - - 99 80 bm h3, h4; id "50mr.2";',
    '8/8/8/8/8/5k2/7P/R5K1 w - - hmvc 99; fmvn 80; am Ra2 Ra8; id "50mr.3";',
    '8/8/8/8/8/5k2/7P/R5K1 w - - 99 bm h2h4 h2h3; id "50mr.4";',
]


def test_counters_are_read(tmp_path, capsys):
    file = tmp_path / "fifty.epd"
    file.write_text("\ufeff# drawn after any other move\r\n" + "\r\n".join(FIFTY), encoding="utf-8", newline="")
    assert suite(load(f"epd={file}", "nodes=20000", config="suite"))[""][:2] == (4, 4)
    assert [parse(line).board.clock for line in FIFTY] == [99] * 4
    assert capsys.readouterr().err == ""
    drawn = parse("7k/8/8/8/8/8/8/K5R1 w - - hmvc 120; am Rg2;")
    assert len(drawn.solved) == 13 + 3 - 1


def test_the_program_solves_a_mate(tmp_path):
    file = tmp_path / "mates.epd"
    file.write_text('6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id "mate.1";\n' + BK)
    cfg = load(f"epd={file}", "depth=2", f"json={tmp_path / 'out.json'}", config="suite")
    found = suite(cfg)
    assert found["mate"] == (1, 1, 1, 1)
    assert found[""].positions == 2
    assert (tmp_path / "out.json").exists()
