import io
import os
import queue
import subprocess
import sys
import threading
import time

import pytest
import torch

from rlgames.chess.board import START, Board, Chess
from rlgames.chess.evaluation import start_values
from rlgames.chess.thinker import Thinker
from rlgames.uci import Uci, is_read, load_thinker, milliseconds, moves_of, numbers_of, option
from tests.support import PROJECT, few

FOOLS_MATE = "startpos moves f2f3 e7e5 g2g4 d8h4"


class Talk:
    """A conversation with the engine in this process.

    Args:
        load: returns the thinker.
    """

    def __init__(self, load):
        self.said, self.lines, self.ended = queue.Queue(), queue.Queue(), queue.Queue()

        def load_and_talk(say):
            thinker = load(self.say)
            thinker.say = self.say
            return thinker

        self.uci = Uci(load_and_talk, self.ended.put)
        self.uci.say = self.say
        self.thread = threading.Thread(target=self.uci.run, args=(iter(self.lines.get, None),))
        self.thread.start()

    def say(self, text):
        for line in text.split("\n"):
            self.said.put(line)

    def __call__(self, *lines):
        for line in lines:
            self.lines.put(line)

    def until(self, start, seconds=20):
        """Everything said up to a line that begins with ``start``."""
        found = []
        while not found or not found[-1].startswith(start):
            found.append(self.said.get(timeout=seconds))
        return found

    def move(self, *lines):
        self(*lines)
        return self.until("bestmove")[-1].split()[1]


@pytest.fixture(scope="module")
def thinker():
    return Thinker(start_values(), print)


@pytest.fixture
def talk(thinker):
    thinker.set_option("multipv", "1")
    thinker.position(["startpos"])
    conversation = Talk(lambda say: thinker)
    yield conversation
    conversation("quit")
    conversation.thread.join(5)
    assert not conversation.thread.is_alive()


def legal(move, fen=None):
    board = Board.from_fen(fen) if fen else START
    return move in {board.uci(m) for m in board.moves()}


def test_identification_and_options(talk):
    talk("uci")
    lines = talk.until("uciok")
    assert lines[0].startswith("id name rlgames")
    for name in ("Hash", "Clear Hash", "MultiPV", "Move Overhead"):
        assert any(line.startswith(f"option name {name} type") for line in lines)
    talk("isready")
    assert talk.until("readyok")


@pytest.mark.parametrize(
    "go",
    [
        *("go depth 0", "go nodes 1", "go movetime 0", "go movetime -1", "go btime 50000", "go wtime 0 btime 0"),
        *("go wtime -50 btime 1000 winc 0 binc 0", "go wtime 100 btime 100", "go wtime abc", "go nodes 3000"),
        *("go nodes 0", "go nodes -7", "go mate 0", "go mate -3", "go depth", "go depth -2", "go 17", "go movetime"),
        *("go movetime 40 depth x nodes", "go ponderhit depth 1", "go searchmoves depth 2", "go wtime 50 winc 99999"),
        *("go depth 3", "go mate 2", "go movetime 50", "go wtime 1000 btime 1000 movestogo 40", "go searchmoves zz"),
    ],
)
def test_every_go_is_answered_with_one_legal_move(talk, go):
    assert legal(talk.move(go))
    talk("isready")
    assert not any(line.startswith("bestmove") for line in talk.until("readyok"))


def test_lines_of_information(talk):
    talk("position startpos moves e2e4 e7e5 f1c4 b8c6 d1h5 a7a6", "go depth 3")
    lines = talk.until("bestmove")
    assert lines[-1] == "bestmove h5f7"
    words = lines[-2].split()
    assert words[:2] == ["info", "depth"]
    assert words[words.index("score") + 1 : words.index("score") + 3] == ["mate", "1"]
    talk("position startpos", "go depth 3")
    info = talk.until("bestmove")[-2].split()
    assert info[info.index("score") + 1] == "cp"
    assert int(info[info.index("nodes") + 1]) > 20
    assert {"nps", "time", "pv"} <= set(info)


