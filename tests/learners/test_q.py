import itertools

import numpy as np
import pytest
import torch

from rlgames.build import load
from rlgames.evaluate import evaluate
from rlgames.evaluation.exhaustive import Exhaustive
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.q import Q
from rlgames.learners.q_table import QTable
from rlgames.players import GreedyPlayer
from rlgames.policy import boltzmann, draw_index
from rlgames.schedules import Constant, Linear
from rlgames.train import train
from tests.support import last_checkpoint, result

GAME = TicTacToe()
SMALL = ["learner=q", "game=tictactoe", "games=40", "eval_every=20", "learner.games=40"]


@pytest.fixture(scope="module")
def evaluation():
    return Exhaustive(GAME)


def learned(games=20_000, seed=0, engine="fused", **words):
    learner = Q(GAME, games, seed=seed, **words)
    agent = learner.agent(engine)
    episodes = learner.train(agent, 0, games, 1.0, np.random.default_rng(seed))
    return learner, agent, episodes


# ---- the table


def test_the_row_is_the_code_of_the_document():
    table = QTable(GAME)
    assert table.embedding.weight.shape == (3**9, 9)
    assert [table.row(GAME.play(moves)) for moves in ("", "1", "15")] == [0, int("100000000", 3), int("100020000", 3)]


def test_rows_of_all_positions_differ(evaluation):
    table = QTable(GAME)
    rows = {table.row(board) for board in evaluation.boards}
    assert len(rows) == 4520
    assert max(rows) <= 19_560


def test_start_values_lie_between_0_and_1_and_follow_the_seed():
    values = QTable(GAME, seed=3).embedding.weight
    assert 0 <= values.min() < 0.001 < 0.999 < values.max() <= 1
    assert torch.equal(values, QTable(GAME, seed=3).embedding.weight)
    assert not torch.equal(values, QTable(GAME, seed=4).embedding.weight)


def test_symmetric_moves_share_a_value():
    table = QTable(GAME, symmetric=True)
    assert len(set(table.entries[0].tolist())) == 3  # corner, edge, centre
    for moves in ("", "1", "15", "163", "27598"):
        board = GAME.play(moves)
        for symmetry in GAME.symmetries:
            image = GAME.play([symmetry[int(move) - 1] for move in moves])
            for move in board.moves():
                assert table.view().places(board)[move] == table.view().places(image)[symmetry[move]]


def test_a_game_with_too_many_boards_is_refused():
    with pytest.raises(ValueError, match="connect4 would need"):
        QTable(Connect4())


@pytest.mark.parametrize("symmetric", [False, True])
def test_text_round_trip(tmp_path, symmetric):
    table, other = QTable(GAME, symmetric, seed=1), QTable(GAME, symmetric, seed=2)
    table.save_text(tmp_path / "q.txt")
    lines = (tmp_path / "q.txt").read_text().splitlines()
    assert len(lines) == 3**9
    assert len(lines[0].split()) == 9
    other.load_text(tmp_path / "q.txt")
    assert np.array_equal(other.full(), table.full())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 2 3", "line 3 has 3 values; it must have 9"),
        ("1 2 3 x 5 6 7 8 9", "line 3: .*'x'"),
        ("nan " * 9, "line 3 .*not finite"),
    ],
)
def test_a_bad_line_is_named_and_nothing_changes(tmp_path, line, says):
    table, file = QTable(GAME), tmp_path / "q.txt"
    table.save_text(file)
    before = table.full().copy()
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], line, *lines[3:]]))
    with pytest.raises(ValueError, match=says):
        table.load_text(file)
    file.write_text("\n".join(lines[:-1]))
    with pytest.raises(ValueError, match="has 19682 lines; a table has 19683"):
        table.load_text(file)
    assert np.array_equal(table.full(), before)


# ---- the Boltzmann machine


@pytest.mark.parametrize("temperature", [1e-300, 0.002, 0.01, 1.0, 1000.0, 1e300])
@pytest.mark.parametrize("values", [[1000.0, 0.0, -1000.0], [-1e9] * 3, [0.5], [10.0, 9.999, -10.0]])
def test_probabilities_are_finite_and_sum_to_1(values, temperature):
    p = boltzmann(np.array(values), temperature)
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(p) <= 0).all()


def test_the_formula_and_its_limits():
    q = np.array([0.5, 0.5, 0.0])
    expected = np.exp(q) / np.exp(q).sum()
    assert boltzmann(q, 1.0) == pytest.approx(expected)
    assert boltzmann(q, 1e9) == pytest.approx([1 / 3] * 3)
    assert boltzmann(q, 1e-9) == pytest.approx([0.5, 0.5, 0])


def test_draws_follow_the_probabilities():
    p, rng = boltzmann(np.array([0.5, 0.5, 0.0]), 1.0), np.random.default_rng(0)
    counts = np.bincount([draw_index(p, rng) for _ in range(20_000)], minlength=3)
    assert (np.abs(counts / 20_000 - p) < 3 * np.sqrt(p * (1 - p) / 20_000)).all()


