"""Boards as pictures (SVG), for notebooks and dashboards."""

import numpy as np
import numpy.typing as npt

CELL = 40  # pixels
FIRST, SECOND, FREE, BOARD = "#f5c518", "#d43d2a", "#ffffff", "#2b5fb8"


def discs(cells: npt.NDArray[np.int8], labels: str) -> str:
    """Round stones in the holes of a board, with a label under each column.

    Args:
        cells: ``[rows, columns]``, top row first: 0 free, 1 first, 2 second player.
        labels: one character per column.
    """
    rows, columns = cells.shape
    circles = [
        f'<circle cx="{CELL * (column + 0.5):g}" cy="{CELL * (row + 0.5):g}" r="{CELL * 0.4:g}"'
        f' fill="{(FREE, FIRST, SECOND)[cells[row, column]]}"/>'
        for row in range(rows)
        for column in range(columns)
    ]
    board = f'<rect width="{CELL * columns}" height="{CELL * rows}" rx="6" fill="{BOARD}"/>'
    return _picture(columns, rows + 0.5, [board, *circles, *_labels(labels, rows + 0.25)])


def marks(cells: npt.NDArray[np.int8], labels: str) -> str:
    """Crosses and noughts on a ruled board, the labels of free cells inside.

    Args:
        cells: ``[rows, columns]``, top row first: 0 free, 1 first (cross), 2 second player (nought).
        labels: one character per cell, row by row.
    """
    rows, columns = cells.shape
    lines = [f'<path d="M{CELL * k} 0V{CELL * rows}" stroke="#888"/>' for k in range(1, columns)]
    lines += [f'<path d="M0 {CELL * k}H{CELL * columns}" stroke="#888"/>' for k in range(1, rows)]
    shapes = []
    for row in range(rows):
        for column in range(columns):
            x, y, r = CELL * (column + 0.5), CELL * (row + 0.5), CELL * 0.3
            if cells[row, column] == 1:
                cross = f"M{x - r:g} {y - r:g}l{2 * r:g} {2 * r:g}M{x + r:g} {y - r:g}l{-2 * r:g} {2 * r:g}"
                shapes.append(f'<path d="{cross}" stroke="{SECOND}" stroke-width="4"/>')
            elif cells[row, column] == 2:
                shapes.append(
                    f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" fill="none" stroke="{BOARD}" stroke-width="4"/>'
                )
            else:
                shapes += _labels(labels[row * columns + column], row + 0.5, column)
    return _picture(columns, rows, lines + shapes)


def _labels(labels: str, row: float, first: int = 0) -> list[str]:
    return [
        f'<text x="{CELL * (column + 0.5):g}" y="{CELL * row:g}" dy=".35em" text-anchor="middle"'
        f' font-family="sans-serif" font-size="14" fill="#888">{label}</text>'
        for column, label in enumerate(labels, first)
    ]


def _picture(columns: float, rows: float, shapes: list[str]) -> str:
    width, height = CELL * columns, CELL * rows
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>'