def test_an_infinite_search_ends_when_told(talk):
    talk("go infinite", "isready")
    talk.until("readyok", seconds=1)
    time.sleep(0.2)
    assert all(not line.startswith("bestmove") for line in list(talk.said.queue))
    talk("stop")
    assert legal(talk.until("bestmove", seconds=2)[-1].split()[1])
    talk("stop", "isready")
    assert talk.until("readyok") == ["readyok"]


@pytest.mark.parametrize(
    "position", [FOOLS_MATE, "fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "fen 5k2/5r2/5Q2/8/8/5K2/8/8 w - - 6 54 moves f6f7"]
)
def test_a_finished_game_has_no_move(talk, position):
    move = talk.move(f"position {position}", "go depth 3")
    assert (move == "0000") == (position != "fen 5k2/5r2/5Q2/8/8/5K2/8/8 w - - 6 54 moves f6f7")
    talk("go infinite")
    time.sleep(0.05)
    talk("stop")
    talk.until("bestmove")
    assert legal(talk.move("position startpos", "go depth 1"))


def test_positions_with_history_blanks_and_promotions(talk):
    fen = "r2qkbnr/p1pnP1p1/8/5p1p/3P2b1/2p2N2/PPPB1PPP/R2QKB1R w KQkq - 0 1"
    after = "position fen " + fen + "  moves e7d8q"
    assert talk.move(after, "go depth 2") in ("a8d8", "e8d8", "e8f7")
    assert talk.move(f"{after.replace('e7d8q', 'e7d8Q')}\r", "go depth 2") in ("a8d8", "e8d8", "e8f7")
    assert legal(talk.move("position\tstartpos moves ", "go depth 1"))


def test_a_position_goes_on_from_the_last_one_or_begins_anew(thinker):
    lines = [
        *("startpos", "startpos moves e2e4", "startpos moves e2e4 c7c5 g1f3", "startpos moves e2e4 c7c5 b1c3"),
        *(
            "startpos moves e2e4",
            f"fen {START.fen()} moves e2e4 e7e5",
            "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 moves e2e4",
        ),
    ]
    thinker.position(["startpos"])
    for line in lines:
        thinker.position(line.split())
        course = thinker.course
        with pytest.raises(ValueError, match="is not legal"):
            thinker.position([*line.split(), *([] if "moves" in line else ["moves"]), "d7d6", "d2d3", "a1a8"])
        assert thinker.course is course
        assert course.uci() == line.split()[line.split().index("moves") + 1 :] if "moves" in line else not course.moves
        assert course.board == Chess().play(course.uci(), course.boards[0])
        assert len(course.boards) == len(course.moves) + 1


def test_the_first_repetition_is_no_draw(talk):
    """Black's knight would be lost by going back to where it stood once."""
    moves = "e2e4 b8c6 d2d4 c6b8 d4d5 b8c6 g1f3 c6b8 f3g1"
    talk(f"position startpos moves {moves}", "go depth 3")
    assert talk.until("bestmove")[-1] != "bestmove b8c6"


def test_a_long_game_is_taken_over_quickly(talk):
    began = time.monotonic()
    assert legal(talk.move("position startpos moves " + "g1f3 g8f6 f3g1 f6g8 " * 200, "go depth 1"))
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("position startpos moves e2e5", "move 'e2e5' is not legal"),
        ("position fen x", "FEN 'x'"),
        ("position", "needs startpos or fen"),
        ("setoption name Hash value abc", "option hash is 'abc'"),
        ("setoption name hash value 99999", "option hash is '99999'"),
        ("garbage", "unknown command garbage"),
        ("position startpos moves e2e4 e7e5 garbage", "move 'garbage' is not legal"),
        ("position startpos moves 0000", "move '0000' is not legal"),
        ("position fen startpos", "FEN 'startpos'"),
        ("position fen", "FEN ''"),
        ("position fen moves e2e4", "FEN ''"),
    ],
)
def test_nonsense_is_answered_with_one_line(talk, line, answer):
    talk(line)
    said = talk.until("info string")
    assert answer in said[-1]
    assert legal(talk.move("go depth 1"))


