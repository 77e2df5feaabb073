"""The functions of this folder if numba is not installed: everything runs as plain Python."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

HAS_COMPILER = find_spec("numba") is not None

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


def require_compiler(what: str, instead: str = "") -> None:
    """Refuse ``what`` where numba is not installed.

    Args:
        what: needs compiled code, such as "engine=fused".
        instead: what to use in its place, if anything, such as "engine=eager".

    Raises:
        ValueError: saying how to install numba.
    """
    if not HAS_COMPILER:
        raise ValueError(f"{what} needs numba: python -m pip install numba{instead and f'; or use {instead}'}")
