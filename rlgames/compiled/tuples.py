"""What compiled code cannot say of tuples by itself: something about all fields at once, whatever they are called.

Here is what each word means in Python; ``tuple_code`` is what the compiler makes of it.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

C = TypeVar("C")
T = TypeVar("T")
Fields = TypeVar("Fields", bound=tuple[Any, ...])


def borrowed(owner: T) -> T:
    """``owner``, an array or a NamedTuple of such and others, without references to its memory.

    For the first line of entry points: the owner must outlive what is done with the result. In Python nothing happens.
    """
    return owner


def unpack(cls: type[C], lanes: npt.NDArray[Any], j: int) -> C:
    """The NamedTuple ``cls`` whose fields stand in column ``j`` of ``lanes``, below the first row."""
    return cls(*lanes[1:, j])


def pack(values: tuple[Any, ...], lanes: npt.NDArray[Any], j: int) -> None:
    """Write the fields of ``values`` into column ``j`` of ``lanes``, below the first row."""
    lanes[1:, j] = values


def filled(cls: type[C], number: Any) -> C:
    """The NamedTuple ``cls`` whose fields are all ``number``."""
    return cls(*[number] * len(cls._fields))  # type: ignore[attr-defined]


def added(a: Fields, b: Fields) -> Fields:
    """The NamedTuple of the sums of the fields of ``a`` and ``b``."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


def divided(a: Fields, b: Any) -> Fields:
    """The NamedTuple of the fields of ``a``, each divided by ``b``."""
    return type(a)(*(x / b for x in a))


def with_lr(p: Fields, lr: np.floating[Any]) -> Fields:
    """``p``, hyper-parameters, with another ``lr``."""
    return p._replace(lr=lr)  # type: ignore[attr-defined,no-any-return]
