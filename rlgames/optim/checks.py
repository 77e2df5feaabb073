"""Checks of hyper-parameters: each returns the good value or raises a ValueError that names what is wrong."""

import math


def positive(name: str, number: float, *, zero: bool = False) -> float:
    """``number`` if it is finite and above 0 (or 0, where allowed).

    Raises:
        ValueError: naming the hyper-parameter, its value and what is allowed.
    """
    ok = not isinstance(number, bool) and isinstance(number, int | float) and math.isfinite(number)
    if not ok or number < 0 or (number == 0 and not zero):
        least = "of at least" if zero else "above"
        raise ValueError(f"optimizer.{name} is {number!r}; it must be a finite number {least} 0")
    return float(number)


def between(name: str, number: float, low: float, high: float) -> float:
    """``number`` if it is from ``low`` to ``high``.

    Raises:
        ValueError: naming the hyper-parameter, its value and what is allowed.
    """
    ok = not isinstance(number, bool) and isinstance(number, int | float) and low <= number <= high
    if not ok:
        raise ValueError(f"optimizer.{name} is {number!r}; it must be a number from {low} to {high}")
    return float(number)


def flag(name: str, value: bool) -> bool:
    """``value`` if it is True or False.

    Raises:
        ValueError: naming the hyper-parameter and its value.
    """
    if not isinstance(value, bool):
        raise ValueError(f"optimizer.{name} is {value!r}; it must be true or false")
    return value
