"""``opponent=perfect`` exists where it is perfect; elsewhere a program says who plays."""

import sys
from importlib import import_module

import pytest

from rlgames.build import build, load, ready
from rlgames.evaluate import evaluate
from rlgames.games.connect4 import Connect4
from rlgames.play import perfect_hint, play
from rlgames.players import Minimax, perfect_or_minimax, perfect_player
from rlgames.tournament import run as tournament
from rlgames.train import train

OWN_GAME = """
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe


class Connect3(Connect4):
    name = "connect3"


class Small(TicTacToe):
    name = "small"
"""
FEW = ["engine=eager", "games=2", "eval_every=2", "features.count=2", "features.length=2"]
FEW += ["opponent.depth=2", "evaluation.first=2", "evaluation.second=0", "run_dir=run", "game._target_=threes.Connect3"]
NOTE = "note: opponent: minimax, 2 plies; no perfect player of connect3\n"


@pytest.fixture
def threes(tmp_path, monkeypatch):
    """A module with games of our own, in the folder where the test runs."""
    (tmp_path / "threes.py").write_text(OWN_GAME)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "threes", raising=False)
    return import_module("threes")


def test_the_default_opponent_says_what_it_is(threes, capsys):
    train(load(*FEW), FEW)
    out = capsys.readouterr().out
    assert out.startswith(NOTE)
    assert "perfect" not in out.replace(NOTE, "")
    words = ["checkpoint=run", "opponent.depth=2", "trust=threes", "evaluation.first=2", "evaluation.second=0"]
    evaluate(load(*words, config="evaluate"), words)
    assert capsys.readouterr().out.startswith(NOTE)


def test_perfect_is_refused_in_the_words_of_each_program(threes):
    words = [*(word for word in FEW if "depth" not in word), "opponent=perfect"]
    train(load(*FEW), FEW)
    none = "there is no perfect player of connect3; use"
    asked = "checkpoint=run", "trust=threes"
    with pytest.raises(ValueError, match=f"{none} opponent=minimax instead$"):
        train(load(*words), words)
    with pytest.raises(ValueError, match=f"{none} opponent=minimax instead$"):
        evaluate(load(*asked, "opponent=perfect", config="evaluate"), ["opponent=perfect"])
    with pytest.raises(ValueError, match=f"{none} against=minimax instead$"):
        play(load(*asked, "against=perfect", config="play"))
    with pytest.raises(ValueError, match=f"{none} minimax instead$"):
        tournament(load("players=[run,perfect]", "trust=threes", config="tournament"))
    assert perfect_hint(threes.Connect3(), threes.Connect3.board) == "there is no perfect player of connect3"


def test_small_games_are_searched_to_the_end(threes, capsys):
    for player in (perfect_or_minimax(threes.Small(), depth=2), perfect_player(threes.Small())):
        assert isinstance(player, Minimax)
        assert player.depth == 9
    assert capsys.readouterr().out == ""


def test_no_perfect_player_without_the_library(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("rlgames.players.solver.import_module", missing)
    with pytest.raises(ValueError, match=r"\(python -m pip install bitbully\); use opponent=minimax instead$"):
        perfect_player(Connect4())


def test_chess_has_no_perfect_player():
    words = ["+experiment=chess_td_leaf", "opponent=perfect"]
    cfg = ready(load(*words), words)
    with pytest.raises(ValueError, match="there is no perfect player of chess; use opponent=untrained instead"):
        build(cfg, "opponent", game=build(cfg, "game"))
