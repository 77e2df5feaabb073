import os
import re
import signal
import subprocess
import sys
import time

import pytest

from rlgames.build import load
from rlgames.console.terminal import picture
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.lineup import newest_run
from rlgames.play import Desk, Opponent, Thoughts, ask_side, perfect_hint, play
from rlgames.train import train
from rlgames.training.assemble import assemble

GAMES = {"tictactoe": TicTacToe(), "connect4": Connect4()}
WORDS = {
    "tictactoe": ["learner=q", "game=tictactoe", "games=20", "eval_every=20"],
    "connect4": ["game=connect4", "features.length=2", "engine=eager"],
}


@pytest.fixture
def table(monkeypatch, capsys):
    """Plays a game with the given words typed in: ``table("connect4", 1, "1", "undo")`` returns boards and output."""

    def run(name, human, *words):
        typed = iter(words)

        def read(prompt):
            word = next(typed, None)
            if word is None:
                raise EOFError
            return word

        monkeypatch.setattr("builtins.input", read)
        desk = Desk(GAMES[name], Opponent(assemble(load(*WORDS[name]))), human)
        desk.play()
        return desk.boards, capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    words = [*WORDS["tictactoe"], "engine=eager", f"run_dir={folder / 'runs' / 'tictactoe' / 'a'}"]
    train(load(*words))
    return folder


BAD = ["", "8", "0", "-1", "3.0", "３", "abc", "1 2", "9" * 1000]


@pytest.mark.parametrize("word", BAD)
def test_what_is_no_move_is_answered_and_changes_nothing(table, word):
    boards, out = table("connect4", 1, word)
    assert boards == [Connect4.board]
    assert "is no move; moves are 1 2 3 4 5 6 7; or type hint, perfect, values, undo, swap, new, help, quit" in out
    assert all(len(line) < 120 for line in out.splitlines())


def test_the_stone_falls_where_the_label_says(table):
    for label in "17":
        boards, _ = table("connect4", 1, f" {label} ")
        assert boards[1] == GAMES["connect4"].play(label)
        assert len(boards) == 3


def test_a_full_column_is_asked_again_and_the_agent_waits():
    game = GAMES["connect4"]
    desk = Desk(game, Opponent(assemble(load(*WORDS["connect4"]))), 1)
    desk.boards = [game.play("333333")]
    assert not desk._do("3")
    assert len(desk.boards) == 1


def test_a_taken_cell_is_not_free(table):
    boards, out = table("tictactoe", 1, "5", "5")
    assert len(boards) == 3
    assert "'5' is not free" in out


def test_undo_takes_back_to_my_last_turn(table):
    boards, _ = table("tictactoe", 1, "5", "undo")
    assert boards == [TicTacToe.board]
    boards, _ = table("tictactoe", -1, "undo", "undo")
    assert len(boards) == 2
    _, out = table("tictactoe", 1, "undo")
    assert "no move of yours" in out


def test_undo_as_second_player(table):
    boards, out = table("tictactoe", -1, "undo")
    assert len(boards) == 2
    assert "no move of yours" in out


def test_hint_names_a_legal_move(table):
    boards, out = table("tictactoe", 1, "hint")
    assert len(boards) == 1
    assert out.split("hint: ")[1][0] in "123456789"


def test_end_of_a_game_and_new_game(table):
    class Lamb(Opponent):
        def move(self, board):
            return int(board.moves()[-1])

    desk = Desk(GAMES["tictactoe"], Lamb(assemble(load(*WORDS["tictactoe"]))), 1)
    for word in ("1", "2"):
        assert desk._do(word)
        desk.boards.append(desk.boards[-1].play(desk.opponent.move(desk.boards[-1])))
    assert desk._do("3")
    assert desk.boards[-1].winner() == 1
    assert not desk._do("4")
    assert desk._do("new")
    assert desk.boards == [TicTacToe.board]


def test_pictures():
    thoughts = Thoughts([1, 2], [0.5, -0.25], [0.75, 0.25], 1)
    board = GAMES["tictactoe"].play("1")
    rows = picture(GAMES["tictactoe"], board, thoughts.notes()).splitlines()
    assert rows[0].split() == ["X", "2", "+0.50", "75%", "3", "-0.25", "25%"]
    assert rows[2].split() == ["7", "8", "9"]
    rows = picture(GAMES["connect4"], GAMES["connect4"].play("43")).splitlines()
    assert rows[-2].split() == [".", ".", "O", "X", ".", ".", "."]
    assert rows[-1].split() == list("1234567")
    rows = picture(GAMES["connect4"], Connect4.board, {3: "+0.50 75%", 6: "-1.00 25%"}).splitlines()
    assert [row.split() for row in rows[-3:]] == [list("1234567"), ["+0.50", "-1.00"], ["75%", "25%"]]
    assert rows[-3].index("4") == rows[-2].index("+0.50") == rows[-1].index("75%")


