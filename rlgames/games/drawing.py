"""Boards as pictures, for notebooks and dashboards: lists of shapes, placed in pixels from the top left."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

CELL = 40  # pixels
FIRST, SECOND, FREE, BOARD, INK, MARK = "#f5c518", "#d43d2a", "#ffffff", "#2b5fb8", "#888888", "#e83e8c"
GOOD, BAD = (46, 160, 67), (212, 61, 42)  # RGB of a won and of a lost move


class Rect(NamedTuple):
    """A filled rectangle with rounded corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0

    def moved(self, x: float, y: float) -> "Rect":
        """The same, shifted right by ``x`` and down by ``y``."""
        return self._replace(x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        """As an SVG element."""
        size = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f'<rect {size} rx="{self.radius:g}" fill="{self.fill}"/>'


class Circle(NamedTuple):
    """A circle, filled or outlined."""

    x: float
    y: float
    r: float
    fill: str = "none"
    stroke: str = "none"
    width: float = 0

    def moved(self, x: float, y: float) -> "Circle":
        """The same, shifted right by ``x`` and down by ``y``."""
        return self._replace(x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        """As an SVG element."""
        line = f' stroke="{self.stroke}" stroke-width="{self.width:g}"' if self.width else ""
        return f'<circle cx="{self.x:g}" cy="{self.y:g}" r="{self.r:g}" fill="{self.fill}"{line}/>'


class Line(NamedTuple):
    """A line between two points."""

    x: float
    y: float
    x2: float
    y2: float
    stroke: str = INK
    width: float = 1

    def moved(self, x: float, y: float) -> "Line":
        """The same, shifted right by ``x`` and down by ``y``."""
        return self._replace(x=self.x + x, y=self.y + y, x2=self.x2 + x, y2=self.y2 + y)

    def svg(self) -> str:
        """As an SVG element."""
        ends = f'x1="{self.x:g}" y1="{self.y:g}" x2="{self.x2:g}" y2="{self.y2:g}"'
        return f'<line {ends} stroke="{self.stroke}" stroke-width="{self.width:g}"/>'


class Text(NamedTuple):
    """Text centred on a point."""

    x: float
    y: float
    text: str
    size: float = 14
    fill: str = INK

    def moved(self, x: float, y: float) -> "Text":
        """The same, shifted right by ``x`` and down by ``y``."""
        return self._replace(x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        """As an SVG element."""
        font = f'text-anchor="middle" dy=".35em" font-family="sans-serif" font-size="{self.size:g}"'
        return f'<text x="{self.x:g}" y="{self.y:g}" {font} fill="{self.fill}">{escape(self.text)}</text>'


Shape = Rect | Circle | Line | Text


class Picture(NamedTuple):
    """Shapes on a transparent background of ``width`` by ``height`` pixels; notebooks display it directly."""

    width: float
    height: float
    shapes: Sequence[Shape]

    def svg(self) -> str:
        """The picture as SVG."""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(s.svg() for s in self.shapes)}</svg>'

    def _repr_svg_(self) -> str:
        return self.svg()


def row(pictures: Iterable[Picture], titles: Iterable[str] = (), gap: float = CELL / 2) -> Picture:
    """``pictures`` side by side, each below its title if ``titles`` has one."""
    pictures, titles = list(pictures), list(titles)
    top = CELL * 0.6 if titles else 0.0
    shapes: list[Shape] = []
    x = 0.0
    for k, picture in enumerate(pictures):
        shapes += [shape.moved(x, top) for shape in picture.shapes]
        shapes += [Text(x + picture.width / 2, top / 2, title, 12) for title in titles[k : k + 1]]
        x += picture.width + gap
    return Picture(max(0.0, x - gap), top + max((picture.height for picture in pictures), default=0.0), shapes)


def discs(cells: npt.NDArray[np.int8], labels: str, values: Mapping[int, float] | None = None) -> Picture:
    """Round stones in the holes of a board, with a label under each column.

    Args:
        cells: ``[rows, columns]``, top row first: 0 free, 1 first, 2 second player.
        labels: one character per column.
        values: move values, from -1 (lost) to +1 (won), by column; shown below the labels.
    """
    rows, columns = cells.shape
    shapes: list[Shape] = [Rect(0, 0, CELL * columns, CELL * rows, BOARD, 6)]
    for r in range(rows):
        for c in range(columns):
            shapes.append(Circle(CELL * (c + 0.5), CELL * (r + 0.5), CELL * 0.4, (FREE, FIRST, SECOND)[cells[r, c]]))
    shapes += [Text(CELL * (c + 0.5), CELL * (rows + 0.25), label) for c, label in enumerate(labels)]
    for c, value in (values or {}).items():
        shapes += _value(CELL * c, CELL * (rows + 0.5), CELL / 2, value)
    return Picture(CELL * columns, CELL * (rows + (1 if values else 0.5)), shapes)


def marks(cells: npt.NDArray[np.int8], labels: str, values: Mapping[int, float] | None = None) -> Picture:
    """Crosses and noughts on a ruled board, with labels in the free cells.

    Args:
        cells: ``[rows, columns]``, top row first: 0 free, 1 first (cross), 2 second player (nought).
        labels: one character per cell, row by row.
        values: move values, from -1 (lost) to +1 (won), by cell; shown in place of the labels.
    """
    rows, columns = cells.shape
    shapes: list[Shape] = []
    for cell, value in (values or {}).items():
        shapes += _value(CELL * (cell % columns), CELL * (cell // columns), CELL, value)
    shapes += [Line(CELL * k, 0, CELL * k, CELL * rows) for k in range(1, columns)]
    shapes += [Line(0, CELL * k, CELL * columns, CELL * k) for k in range(1, rows)]
    for r in range(rows):
        for c in range(columns):
            x, y, d = CELL * (c + 0.5), CELL * (r + 0.5), CELL * 0.3
            if cells[r, c] == 1:
                shapes += [Line(x - d, y - d, x + d, y + d, SECOND, 4), Line(x - d, y + d, x + d, y - d, SECOND, 4)]
            elif cells[r, c] == 2:
                shapes.append(Circle(x, y, d, stroke=BOARD, width=4))
            elif r * columns + c not in (values or {}):
                shapes.append(Text(x, y, labels[r * columns + c]))
    return Picture(CELL * columns, CELL * rows, shapes)


def marked(picture: Picture, cells: Iterable[tuple[int, int]]) -> Picture:
    """``picture`` of a board with a ring in each of ``cells`` (row from the top, column)."""
    rings = [Circle(CELL * (c + 0.5), CELL * (r + 0.5), CELL * 0.4, stroke=MARK, width=4) for r, c in cells]
    return picture._replace(shapes=[*picture.shapes, *rings])


def _value(x: float, y: float, height: float, value: float) -> list[Shape]:
    """The value of a move on a coloured background: the better, the greener; the worse, the redder."""
    strength = min(1.0, abs(value))
    shade = (round(255 + strength * (c - 255)) for c in (GOOD if value > 0 else BAD))
    ground = Rect(x + 1, y + 1, CELL - 2, height - 2, "#{:02x}{:02x}{:02x}".format(*shade), 3)
    return [ground, Text(x + CELL / 2, y + height / 2, f"{value:+.2f}", 11, "#000000" if strength < 0.7 else "#ffffff")]
