import json
import sys

import numpy as np
import pytest

from rlgames import tournament as program
from rlgames.build import load
from rlgames.console import cli
from rlgames.evaluation.ratings import POINTS_PER_UNIT, PRIOR, ratings
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.lineup import Seat, seats
from rlgames.tournament import named_players, opening, run, table, tournament
from rlgames.train import train
from tests.support import QUICK


def chance(difference):
    return 1 / (1 + 10 ** (-difference / 400))


def test_two_players_have_the_difference_of_their_score():
    """15 of 20 points and the drawn game of the prior: D = 400 lg(15.5 / 5.5)."""
    first, second = ratings(np.array([[0.0, 15], [5, 0]]), np.array([[0.0, 20], [20, 0]]))
    assert first.elo - second.elo == pytest.approx(400 * np.log10(15.5 / 5.5))
    assert first.elo == pytest.approx(-second.elo)
    p = 15.5 / 21
    half = 1.96 * POINTS_PER_UNIT / np.sqrt((20 + PRIOR) * p * (1 - p)) / 2  # of each, half the difference's
    assert first.high - first.elo == pytest.approx(half)


def test_ratings_find_the_strengths_that_made_the_points():
    true = np.array([250.0, 40, -60, -230])
    games = 1e6 * (1 - np.eye(4))
    points = games * chance(true[:, None] - true[None, :])
    assert [rating.elo for rating in ratings(points, games)] == pytest.approx(true.tolist(), abs=0.1)


def test_the_interval_covers_the_truth():
    rng, true, inside = np.random.default_rng(0), np.array([120.0, 0, -120]), 0
    games = 40 * (1 - np.eye(3))
    for _ in range(400):
        wins = np.triu(rng.binomial(40, chance(true[:, None] - true[None, :])), 1)
        points = wins + np.triu(games - wins, 1).T
        inside += sum(r.low <= t <= r.high for r, t in zip(ratings(points, games), true, strict=True))
    assert 0.93 < inside / 1200 < 0.975


def test_who_wins_every_game_stays_finite_with_a_wide_interval():
    points = 100.0 * np.array([[0, 1, 1], [0, 0, 0.5], [0, 0.5, 0]])
    best, *_ = ratings(points, 100 * (1 - np.eye(3)))
    assert np.isfinite(best).all()
    assert best.high - best.low > 200


def test_players_who_never_met_cannot_be_compared():
    games = np.kron(np.eye(2), 10 * (1 - np.eye(2)))
    with pytest.raises(ValueError, match="connect all players"):
        ratings(games / 2, games)
    chain = 10.0 * (np.eye(3, k=1) + np.eye(3, k=-1))
    assert ratings(chain / 2, chain)[0].elo == pytest.approx(0)


def test_openings_do_not_end_the_game():
    rng = np.random.default_rng(0)
    for game in (TicTacToe(), Connect4()):
        boards = [opening(game.board, 6, rng) for _ in range(100)]
        assert {board.ply for board in boards} == {6}
        assert not any(board.over() for board in boards)
    assert opening(Connect4.board, 0, rng) == Connect4.board


def test_every_two_players_meet_and_the_best_comes_first():
    game, players = seats(["random", "perfect", "minimax"], TicTacToe(), depth=2)
    lines = []
    standing = tournament(game, players, 40, 1, np.random.default_rng(0), lines.append)
    assert (standing.names[0], standing.names[2]) == ("perfect", "random")
    assert len(lines) == 3
    assert standing.games == [[0, 40, 40], [40, 0, 40], [40, 40, 0]]
    for i in range(3):
        for j in range(i):
            assert standing.points(i, j) + standing.points(j, i) == 40
    assert standing.points(0, 2) > 30


def test_the_same_seed_plays_the_same_tournament():
    game, players = seats(["random", "minimax"], TicTacToe(), depth=1)
    assert tournament(game, players, 10, 2, np.random.default_rng(3)) == tournament(
        game, players, 10, 2, np.random.default_rng(3)
    )


class Always:
    """Plays the first or the last legal move."""

    def __init__(self, place):
        self.place = place

    def move(self, board, rng):
        return int(board.moves()[self.place])


