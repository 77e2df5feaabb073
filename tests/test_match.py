import json

import pytest

from rlgames.build import load
from rlgames.match import match
from tests.support import result

SMALL = ["first=start", "games=4", "nodes=60", "adjudication.max_plies=30", "openings.random_plies=4"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def play(*words):
    return match(load(*SMALL, *words, config="match"))


def test_a_match_leaves_its_games_and_figures(tmp_path):
    ledger = play("folder=m")
    saved = json.loads((tmp_path / "m" / "match.json").read_text())
    assert saved["pentanomial"] == [0, 0, 2, 0, 0]  # a player against itself
    assert (saved["score"], saved["elo"]) == (0.5, 0)
    assert sum(saved["results"]) == 4
    assert (tmp_path / "m" / "games.pgn").read_text().count("[Event ") == 4
    assert str(ledger).startswith("Elo +0 [")


def test_options_of_engines_are_passed_on(tmp_path):
    pytest.importorskip("chess")
    engine = tmp_path / "engine"
    option = "option name Elo type spin default 1 min 1 max 9"
    answers = f"uci) echo {option}; echo uciok;; isready) echo readyok;; go|quit) exit;;"
    log = tmp_path / "log"
    engine.write_text(f"#!/bin/sh\nwhile read w x; do echo $w $x >> {log}; case $w in {answers} esac; done\n")
    engine.chmod(0o755)
    for second in (f"uci:{engine}", str(engine)):
        play("games=2", f"second={second}", "options={Elo: 7}")
        assert "setoption name Elo value 7" in log.read_text()
        log.unlink()


def test_the_help_says_how_an_engine_is_named():
    from rlgames.console.usage import help_text

    assert "an engine: its path, or uci:COMMAND" in help_text("match", [])


def test_more_nodes_are_stronger():
    ledger = play("games=20", "nodes=600", "second_nodes=20", "adjudication.max_plies=200")
    assert ledger.pairs().score > 0.6


def test_equal_pairs_count_once(tmp_path):
    """From one position the same two players always play the same two games."""
    words = ["second_nodes=20", "openings.random_plies=0", "folder=m", "adjudication.max_plies=200"]
    few, many = play(*words, "games=2"), play(*words, "games=12")
    assert few.pairs() == many.pairs()
    assert sum(many.results) == 12
    assert "(1 different pairs of 6; equal ones count once)" in str(many)
    assert "different" not in str(few)
    saved = json.loads((tmp_path / "m" / "match.json").read_text())
    assert (sum(saved["pentanomial"]), len(set(saved["digests"]))) == (1, 1)
    assert (tmp_path / "m" / "games.pgn").read_text().count("[Event ") == 12


def test_a_match_goes_on_where_it_was_left(tmp_path):
    play("games=8", "folder=whole", "second_nodes=20")
    play("games=4", "folder=part", "second_nodes=20")
    with (tmp_path / "part" / "games.pgn").open("a") as stream:
        stream.write("[Event of a pair that was not counted]")
    ledger = play("games=8", "folder=part", "second_nodes=20")
    assert len(ledger.points) == 4
    whole, part = (json.loads((tmp_path / name / "match.json").read_text()) for name in ("whole", "part"))
    assert whole["points"] == part["points"]
    assert whole["digests"] == part["digests"]
    assert (tmp_path / "whole" / "games.pgn").read_bytes() == (tmp_path / "part" / "games.pgn").read_bytes()


def test_another_match_is_not_mixed_in():
    play("folder=m")
    with pytest.raises(ValueError, match="nodes was 60 and is now 61"):
        play("folder=m", "nodes=61")


def test_a_checkpoint_and_its_elo(tmp_path):
    from rlgames.train import train

    words = ["+experiment=chess_td_leaf", "games=2", "eval_every=2", "learner.update_every=2", "run_dir=run"]
    words += ["learner.self_play.nodes=60", "opponent.nodes=60", "evaluation.nodes=60", "evaluation.games=2"]
    words += ["evaluation.adjudication.max_plies=20", "learner.self_play.adjudication.max_plies=20"]
    train(load(*words), words)
    assert result(tmp_path / "run")["status"] == "finished"
    ledger = match(load("first=run", "games=2", "nodes=60", "adjudication.max_plies=20", config="match"))
    assert len(ledger.points) == 1


def test_a_sequential_test_ends_early(capsys):
    words = ["games=400", "nodes=600", "second_nodes=1", "sprt=true", "elo1=100.0", "adjudication.max_plies=300"]
    assert len(play(*words).points) < 200
    assert "+100 Elo accepted" in capsys.readouterr().out


@pytest.mark.slow
def test_two_processes_play_the_same_match(tmp_path):
    one = play("games=8", "second_nodes=20")
    two = play("games=8", "second_nodes=20", "processes=2", "folder=two")
    assert one.points == two.points


def test_an_engine_that_dies_is_counted_apart(tmp_path):
    pytest.importorskip("chess")
    engine = tmp_path / "engine"
    answers = "uci) echo uciok;; isready) echo readyok;; go|quit) exit;;"
    engine.write_text(f"#!/bin/sh\nwhile read w x; do case $w in {answers} esac; done\n")
    engine.chmod(0o755)
    ledger = play("games=2", f"second=uci:{engine}")
    assert ledger.points == [None]
    assert len(ledger.errors) == 2
    assert "no pair of games" in str(ledger)
    assert "2 crashed" in str(ledger)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("games=3", "games is 3; it must be even"),
        ("games=0", "games is 0"),
        ("nodes=0", "one must be above 0"),
        ("second_nodes=0", "second_nodes is 0"),
        ("elo1=-1.0", "elo0 must be the smaller one"),
        ("first=nowhere", "there is no run folder or checkpoint"),
        ("second=uci:/no/such", "there is no engine /no/such"),
        ("second=uci:", "the command of the engine is ''; it must be the path"),
        ("second=sh", "second is sh, which is no run folder or checkpoint; an engine is uci:sh"),
        ("openings.random_plies=-2", "openings.random_plies is -2"),
    ],
)
def test_bad_words_are_answered_with_one_sentence(word, sentence):
    with pytest.raises(ValueError, match=sentence):
        play(word)
