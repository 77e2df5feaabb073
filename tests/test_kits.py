"""The kits of ``rlgames.testing``: all parts of conf/ keep their contracts, and planted faults are found by name."""

import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import rlgames.testing
from rlgames import Features, Learner, value
from rlgames.build import CONF, load
from rlgames.check import check
from rlgames.features.ntuples import CompactNTuples, NTuples
from rlgames.features.planes import Planes
from rlgames.games import tictactoe
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.q import Q
from rlgames.learners.td import TD
from rlgames.networks.mlp import MLP
from rlgames.networks.table import ValueNetwork
from rlgames.optim import IDBD, TCLEXP, TDL
from rlgames.schedules import Linear
from rlgames.testing import (
    ContractError,
    check_features,
    check_game,
    check_learner,
    check_network,
    check_rule,
)
from tests.misere import Misere
from tests.small_games import GAMES
from tests.support import PROJECT, RULES

TTT = TicTacToe()
SMALL = NTuples(TTT, [[0, 1, 2], [0, 4, 8]], states=3)
PLANES = Planes(TTT)
thorough = pytest.mark.thorough


def names(group):
    return sorted(file.stem for file in (CONF / group).glob("*.yaml"))


@pytest.fixture
def eagerly(monkeypatch):
    """Without what has to be compiled, for faults that show in Python."""
    for kit in ("game", "features", "network", "rule", "learner"):
        monkeypatch.setattr(f"rlgames.testing.{kit}.HAS_COMPILER", False)


# ---- what is ours keeps the contracts


@pytest.mark.parametrize("game", [Misere(), *GAMES], ids=lambda game: type(game).__name__)
def test_small_games(game, eagerly):
    check_game(game)


@pytest.mark.parametrize("name", RULES)
def test_rules(name, eagerly):
    check_rule(RULES[name].cls, **RULES[name].hyper)


def test_features_networks_and_learners(eagerly):
    for features in (SMALL, PLANES):
        check_features(features, TTT)
    check_network(ValueNetwork(SMALL), SMALL, TTT)
    check_network(MLP(PLANES), PLANES, TTT)
    for learner in (TD(TTT), TD(TTT, lambda_=0.5), Q(TTT)):
        check_learner(learner, TTT)
    check_learner(TD(TTT), TTT, PLANES, MLP(PLANES), torch.optim.SGD)


FAMILIES = {"idbd", "rprop_plus", "swift_td"}  # test_fused compares the games of every rule; each takes twelve seconds


@pytest.mark.parametrize(
    "rule",
    [pytest.param(r, marks=thorough if r in FAMILIES else pytest.mark.slow) for r in sorted(set(RULES) - {"tcl_exp"})],
)
def test_rules_compiled(rule):
    check_rule(RULES[rule].cls, **RULES[rule].hyper)


WORDS = [
    ["game=connect4", "features.count=5", "features.length=4"],
    ["game=tictactoe", "network=sigmoid"],
    ["game=tictactoe", "network=identity"],
    ["game=tictactoe", "network=mlp", "features=planes", "optimizer=sgd"],
    ["game=tictactoe", "learner=q"],
    ["game=tictactoe", "optimizer=sgd"],
]


@thorough
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_what_conf_composes(words):
    sentences = list(check(load(*words, config="check"), words))
    assert not [sentence for _, sentence, broken in sentences if broken]
    assert len(sentences) == 2 + 3 * ("learner=q" not in words)


# ---- games


class Same(tictactoe.Board):
    """A base for boards with a fault; each is a value of its own."""

    def play(self, move):
        if self.ply & 1:
            return type(self)(self.first, self.second | 1 << move, self.ply + 1)
        return type(self)(self.first | 1 << move, self.second, self.ply + 1)


class OwnOffered(Same):
    """Free cells and one's own."""

    def list_moves(self, moves):
        theirs = self.first if self.ply & 1 else self.second
        offered = [] if self.over() else [k for k in range(9) if not theirs >> k & 1]
        moves[: len(offered)] = offered
        return len(offered)


