"""From words to objects: compose the configuration, check it, and build what it describes.

Every node with a ``_target_`` is a class and keyword arguments of its constructor; Hydra finds the class by its path.
Constructors' signatures are checked here, so that a bad word gets one sentence before anything is built.
"""

import collections.abc
import difflib
import functools
import importlib
import inspect
import math
import re
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

_HERE = Path(__file__).resolve().parent
CONF = next(folder for folder in (_HERE / "conf", _HERE.parent / "conf") if folder.is_dir())  # installed, or a checkout
MOST_PLIES = 42  # to look ahead
GROUPS = [folder.name for folder in CONF.iterdir() if folder.is_dir()]
ENGINES = ("fused", "eager", "batched")


def load(*words: str, config: str = "train", hydra: bool = False) -> DictConfig:
    """The configuration that ``words`` make, such as "game=tictactoe", and with ``hydra`` Hydra's own."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(config, understood(words, config), hydra)


@functools.cache
def groups(config: str) -> list[str]:
    """The groups of files that program ``config`` lets choose from; with a plus those that are added."""
    defaults = OmegaConf.load(CONF / f"{config}.yaml").defaults
    files = [(str(key), file) for entry in defaults if isinstance(entry, DictConfig) for key, file in entry.items()]
    # features: null is there for games, which choose them
    listed = [key for key, file in files if not key.startswith("override ") and (key, file) != ("features", None)]
    return sorted(listed) + ["+experiment"] * (config == "train")


def understood(words: Iterable[str], config: str = "train") -> list[str]:
    """``words`` for Hydra.

    A group's value is a name, even if it looks like a number: ``game=2048``. With ``resume=``, words may name keys
    that only the run to resume has; they are compared with that run later.
    """
    words = list(words)
    names = [name.lstrip("+") for name in groups(config)]
    resumes = any(word.startswith("resume=") and word != "resume=null" for word in words)
    found = []
    for word in words:
        key, equals, value = word.partition("=")
        if key.lstrip("+") in names:
            word = key + equals + ",".join(map(_name, value.split(",")))
        elif resumes and equals and key.partition(".")[0] in names:
            word = f"++{word.lstrip('+')}"
        found.append(word)
    return found


def _name(word: str) -> str:
    """``word`` in quotes if Hydra would take it for a number or the like."""
    return f"'{word}'" if re.fullmatch(r"[+-]?[\d.][\w.+-]*|(?i:true|false|inf|nan)", word) else word


def ready(cfg: DictConfig, words: Iterable[str] = (), resumes: bool = False) -> DictConfig:
    """The configuration as a program uses it: its parts agree, and what can be checked before building is checked.

    Args:
        cfg: from ``load`` or from Hydra; it stays as it is.
        words: of the command line, which made it.
        resumes: whether the words are about a run that is still to be read; they are checked against that.

    Raises:
        ValueError: naming the key, its value and what is allowed.
    """
    cfg, words = cfg.copy(), list(words)
    check_paths(cfg)
    trusted_modules(cfg.get("trust"))
    if "learner" in cfg:
        settle(cfg, words)
    if not resumes:
        check(cfg)
    return cfg


def build(cfg: DictConfig, key: str, **given: Any) -> Any:
    """Build what ``cfg[key]`` describes, with the additional arguments ``given``.

    If the constructor takes a schedule, a plain number holds for all games.

    Raises:
        ValueError: if the constructor refuses the values.
    """
    node = DictConfig(OmegaConf.to_container(cfg[key], resolve=True))
    for name, parameter in _parameters(node).items():
        if _is_schedule(parameter.annotation) and isinstance(node.get(name), int | float):
            node[name] = {"_target_": "rlgames.schedules.Constant", "value": node[name]}
    try:
        return instantiate(node, _partial_=True, _convert_="all")(**given)
    except InstantiationException as error:  # of a node inside; its sentence is in the cause
        raise ValueError(f"{key}: {error.__cause__ or error}") from error
    except (TypeError, ValueError) as error:
        text = str(error)
        if not text.startswith(key):  # not our sentence, which would name the key
            text = f"{key}: {text} (HYDRA_FULL_ERROR=1 shows where)"
        raise ValueError(text) from error


def check(cfg: DictConfig) -> None:
    """Check what can be checked without building anything.

    Raises:
        ValueError: naming the key, its value and what is allowed.
    """
    _check_numbers(cfg)
    least_of = {"games": 1, "eval_every": 1, "seed": 0, "batch": 1, "batched.horizon": 1, "checkpoints_kept": 0}
    for key, least in least_of.items():
        number = OmegaConf.select(cfg, key, default=least)
        if not (type(number) is int and number >= least):
            raise ValueError(f"{key} is {number!r}; it must be a whole number of at least {least}")
    first = cfg.get("average_from")
    if first is not None and not (type(first) is int and first >= 0):
        raise ValueError(f"average_from is {first!r}; it must be null or a whole number of at least 0")
    over = cfg.get("average_over")
    if over is not None and (first is None or type(over) not in (int, float) or not over > 0):
        raise ValueError(f"average_over is {over!r}; it must be null or a number above 0, beside an average_from")
    plies = cfg.get("lookahead")
    if plies is not None and not (type(plies) is int and 1 <= plies <= MOST_PLIES):
        raise ValueError(f"lookahead is {plies!r}; it must be null or a whole number from 1 to {MOST_PLIES}")
    minutes = cfg.get("checkpoint_minutes", 1)
    if type(minutes) not in (int, float) or not minutes > 0:
        raise ValueError(f"checkpoint_minutes is {minutes!r}; it must be a number above 0")
    at_evaluations, combine = cfg.get("checkpoint_at_evaluations", True), OmegaConf.select(cfg, "batched.combine")
    if type(at_evaluations) is not bool:
        raise ValueError(f"checkpoint_at_evaluations is {at_evaluations!r}; it must be true or false")
    if combine not in (None, "mean", "sum"):
        raise ValueError(f"batched.combine is {combine!r}; allowed are mean and sum")
    training = "batch" in cfg
    engines = ENGINES if training else ENGINES[:-1]  # one game at a time needs no batch
    if "engine" in cfg and cfg.engine not in engines and (training or cfg.engine is not None):
        allowed = ", ".join(engines)
        raise ValueError(f"engine is {cfg.engine!r}{did_you_mean(cfg.engine, engines)}; the engines are {allowed} here")
    for name, node in ((str(key), value) for key, value in cfg.items()):
        if isinstance(node, DictConfig):
            _check_node(name, node)
        elif name in GROUPS and node is not None:
            raise ValueError(f"{name} is {_shown(node)}; it must be the name of a file of conf/{name}")


def check_paths(cfg: DictConfig) -> None:
    """Check the keys that name files and folders.

    Raises:
        ValueError: naming the key.
    """
    for key in ("run_dir", "resume", "checkpoint", "results", "json", "folder", "epd"):
        path = cfg.get(key)
        if path is not None and not (isinstance(path, str) and path.strip() and path.isprintable()):
            raise ValueError(f"{key} is {_shown(path)}; it must be a path")


def trusted_modules(trust: Any) -> frozenset[str]:
    """The modules that ``trust``, one name or a list of them, allows a checkpoint to name classes of.

    Raises:
        ValueError: for what is no name, or a module that is not the user's own.
    """
    names = [] if trust is None else [trust] if isinstance(trust, str) else trust
    listed = isinstance(names, list | tuple | set | frozenset | ListConfig)
    for name in names if listed else [trust]:
        if not (isinstance(name, str) and name.isidentifier()) or built_in(name):
            allowed = "the name of a module of your own, without dots, or a list of such"
            raise ValueError(f"trust is {_shown(trust)}; it must be {allowed}")
    return frozenset(names)


def built_in(module: str) -> bool:
    """Whether ``module`` is Python's or one of which a checkpoint names listed classes only, whoever trusts it."""
    return module in sys.stdlib_module_names or module in ("rlgames", "torch")


