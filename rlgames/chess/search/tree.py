"""What a search found about the positions of its tree, which TreeStrap learns from (Veness et al. 2009)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.board import Board
from rlgames.chess.evaluation import PAWN, SIZE, evaluate_packed, packed_coefficients, write_features
from rlgames.chess.search.memory import MOST_NOTES
from rlgames.chess.terms import N_TERMS
from rlgames.compiled import compilable, compile_function

BOARD = len(Board._fields)
DEPTH, BOUND, SCORE = BOARD, BOARD + 1, BOARD + 2  # places in a note, behind the numbers of the board

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@compilable
def note(s: Any, b: Board, depth: int, bound: int, score: int) -> None:
    """Record what was found about ``b``, if there is room."""
    if s.noted < MOST_NOTES:
        row = s.notes[s.half, s.noted]
        for k, number in enumerate(b):
            row[k] = number
        row[DEPTH], row[BOUND], row[SCORE] = depth, bound, score
        s.noted += 1


class Tree(NamedTuple):
    """What the last whole iteration of a search found about positions it searched at least a move deep.

    Attributes:
        boards: the numbers of a ``Board``, ``[n, 13]``.
        players: to move, +1 or -1, ``[n]``.
        depths: half-moves searched, including the extension in check, ``[n]``.
        bounds: kind of each score, ``EXACT``, ``LOWER`` or ``UPPER`` of ``rlgames.search.bounds``, ``[n]``.
        scores: for the side to move, in pawns; a mate is more than a thousand, ``[n]``.
        quiet: whether the side to move is not in check and no capture promises more than the evaluation, ``[n]``.
    """

    boards: Rows
    players: Rows
    depths: Rows
    bounds: Rows
    scores: Floats
    quiet: npt.NDArray[np.bool_]


def noted(memory: Any) -> Rows:
    """The notes of ``memory``, ``[n, NOTE]``; for a recurring position, the last one."""
    rows = memory["notes"][1 - memory["half"], : memory["kept"]][::-1]
    return np.ascontiguousarray(rows[np.unique(rows[:, Board._fields.index("key")], return_index=True)[1]])


def tree_of(rows: Rows, quiet: npt.NDArray[np.bool_]) -> Tree:
    """The tree that ``rows`` of notes describe."""
    players = 1 - 2 * (rows[:, Board._fields.index("ply")] & 1)
    return Tree(rows[:, :BOARD].copy(), players, rows[:, DEPTH], rows[:, BOUND], rows[:, SCORE] / PAWN, quiet)


@compilable
def board_of(row: Rows) -> Board:
    """The position at the start of ``row``."""
    return Board(
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11], row[12]
    )


@compile_function
def _evaluate(rows: Rows, packed: Rows, values: Floats) -> None:
    for n in range(len(rows)):
        values[n] = evaluate_packed(packed, board_of(rows[n])) / PAWN


@compile_function
def _add_counts(
    rows: Rows,
    factors: Floats,
    total: Floats,
    indices: npt.NDArray[np.int32],
    counts: npt.NDArray[np.float32],
    terms: Rows,
) -> None:
    for n in range(len(rows)):
        if factors[n] != 0:
            used = write_features(board_of(rows[n]), indices, counts, terms)
            for k in range(used):
                total[indices[k]] += factors[n] * counts[k]


def evaluations(rows: Rows, coefficients: npt.ArrayLike) -> Floats:
    """J of positions in pawns from White's view, ``[n]``.

    Raises:
        ValueError: for invalid coefficients.
    """
    values = np.empty(len(rows))
    _evaluate(rows, packed_coefficients(coefficients), values)
    return values


def weighted_counts(rows: Rows, factors: Floats) -> Floats:
    """Sum over positions of factor times count, for every coefficient, ``[SIZE]``; White's view."""
    total = np.zeros(SIZE)
    _add_counts(rows, factors, total, np.empty(SIZE, np.int32), np.empty(SIZE, np.float32), np.empty(N_TERMS, np.int64))
    return total
