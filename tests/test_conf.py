import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from rlgames.build import CONF, build, check, load, settle
from rlgames.train import train
from rlgames.training.assemble import assemble
from tests.support import RULES, few

FILES = {
    group.name: sorted(file.stem for file in group.glob("*.yaml")) for group in sorted(CONF.iterdir()) if group.is_dir()
}
SMALL = ["games=2", "eval_every=2", "opponent=random", "evaluation.first=1", "evaluation.second=0"]
GIVEN = {"game", "features", "opponent", "params"}  # arguments that are built from other groups
ALL_LINES = {  # evaluated by all lines of play instead of matches
    ("learner", "q"),
    ("evaluation", "exhaustive"),
    ("experiment", "tictactoe_q"),
    ("experiment", "tictactoe_q_fast"),
}
TICTACTOE = ["game=tictactoe", "engine=eager"]
CHESS = {
    ("game", "chess"),
    ("features", "chess"),
    ("network", "linear"),
    ("learner", "td_leaf"),
    ("evaluation", "match"),
    ("opponent", "untrained"),
    ("opponent", "uci"),
    ("experiment", "chess_td_leaf"),
}
STOCKFISH = "/usr/games/stockfish"
SHORT_CHESS = [
    "+experiment=chess_td_leaf",
    "games=2",
    "eval_every=2",
    "learner.update_every=2",
    "learner.self_play.nodes=60",
    "learner.self_play.adjudication.max_plies=20",
    "opponent.nodes=60",
    "evaluation.nodes=60",
    "evaluation.games=2",
    "evaluation.adjudication.max_plies=20",
]


def words_for(group, name):
    """A tiny run in which conf/``group``/``name``.yaml takes part."""
    words = [f"{'+' if group == 'experiment' else ''}{group}={name}", *SMALL]
    if (group, name) in CHESS:
        engine = ["opponent=uci", f"opponent.command={STOCKFISH}"] if name == "uci" else []
        return [*SHORT_CHESS, *engine]
    if (group, name) in ALL_LINES:
        return [*words[:1], "game=tictactoe", "games=2", "eval_every=2", "engine=eager"]
    if group == "game" or (group, name) == ("features", "ntuples"):
        return [*words, "engine=eager", *(["features.length=3"] if name != "tictactoe" else [])]
    if name in ("planes", "mlp"):
        return [*TICTACTOE, *SMALL, "features=planes", "network=mlp", "engine=eager"]
    if group == "experiment":
        return [*words, "engine=eager", "features.length=3", "lookahead=2"]
    if group == "opponent":
        words.remove("opponent=random")
    if group == "evaluation":
        words = [word for word in words if not word.startswith("evaluation.")]
    return [*TICTACTOE, *words]


ALL = [(group, name) for group, names in FILES.items() for name in names]


_trained = set()


def new_kind(cfg):
    """Whether no experiment of the same classes was trained before: one training for each is enough."""
    kind = tuple(str(cfg[part]._target_) for part in ("game", "learner", "optimizer", "evaluation") if cfg[part])
    new = kind not in _trained
    _trained.add(kind)
    return new


RUN = [
    ("game", "connect4"),
    ("optimizer", "adam"),
    ("learner", "q"),
    ("opponent", "minimax"),
    ("evaluation", "published"),
]


