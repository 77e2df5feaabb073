import subprocess
import sys
import tomllib

import pytest

from rlgames.__main__ import PROGRAMS
from rlgames.build import CONF, groups, load
from rlgames.console import extras
from rlgames.console.usage import comments, help_text
from tests.support import PROJECT, few

CONFIGS = sorted(file.stem for file in CONF.glob("*.yaml"))


@pytest.mark.parametrize("config", CONFIGS)
def test_help_names_every_group_choice_and_key(config):
    text = help_text(config, [])
    for group in groups(config):
        for file in (CONF / group.lstrip("+")).glob("*.yaml"):
            assert file.stem in text
    for key in set(load(config=config)) - {"features", "game"}:
        assert f"\n  {key}:" in text
    assert "_partial_" not in text


def test_help_explains_values_by_the_comments_of_the_chosen_files():
    text = help_text("train", [])
    assert "epsilon: 0.1                       # chance of an exploratory move" in text
    assert "games: 500000                        # games of self-play in all" in text
    assert "optimizer: # optimizer=tcl_exp" in text
    assert "theta" in help_text("train", ["optimizer=idbd"])
    assert "features=" not in help_text("play", [])


def test_choices_fit_the_width():
    text = help_text("train", []).split("All values")[0]
    assert max(map(len, text.splitlines())) <= 120


def test_comments_of_a_file_that_is_not_there():
    assert comments(CONF / "nothing.yaml") == {}


def module(*words):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, check=False)


def test_the_package_lists_its_programs():
    done = module("rlgames")
    assert done.returncode == 0
    for program in PROGRAMS:
        assert f"python -m rlgames.{program}" in done.stdout
        assert (PROJECT / "rlgames" / f"{program}.py").is_file()
    assert set(CONFIGS) <= set(PROGRAMS)


def test_info_names_versions_devices_caches_and_extras():
    done = module("rlgames.info")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("rlgames 0.", "torch ", "cpu (", "compiled code: ", "solved positions: ", *extras.EXTRAS):
        assert word in done.stdout


def test_info_takes_no_words():
    done = module("rlgames.info", "games=3")
    assert done.returncode == 1
    assert done.stderr == "error: rlgames.info takes no words, but got games=3\n"
    assert module("rlgames.info", "--help").stdout.startswith("python -m rlgames.info")


def test_info_says_how_to_install_what_is_missing(monkeypatch):
    monkeypatch.setitem(extras.EXTRAS, "nothing", ("a test", ["no-such-package>=3", "numpy>=1"]))
    line = next(line for line in extras.extras() if "nothing" in line)
    assert line.endswith("missing; python -m pip install 'no-such-package>=3'")


def test_info_knows_all_extras():
    with (PROJECT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["optional-dependencies"]
    for_users = {name: packages for name, packages in declared.items() if name not in ("dev", "docs")}
    assert for_users == {name: packages for name, (_, packages) in extras.EXTRAS.items()}


@pytest.mark.parametrize("name", few(["rlgames", "rlgames.info"]))
def test_a_reader_that_goes_away_is_no_traceback(name):
    command = f"{sys.executable} -m {name} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=PROJECT, timeout=120)
    assert done.returncode in (0, 141)
    assert done.stderr == ""
