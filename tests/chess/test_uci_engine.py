import os
import stat
import subprocess
import sys

import pytest

from rlgames.chess.board import Chess
from rlgames.chess.contest import Course
from rlgames.chess.uci_engine import EngineError, UciEngine

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
    with pytest.raises(ValueError, match="refuses its options"):
        UciEngine(fake("pass"), {"Strength": 3}, nodes=1)
    with pytest.raises(ValueError, match="does not answer as a UCI engine"):
        UciEngine("/bin/true", nodes=1)


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
