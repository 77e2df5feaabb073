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
FOR_GAMES = ("features", "network")  # what a game may choose; programs that build neither have them for that alone
HYDRA_GROUPS = ("hydra/launcher", "hydra/sweeper")  # of Hydra's own groups those that have a use here
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
    hidden = {(group, None) for group in FOR_GAMES}
    listed = [key for key, file in files if not key.startswith("override ") and (key, file) not in hidden]
    return sorted(listed) + ["+experiment"] * (config == "train")


def understood(words: Iterable[str], config: str = "train") -> list[str]:
    """``words`` for Hydra.

    A group's value is a name, even if it looks like a number: ``game=2048``. With ``resume=``, words may name keys
    that only the run to resume has; they are compared with that run later.
    """
    words = list(words)
    names = [*(name.lstrip("+") for name in groups(config)), *HYDRA_GROUPS]
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
        text, inner = str(error.__cause__ or error), re.search(r"full_key: (\S+)", str(error))
        if inner and not text.startswith(f"{key}."):
            text = f"{key}.{inner[1]}.{text.removeprefix(inner[1].rpartition('.')[2] + '.')}"
        raise ValueError(text) from error
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
    check_paths(cfg)
    check_numbers(cfg, games=1, eval_every=1, seed=0, batch=1, checkpoints_kept=0)
    if "batched" in cfg:
        if not isinstance(cfg.batched, DictConfig):
            raise ValueError(has_words("batched", shown(cfg.batched)))
        check_numbers(cfg.batched, "batched.", horizon=1)
    first = cfg.get("average_from")
    if first is not None and not (type(first) is int and first >= 0):
        raise ValueError(f"average_from is {shown(first)}; it must be null or a whole number of at least 0")
    over = cfg.get("average_over")
    if over is not None and (first is None or type(over) not in (int, float) or not 0 < over < math.inf):
        raise ValueError(f"average_over is {shown(over)}; it must be null or a number above 0, beside an average_from")
    plies = cfg.get("lookahead")
    if plies is not None and not (type(plies) is int and 1 <= plies <= MOST_PLIES):
        raise ValueError(f"lookahead is {shown(plies)}; it must be null or a whole number from 1 to {MOST_PLIES}")
    minutes = cfg.get("checkpoint_minutes", 1)
    if type(minutes) not in (int, float) or not minutes > 0:
        raise ValueError(f"checkpoint_minutes is {shown(minutes)}; it must be a number above 0")
    at_evaluations, combine = cfg.get("checkpoint_at_evaluations", True), OmegaConf.select(cfg, "batched.combine")
    if type(at_evaluations) is not bool:
        raise ValueError(f"checkpoint_at_evaluations is {shown(at_evaluations)}; it must be true or false")
    if combine not in (None, "mean", "sum"):
        raise ValueError(f"batched.combine is {shown(combine)}; allowed are mean and sum")
    training = "batch" in cfg
    engines = ENGINES if training else ENGINES[:-1]  # one game at a time needs no batch
    if "engine" in cfg and cfg.engine not in engines and (training or cfg.engine is not None):
        allowed = ", ".join(engines)
        raise ValueError(
            f"engine is {shown(cfg.engine)}{did_you_mean(cfg.engine, engines)}; the engines are {allowed} here"
        )
    check_parts(cfg)


def check_paths(cfg: DictConfig) -> None:
    """Check the keys that name files and folders.

    Raises:
        ValueError: naming the key.
    """
    for key in ("run_dir", "resume", "checkpoint", "results", "json", "folder", "epd"):
        path = cfg.get(key)
        if path is not None and not (isinstance(path, str) and path.strip() and path.isprintable()):
            raise ValueError(f"{key} is {shown(path)}; it must be a path")


def check_numbers(cfg: DictConfig, path: str = "", **least_of: int) -> None:
    """Check the keys that hold whole numbers: whether each is at least so much, where it is there.

    Raises:
        ValueError: naming the key; also for any other number below it that no library takes.
    """
    _check_sizes(cfg, path)
    for key, least in least_of.items():
        number = cfg.get(key, least)
        if not (type(number) is int and number >= least):
            raise ValueError(f"{path}{key} is {shown(number)}; it must be a whole number of at least {least}")


def check_parts(cfg: DictConfig) -> None:
    """Check what is to be built of ``cfg``: its parts with a ``_target_``, and theirs.

    Raises:
        ValueError: naming the key.
    """
    for name, node in ((str(key), value) for key, value in cfg.items()):
        if isinstance(node, DictConfig):
            _check_node(name, node)
        elif name in GROUPS and node is not None:
            raise ValueError(f"{name} is {shown(node)}; it must be the name of a file of conf/{name}")


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
            raise ValueError(f"trust is {shown(trust)}; it must be {allowed}")
    return frozenset(names)


def built_in(module: str) -> bool:
    """Whether ``module`` is Python's or one of which a checkpoint names listed classes only, whoever trusts it."""
    return module in sys.stdlib_module_names or module in ("rlgames", "torch")


