"""Names by which compiled code tells NamedTuples apart, and finds their methods."""

import re
from typing import Any

_classes: dict[str, list[type]] = {}
_fields: set[str] = set()
_methods: set[str] = set()


def full_name(cls: Any) -> None:
    """Name the NamedTuple ``cls`` with its module, and with a number if a class of that name was there before.

    numba names machine code after the names of types, so equal names would be mixed up, as those of classes that a
    notebook defines again. People see its values under the short name still.

    Raises:
        TypeError: if a field has the name of a method, see ``new_method``.
    """
    name, short = re.sub(r"\W", "_", f"{cls.__module__}.{cls.__qualname__}"), cls.__name__
    same = _classes.setdefault(name, [])
    if cls in same:
        return
    same.append(cls)
    cls.__name__ = name if len(same) == 1 else f"{name}_{len(same)}"
    if cls.__repr__.__module__ == "collections":  # not one of the class itself
        cls.__repr__ = lambda self: f"{short}({', '.join(f'{name}={part!r}' for name, part in self._asdict().items())})"
    _fields.update(cls._fields)
    _check()


def new_method(name: str) -> bool:
    """Note ``name`` as that of a method of compiled values; whether it is new.

    Raises:
        TypeError: if it is the name of a field: for compiled code a method of one value hides the field of another.
    """
    new = name not in _methods
    _methods.add(name)
    _check()
    return new


def _check() -> None:
    both = ", ".join(sorted(_fields & _methods))
    if both:
        raise TypeError(f"{both} is both a field and a method of compiled values; rename one")