@pytest.mark.parametrize(("group", "name"), few(ALL, *RUN), ids=["-".join(pair) for pair in ALL])
def test_every_file_builds_and_runs(group, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLGAMES_CACHE", str(tmp_path / "solved"))
    if name == "uci" and not Path(STOCKFISH).exists():
        pytest.skip(f"there is no {STOCKFISH}")
    cfg = load(*words_for(group, name))
    if group == "experiment" and not new_kind(cfg):
        assemble(cfg)
    elif group == "evaluation":  # many matches
        build(cfg, group, game=build(cfg, "game"), opponent=build(cfg, "opponent", game=build(cfg, "game")))
    else:
        assert train(cfg)["games"] == 2


SOME = ("chess_td_leaf", "connect4_table", "tictactoe_q")  # experiments


@pytest.mark.parametrize(
    ("group", "name"),
    few(ALL, *((g, name) for g, name in ALL if g != "experiment" or name in SOME)),
    ids=["-".join(pair) for pair in ALL],
)
def test_every_file_composes_and_its_keys_are_the_parameters_of_the_constructor(group, name):
    cfg = load(*words_for(group, name))
    check(cfg)
    if group == "optimizer":
        assert cfg.optimizer._partial_ is True
        if name in RULES:
            assert cfg.network.output == RULES[name].unit
            assert RULES[name].unit in RULES[name].cls.units
    for key in FILES if group == "experiment" else [group]:
        if cfg.get(key) is None:
            continue
        module, _, target = cfg[key]["_target_"].rpartition(".")
        parameters = inspect.signature(getattr(import_module(module), target)).parameters.values()
        assert not any(p.kind is p.VAR_KEYWORD for p in parameters)
        keys = {name for name in cfg[key] if not name.startswith("_")}
        known = {p.name for p in parameters} - GIVEN
        assert keys <= known
        if module.startswith("rlgames"):
            assert keys == known


def test_defaults_are_the_published_ones():
    cfg = load()
    assert (cfg.games, cfg.eval_every, cfg.seed, cfg.engine, cfg.device) == (500_000, 50_000, 0, "fused", "cpu")
    assert cfg.optimizer._target_ == "rlgames.optim.tcl.TCLEXP"
    assert (cfg.optimizer.lr, cfg.optimizer.beta, cfg.optimizer.cross_entropy) == (0.05, 2.7, False)
    assert cfg.learner.epsilon == 0.1
    assert (cfg.network.output, cfg.features.count, cfg.features.length) == ("tanh", 70, 8)


def test_a_rule_may_choose_other_values_and_the_command_line_wins():
    assert load("optimizer=tdl").learner.lr.games == 2_000_000
    assert load("optimizer=tdl", "learner.lr.games=5").learner.lr.games == 5
    assert load("learner.lr=1", "optimizer=tdl").learner.lr == 1
    assert load("optimizer=sgd").engine == "eager"
    assert load("optimizer=sgd", "engine=fused").engine == "fused"


def test_a_game_chooses_its_features_and_the_command_line_wins():
    assert load("game=tictactoe").features.states == 3
    assert load("game=tictactoe", "features=ntuples").features.states == 4
    assert load("game=tictactoe", "games=7").games == 7


def test_what_a_rule_tells_the_learner_td_is_dropped_for_others():
    words = ["+experiment=chess_td_leaf", "optimizer=idbd"]
    cfg = load(*words)
    assert cfg.learner.win_decay == 0.01
    settle(cfg, words)
    assert "win_decay" not in cfg.learner
    check(cfg)
    words = [*words, "+learner.epsilon=0.1"]
    cfg = load(*words)
    settle(cfg, words)
    with pytest.raises(ValueError, match=r"learner\.epsilon does not exist"):
        check(cfg)


def test_seed_is_the_seed_of_the_weights():
    assert load("seed=5").network.seed == 5


def test_schedules_may_be_numbers_or_nodes():
    for word in (
        "learner.epsilon=0.25",
        "learner.epsilon={_target_:rlgames.schedules.Linear,start:0.25,end:0,games:9}",
    ):
        cfg = load(*TICTACTOE, word)
        check(cfg)
        assert build(cfg, "learner", game=build(cfg, "game")).epsilon(np.array([0])) == [0.25]


def test_configurations_hold_plain_values():
    assert isinstance(load().game, DictConfig)
    assert "hydra" not in load()


def test_an_experiment_beats_the_defaults_and_the_command_line_beats_both():
    cfg = load("+experiment=bagheri2015_tdl")
    assert (cfg.games, cfg.optimizer._target_, cfg.evaluation.second) == (2_000_000, "rlgames.optim.tdl.TDL", 0)
    cfg = load("+experiment=bagheri2015_tdl", "optimizer=tcl", "games=5", "hydra/job_logging=stdout")
    assert (cfg.games, cfg.optimizer._target_, cfg.learner.lr) == (5, "rlgames.optim.tcl.TCL", 1.0)


def test_a_named_network_wins_over_the_rule():
    """optimizer=idbd asks for a linear unit, unless a word names another one."""
    for words, output in ((["optimizer=idbd"], "identity"), (["network=tanh", "optimizer=idbd"], "tanh")):
        cfg = load(*words)
        settle(cfg, words)
        assert cfg.network.output == output