@pytest.mark.parametrize(
    "line", ["setoption name OwnBook value false", "setoption", "setoption name", "", "  ", "debug on"]
)
def test_what_is_not_for_us_is_ignored(talk, line):
    talk(line, "isready")
    assert talk.until("readyok") == ["readyok"]


def test_what_stands_behind_unknown_words_counts(talk):
    talk("joho debug on", "hello isready isready")
    assert talk.until("readyok") == ["info string unknown command joho", "info string unknown command hello", "readyok"]


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("r3k2r/8/8/8/8/8/8/1R2K2R w KQkq - 0 1", {"e1g1", "h1h8"}),
        ("4k3/8/8/3Pp3/8/8/8/4K3 w KQkq e3", {"d5d6"}),
        ("4k3/8/8/3Pp3/8/8/8/4K3 w - e6 7", {"d5e6"}),
    ],
)
def test_impossible_rights_and_short_fens_are_played(talk, thinker, fen, moves):
    talk(f"position fen {fen} moves", "isready")
    assert talk.until("readyok") == ["readyok"]
    for move in moves:
        assert talk.move(f"go depth 1 searchmoves {move}") == move


def test_ponder_is_not_offered_and_its_end_gives_a_move(talk):
    talk("uci")
    assert not any("Ponder" in line for line in talk.until("uciok"))
    talk("go ponder wtime 1000 btime 1000", "isready")
    talk.until("readyok")
    assert legal(talk.move("ponderhit"))


class Loading:
    """Takes its time, and may fail."""

    def __init__(self, thinker=None):
        self.thinker, self.may_end = thinker, threading.Event()

    def __call__(self, say):
        self.may_end.wait(20)
        if self.thinker is None:
            raise RuntimeError("no such\nthing")
        return self.thinker


def test_ready_when_a_move_can_come_at_once(thinker):
    load = Loading(thinker)
    talk = Talk(load)
    talk("isready", "uci", "stop", "isready")
    assert "readyok" not in talk.until("uciok", seconds=2)
    talk("go infinite", "isready")
    assert talk.until("info string")
    time.sleep(0.1)
    assert talk.said.empty()
    load.may_end.set()
    said = [line for line in (talk.said.get(timeout=5) for _ in range(4)) if line == "readyok"]
    assert len(said) == 3  # also while it thinks
    assert legal(talk.move("stop"))
    talk("quit")
    talk.thread.join(5)
    assert talk.ended.empty()


def test_quit_while_loading():
    load = Loading()
    talk = Talk(load)
    talk("go depth 3", "isready", "quit")
    talk.thread.join(2)
    assert not talk.thread.is_alive()
    load.may_end.set()


@pytest.mark.parametrize("lines", [["isready", "go depth 3"], ["isready"]])
def test_if_there_is_nothing_to_think_with_it_says_so_and_ends(lines):
    load = Loading()
    talk = Talk(load)
    talk("uci", *lines)
    talk.until("uciok")
    while talk.lines.qsize():
        time.sleep(0.01)
    load.may_end.set()
    assert talk.ended.get(timeout=5) == 1
    said = list(talk.said.queue)
    assert "info string error: RuntimeError no such thing" in said
    assert ("bestmove 0000" in said) == ("go depth 3" in lines)
    talk("quit")


def test_the_end_of_the_interface_is_seen():
    """By the pipe that nobody reads, or by the first line that cannot be said."""
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        assert is_read(stream)
        os.close(read)
        assert not is_read(stream)
    assert is_read(io.StringIO())


@pytest.mark.parametrize("words", few(["depth 60", "infinite"]))
def test_it_ends_with_the_interface(words):
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "rlgames.uci"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as engine:
        engine.stdin.write(f"position startpos moves e2e4 e7e5\ngo {words}\n")
        engine.stdin.flush()
        assert any(" depth 4 " in line for line in iter(engine.stdout.readline, ""))
        engine.stdout.close()
        engine.stdin.close()
        engine.wait(15)


