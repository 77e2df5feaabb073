"""What is installed here, what is missing, and where things are kept: ``python -m rlgames.info``."""

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from rlgames.console.cli import show
from rlgames.console.extras import extras


def devices() -> str:
    """Where tensors can live: the CPU and CUDA devices."""
    import torch

    cuda = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"cpu ({cores} cores, torch uses {torch.get_num_threads()}), {', '.join(cuda) or 'no CUDA device'}"


def compiled() -> str:
    """The disk cache of machine code: where it is and what it holds."""
    from rlgames.compiled import HAS_COMPILER

    if not HAS_COMPILER:
        return "none without numba, engine=eager only; python -m pip install numba"
    from rlgames.compiled.cache import SUFFIX, cache_folder

    folder = cache_folder()
    if folder is None:
        return "no folder can be written; every process recompiles (set NUMBA_CACHE_DIR to a folder)"
    kept, size = _count(Path(folder).glob(f"*{SUFFIX}"))
    return f"{folder}: " + (
        f"{kept} functions, {size:.1f} MB" if kept else "empty, the first run compiles (half a minute)"
    )


def _count(files: Iterable[Path]) -> tuple[int, float]:
    """The number of ``files``, and their size in megabytes."""
    sizes = [file.stat().st_size for file in files]
    return len(sizes), sum(sizes) / 1e6


def report() -> str:
    """Everything, as text."""
    from rlgames import __version__
    from rlgames.build import CONF
    from rlgames.players.solved import cache_folder as solved_folder
    from rlgames.players.solver import SOLVED
    from rlgames.training.records import versions

    found = versions()
    commit = f" ({found.pop('commit')})" if found.get("commit") else ""
    names = [f"{name} {number}" for name, number in found.items() if name not in ("python", "rlgames") and number]
    solved = solved_folder() / SOLVED
    size = f"{solved.stat().st_size / 1e6:.1f} MB" if solved.is_file() else "none yet"
    return "\n".join(
        [
            f"rlgames {__version__}{commit}, Python {found['python']}, {platform.platform()}",
            f"packages: {', '.join(names)}",
            f"devices: {devices()}",
            f"configuration: {CONF}",
            f"compiled code: {compiled()}",
            f"solved positions: {solved}: {size}",
            "extras:",
            *extras(),
        ]
    )


if __name__ == "__main__":
    if {"--help", "-h"} & set(sys.argv[1:]):
        show("python -m rlgames.info\n\nPrints versions, devices, caches and missing extras; takes no words.")
    elif sys.argv[1:]:
        sys.exit(f"error: rlgames.info takes no words, but got {' '.join(sys.argv[1:])}")
    else:
        show(report())
