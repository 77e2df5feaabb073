"""Boards and questions in a terminal."""

import os
import sys
from collections.abc import Mapping
from typing import Any

STONES = {1: "\x1b[93m", 2: "\x1b[91m"}  # first player yellow, second red, as in the pictures
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def colours() -> bool:
    """Whether stdout shows colours: a terminal, unless $NO_COLOR or $TERM=dumb forbids it."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def picture(
    game: Any, board: Any, notes: Mapping[int, str] | None = None, before: Any = None, colour: bool = False
) -> str:
    """The board for people.

    Args:
        game: the game.
        board: the position.
        notes: words to write beside moves, separated by blanks.
        before: the previous position; changes stand out (in colour only).
        colour: whether to colour stones.
    """
    notes = notes or {}
    inside = game.n_moves == game.n_cells  # else a move is a column
    stones, old = game.cells(board), game.cells(board if before is None else before)
    texts = [
        [(" XO"[s], _paint(s, s != o)) for s, o in zip(*both, strict=True)]
        for both in zip(stones.tolist(), old.tolist(), strict=True)
    ]
    for row, cells in enumerate(game.grid.tolist()):
        for column, cell in enumerate(cells):
            if not stones[row, column]:
                free = f"{game.labels[cell]} {notes.get(cell, '')}".rstrip() if inside else "."
                texts[row][column] = (free, DIM)
    if not inside:
        texts.append([(label, "") for label in game.labels])
        columns = [notes.get(move, "").split() for move in range(game.n_moves)]
        for line in range(max(map(len, columns))):
            texts.append([(words[line] if line < len(words) else "", "") for words in columns])
    width = 2 + max(len(text) for row in texts for text, _ in row)
    rows = ("".join(_cell(text, code if colour else "", width) for text, code in row) for row in texts)
    return "\n".join(row.rstrip() for row in rows)


def _paint(stone: int, new: bool) -> str:
    return STONES.get(stone, "") + (BOLD if new else "")


def _cell(text: str, code: str, width: int) -> str:
    return (f"{code}{text}{PLAIN}" if code and text else text) + " " * (width - len(text))


def ask(prompt: str) -> str | None:
    """A word from the user, in lower case; None for quit and at end of input."""
    try:
        word = input(prompt).strip().lower()
    except EOFError:
        print()
        return None
    return None if word in ("quit", "q", "exit") else word
