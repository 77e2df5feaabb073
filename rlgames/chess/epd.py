"""Positions as lines of text: Extended Position Description (PGN standard, section 16.2), and FEN."""

import re
from collections.abc import Iterator
from pathlib import Path

_COUNTERS = re.compile(r"(?:(\d+)(?:\s+(\d+))?(?=[\s;]|$)[\s;]*)?(.*)", re.ASCII | re.DOTALL)


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of ``file`` with their numbers, without blank lines and comments (#).

    Raises:
        OSError: if it cannot be read.
    """
    for n, line in enumerate(file.read_text(encoding="utf-8-sig", errors="replace").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield n, line.strip()


def split_epd(line: str) -> tuple[str, dict[str, str]]:
    """The position of ``line`` as FEN, and its operations.

    Half-move clock and move number may follow the position, as in FEN, or be the operations hmvc and fmvn; the defaults
    are 0 and 1.
    """
    *fields, rest = [*line.split(None, 4), "", "", "", "", ""][:5]
    clock, number, rest = _COUNTERS.match(rest).groups()  # type: ignore[union-attr] # matches every text
    notes = operations(rest)
    counters = [notes.get("hmvc", clock or "0"), notes.get("fmvn", number or "1")]
    return " ".join([field.rstrip(";") for field in fields if field] + counters * (fields[3] != "")), notes


def operations(text: str) -> dict[str, str]:
    """The operations of EPD, ``bm Qd1+; id "BK.01";``, by their names."""
    found, words, quoted = {}, "", False
    for letter in text + ";":
        quoted ^= letter == '"'
        if letter == ";" and not quoted:
            name, *operands = words.split(None, 1) or [""]
            if name:
                found[name] = "".join(operands).strip().strip('"')
            words = ""
        else:
            words += letter
    return found
