"""Sets of squares as 64-bit words, and the attacks of pieces; shared by rules, features and search.

Square = 8 * rank + file, bit = square; a1 = 0, h1 = 7, h8 = 63. Words are int64 in two's complement (a set with h8 is
negative), so ``>>`` extends the sign: use ``shift_down``. Pieces are numbered as in ``PIECES``.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rlgames.compiled import compilable
from rlgames.compiled.words import count_bits, highest_bit, lowest_bit, swap_bytes

__all__ = ["count_bits", "lowest_bit", "swap_bytes"]

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, NONE = range(7)
PIECES = "PNBRQK"
Words = npt.NDArray[np.int64]
Word: TypeAlias = Any  # such a word: int in Python, int64 in compiled code


def signed(word: int) -> int:
    """The 64-bit ``word`` in two's complement."""
    return (word & 2**64 - 1) - (word >> 63 & 1) * 2**64


FILE_A = 0x0101010101010101
NOT_A, NOT_H = signed(~FILE_A), signed(~(FILE_A << 7))
RANK_1, RANK_2, RANK_7, RANK_8 = 255, 255 << 8, 255 << 48, signed(255 << 56)
DARK = signed(0xAA55AA55AA55AA55)  # a1 and the squares of its colour


def _leap(steps: tuple[tuple[Word, Word], ...], reach: int = 1) -> Words:
    """Per square, the set within ``reach`` repetitions of ``steps`` (files, ranks); int64 ``[64]``."""
    table = np.zeros(64, np.int64)
    for square in range(64):
        word = 0
        for right, up in steps:
            for n in range(1, reach + 1):
                file, rank = square % 8 + n * right, square // 8 + n * up
                if 0 <= file < 8 and 0 <= rank < 8:
                    word |= 1 << 8 * rank + file
        table[square] = signed(word)
    return table


_STRAIGHT, _DIAGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
KNIGHT_ATTACKS = _leap(((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)))
KING_ATTACKS = _leap(_STRAIGHT + _DIAGONAL)
PAWN_ATTACKS = np.stack([_leap(((-1, 1), (1, 1))), _leap(((-1, -1), (1, -1)))])  # [White, Black]
_LINES = ((1, 0), (0, 1), (1, 1), (-1, 1))  # rank, file and the diagonals, towards higher squares
ABOVE = np.stack([_leap(((right, up),), 7) for right, up in _LINES], 1)  # [64, 4]
BELOW = np.stack([_leap(((-right, -up),), 7) for right, up in _LINES], 1)


@compilable
def bit(square: int) -> Word:
    """The set of one square."""
    return np.int64(1) << square


@compilable
def shift_down(word: Word, n: int) -> Word:
    """``word`` shifted towards a1 by ``n`` bits, 1 to 63, filled with zeros."""
    return (word >> n) & ~(np.int64(-1) << (64 - n))


@compilable
def slide(square: int, line: int, occupied: Word) -> Word:
    """Squares seen along one line: from the nearest piece below to the nearest one above.

    2 x (lowest bit above) - (highest bit below) has its ones exactly there (M. Hoffmann's "obstruction difference").
    """
    below, above = BELOW[square, line], ABOVE[square, line]
    upper = occupied & above
    lower = np.int64(1) << highest_bit(occupied & below | 1)
    return (2 * (upper & -upper) - lower) & (below | above)


@compilable
def bishop_attacks(square: int, occupied: Word) -> Word:
    """Squares that a bishop attacks."""
    return slide(square, 2, occupied) | slide(square, 3, occupied)


@compilable
def rook_attacks(square: int, occupied: Word) -> Word:
    """Squares that a rook attacks."""
    return slide(square, 0, occupied) | slide(square, 1, occupied)


def _lines() -> tuple[Words, Words]:
    """Per pair of squares on a line, the squares between them and the whole line; else 0. ``[64, 64]`` each."""
    between, line = np.zeros((64, 64), np.int64), np.zeros((64, 64), np.int64)
    for a in range(64):
        for k in range(4):
            whole = int(ABOVE[a, k] | BELOW[a, k])
            for b in range(64):
                if whole >> b & 1:
                    line[a, b] = signed(whole | 1 << a)
                    inside = range(min(a, b) + 1, max(a, b))
                    between[a, b] = signed(sum(1 << c for c in inside if whole >> c & 1))
    return between, line


BETWEEN, LINE = _lines()
