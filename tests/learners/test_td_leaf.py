import re

import numpy as np
import pytest
import torch

from rlgames.build import build, load
from rlgames.chess.board import START, Board, Chess
from rlgames.chess.contest import Adjudication, Course, Record
from rlgames.chess.evaluation import RESOLUTION, SIZE, evaluate, start_values
from rlgames.chess.features import ChessTerms
from rlgames.chess.openings import Openings
from rlgames.chess.search import Limits, Result, Search
from rlgames.chess.search_agent import SearchAgent, heat_map
from rlgames.chess.self_play import SelfPlay
from rlgames.learners.td_leaf import TDLeaf
from rlgames.networks.linear import LinearEvaluation
from rlgames.optim import IDBD, TCL, TDL
from rlgames.search.bounds import EXACT, LOWER, UPPER
from rlgames.train import train
from rlgames.training.assemble import assemble
from tests.support import few, last_checkpoint, result

GAME = Chess()
BETA = np.arctanh(0.25)
TINY = [
    "+experiment=chess_td_leaf",
    "games=4",
    "eval_every=2",
    "learner.lr=1.0",
    "learner.update_every=2",
    "learner.min_moves=1",
    "learner.self_play.nodes=60",
    "learner.self_play.hash_mb=0.1",
    "learner.self_play.adjudication.max_plies=24",
    "opponent.nodes=60",
    "evaluation.nodes=60",
    "evaluation.games=2",
    "evaluation.adjudication.max_plies=24",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def agent_with(rule=TDL, **hyper):
    torch.manual_seed(0)
    network = LinearEvaluation(ChessTerms(GAME), dtype="float64")
    network.embedding.weight.data += 0.05 * torch.randn(SIZE, 1, dtype=torch.float64)
    return SearchAgent(network, rule(network.parameters(), **hyper), None)


def game(winner=1, plies=12, seed=0):
    """A game of random moves, thoughts and principal variations of two moves, of which the replies often come true."""
    rng = np.random.default_rng(seed)
    course, thoughts = Course(), []
    for _ in range(plies):
        board = course.board
        move, other = (int(rng.choice(board.moves())) for _ in range(2))
        after = board.play(move)
        reply = int(rng.choice(after.moves()))
        thoughts.append(Result(move, rng.normal(), 0, (move, reply), after.play(reply), True, 1, 2))
        course.play(move if rng.random() < 0.7 else other)
    return Record(course, thoughts, winner, "test")


def learner(**words):
    return TDLeaf(GAME, SelfPlay(), min_moves=1, **words)


def gradient(agent, board, colour):
    """Of V by every coefficient, by differences."""
    w = agent.network.embedding.weight
    v = agent.network(agent.features.encode([board]))
    (row,) = torch.autograd.grad(v, w)
    return colour * row.squeeze(1).numpy()


@pytest.mark.parametrize("colour", [1, -1])
def test_the_gradient_is_that_of_autograd_and_of_differences(colour):
    agent = agent_with()
    board = game(plies=15).course.board
    before = agent.coefficients().astype(np.float64)
    value = colour * agent.network(agent.features.encode([board])).item()
    expected = gradient(agent, board, colour)
    agent.learn(board, colour, value, 1.0)
    moved = (agent.weight.detach().numpy().ravel() - before)[:]
    lr = agent.optimizer.defaults["lr"]
    assert moved == pytest.approx(lr * expected, abs=1e-6)
    indices, counts = ChessTerms(GAME).active(board)
    j = sum(before[i] * c for i, c in zip(indices, counts, strict=True))
    for k in (0, len(indices) // 2, -1):
        bumped = np.tanh(BETA * (j + 1e-5 * counts[k])) - np.tanh(BETA * j)
        assert colour * expected[indices[k]] == pytest.approx(bumped / 1e-5, rel=1e-3)


def test_a_game_moves_the_coefficients_by_the_formula():
    """w + α Σ_t ∇v_t Σ_{j ≥ t} λ^{j-t} d_j, for both colours, written out anew."""
    record, agent = game(winner=-1), agent_with(lr=0.1)
    teacher = learner(lambda_=0.7)
    expected = agent.weight.detach().numpy().ravel().copy()
    for colour in (1, -1):
        own = [t for n, t in enumerate(record.thoughts) if record.course.boards[n].player() == colour]
        v = [np.tanh(BETA * t.score) for t in own] + [-colour]
        for t, thought in enumerate(own):
            total = sum(0.7 ** (j - t) * (v[j + 1] - v[j]) for j in range(t, len(own)))
            indices, counts = ChessTerms(GAME).active(thought.leaf)
            expected[indices] += 0.1 * total * BETA * (1 - v[t] ** 2) * colour * counts
    played = type("Game", (), {"record": record, "learners": (1, -1)})
    episodes = teacher._learn(agent, played)
    agent.finish()
    assert agent.weight.detach().numpy().ravel() == pytest.approx(expected, abs=1e-7)
    assert (episodes.games, episodes.plies, episodes.updates, episodes.second) == (1, 12, 12, 1)


def test_torch_optimizers_make_the_step_of_the_plain_rule():
    one, other = agent_with(TDL, lr=0.1), agent_with(torch.optim.SGD, lr=0.1)
    played = type("Game", (), {"record": game(), "learners": (1, -1)})
    for agent in (one, other):
        learner()._learn(agent, played)
        agent.finish()
    assert torch.allclose(one.weight, other.weight, atol=1e-12)


def test_lambda_1_is_regression_on_the_outcome():
    lesson = learner(lambda_=1.0).lesson(agent_with(), game(winner=1), -1)
    assert lesson.errors == pytest.approx(-1 - lesson.values)


def test_lambda_0_is_one_step():
    lesson = learner(lambda_=0.0).lesson(agent_with(), game(winner=0), 1)
    assert lesson.errors == pytest.approx(np.diff([*lesson.values, 0.0]))


def test_draw_value():
    lesson = learner(lambda_=0.0, draw_value=-0.1).lesson(agent_with(), game(winner=0), 1)
    assert lesson.errors[-1] == pytest.approx(np.tanh(-0.1 * BETA) - lesson.values[-1])


def test_mates_are_values_without_gradient():
    record = game()
    record.thoughts[2] = record.thoughts[2]._replace(mate=3, score=1000.0, leaf_is_evaluation=False)
    record.thoughts[4] = record.thoughts[4]._replace(mate=-1, leaf_is_evaluation=False)
    lesson = learner().lesson(agent_with(), record, 1)
    assert (lesson.values[1], lesson.values[2]) == (1.0, -1.0)
    assert lesson.learnable.tolist() == [True, False, False, True, True, True]


def test_opening_moves_teach_nothing():
    record = game(plies=12)
    record.course.opening = 4
    lesson = learner().lesson(agent_with(), record._replace(thoughts=record.thoughts[4:]), 1)
    assert len(lesson.values) == 4


def test_clipping_leaves_out_rises_after_unpredicted_replies():
    record, agent = game(plies=40, seed=4), agent_with()
    free, clipped = (learner(clip=clip, lambda_=0.0).lesson(agent, record, 1) for clip in ("none", "unpredicted"))
    assert (free.differences == clipped.differences).all()
    assert clipped.dropped.any()
    assert (clipped.errors[clipped.dropped] == 0).all()
    assert (free.differences[clipped.dropped] > 0).all()
    moves = record.course.moves
    came = np.array([record.thoughts[n].pv[1] == moves[n + 1] for n in range(0, 40, 2)])
    assert came.any()
    assert not (clipped.dropped & came).any()


def test_directed_learns_at_the_positions_themselves():
    record, agent = game(), agent_with()
    lesson = learner(method="td_directed").lesson(agent, record, -1)
    assert lesson.boards == record.course.boards[1:12:2]
    statics = [-evaluate(agent.coefficients(), board) for board in lesson.boards]
    assert lesson.values == pytest.approx(np.tanh(BETA * np.array(statics)))


def test_root_strap_moves_the_evaluation_towards_the_search():
    record, agent = game(), agent_with()
    lesson = learner(method="root_strap").lesson(agent, record, 1)
    found = np.tanh(BETA * np.array([t.score for t in record.thoughts[::2]]))
    assert lesson.errors == pytest.approx(found - lesson.values)


def tree_of(board, seed=0):
    """The tree of a search of a game's position, with all but the positions at random."""
    tree = Search(start_values(), 0.1, tree=True).run(board, limits=Limits(depth=2)).tree
    rng, n = np.random.default_rng(seed), len(tree.bounds)
    return tree._replace(bounds=rng.integers(1, 4, n), scores=rng.normal(size=n), quiet=rng.random(n) < 0.7)


@pytest.mark.parametrize("rule", [TDL, torch.optim.SGD])
def test_tree_strap_moves_evaluations_towards_scores_and_bounds_that_they_violate(rule):
    """w + α Σ δ ∇v, written out anew, with the gradient by autograd."""
    agent, tree = agent_with(rule, lr=0.1), tree_of(game(plies=15).course.board)
    agent.weight.data = torch.round(agent.weight.data * RESOLUTION) / RESOLUTION  # as compiled evaluations are
    expected, taught = agent.weight.detach().numpy().ravel().copy(), 0
    for row, player, _, bound, score, quiet in zip(*tree, strict=True):
        board = Board(*map(int, row))
        delta = np.tanh(BETA * score) - player * agent.network(agent.features.encode([board])).item()
        if quiet and (bound == EXACT or (bound == LOWER and delta > 0) or (bound == UPPER and delta < 0)):
            expected += 0.1 * delta * gradient(agent, board, player)
            taught += 1
    assert 5 < taught < tree.quiet.sum() - 3
    agent.learn_tree(tree)
    agent.finish()
    assert agent.weight.detach().numpy().ravel() == pytest.approx(expected, abs=1e-6)


def test_tree_strap_learns_from_the_trees_of_its_own_moves(monkeypatch):
    agent, trees = agent_with(), []
    monkeypatch.setattr(agent, "learn_tree", trees.append)
    record = game(plies=12)
    thoughts = [thought._replace(tree=n) for n, thought in enumerate(record.thoughts)]
    played = type("Game", (), {"record": record._replace(thoughts=thoughts), "learners": (-1,)})
    assert learner(method="tree_strap")._learn(agent, played).updates == 6
    assert trees == [1, 3, 5, 7, 9, 11]


def test_the_fixed_pawn_stays_in_tree_strap(quiet_runs):
    folder = quiet_runs("learner.method=tree_strap", "learner.pawn=fixed")
    assert weights(folder)[0] == 1.0
    assert not torch.equal(weights(folder).ravel(), torch.from_numpy(start_values()))


def test_four_pawns_are_a_win_with_the_identity_unit():
    network = LinearEvaluation(ChessTerms(GAME), output="identity")
    agent = SearchAgent(network, TDL(network.parameters()), None)
    assert agent.units([2.0, -1.0, 9.0]) == pytest.approx([0.5, -0.25, 1.0])
    assert network.slope(1.0) == 0.25


def test_short_games_teach_nothing():
    agent, played = agent_with(), type("Game", (), {"record": game(plies=6), "learners": (1, -1)})
    before = agent.weight.clone()
    assert TDLeaf(GAME, SelfPlay(), min_moves=4)._learn(agent, played).updates == 0
    assert (agent.weight == before).all()


def test_the_fixed_pawn_stays_and_the_normalised_is_1(quiet_runs):
    words = ["optimizer.lr=0.5", "learner.self_play.adjudication.max_plies=100"]  # until pawns are taken
    for pawn in ("fixed", "normalised"):
        folder = quiet_runs(f"learner.pawn={pawn}", *words, run_dir=pawn)
        assert last_checkpoint(folder)["network"]["embedding.weight"][0] == pytest.approx(1.0)
    folder = quiet_runs("learner.pawn=free", *words, run_dir="free")
    assert last_checkpoint(folder)["network"]["embedding.weight"][0] != 1.0


@pytest.fixture
def quiet_runs(tmp_path):
    def run(*words, run_dir="run"):
        words = [*TINY, *words, f"run_dir={run_dir}"]
        train(load(*words), words)
        return tmp_path / run_dir

    return run


def weights(folder):
    return last_checkpoint(folder)["network"]["embedding.weight"]


def test_a_run_leaves_its_games_and_figures(quiet_runs):
    folder = quiet_runs()
    text = (folder / "games.pgn").read_text()
    assert text.count("[Event ") == 4
    assert '[Round "4"]' in text
    assert not torch.equal(weights(folder).ravel(), torch.from_numpy(start_values()))
    found = result(folder)
    assert found["status"] == "finished"
    assert "elo_match" in found["evaluation"]
    assert "td_error" in found["evaluation"]


def test_the_same_seed_gives_the_same_run(quiet_runs):
    a, b, c = quiet_runs(run_dir="a"), quiet_runs(run_dir="b"), quiet_runs("seed=1", run_dir="c")
    assert torch.equal(weights(a), weights(b))
    assert (a / "games.pgn").read_bytes() == (b / "games.pgn").read_bytes()
    assert not torch.equal(weights(a), weights(c))


def test_a_resumed_run_is_the_uninterrupted_one(quiet_runs):
    words = ["learner.self_play.past=0.7", "learner.self_play.past_every=2", "optimizer=tcl"]
    whole = quiet_runs(*words, run_dir="whole")
    part = quiet_runs(*words, "games=2", run_dir="part")
    with (part / "games.pgn").open("a") as stream:  # a game that was played after the checkpoint
        stream.write('[Event "training"]\n\n1. e4 *\n\n')
    more = ["resume=part", "games=4"]
    train(load(*more), more)
    assert torch.equal(weights(whole), weights(part))
    assert (whole / "games.pgn").read_bytes() == (part / "games.pgn").read_bytes()


@pytest.mark.slow
def test_two_processes_play_the_same_games(quiet_runs):
    one, two = quiet_runs(run_dir="one"), quiet_runs("learner.self_play.processes=2", run_dir="two")
    assert (one / "games.pgn").read_bytes() == (two / "games.pgn").read_bytes()
    assert torch.equal(weights(one), weights(two))


@pytest.mark.parametrize("optimizer", few(["adam", "sgd", "idbd", "autostep", "rprop_plus"], "adam", "idbd"))
def test_any_optimizer_may_be_named(quiet_runs, optimizer):
    folder = quiet_runs(f"optimizer={optimizer}", "optimizer.lr=0.01")
    assert torch.isfinite(weights(folder)).all()
    assert not torch.equal(weights(folder).ravel(), torch.from_numpy(start_values()))


@pytest.mark.parametrize("rule", [TCL, IDBD])
def test_rules_with_memory_learn_too(rule):
    agent = agent_with(rule, lr=0.01)
    played = type("Game", (), {"record": game(), "learners": (1, -1)})
    before = agent.weight.clone()
    learner()._learn(agent, played)
    assert torch.isfinite(agent.weight).all()
    assert not torch.equal(agent.weight, before)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("learner.lambda_=2", "learner.lambda_ is 2"),
        ("learner.method=td", "allowed are td_leaf, td_directed, root_strap, tree_strap"),
        ("learner.clip=all", "allowed are none, unpredicted, knightcap"),
        ("learner.pawn=gone", "allowed are fixed, normalised, free"),
        ("learner.update_every=0", "must be at least 1"),
        ("learner.update_every=3", "must be a multiple of learner.update_every=3"),
        ("learner.self_play.processes=0", "learner.self_play.processes is 0"),
        ("learner.self_play.engine=''", "learner.self_play.engine is ''; it must be null or the path of an engine"),
        ("learner.self_play.engine_share=0.5", "name the path of an engine"),
        ("learner.self_play.past=1.5", "together at most 1"),
        ("learner.self_play.adjudication.max_plies=0", "adjudication.max_plies is 0; it must be at least 1"),
        ("learner.self_play.openings.random_plies=-1", "openings.random_plies is -1"),
        ("evaluation.games=3", "must be an even number"),
        ("opponent=random", "does not play chess"),
        ("network=tanh", "network=linear"),
        ("game=connect4", "features=chess do not fit connect4"),
    ],
)
def test_bad_words_are_answered_with_one_sentence(word, sentence):
    words = [*TINY, word] if not word.startswith(("game", "opponent")) else [TINY[0], word, "features=chess"]
    with pytest.raises(ValueError, match=re.escape(sentence)):
        train(load(*words), words)


