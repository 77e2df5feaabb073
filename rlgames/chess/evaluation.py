"""The evaluation of chess positions: a sum of coefficient x count over named terms, from White's view, in pawns.

``J(board) = sum of coefficient[i] x count[i]``; terms are counted for White and, on the board turned upside down, for
Black, and subtracted, so exchanging colours negates the value exactly. Counts of middlegame and endgame coefficients
are weighted by the stage: phase / 24 and 1 - phase / 24, where knights and bishops on the board count 1, rooks 2 and
queens 4.

Inside the search J is a whole number of 1 / (24 x 2^14) pawns: coefficients are rounded to 2^-14 pawns, middlegame and
endgame sums share one 64-bit word, and the value of a position does not depend on the order of additions.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.bitboards import Word, count_bits, swap_bytes
from rlgames.chess.pawns import passed_pawns, pawn_structure
from rlgames.chess.pieces import View, king_and_undefended, pieces, views
from rlgames.chess.terms import FULL_PHASE, N_MATERIAL, N_TERMS, NAMES, SIZE, TEMPO
from rlgames.compiled import compilable, compile_function, value

__all__ = ["NAMES", "SIZE"]

RESOLUTION = 2**14  # steps per pawn of a coefficient
PAWN = FULL_PHASE * RESOLUTION  # a pawn in whole numbers
LARGEST = 1000.0  # pawns: the largest coefficient that fits the whole numbers
START_MATERIAL = (1.0, 4.0, 4.0, 6.0, 12.0)  # pawn to queen in pawns (KnightCap: Baxter, Tridgell and Weaver 1998)

Floats = npt.NDArray[np.float32]
Terms = npt.NDArray[np.int64]


@value
class Coefficients(NamedTuple):
    """A sink that looks coefficients up; ``packed``: ``[N_TERMS]``, endgame x 2^32 + middlegame."""

    packed: Terms

    def note(self, term: int, count: int) -> Word:
        """``count`` times the coefficients of ``term``, packed."""
        return self.packed[term] * count


@value
class Counter(NamedTuple):
    """A sink that counts terms; ``[N_TERMS]``, with the sign of the current colour."""

    counts: Terms
    sign: int

    def note(self, term: int, count: int) -> Word:
        """Count ``term`` ``count`` times more."""
        self.counts[term] += self.sign * count
        return 0


@compilable
def phase(b: Any) -> int:
    """Share of the middlegame in 1 / ``FULL_PHASE``, from the pieces on the board."""
    return min(count_bits(b.knights | b.bishops) + 2 * count_bits(b.rooks) + 4 * count_bits(b.queens), FULL_PHASE)


@compilable
def pawn_sum(white: Any, black: Any, v: View, w: View) -> tuple[Word, Word, Word]:
    """Packed sum over the pawns from White's view, and the passed pawns as White and as Black sees them."""
    sum_white, passed_white = pawn_structure(white, v.pawns & v.own, v.pawns & v.their)
    sum_black, passed_black = pawn_structure(black, w.pawns & w.own, w.pawns & w.their)
    return sum_white - sum_black, passed_white, passed_black


@compilable
def piece_sum(white: Any, black: Any, v: View, w: View, passed_white: Word, passed_black: Word) -> Word:
    """Packed sum over everything but pawn structure, from White's view."""
    sum_white, attacks_white = pieces(white, v)
    sum_black, attacks_black = pieces(black, w)
    total = sum_white - sum_black + white.note(TEMPO, 1 - v.waits) - black.note(TEMPO, 1 - w.waits)
    total += passed_pawns(white, v, passed_white, swap_bytes(passed_black))
    total -= passed_pawns(black, w, passed_black, swap_bytes(passed_white))
    total += king_and_undefended(white, v, attacks_white, swap_bytes(attacks_black))
    return total - king_and_undefended(black, w, attacks_black, swap_bytes(attacks_white))


@compilable
def interpolate(total: Word, phase: int) -> Word:
    """J in 1 / ``PAWN`` pawns from a packed sum."""
    middlegame = np.int64(np.int32(total))
    return middlegame * phase + (total - middlegame >> 32) * (FULL_PHASE - phase)


