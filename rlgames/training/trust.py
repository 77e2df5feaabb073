"""What a checkpoint or a run folder may build: a closed list of classes, and those of modules that the user names.

Building what a configuration describes calls what its ``_target_`` names. The words of a command are its user's own; a
checkpoint may come from anybody. So its configuration is checked, before anything of it is imported:

* ``_target_`` is a class that a file of conf/ names for that part, a schedule, an optimizer of ``torch.optim``, what
  this command's own words name, or a class defined in a module that the user trusts: by ``trust=``, or because this
  command's own words name a class of it.
* All else is plain: numbers, texts, lists. ``${games}`` may refer to a number; no resolver is called.
* Programs and files that it names (engines, books, caches) are used only if this command's words name them, too.
"""

import functools
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlgames.build import CONF, GROUPS, built_in, target_of, trusted_modules

DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
REFERENCE = re.compile(r"\$\{([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)\}", re.ASCII)
PLAIN = (type(None), bool, int, float, str)
OUTSIDE = {  # arguments of our classes that name programs and files
    "NTuples": ("tuples",),
    "Openings": ("file",),
    "Perfect": ("cache",),
    "SelfPlay": ("engine", "engine_options"),
    "UciEngine": ("command", "options"),
    "perfect_or_minimax": ("cache",),
    "perfect_player": ("cache",),
}


def trusted(cfg: DictConfig) -> frozenset[str]:
    """What the user trusts by the words that made ``cfg``: the modules of ``trust=``, and what its classes name.

    Such a class is trusted by its path, and if it is from outside the package, so is its module.
    """
    named = [target for _, target in _targets(OmegaConf.to_container(cfg, throw_on_missing=False))]
    own = {top for top in _tops(named) if not built_in(top)}
    return frozenset((*trusted_modules(cfg.get("trust")), *map(str, named), *own))


def read_config(file: Path) -> dict[str, Any]:
    """The configuration in a yaml file, plain and as it stands: nothing in it is resolved.

    Raises:
        ValueError: if there is none in it.
        OSError: if it cannot be read.
    """
    try:
        config: Any = OmegaConf.to_container(OmegaConf.load(file))
    except OSError:
        raise
    except Exception as error:  # yaml and OmegaConf raise many kinds
        raise ValueError(f"{file} is damaged") from error
    if not isinstance(config, dict):
        raise ValueError(f"{file} holds no configuration")
    return config


def check_saved(config: Any, trust: str | Iterable[str] = ()) -> None:
    """Check the configuration that a checkpoint or a run folder holds.

    Args:
        config: plain, as it was read.
        trust: see ``trusted``; nothing else from outside the package is imported.

    Raises:
        ValueError: naming the key, what stands there, and the word to add if it is a class from outside the package.
    """
    trust = frozenset([trust] if isinstance(trust, str) else trust)
    _check_plain(config, "", config)
    foreign = {}
    for path, target in _targets(config):
        if type(target) is not str or not DOTTED.fullmatch(target):
            raise ValueError(f"its {path} is {target!r}, which is no class")
        if target in trust or _ours(target, path.removesuffix("._target_")):
            continue
        top = target.partition(".")[0]
        if built_in(top):
            raise ValueError(f"its {path} is {target}, which a checkpoint may not build")
        foreign[target] = path
    tops = _tops(foreign) - trust
    if tops:
        names = ", ".join(target for target in foreign if _tops([target]) <= tops)
        word = _trust(tops | {name for name in trust if "." not in name and not built_in(name)})
        raise ValueError(f"it names code from outside rlgames: {names}; if you trust it, add {word}")
    for target, path in foreign.items():
        found = target_of(target, path.removesuffix("._target_"))
        if not inspect.isclass(found) or found.__module__.partition(".")[0] not in trust:
            raise ValueError(f"its {path} is {target}, which is no class of {target.partition('.')[0]}")


