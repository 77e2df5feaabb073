import io
import shutil
import subprocess
import sys

import pytest
import torch

from rlgames.build import load
from rlgames.evaluate import evaluate
from rlgames.train import train
from rlgames.training import checkpoint
from rlgames.training.restore import restore
from tests.support import QUICK, few, last_checkpoint, result


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(load(*QUICK, "games=8", f"run_dir={folder}"))
    return folder


@pytest.fixture
def run(finished, quick, tmp_path):
    """A finished run of 8 games with checkpoints at 4 and 8, in the folder in which ``quick`` works."""
    return shutil.copytree(finished, tmp_path / "run")


def damaged(how, content):
    if how == "empty":
        return b""
    if how == "half":
        return content[: len(content) // 2]
    if how == "flipped":
        middle = len(content) // 2  # among the weights
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    if how == "text":
        return b"no checkpoint at all\n"
    foreign = io.BytesIO()
    torch.save({"model": torch.zeros(3)}, foreign)
    return foreign.getvalue()


@pytest.mark.parametrize("how", few(["half", "empty", "flipped", "text", "foreign"], "half", "flipped"))
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(run, quick, capsys, how):
    newest = run / "checkpoints" / "games_000000000008.pt"
    newest.write_bytes(damaged(how, newest.read_bytes()))
    assert checkpoint.load(run)["games"] == 4
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert str(newest) in message
    with pytest.raises(ValueError, match=f"{newest.name} is"):
        checkpoint.load(newest)
    quick("resume=run", run_dir=None)
    assert last_checkpoint(run)["games"] == 8


def without(*path):
    """What takes a part of a checkpoint away."""

    def change(content):
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return change


def with_shape(content):
    content["network"]["embedding.weight"] = torch.zeros(5, 1)


def with_state_of_another_shape(content):
    content["optimizer"]["state"][0]["N"] = torch.zeros(5, 1)


UNUSABLE = {
    **{name: without(name) for name in ("games", "config", "network", "optimizer", "rng", "progress", "tuples")},
    "empty config": lambda content: content["config"].clear(),
    "no game": without("config", "game"),
    "no network of the game": without("config", "learner"),
    "no weights": lambda content: content["network"].clear(),
    "no state of the optimizer": lambda content: content["optimizer"].clear(),
    "rng of another kind": lambda content: content["rng"].update(bit_generator="MT19937"),
    "no state of rng": without("rng", "state"),
    "progress of another version": lambda content: content["progress"].update(points=3),
    "a list": lambda content: content.update(progress=[1, 2]),
    "shape of the weights": with_shape,
    "shape of the state": with_state_of_another_shape,
}


@pytest.mark.parametrize("how", few(UNUSABLE, "network", "empty config", "shape of the state"))
def test_what_does_not_fit_is_named_and_the_one_before_it_taken(run, quick, capsys, how):
    newest = run / "checkpoints" / "games_000000000008.pt"
    content = torch.load(newest, weights_only=True)
    UNUSABLE[how](content)
    torch.save(content, newest)
    quick("resume=run", run_dir=None)
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.startswith(f"{newest} is damaged or from another version: it")
    assert last_checkpoint(run)["games"] == 8
    torch.save(content, newest)
    with pytest.raises(ValueError, match=f"{newest.name} is damaged or from another version"):
        quick(f"resume={newest}", run_dir=None)


def test_an_agent_that_does_not_fit_is_restored_from_the_one_before_it(run, capsys):
    newest = run / "checkpoints" / "games_000000000008.pt"
    content = torch.load(newest, weights_only=True)
    with_shape(content)
    torch.save(content, newest)
    assert restore(run).saved["games"] == 4
    assert capsys.readouterr().err.startswith(f"{newest} is damaged or from another version: its network does not fit")


def test_nothing_but_damaged_checkpoints(run):
    for file in (run / "checkpoints").iterdir():
        file.write_bytes(b"")
    with pytest.raises(ValueError, match="holds no readable checkpoint"):
        checkpoint.load(run)


@pytest.mark.parametrize("path", ["missing", "."])
def test_what_is_no_run_is_named_with_its_whole_path(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=str(tmp_path)):
        checkpoint.load(path)


def test_a_newer_format_is_refused(run, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 0)
    with pytest.raises(ValueError, match="format 1; this version of rlgames reads 0"):
        checkpoint.load(run / "checkpoints" / "games_000000000008.pt")


def test_checkpoints_can_be_read_without_this_package(run):
    code = """
import sys
sys.modules["rlgames"] = sys.modules["omegaconf"] = sys.modules["hydra"] = None
import torch
content = torch.load(sys.argv[1], weights_only=True)
assert content["config"]["optimizer"]["_target_"] == "rlgames.optim.tcl.TCLEXP"
assert content["network"]["embedding.weight"].shape[1] == 1
assert content["rng"]["bit_generator"] == "PCG64"
"""
    subprocess.run([sys.executable, "-c", code, run / "checkpoints" / "games_000000000008.pt"], check=True)


def test_the_last_two_are_kept(quick):
    folder = quick()
    assert sorted(file.name for file in (folder / "checkpoints").iterdir()) == [
        "games_000000000008.pt",
        "games_000000000012.pt",
    ]


def test_all_are_kept_if_asked_for(quick):
    folder = quick("checkpoints_kept=0")
    assert len(list((folder / "checkpoints").iterdir())) == 3


def test_resuming_an_earlier_file_leaves_the_later_line(run, quick):
    quick("resume=run/checkpoints/games_000000000004.pt", "games=6", run_dir=None)
    assert checkpoint.load(run)["games"] == 6
    assert not (run / "checkpoints" / "games_000000000008.pt").exists()


@pytest.mark.parametrize("how", few(["elsewhere", "slash", "file", "moved", "new folder", "link"]))
def test_ways_to_name_what_is_resumed(run, quick, tmp_path, how):
    file = run / "checkpoints" / "games_000000000008.pt"
    words, at = ["resume=run/"], run
    if how == "file":
        words = [f"resume={file}"]
    elif how == "moved":
        at = run.rename(tmp_path / "moved")
        words = ["resume=moved"]
    elif how == "new folder":
        words, at = ["resume=run", "run_dir=other"], tmp_path / "other"
    elif how == "elsewhere":
        shutil.copy(file, tmp_path / "saved.pt")
        words, at = ["resume=saved.pt", "run_dir=other"], tmp_path / "other"
    elif how == "link":
        (tmp_path / "link").symlink_to(run)
        words = ["resume=link"]
    quick(*words, "games=12", run_dir=None)
    assert last_checkpoint(at)["games"] == 12
    assert len((at / "progress.csv").read_text().splitlines()) == 4  # the history comes along


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["optimizer=tcl"], "optimizer._target_"),
        (["optimizer.lr=0.1"], "optimizer.lr was 0.05 and is now 0.1"),
        (["game=connect4"], "game._target_"),
        (["network.dtype=float64"], "network.dtype"),
        (["features.tuples=[[0,1]]"], "features.tuples"),
        (["features.seed=3"], "features.seed"),
        (["seed=1"], "seed was 0 and is now 1"),
        (["learner.epsilon=0.2"], "learner.epsilon"),
    ],
)
def test_words_that_contradict_the_run_are_named(run, quick, words, named):
    with pytest.raises(ValueError, match=named):
        quick("resume=run", "games=12", *words, run_dir=None)
    assert last_checkpoint(run)["games"] == 8


