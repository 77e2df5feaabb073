import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from rlgames import evaluate as evaluate_module
from rlgames import train as train_module
from rlgames.build import CONF, understood
from rlgames.console import cli
from rlgames.training import assemble as assembling
from tests.support import QUICK


@pytest.fixture
def cli_run(tmp_path, monkeypatch, capfd):
    """Runs the program in this process: ``cli_run("games=0")`` returns exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")

    def run(*words, program=train_module, config="train"):
        monkeypatch.setattr(sys, "argv", [f"rlgames.{config}", *words])
        with pytest.raises(SystemExit) as stop:
            cli.run(program.main, config)
        return stop.value.code, *capfd.readouterr()

    return run


CONNECT4 = ["game=connect4", "features=ntuples"]
BAD = {
    "optimizer=idbb": ["optimizer='idbb' does not exist", "tcl_exp"],
    "optimizer=tcl_ex": ["did you mean tcl_exp?"],
    "optimizer=TCL": ["did you mean tcl?"],
    "game=Connect4": ["did you mean connect4?"],
    "optimizr=tcl": ["optimizr does not exist", "did you mean optimizer?"],
    "gamse=5": ["gamse does not exist", "eval_every"],
    "optimizer.theta=0.1": ["optimizer.theta does not exist", "lr, beta"],
    "+optimizer.theta=0.1": ["optimizer.theta does not exist", "lr, beta"],
    "learner.gama=1": ["did you mean gamma?"],
    "nonsense.lr=1": ["nonsense.lr does not exist"],
    "optimizer=sgd,tcl": ["Ambiguous value", "--multirun"],
    "+experiment=unknown": ["experiment='unknown' does not exist"],
    "experiment=tictactoe_q": ["needs a plus: +experiment=tictactoe_q"],
    "+foo=3": ["foo does not exist", "eval_every"],
    "+game=tictactoe": ["takes no plus: game=tictactoe"],
    "~optimizer": ["parts cannot be removed"],
    "game=null": ["game is null; allowed are chess, connect4, tictactoe"],
    "games": ["'games' is not word=value; write games=VALUE"],
    "--games=3": ["without dashes: games=3"],
    "--multrun": ["did you mean --multirun?"],
    "optimizer=idbd=3": ["optimizer=idbd=3 cannot be read", "quotes"],
    "optimizer.lr=[": ["optimizer.lr=[ cannot be read"],
    "optimizer.lr.x=3": ["optimizer.lr.x does not exist; optimizer.lr is"],
    "games=0": ["games is 0"],
    "games=many": ["games is 'many'", "whole number"],
    "games=10\r": [r"'games=10\r'"],
    "eval_every=1.5": ["eval_every is 1.5"],
    "seed=-1": ["seed is -1", "at least 0"],
    "batch=0": ["batch is 0", "at least 1"],
    "batched.horizon=0": ["batched.horizon is 0", "at least 1"],
    "engine=fuse": ["did you mean fused?"],
    "device=cudda": ["device is 'cudda'"],
    "device=meta9": ["device is"],
    "checkpoint_minutes=0": ["checkpoint_minutes is 0"],
    "resume=nowhere": ["nowhere"],
    "resume='a\tb'": ["cannot be printed"],
    "learner.epsilon=2": ["learner.epsilon", "2", "0 to 1"],
    "learner.epsilon=often": ["learner.epsilon is 'often'", "schedule"],
    "learner.gamma=1.5": ["learner.gamma is 1.5"],
    "learner.gamma=x": ["learner.gamma is 'x'", "a finite number"],
    "learner.epsilon={_target_:rlgames.schedules.Linea}": ["learner.epsilon._target_", "Linea"],
    "optimizer.lr=-1": ["optimizer.lr is -1"],
    "optimizer.lr=nan": ["optimizer.lr is nan"],
    "optimizer._target_=rlgames.optim.Nothing": ["optimizer._target_", "Nothing"],
    "features.tuples=none.txt": ["features.tuples", "none.txt"],
    "features.tuples=[[0,9]]": ["features.tuples", "[0, 9]", "0 to 8"],
    "features.tuples=[1,2]": ["features"],
    "network.seed=1.5": ["network.seed is 1.5"],
    "network.output=relu": ["network.output", "tanh"],
    "evaluation.first=x": ["evaluation.first is 'x'"],
    "optimizer=1": ["optimizer='1' does not exist", "tcl_exp"],
    "network=1e3": ["network='1e3' does not exist", "tanh"],
    "evaluation=true": ["evaluation='true' does not exist", "exhaustive"],
    "game=4": ["game='4' does not exist", "chess, connect4, tictactoe"],
    "features=[1,2]": ["features"],
    "features={a: 1}": ["features"],
    "results=0": ["results is 0; it must be a path"],
    "results=[a]": ["results is ['a']; it must be a path"],
    "results=table.txt": ["results is 'table.txt'", ".csv"],
    "run_dir=5": ["run_dir is 5; it must be a path"],
    "resume=[a]": ["resume is ['a']; it must be a path"],
    "learner.gamma={a: 1}": ["learner.gamma is {'a': 1}; it must be a finite number"],
    "network.seed=[1]": ["network.seed is [1]; it must be a whole number"],
    "learner.tactical={_target_: rlgames.schedules.Constant, value: 1}": ["learner.tactical is", "true or false"],
    "network._target_=rlgames.networks.table": ["network._target_ is 'rlgames.networks.table'", "no class"],
    "network._target_=math.pi": ["network._target_ is 'math.pi'", "no class"],
    "learner._target_=rlgames.schedules.Constant": ["learner._target_", "not a learner"],
    "seed=18446744073709551616": ["seed is 18446744073709551616", "2^63"],
    "network.seed=9223372036854775808": ["network.seed is 9223372036854775808", "2^63"],
    "checkpoint_at_evaluations=maybe": ["checkpoint_at_evaluations is 'maybe'; it must be true or false"],
    "checkpoint_at_evaluations=1": ["checkpoint_at_evaluations is 1"],
    "batched.combine=zz": ["batched.combine is 'zz'; allowed are mean and sum"],
    "hydra.run.dir=X": ["hydra.run.dir has no effect here", "run_dir="],
    "hydra=null": ["hydra has no effect here"],
    "++hydra=3": ["hydra has no effect here"],
    "hydra/output=null": ["hydra/output has no effect here"],
    "hydra/launcher=null": ["hydra/launcher is null"],
    "hydra/launcher=3": ["hydra/launcher='3' does not exist", "basic"],
    "hydra.sweep.dir=''": ["hydra.sweep.dir has no effect here"],
    "hydra.verbose=": ["hydra.verbose has no effect here"],
    "hydra.mode=''": ["hydra.mode is ''"],
    "hydra.mode=often": ["hydra.mode is often; allowed are RUN and MULTIRUN"],
    "game=''": ["game is ''; allowed are chess, connect4, tictactoe"],
    "+experiment=null": ["experiment is null", "tictactoe_q"],
    "+experiment.x=3": ["experiment.x does not exist"],
    "=3": ["'=3' is not word=value"],
    "network.init=null": ["network.init is null; it must be a finite number"],
    "network.init=true": ["network.init is true; it must be a finite number"],
    "network.init=1e400": ["network.init is inf; it must be a finite number"],
    "learner.epsilon={a: 1}": ["learner.epsilon is {'a': 1}; it must be a number or a schedule"],
    "evaluation.first=[1]": ["evaluation.first is [1]; it must be a whole number"],
    "batched=null": ["batched is null, which does not fit there", "batched.NAME=VALUE"],
    "batched={a: 1}": ["batched is {a: 1}, which does not fit there"],
    "learner=[td]": ["learner is [td]; allowed are"],
    "average_over=inf": ["average_over is inf"],
    "optimizer._partial_=maybe": ["optimizer._partial_ is 'maybe'"],
    "features.tuples={a: 1}": ["features.tuples is {a: 1}, which cannot stand for [[0, 1, 2]"],
    "optimizer.lr=1e30": ["optimizer.lr is 1e+30; it must be a number above 0 and at most 1e+06"],
    "hydra.job.chdir=true": ["hydra.job.chdir has no effect here"],
}


@pytest.mark.parametrize("word", BAD)
def test_bad_input_is_answered_with_one_sentence(cli_run, tmp_path, word):
    status, _, err = cli_run(*QUICK, word)
    assert status == 1
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    for part in BAD[word]:
        assert part in err
    if "epsilon=2" not in word:
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["features.length=20"], ["20 cells", "GiB"]),
        (["features.count=1000000000"], ["1,000,000,000 tuples", "GiB"]),
        (["features.count=3000000", "features.length=3"], ["3,000,000 tuples (3 cells, 64 rows)", "GiB"]),
        (["features.length=43"], ["features.length is 43"]),
        (["features.states=5"], ["features.states is 5"]),
        (["optimizer=sgd", "engine=fused"], ["engine=fused", "SGD", "engine=eager"]),
        (["optimizer=sgd", "optimizer.lr=-1"], ["optimizer", "-1"]),
        (["run_dir=file/run"], ["file/run"]),
    ],
)
def test_bad_input_that_needs_more_words(cli_run, tmp_path, words, parts):
    (tmp_path / "file").write_text("")
    status, _, err = cli_run(*QUICK, *CONNECT4, "features.count=1", *words)
    assert status == 1
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["checkpoint=nowhere"], "nowhere"),
        ([], "no checkpoint under runs/; train one"),
        (["checkpoint=x", "engine=batched"], "engine"),
        (["chekpoint=x"], "did you mean checkpoint?"),
        (["experiment=tictactoe_q"], "experiment does not exist"),
    ],
)
def test_bad_input_of_evaluate(cli_run, words, part):
    status, _, err = cli_run(*words, program=evaluate_module, config="evaluate")
    assert status == 1
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert part in err


OF_PROGRAMS = {
    ("evaluate", "game=chess"): "no checkpoint of chess under runs/; train one: python -m rlgames.train game=chess",
    ("play", "game=chess"): "no checkpoint of chess under runs/; train one: python -m rlgames.train game=chess",
    ("evaluate", "network=tanh"): "network has no effect here",
    ("play", "features.count=3"): "features.count has no effect here",
    ("play", "show=maybe"): "show is 'maybe'; it must be true or false",
    ("play", "depth=1.5"): "depth is 1.5; it must be a whole number of at least 1",
    ("play", "checkpoint=x side=3"): "side is 3; it must be first or second",
    ("evaluate", "game=connect4 evaluation.first=null"): "evaluation.first is null; it must be a whole number",
    ("evaluate", "opponent=uci opponent.options=[1]"): "opponent.options is [1]; it must be names and values",
    ("tournament", "players=3"): "players is 3; it must be a list",
    ("tournament", "players=[random,minimax] matches={a: 1}"): "matches is {'a': 1}; it must be a whole number",
    ("tournament", "players=[start,random] game=chess"): "'random' does not play chess",
    ("match", "first=start openings.file=''"): "openings.file is ''; it must be a path",
    ("match", "first=start openings=abc"): "openings is 'abc', which does not fit there",
    ("match", "first=start openings={a: 1}"): "openings is {a: 1}, which does not fit there",
    ("match", "first=start adjudication=null"): "adjudication is null, which does not fit there",
    ("match", "first=start adjudication.draw={a: 1}"): "adjudication.draw is {'a': 1}; it must be a finite number",
    ("match", "first=start adjudication.draw_moves=1.5"): "adjudication.draw_moves is 1.5; it must be a whole number",
    ("match", "first=start adjudication.draw=-1"): "adjudication.draw is -1; it must be at least 0",
    ("match", "first=start elo0=[1,2]"): "elo0 is [1, 2]; it must be a finite number",
    ("match", "first=start elo1=null"): "elo1 is null; it must be a finite number",
    ("match", "first=start ms=nan"): "ms is nan; it must be a finite number",
    ("match", "first=start sprt=3"): "sprt is 3; it must be true or false",
    ("match", "first=start options=[1]"): "options is [1]; it must be null or names and values",
    ("match", "first=true"): "first is true; it must be a run folder",
    ("suite", "epd=x.epd nodes=null"): "nodes is null; it must be a whole number of at least 0",
    ("suite", "epd=x.epd depth={a: 1}"): "depth is {'a': 1}; it must be a whole number of at least 0",
    ("uci", "checkpoint=[1]"): "checkpoint is [1]; it must be a path",
    ("train", "+experiment=chess_td_leaf evaluation.adjudication=abc"): "evaluation.adjudication is 'abc', which does",
    ("train", "+experiment=chess_td_leaf evaluation.openings={a: 1}"): "evaluation.openings is {a: 1}, which does not",
    ("train", "+experiment=chess_td_leaf learner.self_play=3"): "learner.self_play is 3, which does not fit there",
    ("train", "+experiment=chess_td_leaf learner.lr=[1]"): "learner.lr is [1], which does not fit there",
    (
        "train",
        "+experiment=chess_td_leaf learner.self_play.adjudication.draw=-1",
    ): "adjudication.draw is -1; it must",
    ("train", "optimizer=former_tdl learner.epsilon.turn=-1"): "learner.epsilon.turn is -1; it must be above 0",
    ("train", "optimizer=former_tdl learner.epsilon.slope=null"): "learner.epsilon.slope is null; it must be a finite",
    ("train", "optimizer=tdl learner.lr.games=0"): "learner.lr.games is 0; it must be above 0",
    ("train", "optimizer=rprop_minus optimizer.lr=1e30"): "optimizer.lr is 1e+30; it must be a number above 0 and at",
    ("train", "optimizer=idbd_nl optimizer.theta=1e30"): "optimizer.theta is 1e+30; it must be a number of at least 0",
    ("train", "optimizer=adam optimizer.lr=1e9"): "optimizer.lr is 1000000000.0; it must be a number above 0 and at",
    ("train", "game=tictactoe learner=q learner.alpha=-1"): "learner.alpha is -1 at game 0",
}


@pytest.mark.parametrize(("program", "words"), OF_PROGRAMS)
def test_every_program_names_the_key_and_its_value(cli_run, tmp_path, program, words):
    words = re.split(r" (?=[+\w./]+=)", words)  # blanks may stand within values
    module = importlib.import_module(f"rlgames.{program}")
    status, _, err = cli_run(*words, program=module, config=program)
    assert (status, err.count("\n")) == (1, 1), err
    assert OF_PROGRAMS[program, " ".join(words)] in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["experiment=x", "nonsense=1"])
def test_an_error_with_another_error_beside_it_is_still_one_sentence(cli_run, word):
    status, _, err = cli_run("optimizer=nothing", word)
    assert (status, err.count("\n")) == (1, 1)


def test_a_bug_shows_its_traceback(cli_run, monkeypatch):
    def buggy(*_):
        return [][1]

    monkeypatch.setattr(assembling, "assemble", buggy)
    status, _, err = cli_run(*QUICK)
    assert status == 1
    assert "Traceback" in err
    assert "return [][1]" in err


def test_a_value_error_nobody_meant_shows_its_traceback(cli_run, monkeypatch):
    monkeypatch.setattr(assembling, "assemble", lambda *_: int("x"))
    assert "Traceback" in cli_run(*QUICK)[2]


def test_full_error_shows_the_traceback(cli_run, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert "Traceback" in cli_run(*QUICK, "games=0")[2]


def test_evaluate_prints_a_line_per_protocol(cli_run):
    assert cli_run(*QUICK, "run_dir=run")[0] == 0
    words = ["checkpoint=run", "engine=eager", "opponent=random", "evaluation.first=2", "evaluation.second=2"]
    status, out, _ = cli_run(*words, program=evaluate_module, config="evaluate")
    assert status == 0
    assert out.startswith("12 games of training, run\n")
    assert out.count("plies") == 2


def test_evaluate_takes_the_newest_run(cli_run):
    assert cli_run(*QUICK, "games=4")[0] == 0
    words = ["engine=eager", "opponent=random", "evaluation.first=2", "evaluation.second=0"]
    for word in ([], ["game=tictactoe"]):
        assert cli_run(*word, *words, program=evaluate_module, config="evaluate")[0] == 0
    status, _, err = cli_run("game=connect4", *words, program=evaluate_module, config="evaluate")
    assert status == 1
    assert "no checkpoint of connect4" in err


def test_a_run_without_run_dir_gets_a_dated_folder(cli_run, tmp_path):
    assert cli_run(*QUICK, "games=4")[0] == 0
    (folder,) = (tmp_path / "runs" / "tictactoe").iterdir()
    assert (folder / "result.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_sweep_gives_each_run_its_folder_and_outlives_a_bad_one(cli_run, tmp_path):
    status, _, err = cli_run("-m", *QUICK, "games=4", "seed=0,-1,2", "run_dir=sweep")
    assert status == 1
    assert "error: run 1: seed is -1" in err
    assert "Traceback" not in err
    assert (tmp_path / "sweep" / "0" / "result.json").is_file()
    assert (tmp_path / "sweep" / "2" / "result.json").is_file()
    (trace,) = tmp_path.rglob("error.txt")
    assert "seed is -1" in trace.read_text()
    assert trace.parent.name == "1"


def test_a_flag_may_stand_between_words(cli_run, tmp_path):
    assert cli_run(*QUICK[:2], "-m", *QUICK[2:], "games=4", "seed=0,1", "run_dir=sweep")[0] == 0
    assert len(list((tmp_path / "sweep").glob("*/result.json"))) == 2


def test_what_is_chosen_for_a_group_is_a_name():
    words = ["game=2048", "optimizer=tdl,1", "+experiment=7", "games=5", "seed=007", "network=null", "learner.x=1"]
    assert understood(words) == [
        *("game='2048'", "optimizer=tdl,'1'", "+experiment='7'", "games=5", "seed=007", "network=null", "learner.x=1"),
    ]


def test_a_file_with_a_number_for_a_name_is_found(cli_run, tmp_path, capfd):
    (tmp_path / "mine" / "game").mkdir(parents=True)
    shutil.copy(CONF / "game" / "tictactoe.yaml", tmp_path / "mine" / "game" / "2048.yaml")
    status, out, err = cli_run("--config-dir=mine", "game=2048", "--cfg", "job")
    assert (status, err) == (0, "")
    assert "rlgames.games.tictactoe.TicTacToe" in out


def test_a_folder_of_nobody(cli_run, tmp_path):
    """~t is the home of a user t, or a name like any other."""
    assert cli_run(*QUICK, "games=4", "run_dir='~t'")[0] == 0
    assert (tmp_path / "~t" / "result.json").is_file()


def closed(how, *words):
    command = f'exec "{sys.executable}" -m rlgames.{" ".join(words)} {how}'
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, timeout=120, check=False)


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="bash")
@pytest.mark.parametrize("how", ["<&-", ">&-", "2>&-", r"<<< $'\xff\xe4'"])
def test_streams_that_are_closed_or_hold_any_byte(cli_run, tmp_path, how):
    assert cli_run(*QUICK, "run_dir=run")[0] == 0
    for words in (["train", *QUICK, "run_dir=other"], ["play", "checkpoint=run", "side=first"]):
        done = closed(how, *words)
        assert (done.returncode, done.stderr) == (0, b"")


def test_help_is_quick_and_lists_the_choices():
    code = (
        "import sys; sys.argv = ['train', 'game=tictactoe', '--help']\n"
        "import rlgames.train as t\n"
        "try: t.cli.run(t.main, 'train')\n"
        "finally: assert not {'torch', 'numpy', 'numba'} & set(sys.modules), 'heavy imports'"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1  # CPU time: others may be at work
    for text in ("game=chess|connect4|tictactoe", "optimizer=adam|", "states: 3", "eval_every:"):
        assert text in done.stdout


def test_sigterm_ends_with_143_and_a_checkpoint(tmp_path):
    words = [*QUICK, "games=100000", "eval_every=50", "run_dir=run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rlgames.train", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    first = process.stdout.readline() + process.stdout.readline()  # the second tells of an evaluation
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert b"\x1b" not in first + rest
    assert b"Traceback" not in rest
    assert rest.splitlines()[-1].startswith(b"stopped by SIGTERM after ")
    assert rest.endswith(b" of 100,000 games; resume: python -m rlgames.train resume=run\n")
    assert list((tmp_path / "run" / "checkpoints").glob("games_*.pt"))
    assert os.path.exists(tmp_path / "run" / "result.json")
