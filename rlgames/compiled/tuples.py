"""What compiled code cannot express by itself: operations on all fields of a tuple at once, whatever their names.

These functions define the operations in Python; ``tuple_code`` teaches them to the compiler.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

C = TypeVar("C")
T = TypeVar("T")
Fields = TypeVar("Fields", bound=tuple[Any, ...])


def borrowed(owner: T) -> T:
    """``owner``, an array or a NamedTuple that contains arrays, without references to its memory.

    For the first line of entry points: the owner must outlive every use of the result. In Python it does nothing.
    """
    return owner


def unpack(cls: type[C], lanes: npt.NDArray[Any], j: int) -> C:
    """The NamedTuple ``cls`` with the fields in column ``j`` of ``lanes``, below the first row."""
    return cls(*lanes[1:, j])


def pack(values: tuple[Any, ...], lanes: npt.NDArray[Any], j: int) -> None:
    """Write the fields of ``values`` into column ``j`` of ``lanes``, below the first row."""
    lanes[1:, j] = values


def filled(cls: type[C], number: Any) -> C:
    """The NamedTuple ``cls`` whose fields are all ``number``."""
    return cls(*[number] * len(cls._fields))  # type: ignore[attr-defined]


def added(a: Fields, b: Fields) -> Fields:
    """``a`` + ``b``, field by field."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


def divided(a: Fields, b: Any) -> Fields:
    """``a`` with every field divided by ``b``."""
    return type(a)(*(x / b for x in a))


def with_lr(p: Fields, lr: np.floating[Any]) -> Fields:
    """The hyper-parameters ``p`` with another ``lr``."""
    return p._replace(lr=lr)  # type: ignore[attr-defined,no-any-return]
