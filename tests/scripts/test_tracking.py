"""Sutton's tracking task: what the literature measured is measured here too."""

import importlib.util
import sys

import numpy as np
import pytest

from rlgames.compiled import compile_function
from rlgames.optim import IDBD, K1, TDL, Autostep, AutoTIDBD, SwiftTD
from tests.support import PROJECT

spec = importlib.util.spec_from_file_location("tracking", PROJECT / "scripts" / "tracking.py")
tracking = importlib.util.module_from_spec(spec)
sys.modules["tracking"] = tracking  # where machine code from the disk looks for its names
spec.loader.exec_module(tracking)

SEEDS = 10
EXPECTED = [  # rule, hyper-parameters, mean squared error, what it may be off
    (TDL, {"lr": 0.035}, 3.361, 0.06),
    (TDL, {"lr": 0.005}, 4.421, 0.06),
    (TDL, {"lr": 0.06}, 4.225, 0.15),
    (IDBD, {"lr": 0.05, "theta": 0.009, "guards": False}, 1.552, 0.03),
    (IDBD, {"lr": 0.05, "theta": 0.009}, 1.552, 0.03),  # the guards do not act here
    (IDBD, {"lr": 0.05, "theta": 0.001, "guards": False}, 2.044, 0.04),
    (Autostep, {"lr": 0.05, "mu": 0.05}, 2.087, 0.12),
    (Autostep, {"lr": 0.05, "mu": 0.001}, 3.287, 0.06),
    (K1, {"lr": 0.05, "theta": 0.02, "guards": False}, 1.025, 0.02),
    (K1, {"lr": 0.05, "theta": 0.001, "guards": False}, 1.586, 0.04),
    (SwiftTD, {"lr": 0.05, "theta": 0.05, "eta": 0.5}, 1.437, 0.04),  # our own measurement
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "hyper", "error", "tolerance"), EXPECTED)
def test_error(cls, hyper, error, tolerance):
    result = tracking.measure(cls, hyper, SEEDS)
    assert result.failures == 0
    assert result.error == pytest.approx(error, abs=tolerance)


DEFAULTS = [(K1, 1.04), (IDBD, 1.52), (AutoTIDBD, 1.69), (Autostep, 2.29), (SwiftTD, 3.37), (TDL, 4.04)]  # 5 seeds


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "error"), DEFAULTS)
def test_constructor_defaults(cls, error):
    """As docs/optimizers.md has it, by other seeds too."""
    result = tracking.measure(cls, {}, SEEDS)
    assert result.failures == 0
    assert result.error == pytest.approx(error, rel=0.03)


def test_constructor_defaults_learn_a_regression():
    _, *words = tracking.prepare(K1, {}, 5)
    (start,) = words[1][:1].copy()
    error = compile_function(tracking.regress)(*words, 500, np.random.default_rng(0))
    assert error < 1e-8
    assert not start.any()
    assert words[1][0].all(), "the weights were learned in place"


@pytest.mark.thorough
def test_auto_tidbd_without_next_positions_is_autostep():
    ours = tracking.measure(AutoTIDBD, {"lr": 0.05, "theta": 0.01, "old_trace": False}, 1, 200, 300)
    theirs = tracking.measure(Autostep, {"lr": 0.05, "mu": 0.01}, 1, 200, 300)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_the_picture_shows_all_that_was_measured(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [(rule, "", value, 2.0, 0.1, 0, 0, 0, 1) for rule in ("tdl", "k1") for value in (0.01, 0.02)]
    tracking.plot(rows, tmp_path / "tracking.png")
    assert (tmp_path / "tracking.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_idbd_finds_the_relevant_inputs():
    result = tracking.measure(IDBD, {"lr": 0.05, "theta": 0.009, "guards": False}, SEEDS)
    assert result.relevant == pytest.approx(0.13, abs=0.01)
    assert result.irrelevant < 0.01


@pytest.mark.slow
def test_the_extra_factor_of_the_program_is_no_rule_for_real_inputs():
    result = tracking.measure(K1, {"lr": 0.05, "theta": 0.01, "extra_x": True}, 3)
    assert result.failures == 3