@pytest.mark.parametrize(("game", "plies", "most"), [(Connect4(), 0, 2), (Connect4(), 1, 14), (TicTacToe(), 1, 18)])
def test_equal_games_of_players_without_lots_count_once(game, plies, most):
    players = [Seat("first", "", Always(0)), Seat("last", "", Always(-1))]
    lines = []
    standing = tournament(game, players, 200, plies, np.random.default_rng(0), lines.append)
    assert standing.games == [[0, 200], [200, 0]]
    (_, distinct), _ = standing.distinct
    assert distinct == most
    assert lines[0].endswith(f" in {most} different games")
    assert f"{most} of 200 games are different; equal games count once in the intervals" in table(standing)
    best, _ = standing.ratings
    share = standing.points(0, 1) / 200
    alone = ratings(most * np.array([[0, share], [1 - share, 0]]), most * (1 - np.eye(2)))
    assert best == pytest.approx(alone[0])
    assert best.high - best.low > 150  # of 200 games it would be 48


def test_different_games_are_not_spoken_of():
    _, players = seats(["random", "minimax"], Connect4(), depth=1)
    lines = []
    standing = tournament(Connect4(), players, 20, 2, np.random.default_rng(0), lines.append)
    assert standing.distinct == standing.games
    assert "different" not in table(standing) + lines[0]


def test_words_without_equals_are_players():
    assert named_players(["runs/a", "random", "matches=4", "-m"]) == ["matches=4", "-m", 'players=["runs/a","random"]']
    assert named_players(["matches=4"]) == ["matches=4"]


def test_agents_take_part(quick, capsys):
    folder = quick()
    words = ["engine=eager", "matches=2", f"json={folder / 't.json'}"]
    standing = run(load('players=["run","random"]', *words, config="tournament"))
    assert set(standing.names) == {"run", "random"}
    assert "TCLEXP, 12 games" in capsys.readouterr().out
    kept = json.loads((folder / "t.json").read_text())
    assert kept["names"] == standing.names
    assert kept["ratings"][0]["elo"] == standing.ratings[0].elo


def test_checkpoints_of_chess_form_a_ladder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["games=4", "eval_every=2", "learner.update_every=2", "checkpoints_kept=0", "run_dir=run"]
    words += ["learner.self_play.nodes=60", "learner.self_play.adjudication.max_plies=24"]
    words += ["evaluation.games=2", "evaluation.nodes=60", "evaluation.adjudication.max_plies=24"]
    train(load("+experiment=chess_td_leaf", *words), words)
    files = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert len(files) == 2
    named = named_players(["start", *map(str, files)])
    standing = run(load(*named, "matches=2", "nodes=60", "json=ladder.json", config="tournament"))
    assert set(standing.names) == {"start", *map(str, files)}
    assert standing.games == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    with pytest.raises(ValueError, match="'random' does not play chess; players of chess are start"):
        run(load(*named_players(["random", str(files[0])]), config="tournament"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "needs two players or more"),
        (["random"], "needs two players or more"),
        (["random", "random"], "named twice: random"),
        (["random", "perfec"], "did you mean perfect?"),
        (["start", "/bin/sh"], "'/bin/sh' is an engine of another program, which plays in python -m rlgames.match"),
        (["random", "minimax"], "name the game"),
        (["random", "run", "game=connect4"], "these play tictactoe and connect4"),
        (["random", "minimax", "game=tictactoe", "matches=3"], "matches is 3; it must be even"),
        (["random", "minimax", "game=tictactoe", "opening=9"], "opening is 9"),
        (["random", "minimax", "game=tictactoe", "depth=0"], "depth is 0"),
        (["random", "minimax", "game=tictactoe", "nodes=0"], "nodes is 0"),
        (["random", "minimax", "gmae=tictactoe"], "did you mean game?"),
    ],
)
def test_bad_input(quick, monkeypatch, capfd, words, part):
    if "run" in words:
        quick(*QUICK)
        capfd.readouterr()
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(sys, "argv", ["tournament", *named_players(words)])
    with pytest.raises(SystemExit, match="1"):
        cli.run(program.main, "tournament")
    err = capfd.readouterr().err
    assert part in err
    assert err.count("\n") == 1
