"""What each position of a game learns from the values of all: temporal differences and their decaying sums.

Values v_1 ... v_N are those of one player's own positions, for that player; the outcome follows the last.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating[Any]]

CLIPS = ("none", "unpredicted", "knightcap")


def differences(values: Numbers, outcome: float) -> Numbers:
    """d_t = v_{t+1} - v_t, where the outcome follows the last value; ``[N]``."""
    d: Numbers = np.diff(values, append=outcome)
    return d


def clipped(d: Numbers, predicted: npt.NDArray[np.bool_], rule: str) -> Numbers:
    """``d`` without gains that may come from a mistake of the opponent (Baxter, Tridgell & Weaver 1999).

    Args:
        d: differences, ``[N]``.
        predicted: whether the opponent replied as the player expected, ``[N]``; the last entry is ignored.
        rule: ``none``; ``unpredicted``: rises become 0 unless the reply was predicted, except the last difference,
            which leads to the outcome; ``knightcap``: a last rise becomes 0 too, as in KnightCap's program, so wins
            alone teach nothing.
    """
    if rule == "none":
        return d
    drop = (d > 0) & ~predicted
    drop[-1:] = rule == "knightcap" and bool(d[-1] > 0)
    return np.where(drop, 0.0, d)


def decaying_sums(d: Numbers, lambda_: float) -> Numbers:
    """s_t = Σ_{j ≥ t} λ^{j-t} d_j, which moves v_t towards its λ-return (Baxter et al. 1999, eq. 4); ``[N]``."""
    sums = np.empty_like(d)
    total = 0.0
    for t in range(len(d) - 1, -1, -1):
        sums[t] = total = d[t] + lambda_ * total
    return sums