def _check_numbers(cfg: DictConfig, path: str = "") -> None:
    """Refuse whole numbers that no library accepts."""
    for key, value in ((str(key), value) for key, value in cfg.items()):
        if isinstance(value, DictConfig):
            _check_numbers(value, f"{path}{key}.")
        elif type(value) is int and abs(value) >= 2**63:
            raise ValueError(f"{path}{key} is {value}; whole numbers must be below 2^63")


def settle(cfg: DictConfig, words: Iterable[str] = ()) -> None:
    """Make the parts of ``cfg`` agree.

    Parts that the learner brings itself become null; a named network overrides the rule's; settings that a rule's
    yaml makes for learner td are dropped if another learner lacks them.

    Args:
        cfg: the configuration, which is changed.
        words: of the command line.

    Raises:
        ValueError: for a word that names such a part, or a part that is missing.
    """
    if not (isinstance(cfg.learner, DictConfig) and "_target_" in cfg.learner):
        raise ValueError(f"learner is {_shown(cfg.learner)}; it must be the name of a file of conf/learner")
    known, learner = set(_parameters(cfg.learner, "learner")), target_of(cfg.learner._target_, "learner")
    if not hasattr(learner, "brings"):
        raise ValueError(f"learner._target_ is {cfg.learner._target_!r}, which is not a learner")
    name, brings = learner.__name__, learner.brings
    for word in words:
        part = word.lstrip("+").partition("=")[0].partition(".")[0]
        if part in brings:
            raise ValueError(f"{word} has no effect here: {name} brings its own {part}; leave this word out")
    named = {key.lstrip("+"): value.strip("'\"") for key, _, value in (word.partition("=") for word in words)}
    for key in (set(OmegaConf.load(CONF / "learner" / "td.yaml")) - known) & set(cfg.learner):
        if key != "_target_" and f"learner.{key}" not in named:
            with open_dict(cfg.learner):
                del cfg.learner[key]
    if "network" in named and "network.output" not in named:  # a rule's yaml may have set another unit
        cfg.network.output = OmegaConf.load(CONF / "network" / f"{named['network']}.yaml").output
    for part in ("features", "network", "optimizer"):
        if part in brings:
            cfg[part] = None
        elif cfg[part] is None:
            raise ValueError(f"{part} is null, but {name} needs one")


