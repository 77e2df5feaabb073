"""Names by which compiled code tells NamedTuples apart, and finds their methods."""

import re
from typing import Any

_classes: dict[str, list[type]] = {}
_fields: set[str] = set()
_methods: set[str] = set()


def full_name(cls: Any) -> None:
    """Add its module to the name of the NamedTuple ``cls``, and a number if that name is taken.

    numba names machine code after types, so equal names would be mixed up, as when a notebook redefines a class.
    Values still print under the short name.

    Raises:
        TypeError: if a field has the name of a method; see ``new_method``.
    """
    name, short = re.sub(r"\W", "_", f"{cls.__module__}.{cls.__qualname__}"), cls.__name__
    same = _classes.setdefault(name, [])
    if cls in same:
        return
    same.append(cls)
    cls.__name__ = name if len(same) == 1 else f"{name}_{len(same)}"
    if cls.__repr__.__module__ == "collections":  # the class has none of its own
        cls.__repr__ = lambda self: f"{short}({', '.join(f'{name}={part!r}' for name, part in self._asdict().items())})"
    _fields.update(cls._fields)
    _check()


def new_method(name: str) -> bool:
    """Record ``name`` as a method of compiled values; return whether it is new.

    Raises:
        TypeError: if it is the name of a field: in compiled code a method of one value hides a field of another.
    """
    new = name not in _methods
    _methods.add(name)
    _check()
    return new


def _check() -> None:
    both = ", ".join(sorted(_fields & _methods))
    if both:
        raise TypeError(f"{both} is both a field and a method of compiled values; rename one")
