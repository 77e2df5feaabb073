"""Torch functions that compiled rules may use, on one number at a time; imported with rules, as torch takes long."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rlgames.compiled.bridge import OPTIONS, bare, teach


@intrinsic  # type: ignore[untyped-decorator]
def _float_from_bits(_context: Any, bits: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


def _exp32(x: Any) -> Any:
    """The exponential by range reduction and a polynomial (relative error 1e-7); it has no call, so it becomes SIMD."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))  # exp(x) = 2**n exp(r), |r| <= ln(2) / 2
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    y = np.float32(1.0 / 720.0) + r * np.float32(1.0 / 5040.0)
    y = np.float32(1.0 / 120.0) + r * y
    y = np.float32(1.0 / 24.0) + r * y
    y = np.float32(1.0 / 6.0) + r * y
    y = np.float32(1.0) + r + r * r * (np.float32(0.5) + r * y)
    return y * _float_from_bits((np.int32(n) + np.int32(127)) << np.int32(23))


def _exp64(x: Any) -> Any:
    return math.exp(x)


CONTRACT = OPTIONS | {"fastmath": {"contract"}}  # the range reduction must not be reordered
teach(torch.exp, lambda x: bare(_exp32 if x == types.float32 else _exp64), CONTRACT, like=_exp64)
_NAMES: dict[Any, Callable[..., Any]] = {
    torch.abs: lambda x: abs(x),
    torch.log: lambda x: math.log(x),
    torch.sqrt: lambda x: math.sqrt(x),
    torch.sign: lambda x: np.sign(x),
    torch.relu: lambda x: np.maximum(x, np.float32(0)),
    torch.square: lambda x: x * x,
    torch.minimum: lambda x, y: min(x, y),
    torch.maximum: lambda x, y: max(x, y),
    torch.where: lambda c, x, y: x if c else y,
    torch.clamp: lambda x, low, high: min(max(x, low), high),
    torch.clamp_min: lambda x, y: max(x, y),
    torch.clamp_max: lambda x, y: min(x, y),
}
for _name, _scalar in _NAMES.items():
    teach(_name, lambda *args, scalar=_scalar: scalar, OPTIONS, like=_scalar)
