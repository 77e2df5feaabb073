"""Many games at once: one game at a time is exactly the eager agent, and a batch is what its parts say."""

import copy

import numpy as np
import pytest
import torch

from rlgames.agents import Batched, Eager
from rlgames.episodes import Episodes
from rlgames.features.ntuples import NTuples
from rlgames.features.tensors import TensorNTuples
from rlgames.games.connect4 import Connect4
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.learners.td_batched import BatchedTD, first_best
from rlgames.networks.table import ValueNetwork
from rlgames.schedules import Constant
from tests.support import OPTIMIZERS, few

CPU = torch.device("cpu")
CONNECT4, TICTACTOE = Connect4(), TicTacToe()
GAMES = {game.name: game for game in (CONNECT4, TICTACTOE)}
TUPLES = {
    "connect4": [[0, 1, 6, 7], [12, 18, 24, 30], [3, 8, 13, 18], [20, 21, 26, 27], [36, 37, 31, 24], [5, 11, 17, 23]],
    "tictactoe": [[0, 1, 2], [3, 4, 5], [0, 4, 8], list(range(9))],
}
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")),
]


def can_be_batched(cls):
    return not any(getattr(cls, name, ()) for name in ("shared", "looks_ahead", "transient"))


RULES = {name: (cls, hyper) for name, (cls, hyper, _) in OPTIMIZERS.items() if can_be_batched(cls)}
UNITS = {name: getattr(cls, "units", ("tanh", "sigmoid")) for name, (cls, _) in RULES.items()}
CASES = [("connect4", name, unit) for name, units in UNITS.items() for unit in units]
CASES += [("tictactoe", name, units[0]) for name, units in UNITS.items()]  # symmetric boards
SOME = ("tdl", "tcl_exp", "idbd", "k1", "adam")  # of each kind one
RULES["dense_adam"] = torch.optim.Adam, {"lr": 0.001}


def parts(game, rule="tdl", unit="tanh", sparse=True, seed=0, init=0.1, **td):
    """Network, optimizer and learner in float64."""
    features = NTuples(game, tuples=TUPLES[game.name], states=4 if game is CONNECT4 else 3)
    network = ValueNetwork(features, unit, init=init, dtype="float64", sparse=sparse, seed=seed)
    cls, hyper = RULES[rule]
    return network, cls(network.parameters(), **hyper), TD(game, **td), hyper["lr"]


def lockstep(network, optimizer, learner, batch, combine="mean", device="cpu", **words):
    agent = Batched(network, optimizer, torch.device(device), combine)
    return agent, BatchedTD(learner, batch, torch.device(device), network.embedding.weight.dtype, **words)


def tensors(network, optimizer):
    """The weights, and what the optimizer remembers of them."""
    state = {name: value for name, value in optimizer.state[network.embedding.weight].items() if name != "trace"}
    return {"weight": network.embedding.weight.detach().clone(), **state}


