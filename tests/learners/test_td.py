"""Temporal difference learning: scripted games seen through a recording agent, then real agents."""

import itertools

import numpy as np
import pytest
import torch

from rlgames.agents import Eager, Fused
from rlgames.evaluation.matches import play_matches
from rlgames.features.ntuples import NTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TCLEXP, TDL
from rlgames.players import GreedyPlayer, RandomPlayer
from rlgames.schedules import Constant, Exponential, Linear, Sigmoid

CONNECT4, TICTACTOE = Connect4(), TicTacToe()


class Recorder:
    """Plays the moves of a script, values boards by their number of stones, and writes down what it is taught."""

    def __init__(self, script=(), output="tanh"):
        self.script, self.output, self.rows, self.calls, self.lrs = list(script), output, [], [], []
        self.ahead, self.tactical = [], False
        self.move_list = np.empty(9, np.int64)

    def sums(self, board, moves):
        self.calls.append(("sums", board))
        good = board.player() * (1 + board.ply / 100)
        return np.array([good if move == self.script[board.ply] else -good for move in moves])

    def unit(self, f):
        return f / 2

    def begin(self):
        self.calls.append(("begin",))

    def learn(self, board, target, after, gamma):
        self.calls.append(("learn", board))
        self.rows.append((board, target))
        self.ahead.append((after, gamma))
        return 0.25

    def explored(self, board):
        self.calls.append(("explored", board))

    def target(self, reward):
        return (reward + 1) / 2 if self.output == "sigmoid" else reward

    def set_lr(self, lr):
        self.lrs.append(lr)

    def run(self, text, *args):
        return text(self, *args)


class Dice:
    """Random numbers that make an exploratory move of every script move (epsilon is 1)."""

    def __init__(self, game, script):
        boards = itertools.accumulate(script, lambda board, move: board.play(move), initial=game.board)
        places = [board.moves().tolist().index(move) for board, move in zip(boards, script, strict=False)]
        counts = [len(game.play(script[:ply]).moves()) for ply in range(len(script))]
        self.numbers = [n for k, m in zip(places, counts, strict=True) for n in (0.5, (k + 0.5) / m)]

    def random(self):
        return self.numbers.pop(0)


def record(game, script, epsilon=0.0, output="tanh", rng=None, **words):
    """The rows learned from one game, and its sums."""
    agent = Recorder(script, output)
    learner = TD(game, Constant(epsilon), **words)
    episodes = learner.train(agent, 0, 1, 1.0, rng or np.random.default_rng(0))
    return agent, episodes


def moves_of(text):
    return [int(word) for word in text.split()]


FIRST_WINS, SECOND_WINS = moves_of("0 1 0 1 0 1 0"), moves_of("0 1 0 1 2 1 3 1")
DRAW = moves_of("0 4 8 1 7 6 2 5 3")  # tic-tac-toe
LAST_STONE = moves_of("4 6 0 2 6 5 1 2 5 2 3 4 1 1 4 0 3 5 5 6 2 4 3 0 1 3 1 5 0 1 3 0 2 6 2 4 3 0 4 6 6 5")  # wins
DRAWN = moves_of("5 4 5 0 6 2 4 5 5 0 4 1 1 0 4 5 6 5 3 1 1 2 2 6 2 6 6 3 6 2 0 3 0 3 3 4 3 1 4 2 1 0")
GAMES = [(CONNECT4, FIRST_WINS, 1), (CONNECT4, SECOND_WINS, -1), (TICTACTOE, DRAW, 0)]


# ---- what is taught


@pytest.mark.parametrize(("game", "script", "reward"), GAMES)
def test_targets_are_the_next_value_and_at_the_end_the_reward(game, script, reward):
    agent, episodes = record(game, script)
    boards = [game.play(script[:ply]) for ply in range(len(script))]
    assert [board for board, _ in agent.rows] == boards
    values = [board.player() * (1 + board.ply / 100) / 2 for board in boards[:-1]]
    assert [target for _, target in agent.rows] == pytest.approx([*values, reward])
    assert tuple(episodes) == (1, len(script), len(script), len(script) / 4, reward > 0, reward < 0)


def test_the_next_board_comes_with_its_share_of_the_target():
    agent, _ = record(CONNECT4, FIRST_WINS, gamma=0.9)
    plies = range(1, len(FIRST_WINS) + 1)
    assert agent.ahead == [(CONNECT4.play(FIRST_WINS[:n]), 0.9 if n < len(FIRST_WINS) else 0.0) for n in plies]


