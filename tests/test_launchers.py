"""Studies through the extras slurm, ray and optuna, each where it is installed; joblib is in test_study."""

import subprocess
import sys

import pytest

from rlgames.training.study import Results
from tests.support import QUICK

STUDY = [sys.executable, "-m", "rlgames.train", "-m", "results=study.csv", *QUICK]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("submitit", ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5", "seed=0,1"]),
        ("ray", ["hydra/launcher=ray", "seed=0,1"]),
        ("optuna", ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "optimizer.lr=interval(0.01,0.3)"]),
    ],
)
def test_a_study_of_two_runs(package, words, tmp_path):
    pytest.importorskip(package)
    done = subprocess.run([*STUDY, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = Results(tmp_path / "study.csv").rows()
    assert [row["status"] for row in rows] == ["finished", "finished"]
    assert len({row["key"] for row in rows}) == 2