def test_colours_mark_the_sides_and_the_new_stone_only_where_asked_for():
    game, board = GAMES["connect4"], GAMES["connect4"].play("43")
    assert "\x1b" not in picture(game, board)
    text = picture(game, board, before=game.play("4"), colour=True)
    assert "\x1b[93mX\x1b[0m" in text
    assert "\x1b[91m\x1b[1mO\x1b[0m" in text
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert [line.rstrip() for line in plain.splitlines()] == picture(game, board).splitlines()


def test_values_are_shown_on_request(table):
    _, out = table("connect4", 1)
    assert "%" in out
    _, out = table("connect4", 1, "values")
    assert out.count("%") == 7  # the first picture only


def test_swap_changes_sides_and_the_agent_moves(table):
    boards, out = table("tictactoe", 1, "swap")
    assert len(boards) == 2
    assert "the agent plays" in out


def test_help_lists_the_moves_and_commands(table):
    _, out = table("tictactoe", 1, "help")
    for word in ("1 2 3 4 5 6 7 8 9", "hint", "perfect", "undo", "swap"):
        assert word in out


def test_perfect_hints_of_tic_tac_toe():
    game = GAMES["tictactoe"]
    assert perfect_hint(game, game.play("12")) == "perfect play: win 4 5 7; draw 3 6 8 9"
    assert perfect_hint(game, game.play("1524")) == "perfect play: win 3; draw 6; lose 7 8 9"
    assert perfect_hint(game, game.play("1245")) == "perfect play: win 7; draw 8; lose 3 6 9"


def test_perfect_hints_of_connect4():
    pytest.importorskip("bitbully")
    game = GAMES["connect4"]
    assert perfect_hint(game, game.board) == "perfect play: win 4; draw 3 5; lose 1 2 6 7"
    assert perfect_hint(game, game.play("414141")) == "perfect play: win 1 4; lose 2 3 5 6 7"


def test_without_the_library_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitbully", None)
    monkeypatch.setitem(sys.modules, "bitbully.bitbully_core", None)
    hint = perfect_hint(GAMES["connect4"], Connect4.board)
    assert "python -m pip install bitbully" in hint
    assert "\n" not in hint


@pytest.mark.parametrize(
    ("words", "side"), [(["first"], 1), (["S"], -1), (["2"], -1), (["third", "", "f"], 1), (["q"], None)]
)
def test_the_side_is_asked_until_it_is_one(monkeypatch, words, side):
    typed = iter(words)
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    assert ask_side() == side


@pytest.mark.parametrize("against", ["random", "minimax", "perfect", "runs/tictactoe/a"])
def test_a_match_to_watch(run_folder, monkeypatch, capsys, against):
    monkeypatch.chdir(run_folder)
    play(load("checkpoint=runs/tictactoe/a", f"against={against}", config="play"))
    out = capsys.readouterr().out
    assert f"against {against}" in out
    result = out.splitlines()[-1]
    assert re.search(r"(wins|a draw) after (\d) plies: (\d+)", result)
    assert GAMES["tictactoe"].play(result.split(": ")[1]).over()
    assert out.count("\n\n") >= int(re.search(r"after (\d)", result)[1])


def test_the_newest_run_is_found(run_folder, monkeypatch):
    monkeypatch.chdir(run_folder)
    assert str(newest_run()) == str(newest_run("tictactoe")) == "runs/tictactoe/a"
    with pytest.raises(ValueError, match="no checkpoint of connect4 under runs/; train one: "):
        newest_run("connect4")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["side=third"], "side is 'third'"),
        (["temperature=0"], "temperature is 0"),
        (["checkpoint=nowhere"], "nowhere"),
        (["checkpoint=null", "game=connect4"], "no checkpoint of connect4 under runs/"),
        (["against=perfec"], "'perfec' is not a player .did you mean perfect"),
    ],
)
def test_bad_words(run_folder, monkeypatch, words, says):
    monkeypatch.chdir(run_folder)
    with pytest.raises(ValueError, match=says):
        play(load("checkpoint=runs/tictactoe/a", *words, config="play"))


def program(folder, *words, **options):
    command = [sys.executable, "-m", "rlgames.play", "game=tictactoe", *words]
    return subprocess.Popen(
        command, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.mark.parametrize("typed", ["first\n5\n", pytest.param("neither\nsecond\nquit\n", marks=pytest.mark.thorough)])
def test_quit_and_the_end_of_the_input_end_in_good_order(run_folder, typed):
    process = program(run_folder)
    out, err = process.communicate(typed, timeout=120)
    assert (process.returncode, err) == (0, "")
    assert "do you move first or second?" in out


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.thorough
def test_ctrl_c_ends_with_130(run_folder):
    default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # programs in the background ignore it
    process = program(run_folder, "side=first", preexec_fn=default)
    while "9" not in process.stdout.readline():
        pass
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "stopped\n")