def test_several_lines(talk):
    talk("setoption name multipv value 3", "go depth 3")
    lines = [line.split() for line in talk.until("bestmove")]
    last = [words for words in lines if words[:3] == ["info", "depth", "3"]]
    assert [words[4] for words in last] == ["1", "2", "3"]
    scores = [int(words[words.index("cp") + 1]) for words in last]
    assert scores == sorted(scores, reverse=True)
    assert len({words[words.index("pv") + 1] for words in last}) == 3


SHUFFLED = "g1h1 g8h8 h1g1 h8g8"


@pytest.mark.parametrize(
    ("position", "depth", "move", "score"),
    [  # lost, but for the third repetition, or for the fiftieth move without capture
        (f"fen 6k1/5ppp/8/8/1q6/8/5PPP/6K1 w - - 0 1 moves {SHUFFLED} {SHUFFLED}", 4, "g1h1", "cp 0"),
        (f"fen 6k1/5ppp/8/8/1q6/8/5PPP/6K1 w - - 0 1 moves {SHUFFLED} g1h1 g8h8 h1g1", 4, None, None),
        ("fen 6k1/5ppp/8/8/8/8/q4PPP/6K1 w - - 99 80", 4, None, "cp 0"),
        ("fen 8/8/8/8/8/5k2/7P/R5K1 w - - 99 80", 5, "h2h4", None),  # every other move is a draw
        ("fen 6k1/5ppp/8/8/8/8/8/K2R4 w - - 99 80", 3, "d1d8", "mate 1"),
        ("fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5, None, None),
        ("fen k7/8/8/8/8/5r2/6q1/7K w - - 0 1", 3, "h1g2", None),  # one legal move
    ],
)
def test_the_first_line_is_the_same_however_many_are_wanted(thinker, position, depth, move, score):
    told = set()
    for lines in range(1, 7):
        said = []
        thinker.say = said.append
        thinker.clear()
        thinker.set_option("multipv", str(lines))
        thinker.position(position.split())
        best = thinker.think(depth, 0, threading.Event(), time.monotonic())
        told.add((best, *(line.split(" nodes ")[0] for line in said if " multipv 1 " in line)))
        last = [line for line in said if line.startswith(f"info depth {depth} ")]
        assert len(last) == min(lines, len(thinker.board.moves()))
        assert len({line.split(" pv ")[1].split()[0] for line in last}) == len(last)
    assert len(told) == 1
    best, *_, first = told.pop()
    assert move in (None, best)
    assert score is None or first.endswith(score)


def test_several_lines_with_mates(thinker):
    said = []
    thinker.say = said.append
    thinker.set_option("multipv", "2")
    thinker.position(["fen", "6k1/5ppp/8/8/8/8/8/K2R4", "w", "-", "-", "0", "1"])
    assert thinker.think(2, 0, threading.Event(), time.monotonic()) == "d1d8"
    assert "score mate 1 " in next(line for line in said if "depth 2 multipv 1" in line)
    thinker.position(["fen", "k7/8/8/8/8/8/5q2/7K", "w", "-", "-", "0", "1"])  # every move is mated
    thinker.set_option("multipv", "1")


def test_only_the_moves_asked_for(talk):
    assert talk.move("go depth 3 searchmoves a2a3 h2h3") in ("a2a3", "h2h3")


def test_a_new_game_does_not_depend_on_the_last(talk, thinker):
    talk("ucinewgame", "position startpos", "go depth 5")
    first = [line.split(" time")[0].split(" nps")[0] for line in talk.until("bestmove")]
    talk("position startpos moves e2e4 c7c5", "go depth 5")
    talk.until("bestmove")
    talk("ucinewgame", "position startpos", "go depth 5")
    assert [line.split(" time")[0].split(" nps")[0] for line in talk.until("bestmove")] == first


def test_parts_of_commands():
    assert option(["name", "Move", "Overhead", "value", "30"]) == ("move overhead", "30")
    assert option(["name", "Weights", "File", "value", "/tmp/my", "runs/w", "1.pt"]) == (
        "weights file",
        "/tmp/my runs/w 1.pt",
    )
    assert numbers_of(["wtime", "300", "depth", "x", "nodes", "-5"]) == {"wtime": 300, "nodes": -5}
    assert moves_of(["depth", "3", "searchmoves", "e2e4", "D7D8q"]) == ["e2e4", "d7d8q"]


def test_time_to_think():
    def ms(go, white=True):
        words = go.split()
        return milliseconds(words, numbers_of(words), white, 30)

    assert ms("movetime 500") == 470
    assert ms("wtime 60030 btime 1000") == 2000
    assert ms("wtime 60030 btime 1030", white=False) == pytest.approx(1000 / 30)
    assert ms("wtime 30030 winc 1000") == 1750
    assert ms("wtime 80 winc 10") == 50 / 30 + 7.5
    assert ms("wtime 50 winc 10") == 4  # so that some time is left for a delay
    assert ms("wtime 1030 movestogo 1") == 700
    assert ms("wtime 0") == 0
    assert ms("depth 4") is None
    assert ms("") == 1000


def test_a_missing_checkpoint_is_reported_and_play_goes_on(tmp_path):
    said = []
    assert load_thinker(str(tmp_path / "none"), said.append) is not None
    assert len(said) == 1
    assert said[0].startswith("info string error: there is no run folder")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({"network": {"weight": torch.full((len(start_values()), 1), float("nan"))}}, "pawn is nan"),
        ({"network": {}, "config": {}}, "holds no chess agent"),
        ({"network": None}, "Error"),
    ],
)
def test_with_a_checkpoint_that_cannot_be_used_play_goes_on(monkeypatch, content, part):
    monkeypatch.setattr("rlgames.training.checkpoint.load", lambda path, trust: content)
    said = []
    thinker = load_thinker("run", said.append)
    assert (thinker.coefficients == start_values()).all()
    assert len(said) == 1
    assert said[0].startswith("info string error: ")
    assert said[0].endswith("; playing with the values before learning")
    assert part in said[0]