class AllOffered(Same):
    def list_moves(self, moves):
        moves[:9] = range(9)
        return 0 if self.over() else 9


class WrongPlayer(Same):
    def player(self):
        return 1


class NotOver(Same):
    def over(self):
        return self.ply == 9


class TwoParts(Same):
    def code(self, part):
        return tictactoe.Board.code(self, part) if part else self.ply % 3


class LineOfRowsOnly(Same):
    def winner(self):
        rows = [0b111, 0b111000, 0b111000000]
        return next((p for p, m in ((1, self.first), (-1, self.second)) if any(m & r == r for r in rows)), 0)


class TooEarly(tictactoe.Boards):
    def last(self):
        return self.ply == 7


def game_with(board=None, **attributes):
    board = {} if board is None else {"board": board()}
    return type("Mine", (TicTacToe,), {"name": "mine", "boards": None, **board, **attributes})()


GAME_FAULTS = {
    "an illegal move is offered": (
        game_with(OwnOffered),
        r"mine, after \d+: the move \d is offered, but changes nothing",
    ),
    "a taken cell is offered": (game_with(AllOffered), r"mine, after \d+: the move \d (leads to code 3|is offered)"),
    "a player twice": (game_with(WrongPlayer), r"mine, after \d: player\(\) is 1 before and after the move"),
    "won, but not over": (game_with(NotOver), r"mine, after \d+: winner\(\) is -?1, but over\(\) is False"),
    "two parts change": (game_with(TwoParts), r"the move \d changes part 0"),
    "wrong mirror": (game_with(LineOfRowsOnly), r"mine, after \d+: symmetries\[\d\]"),
    "no identity": (game_with(symmetries=TTT.symmetries[1:]), "mine: symmetries must begin with the identity"),
    "no permutation": (game_with(symmetries=(TTT.symmetries[0], (0,) * 9)), r"symmetries\[1\] is no permutation"),
    "grid": (game_with(grid=np.zeros((3, 3), int)), "mine: grid must hold each cell from 0 to 8 once"),
    "labels": (game_with(labels="12345"), "mine: labels is '12345'; it must be 9 different characters"),
    "previous": (game_with(previous=np.array([0, 0])), "mine: previous must hold a code from 0 to 2"),
    "previous says too much": (game_with(previous=np.array([0, 1, 0])), "but previous says 1"),
    "states": (game_with(states=lambda self, n: np.zeros((9, 3), np.int8)), r"states\(3\) has shape \(9, 3\)"),
    "play takes all": (game_with(play=lambda self, moves, board=None: self.board), r"play\(\)"),
    "text": (game_with(text=lambda self, board: None), r"text\(\) gives NoneType"),
    "boards": (game_with(boards=TooEarly), "boards: wins and last"),
    "a bug": (game_with(cells=lambda self, board: 1 / 0), "mine: ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("fault", GAME_FAULTS)
def test_faults_of_games(fault, eagerly):
    game, sentence = GAME_FAULTS[fault]
    with pytest.raises(ContractError, match=sentence) as error:
        check_game(game)
    assert "\n" not in str(error.value)


@value
class Wide(NamedTuple):
    """Integers of Python have no end; compiled ones have 64 bits."""

    first: int = 0
    second: int = 0
    ply: int = 0

    def over(self):
        return self.ply == 9 or self.winner() != 0 or (self.ply + 1) * 2**62 == 0

    def play(self, move):
        if self.ply & 1:
            return Wide(self.first, self.second | 1 << move, self.ply + 1)
        return Wide(self.first | 1 << move, self.second, self.ply + 1)

    player, winner, code = tictactoe.Board.player, tictactoe.Board.winner, tictactoe.Board.code
    moves, list_moves = tictactoe.Board.moves, tictactoe.Board.list_moves


def test_a_board_that_differs_when_compiled():
    with pytest.raises(ContractError, match=r"mine, after \d{3}: compiled, over\(\) gives 1, in Python 0"):
        check_game(game_with(Wide))


# ---- features


class Altered(NTuples):
    """N-tuples whose rows are changed by ``change``."""

    def __init__(self, change):
        super().__init__(TTT, [[0, 1, 2], [0, 4, 8]], states=3)
        self.change, self.calls = change, 0

    def encode(self, boards):
        self.calls += 1
        return self.change(self, super().encode(boards))


class Stepping(CompactNTuples):
    def step(self, board, move):
        return super().step(board, move) * 2


class Beginning(CompactNTuples):
    def begin_of(self, player):
        return 0


def compact(cls, **changed):
    features = NTuples(TTT, [[0, 1, 2], [0, 4, 8]], states=3)
    features.compact = cls(*features.compact._replace(**changed))
    return features


class Few(NTuples):
    capacity = 1

    def __setattr__(self, name, number):
        super().__setattr__(name, 1 if name == "capacity" else number)


class Lacking(Features):
    n_moves = 3

    def encode(self, boards):
        return torch.zeros(len(boards), 2)


FEATURE_FAULTS = {
    "shape": (Altered(lambda s, x: x[:, :3]), r"encode gives torch.int64 \[40, 3\], not"),
    "dtype": (Altered(lambda s, x: x.int()), "encode gives torch.int32"),
    "range": (Altered(lambda s, x: x + s.size), "rows are from 0 to size - 1 = 107"),
    "one board too few": (Altered(lambda s, x: x[1:]), "the first axis counts the boards"),
    "not the same again": (Altered(lambda s, x: (x + s.calls) % s.size), "other numbers for the same boards again"),
    "batch": (Altered(lambda s, x: (x + len(x)) % s.size), "other numbers for a board alone than among others"),
    "other rows": (Altered(lambda s, x: x.flip(1)), "the compact rows stand for"),
    "step": (compact(Stepping), r"step\(\d\) leads to rows"),
    "begin": (compact(Beginning), "the compact rows stand for"),
    "capacity": (Few(TTT, [[0, 1, 2]], states=3), "capacity is 1, but a game touches"),
    "images": (compact(CompactNTuples, images=2), "images is 2; tictactoe has 8 symmetries, and 1 is for none"),
    "moves": (Lacking(), "n_moves is 3, but a board of tictactoe can have 9"),
}


@pytest.mark.parametrize("fault", FEATURE_FAULTS)
def test_faults_of_features(fault, eagerly):
    features, sentence = FEATURE_FAULTS[fault]
    with pytest.raises(ContractError, match=sentence):
        check_features(features, TTT)


def test_a_wrong_mirror_of_features(eagerly):
    """The rows are right, but not those of images."""
    features = NTuples(
        game_with(symmetries=(TTT.symmetries[0],) * 7 + ((8, 1, 2, 3, 4, 5, 6, 7, 0),)), [[0, 1]], states=3
    )
    with pytest.raises(ContractError, match=r"the image by symmetries\[\d\] has other rows"):
        check_features(features, TTT)


def test_features_that_are_not_kept(eagerly):
    with pytest.raises(ContractError, match=r"built from kept\(\) they encode differently"):
        check_features(SMALL, TTT, lambda **kept: NTuples(TTT, [[0, 1, 5], [0, 4, 8]], states=3))


# ---- networks


class Net(nn.Module):
    """A network on planes, to which ``change`` is done."""

    def __init__(self, change=lambda self, v: torch.tanh(v), *layers):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(27, 8), *layers, nn.Linear(8, 1))
        self.change = change

    def forward(self, x):
        return self.change(self, self.layers(x)[:, 0])


def with_plain_tensor():
    net = Net()
    net.scale = torch.ones(3)
    return net


def forgetful():
    net = Net()
    net._register_load_state_dict_pre_hook(lambda state, *_: state.update({k: 0 * v for k, v in state.items()}))
    return net


def idle():
    net = Net()
    net.spare = nn.Linear(2, 2)
    return net


NETWORK_FAULTS = {
    "shape": (Net(lambda s, v: v[:, None]), r"Net gives \[40, 1\] for 40 boards, not \[40\]"),
    "scale": (Net(lambda s, v: 100 * v), "with output identity they are from -1"),
    "not finite": (Net(lambda s, v: v / 0), "values that are not finite"),
    "dropout": (Net(lambda s, v: torch.tanh(v), nn.Dropout(0.5)), "other values for the same boards again"),
    "batch norm": (Net(lambda s, v: torch.tanh(v), nn.BatchNorm1d(8)), "Expected more than 1 value per channel"),
    "batch": (Net(lambda s, v: torch.tanh(v - v.mean())), "a board another value alone than among others"),
    "no gradient": (Net(lambda s, v: torch.tanh(v).detach()), "values without a gradient"),
    "gradient 0": (Net(lambda s, v: torch.tanh(0 * v)), "all gradients are 0"),
    "no gradient for one": (idle(), "no gradient reaches spare.weight"),
    "plain tensor": (with_plain_tensor(), "Net: scale is a plain tensor, which is neither learned nor saved"),
    "state not saved": (forgetful(), r"state_dict\(\) does not hold all that the values depend on"),
}


def test_a_network_of_ones_own(eagerly):
    check_network(Net(), PLANES, TTT)


@pytest.mark.parametrize("fault", NETWORK_FAULTS)
def test_faults_of_networks(fault, eagerly):
    network, sentence = NETWORK_FAULTS[fault]
    with pytest.raises(ContractError, match=sentence):
        check_network(network, PLANES, TTT)


# ---- rules


class Away(TDL):
    """Wrong sign."""

    @staticmethod
    def update(p, w, s, t):
        return w - p.lr * t.delta * t.e, s


class Drifting(TDL):
    @staticmethod
    def update(p, w, s, t):
        return w + p.lr * (t.delta * t.e + 0.001), s


class Decaying(TDL):
    """Dense gradients shrink weights that take no part."""

    @staticmethod
    def update(p, w, s, t):
        return w + (p.lr * t.delta * t.e - p.lr * w * t.delta * t.delta), s


class Unchecked(TDL):
    def __init__(self, params, lr=0.01, extra=1.0):
        super().__init__(params, lr)
        for group in self.param_groups:
            group["extra"] = extra
        self.defaults["extra"] = extra


class Counting(TDL):
    """State outside the state_dict."""

    count = 0

    def step(self, *args, **kwargs):
        self.count += 1
        group = self.param_groups[0]
        lr, group["lr"] = group["lr"], group["lr"] / self.count
        super().step(*args, **kwargs)
        group["lr"] = lr


class Ordered(TDL):
    """The first row learns twice as much."""

    def step(self, *args, **kwargs):
        (param,) = self.param_groups[0]["params"]
        if param.grad.is_sparse:
            values = param.grad._values().clone()
            values[0] *= 2
            param.grad = torch.sparse_coo_tensor(param.grad._indices(), values, param.shape, check_invariants=False)
        super().step(*args, **kwargs)


class Swallowing(TDL):
    def step(self, delta, *args, **kwargs):
        super().step(delta if delta == delta else 0.0, *args, **kwargs)


RULE_FAULTS = {
    Away: r"Away: 6 steps towards a target move the value away from it",
    Drifting: "Drifting: weights move though delta is 0",
    Decaying: "a weight moves that was never active",
    Unchecked: r"Unchecked accepts extra=nan; its constructor must check extra",
    Counting: "some state is not saved",
    Ordered: "depends on the order of rows",
    Swallowing: "Swallowing takes a step though delta is NaN",
}


@pytest.mark.parametrize("rule", RULE_FAULTS)
def test_faults_of_rules(rule, eagerly):
    with pytest.raises(ContractError, match=RULE_FAULTS[rule]):
        check_rule(rule)


def test_it_is_a_rule_at_all():
    with pytest.raises(ContractError, match=r"SGD is no subclass of rlgames\.StepSize"):
        check_rule(torch.optim.SGD)


class Tripled(TCLEXP):
    """Learns three times as much in torch, where the formula is not what compiled code is given."""

    def step(self, delta=None, *args, **kwargs):
        return super().step(3 * delta, *args, **kwargs)


Tripled.Params, Tripled.Params32 = TCLEXP.Params, TCLEXP.Params32  # of which there may be compiled code


def test_a_rule_that_differs_when_compiled():
    with pytest.raises(ContractError, match=r"Tripled: compiled, 6 games lead to weights .* away from those in torch"):
        check_rule(Tripled, lr=0.05)


# ---- learners


class Wrong(TD):
    """A learner whose ``train`` is changed by ``change``."""

    def train(self, agent, first_game, games, lr, rng):
        return self.change(agent, first_game, games, lr, rng, super().train)


def learner(change, **words):
    made = Wrong(TTT, **words)
    made.change = change
    return made


def plus(**more):
    def change(agent, first, games, lr, rng, train):
        episodes = train(agent, first, games, lr, rng)
        return episodes._replace(**{name: getattr(episodes, name) + number for name, number in more.items()})

    return change


def wrong_sign(agent, first, games, lr, rng, train):
    right = agent.learn
    agent.learn = lambda board, target, *rest: right(board, -target, *rest)
    return train(agent, first, games, lr, rng)


class Tired(TD):
    """Its state is not saved."""

    tired = 0

    def train(self, agent, first_game, games, lr, rng):
        self.tired += 1
        return super().train(agent, first_game, games, lr * (2 - self.tired), rng) if self.tired < 2 else self.rest(rng)

    def rest(self, rng):
        raise RuntimeError("too tired")


class Remembering(TD):
    """Learns less and less, by a count that is not saved."""

    played = 0

    def train(self, agent, first_game, games, lr, rng):
        episodes = [super(Remembering, self).train(agent, first_game, 1, self.less(lr), rng) for _ in range(games)]
        total = episodes[0]
        for other in episodes[1:]:
            total = total.plus(other)
        return total

    def less(self, lr):
        self.played += 1
        return lr / self.played


class ShortCurves(TD):
    def curves(self, games, lr=1.0):
        return {key: curve[:1] if len(games) == 5 else curve for key, curve in super().curves(games, lr).items()}


class Unruly(TD):
    def curves(self, games, lr=1.0):
        return {"epsilon": np.zeros(len(games)), "lr": self.lr(games)}


def own_seed(agent, first, games, lr, rng, train):
    return train(agent, first, games, lr, np.random.default_rng())


LEARNER_FAULTS = {
    "games": (learner(plus(games=1)), "was to play 6 games and counts 7"),
    "plies": (learner(plus(plies=-90)), "plies in 6 games"),
    "wins": (learner(plus(first=7)), "wins in 6 games"),
    "not finite": (learner(plus(errors=np.inf)), "inf as the sum"),
    "no Episodes": (learner(lambda *args: None), "train gives NoneType, not Episodes"),
    "nothing learned": (learner(lambda a, f, n, lr, rng, train: train(a, f, n, 1e-300, rng)), "6 games teach nothing"),
    "own randomness": (learner(own_seed), "all randomness must come from rng"),
    "wrong sign": (learner(wrong_sign), "player has won, which moves the value of the position before by"),
    "state not saved": (Remembering(TTT), r"3 games, a checkpoint and 3 more teach something else than 6 games"),
    "a curve": (ShortCurves(TTT), "it must be an array of 5 numbers"),
    "schedules": (Unruly(TTT), "refuse a schedule that leaves its range"),
    "no learner": (object(), "object: ValueError: .* not a learner"),
}


@pytest.mark.parametrize("fault", LEARNER_FAULTS)
def test_faults_of_learners(fault, eagerly):
    made, sentence = LEARNER_FAULTS[fault]
    with pytest.raises(ContractError, match=sentence):
        check_learner(made, TTT)


class OldStyle:
    """Has a ``train`` and no base class."""

    def __init__(self, game):
        self.game = game

    def train(self, agent, first_game, games, lr, rng):
        return TD(self.game).train(agent, first_game, games, lr, rng)


def test_a_learner_without_the_base_class_is_adopted(eagerly):
    check_learner(OldStyle(TTT), TTT)
    assert not isinstance(OldStyle(TTT), Learner)


class InPythonOnly(TD):
    """Learns twice from every game if the agent is eager."""

    def train(self, agent, first_game, games, lr, rng):
        if type(agent).__name__ == "Eager":
            lr = 2 * lr
        return super().train(agent, first_game, games, lr, rng)


def test_a_learner_that_differs_when_compiled():
    with pytest.raises(
        ContractError, match=r"InPythonOnly: compiled, 3 games lead to weights .* away from those in Python"
    ):
        check_learner(InPythonOnly(TTT, lr=Linear(1, 1, 5)), TTT, optimizer=lambda p: TCLEXP(p, lr=0.05))


def test_what_is_checked_stays_as_it_is(eagerly):
    network, td = ValueNetwork(SMALL), TD(TTT)
    before = network.embedding.weight.detach().clone()
    check_network(network, SMALL, TTT)
    check_learner(td, TTT, SMALL, network, lambda params: IDBD(params))
    assert torch.equal(network.embedding.weight, before)
    assert network.embedding.weight.grad is None


# ---- the program


def program(folder, name, *words):
    command = [sys.executable, "-m", f"rlgames.{name}", *words]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, env=environment)


