"""What a campaign consists of: cases, what they find, and the csv file that remembers both."""

import contextlib
import csv
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("commit", "part", "case", "verdict", "detail", "seconds", "command")
FINE = ("ok", "skipped", "accepted", "refused")  # any other verdict is the kind of a failure
# accepted: a value that looks out of range, refused: one that looks legal; both are for people to judge

Row = dict[str, str]


class FoundError(Exception):
    """A case ends otherwise than "ok".

    Args:
        verdict: one of ``FINE``, or the kind of failure in a word or two.
        detail: what was seen.
    """

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(f"{verdict}: {detail}")
        self.verdict, self.detail = verdict, " ".join(detail.split())[:300]


class Case(NamedTuple):
    """Something to try.

    Attributes:
        part: of the campaign.
        name: unique within the part, and the same whenever the campaign is run with this seed.
        run: tries it in an empty folder; returns what is worth knowing or raises ``FoundError``.
        command: that repeats it by hand; empty: the campaign itself, with ``--only``.
    """

    part: str
    name: str
    run: Callable[[Path], str | None]
    command: str = ""


class Book:
    """The rows of ``file`` that belong to ``commit``; of a case that was run again the last one counts."""

    def __init__(self, file: Path, commit: str) -> None:
        self.file, self.commit = file, commit
        self._writing = threading.Lock()
        self.rows: dict[tuple[str, str], Row] = {}
        with contextlib.suppress(FileNotFoundError), file.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["commit"] == commit:
                    self.rows[row["part"], row["case"]] = row

    def add(self, case: Case, verdict: str, detail: str, seconds: float, command: str) -> None:
        """Write a row at once, so that nothing is lost when the campaign is stopped."""
        row = dict(zip(COLUMNS, (self.commit, *case[:2], verdict, detail, f"{seconds:.1f}", command), strict=True))
        with self._writing:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
                if not stream.tell():
                    writer.writeheader()
                writer.writerow(row)
            self.rows[case.part, case.name] = row

    def failures(self) -> list[Row]:
        """The rows of cases that failed."""
        return [row for row in self.rows.values() if row["verdict"] not in FINE]

    def table(self, planned: Counter[str]) -> str:
        """Counts in Markdown, for the parts of which so many cases were ``planned``."""
        head = ["part", "cases", "run", *FINE, "failures", "minutes"]
        lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
        for part, number in planned.items():
            rows = [row for row in self.rows.values() if row["part"] == part]
            count = Counter(row["verdict"] for row in rows)
            failed = sum(number for verdict, number in count.items() if verdict not in FINE)
            minutes = sum(float(row["seconds"]) for row in rows) / 60
            cells = [part, number, len(rows), *(count[verdict] for verdict in FINE), failed, f"{minutes:.1f}"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        return "\n".join(lines)


def in_turns(parts: Iterable[list[Case]]) -> list[Case]:
    """The cases of all parts in one order, in which each part is always about as far as the others."""
    order = [((k + 0.5) / len(cases), case) for cases in parts for k, case in enumerate(cases)]
    return [case for _, case in sorted(order, key=lambda entry: entry[0])]
