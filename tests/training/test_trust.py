"""What a checkpoint may build: each kind of trick is refused by name, before anything of it is imported or called."""

import copy
import subprocess
import sys

import pytest
import torch
from omegaconf import OmegaConf

from rlgames.build import ready
from rlgames.evaluate import evaluate
from rlgames.lineup import newest_run
from rlgames.match import match
from rlgames.play import play
from rlgames.suite import suite
from rlgames.tournament import run as tournament
from rlgames.train import train
from rlgames.training.restore import restore
from rlgames.training.trust import check_outside, check_saved, outside, trusted, without_outside, words_for
from rlgames.uci import load_thinker
from tests.support import load

MODULE = """
import os
from os import system
from subprocess import Popen
from pathlib import Path

from rlgames.games.tictactoe import TicTacToe
from rlgames.schedules import Linear

Path("imported").touch()


class Mine(TicTacToe):
    pass


def call(*_, **__):
    Path("called").touch()
"""
KINDS = (
    ["game=tictactoe"],
    ["game=connect4", "optimizer=adam"],
    ["+experiment=tictactoe_q"],
    ["+experiment=chess_td_leaf"],
)


def config_of(*words):
    """The plain configuration that a checkpoint of a run with ``words`` holds."""
    return OmegaConf.to_container(ready(load(*words)))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with a module that tells when it is imported or called."""
    (tmp_path / "trickster.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trickster", raising=False)
    return tmp_path


def edited(config, key, value):
    """``config`` with another ``value`` at the dotted ``key``."""
    config = copy.deepcopy(config)
    *parts, name = key.split(".")
    node = config
    for part in parts:
        node = node.setdefault(part, {})
    node[name] = value
    return config


@pytest.mark.parametrize("words", KINDS, ids=" ".join)
def test_what_we_write_is_opened(words):
    check_saved(config_of(*words))


def test_schedules_and_optimizers_of_torch_are_opened():
    schedule = "learner.epsilon={_target_: rlgames.schedules.Linear, start: 0.3, end: 0.1, games: '${games}'}"
    check_saved(config_of("game=tictactoe", schedule))
    check_saved(
        edited(config_of("game=tictactoe"), "optimizer", {"_target_": "torch.optim.RMSprop", "_partial_": True})
    )


TRICKS = {  # key: what stands there
    "a function of Python": ("network._target_", "urllib.request.urlretrieve"),
    "one of a library": ("features._target_", "numpy.savetxt"),
    "a built-in": ("game._target_", "builtins.exec"),
    "through a name of ours": ("game._target_", "rlgames.build.importlib.import_module"),
    "through another one": ("opponent._target_", "rlgames.training.files.os.system"),
    "a function of ours": ("network._target_", "rlgames.training.files.write_atomically"),
    "a class of another kind": ("network._target_", "rlgames.games.connect4.Connect4"),
    "a class that is for no part": ("learner._target_", "rlgames.training.study.Results"),
    "what is imported beside schedules": ("learner.epsilon", {"_target_": "rlgames.schedules.np.savetxt"}),
    "a schedule for a part": ("learner._target_", "rlgames.schedules.Linear"),
    "a function of torch": ("optimizer._target_", "torch.load"),
    "what is no optimizer of torch.optim": ("optimizer._target_", "torch.optim.lr_scheduler.StepLR"),
    "an optimizer for a network": ("network._target_", "torch.optim.SGD"),
    "a module of torch": ("network._target_", "torch.nn.Linear"),
    "Hydra's own": ("game._target_", "hydra.utils.get_method"),
    "bytes": ("game._target_", b"os.system"),
    "a number": ("game._target_", 7),
    "nothing": ("game._target_", None),
    "a list": ("game._target_", ["os.system"]),
    "no dots": ("game._target_", "exec"),
    "blanks": ("game._target_", " os.system"),
    "relative": ("game._target_", "..os.system"),
    "below": ("learner.gamma", {"_target_": "os.system", "command": "true"}),
    "deep below": ("learner.extra", {"a": {"b": [{"c": {"_target_": "os.system"}}]}}),
    "in a list": ("features.tuples", [[0, 1], {"_target_": "os.system"}]),
    "in a list of lists": ("features.tuples", [[{"_target_": "os.system"}]]),
    "in a tuple": ("features.tuples", ({"_target_": "os.system"},)),
    "beside the parts": ("helper", {"_target_": "os.system"}),
    "at the top": ("_target_", "os.system"),
    "by arguments": ("game._args_", ["true"]),
    "by conversion": ("game._convert_", "object"),
    "not at once": ("game._recursive_", False),
    "partial": ("learner.epsilon", {"_target_": "rlgames.schedules.Constant", "_partial_": True}),
    "partial by a number": ("optimizer._partial_", 1),
    "an environment": ("run_dir", "${oc.env:HOME}"),
    "an environment in a text": ("network.dtype", "a${oc.env:HOME}"),
    "a decoder": ("game", "${oc.decode:'{_target_: os.system}'}"),
    "a creator": ("game", "${oc.create:{_target_: os.system}}"),
    "a resolver of Hydra": ("seed", "${hydra:runtime.cwd}"),
    "a resolver that imports": ("game._target_", "${oc.deprecated:run_dir}"),
    "a node by reference": ("opponent", "${learner}"),
    "a text by reference": ("game._target_", "${run_dir}"),
    "a relative reference": ("network.seed", "${..seed}"),
    "nested references": ("network.seed", "${${engine}}"),
    "a set": ("helper", {"os.system"}),
    "bytes as a value": ("helper", b"abc"),
    "a tensor": ("helper", torch.zeros(1)),
    "a key of bytes": ("helper", {b"_target_": "os.system"}),
    "a key that is a number": ("helper", {1: 2}),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_are_refused(mine, trick):
    key, value = TRICKS[trick]
    config = edited(config_of("game=tictactoe"), key, value)
    with pytest.raises(ValueError, match=r"^its |^it names code"):
        check_saved(config)
    with pytest.raises(ValueError, match=r"^its |^it names code"):
        check_saved(config, ["trickster"])


@pytest.mark.parametrize(
    "target", ["system", "Popen", "Path", "call", "os.system", "Linear", "Nothing", "Mine.__class__", "__builtins__"]
)
def test_a_trusted_module_lends_only_its_own_classes(mine, target):
    config = edited(config_of("game=tictactoe"), "game._target_", f"trickster.{target}")
    with pytest.raises(ValueError, match=r"game\._target_ is '?trickster"):
        check_saved(config, "trickster")
    assert not (mine / "called").exists()


def test_the_refusal_prints_the_word_and_imports_nothing(mine):
    config = edited(config_of("game=tictactoe"), "game._target_", "trickster.Mine")
    with pytest.raises(
        ValueError, match=r"from outside rlgames: trickster.Mine; if you trust it, add trust=trickster$"
    ):
        check_saved(config)
    two = edited(config, "learner._target_", "other.deep.Learner")
    with pytest.raises(ValueError, match=r"trickster.Mine, other.deep.Learner; .* add 'trust=\[other,trickster\]'$"):
        check_saved(two)
    with pytest.raises(ValueError, match=r"rlgames: other.deep.Learner; .* add 'trust=\[other,trickster\]'$"):
        check_saved(two, {"trickster"})
    assert not (mine / "imported").exists()
    check_saved(config, "trickster")
    assert (mine / "imported").exists()


def test_nothing_trusted_is_imported_beside_a_trick(mine):
    config = edited(
        edited(config_of("game=tictactoe"), "game._target_", "trickster.Mine"), "network._target_", "os.system"
    )
    with pytest.raises(ValueError, match=r"os.system"):
        check_saved(config, "trickster")
    assert not (mine / "imported").exists()


def test_what_the_words_name_is_trusted():
    names = trusted(load("game=tictactoe", "game._target_=mine.Game", "+learner.more={_target_: yours.deep.Part}"))
    assert {"mine", "mine.Game", "yours", "yours.deep.Part"} <= names
    assert not {"torch", "rlgames", "os"} & names
    assert {"a", "b"} <= trusted(load("trust=[a,b]", "checkpoint=x", config="play"))


@pytest.mark.parametrize("word", ["os", "torch", "rlgames", "a.b", "1", "{a: 1}", "[a,os]", "''", "true"])
def test_what_cannot_be_trusted(word):
    with pytest.raises(ValueError, match=r"trust is .*; it must be the name of a module of your own"):
        ready(load(f"trust={word}"))


# ---- programs and files


def test_programs_and_files_are_found():
    words = ("learner.self_play.engine=stockfish", "opponent=uci", "evaluation.openings.file=book.epd")
    config = config_of("+experiment=chess_td_leaf", *words)
    assert dict(outside(config)) == {
        "learner.self_play.engine": "stockfish",
        "opponent.command": "stockfish",
        "evaluation.openings.file": "book.epd",
    }
    with pytest.raises(ValueError, match=r"add evaluation.openings.file=book.epd$"):
        check_outside(config, ["learner.self_play.engine", "opponent"])
    check_outside(config, ["learner", "opponent.command", "evaluation.openings.file"])
    without_outside(config["learner"])
    assert config["learner"]["self_play"]["engine"] is None


def test_an_engine_without_a_command_is_one():
    assert dict(outside({"opponent": {"_target_": "rlgames.chess.uci_engine.UciEngine"}})) == {
        "opponent.command": "stockfish"
    }


# ---- the programs


@pytest.fixture
def doctored(mine, quick):
    """A run folder whose checkpoints and config.yaml name a class of a module that tells when it is imported."""

    def change(target="trickster.Mine", key="game._target_", words=()):
        run = quick("games=4", *words)
        for file in (run / "checkpoints").iterdir():
            content = torch.load(file, weights_only=True)
            torch.save({**content, "config": edited(content["config"], key, target)}, file)
        config = edited(OmegaConf.to_container(OmegaConf.load(run / "config.yaml")), key, target)
        (run / "config.yaml").write_text(OmegaConf.to_yaml(config))
        (mine / "imported").unlink(missing_ok=True)
        sys.modules.pop("trickster", None)
        return run

    return change


EPD = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - bm Ra8#; id 'one';\n"
PROGRAMS = {
    "train": lambda *words: train(load("resume=run", "games=6", *words), ["resume=run", "games=6", *words]),
    "evaluate": lambda *words: evaluate(load("checkpoint=run", "opponent=random", *words, config="evaluate")),
    "play": lambda *words: play(load("checkpoint=run", "against=random", "side=first", *words, config="play")),
    "tournament": lambda *words: tournament(load("players=[run,random]", "matches=2", *words, config="tournament")),
    "match": lambda *words: match(load("first=run", "games=2", *words, config="match")),
    "suite": lambda *words: suite(load("epd=one.epd", "checkpoint=run", *words, config="suite")),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_asks_first(doctored, mine, program):
    (mine / "one.epd").write_text(EPD)
    doctored()
    with pytest.raises(ValueError, match=r"games_\d+\.pt is not opened: .* trickster\.Mine; .* add trust=trickster$"):
        PROGRAMS[program]()
    assert not (mine / "imported").exists()


def test_uci_asks_first(doctored, mine):
    said = []
    doctored()
    load_thinker("run", said.append)
    assert any("add trust=trickster" in line for line in said)
    assert not (mine / "imported").exists()


@pytest.mark.parametrize("program", ["train", "evaluate", "play", "tournament"])
def test_trusted_code_is_used(doctored, mine, program):
    doctored()
    PROGRAMS[program]("trust=trickster", "engine=eager")
    assert (mine / "imported").exists()


def test_from_python(doctored):
    run = doctored()
    with pytest.raises(ValueError, match="add trust=trickster"):
        restore(run)
    assert type(restore(run, trust="trickster").parts.game).__name__ == "Mine"
    assert type(restore(run, trust=["trickster", "other"]).parts.game).__name__ == "Mine"


def test_the_newest_run_of_a_game_is_found_without_importing_it(doctored, mine, tmp_path):
    run = doctored()
    run.rename(tmp_path / "runs")
    assert str(newest_run()) == str(newest_run("trickster.Mine")) == "runs"
    with pytest.raises(ValueError, match=r"no checkpoint of other.Game .*train game._target_=other.Game"):
        newest_run("other.Game")
    assert not (mine / "imported").exists()


def test_own_words_need_no_trust(mine, quick):
    own = "game._target_=trickster.Mine"
    quick("games=4", own)
    with pytest.raises(ValueError, match="add trust=trickster"):
        quick("resume=run", "games=6", run_dir=None)
    quick("resume=run", "games=6", own, run_dir=None)
    quick("resume=run", "games=8", "trust=trickster", run_dir=None)
    assert restore("run", trust="trickster").saved["config"]["trust"] == "trickster"
    with pytest.raises(ValueError, match="add trust=trickster"):
        quick("resume=run", "games=10", run_dir=None)  # what the checkpoint says of trust does not count


def test_a_run_without_a_checkpoint_is_checked_too(doctored, mine, quick):
    run = doctored()
    for file in (run / "checkpoints").iterdir():
        file.unlink()
    for name in ("result.json", "progress.csv"):
        (run / name).unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"config.yaml is not opened: .* add trust=trickster"):
        quick("resume=run", "games=6", run_dir=None)
    assert not (mine / "imported").exists()
    (run / "config.yaml").write_text("game: !!python/object/apply:os.system ['touch called']\n")
    with pytest.raises(ValueError, match=r"config.yaml is damaged"):
        quick("resume=run", "games=6", run_dir=None)
    assert not (mine / "called").exists()


def test_a_folder_for_solved_positions_is_named_again(doctored, quick, tmp_path):
    doctored({"_target_": "rlgames.players.perfect_or_minimax", "cache": str(tmp_path / "new")}, "opponent")
    with pytest.raises(ValueError, match=r"used only if you name them: add opponent.cache=\S+new$"):
        quick("resume=run", "games=6", run_dir=None)
    quick("resume=run", "games=6", "opponent.cache=null", run_dir=None)
    restore("run")  # it plays no opponent


def test_a_file_of_tuples_is_not_read(doctored, quick, tmp_path):
    (tmp_path / "secret.txt").write_text("secret\n")
    run = doctored(str(tmp_path / "secret.txt"), "features.tuples")
    for file in (run / "checkpoints").iterdir():
        torch.save({**torch.load(file, weights_only=True), "tuples": None}, file)
    with pytest.raises(ValueError, match=r"add features.tuples="):
        quick("resume=run", "games=6", run_dir=None)
    with pytest.raises(ValueError, match=r"features\.count") as refusal:
        restore(run)
    assert "secret" not in str(refusal.value)


def test_results_of_a_checkpoint_are_not_written(doctored, quick, tmp_path):
    doctored(str(tmp_path / "elsewhere.csv"), "results")
    quick("resume=run", "games=6", run_dir=None)
    assert not (tmp_path / "elsewhere.csv").exists()


def test_the_command_line(doctored, mine):
    """The whole program: one sentence, status 1, and the words it prints work."""
    doctored()
    command = [sys.executable, "-m", "rlgames.evaluate", "checkpoint=run", "opponent=random", "engine=eager"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    word = done.stderr.rpartition("add ")[2].strip()
    assert word == "trust=trickster"
    assert not (mine / "imported").exists()
    assert subprocess.run([*command, word], capture_output=True, check=False).returncode == 0


def test_the_commands_printed_at_the_end_work(mine, quick, capsys, tmp_path):
    quick("games=4", "game._target_=trickster.Mine")
    last = capsys.readouterr().out.splitlines()[-1]
    assert "rlgames.evaluate checkpoint=run trust=trickster   resume: " in last
    assert last.endswith("rlgames.train resume=run trust=trickster games=8")
    config = edited(config_of("game=tictactoe"), "opponent.cache", str(tmp_path / "a b"))
    assert words_for(config, resumes=True) == [f"""opponent.cache='"{tmp_path}/a b"'"""]
    assert words_for(config, resumes=False) == []


def test_a_path_in_the_place_of_tuples_is_not_read(doctored, tmp_path):
    (tmp_path / "secret.txt").write_text("0 1 2\n")
    run = doctored()
    for file in (run / "checkpoints").iterdir():
        torch.save({**torch.load(file, weights_only=True), "tuples": str(tmp_path / "secret.txt")}, file)
    with pytest.raises(ValueError, match="holds no readable checkpoint"):
        restore(run, trust="trickster")


def test_evaluate_prints_the_words_that_choose_an_engine():
    chess = config_of("+experiment=chess_td_leaf", "opponent=uci", "evaluation.openings.file=book.epd")
    parts = {name: chess[name] for name in ("evaluation", "opponent")}
    words = "evaluation=match opponent=uci evaluation.openings.file=book.epd opponent.command=stockfish"
    with pytest.raises(ValueError, match=f"add {words}$"):
        check_outside(parts, [], choose=True)
    ready(load("checkpoint=x", *words.split(), config="evaluate"))


def test_an_engine_of_a_chess_checkpoint_is_not_started(quick, tmp_path):
    (tmp_path / "engine").write_text("#!/bin/sh\ntouch called\n")
    (tmp_path / "engine").chmod(0o755)
    short = [f"{part}.adjudication.max_plies=10" for part in ("learner.self_play", "evaluation")]
    nodes = [f"{part}.nodes=30" for part in ("learner.self_play", "evaluation", "opponent")]
    words = [
        "+experiment=chess_td_leaf",
        "games=8",
        "eval_every=8",
        "evaluation.games=2",
        "run_dir=run",
        *short,
        *nodes,
    ]
    train(load(*words), words)
    (file,) = (tmp_path / "run" / "checkpoints").iterdir()
    content = torch.load(file, weights_only=True)
    engine = str(tmp_path / "engine")
    content["config"]["opponent"] = {"_target_": "rlgames.chess.uci_engine.UciEngine", "command": engine}
    content["config"]["learner"]["self_play"].update(engine=engine, engine_share=1.0)
    torch.save(content, file)
    with pytest.raises(ValueError, match=rf"add opponent=uci opponent.command={engine}$"):
        evaluate(load("checkpoint=run", config="evaluate"))
    with pytest.raises(ValueError, match=rf"add opponent.command={engine} learner.self_play.engine={engine}$"):
        train(load("resume=run", "games=16"), ["resume=run", "games=16"])
    standing = tournament(load("players=[run,start]", "matches=2", "nodes=30", config="tournament"))
    assert set(standing.names) == {"run", "start"}
    assert not (tmp_path / "called").exists()