@pytest.mark.parametrize(("game", "script", "reward"), GAMES)
@pytest.mark.parametrize(("output", "scale"), [("tanh", lambda r: r), ("sigmoid", lambda r: (r + 1) / 2)])
def test_rewards_on_the_scale_of_the_unit(game, script, reward, output, scale):
    agent, _ = record(game, script, output=output)
    assert agent.rows[-1][1] == scale(reward)


@pytest.mark.parametrize(
    ("script", "reward"), [(FIRST_WINS, 1 - 0.06), (SECOND_WINS, -(1 - 0.07)), (LAST_STONE, -(1 - 0.41))]
)
def test_later_wins_are_worth_less_with_win_decay(script, reward):
    """The authors' program: 1 - n/100 with n stones on the board before the winning move."""
    agent, _ = record(CONNECT4, script, epsilon=1.0, rng=Dice(CONNECT4, script), win_decay=0.01)
    assert agent.rows[-1][1] == pytest.approx(reward)


def test_a_draw_is_worth_nothing_with_win_decay_too():
    agent, _ = record(TICTACTOE, DRAW, win_decay=0.01)
    assert agent.rows[-1][1] == 0


def test_gamma_discounts_next_values_and_not_rewards():
    plain, _ = record(CONNECT4, FIRST_WINS)
    discounted, _ = record(CONNECT4, FIRST_WINS, gamma=0.9)
    targets = [[target for _, target in agent.rows] for agent in (plain, discounted)]
    assert targets[1] == pytest.approx([0.9 * target for target in targets[0][:-1]] + [1])


def test_order_of_steps():
    """A game begins once; the next value is taken before the weights change."""
    agent, _ = record(CONNECT4, FIRST_WINS)
    assert agent.calls[0] == ("begin",)
    kinds = [kind for kind, *_ in agent.calls[1:]]
    assert kinds == ["sums", "learn"] * 6 + ["learn"], "the winning move needs no values"


@pytest.mark.parametrize(
    ("game", "script", "reward"),
    [*GAMES, (CONNECT4, LAST_STONE, -1), (CONNECT4, DRAWN, 0), (TICTACTOE, moves_of("0 1 2 3 4 5 7 6 8"), 1)],
)
def test_exploratory_moves_are_not_learned_from_unless_they_end_the_game(game, script, reward):
    agent, episodes = record(game, script, epsilon=1.0, rng=Dice(game, script))
    assert agent.rows == [(game.play(script[:-1]), reward)]
    explored = [board for kind, *rest in agent.calls if kind == "explored" for board in rest]
    assert explored == [game.play(script[:ply]) for ply in range(len(script) - 1)]
    assert tuple(episodes) == (1, len(script), 1, 0.25, reward > 0, reward < 0)
    assert not any(kind == "sums" for kind, *_ in agent.calls)


@pytest.mark.parametrize(("game", "script", "reward"), GAMES)
def test_exploratory_moves_are_learned_from_on_request(game, script, reward):
    agents = [
        record(game, script, epsilon, rng=rng, learn_exploratory=True)[0]
        for epsilon, rng in ((0.0, None), (1.0, Dice(game, script)))
    ]
    assert agents[0].rows == agents[1].rows, "random or not, the same moves teach the same"
    assert agents[1].rows[-1] == (game.play(script[:-1]), reward)
    assert len(agents[1].rows) == len(script)


def test_a_single_exploratory_move_leaves_out_its_own_board_only():
    dice = iter([0.9, 0.05, 0.0, 0.9, 0.9, 0.9, 0.9, 0.9])  # the second move explores: the first of the order, column 3
    rng = type("Rng", (), {"random": lambda self: next(dice)})()
    agent, episodes = record(CONNECT4, moves_of("0 0 0 1 0 1 0"), epsilon=0.1, rng=rng)
    boards = [board for board, _ in agent.rows]
    assert [board.ply for board in boards] == [0, 2, 3, 4, 5, 6]
    assert boards[1] == CONNECT4.play("14")
    assert (episodes.plies, episodes.updates) == (7, 6)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_epsilon_0_and_1_are_always_greedy_and_always_random(epsilon):
    script = [3] * 6 + [2] * 6 + [1] * 6 + [0] * 6
    agents = [record(CONNECT4, script, epsilon, rng=np.random.default_rng(seed))[0] for seed in range(20)]
    games = {tuple(board for kind, *rest in agent.calls for board in rest) for agent in agents}
    assert len(games) == (1 if epsilon == 0 else 20)


