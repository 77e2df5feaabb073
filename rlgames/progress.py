"""How a run shows itself while it goes on: a bar on a terminal, else a plain line every few seconds."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

LINE_EVERY = 10.0  # seconds


class ProgressBar:
    """Progress of a run of ``total`` games, of which ``games`` were played before."""

    def __init__(self, games: int, total: int) -> None:
        self._console = Console(soft_wrap=True, highlight=False)
        self._total, self._last = total, (time.monotonic(), games)
        self._bar = _bar(self._console) if self._console.is_terminal and not self._console.is_dumb_terminal else None
        if self._bar:
            self._task = self._bar.add_task("", total=total, completed=games, success="-", epsilon=0.0)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, games: int, success: float | None, epsilon: float) -> None:
        """Show that ``games`` have been played, the last success rate and the present epsilon."""
        rate = "-" if success is None else f"{100 * success:.1f} %"
        if self._bar:
            self._bar.update(self._task, completed=games, success=rate, epsilon=epsilon)
            return
        now = time.monotonic()
        then, before = self._last
        if now - then >= LINE_EVERY:
            speed = (games - before) / (now - then)
            left = _duration((self._total - games) / speed) if speed > 0 else "-"
            done = f"{games:,} of {self._total:,} games"
            self.print(f"{done}, {speed:,.0f} games/s, {left} left, success {rate}, epsilon {epsilon:.3g}")
            self._last = now, games

    def print(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, markup=False)
        sys.stdout.flush()


def success_text(row: Mapping[str, Any], protocol: str) -> str:
    """The success rate of ``protocol`` in a row of progress.csv, with its 95 % interval."""
    figures = [row.get(f"{name}_{protocol}") for name in ("success", "low", "high")]
    if None in figures:
        return "not measured"
    success, low, high = (f"{100 * figure:.1f}" for figure in figures if figure is not None)
    return f"{success} % (95 % interval {low} to {high} %)"


def _bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} games"),
        _Speed(),
        TimeRemainingColumn(compact=True),
        TextColumn("success {task.fields[success]}"),
        TextColumn("epsilon {task.fields[epsilon]:.3g}"),
        console=console,
        expand=True,
    )


class _Speed(ProgressColumn):
    """Games per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} games/s" if task.speed else "- games/s")


def _duration(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) if seconds < 86_400 else f"{seconds / 86_400:.1f} days"
