"""The functions of ``tuples`` for the compiler."""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic, register_jitable

from rlgames.compiled.bridge import INLINED, teach
from rlgames.compiled.tuples import added, divided, filled, pack, unpack, with_lr


@intrinsic  # type: ignore[untyped-decorator]
def _repeat(_context: Any, cls: Any, number: Any) -> Any:
    result = types.NamedUniTuple(number, len(cls.instance_class._fields), cls.instance_class)

    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, result, [args[1]] * len(result))

    return result(cls, number), code


teach(filled, lambda cls, number: lambda cls, number: _repeat(cls, number))


def _inlined(function: Callable[..., Any]) -> Any:
    return register_jitable(**INLINED)(function)


def _field_by_field(n: int, operation: Callable[..., Any], k: int = 0) -> Any:
    """A function that computes ``operation(a, b, k)`` for fields ``k`` to ``n`` - 1: for the first, then the rest."""
    if k == n:
        return _inlined(lambda a, b: ())
    rest = _field_by_field(n, operation, k + 1)
    return _inlined(lambda a, b: (operation(a, b, k),) + rest(a, b))  # noqa: RUF005


def _on_fields(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Chooses, by the types of ``a`` and ``b``, the function that applies ``operation`` to every field of ``a``."""

    def choose(a: Any, b: Any) -> Callable[..., Any]:
        new, fields = a.instance_class, _field_by_field(len(a), _inlined(operation))
        return lambda a, b: new(*fields(a, b))

    return choose


teach(added, _on_fields(lambda a, b, k: a[k] + b[k]))
teach(divided, _on_fields(lambda a, b, k: a[k] / b))


def _unpack(cls: Any, lanes: Any, j: Any) -> Callable[..., Any]:
    new = cls.instance_class
    fields = _field_by_field(len(new._fields), _inlined(lambda lanes, j, k: lanes[k + 1, j]))
    return lambda cls, lanes, j: new(*fields(lanes, j))


def _writer(n: int) -> Any:
    """A function that writes the first ``n`` fields of ``values``."""
    if n == 0:
        return _inlined(lambda values, lanes, j: None)
    before, k = _writer(n - 1), n - 1

    def write(values, lanes, j):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 # numba compares signatures
        before(values, lanes, j)
        lanes[n, j] = values[k]

    return _inlined(write)


def _pack(values: Any, lanes: Any, j: Any) -> Callable[..., Any]:
    write = _writer(len(values))
    return lambda values, lanes, j: write(values, lanes, j)


teach(unpack, _unpack)
teach(pack, _pack)


@intrinsic  # type: ignore[untyped-decorator]
def _with_lr(_context: Any, p: Any, lr: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        context.nrt.incref(builder, p, args[0])  # for the arrays in it
        return builder.insert_value(args[0], args[1], p.fields.index("lr"))

    return p(p, lr), code


teach(with_lr, lambda p, lr: lambda p, lr: _with_lr(p, lr))
