"""Views: arrays owned elsewhere, so compiled code need not count references to them.

numba counts references, with an atomic instruction each, whenever an array is passed on or read from a tuple. An agent
is a tuple of a dozen arrays that goes through ten methods per move: counting took a third of training time. The
arguments of an entry point outlive its call, so it may work on ``borrowed`` ones; see ``tuples``.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic, models, register_model

from rlgames.compiled.bridge import teach
from rlgames.compiled.tuples import borrowed


class View(types.Array):  # type: ignore[misc]
    """The compiler's type of an array that is kept alive elsewhere."""

    def __init__(self, dtype: Any, ndim: int, layout: str, readonly: bool = False, aligned: bool = True) -> None:
        kind = f"{'' if aligned else 'unaligned '}{'readonly ' if readonly else ''}view"
        super().__init__(dtype, ndim, layout, readonly, f"{kind}({dtype}, {ndim}d, {layout})", aligned)

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> "View":
        """The same type with other properties; it makes slices of views into views."""
        return View(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            not self.mutable if readonly is None else readonly,
            self.aligned,
        )


@register_model(View)
class ViewModel(models.StructModel):  # type: ignore[misc]
    """Laid out like an array, but the reference counter is a plain address."""

    def __init__(self, manager: Any, kind: Any) -> None:
        array = models.ArrayModel(manager, kind)
        parts = [(name, array.get_type(k)) for k, name in enumerate(array._fields)]
        super().__init__(manager, kind, [(name, types.voidptr if name == "meminfo" else part) for name, part in parts])


def _viewed(kind: Any) -> Any:
    """The type ``kind`` with views in place of arrays."""
    if isinstance(kind, types.BaseNamedTuple):
        return types.BaseTuple.from_types([_viewed(part) for part in kind], kind.instance_class)
    if isinstance(kind, types.Array):
        return View(kind.dtype, kind.ndim, kind.layout, not kind.mutable, kind.aligned)
    return kind


@intrinsic  # type: ignore[untyped-decorator]
def _borrow(_context: Any, owner: Any) -> Any:
    def code(_context: Any, _builder: Any, _signature: Any, args: Any) -> Any:
        return args[0]  # the same bits

    return _viewed(owner)(owner), code


teach(borrowed, lambda owner: lambda owner: _borrow(owner), {})
