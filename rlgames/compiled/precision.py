"""Formulas in single precision."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np


def single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with float32 constants: without them, compiled ``1 - x`` of a float32 would become float64."""
    code = function.__code__
    constants = tuple(np.float32(c) if type(c) in (int, float) else c for c in code.co_consts)
    return FunctionType(code.replace(co_consts=constants), function.__globals__, function.__name__)
