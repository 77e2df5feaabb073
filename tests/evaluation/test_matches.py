"""Evaluation: scripted players with known results, intervals, sides, random streams."""

import math

import numpy as np
import pytest

from rlgames.evaluation.matches import COLUMNS, Evaluation, Score, flat, play_match, play_matches, sample_game, wilson
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.players import Minimax, Perfect, RandomPlayer, perfect_or_minimax
from tests.support import few

GAME, TTT = Connect4(), TicTacToe()


@pytest.fixture(scope="module")
def perfect(tmp_path_factory):
    pytest.importorskip("bitbully", reason="the perfect player needs the extra rlgames[solver]")
    return Perfect(GAME, cache=str(tmp_path_factory.mktemp("solved")))


class Opens:
    """Plays a given first move, then as another player."""

    def __init__(self, move, player):
        self.opening, self.player = move, player

    def move(self, board, rng):
        return self.opening if board.ply == 0 else self.player.move(board, rng)


class Lowest:
    """Takes the free cell with the lowest number."""

    def move(self, board, rng):
        return int(min(board.moves()))


def test_perfect_play_wins_as_first_player(perfect):
    score = play_matches(GAME, perfect, perfect, 6, True, np.random.default_rng(1))
    assert (score.wins, score.draws, score.losses) == (6, 0, 0)
    assert score.distinct > 3
    assert 28 < score.length < 41


def test_a_wrong_first_move_loses_everything(perfect):
    score = play_matches(GAME, Opens(0, perfect), perfect, 8, True, np.random.default_rng(1))
    assert (score.wins, score.draws, score.losses) == (0, 0, 8)
    assert score.success == 0.0


def test_a_drawing_first_move_is_not_perfect(perfect):
    score = play_matches(GAME, Opens(2, perfect), perfect, 6, True, np.random.default_rng(1))
    assert (score.wins, score.draws, score.losses) == (0, 6, 0)


@pytest.mark.parametrize("distant", few([0, 7]))
def test_perfect_play_as_second_player_scores_five_sevenths(perfect, distant):
    evaluation = Evaluation(GAME, perfect, first=0, second=7, first_distant=0, second_distant=distant)
    scores = evaluation.scores(perfect, np.random.default_rng(1))
    assert list(scores) == ["second", "second_distant"][: 2 if distant else 1]
    for score in scores.values():
        assert (score.wins, score.draws, score.losses) == (4, 2, 1)
    assert scores["second"].success == pytest.approx(5 / 7)


def test_results_depend_on_the_stream_only(perfect):
    def once():
        agent = Minimax(GAME, 2)
        return play_matches(GAME, agent, perfect, 10, True, np.random.default_rng(7))

    state = np.random.get_state()[1].copy()
    assert once() == once()
    assert (np.random.get_state()[1] == state).all()


# ---- tic-tac-toe and random play


@pytest.mark.parametrize("first", [True, False])
def test_perfect_tictactoe_never_loses(first):
    score = play_matches(TTT, perfect_or_minimax(TTT), RandomPlayer(), 300, first, np.random.default_rng(1))
    assert score.losses == 0
    assert score.wins > 200


def test_perfect_tictactoe_against_itself_is_drawn():
    player = perfect_or_minimax(TTT)
    assert play_matches(TTT, player, player, 50, True, np.random.default_rng(1)).draws == 50


RATES = [(TTT, 2000, (0.585, 0.288, 0.127)), (GAME, 500, (0.556, 0.441, 0.003))]


@pytest.mark.parametrize(("game", "matches", "rates"), RATES, ids=["tictactoe", "connect4"])
@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_random_play_by_seat(game, matches, rates, first):
    player = RandomPlayer()
    score = play_matches(game, player, player, matches, first, np.random.default_rng(first))
    seats = (score.wins, score.losses) if first else (score.losses, score.wins)
    for seen, rate in zip((*seats, score.draws), rates, strict=True):
        assert abs(seen - matches * rate) < 4 * math.sqrt(matches * rate * (1 - rate)) + matches * 0.002


# ---- figures


def test_score():
    score = Score(wins=6, draws=2, losses=2, plies=300, distinct=4)
    assert (score.matches, score.success, score.length) == (10, 0.7, 30.0)
    assert score.interval == wilson(0.7, 4)
    assert str(score).endswith(", 6 won, 2 drawn, 2 lost, 30.0 plies, 4 different")
    assert str(score._replace(distinct=10)) == "0.700 [0.397, 0.892], 6 won, 2 drawn, 2 lost, 30.0 plies"


@pytest.mark.parametrize("matches", [2, 50])
def test_matches_that_repeat_themselves_narrow_no_interval(matches):
    first, score = (play_matches(TTT, Lowest(), Lowest(), n, True, np.random.default_rng(0)) for n in (1, matches))
    assert (score.matches, score.distinct, score.interval) == (matches, 1, first.interval)


@pytest.mark.parametrize(
    ("rate", "n", "low", "high"), [(0.5, 100, 0.4038, 0.5962), (0.0, 200, 0.0, 0.01885), (1.0, 200, 0.98115, 1.0)]
)
def test_wilson(rate, n, low, high):
    assert wilson(rate, n) == pytest.approx((low, high), abs=1e-4)


def test_records_are_flat_and_named():
    evaluation = Evaluation(TTT, RandomPlayer(), first=3, second=2)
    record = evaluation.records(RandomPlayer(), np.random.default_rng(0))
    assert tuple(record) == evaluation.columns
    assert evaluation.protocols == ("first", "second")
    assert record["wins_second"] + record["draws_second"] + record["losses_second"] == 2
    assert record["low_first"] <= record["success_first"] <= record["high_first"]
    assert len(record) == 2 * len(COLUMNS)
    assert flat({"first": Score(1, 0, 0, 7, 1)})["success_first"] == 1.0


def test_bad_numbers():
    with pytest.raises(ValueError, match=r"evaluation.second is -1; it must be at least 0"):
        Evaluation(TTT, RandomPlayer(), second=-1)
    with pytest.raises(ValueError, match="both 0"):
        Evaluation(TTT, RandomPlayer(), first=0, second=0)
    with pytest.raises(ValueError, match="matches is 0"):
        play_matches(TTT, RandomPlayer(), RandomPlayer(), 0, True, np.random.default_rng(0))


def test_openings_in_turn():
    seen = []

    class Watches(RandomPlayer):
        def move(self, board, rng):
            seen.append(board)
            return super().move(board, rng)

    play_matches(TTT, Watches(), RandomPlayer(), 4, False, np.random.default_rng(0), [TTT.play("1"), TTT.play("5")])
    assert [board.code(0) for board in seen if board.ply == 1] == [1, 0, 1, 0]


def test_sample_game():
    text = sample_game(GAME, Opens(3, Minimax(GAME, 1)), RandomPlayer(), np.random.default_rng(0))
    line, board = text.split("\n", 1)
    moves, result = line.split(": ")
    final = GAME.play(moves)
    assert final.over()
    assert board == GAME.text(final)
    assert result.endswith(f"after {final.ply} plies")


def test_play_returns_moves_and_board():
    moves, board = play_match(RandomPlayer(), RandomPlayer(), TTT.board, np.random.default_rng(0))
    assert TTT.play(moves) == board
