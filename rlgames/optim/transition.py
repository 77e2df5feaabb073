"""What a rule is given in one step of learning."""

from typing import Any, NamedTuple


class Transition(NamedTuple):
    """What a weight is given in one step of learning.

    Attributes:
        delta: TD error.
        slope: derivative of the output unit at the current value (1 for linear units).
        x: gradient of the sum before the output unit, i.e. the feature; 0 where the weight is not active.
        e: eligibility trace; without traces the gradient of the value, slope * x (for ``cross_entropy`` rules, x).
        x_next: gamma times the feature of the next position; 0 where it is not active, after the last position, and for
            rules that do not look ahead. Where a rule needs gradients, the slope at the present position serves for
            both, as in Thill 2015, eq. 5.1.
        decay: gamma * lambda, by which the trace has just decayed; 0 without traces.
        sum: of the rule's ``total`` over the eligible weights.
    """

    delta: Any
    slope: Any
    x: Any
    e: Any
    x_next: Any
    decay: Any
    sum: Any