def test_a_checkpoint_of_another_game_is_refused(quick):
    said = []
    load_thinker(str(quick("games=4")), said.append)
    assert "holds no chess agent" in said[0]


def test_the_program_answers_through_a_pipe_and_quits_during_a_search():
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-m", "rlgames.uci"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as engine:
        engine.stdin.write("uci\nisready\n")
        engine.stdin.flush()
        lines = iter(engine.stdout.readline, "")
        assert "uciok\n" in lines
        assert "readyok\n" in lines
        engine.stdin.write("position startpos moves e2e4\ngo depth 2\n")
        engine.stdin.flush()
        assert any(line.startswith("bestmove") for line in lines)
        engine.stdin.write("go infinite\nquit\n")
        engine.stdin.flush()
        assert engine.wait(10) == 0


def test_the_end_of_the_input_waits_for_the_answer(talk):
    talk("position startpos moves e2e4", "go depth 2", None)
    talk.thread.join(20)
    assert list(talk.said.queue)[-1].startswith("bestmove")


@pytest.mark.thorough
def test_the_end_of_a_pipe_waits_for_the_answer():
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "rlgames.uci"]
    text = "position startpos moves e2e4\ngo depth 2\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=200, check=True)
    assert done.stdout.splitlines()[-1].startswith("bestmove")


@pytest.mark.thorough  # test_uci_clocks plays with it, too
def test_the_library_can_play_with_it(tmp_path):
    engines = pytest.importorskip("chess.engine")
    chess = pytest.importorskip("chess")
    command = [sys.executable, "-m", "rlgames.uci"]
    engine = engines.SimpleEngine.popen_uci(command, timeout=60, env={**os.environ, "PYTHONPATH": str(PROJECT)})
    try:
        board = chess.Board()
        for _ in range(4):
            board.push(engine.play(board, engines.Limit(nodes=500)).move)
        assert board.is_valid()
        assert engine.analyse(board, engines.Limit(depth=3))["depth"] == 3
    finally:
        engine.quit()


def test_coefficients_of_a_run_are_used(tmp_path):
    from rlgames.chess.pairs import coefficients_of

    weights = torch.zeros(len(start_values()), 1)
    assert (coefficients_of({"network": {"weight": weights}}, "run") == 0).all()
