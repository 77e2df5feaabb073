"""Where machine code is kept: a folder per text of the package and of the user's rules, in the user's cache."""

import contextlib
import functools
import hashlib
import marshal
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numba
import torch

_user_sources: dict[str, bytes] = {}


def depends_on(cls: type) -> None:
    """Recompile when the text of ``cls``, a rule outside this package, changes: its file, or its code in a notebook."""
    if cls.__module__.split(".")[0] == "rlgames":
        return
    file = Path(getattr(sys.modules.get(cls.__module__), "__file__", None) or "<stdin>")
    code = [marshal.dumps(f.__func__.__code__) for f in vars(cls).values() if isinstance(f, staticmethod)]
    _user_sources[f"{cls.__module__}.{cls.__qualname__}"] = file.read_bytes() if file.is_file() else b"".join(code)


def cache_folder() -> str | None:
    """Folder for machine code, named after the texts it came from; None where nothing can be written."""
    texts = b"".join(text for _, text in sorted(_user_sources.items()))
    return _writable_folder(hashlib.sha256(_package_digest() + texts).hexdigest()[:16])


@functools.cache  # every move of a trained agent asks
def _package_digest() -> bytes:
    """Of all texts of the package but those of programs, which handle configurations and compile nothing."""
    texts = [file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))]
    versions = f"{numba.__version__} {torch.__version__} {numba.config.BOUNDSCHECK}".encode()
    compiled = (text for text in texts if b"import DictConfig" not in text)
    return hashlib.sha256(versions + b"".join(compiled)).digest()


@functools.cache
def _writable_folder(name: str) -> str | None:
    for root in _cache_roots():
        folder = root / name
        try:
            new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)  # the last use
        except OSError:
            continue
        if new:
            _remove_unused(root)
        return str(folder)
    return None


def _remove_unused(root: Path, days: float = 30.0) -> None:
    """Remove the folders of ``cache_folder`` that no process has begun to use for so many ``days``.

    A process that still runs makes its folder anew when it next compiles.
    """
    for folder in root.iterdir():
        with contextlib.suppress(OSError):  # another process was quicker, or it is not ours to remove
            if re.fullmatch("[0-9a-f]{16}", folder.name) and time.time() - folder.stat().st_mtime > days * 86_400:
                shutil.rmtree(folder)


def _cache_roots() -> Iterable[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen)
        return
    user = os.environ.get("XDG_CACHE_HOME")
    yield Path(user) / "rlgames" if user else Path(os.path.expanduser("~")) / ".cache" / "rlgames"
    with contextlib.suppress(OSError):  # of a machine on which nothing can be written
        yield Path(tempfile.gettempdir()) / f"rlgames-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
