import copy
import functools
import os
import re
import signal
from pathlib import Path

import pytest

# What takes long to import is imported where tests run: the process of pytest-xdist that starts these does without.

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of torch: there is a test process on every core already

if hasattr(signal, "SIGHUP"):  # nohup has it ignored, and the tests send it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def remember_compositions():
    """Composing takes Hydra 0.15 s, and many tests ask for the same words, but for the folder of the run."""
    from rlgames import build

    original = build.compose

    @functools.cache
    def composed(config, words, hydra):
        return original(config, list(words), hydra)

    def compose(config, words, hydra):
        folder = next((word for word in words if re.fullmatch(r"run_dir=(run|/[\w/.-]+)", word)), None)
        if config != "train" or hydra or not folder:
            return copy.deepcopy(composed(config, tuple(words), hydra))
        cfg = compose(config, [word for word in words if word != folder], hydra)
        cfg.run_dir = folder.removeprefix("run_dir=")
        return cfg

    build.compose = compose


SHARED_CODE = {
    **dict.fromkeys(
        ("chess", "search/test_plain", "learners/test_td_leaf", "test_match", "test_uci", "test_uci_clocks"), "chess"
    ),
    **dict.fromkeys(("agents/test_averaging", "training/test_checkpoint", "search", "test_train"), "small runs"),
    **dict.fromkeys(("games/test_connect4", "games/test_games"), "random games"),
    **dict.fromkeys(("compiled", "learners/test_td", "test_kits"), "fused tcl_exp"),
    "test_start": "start",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that need the same machine code go to one process: else two would make it at the same time."""
    remember_compositions()
    for item in items:
        file = item.path.relative_to(Path(__file__).parent).with_suffix("")
        group = SHARED_CODE.get(str(file)) or SHARED_CODE.get(file.parts[0])
        if file.name == "test_fused":
            group = f"fused {item.callspec.params.get('name') if hasattr(item, 'callspec') else ''}"
        elif not group and ("chess" in item.name or "ladder" in item.name):
            group = "chess"
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Runs a very small training in a folder of its own: ``quick("games=4", run_dir="a")`` returns the run folder."""
    from rlgames.build import load
    from rlgames.train import train
    from tests.support import QUICK

    monkeypatch.chdir(tmp_path)

    def run(*words, run_dir="run"):
        if not any(word.startswith("resume=") for word in words):
            words = [*QUICK, *words]
        if run_dir:
            words = [*words, f"run_dir={run_dir}"]
        train(load(*words), list(words))
        return tmp_path / (run_dir or "run")

    return run
