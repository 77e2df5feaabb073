"""One text, run twice: the functions of this package are plain Python, and numba compiles the same text."""

from rlgames.compiled import torch_names, words  # noqa: F401 # they teach numba when they are imported
from rlgames.compiled.bridge import (
    bridge,
    check_names,
    compilable,
    compile_function,
    full_name,
    single_precision,
    value,
)

__all__ = ["bridge", "check_names", "compilable", "compile_function", "full_name", "single_precision", "value"]
