"""From the values of a game's positions to what each of them learns: temporal differences and their decaying sums.

Values v_1 ... v_N are those of one player's own positions, for that player; behind the last stands the outcome.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating[Any]]

CLIPS = ("none", "unpredicted", "knightcap")


def differences(values: Numbers, outcome: float) -> Numbers:
    """d_t = v_{t+1} - v_t, the outcome standing behind the last value; ``[N]``."""
    d: Numbers = np.diff(values, append=outcome)
    return d


def clipped(d: Numbers, predicted: npt.NDArray[np.bool_], rule: str) -> Numbers:
    """``d`` without gains that the opponent may have given away by a mistake (Baxter, Tridgell & Weaver 1999).

    Args:
        d: differences, ``[N]``.
        predicted: whether the opponent answered as the player had expected, ``[N]``; of the last no matter what.
        rule: ``none``; ``unpredicted``: rises become 0 unless the reply was predicted, except the last difference,
            which leads to the outcome; ``knightcap``: the last one too, as in KnightCap's program, so that wins teach
            nothing by themselves.
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
