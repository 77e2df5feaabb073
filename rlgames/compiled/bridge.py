"""The bridge from Python to numba: only this folder talks to the compiler.

Three functions make it work. ``compilable`` marks a function that compiled code may call. ``value`` marks a NamedTuple
whose methods compiled code may call; a method is found by the type of the value, so one learner serves every game and
every step-size rule without a registry. ``compile_function`` compiles an entry point and keeps the machine code.
"""

import functools
import inspect
import types as python_types
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import overload, overload_method

from rlgames.compiled.cache import DiskCache
from rlgames.compiled.names import full_name, new_method

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

# Sums may be reordered; NaN and infinity keep their meaning, since training must notice them. Division by zero follows
# IEEE instead of raising an exception: that test in a loop would prevent SIMD code (measured: rules 6 times slower).
OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}

# A call with many arguments costs more than a small function does, and an agent is a hundred words: so all calls are
# inlined (a quarter more games per second; chess searches 1.4 times the nodes).
INLINED = OPTIONS | {"forceinline": True}


def compilable(function: F) -> F:
    """Let compiled code call ``function``; nothing changes in Python."""
    teach(function, lambda *args: bare(function))
    return function


def value(cls: C) -> C:
    """Let compiled code call the public methods of the NamedTuple ``cls``.

    Raises:
        TypeError: if a method has the name of a field of this or another compiled value.
    """
    full_name(cls)
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_") and new_method(name):
            overload_method(types.BaseNamedTuple, name, jit_options=INLINED)(_named(_finder(name), member))
    return cls


def _finder(name: str) -> Callable[..., Any]:
    """A function that returns the method ``name`` to compile, given the compiler's types of its arguments."""

    def find(self: Any, *args: Any) -> Any:
        method = getattr(self.instance_class, name, None)
        return method and bare(method)

    return find


def teach(
    function: Any, choose: Callable[..., Any], options: dict[str, Any] = INLINED, like: Callable[..., Any] | None = None
) -> None:
    """Let compiled code call ``function``.

    Args:
        function: any function.
        choose: returns the function to compile in its place, given the compiler's types of the arguments.
        options: for numba.
        like: function whose argument names count; None: ``function``.
    """
    overload(function, jit_options=options)(_named(choose, like or function))


def _named(choose: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """``choose`` with the argument names of ``like``, by which numba matches arguments."""
    choose.__signature__ = inspect.signature(bare(like))  # type: ignore[attr-defined]
    return choose


@functools.cache
def bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` without annotations, which numba would compare as parts of the signature."""
    code, scope = function.__code__, function.__globals__
    return python_types.FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)


def compile_function(function: Callable[..., Any]) -> Any:
    """Compile ``function`` for the argument types it is called with, once for all processes; see ``cache``."""
    return _dispatcher(function)


@functools.cache
def _dispatcher(function: Callable[..., Any]) -> Any:
    dispatcher = numba.njit(nogil=True, **OPTIONS)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = DiskCache(function)
    return dispatcher
