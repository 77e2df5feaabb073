"""From words to objects: compose the configuration, check it, and build what it describes.

Every node with a ``_target_`` is a class and keyword arguments of its constructor; Hydra finds the class by its path.
Constructors are asked here what they take, so that a bad word is answered with one sentence before anything is made.
"""

import collections.abc
import difflib
import importlib
import inspect
import math
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, open_dict

_HERE = Path(__file__).resolve().parent
CONF = next(folder for folder in (_HERE / "conf", _HERE.parent / "conf") if folder.is_dir())  # installed, or a checkout
MOST_PLIES = 42  # to look ahead
ENGINES = ("fused", "eager", "batched")


def load(*words: str, config: str = "train") -> DictConfig:
    """The configuration that ``words`` make, such as "game=tictactoe" and "games=100"; for notebooks and tests."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(config, overrides=list(words))


def build(cfg: DictConfig, key: str, **given: Any) -> Any:
    """Build what ``cfg[key]`` describes, with the further arguments ``given``.

    Where the constructor takes a schedule, a plain number is that number for all games.

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
        if not text.startswith(key):  # not a sentence of ours, which name the key
            text = f"{key}: {text} (HYDRA_FULL_ERROR=1 shows where)"
        raise ValueError(text) from error


def check(cfg: DictConfig) -> None:
    """Check what can be checked without building anything.

    Raises:
        ValueError: naming the key, its value and what is allowed.
    """
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
    for key in ("run_dir", "resume", "checkpoint"):
        path = cfg.get(key)
        if path is not None and not (isinstance(path, str) and path.strip() and path.isprintable()):
            raise ValueError(f"{key} is {path!r}; it must be a path")
    training = "batch" in cfg
    engines = ENGINES if training else ENGINES[:-1]  # one game at a time needs no batch
    if "engine" in cfg and cfg.engine not in engines and (training or cfg.engine is not None):
        allowed = ", ".join(engines)
        raise ValueError(f"engine is {cfg.engine!r}{did_you_mean(cfg.engine, engines)}; the engines are {allowed} here")
    for name, node in cfg.items():
        if isinstance(node, DictConfig):
            _check_node(str(name), node)


def settle(cfg: DictConfig, words: Iterable[str] = ()) -> None:
    """Make the parts of ``cfg`` agree.

    What the learner brings itself becomes null; a network that was named wins over the rule's; and what a rule's yaml
    tells the learner td is dropped if another learner does not know it.

    Args:
        cfg: the configuration, which is changed.
        words: of the command line.

    Raises:
        ValueError: for a word that names such a part, or a part that is missing.
    """
    known = set(_parameters(cfg.learner, "learner"))
    module, _, name = str(cfg.learner._target_).rpartition(".")
    brings = getattr(importlib.import_module(module), name).brings
    for word in words:
        part = word.lstrip("+").partition("=")[0].partition(".")[0]
        if part in brings:
            raise ValueError(f"{word} has no effect here: {name} brings its own {part}; leave this word out")
    named = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    for key in (set(OmegaConf.load(CONF / "learner" / "td.yaml")) - known) & set(cfg.learner):
        if key != "_target_" and f"learner.{key}" not in named:
            with open_dict(cfg.learner):
                del cfg.learner[key]
    if "network" in named and "network.output" not in named:  # a rule's yaml may have asked for another unit
        cfg.network.output = OmegaConf.load(CONF / "network" / f"{named['network']}.yaml").output
    for part in ("features", "network", "optimizer"):
        if part in brings:
            cfg[part] = None
        elif cfg[part] is None:
            raise ValueError(f"{part} is null, which {name} cannot do without")


def torch_device(name: str) -> Any:
    """The torch device of that name.

    Raises:
        ValueError: if torch does not know it or this machine does not have it.
    """
    import torch  # here and not above: --help must answer at once

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
        if isinstance(value, DictConfig):
            _check_node(key, value)
        elif "_target_" not in node:
            continue
        elif name not in parameters:
            allowed = [p.name for p in parameters.values() if p.default is not p.empty]  # the rest is given by us
            raise ValueError(f"{key} does not exist{did_you_mean(name, allowed)}; {path} takes {', '.join(allowed)}")
        elif not _fits(value, parameters[name].annotation):
            wanted = _in_words(parameters[name].annotation)
            raise ValueError(f"{key} is {value!r}; it must be {wanted}")


def _parameters(node: DictConfig, path: str = "") -> Mapping[str, inspect.Parameter]:
    """Parameters of the constructor of ``node._target_``."""
    if "_target_" not in node:
        return {}
    module, _, name = str(node["_target_"]).rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}._target_ is {node['_target_']!r}, which cannot be imported: {error}") from error
    return inspect.signature(target).parameters


_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "null"
}  # fmt: skip


def _is_schedule(hint: Any) -> bool:
    return typing.get_origin(hint) is collections.abc.Callable


def _members(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether the plain ``value`` can be meant; False only if that is certain."""
    members = [float if _is_schedule(member) else member for member in _members(hint)]
    plain = all(isinstance(member, type) or _is_list(member) for member in members)
    if not plain or hint is inspect.Parameter.empty:
        return True
    if type(value) is int and float in members:
        return True
    if type(value) is float and not math.isfinite(value):
        return False
    return type(value) in members or (type(value) not in _WORDS and any(map(_is_list, members)))


def _is_list(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, collections.abc.Sequence)


def _in_words(hint: Any) -> str:
    words = []
    for member in _members(hint):
        schedule = "a number or a schedule" if _is_schedule(member) else None
        words.append(_WORDS.get(member) or schedule or "a list")
    return " or ".join(words)
