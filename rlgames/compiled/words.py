"""Single machine instructions on 64-bit words (int64, so that no sum with an index becomes a float)."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from rlgames.compiled.bridge import OPTIONS


def count_bits(x: int) -> int:
    """Number of ones."""
    return (x & 2**64 - 1).bit_count()


def lowest_bit(x: int) -> int:
    """Place of the lowest one; undefined for 0."""
    return (x & -x & 2**64 - 1).bit_length() - 1


def highest_bit(x: int) -> int:
    """Place of the highest one; undefined for 0."""
    return (x & 2**64 - 1).bit_length() - 1


def swap_bytes(x: int) -> int:
    """The eight bytes in reverse order."""
    return int.from_bytes((x & 2**64 - 1).to_bytes(8, "little"), "big", signed=True)


def _highest(builder: Any, x: Any) -> Any:
    return builder.sub(ir.Constant(x.type, 63), builder.ctlz(x, ir.Constant(ir.IntType(1), 1)))


_INSTRUCTIONS: dict[Any, Callable[..., Any]] = {
    count_bits: lambda builder, x: builder.ctpop(x),
    lowest_bit: lambda builder, x: builder.cttz(x, ir.Constant(ir.IntType(1), 1)),
    highest_bit: _highest,
    swap_bytes: lambda builder, x: builder.bswap(x),
}


def _teach(function: Callable[..., Any], build: Callable[..., Any]) -> None:
    @intrinsic  # type: ignore[untyped-decorator]
    def instruction(_context: Any, x: Any) -> Any:
        def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return build(builder, args[0])

        return types.int64(types.int64), code

    overload(function, jit_options=OPTIONS)(lambda x: lambda x: instruction(x))


for _function, _build in _INSTRUCTIONS.items():
    _teach(_function, _build)
