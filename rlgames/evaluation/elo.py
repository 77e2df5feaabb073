"""How much stronger is one player than another? Elo and its error from games played in pairs.

Both games of a pair start from the same opening, with colours swapped. What an opening gives to one colour cancels
within a pair, so the pair, not the game, is the independent trial: it scores 0, 1/2, 1, 3/2 or 2 points, and the counts
of these five outcomes ("pentanomial") are all that the formulas need.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from rlgames.evaluation.matches import wilson


def elo(score: float) -> float:
    """Elo difference D at which the expected score 1 / (1 + 10^(-D/400)) is ``score``; infinite at 0 and 1."""
    if not 1e-9 < score < 1 - 1e-9:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


def expected_score(difference: float) -> float:
    """Expected score of the player who is ``difference`` Elo stronger."""
    return 1 / (1 + 10 ** (-difference / 400))


def in_words(low: float, middle: float, high: float) -> str:
    """An Elo difference with its interval; after a clean sweep, only the finite bound."""
    if math.isinf(middle):
        return f"above {low:+.0f}" if middle > 0 else f"below {high:+.0f}"
    return f"{middle:+.0f} [{low:+.0f}, {high:+.0f}]"


class Pairs(NamedTuple):
    """Pairs of games by the first player's points.

    Attributes:
        counts: number of pairs with 0, 1/2, 1, 3/2 and 2 points.
    """

    counts: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    @classmethod
    def of(cls, points: Iterable[float]) -> "Pairs":
        """Count pairs, given the points of each."""
        counts = [0] * 5
        for point in points:
            counts[round(2 * point)] += 1
        return cls((counts[0], counts[1], counts[2], counts[3], counts[4]))

    @property
    def n(self) -> int:
        """Number of pairs."""
        return sum(self.counts)

    @property
    def score(self) -> float:
        """Mean score per game, 0 to 1; 1/2 if nothing was played."""
        return sum(k / 4 * count for k, count in enumerate(self.counts)) / self.n if self.n else 0.5

    @property
    def variance(self) -> float:
        """Variance of the score of one pair; at least what a single pair off by half a point would cause."""
        mean = self.score
        seen = sum(count * (k / 4 - mean) ** 2 for k, count in enumerate(self.counts)) / max(1, self.n)
        return max(seen, 1 / (16 * max(1, self.n)))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score: Wilson's, for as many independent games as have the observed variance.

        Raises:
            ValueError: if nothing was played.
        """
        if not self.n:
            raise ValueError("no pair of games was completed")
        score = self.score
        games = score * (1 - score) / self.variance * self.n or 2.0 * self.n  # all won or all lost: two per pair
        return wilson(score, games)

    @property
    def los(self) -> float:
        """Likelihood of superiority: the probability that the first player is the stronger one."""
        return 0.5 * (1 + math.erf((self.score - 0.5) * math.sqrt(max(1, self.n) / (2 * self.variance))))

    def __str__(self) -> str:
        """For instance ``Elo +63 [+34, +94], LOS 100.0 %, pairs 10-20-50-60-10``."""
        if not self.n:
            return "no pair of games was completed"
        low, high = (elo(bound) for bound in self.interval)
        counts = "-".join(map(str, self.counts))
        return f"Elo {in_words(low, elo(self.score), high)}, LOS {100 * self.los:.1f} %, pairs {counts}"


class Sprt(NamedTuple):
    """Sequential probability ratio test of "``elo1`` stronger" against "``elo0`` stronger", logistic Elo.

    LLR = N (s1 - s0) (2 s - s0 - s1) / (2 variance), the normal approximation for N pairs of mean score s. The test
    decides but does not measure: to measure, play a fixed number of games.

    Attributes:
        elo0, elo1: the hypotheses, elo0 < elo1.
        alpha, beta: probabilities of wrongly accepting elo1 and elo0, 0 to 1/2.
    """

    elo0: float = 0.0
    elo1: float = 10.0
    alpha: float = 0.05
    beta: float = 0.05

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the LLR, outside which the test ends (Wald 1945)."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def llr(self, pairs: Pairs) -> float:
        """Logarithm of the likelihood ratio; 0 if nothing was played."""
        s0, s1 = expected_score(self.elo0), expected_score(self.elo1)
        return pairs.n * (s1 - s0) * (2 * pairs.score - s0 - s1) / (2 * pairs.variance)

    def verdict(self, pairs: Pairs) -> Literal["H0", "H1"] | None:
        """The accepted hypothesis, or None while more games are needed."""
        low, high = self.bounds
        llr = self.llr(pairs)
        return "H1" if llr >= high else "H0" if llr <= low else None
