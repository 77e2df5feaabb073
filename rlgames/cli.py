"""What all programs of the package share at the command line: errors in one sentence, and an orderly stop."""

import linecache
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from hydra.errors import CompactHydraException, ConfigCompositionException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.build import did_you_mean, load


def run(main: Callable[[], Any], config: str) -> NoReturn:
    """Run a Hydra program; answer an error of the user with one sentence, a bug with its traceback.

    Args:
        main: the function decorated by ``hydra.main``.
        config: its configuration, whose keys are suggested for misspelt ones.
    """
    full = os.environ.get("HYDRA_FULL_ERROR", "0") not in ("0", "")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets errors through to us, instead of printing them in Hydra's way
    try:
        main()
    except KeyboardInterrupt as error:
        sys.exit(128 + getattr(error, "signum", signal.SIGINT))
    except Exception as error:
        if full or not is_expected(error):
            traceback.print_exc()
        else:
            print(f"error: {sentence(error, config)}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)


def is_expected(error: BaseException) -> bool:
    """Whether ``error`` speaks to the user: of files, of the configuration, or raised on purpose by this package."""
    if isinstance(error, OSError | CompactHydraException | OmegaConfBaseException):
        return True
    if not isinstance(error, ValueError) or error.__traceback__ is None:
        return False
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(innermost.filename).is_relative_to(Path(__file__).parent)
    return ours and (linecache.getline(innermost.filename, innermost.lineno or 0).lstrip().startswith("raise "))


def sentence(error: BaseException, config: str = "train") -> str:
    """``error`` as one line."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        text = f"{group}={name!r} does not exist{did_you_mean(name, error.options)}; allowed are {', '.join(error.options)}"
    elif isinstance(error, MissingConfigException) and error.missing_cfg_file:
        text = f"there is no configuration {error.missing_cfg_file!r}"
    elif isinstance(error, ConfigCompositionException):
        unknown = re.match(r"Could not (?:override|append|delete).*?'([^']+)'", text)
        text = _unknown(unknown[1], config) if unknown else text
    elif isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{Path(os.fsdecode(error.filename)).absolute()}: {error.strerror}"
    return " ".join(text.split())


def _unknown(key: str, config: str) -> str:
    """A sentence on what may stand instead of the unknown dotted ``key``."""
    parent, _, name = key.lstrip("+~").rpartition(".")
    cfg = load(*_group_words(), config=config)
    node = OmegaConf.select(cfg, parent) if parent else cfg
    if not isinstance(node, DictConfig):
        return f"{key} does not exist, nor does {parent}{did_you_mean(parent, map(str, cfg))}"
    names = [str(k) for k in node if not str(k).startswith("_")]
    return f"{key} does not exist{did_you_mean(name, names)}; {parent or 'this program'} has {', '.join(names)}"


def _group_words() -> list[str]:
    """The words of the command line that choose existing files, for the keys that these have."""
    words = []
    for word in sys.argv[1:]:
        group, _, name = word.partition("=")
        try:
            load(word)
        except Exception:  # noqa: S112
            continue
        if "." not in group and not group.startswith("-"):
            words.append(word)
    return words


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM stopped the program, in good order."""

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.signum = signum


class Interruptible:
    """While entered, Ctrl-C and SIGTERM only ask: ``signum`` tells which came, and the program stops where it is safe to.

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

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        again, self.signum = self.signum, signum
        if again or self.at_once:
            raise Interrupted(signum)