def outside(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The programs and files that the plain ``config`` names: where they stand, and the values."""
    if isinstance(config, dict):
        target = str(config.get("_target_", ""))
        names = OUTSIDE.get(target.rpartition(".")[2], ()) if target.startswith("rlgames.") else ()
        for name in names:
            value = config.get(name)
            if value is None and name == "command":
                value = "stockfish"  # what it starts if nothing is said
            if value is not None and not (name == "tuples" and not isinstance(value, str)):
                yield _below(path, name), value
    for key, value in _items(config):
        yield from outside(value, _below(path, key))


def check_outside(config: Any, named: Iterable[str], choose: bool = False) -> None:
    """Check that the words of a command name the programs and files that a saved ``config`` names.

    Args:
        config: plain, as it will be built.
        named: the keys that the words name; a key stands for all below it.
        choose: whether the words to add also choose the file of conf/ that the part comes from.

    Raises:
        ValueError: naming the words to add.
    """
    names = tuple(named)
    missing = [
        f"{key}={_word(value)}"
        for key, value in outside(config)
        if not any(key == name or key.startswith(f"{name}.") for name in names)
    ]
    if missing:
        parts = dict.fromkeys(word.partition(".")[0] for word in missing) if choose else ()
        words = " ".join([*(f"{part}={_file_of(part, config[part])}" for part in parts), *missing])
        raise ValueError(f"what was saved names programs or files, which are used only if you name them: add {words}")


def words_for(config: Any, resumes: bool) -> list[str]:
    """The words with which a command opens, or resumes, a run of the user's own, whose plain configuration this is."""
    tops = {top for top in _tops(target for _, target in _targets(config)) if not built_in(top)}
    files = [f"{key}={_word(value)}" for key, value in outside(config) if not key.endswith(".tuples")]
    return ([_trust(tops)] if tops else []) + (files if resumes else [])


def without_outside(config: Any) -> None:
    """Take programs and files out of the plain ``config``, for a use that needs none."""
    for path, _ in list(outside(config)):
        *parts, name = path.split(".")
        node = functools.reduce(lambda node, key: node[int(key) if isinstance(node, list) else key], parts, config)
        node[name] = None
        if name == "engine":
            node["engine_share"] = 0.0


def _tops(targets: Iterable[Any]) -> set[str]:
    """The top modules of dotted paths."""
    return {str(target).partition(".")[0] for target in targets}


def _trust(modules: Iterable[str]) -> str:
    """The word that trusts ``modules``."""
    names = sorted(modules)
    return f"trust={names[0]}" if len(names) == 1 else f"'trust=[{','.join(names)}]'"


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    return ((str(key), item) for key, item in pairs)


def _targets(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every ``_target_`` in ``value``, with its path."""
    for key, item in _items(value):
        if key == "_target_":
            yield _below(path, key), item
        yield from _targets(item, _below(path, key))


def _check_plain(value: Any, path: str, config: Any) -> None:
    """Refuse what is neither a plain value nor a container of such, and what Hydra or OmegaConf would obey."""
    for key, item in value.items() if isinstance(value, dict) else ():
        obeyed = key in ("_target_", "_partial_") and (key == "_target_" or (path == "optimizer" and item is True))
        if type(key) is not str or (key.startswith("_") and not obeyed):
            raise ValueError(f"its {path or 'configuration'} has {key!r}, which no checkpoint of rlgames has")
    if type(value) is str and "${" in value:
        reference = REFERENCE.fullmatch(value)
        found = config
        for name in reference[1].split(".") if reference else ():
            found = found.get(name) if isinstance(found, dict) else None
        if not reference or type(found) not in (int, float):
            raise ValueError(f"its {path} is {value!r}; only a number of the configuration may be referred to")
    elif not isinstance(value, dict | list | tuple) and type(value) not in PLAIN:
        raise ValueError(f"its {path or 'configuration'} is a {type(value).__name__}, which no configuration holds")
    for key, item in _items(value):
        _check_plain(item, _below(path, key), config)


def _ours(target: str, path: str) -> bool:
    """Whether ``target``, which is built at ``path``, is on the closed list."""
    if target.startswith("torch.optim."):
        from torch import optim

        found = vars(optim).get(target.removeprefix("torch.optim."))
        return path == "optimizer" and inspect.isclass(found) and issubclass(found, optim.Optimizer)
    if target.startswith("rlgames.schedules."):
        from rlgames import schedules

        found = vars(schedules).get(target.removeprefix("rlgames.schedules."))
        return "." in path and inspect.isclass(found) and found.__module__ == schedules.__name__
    return target in _of_group(path.partition(".")[0])


@functools.cache
def _of_group(group: str) -> frozenset[str]:
    """What the files of conf/``group`` name."""
    texts = (file.read_text(encoding="utf-8") for file in (CONF / group).glob("*.yaml")) if group in GROUPS else ()
    return frozenset(name for text in texts for name in re.findall(r"_target_: (rlgames\.[\w.]+)", text))


def _file_of(group: str, node: Any) -> str:
    """The name of the file of conf/``group`` that builds the same class."""
    named = f"_target_: {node['_target_']}\n"
    return next(file.stem for file in (CONF / group).glob("*.yaml") if named in file.read_text(encoding="utf-8"))


def _word(value: Any) -> str:
    """``value`` as a word of the command line, for the shell too."""
    text = str(value) if not isinstance(value, dict) else "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return text if re.fullmatch(r"[\w./:-]+", text) else f"'{text}'" if isinstance(value, dict) else f"'\"{text}\"'"
