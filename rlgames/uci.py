"""A chess engine for graphical interfaces, by the Universal Chess Interface: ``python -m rlgames.uci checkpoint=...``.

One thread reads commands and answers at once; another does the work, beginning with the slow part, importing and
compiling: "uci" is answered before that, "isready" after it, so that no clock runs meanwhile.
"""

import contextlib
import gc
import io
import itertools
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import hydra
from omegaconf import DictConfig

from rlgames.build import CONF, ready
from rlgames.console import cli
from rlgames.training.trust import trusted

# numpy, numba and torch are imported by the thread that works.

MOVES_TO_GO = 30  # until the end of the game, unless the clock says otherwise
DEFAULT_MS = 1000.0  # for "go" without a limit
MOST_DEPTH = 64
COMMANDS = (
    "uci",
    "isready",
    "ucinewgame",
    "position",
    "go",
    "stop",
    "ponderhit",
    "setoption",
    "debug",
    "register",
    "quit",
)


class Thought:
    """One search, from "go" to "bestmove"."""

    def __init__(self, endless: bool = False) -> None:
        self.endless, self.stop, self.done = endless, threading.Event(), threading.Event()


class Uci:
    """The conversation with an interface.

    Args:
        load: returns the engine's thinker, see ``rlgames.chess.thinker.Thinker``; may take long.
        end: ends the process with a status, if there is no thinker, or no reader.
    """

    def __init__(self, load: Callable[[Callable[[str], None]], Any], end: Callable[[int], Any]) -> None:
        self._load, self._end = load, end
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._printing = threading.Lock()
        self._ready = threading.Event()
        self._asked, self._counting = 0, threading.Lock()  # how many "isready" await an answer
        self._thought = Thought()
        self._thought.done.set()
        self.thinker: Any = None
        threading.Thread(target=self._work, daemon=True).start()

    def run(self, lines: Iterable[str]) -> None:
        """Obey ``lines`` up to "quit" or their end."""
        for line in lines:
            words = line.split()
            known = next((k for k, word in enumerate(words) if word in COMMANDS), len(words))
            if known:  # unknown words are skipped
                self.say(f"info string unknown command {words[0][:40]}")
            words = words[known:]
            if words[:1] == ["quit"]:
                break
            if words:
                self._obey(words)
        else:  # the end of a script that expects answers, or of the interface
            while self._owes() and is_read(sys.stdout):
                time.sleep(0.02)
        self._halt(self._thought, wait=2.0)

    def _owes(self) -> bool:
        """Whether an answer is pending."""
        return self._asked > 0 or not (self._thought.done.is_set() or self._thought.endless)

    def say(self, line: str) -> None:
        """Print a line, from any thread."""
        try:
            with self._printing:
                print(line, flush=True)
        except (OSError, ValueError):  # the reader is gone
            self._end(1)

    def _obey(self, words: list[str]) -> None:
        command = words[0]
        if command == "uci":
            self.say("id name rlgames\nid author the rlgames authors")
            self.say("option name Hash type spin default 16 min 1 max 4096\noption name Clear Hash type button")
            self.say("option name MultiPV type spin default 1 min 1 max 64")
            self.say("option name Move Overhead type spin default 30 min 0 max 5000\nuciok")
        elif command == "isready":
            with self._counting:
                self._asked += 1
            if self._thought.done.is_set():  # once earlier requests are done
                self._jobs.put(self._answer_ready)
            elif self._ready.is_set():
                self._answer_ready()
        elif command in ("stop", "ponderhit"):  # Ponder is not offered; an interface that ponders anyway gets a move
            self._halt(self._thought)
        elif command == "go":
            self._halt(self._thought)  # an interface should have said stop
            self._thought = thought = Thought(endless="infinite" in words or "ponder" in words)
            if not self._ready.is_set():
                self.say("info string the search is being compiled, which happens once; please wait")
            began = time.monotonic()
            self._jobs.put(lambda: self._go(words[1:], began, thought))
        elif command == "position":
            self._jobs.put(lambda: self.thinker.position(words[1:]))
        elif command == "ucinewgame":
            self._jobs.put(lambda: self.thinker.clear())
        elif command == "setoption":
            self._jobs.put(lambda: self.thinker.set_option(*option(words[1:])))

    def _answer_ready(self) -> None:
        """Answer every "isready" that waits."""
        with self._counting:
            while self._asked:
                self.say("readyok")
                self._asked -= 1

    def _halt(self, thought: Thought, wait: float = 10.0) -> None:
        """End a search; asks repeatedly, since it may be about to begin."""
        thought.stop.set()
        end = time.monotonic() + wait if self._ready.is_set() else 0.0  # else a search ends when it begins
        while not thought.done.wait(0.005) and time.monotonic() < end:
            self.thinker.stop()

    def _work(self) -> None:
        try:
            self.thinker = self._load(self.say)
        except BaseException as error:
            self.say(f"info string error: {told(error)}")
            if not self._thought.done.is_set():
                self.say("bestmove 0000")
            self._end(1)
            return
        gc.collect()
        gc.freeze()  # else garbage collection over all modules would cost a tenth of a second of clock time
        self._ready.set()
        self._answer_ready()
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception as error:  # an engine survives; a command's fault is reported
                self.say(f"info string {told(error)}")

    def _go(self, words: list[str], began: float, thought: Thought) -> None:
        limits = numbers_of(words)
        thinker = self.thinker
        ms = None if thought.endless else milliseconds(words, limits, thinker.board.player() > 0, thinker.overhead)
        timer = None
        try:
            if ms is not None:
                seconds = max(0.0, began + ms / 1000 - time.monotonic())
                timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._halt, (thought,))
                timer.daemon = True
                timer.start()
            depth = limits.get("depth", 2 * limits["mate"] if "mate" in limits else MOST_DEPTH)
            nodes = max(1, limits["nodes"]) if "nodes" in limits else 0
            depth = min(max(1, depth), MOST_DEPTH)
            move = thinker.think(depth, nodes, thought.stop, began, moves_of(words))
            if thought.endless:
                thought.stop.wait()
        except Exception as error:
            move = "0000"
            self.say(f"info string {told(error)}")
        finally:
            if timer:
                timer.cancel()
        self.say(f"bestmove {move}")
        thought.done.set()