def _check_sizes(cfg: DictConfig, path: str) -> None:
    """Refuse whole numbers that no library accepts."""
    for key, value in ((str(key), value) for key, value in cfg.items()):
        if isinstance(value, DictConfig):
            _check_sizes(value, f"{path}{key}.")
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
        raise ValueError(f"learner is {shown(cfg.learner)}; it must be the name of a file of conf/learner")
    known, learner = set(_parameters(cfg.learner, "learner")), target_of(cfg.learner._target_, "learner")
    from rlgames.learners.learner import adopted  # not above: it brings torch

    if not isinstance(learner, type):
        raise ValueError(f"learner._target_ is {cfg.learner._target_!r}, which is not a learner")
    name, brings = learner.__name__, adopted(learner).brings
    for word in words:
        part = word.lstrip("+").partition("=")[0].partition(".")[0]
        if part in brings:
            raise ValueError(f"{word} has no effect here: {name} brings its own {part}; leave this word out")
    named = {key.lstrip("+"): value.strip("'\"") for key, _, value in (word.partition("=") for word in words)}
    _drop(cfg, "learner", set(OmegaConf.load(CONF / "learner" / "td.yaml")) - known, named)
    if "network" in named and "network.output" not in named:  # a rule's yaml may have set another unit
        own = OmegaConf.load(CONF / "network" / f"{named['network']}.yaml")
        _drop(cfg, "network", {"output"} - set(own), named)
        if "output" in own:
            cfg.network.output = own.output
    for part in ("game", "features", "network"):  # another class does not take all that the yaml of the first one gives
        if f"{part}._target_" in named and cfg[part] is not None:
            _drop(cfg, part, set(cfg[part]) - set(_parameters(cfg[part], part)), named)
    for part in ("features", "network", "optimizer"):
        if part in brings:
            cfg[part] = None
        elif cfg[part] is None:
            raise ValueError(f"{part} is null, but {name} needs one")


def _drop(cfg: DictConfig, part: str, keys: Iterable[Any], named: Mapping[str, str]) -> None:
    """Take ``keys`` out of ``part`` that no word ``named``."""
    for key in set(keys) & set(cfg[part]):
        if key != "_target_" and f"{part}.{key}" not in named:
            with open_dict(cfg[part]):
                del cfg[part][key]


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


def has_words(key: str, value: str) -> str:
    """The sentence on a ``value`` given to a ``key`` that has keys below it."""
    return f"{key} is {value}, which does not fit there; its words are {key}.NAME=VALUE"


# ---- what constructors take


def _check_node(path: str, node: DictConfig) -> None:
    parameters = _parameters(node, path)
    for name, value in ((str(k), v) for k, v in node.items()):
        key = f"{path}.{name}"
        if name == "_target_":
            continue
        if name.startswith("_"):  # of Hydra
            if (name, value) != ("_partial_", True):
                raise ValueError(f"{key} is {shown(value)}; leave this word out")
            continue
        if "_target_" in node and name not in parameters:
            allowed = [p.name for p in parameters.values() if p.default is not p.empty]  # we supply the rest
            raise ValueError(f"{key} does not exist{did_you_mean(name, allowed)}; {path} takes {', '.join(allowed)}")
        if "_target_" in node and not _fits(value, hint := parameters[name].annotation):
            part = hint not in _WORDS and isinstance(hint, type)
            raise ValueError(
                has_words(key, shown(value)) if part else f"{key} is {shown(value)}; it must be {_in_words(hint)}"
            )
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
    int: "a whole number", float: "a finite number", bool: "true or false", str: "text", type(None): "null"
}  # fmt: skip


def _is_schedule(hint: Any) -> bool:
    return typing.get_origin(hint) is collections.abc.Callable


def _members(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether the plain ``value`` may be valid; False only if it is certainly not."""
    return hint in (Any, inspect.Parameter.empty) or any(_accepts(member, value) for member in _members(hint))


def _accepts(member: Any, value: Any) -> bool:
    node = isinstance(value, DictConfig)
    if _is_schedule(member):
        return _accepts(float, value) or (node and "_target_" in value)
    if _is(member, collections.abc.Sequence):
        return isinstance(value, ListConfig)
    if _is(member, collections.abc.Mapping):
        return node and "_target_" not in value
    if member is float:
        return type(value) is int or (type(value) is float and math.isfinite(value))
    if member in _WORDS or not isinstance(member, type):
        return type(value) is member or member not in _WORDS
    return node and "_target_" in value  # an object


def shown(value: Any) -> str:
    """``value`` as it is written on the command line."""
    words = {None: "null", True: "true", False: "false"}
    plain = isinstance(value, DictConfig | ListConfig)
    return str(value) if plain else words[value] if value is None or isinstance(value, bool) else repr(value)


def _is(hint: Any, kind: type) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, kind)


def _in_words(hint: Any) -> str:
    words = []
    for member in _members(hint):
        if _is_schedule(member):
            words.append("a number or a schedule")
        elif _is(member, collections.abc.Sequence):
            words.append("a list")
        elif _is(member, collections.abc.Mapping):
            words.append("names and values, such as {NAME: VALUE}")
        else:
            words.append(_WORDS.get(member, "a part"))
    return " or ".join(words)