def test_what_was_lost_to_rounding_falls_to_the_likeliest():
    assert draw_index(np.array([0.25, 0.5, 0.0]), type("Almost1", (), {"random": lambda self: 0.999})()) == 1


def test_the_temperature_falls_by_the_same_factor_per_game():
    learner = Q(GAME, games=1000, temperature_start=1.0, temperature_end=0.002)
    numbers = learner.temperature(np.array([0, 1, 2, 500, 1000, 2000]))
    factor = np.exp(np.log(0.002) / 1000)
    assert numbers == pytest.approx([1, factor, factor**2, 0.002**0.5, 0.002, 0.002])


# ---- learning


class Script:
    """Random numbers that make Boltzmann's machine play ``moves`` where all values are equal."""

    def __init__(self, game, moves):
        boards = itertools.accumulate(moves, lambda board, move: board.play(move), initial=game.board)
        self.numbers = [
            (board.moves().tolist().index(move) + 0.5) / len(board.moves())
            for move, board in zip(moves, boards, strict=False)
        ]

    def random(self):
        return self.numbers.pop(0)


@pytest.mark.parametrize(
    ("moves", "words", "first", "second"),
    [
        ("14253", {}, 10.0, -10.0),  # the limit r / (1 - gamma)
        ("14253", {"limit": False, "win": 2.0, "loss": -0.5}, 2.0, -0.5),
        ("152374689", {"draw": 0.5}, 5.0, 5.0),
        ("1234567", {}, 10.0, -10.0),
    ],
)
def test_last_actions_learn_the_end(moves, words, first, second):
    learner = Q(GAME, games=1, temperature_start=1e6, temperature_end=1e5, init=0.0, dtype="float64", **words)
    agent, line = learner.agent("eager"), GAME.parse(moves)
    learner.train(agent, 0, 1, 1.0, Script(GAME, line))
    boards = [GAME.play(line[:n]) for n in range(len(line))]
    q = [agent.network.full()[agent.network.row(board), move] for board, move in zip(boards, line, strict=True)]
    assert q[-2:] == pytest.approx([0.5 * second, 0.5 * first])
    assert q[:-2] == pytest.approx([0.0] * (len(q) - 2))


def test_an_action_learns_from_the_situation_after_the_reply():
    learner = Q(GAME, games=1, temperature_start=1e9, temperature_end=1e8, init=0.0, dtype="float64")
    agent, line = learner.agent("eager"), GAME.parse("14253")
    weight = learner.network.embedding.weight.detach()
    weight[learner.network.row(GAME.play("14"))] = 4.0
    weight[learner.network.row(GAME.board), 0] = 2.0
    learner.train(agent, 0, 1, 1.0, Script(GAME, line))
    assert weight[0, 0] == pytest.approx(2 + 0.5 * (0.9 * 4 - 2))


def test_a_win_with_the_ninth_mark_is_a_win():
    learner = Q(GAME, games=1, temperature_start=1e6, temperature_end=1e5, init=0.0)
    line = [0, 1, 2, 3, 4, 5, 7, 6, 8]
    episodes = learner.train(learner.agent("eager"), 0, 1, 1.0, Script(GAME, line))
    assert (episodes.plies, episodes.first, episodes.second) == (9, 1, 0)


def test_against_random_moves_nothing_is_learned_from_the_second_player():
    learner, _, episodes = learned(200, self_play=False, init=0.0)
    of_second = [board for board in Exhaustive(GAME).boards if board.ply % 2]
    assert not any(learner.network.full()[learner.network.row(board)].any() for board in of_second)
    assert episodes.updates < episodes.plies


@pytest.mark.parametrize("symmetric", [False, True])
def test_eager_and_compiled_play_the_same_games(symmetric):
    runs = [learned(60, engine=engine, symmetric=symmetric, dtype="float64") for engine in ("eager", "fused")]
    (a, _, e), (b, _, f) = runs
    assert e == pytest.approx(f)
    assert np.allclose(a.network.full(), b.network.full(), rtol=1e-12)


def test_chunks_do_not_matter():
    whole, _, _ = learned(50)
    learner, rng = Q(GAME, 50), np.random.default_rng(0)
    for begin, games in ((0, 20), (20, 1), (21, 29)):
        learner.train(learner.agent("fused"), begin, games, 1.0, rng)
    assert np.array_equal(learner.network.full(), whole.network.full())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"temperature_start": 0.002}, "must fall"),
        ({"temperature_end": 0.0}, "above 0"),
        ({"temperature_start": float("nan")}, "must fall"),
        ({"gamma": 1.0}, "below 1, because learner.limit"),
        ({"gamma": 1.5, "limit": False}, "at most 1"),
        ({"games": 0}, "learner.games is 0"),
        ({"init": -1.0}, "learner.init"),
        ({"dtype": "int8"}, "learner.dtype"),
    ],
)
def test_bad_parameters_are_refused(words, says):
    with pytest.raises(ValueError, match=says):
        Q(GAME, **words)


