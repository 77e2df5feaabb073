import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from rlgames.chess.board import Board, Chess
from rlgames.chess.contest import Adjudication, Course
from rlgames.chess.evaluation import start_values
from rlgames.chess.openings import Openings
from rlgames.chess.pairs import play_pair
from rlgames.chess.searcher import Searcher
from rlgames.chess.uci_engine import EngineError, UciEngine, command_of

pytest.importorskip("chess")
CHESS = Chess()
STOCKFISH = next(
    (path for path in (os.environ.get("STOCKFISH", ""), "/usr/games/stockfish") if os.path.exists(path)), None
)
stockfish = pytest.mark.skipif(STOCKFISH is None, reason="no stockfish; name one in $STOCKFISH")

FAKE = """#!{python}
import sys
for line in sys.stdin:
    word = line.split()[0]
    if word == "uci":
        print("id name fake\\noption name Elo type spin default 1 min 1 max 9\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        {go}
    elif word == "quit":
        break
"""


@pytest.fixture
def fake(tmp_path):
    def make(go):
        file = tmp_path / "engine"
        file.write_text(FAKE.format(python=sys.executable, go=go))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


def test_move_score_and_line(fake):
    answer = 'print("info depth 1 score cp 37 pv e2e4 e7e5\\nbestmove e2e4", flush=True)'
    with UciEngine(fake(answer), nodes=10) as engine:
        assert engine.name == "fake"
        course = Course()
        found = engine.think(course)
    assert [course.board.uci(found.move), found.score, found.mate] == ["e2e4", 0.37, 0]
    assert found.leaf == CHESS.play("e2e4 e7e5")


DRAWN_AT_100 = "8/8/3k4/8/8/3K4/8/R7 w - - 98 120"
FEN_AND_LINE = [  # position, the line an engine tells, what of it can be played
    (DRAWN_AT_100, "a1a2 d6d5 a2a3 d5d6", "a1a2 d6d5"),  # fifty moves
    ("8/8/8/3p1k2/8/3K4/8/8 w - - 0 1", "d3c3 d5d4 c3d4 f5f4 d4d5", "d3c3 d5d4 c3d4"),  # bare kings
    ("8/8/8/3p1k2/8/3K4/8/8 w - - 0 1", "d3c3 f5e4 c3c4", "d3c3"),  # no legal move: the library tells no line at all
    ("8/8/8/3p1k2/8/3K4/8/8 w - - 0 1", "d3e3 d5d4", "d3c3"),  # the line of another move
    ("8/8/8/3p1k2/8/3K4/8/8 w - - 0 1", "d3d3", "d3c3"),  # nonsense
]


@pytest.mark.parametrize(("fen", "line", "played"), FEN_AND_LINE)
def test_a_line_ends_where_it_cannot_be_played(fake, fen, line, played):
    answer = f'print("info depth 4 score cp 5 pv {line}\\nbestmove {played[:4]}", flush=True)'
    with UciEngine(fake(answer), nodes=1) as engine:
        course = Course(Board.from_fen(fen))
        found = engine.think(course)
    board = course.board
    for move in found.pv:
        board = board.play(board.from_uci(board.uci(move)))
    assert board == found.leaf
    assert found.move == found.pv[0]
    assert found.score == 0.05
    course = Course(Board.from_fen(fen), found.pv)
    assert " ".join(course.uci()) == played


LOOKS_FAR = """#!{python}
import sys
import chess
for line in sys.stdin:
    word, *words = line.split()
    if word == "uci":
        print("id name far\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "position":
        moves = words.index("moves") if "moves" in words else len(words)
        board = chess.Board(" ".join(words[1:moves]) if words[0] == "fen" else chess.STARTING_FEN)
        for move in words[moves + 1 :]:
            board.push_uci(move)
    elif word == "go":  # any move, and a line that no draw ends
        line = []
        while len(line) < 40 and any(board.legal_moves):
            moves = sorted(move.uci() for move in board.legal_moves)
            line.append(moves[(board.ply() * 7) % len(moves)])
            board.push_uci(line[-1])
        print("info depth 9 score cp 0 pv", *line, "\\nbestmove", line[0], flush=True)
    elif word == "quit":
        break
"""