def test_values_and_pictures_for_people():
    cfg = load(*TINY)
    parts = assemble(cfg)
    look = build(cfg, "learner", game=GAME).look(parts.agent, 0)
    assert [look[f"value_{name}"] for name in ("pawn", "knight", "bishop", "rook", "queen")] == [
        100,
        400,
        400,
        600,
        1200,
    ]
    assert look["table_knight_middlegame"].shape == (192, 192, 3)
    table = np.zeros((8, 8))
    table[0, 7], table[7, 0] = 1.0, -1.0
    picture = heat_map(table, 1.0, cell=1)
    assert picture[0, 7, 0] > picture[0, 7, 2]
    assert picture[7, 0, 2] > picture[7, 0, 0]
    assert picture[3, 3].tolist() == [255, 255, 255]


def test_piece_values_hold_what_all_squares_share():
    weights = start_values()
    names = ChessTerms.names
    for k, name in enumerate(names):
        if name.startswith("knight ") and len(name.split(",")[0]) == len("knight a1"):
            weights[k] -= 0.5
    assert ChessTerms(GAME).piece_values(weights)["knight"] == pytest.approx(350)


def test_games_against_earlier_selves_teach_one_side():
    play = SelfPlay(Openings(random_plies=2), Adjudication(max_plies=8), nodes=50, hash_mb=0.1, past=1.0, past_every=1)
    rng = np.random.default_rng(0)
    assert next(play.games(start_values(), 0, rng, 1)).learners == (1, -1)  # there is none yet
    play.remember(1, start_values())
    games = list(play.games(start_values(), 1, rng, 6))
    assert {game.learners for game in games} == {(1,), (-1,)}
    assert all(("past" in game.text) for game in games)


def test_start_board_is_even():
    assert evaluate(start_values(), START) == 0