def test_gamma_1_is_allowed_without_the_limit():
    assert Q(GAME, gamma=1.0, limit=False).ends.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("alpha", [0.0, 1.5, -1.0])
def test_alpha_is_checked(alpha):
    with pytest.raises(ValueError, match=r"learner\.alpha is .* at game 0; it must be above 0 and at most 1"):
        Q(GAME, alpha=Constant(alpha))
    learner = Q(GAME, alpha=Linear(1.0, alpha, 10))
    with pytest.raises(ValueError, match=r"learner\.alpha is .* at game"):
        learner.curves(np.arange(11))


# ---- the proof


def test_boards_to_move_at_are_all_positions_but_the_ends(evaluation):
    """5,478 positions, of which 626 + 316 + 16 are ends: see test_games.py."""
    assert len(evaluation.boards) == len(set(evaluation.boards)) == 4520
    assert not any(board.over() for board in evaluation.boards)
    assert sum(board.player() > 0 for board in evaluation.boards) == 2423


def test_bounds_of_play_without_risk(evaluation):
    proofs = evaluation.scores(GreedyPlayer(Q(GAME).agent("eager")), None)
    assert [round(100 * proofs[side].bound, 2) for side in ("first", "second")] == [99.48, 91.64]


def test_an_untrained_table_loses_and_the_losing_line_is_real(evaluation):
    proofs = evaluation.scores(player := GreedyPlayer(Q(GAME).agent("eager")), None)
    for name, side in (("first", 1), ("second", -1)):
        line = GAME.parse(proofs[name].losing_line)
        boards = list(itertools.accumulate(line, lambda board, move: board.play(move), initial=GAME.board))
        assert boards[-1].winner() == -side
        for board, move in zip(boards, line, strict=False):
            assert board.player() != side or player.move(board, None) == move
    assert "a losing line" in evaluation.report(proofs)


def test_all_lines_are_those_of_a_walk(evaluation):
    player = GreedyPlayer(Q(GAME).agent("eager"))

    def ends(board, side):
        if board.over():
            return [side * board.winner()]
        moves = [player.move(board, None)] if board.player() == side else board.moves()
        return [end for move in moves for end in ends(board.play(int(move)), side)]

    for name, side in (("first", 1), ("second", -1)):
        tree, found = evaluation.scores(player, None)[name].tree, ends(GAME.board, side)
        assert [tree.wins, tree.draws, tree.losses] == [found.count(end) for end in (1, 0, -1)]


def test_larger_games_are_refused():
    with pytest.raises(ValueError, match="connect4 has too many"):
        Exhaustive(Connect4())


@pytest.mark.parametrize("seed", range(5))
def test_20_000_games_leave_no_losing_line(evaluation, seed):
    _, agent, _ = learned(seed=seed)
    row = evaluation.records(GreedyPlayer(agent), None)
    assert (row["losses_first"], row["losses_second"]) == (0, 0)
    assert row["optimal"] > 0.95
    assert row["random_wins_first"] > 0.85
    assert evaluation.headline(row).startswith("0 of ")


# ---- the program


def test_training_leaves_all_files_and_resumes_as_if_uninterrupted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    final = train(load(*SMALL, "run_dir=a"))
    assert final["evaluation"]["losses_first"] > 0
    assert "games_to_100" in result(tmp_path / "a")
    header = (tmp_path / "a" / "progress.csv").read_text().splitlines()[0].split(",")
    assert {"temperature", "alpha", "losses_first", "losses_second", "optimal", "random_wins_second"} <= set(header)
    assert "lines lost as first" in capsys.readouterr().out
    train(load(*SMALL, "games=20", "run_dir=b"))
    train(load("resume=b", "games=40"), ["resume=b", "games=40"])
    a, b = (last_checkpoint(tmp_path / name)["network"]["embedding.weight"] for name in "ab")
    assert torch.equal(a, b)


def test_a_checkpoint_is_evaluated_by_all_lines_unless_another_way_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(load(*SMALL, "run_dir=a"))
    words = ["checkpoint=a", "engine=eager"]
    assert "boards to move at" in evaluate(load(*words, config="evaluate"), words)["report"]
    words += ["evaluation=published", "opponent=random", "evaluation.first=2"]
    assert "success_first" in evaluate(load(*words, config="evaluate"), words)


def test_the_dashboard_shows_the_first_move():
    learner = Q(GAME, init=0.0)
    look = learner.look(learner.agent("eager"), 0)
    assert look["first_move_entropy"] == pytest.approx(np.log2(9))
    assert look["first_move"].count("11 %") == 9
    assert len(look["first_move"].splitlines()) == 3


def test_other_parts_cannot_be_named_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="brings its own optimizer"):
        train(load(*SMALL, "optimizer=tcl"), [*SMALL, "optimizer=tcl"])


@pytest.mark.thorough
def test_td_is_proved_the_same_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["game=tictactoe", "evaluation=exhaustive", "engine=eager", "games=2", "eval_every=2"]
    assert 0 <= train(load(*words))["evaluation"]["optimal"] <= 1