@pytest.mark.parametrize("game", [CONNECT4, TICTACTOE])
def test_all_outcomes_occur_and_no_target_leaves_the_scale(game):
    """1,000 random games: the terminal targets count the same winners as the learner."""
    agent = Recorder()
    episodes = TD(game, Constant(1.0)).train(agent, 0, 1000, 1.0, np.random.default_rng(5))
    targets = [target for _, target in agent.rows]
    assert [targets.count(reward) for reward in (1, -1)] == [episodes.first, episodes.second]
    assert targets.count(0) == 1000 - episodes.first - episodes.second > 0
    assert all(target * board.player() >= 0 for board, target in agent.rows), "only the player who moves last wins"


def test_lr_and_epsilon_follow_their_schedules():
    agent = Recorder()
    learner = TD(TICTACTOE, epsilon=Constant(1.0), lr=Exponential(1.0, 0.5, 10))
    learner.train(agent, 5, 3, 0.1, np.random.default_rng(0))
    assert agent.lrs == pytest.approx([0.1 * 0.5 ** (n / 10) for n in (5, 6, 7)])


# ---- schedules


@pytest.mark.parametrize(
    ("schedule", "games", "values"),
    [
        (Constant(0.1), [0, 5, 10**7], [0.1, 0.1, 0.1]),
        (Linear(0.5, 0.1, 100), [0, 25, 50, 100, 1000], [0.5, 0.4, 0.3, 0.1, 0.1]),
        (Exponential(0.004, 0.002, 2_000_000), [0, 10**6, 2 * 10**6], [0.004, 0.004 / 2**0.5, 0.002]),
        # Former TDL (Thill 2012): from 0.6 to 0.1 with the turn at 1,000,000 games; tanh(2) = 0.9640275801
        (Sigmoid(0.6, 0.1, 10**6), [0, 10**6, 2 * 10**6, 10**8], [0.591006895, 0.35, 0.108993105, 0.1]),
    ],
)
def test_schedules(schedule, games, values):
    numbers = schedule(np.array(games))
    assert numbers.dtype == np.float64
    np.testing.assert_allclose(numbers, values, rtol=1e-8)


@pytest.mark.parametrize(
    ("schedule", "numbers", "message"),
    [
        (Exponential, (0.1, 0.0, 10), "end is 0.0; it must be above 0"),
        (Exponential, (0.1, 0.05, 0), "games is 0; it must be above 0"),
        (Exponential, (float("nan"), 0.05, 10), "start is nan; it must be above 0"),
        (Linear, (0.5, 0.1, -5), "games is -5; it must be above 0"),
        (Sigmoid, (0.6, 0.1, 0), "turn is 0; it must be above 0"),
        (Sigmoid, (0.6, 0.1, 10, -2.0), "slope is -2.0; it must be above 0"),
    ],
)
def test_schedules_without_meaning_are_refused(schedule, numbers, message):
    with pytest.raises(ValueError, match=message):
        schedule(*numbers)


# ---- words that make no sense


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"gamma": 1.1}, "learner.gamma is 1.1; allowed are numbers from 0 to 1"),
        ({"gamma": -0.1}, "learner.gamma is -0.1"),
        ({"gamma": float("nan")}, "learner.gamma is nan"),
        ({"win_decay": 0.2}, "learner.win_decay is 0.2; allowed are numbers from 0 to 1 / 9"),
        ({"win_decay": -0.01}, "learner.win_decay is -0.01"),
        ({"lambda_": 0.5, "traces": "rr", "learn_exploratory": True}, "learner.traces=rr ends at exploratory moves"),
    ],
)
def test_bad_words(words, message):
    with pytest.raises(ValueError, match=message):
        TD(TICTACTOE, **words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"epsilon": Constant(2)}, "learner.epsilon is 2 at game 0; allowed are numbers from 0 to 1"),
        ({"epsilon": Constant(-0.1)}, "learner.epsilon is -0.1 at game 0"),
        ({"epsilon": Constant(float("nan"))}, "learner.epsilon is nan at game 0"),
        ({"lr": Constant(0)}, "learner.lr is 0 at game 0; it must be finite and above 0"),
        ({"lr": Constant(float("nan"))}, "learner.lr is nan at game 0"),
        ({"epsilon": Linear(0.5, -0.5, 10)}, "learner.epsilon is -0.1 at game 6"),
        ({"lr": Linear(1, 0, 8)}, "learner.lr is 0 at game 8"),
    ],
)
def test_bad_schedules(words, message):
    """Refused at once if wrong from the start, else before the games in question."""
    with pytest.raises(ValueError, match=message):
        TD(TICTACTOE, **words).train(Recorder(), 5, 20, 1.0, np.random.default_rng(0))