@compilable
def evaluation(c: Coefficients, b: Any) -> Word:
    """J of ``b`` from White's view in 1 / ``PAWN`` pawns."""
    v, w = views(b)
    pawns, passed_white, passed_black = pawn_sum(c, c, v, w)
    return interpolate(pawns + piece_sum(c, c, v, w, passed_white, passed_black), phase(b))


@compile_function
def pack(coefficients: Floats, packed: Terms) -> None:
    """Round ``coefficients`` (``[SIZE]``, pawns) into ``packed`` (``[N_TERMS]``)."""
    for term in range(N_TERMS):
        first = term if term < N_MATERIAL else 2 * term - N_MATERIAL
        second = term if term < N_MATERIAL else first + 1
        middlegame = np.int64(np.rint(coefficients[first] * RESOLUTION))
        packed[term] = middlegame + (np.int64(np.rint(coefficients[second] * RESOLUTION)) << 32)


@compile_function
def evaluate_packed(packed: Terms, b: Any) -> Word:
    """J of ``b`` from White's view in 1 / ``PAWN`` pawns."""
    return evaluation(Coefficients(packed), b)


@compile_function
def write_features(b: Any, indices: npt.NDArray[np.int32], counts: Floats, terms: Terms) -> int:
    """Write the indices and counts of the coefficients that apply in ``b``; return how many.

    Args:
        b: the position.
        indices: ``[SIZE]``, filled from the beginning.
        counts: ``[SIZE]``, filled likewise.
        terms: ``[N_TERMS]``, overwritten.
    """
    terms[:] = 0
    v, w = views(b)
    white, black = Counter(terms, 1), Counter(terms, -1)
    _, passed_white, passed_black = pawn_sum(white, black, v, w)
    piece_sum(white, black, v, w, passed_white, passed_black)
    n, share = 0, phase(b)
    for term in range(N_TERMS):
        if terms[term] != 0:
            if term < N_MATERIAL:
                indices[n], counts[n] = term, terms[term]
                n += 1
                continue
            first = 2 * term - N_MATERIAL
            if share > 0:
                indices[n], counts[n] = first, terms[term] * share / FULL_PHASE
                n += 1
            if share < FULL_PHASE:
                indices[n], counts[n] = first + 1, terms[term] * (FULL_PHASE - share) / FULL_PHASE
                n += 1
    return n


def features(board: Any) -> tuple[npt.NDArray[np.int32], Floats]:
    """Indices and counts of the coefficients in ``board``: J = sum of coefficient[indices] x counts, in pawns."""
    indices, counts = np.empty(SIZE, np.int32), np.empty(SIZE, np.float32)
    n = write_features(board, indices, counts, np.empty(N_TERMS, np.int64))
    return indices[:n].copy(), counts[:n].copy()


def packed_coefficients(coefficients: npt.ArrayLike) -> Terms:
    """``coefficients`` (``[SIZE]``, pawns) in the search's form, ``[N_TERMS]``.

    Raises:
        ValueError: if their number is wrong, or one is not finite or above 1000 pawns.
    """
    array = np.ascontiguousarray(coefficients, np.float32)
    if array.shape != (SIZE,):
        raise ValueError(f"coefficients: there are {array.shape} of them; the evaluation has {SIZE}")
    if not (np.abs(array) <= LARGEST).all():
        worst = int(np.argmax(np.where(np.isfinite(array), np.abs(array), np.inf)))
        raise ValueError(f"coefficients: {NAMES[worst]} is {array[worst]} pawns; it must be at most {LARGEST:g}")
    packed = np.empty(N_TERMS, np.int64)
    pack(array, packed)
    return packed


def evaluate(coefficients: npt.ArrayLike, board: Any) -> float:
    """J of ``board`` in pawns from White's view, with ``coefficients`` rounded to 2^-14 pawns.

    Raises:
        ValueError: see ``packed_coefficients``.
    """
    return int(evaluate_packed(packed_coefficients(coefficients), board)) / PAWN


def start_values() -> Floats:
    """Coefficients to learn from: material only."""
    values = np.zeros(SIZE, np.float32)
    values[:N_MATERIAL] = START_MATERIAL
    return values
