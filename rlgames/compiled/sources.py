"""What machine code is made from: all sources that a compiled function and the types of its arguments depend on.

A change in any of them must make new machine code; a change elsewhere, or to a comment or docstring, must not. Whole
modules count, as syntax trees without docstrings: those of the function and of the NamedTuples passed to it, those of
all functions and classes in their namespaces, and so on, inside the package and outside. Numbers and arrays in a
namespace count by value, wherever they came from. Code typed into a notebook has no module to read and counts by its
bytecode.
"""

import ast
import functools
import hashlib
import inspect
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_BEGIN = datetime.now()  # a plain number would count as a constant of this very module, see ``_values``


class ChangedError(Exception):
    """A source was written after the process started, so nobody knows what was loaded from it."""


def fingerprint(roots: Iterable[Any]) -> bytes:
    """A hash of the sources of the functions and classes ``roots`` and of everything they depend on.

    Raises:
        ChangedError: if a source is younger than the process.
    """
    digest = hashlib.sha256()
    modules: dict[str, ModuleType] = {}
    _follow(sys.modules[__package__], modules)
    for root in roots:
        for part in _live(root, set()):
            digest.update(part)
        _follow(sys.modules.get(root.__module__), modules)
    for name in sorted(modules):
        digest.update(name.encode() + _source(modules[name]).digest)
        for part in _values(modules[name]):
            digest.update(part)
    return digest.digest()


class Source(NamedTuple):
    """What counts of a source file.

    Attributes:
        digest: hash of its syntax tree without docstrings.
        imports: modules that it imports at its top, as far as names can tell: (level, module, name) of each.
        rebound: names that its functions assign to; they are no constants.
    """

    digest: bytes
    imports: tuple[tuple[int, str, str], ...]
    rebound: frozenset[str]


def _follow(module: ModuleType | None, found: dict[str, ModuleType]) -> None:
    """Add ``module`` to ``found``, and the modules that it imports or that its functions and classes come from."""
    if module is None or module.__name__ in found or _file(module) is None:
        return
    found[module.__name__] = module
    names = [getattr(value, "__module__", None) for value in list(vars(module).values())]
    family = module.__name__.partition(".")[0]
    for name in dict.fromkeys([*_imported(module), *names]):
        other = sys.modules.get(name) if isinstance(name, str) else None
        if other is not None and (other.__name__.partition(".")[0] == family or not _is_library(other)):
            _follow(other, found)


def _imported(module: ModuleType) -> Iterator[str]:
    for level, base, name in _source(module).imports:
        package = (module.__package__ or "").split(".")
        parts = [*package[: len(package) - level + 1], base] if level else [base]
        whole = ".".join(filter(None, parts))
        yield from (whole, f"{whole}.{name}")


def _file(module: ModuleType) -> str | None:
    """The source file of ``module``; None if it has none."""
    file = getattr(module, "__file__", None)
    return file if file and file.endswith(".py") else None


@functools.cache
def _libraries() -> tuple[Path, ...]:
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(path).resolve() for path in (*paths, site.getusersitepackages()))


def _is_library(module: ModuleType) -> bool:
    """Whether ``module`` is installed or part of Python: then its version counts, not its source."""
    file = _file(module)
    return file is None or _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in _libraries())


def _source(module: ModuleType) -> Source:
    file = Path(str(_file(module)))
    try:
        stat = file.stat()
    except OSError as error:
        raise ChangedError from error
    if stat.st_mtime > _BEGIN.timestamp():
        raise ChangedError
    return _parsed(str(file), stat.st_mtime_ns, stat.st_size)


@functools.cache
def _parsed(file: str, _mtime: int, _size: int) -> Source:
    tree = ast.parse(Path(file).read_bytes())
    imports: list[tuple[int, str, str]] = []
    rebound: set[str] = set()
    _read(tree, imports, rebound, top=True)
    return Source(hashlib.sha256(ast.dump(tree).encode()).digest(), tuple(imports), frozenset(rebound))


def _read(node: ast.AST, imports: list[tuple[int, str, str]], rebound: set[str], top: bool) -> None:
    """Remove the docstrings of ``node``, a module or statement; note what it imports at the ``top`` and rebinds."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            del node.body[0]
        top = isinstance(node, ast.Module)
    elif isinstance(node, ast.Import) and top:
        imports.extend((0, alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and top:
        imports.extend((node.level, node.module or "", alias.name) for alias in node.names)
    elif isinstance(node, ast.Global):
        rebound.update(node.names)
    for field in ("body", "orelse", "finalbody", "handlers"):
        for inner in getattr(node, field, ()) if not isinstance(node, ast.expr) else ():
            _read(inner, imports, rebound, top)


def _values(module: ModuleType) -> Iterator[bytes]:
    """Numbers, strings and arrays in ``module`` that its own functions name: they are constants of compiled code."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    names = {name for value in own for function in _functions(value) for name in _names(function.__code__)}
    for name in sorted((names & vars(module).keys()) - _source(module).rebound):
        plain = _plain(vars(module)[name])
        if plain is not None and not name.startswith("__"):
            yield name.encode() + plain


def _plain(value: Any) -> bytes | None:
    """A number, string, array or tuple of these, as bytes; None for anything else."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{type(value).__name__} {value!r}".encode()
    if isinstance(value, tuple | list):
        parts = [_plain(part) for part in value]
        return None if None in parts else b"(" + b",".join(part or b"" for part in parts) + b")"
    return None


def _functions(value: Any) -> Iterator[FunctionType]:
    """The Python functions of ``value``, a function or class, whatever they are wrapped in."""
    if inspect.isclass(value):
        for member in vars(value).values():
            if not inspect.isclass(member):
                yield from _functions(member)
        return
    for attribute in ("fget", "__func__", "py_func", "__wrapped__"):
        value = getattr(value, attribute, None) or value
    if isinstance(value, FunctionType):
        yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _live(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Bytecode of the functions of ``value`` and, if no module holds their source, of what they name."""
    for function in _functions(value):
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield repr(_bytecode(function.__code__, function.__doc__)).encode()
        home = sys.modules.get(function.__module__)
        if home is not None and vars(home) is function.__globals__ and _file(home):
            continue  # its module is hashed
        cells = {k: cell.cell_contents for k, cell in enumerate(function.__closure__ or ())}
        named = {name: function.__globals__.get(name) for name in sorted(set(_names(function.__code__)))}
        for name, part in (cells | named).items():
            plain = _plain(part)
            if plain is not None:
                yield str(name).encode() + plain
            elif inspect.isroutine(part) or inspect.isclass(part) or hasattr(part, "py_func"):
                yield from _live(part, seen)


def _bytecode(code: CodeType, doc: str | None) -> tuple[Any, ...]:
    """``code`` without line numbers and docstring."""
    constants = []
    for k, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            constants.append(_bytecode(constant, None))
        elif isinstance(constant, frozenset):
            constants.append(tuple(sorted(map(repr, constant))))
        else:
            constants.append(() if k == 0 and constant == doc else (type(constant).__name__, repr(constant)))
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, tuple(constants)
