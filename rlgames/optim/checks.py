"""Checks of numbers: each returns a valid value or raises a ValueError that names the fault."""

from typing import Any

import torch
from torch import Tensor

MOST = 1e6  # beyond it a step in single precision forgets the weight that it changes


def plain(number: Any) -> Any:
    """The Python number in place of a numpy or torch one (of any shape with one entry); anything else unchanged."""
    try:
        return number.item()
    except (AttributeError, RuntimeError, TypeError, ValueError):  # no such method, or several entries
        return number


def is_number(value: Any) -> bool:
    """Whether ``value`` is a Python number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def positive(name: str, number: float, *, zero: bool = False, most: float = MOST) -> float:
    """``number`` if it is above 0 (or 0, where allowed) and at most ``most``.

    Raises:
        ValueError: naming the hyper-parameter, its value and what is allowed.
    """
    value = plain(number)
    if not is_number(value) or not 0 <= value <= most or (value == 0 and not zero):
        least = "of at least" if zero else "above"
        raise ValueError(f"optimizer.{name} is {value!r}; it must be a number {least} 0 and at most {most:g}")
    return float(value)


def between(name: str, number: float, low: float, high: float) -> float:
    """``number`` if it is from ``low`` to ``high``.

    Raises:
        ValueError: naming the hyper-parameter, its value and what is allowed.
    """
    value = plain(number)
    if not is_number(value) or not low <= value <= high:
        raise ValueError(f"optimizer.{name} is {value!r}; it must be a number from {low} to {high}")
    return float(value)


def flag(name: str, value: bool) -> bool:
    """``value`` if it is True or False.

    Raises:
        ValueError: naming the hyper-parameter and its value.
    """
    value = plain(value)
    if not isinstance(value, bool):
        raise ValueError(f"optimizer.{name} is {value!r}; it must be true or false")
    return value


def finite(tensor: Tensor | float) -> bool:
    """Whether no entry is infinite or NaN. A sparse tensor must be coalesced."""
    tensor = torch.as_tensor(tensor)  # a rule may set a plain number
    values = tensor.values() if tensor.is_sparse else tensor
    return bool((0 * values).sum() == 0)  # half the time of torch.isfinite(values).all()
