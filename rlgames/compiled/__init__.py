"""One source, run twice: the functions of this package are plain Python, and numba compiles the same source.

``docs/compiled.md`` follows one weight through one step. Without numba, the functions below leave Python as it is.
"""

from rlgames.compiled.names import full_name
from rlgames.compiled.precision import single_precision
from rlgames.compiled.tuples import added, borrowed, divided, filled, pack, unpack, with_lr
from rlgames.compiled.without import HAS_COMPILER, require_compiler

if HAS_COMPILER:
    from rlgames.compiled import instructions, tuple_code, views  # noqa: F401 # importing them teaches numba
    from rlgames.compiled.bridge import compilable, compile_function, value
else:
    from rlgames.compiled.without import compilable, compile_function, value

__all__ = [
    "HAS_COMPILER",
    "added",
    "borrowed",
    "compilable",
    "compile_function",
    "divided",
    "filled",
    "full_name",
    "pack",
    "require_compiler",
    "single_precision",
    "unpack",
    "value",
    "with_lr",
]