# ---- real agents


def make(game, engine=Fused, rule=TCLEXP, seed=0, output="tanh", lr=0.01, init=0.1):
    """An agent in float64."""
    lines = {"tuples": [[0, 1, 2], [0, 4, 8], list(range(9))], "states": 3}
    words = {"count": 10, "length": 4} if game is CONNECT4 else lines
    net = ValueNetwork(NTuples(game, **words), output, init=init, dtype="float64", seed=seed)
    return engine(net, rule(net.parameters(), lr=lr))


def weights(agent):
    if isinstance(agent, Fused):
        agent.store()
    return agent.network.embedding.weight.detach().clone()


def states(agent):
    return [tensor.clone() for state in agent.optimizer.state.values() for tensor in state.values()]


@pytest.mark.parametrize("output", ["tanh", "sigmoid", "identity"])
def test_torchs_sgd_makes_the_same_steps_as_tdl(output):
    agents = [make(TICTACTOE, Eager, rule, output=output) for rule in (TDL, torch.optim.SGD)]
    games = [TD(TICTACTOE).train(agent, 0, 10, 0.01, np.random.default_rng(3)) for agent in agents]
    assert games[0][:3] == games[1][:3]
    assert games[0].errors == pytest.approx(games[1].errors, rel=1e-12)
    torch.testing.assert_close(weights(agents[0]), weights(agents[1]), rtol=0, atol=1e-12)


def test_td_learns_tictactoe():
    """Fresh weights lose 4.3 % of their games as first player against random moves and win 78 %."""
    agent = make(TICTACTOE, lr=0.1, init=0)
    TD(TICTACTOE).train(agent, 0, 8000, 0.1, np.random.default_rng(0))
    player, rng = GreedyPlayer(agent), np.random.default_rng(1)
    scores = [play_matches(TICTACTOE, player, RandomPlayer(), 1000, first, rng) for first in (True, False)]
    assert scores[0].losses <= 5
    assert scores[0].wins >= 900
    assert scores[1].success >= 0.85


def test_random_play_wins_as_often_as_it_should():
    """Weights that do not move, 20,000 random games: a hidden bias of a seat would show."""
    n = 20_000
    episodes = TD(CONNECT4, Constant(1.0)).train(make(CONNECT4), 0, n, 1e-30, np.random.default_rng(4))
    draws = n - episodes.first - episodes.second
    for count, p in ((episodes.first, 0.556), (episodes.second, 0.441), (draws, 0.003)):
        assert abs(count - n * p) < 4 * (n * p * (1 - p)) ** 0.5
    assert episodes.updates == episodes.games == n


@pytest.mark.parametrize("engine", [Eager, Fused])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_not_finite_stop_after_the_game(engine, bad):
    agent = make(CONNECT4, engine)
    with torch.no_grad():
        agent.network.embedding.weight[:] = bad
        agent.network.embedding.weight[::2] = -bad  # inf - inf
    episodes = TD(CONNECT4).train(agent, 0, 50, 0.01, np.random.default_rng(0))
    assert episodes.games == 1
    assert not np.isfinite(episodes.errors)


def test_the_same_seed_gives_the_same_weights():
    runs = []
    for seed in (0, 0, 1):
        agent = make(CONNECT4)
        TD(CONNECT4).train(agent, 0, 100, 0.01, np.random.default_rng(seed))
        runs.append(weights(agent))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored between"])
@pytest.mark.parametrize("game", [CONNECT4, TICTACTOE])
def test_chunks_do_not_matter(game, stored):
    """100 games equal 50 + 50 to the last bit, also when weights and state pass through torch between."""
    learner = TD(game, Linear(0.5, 0.0, 100), Exponential(1.0, 0.1, 100))
    whole, parts, rngs = make(game), make(game), [np.random.default_rng(2) for _ in range(2)]
    once = learner.train(whole, 0, 100, 0.01, rngs[0])
    twice = learner.train(parts, 0, 50, 0.01, rngs[1])
    if stored:
        parts.store()
    twice = twice.plus(learner.train(parts, 50, 50, 0.01, rngs[1]))
    assert tuple(once)[:3] == tuple(twice)[:3]
    assert once.errors == pytest.approx(twice.errors, rel=1e-12)
    assert torch.equal(weights(whole), weights(parts))
    assert all(torch.equal(a, b) for a, b in zip(states(whole), states(parts), strict=True))
    assert rngs[0].bit_generator.state == rngs[1].bit_generator.state
    assert whole.optimizer.param_groups[0]["lr"] == parts.optimizer.param_groups[0]["lr"]
