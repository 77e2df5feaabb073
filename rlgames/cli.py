"""What all programs of the package share at the command line: errors in one sentence, and an orderly stop."""

import dis
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from hydra.errors import CompactHydraException, ConfigCompositionException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.build import CONF, did_you_mean, load


class ReportedError(Exception):
    """An error of which the user has been told already."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM stopped the program, in good order."""

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.signum = signum


def run(main: Callable[[], Any], config: str) -> NoReturn:
    """Run a Hydra program and exit: with 0, with 1 after an error, with 128 + its number after a signal.

    Args:
        main: the function decorated by ``hydra.main``.
        config: its configuration, whose keys are suggested for misspelt ones.
    """
    if {"--help", "-h"} & set(sys.argv[1:]):
        main = lambda: print(help_text(config, [word for word in sys.argv[1:] if not word.startswith("-")]))  # noqa: E731
    global _full_error
    _full_error = os.environ.get("HYDRA_FULL_ERROR", "0") not in ("0", "")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets errors through to us, instead of printing them in Hydra's way
    try:
        for word in sys.argv[1:]:
            if not word.isprintable():  # Windows line ends in a script
                raise ValueError(f"the word {word!r} holds a character that cannot be printed")
        main()
    except ReportedError:
        sys.exit(1)
    except BrokenPipeError:  # the reader of a pipe went away
        os._exit(1)
    except KeyboardInterrupt as error:
        sys.exit(128 + getattr(error, "signum", signal.SIGINT))
    except Exception as error:
        report(error, config)
        sys.exit(1)
    sys.exit(0)


_full_error = False


def report(error: Exception, config: str = "train", run: str = "") -> None:
    """Tell the user on stderr: an error of theirs in one sentence, a bug with its traceback.

    Args:
        error: what happened.
        config: the configuration whose keys are suggested for misspelt ones.
        run: which run of a sweep it was.
    """
    if _full_error or not is_expected(error):
        traceback.print_exception(error)
    else:
        print(f"error: {run}{sentence(error, config)}", file=sys.stderr)


def help_text(config: str, words: list[str]) -> str:
    """What the program ``config`` understands, and the values that ``words`` give; ten times as fast as Hydra's."""
    cfg = load(*words, config=config)
    groups = [(folder.name, sorted(file.stem for file in folder.glob("*.yaml"))) for folder in sorted(CONF.iterdir())]
    choices = [
        f"  {'' if name in cfg else '+'}{name}={'|'.join(files)}"
        for name, files in groups
        if files and (name in cfg or (name == "experiment" and config == "train"))
    ]
    return "\n".join(
        [
            f"python -m rlgames.{config} [word=value ...]",
            "",
            "Words with a choice of files:",
            *choices,
            "",
            "All values; change any of them by its dotted path, for instance evaluation.first=1000:",
            *(f"  {line}" for line in OmegaConf.to_yaml(cfg).splitlines()),
            "",
            "-m and values with commas run every combination; --cfg job shows the values and stops.",
        ]
    )


def is_expected(error: BaseException) -> bool:
    """Whether ``error`` speaks to the user: of files, of the configuration, or raised on purpose by this package."""
    if isinstance(error, OSError | CompactHydraException | OmegaConfBaseException):
        return True
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if not isinstance(error, ValueError) or innermost is None:
        return False
    code = innermost.tb_frame.f_code
    ours = Path(code.co_filename).is_relative_to(Path(__file__).parent)
    return ours and dis.opname[code.co_code[innermost.tb_lasti]] == "RAISE_VARARGS"  # a raise statement


def sentence(error: BaseException, config: str = "train") -> str:
    """``error`` as one line."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        options = list(error.options or sorted(file.stem for file in (CONF / group).glob("*.yaml")))
        text = f"{group}={name!r} does not exist{did_you_mean(name, options)}; allowed are {', '.join(options)}"
    elif isinstance(error, ConfigCompositionException):
        unknown = re.match(r"Could not (?:override|append|delete).*?'([^']+)'", text)
        text = _unknown(unknown[1], config) if unknown else text
    elif isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{Path(os.fsdecode(error.filename)).absolute()}: {error.strerror}"
    return " ".join(text.split())


def _unknown(key: str, config: str) -> str:
    """A sentence on what may stand instead of the unknown dotted ``key``."""
    parent, _, name = key.lstrip("+~").rpartition(".")
    chosen = [word for word in sys.argv[1:] if (CONF / f"{word.lstrip('+').replace('=', '/', 1)}.yaml").is_file()]
    cfg = load(*chosen, config=config)
    node = OmegaConf.select(cfg, parent) if parent else cfg
    if not isinstance(node, DictConfig):
        return f"{key} does not exist, nor does {parent}{did_you_mean(parent, map(str, cfg))}"
    names = [str(k) for k in node if not str(k).startswith("_")]
    return f"{key} does not exist{did_you_mean(name, names)}; {parent or 'this program'} has {', '.join(names)}"


class Interruptible:
    """While entered, Ctrl-C and SIGTERM only ask: ``signum`` tells which came, and the program stops where it is safe.

    A second signal stops at once, as does the first while ``at_once`` is set.
    """

    def __init__(self) -> None:
        self.signum = 0
        self.at_once = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        try:
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._before[signum] = signal.signal(signum, self._handle)
        except ValueError:  # not the main thread, where signals do not arrive
            pass
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    @contextmanager
    def stopping_at_once(self) -> Iterator[None]:
        """While entered, the first signal stops at once too."""
        self.at_once = True
        try:
            yield
        finally:
            self.at_once = False

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        again, self.signum = self.signum, signum
        if again or self.at_once:
            raise Interrupted(signum)