def test_words_that_agree_or_do_not_matter_are_taken(run, quick):
    quick(
        "resume=run",
        "games=12",
        "optimizer=tcl_exp",
        "evaluation.first=3",
        "eval_every=2",
        "device=cpu",
        run_dir=None,
    )
    saved = last_checkpoint(run)
    assert saved["config"]["evaluation"]["first"] == 3
    assert saved["config"]["evaluation"]["second"] == 0  # of the run, not of the defaults
    assert [row["games"] for row in saved["progress"]["rows"]] == [4, 8, 10, 12]


def test_a_total_already_passed_is_refused(run, quick):
    with pytest.raises(ValueError, match="games is 5, but the run to resume has played 8"):
        quick("resume=run", "games=5", run_dir=None)


@pytest.mark.parametrize("words", [[], ["games=8"]])
def test_a_total_already_reached_is_there(run, quick, capsys, words):
    before = last_checkpoint(run)
    (run / "result.json").unlink()  # as if it was killed before it could write that
    quick("resume=run", *words, run_dir=None)
    assert "8 games of tictactoe, in run, already there\n" in capsys.readouterr().out
    assert result(run)["status"] == "finished"
    assert last_checkpoint(run)["progress"] == before["progress"]


def test_tuples_travel_with_the_checkpoint(quick, tmp_path):
    (tmp_path / "tuples.txt").write_text("0 1 2\n0 4 8\n")
    folder = quick("features.tuples=tuples.txt", "games=4")
    (tmp_path / "tuples.txt").unlink()
    quick("resume=run", "games=8", run_dir=None)
    assert last_checkpoint(folder)["tuples"] == [[0, 1, 2], [0, 4, 8]]


def test_evaluate_a_checkpoint(run, tmp_path, monkeypatch):
    words = ["opponent=random", "engine=eager", "evaluation.first=3", "evaluation.second=2", "json=figures.json"]
    one = evaluate(load(f"checkpoint={run}", *words, config="evaluate"))
    other = evaluate(load(f"checkpoint={run}/checkpoints/games_000000000008.pt", *words, config="evaluate"))
    assert one == other
    assert one["games"] == 8
    assert set(one["scores"]) == {"first", "second"}
    assert '"success_second"' in (tmp_path / "figures.json").read_text()


Q_RUN = ["game=tictactoe", "learner=q", "games=20", "eval_every=20", "engine=eager", "run_dir=q"]


def test_words_are_checked_against_the_parts_of_the_run(tmp_path, monkeypatch):
    """A run of another learner than the default one: its schedule follows the new total."""
    monkeypatch.chdir(tmp_path)
    train(load(*Q_RUN), Q_RUN)

    def resume(*words):
        words = ["resume=q", *words]
        return train(load(*words), words)

    for words, says in (
        (["games=40", "learner.gamess=40"], r"has no learner.gamess \(did you mean games\?\); its learner has .*games"),
        (["games=40", "optimizer.lr=1"], "has no optimizer.lr; it has no optimizer"),
        (["games=40", "learner.games=50"], "learner.games was 40 and is now 50"),
        (["games=40", "learner.gamma=0.5"], "learner.gamma was 0.9 and is now 0.5"),
    ):
        with pytest.raises(ValueError, match=says):
            resume(*words)
    assert resume("games=40", "learner.games=40")["games"] == 40
    config = result(tmp_path / "q")["config"]
    assert config["learner"]["games"] == 40
    assert resume("games=60")["config"]["learner"]["games"] == 60
