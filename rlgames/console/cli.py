"""The command line shared by all programs: errors in one sentence, and the end of a program."""

import dis
import gc
import io
import itertools
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.errors import (
    CompactHydraException,
    ConfigCompositionException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from rlgames.build import CONF, FOR_GAMES, HYDRA_GROUPS, did_you_mean, groups, has_words, load, understood
from rlgames.console.usage import help_text
from rlgames.interrupts import SIGPIPE, Interruptible, asked

FLAGS = {  # of Hydra's command line, and how many words follow it
    **dict.fromkeys(("--help", "-h", "--multirun", "-m", "--run", "-r", "--resolve", "--version", "--hydra-help"), 0),
    **dict.fromkeys(("--cfg", "-c", "--package", "-p", "--info", "-i", "--config-dir", "-cd"), 1),
    **dict.fromkeys(("--config-path", "-cp", "--config-name", "-cn", "--experimental-rerun"), 1),
    **dict.fromkeys(("--shell-completion", "-sc"), 0),
}
HYDRA_VALUES = ("hydra.mode", "hydra.searchpath")
HYDRA_PARTS = ("hydra.launcher.", "hydra.sweeper.")


class ReportedError(Exception):
    """An error that the user has already been told."""


def run(main: Callable[[], Any], config: str, stopped: str = "stopped") -> NoReturn:
    """Run a Hydra program and exit: with 0, with 1 after an error, with 128 + its number after a signal.

    Args:
        main: the function decorated by ``hydra.main``.
        config: its configuration, whose keys are suggested for misspelt ones.
        stopped: what to say when a signal ends it.
    """
    gc.set_threshold(100_000)  # imports make many objects and little garbage: collecting it took 8 % of a start
    _open_streams()
    with Interruptible(program=True, words=stopped):
        status = _status(main, config)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # nobody reads: Python must not complain at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(status)


def callable_module(name: str, function: Callable[..., Any]) -> None:
    """Let module ``name`` be called as ``function``, by which Python knows it: ``rlgames.train(cfg)``."""
    sys.modules[name].__class__ = type("Program", (ModuleType,), {"__call__": staticmethod(function)})


def show(text: str) -> None:
    """Print ``text`` as a program's last act, whether or not anybody reads it to the end."""
    _open_streams()
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader of the pipe is gone
        os._exit(128 + SIGPIPE)


def _status(main: Callable[[], Any], config: str) -> int:
    if {"--help", "-h"} & set(sys.argv[1:]):
        main = lambda: print(help_text(config, [word for word in sys.argv[1:] if not word.startswith("-")]))  # noqa: E731
    global _full_error
    _full_error = os.environ.get("HYDRA_FULL_ERROR", "0") not in ("0", "")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets errors through to us instead of printing them Hydra's way
    try:
        sys.argv[1:] = check_words(sys.argv[1:], config)
        _run(main, config)
    except ReportedError:
        return 1
    except BrokenPipeError:  # the reader of the pipe is gone
        os._exit(128 + SIGPIPE)
    except KeyboardInterrupt as error:
        return 128 + getattr(error, "signum", signal.SIGINT)
    except Exception as error:
        if asked():  # a signal ended the wait
            return 128 + asked()
        report(error, config)
        return 1
    return 0


def _run(main: Callable[[], Any], config: str) -> Any:
    """Run ``main``; single runs bypass Hydra's application, which composes the configuration twice."""
    words = sys.argv[1:]
    if any(word.startswith(("-", "hydra")) for word in words):
        return main()
    cfg = load(*words, config=config, hydra=True)
    if cfg.hydra.mode is RunMode.MULTIRUN:  # the experiment is a sweep
        return main()
    HydraConfig.instance().set_config(cfg)
    with open_dict(cfg):
        del cfg["hydra"]
    return main.__wrapped__(cfg)  # type: ignore[attr-defined] # the function that ``hydra.main`` decorates


def _open_streams() -> None:
    """Ensure that the three streams exist, so that files do not take their numbers, and pass any letter."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


_full_error = False


def check_words(words: list[str], config: str) -> list[str]:
    """Refuse words that no program accepts, and those to which Hydra would reply obscurely or not at all.

    Args:
        words: of the command line.
        config: the program's configuration.

    Returns:
        The words for Hydra, flags first.

    Raises:
        ValueError: for a character that cannot be printed, an unknown flag, a word without "=", or one that adds or
            removes a part.
    """
    values, flags, plain = iter(words), [], []
    for word in values:
        if not word.isprintable():  # Windows line ends in a script
            raise ValueError(f"the word {word!r} contains a character that cannot be printed")
        if word.startswith("-"):
            flag, equals, _ = word.partition("=")
            if flag not in FLAGS:
                near = "" if equals else did_you_mean(flag, [name for name in FLAGS if name.startswith("--")])
                right = word.lstrip("-") if equals else f"{flag.lstrip('-') or 'games'}=VALUE"
                raise ValueError(f"{word} does not exist{near}; words are written without dashes: {right}")
            following = itertools.islice(values, 0 if equals else FLAGS[flag])
            flags += [word, *following]
        else:
            _check_word(word, config)
            plain.append(word)
    return [*flags, *understood(plain, config)]


def _check_word(word: str, config: str) -> None:
    key, equals, value = word.lstrip("+").partition("=")
    if word.startswith("~"):
        raise ValueError(f"{word}: parts cannot be removed; {word[1:]}=NAME replaces it")
    if not (equals and key):
        raise ValueError(f"{word!r} is not word=value; write {key or 'games'}=VALUE, or --help for all words")
    names, part = [name.lstrip("+") for name in groups(config)], key.partition(".")[0]
    if key in names and _is_no_name(value):
        files = sorted(file.stem for file in (CONF / key).glob("*.yaml"))
        raise ValueError(f"{key} is {value or 'empty'}; allowed are {', '.join(files)}")
    if word.startswith("+") and key in groups(config):
        raise ValueError(f"{word} takes no plus: {key}={value}")
    if part.partition("/")[0].partition("@")[0] == "hydra":
        _check_hydra(key, value)
    elif part in FOR_GAMES and part not in names:
        raise ValueError(f"{key} has no effect here; the agent or the game decides {part}")
    elif word.startswith("+") and key not in names and part not in load(config=config):
        raise ValueError(_unknown(key, config))


def _check_hydra(key: str, value: str) -> None:
    """Leave of Hydra's own words those that have an effect here."""
    if key not in (*HYDRA_GROUPS, *HYDRA_VALUES) and not key.startswith(HYDRA_PARTS):
        raise ValueError(f"{key} has no effect here; run_dir= names the run folder, and -m starts a sweep")
    if not key.startswith(HYDRA_PARTS) and _is_no_name(value) and key != "hydra.searchpath":
        raise ValueError(f"{key} is {value or 'empty'}; it must be a name")
    if key == "hydra.mode" and value not in RunMode.__members__:
        raise ValueError(f"{key} is {value}; allowed are {' and '.join(RunMode.__members__)}")


def _is_no_name(value: str) -> bool:
    return value.strip("'\" ") in ("", "~", "null", "None") or value.startswith(("[", "{"))


def report(error: Exception, config: str = "train", run: str = "") -> None:
    """Tell the user on stderr: their own error in one sentence, a bug with its traceback.

    Args:
        error: what happened.
        config: the configuration whose keys are suggested for misspelt ones.
        run: which run of a sweep it was.
    """
    if _full_error or not is_expected(error):
        traceback.print_exception(error)
    else:
        print(f"error: {run}{sentence(error, config)}", file=sys.stderr)


def is_expected(error: BaseException) -> bool:
    """Whether ``error`` addresses the user: about files or the configuration, or raised on purpose by this package."""
    if isinstance(error, OSError | CompactHydraException | OmegaConfBaseException):
        return True
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if not isinstance(error, ValueError) or innermost is None:
        return False
    code = innermost.tb_frame.f_code
    ours = Path(code.co_filename).is_relative_to(Path(__file__).parents[1])
    return ours and dis.opname[code.co_code[innermost.tb_lasti]] == "RAISE_VARARGS"  # a raise statement


def sentence(error: BaseException, config: str = "train") -> str:
    """``error`` as one line."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        options = list(error.options or sorted(file.stem for file in (CONF / group).glob("*.yaml")))
        text = f"{group}={name!r} does not exist{did_you_mean(name, options)}; allowed are {', '.join(options)}"
    elif isinstance(error, OverrideParseException):
        text = f"{error.override} cannot be read; values with blanks, brackets, commas or = need their own quotes"
    elif isinstance(error, MissingMandatoryValue):
        text = f"{getattr(error, 'full_key', None) or 'a word'} is missing; --help shows what it may be"
    elif isinstance(error, ConfigCompositionException):
        key = re.match(r"(?:Could not (?:override|append|delete).*?'|Error merging override )([^'=]+)", text)
        text = _unknown(key[1], config) if key else text
    elif isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{Path(os.fsdecode(error.filename)).absolute()}: {error.strerror}"
    return " ".join(text.split())


def _unknown(key: str, config: str) -> str:
    """A sentence that suggests a replacement for the unknown dotted ``key``."""
    plain = key.lstrip("+~")
    if f"+{plain}" in groups(config):
        word = next((word for word in sys.argv[1:] if word.partition("=")[0] == plain), f"{plain}=NAME")
        return f"{plain} needs a plus: +{word}"
    parent, _, name = plain.rpartition(".")
    words = (word for word in sys.argv[1:] if word.partition("=")[0] != key)
    chosen = [word for word in words if (CONF / f"{word.lstrip('+').replace('=', '/', 1)}.yaml").is_file()]
    try:
        cfg = load(*chosen, config=config)
    except CompactHydraException:  # another word is wrong
        cfg = load(config=config)
    node = OmegaConf.select(cfg, parent) if parent else cfg
    if not isinstance(node, DictConfig):
        if parent.rpartition(".")[2] in (OmegaConf.select(cfg, parent.rpartition(".")[0]) or cfg):
            return f"{key} does not exist; {parent} is {node}, with nothing below it"
        return f"{key} does not exist, nor does {parent}{did_you_mean(parent, map(str, cfg))}"
    parts = [] if parent else [group for group in groups(config) if group not in cfg and group[0] != "+"]
    if name in node:
        values = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:] if "=" in word)
        value = values.get(plain, "something else")
        if isinstance(node[name], DictConfig):
            return has_words(plain, value)
        return f"{plain} is {value}, which cannot stand for {node[name]}"
    names = [*(str(k) for k in node if not str(k).startswith("_")), *parts]
    return f"{key} does not exist{did_you_mean(name, names)}; {parent or 'this program'} has {', '.join(names)}"