def told(error: BaseException) -> str:
    """``error`` in one line, with its type unless it was raised for people."""
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, OSError | ValueError) else f"{type(error).__name__} {text}"


def is_read(stream: Any) -> bool:
    """Whether ``stream`` may still have a reader: a pipe reports that its reader is gone."""
    try:
        poll = select.poll()
        poll.register(stream, 0)
        return not poll.poll(0)
    except (AttributeError, OSError, ValueError):  # not on this system, no file, or a closed one
        return True


def option(words: list[str]) -> tuple[str, str]:
    """Name, in lower case, and value of "name Move Overhead value 30"."""
    text = " ".join(words)
    name, _, value = text.partition(" value ")
    return name.removeprefix("name ").strip().lower(), value.strip()


def numbers_of(words: list[str]) -> dict[str, int]:
    """The whole numbers after their names in a "go" command; anything else is skipped."""
    found = {}
    for name, word in itertools.pairwise(words):
        if word.lstrip("-").isdecimal() and word.isascii() and len(word) < 19:
            found[name] = int(word)
    return found


def moves_of(words: list[str]) -> list[str]:
    """The moves after "searchmoves"."""
    behind = words[words.index("searchmoves") + 1 :] if "searchmoves" in words else []
    return [word.lower() for word in behind if word[0] in "abcdefghABCDEFGH" and word[1:2].isdecimal()]


def milliseconds(words: list[str], limits: dict[str, int], white: bool, overhead: int) -> float | None:
    """Time to think, None for no limit. With a clock, a thirtieth of it and most of the increment.

    But never much of the remaining time: with the whole increment used, any delay would lose.
    """
    if "movetime" in words:
        return max(0.0, limits.get("movetime", 0) - overhead)
    own, increment = ("wtime", "winc") if white else ("btime", "binc")
    if {"wtime", "btime", "winc", "binc", "movestogo"} & set(words):
        left = max(0.0, limits.get(own, 1000) - overhead)  # only the opponent's clock is known: be quick
        share = left / min(max(1, limits.get("movestogo", MOVES_TO_GO)), MOVES_TO_GO)
        most = (0.7 if "movestogo" in limits else 0.2) * left
        return min(share + 0.75 * max(0, limits.get(increment, 0)), most)
    return None if {"depth", "nodes", "mate"} & set(limits) else DEFAULT_MS


def load_thinker(checkpoint: str | None, say: Callable[[str], None], trust: Iterable[str] = ()) -> Any:
    """The thinker with the coefficients of ``checkpoint``, or those before learning, compiled."""
    from rlgames.chess.evaluation import start_values
    from rlgames.chess.thinker import Thinker

    if checkpoint is not None:
        try:
            from rlgames.chess.pairs import coefficients_of
            from rlgames.training import checkpoint as checkpoints  # brings torch, which takes a second

            return Thinker(coefficients_of(checkpoints.load(checkpoint, trust=trust), checkpoint), say)
        except Exception as error:
            say(f"info string error: {told(error)}; playing with the values before learning")
    return Thinker(start_values(), say)


def end(status: int) -> NoReturn:
    """End the process; a thread may be compiling, which nothing can interrupt."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout is not None:
            sys.stdout.flush()
    os._exit(status)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="uci")
def main(cfg: DictConfig) -> None:
    """Talk to an interface."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cfg = ready(cfg)
    Uci(lambda say: load_thinker(cfg.checkpoint, say, trusted(cfg)), end).run(sys.stdin or ())
    end(0)


if __name__ == "__main__":
    cli.run(main, "uci")