def same(a, b, atol=1e-12):
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(
            torch.as_tensor(a[name]), torch.as_tensor(b[name]), rtol=1e-12, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


class Dice:
    """The numbers that lockstep takes two of per move, for a loop that takes the second only when it explores."""

    def __init__(self, numbers, epsilon):
        self.numbers, self.epsilon = iter(numbers), epsilon

    def random(self):
        chance, self.choice = next(self.numbers)
        if chance < self.epsilon:
            self.random = self.second
        return chance

    def second(self):
        del self.random
        return self.choice


def play_both(game, rule, unit="tanh", games=3, sparse=True, epsilon=0.2, device="cpu", **td):
    """The same games eagerly and in lockstep, one at a time."""
    numbers = np.random.default_rng(3).random((games * game.n_cells, 2))
    td |= {"epsilon": Constant(epsilon)}
    network, optimizer, learner, lr = parts(game, rule, unit, sparse, **td)
    alone = Eager(network, optimizer, learner.traces, learner.tactical)
    sums = learner.train(alone, 0, games, lr, Dice(numbers, epsilon))
    eager = tensors(network, optimizer)
    network, optimizer, learner, lr = parts(game, rule, unit, sparse, **td)
    agent, learner = lockstep(network, optimizer, learner, 1, device=device)
    stream = (torch.tensor(pair, device=device).unsqueeze(1) for pair in numbers)
    learner.uniforms = lambda: next(stream)
    seed = np.random.default_rng(0)
    batched_sums = Episodes()
    for first in range(games):
        batched_sums = batched_sums.plus(learner.train(agent, first, 1, lr, seed))
    agent.store()
    return (sums, eager), (batched_sums, tensors(network, optimizer))


# ---- one game at a time


@pytest.mark.parametrize(
    ("game", "rule", "unit"),
    few(CASES, ("connect4", "tcl_exp", "tanh"), *((g, r, u) for g, r, u in CASES if g == "tictactoe" and r in SOME)),
    ids=["-".join(case) for case in CASES],
)
def test_one_game_at_a_time_is_eager(game, rule, unit):
    """Weights, state and counters of whole games, every rule and unit."""
    (sums, eager), (batched_sums, batched) = play_both(GAMES[game], rule, unit)
    same(eager, batched)
    assert sums[:3] + sums[4:] == batched_sums[:3] + batched_sums[4:]
    assert sums.errors == pytest.approx(batched_sums.errors, rel=1e-10)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", [{"gamma": 0.9}, {"win_decay": 0.01}, {"epsilon": 0.0}, {"epsilon": 1.0}])
def test_one_game_at_a_time_with_other_learners(words, device):
    (sums, eager), (batched_sums, batched) = play_both(CONNECT4, "tcl_exp", device=device, **words)
    same(eager, batched)
    assert sums[:3] == batched_sums[:3]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("learn_exploratory", [False, True])
def test_one_tactical_game_at_a_time(game, learn_exploratory):
    words = {"tactical": True, "learn_exploratory": learn_exploratory, "epsilon": 0.4, "games": 8}
    (sums, eager), (batched_sums, batched) = play_both(GAMES[game], "tcl_exp", **words)
    same(eager, batched)
    assert sums[:3] + sums[4:] == batched_sums[:3] + batched_sums[4:]


def test_one_game_at_a_time_with_dense_gradients():
    (_, eager), (_, batched) = play_both(TICTACTOE, "dense_adam", sparse=False)
    same(eager, batched, atol=1e-9)


# ---- the batch


def test_boards_as_tensors_are_boards():
    """Moves, their order, wins, codes and ends of random games, board by board."""
    for game in (CONNECT4, TICTACTOE):
        rng, n = np.random.default_rng(1), 50
        boards, single = game.start_boards(n), [game.board] * n
        for _ in range(game.n_cells):
            moves, legal = boards.moves()
            wins, codes = boards.wins(moves) & legal, boards.code(torch.arange(game.n_parts).unsqueeze(1))
            assert boards.player().tolist() == [board.player() for board in single]
            chosen = []
            for g, board in enumerate(single):
                expected = board.moves()
                assert moves[legal[:, g], g].tolist() == expected.tolist()
                assert sorted(moves[:, g].tolist()) == list(range(game.n_moves))
                assert legal[:, g].tolist() == [True] * len(expected) + [False] * (game.n_moves - len(expected))
                after = [board.play(int(move)) for move in expected]
                assert wins[: len(after), g].tolist() == [a.winner() == board.player() for a in after]
                assert boards.last()[g] == (board.ply == game.n_cells - 1)
                assert codes[:, g].tolist() == [board.code(part) for part in range(game.n_parts)]
                chosen.append(int(rng.choice(expected)))
            played = boards.play(torch.tensor(chosen))
            single = [board.play(move) for board, move in zip(single, chosen, strict=True)]
            assert [tuple(map(int, fields)) for fields in zip(*played, strict=True)] == [tuple(b) for b in single]
            over = torch.tensor([board.over() for board in single])
            single = [game.board if board.over() else board for board in single]
            boards = type(played)(*(torch.where(over, s, p) for s, p in zip(game.start_boards(n), played, strict=True)))


@pytest.mark.parametrize("game", [CONNECT4, TICTACTOE])
@pytest.mark.parametrize("per_player", [True, False])
def test_sums_and_counts_are_those_of_single_boards(game, per_player):
    features = NTuples(game, tuples=TUPLES[game.name], states=4 if game is CONNECT4 else 3, table_per_player=per_player)
    network = ValueNetwork(features, "identity", init=1.0, dtype="float64")
    compact = network.embedding.weight.detach()[torch.from_numpy(features.rows), 0]
    tensor = TensorNTuples(features.compact, CPU)
    tensor.slice = 7  # does not divide the number of boards
    rng, boards, single = np.random.default_rng(2), game.start_boards(20), [game.board] * 20
    for _ in range(game.n_cells // 2):
        moves, legal = boards.moves()
        rows = tensor.rows(boards)
        sums = tensor.sums(compact, boards, rows, moves, legal)
        x, first = tensor.counts(rows, torch.float64)
        for g, board in enumerate(single):
            after = [board.play(int(move)) for move in board.moves()]
            torch.testing.assert_close(sums[: len(after), g], network.value(*after), rtol=0, atol=1e-13)
            row, column = features.indices(board), tensor.begin_of(boards.player())[g]
            np.testing.assert_array_equal(features.rows[rows[g].numpy() + int(column)], row)
            np.testing.assert_array_equal(x[g].numpy(), (row[:, None] == row).sum(1))
            assert sorted(row[first[g].numpy() == 1]) == sorted(set(row))
        chosen = []
        for board in single:  # none that ends the game
            open_moves = [int(move) for move in board.moves() if not board.play(int(move)).over()]
            chosen.append(int(rng.choice(open_moves)) if open_moves else None)
        if None in chosen:
            break
        single = [board.play(move) for board, move in zip(single, chosen, strict=True)]
        boards = boards.play(torch.tensor(chosen))


def test_the_first_of_the_best_is_taken_with_the_tolerance_of_single_games():
    values = torch.tensor(
        [[0.5, 0.1, -torch.inf], [0.5 + 9e-6, 0.3, 1.0], [0.5 + 11e-6, torch.inf, 1.0], [0.4, torch.inf, 1.1]]
    )
    assert first_best(values).tolist() == [2, 2, 3]


def boards_after(game, *lines):
    """Boards after each of the lines of play, as tensors."""
    return type(game.start_boards(1))(*map(torch.tensor, zip(*(game.play(line) for line in lines), strict=True)))


@pytest.mark.parametrize(
    ("rule", "combine"),
    few(
        [(rule, how) for rule in RULES if "adam" not in rule for how in ("mean", "sum")],
        *((rule, "mean") for rule in SOME if rule != "adam"),
        ("tcl_exp", "sum"),
    ),
)
def test_a_batch_combines_what_each_board_alone_would_do(rule, combine):
    """Change by change against boards that learn alone from the same weights; one of them does not learn."""
    lines, deltas = ("1", "5", "", "15", "19", "1"), [0.3, -0.2, 0.5, 0.4, 0.1, 0.7]
    learns = torch.tensor([True, True, True, True, False, True])

    warm = parts(TICTACTOE, rule)[:2]  # so that states are not those of the beginning
    agent = Batched(*warm, CPU, combine)
    assert agent.look(boards_after(TICTACTOE, *lines)).v.shape == (6,)
    for k in range(len(lines)):
        one = agent.look(boards_after(TICTACTOE, lines[k]))
        agent.learn(one, torch.tensor([deltas[-k]], dtype=torch.float64), torch.tensor([True]))
    agent.store()
    before = {name: value.clone() for name, value in tensors(*warm).items()}

    def run(chosen):
        network, optimizer = copy.deepcopy(warm)
        agent = Batched(network, optimizer, CPU, combine)
        look = agent.look(boards_after(TICTACTOE, *(lines[k] for k in chosen)))
        delta = torch.tensor([deltas[k] for k in chosen], dtype=torch.float64) * learns[chosen]
        agent.learn(look, delta, learns[chosen])
        agent.store()
        change = {name: value - before[name] for name, value in tensors(network, optimizer).items()}
        touched = torch.zeros(network.features.size, dtype=torch.bool)
        for k in chosen:
            if learns[k]:
                touched[network.features.indices(TICTACTOE.play(lines[k]))] = True
        return change, touched

    together, _ = run(list(range(6)))
    alone = [run([k]) for k in range(6)]
    hits = sum(touched.double() for _, touched in alone).unsqueeze(1)
    for name, change in together.items():
        expected = sum(one[name] for one, _ in alone)
        if combine == "mean":
            expected = expected / hits.clamp_min(1)
        torch.testing.assert_close(change, expected, rtol=0, atol=1e-14)
    assert hits.max() > 1


@pytest.mark.thorough
def test_games_of_a_batch_are_games():
    """Random games in lockstep end as random games do, and their numbers fit together."""
    network, optimizer, learner, _ = parts(TICTACTOE, epsilon=Constant(1.0))
    agent, learner = lockstep(network, optimizer, learner, 400)
    n = 3000
    episodes = learner.train(agent, 0, n, 1e-30, np.random.default_rng(4))
    assert n <= episodes.games < n + 400
    draws = episodes.games - episodes.first - episodes.second
    for count, p in ((episodes.first, 0.585), (episodes.second, 0.288), (draws, 0.127)):  # known of random tic-tac-toe
        assert abs(count - n * p) < 4 * (n * p * (1 - p)) ** 0.5 + 400
    assert episodes.updates == pytest.approx(episodes.games), "only ends of games are learned"


# ---- lambda


@pytest.mark.parametrize(
    ("traces", "horizon"), few([(t, h) for t in ("et", "res") for h in (2, 5, 42)], ("et", 5), ("res", 5))
)
def test_truncated_lambda_returns(traces, horizon):
    """Against the sums of TD errors written out: what each position is told, and when."""
    lam, gamma, epsilon = 0.7, 0.9, 0.3
    words = {"lambda_": lam, "gamma": gamma, "traces": traces, "epsilon": Constant(epsilon)}
    network, optimizer, learner, _ = parts(CONNECT4, **words)
    agent, learner = lockstep(network, optimizer, learner, 3, horizon=horizon)
    agent.set_lr(1e-30)  # weights stand still, TD errors can be computed afterwards
    told, log = [], []
    learn, step = agent.learn, learner._learn_later

    def later(agent, delta, learns, over):
        log.append((learner._boards, delta, learns, over))
        step(agent, delta, learns, over)

    agent.learn = lambda look, errors, learns: (
        told.append((look, errors.clone(), learns.clone())),
        learn(look, errors, learns),
    )
    learner._learn_later = later
    learner._generator = torch.Generator().manual_seed(1)
    for _ in range(100):
        learner.step(agent, epsilon)
    assert any((~learns & ~over).any() for _, _, learns, over in log)
    for t in range(100 - horizon):
        look, errors, learns = told[t + horizon - 1]
        assert torch.equal(look.rows, agent.look(log[t][0]).rows)
        for g in range(3):
            explored = not log[t][2][g]
            if traces == "res" and explored:
                assert not learns[g]
                continue
            expected = 0.0
            for k in range(horizon):
                _, delta, known, over = log[t + k]
                if traces == "res" and not known[g]:
                    break
                expected += (lam * gamma) ** k * float(delta[g])
                if over[g]:
                    break
            assert learns[g]
            assert float(errors[g]) == pytest.approx(expected, abs=1e-12)


def test_lambda_0_has_no_horizon():
    network, optimizer, learner, _ = parts(TICTACTOE)
    weights = []
    for horizon in (1, 8):
        agent, many = lockstep(*parts(TICTACTOE)[:2], learner, 5, horizon=horizon)
        many.train(agent, 0, 50, 0.01, np.random.default_rng(0))
        agent.store()
        weights.append(agent.network.embedding.weight.detach())
    assert torch.equal(*weights)
    del network, optimizer


# ---- state


@pytest.mark.parametrize("lambda_", [0.0, 0.8])
def test_what_is_stored_goes_on_to_the_last_bit(lambda_):
    """100 games equal 50, all written out, read into a new agent and learner, and 50 more."""

    def fresh():
        network, optimizer, learner, lr = parts(CONNECT4, "tcl_exp", lambda_=lambda_)
        return network, optimizer, learner, lr

    runs = []
    for pause in (False, True):
        network, optimizer, learner, lr = fresh()
        agent, many = lockstep(network, optimizer, learner, 8)
        rng = np.random.default_rng(5)
        first = many.train(agent, 0, 50, lr, rng)
        if pause:
            agent.store()
            saved = network.state_dict(), optimizer.state_dict(), many.state_dict()
            network, optimizer, learner, lr = fresh()
            network.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
            agent, many = lockstep(network, optimizer, learner, 8)
            many.load_state_dict(saved[2])
        second = many.train(agent, first.games, 50, lr, rng)
        agent.store()
        runs.append((first, second, tensors(network, optimizer)))
    assert runs[0][:2] == runs[1][:2]
    assert all(torch.equal(runs[0][2][name], runs[1][2][name]) for name in runs[0][2])


def test_the_games_under_way_stay_behind_when_the_batch_changes():
    network, optimizer, learner, lr = parts(TICTACTOE)
    agent, four = lockstep(network, optimizer, learner, 4)
    four.train(agent, 0, 2, lr, np.random.default_rng(0))
    _, eight = lockstep(network, optimizer, learner, 8)
    eight.load_state_dict(four.state_dict())
    assert eight.train(agent, 2, 20, lr, np.random.default_rng(0)).games >= 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
@pytest.mark.parametrize("rule", ["tdl", "tcl_exp", "k1"])
def test_a_step_does_not_wait_for_the_gpu(rule):
    network, optimizer, learner, lr = parts(CONNECT4, rule, RULES[rule][0].units[0])
    agent, learner = lockstep(network, optimizer, learner, 64, device="cuda")
    learner.train(agent, 0, 64, lr, np.random.default_rng(0))
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(50):
            learner.step(agent, 0.1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
