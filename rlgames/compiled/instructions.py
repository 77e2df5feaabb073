"""The functions of ``words`` for the compiler: int64 in, int64 out, so no sum with an index becomes a float."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rlgames.compiled.bridge import OPTIONS, teach
from rlgames.compiled.words import count_bits, highest_bit, lowest_bit, swap_bytes


def _highest(builder: Any, x: Any) -> Any:
    return builder.sub(ir.Constant(x.type, 63), builder.ctlz(x, ir.Constant(ir.IntType(1), 1)))


_INSTRUCTIONS: dict[Any, Callable[..., Any]] = {
    count_bits: lambda builder, x: builder.ctpop(x),
    lowest_bit: lambda builder, x: builder.cttz(x, ir.Constant(ir.IntType(1), 1)),
    highest_bit: _highest,
    swap_bytes: lambda builder, x: builder.bswap(x),
}


def _teach_instruction(function: Callable[..., Any], build: Callable[..., Any]) -> None:
    @intrinsic  # type: ignore[untyped-decorator]
    def instruction(_context: Any, x: Any) -> Any:
        def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return build(builder, args[0])

        return types.int64(types.int64), code

    teach(function, lambda x: lambda x: instruction(x), OPTIONS)


for _function, _build in _INSTRUCTIONS.items():
    _teach_instruction(_function, _build)