def torch_device(name: str) -> Any:
    """The torch device of that name.

    Raises:
        ValueError: if torch does not know it or this machine does not have it.
    """
    import torch  # here: --help must answer at once

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, TypeError) as error:
        available = "cpu and cuda" if torch.cuda.is_available() else "cpu"
        raise ValueError(f"device is {name!r}, which this machine does not have; available: {available}") from error
    return torch.device(name)


def did_you_mean(name: Any, names: Iterable[str]) -> str:
    """The question, in brackets, if one of ``names`` is close to ``name``."""
    close = difflib.get_close_matches(str(name).lower(), list(names), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


# ---- what constructors take


def _check_node(path: str, node: DictConfig) -> None:
    parameters = _parameters(node, path)
    for name, value in ((str(k), v) for k, v in node.items()):
        key = f"{path}.{name}"
        if name.startswith("_"):
            continue
        if "_target_" in node and name not in parameters:
            allowed = [p.name for p in parameters.values() if p.default is not p.empty]  # we supply the rest
            raise ValueError(f"{key} does not exist{did_you_mean(name, allowed)}; {path} takes {', '.join(allowed)}")
        if "_target_" in node and not _fits(value, parameters[name].annotation):
            wanted = _in_words(parameters[name].annotation)
            raise ValueError(f"{key} is {_shown(value)}; it must be {wanted}")
        if isinstance(value, DictConfig):
            _check_node(key, value)


def _parameters(node: DictConfig, path: str = "") -> Mapping[str, inspect.Parameter]:
    """Parameters of the constructor of ``node._target_``."""
    if "_target_" not in node:
        return {}
    target = target_of(node["_target_"], path)
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}._target_ is {node['_target_']!r}, which is no class of ours: {error}") from error


def target_of(target: Any, path: str) -> Any:
    """What the dotted path ``target`` of the node ``path`` names; its module is imported.

    Raises:
        ValueError: if there is no such thing.
    """
    module, _, name = str(target).rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}._target_ is {target!r}, which cannot be imported: {error}") from error


_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"
}  # fmt: skip


def _is_schedule(hint: Any) -> bool:
    return typing.get_origin(hint) is collections.abc.Callable


def _members(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether the plain ``value`` may be valid; False only if it is certainly not."""
    members = [float if _is_schedule(member) else member for member in _members(hint)]
    plain = all(isinstance(member, type) or _is_list(member) for member in members)
    if isinstance(value, DictConfig) and "_target_" in value and any(map(_is_schedule, _members(hint))):
        return True
    if not plain or Any in members or hint is inspect.Parameter.empty:
        return True
    if isinstance(value, DictConfig):
        return False
    if type(value) is int and float in members:
        return True
    if type(value) is float and not math.isfinite(value):
        return False
    return type(value) in members or (type(value) not in _WORDS and any(map(_is_list, members)))


def _shown(value: Any) -> str:
    """``value`` as it is written on the command line."""
    return str(value) if isinstance(value, DictConfig | ListConfig) else repr(value)


def _is_list(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, collections.abc.Sequence)


def _in_words(hint: Any) -> str:
    words = []
    for member in _members(hint):
        schedule = "a number or a schedule" if _is_schedule(member) else None
        words.append(_WORDS.get(member) or schedule or "a list")
    return " or ".join(words)