@pytest.fixture
def mine(tmp_path):
    """A folder with a game of one's own."""
    shutil.copy(PROJECT / "tests" / "misere.py", tmp_path)
    return tmp_path


MISERE = ("game=tictactoe", "game._target_=misere.Misere")


def test_a_broken_game_is_named_and_ends_the_check(mine):
    text = (
        (mine / "misere.py")
        .read_text()
        .replace("previous, grid = 3, np.array([0, 0, 0])", "previous, grid = 3, np.array([0, 1, 0])")
    )
    (mine / "misere.py").write_text(text)
    done = program(mine, "check", *MISERE, "learner=q")
    assert (done.returncode, done.stderr) == (1, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("game: misere, after ")
    assert line.endswith("but previous says 1")


def test_what_stands_on_a_broken_part_is_left_out(monkeypatch):
    monkeypatch.setattr(rlgames.testing, "check_game", lambda *_: None)
    monkeypatch.setattr(rlgames.testing, "check_rule", lambda *_, **__: None)
    monkeypatch.setattr(NTuples, "encode", lambda self, boards: None)
    lines = list(check(load("game=tictactoe", config="check")))
    assert [broken for *_, broken in lines] == [False, True, False, False, False]
    assert lines[1][:2] == (
        "features",
        "NTuples: encode gives NoneType for 40 boards; the first axis counts the boards",
    )
    assert [sentence for _, sentence, _ in lines[2:5:2]] == ["not checked, because features is broken"] * 2


@thorough
def test_misere_is_checked_and_trained(mine):
    done = program(mine, "check", *MISERE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "game: misere keeps the contract"
    assert len(done.stdout.splitlines()) == 5


def test_misere_trains_from_a_folder_of_its_own(mine):
    quick = [
        "games=20",
        "eval_every=20",
        "opponent=random",
        "engine=eager",
        "run_dir=run",
        "evaluation.first=2",
        "evaluation.second=0",
    ]
    done = program(mine, "train", *MISERE, *quick)
    assert done.returncode == 0, done.stderr
    assert "after 20 of 20 games" in done.stdout
    assert len((mine / "misere.py").read_text().splitlines()) <= 60
