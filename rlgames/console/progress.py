"""How a run reports its progress: a bar on a terminal, else a plain line every few seconds."""

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

LINE_EVERY = 10.0  # seconds


class ProgressBar:
    """Progress of a run of ``total`` games, of which ``games`` are already played."""

    def __init__(self, games: int, total: int) -> None:
        self._games, self._total, self._line_at = games, total, time.monotonic()
        self._bar = _bar() if sys.stdout.isatty() else None
        if self._bar:
            self._task = self._bar.add_task("", total=total, completed=games)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            with suppress(OSError):  # the terminal was closed
                self._bar.stop()

    def update(self, games: int, seconds: float, strength: str, exploration: str) -> None:
        """Show how far the run is.

        Args:
            games: total games played.
            seconds: time for this process's games, without evaluations.
            strength: how good the agent was last, such as "success 80.0 %".
            exploration: how much the learner explores, such as "epsilon 0.1".
        """
        speed = (games - self._games) / seconds if seconds > 0 else 0.0
        left = _duration((self._total - games) / speed) if speed > 0 else "-"
        text = f"{games:,}/{self._total:,} games, {speed:,.0f}/s, {left} left, {strength}, {exploration}"
        if self._bar:
            self._bar.update(self._task, completed=games, description=text)
        elif time.monotonic() - self._line_at >= LINE_EVERY:
            self.print(text)
            self._line_at = time.monotonic()

    def print(self, line: str) -> None:
        """Print a line above the bar.

        Raises:
            BrokenPipeError: if its reader is gone.
        """
        if self._bar:
            self._bar.console.print(line, markup=False)
        else:  # rich would end the program when a pipe breaks
            print(line, flush=True)


def _bar() -> Any:
    """A bar for the terminal; None if it cannot move the cursor."""
    from rich.console import Console  # here: most runs in files and sweeps need none
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(soft_wrap=True, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    return Progress(BarColumn(), TextColumn("{task.description}"), console=console, transient=True)


def _duration(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) if seconds < 86_400 else f"{seconds / 86_400:.1f} days"
