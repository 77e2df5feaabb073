import math

import numpy as np
import pytest

from rlgames.evaluation.elo import Pairs, Sprt, elo, expected_score


def test_known_elo_differences():
    assert elo(0.75) == pytest.approx(190.848, abs=1e-3)
    assert elo(0.5) == 0
    assert elo(0.625) == pytest.approx(88.74, abs=0.01)  # a pawn, by tanh(beta) = 1/4
    assert expected_score(400) == pytest.approx(10 / 11)
    assert all(elo(expected_score(d)) == pytest.approx(d) for d in (-300, -7, 55))


def test_mean_and_variance_by_hand():
    pairs = Pairs((1, 2, 3, 3, 1))  # points 0 + 1 + 3 + 4.5 + 2 = 10.5 of 20
    assert (pairs.n, pairs.score) == (10, 0.525)
    squares = 0.525**2 + 2 * 0.275**2 + 3 * 0.025**2 + 3 * 0.225**2 + 0.475**2
    assert pairs.variance == pytest.approx(squares / 10)
    assert Pairs.of([0, 0.5, 0.5, 1, 1, 1, 1.5, 1.5, 1.5, 2]) == pairs


@pytest.mark.parametrize(("games", "half_width"), [(100, 57), (400, 28), (1000, 18), (4000, 9)])
def test_half_width_of_independent_games(games, half_width):
    """With 30 % draws and independent games: the pair outcomes are binomial products."""
    w, d = 0.35, 0.3
    chances = [w * w, 2 * w * d, d * d + 2 * w * w, 2 * w * d, w * w]
    pairs = Pairs(tuple(chance * games / 2 for chance in chances))
    low, high = (elo(bound) for bound in pairs.interval)
    assert (high - low) / 2 == pytest.approx(half_width, abs=0.6)


def test_interval_covers_the_truth():
    rng = np.random.default_rng(0)
    chances = [0.05, 0.2, 0.35, 0.3, 0.1]
    truth = sum(k / 4 * chance for k, chance in enumerate(chances))
    inside = 0
    for _ in range(2000):
        low, high = Pairs(tuple(rng.multinomial(100, chances))).interval
        inside += low <= truth <= high
    assert 0.935 < inside / 2000 < 0.965


def test_los_is_the_classic_formula_for_independent_games():
    """W wins and L losses in independent games: (1 + erf((W - L) / sqrt(2 (W + L)))) / 2, close to a score of 1/2."""
    w, d, losses = 0.36, 0.3, 0.34
    chances = [losses * losses, 2 * losses * d, d * d + 2 * w * losses, 2 * w * d, w * w]
    pairs = Pairs(tuple(chance * 500 for chance in chances))
    assert pairs.los == pytest.approx(0.5 * (1 + math.erf(20 / math.sqrt(2 * 700))), abs=2e-3)


@pytest.mark.parametrize(
    "counts", [(0, 0, 0, 0, 5), (5, 0, 0, 0, 0), (0, 0, 5, 0, 0), (0, 0, 0, 0, 1), (0, 0, 1, 0, 0)]
)
def test_extreme_results_stay_numbers(counts):
    pairs = Pairs(counts)
    assert all(0 <= bound <= 1 for bound in pairs.interval)
    assert pairs.interval[0] < pairs.interval[1]
    assert 0 <= pairs.los <= 1
    assert "nan" not in str(pairs)
    assert "inf" not in str(pairs)
    assert math.isfinite(Sprt().llr(pairs))


def test_a_clean_sweep_is_a_bound():
    assert str(Pairs((0, 0, 0, 0, 5))).startswith("Elo above +")
    assert str(Pairs((5, 0, 0, 0, 0))).startswith("Elo below -")
    assert elo(Pairs((0, 0, 0, 0, 10)).interval[1]) == math.inf


def test_nothing_played():
    with pytest.raises(ValueError, match="no pair"):
        _ = Pairs().interval
    assert Pairs().los == 0.5
    assert str(Pairs()) == "no pair of games was completed"


def test_sprt_bounds_and_ratio():
    test = Sprt(0, 10)
    assert test.bounds == pytest.approx((-2.9444, 2.9444), abs=1e-4)
    pairs = Pairs((50, 200, 400, 260, 90))
    s1 = expected_score(10)
    assert test.llr(pairs) == pytest.approx(1000 * (s1 - 0.5) * (2 * pairs.score - 0.5 - s1) / (2 * pairs.variance))
    assert test.verdict(pairs) == "H1"
    assert test.verdict(Pairs((90, 260, 400, 200, 50))) == "H0"
    assert test.verdict(Pairs((1, 2, 3, 2, 1))) is None


def test_sprt_errs_as_seldom_as_it_says():
    """Under the hypothesis "0 stronger", "50 stronger" is accepted in about 5 % of the tests."""
    rng, test, wrong = np.random.default_rng(1), Sprt(0, 50), 0
    chances = [0.1, 0.2, 0.4, 0.2, 0.1]
    for _ in range(300):
        counts = np.zeros(5, int)
        verdict = None
        while verdict is None:
            counts += rng.multinomial(5, chances)
            verdict = test.verdict(Pairs(tuple(counts)))
        wrong += verdict == "H1"
    assert wrong / 300 < 0.09
