"""One text, run twice: the functions of this package are plain Python, and numba compiles the same text.

Three tools make that work, and nothing else in the package talks to the compiler's typing:

* ``compilable`` marks a helper function that compiled code may call;
* ``value`` marks a NamedTuple whose methods compiled code may call. The method is found by the type of the value, so
  that one learner serves every game and every step-size rule without a registry;
* ``compile_function`` compiles an entry point and keeps the machine code on disk for the next process.

Step-size rules are written in torch; ``torch.exp`` and its kin are taught to numba here, for one number at a time.
"""

import functools
import inspect
import re
import types as python_types
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.extending import overload, overload_method

from rlgames.compiled.cache import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

# Sums may be reordered; NaN and infinity keep their meaning, since training must notice them. Division by zero gives
# what IEEE says instead of a Python exception: that test in a loop would forbid SIMD code (measured: 6 times slower
# rules).
OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}


# Calls with many arguments cost more than small functions do, and an agent is a hundred words: the text of a function
# stands in place of every call (a quarter more games per second; chess searches 1.4 times the nodes).
INLINED = OPTIONS | {"forceinline": True}


def compilable(function: F) -> F:
    """Let compiled code call ``function``; in Python it stays what it is."""
    overload(function, jit_options=INLINED)(chooser(function, lambda *args: bare(function)))
    return function


def value(cls: C) -> C:
    """Let compiled code call the public methods of the NamedTuple ``cls``."""
    full_name(cls)
    check_names(cls)
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            _bridge(name, member)
    return cls


_named: dict[str, list[type]] = {}


def full_name(cls: type) -> None:
    """Name ``cls`` with its module, and with a number if a class of that name was there before, as in notebooks.

    numba names machine code after the names of types, so equal names would be mixed up.
    """
    name = re.sub(r"\W", "_", f"{cls.__module__}.{cls.__qualname__}")
    same = _named.setdefault(name, [])
    if cls not in same:
        same.append(cls)
        cls.__name__ = name if len(same) == 1 else f"{name}_{len(same)}"


_bridged: set[str] = set()  # names of methods
_fields: set[str] = set()


def check_names(cls: Any) -> None:
    """Remember the fields of the NamedTuple ``cls``.

    For compiled code a method of one value hides the field of another.

    Raises:
        TypeError: if a field has the name of a method.
    """
    _fields.update(cls._fields)
    if _fields & _bridged:
        raise TypeError(
            f"{cls}: {', '.join(_fields & _bridged)} is both a field and a method of compiled values; rename one"
        )


def _bridge(name: str, member: Callable[..., Any]) -> None:
    if name not in _bridged:
        bridge(name, member, lambda self, *args: getattr(self.instance_class, name, None))


def bridge(name: str, like: Callable[..., Any], choose: Callable[..., Any]) -> None:
    """Let compiled code call method ``name`` of NamedTuples.

    Args:
        name: of the method.
        like: shows the method's signature.
        choose: gets the compiler's types of the arguments and returns the function to compile, or None.
    """
    _bridged.add(name)

    def bare_choice(*args: Any) -> Any:
        function = choose(*args)
        return function and bare(function)

    overload_method(types.BaseNamedTuple, name, jit_options=INLINED)(chooser(like, bare_choice))


def chooser(like: Callable[..., Any], choose: Callable[..., Any]) -> Callable[..., Any]:
    """``choose`` with the signature of ``like``, by which numba matches arguments."""
    choose.__signature__ = inspect.signature(bare(like))  # type: ignore[attr-defined]
    return choose


@functools.cache
def bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` without annotations, which numba would compare as parts of the signature."""
    code, scope = function.__code__, function.__globals__
    return python_types.FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)


# ---- compilation and its disk cache


def compile_function(function: Callable[..., Any]) -> Any:
    """Compile ``function`` for the types it meets, with a disk cache that knows when any source has changed.

    The compiled code is kept per text of the whole package and of the user's rules, because numba by itself only looks
    at the file of the entry point.
    """
    return _compile(function, cache_folder())


@functools.cache
def _compile(function: Callable[..., Any], folder: str | None) -> Any:
    if folder is None:
        return numba.njit(nogil=True, **OPTIONS)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        return numba.njit(cache=True, nogil=True, **OPTIONS)(function)
    finally:
        numba.config.CACHE_DIR = before


def single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with float32 constants: in compiled code ``1 - x`` of a float32 would become float64."""
    code = function.__code__
    constants = tuple(np.float32(c) if type(c) in (int, float) else c for c in code.co_consts)
    return python_types.FunctionType(code.replace(co_consts=constants), function.__globals__, function.__name__)
