import numpy as np
import pytest

from rlgames.learners.td_errors import clipped, decaying_sums, differences

VALUES = np.array([0.1, 0.3, -0.2, 0.4, 0.9])
NOBODY = np.zeros(5, bool)


def test_lambda_1_is_regression_on_the_outcome():
    for outcome in (-1.0, 0.0, 1.0):
        assert decaying_sums(differences(VALUES, outcome), 1.0) == pytest.approx(outcome - VALUES)


def test_lambda_0_is_one_step():
    assert decaying_sums(differences(VALUES, 1.0), 0.0) == pytest.approx([0.2, -0.5, 0.6, 0.5, 0.1])


def test_sums_lead_to_the_lambda_return():
    """v_t + s_t = (1 - λ) Σ_k λ^k v_{t+k+1} + λ^{N-t} outcome."""
    lambda_, n = 0.7, len(VALUES)
    ends = np.append(VALUES, -1.0)
    for t, target in enumerate(VALUES + decaying_sums(differences(VALUES, -1.0), lambda_)):
        steps = [(1 - lambda_) * lambda_**k * ends[t + k + 1] for k in range(n - t - 1)]
        assert target == pytest.approx(sum(steps) + lambda_ ** (n - t - 1) * ends[-1])


def test_eligibility_form_is_the_forward_form():
    rng = np.random.default_rng(0)
    gradients, lambda_ = rng.normal(size=(5, 3)), 0.7
    d = clipped(differences(VALUES, -1.0), rng.random(5) < 0.5, "unpredicted")
    trace = change = np.zeros(3)
    for t in range(5):
        trace = lambda_ * trace + gradients[t]
        change = change + d[t] * trace
    assert gradients.T @ decaying_sums(d, lambda_) == pytest.approx(change)


def test_unpredicted_rises_are_dropped_but_not_the_last():
    d = differences(VALUES, 1.0)
    assert clipped(d, NOBODY, "unpredicted") == pytest.approx([0, -0.5, 0, 0, 0.1])
    assert clipped(d, np.array([True, False, False, True, False]), "unpredicted") == pytest.approx(
        [0.2, -0.5, 0, 0.5, 0.1]
    )


def test_knightcap_drops_the_last_rise_too():
    assert clipped(differences(VALUES, 1.0), ~NOBODY, "knightcap") == pytest.approx([0.2, -0.5, 0.6, 0.5, 0])
    assert clipped(differences(VALUES, -1.0), NOBODY, "knightcap") == pytest.approx([0, -0.5, 0, 0, -1.9])


def test_nothing_is_dropped_without_a_rule():
    d = differences(VALUES, 1.0)
    assert (clipped(d, NOBODY, "none") == d).all()
