"""The functions of this folder if numba is not installed: everything runs as plain Python."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def compilable(function: F) -> F:
    """``function`` itself."""
    return function


def value(cls: C) -> C:
    """``cls`` itself."""
    return cls


def compile_function(function: Callable[..., Any]) -> Any:
    """``function`` itself."""
    return function