@pytest.mark.parametrize("fen", ["8/8/3k4/8/8/3K4/8/R7 w - - 92 120", "8/8/8/2npk3/8/3K4/8/8 w - - 0 1"])
def test_a_match_against_an_engine_that_looks_behind_draws(tmp_path, fen):
    file = tmp_path / "far"
    file.write_text(LOOKS_FAR.format(python=sys.executable))
    file.chmod(0o755)
    book = tmp_path / "book.epd"
    book.write_text(fen)
    openings, player = Openings(str(book), random_plies=0, limit=90), Searcher(start_values(), nodes=50)
    rules = Adjudication(resign=0, draw_moves=0, max_plies=60)
    with UciEngine(str(file), nodes=1) as engine:
        pair = play_pair(player, engine, openings, rules, player.score, np.random.default_rng(0))
    assert pair.errors == ()
    assert all(record.course.end() or len(record.course.moves) == 60 for record in pair.records)


@pytest.mark.parametrize("go", ["sys.exit(1)", 'print("bestmove e2e5", flush=True)', "pass"])
def test_an_engine_that_fails(fake, go):
    with UciEngine(fake(go), nodes=10, timeout=1) as engine:
        for _ in range(2):  # it is started again for the next game
            engine.new_game()
            with pytest.raises(EngineError, match="fake"):
                engine.think(Course())


def test_bad_words_are_answered_with_one_sentence(fake):
    with pytest.raises(ValueError, match="there is no engine /no/such"):
        UciEngine("/no/such", nodes=1)
    with pytest.raises(ValueError, match="no limit"):
        UciEngine("/no/such")
    for name, limit in (("seconds", -1.0), ("nodes", 0), ("depth", -3), ("timeout", float("inf"))):
        with pytest.raises(ValueError, match=rf"opponent.{name} is {limit}; it must be finite and above 0"):
            UciEngine(fake("pass"), **{"nodes": 1} | {name: limit})
    with pytest.raises(ValueError, match="refuses its options"):
        UciEngine(fake("pass"), {"Strength": 3}, nodes=1)
    with pytest.raises(ValueError, match="does not answer as a UCI engine"):
        UciEngine("/bin/true", nodes=1)
    with pytest.raises(ValueError, match="the command of the engine is ''; it must be the path"):
        UciEngine("", nodes=1)
    with pytest.raises(ValueError, match="cannot be read as a command"):
        UciEngine("it's", nodes=1)


def test_a_path_with_blanks_and_arguments(fake, tmp_path):
    path = fake('print("bestmove e2e4", flush=True)')
    (tmp_path / "my engines").mkdir()
    blanks = tmp_path / "my engines" / "one"
    os.rename(path, blanks)
    for command in (str(blanks), f"'{blanks}' --some argument"):
        with UciEngine(command, nodes=1) as engine:
            assert engine.think(Course()).move == CHESS.board.from_uci("e2e4")


def test_which_players_are_engines(fake, tmp_path):
    path = fake("pass")
    (tmp_path / "run").mkdir()
    (tmp_path / "best.pt").write_bytes(b"")
    (tmp_path / "best.pt").chmod(0o755)  # as everything is on some disks
    assert command_of(path) == command_of(f"uci:{path}") == path
    assert command_of("uci:stockfish -x") == "stockfish -x"
    for word in ("start", "run", "sh", str(tmp_path / "run"), str(tmp_path / "best.pt"), str(tmp_path / "none")):
        assert command_of(word) is None


@pytest.mark.thorough
@stockfish
def test_an_engine_left_open_does_not_keep_the_program_alive():
    text = f"from rlgames.chess.uci_engine import UciEngine; UciEngine({STOCKFISH!r}, nodes=1); print('end')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "end\n"


@stockfish
def test_stockfish_of_limited_strength():
    with UciEngine(STOCKFISH, {"UCI_LimitStrength": True, "UCI_Elo": 1350}, nodes=500) as engine:
        course = Course()
        for word in ("f2f3", "e7e5", "g2g4"):
            course.play(course.board.from_uci(word))
        found = engine.think(course)
    assert course.board.uci(found.move) == "d8h4"
    assert found.mate == 1
    assert found.score > 900
