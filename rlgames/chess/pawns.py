"""Pawn structure, and passed pawns among the pieces; always for the side that moves up the board.

Functions take a ``View`` and a sink. ``sink.note(term, count)`` either looks up the coefficient or counts, so the
evaluation and the features share one source.
"""

from typing import Any

from rlgames.chess.bitboards import NOT_A, NOT_H, Word, bit, count_bits, lowest_bit, shift_down
from rlgames.chess.terms import (
    BACKWARD,
    BACKWARD_OPEN,
    DOUBLED,
    ENEMY_TO_PASSED,
    ISLANDS,
    ISOLATED,
    KING_TO_PASSED,
    MATERIAL,
    PASSED,
    PASSED_BLOCKED,
    PASSED_FREE,
    PASSED_SUPPORTED,
    PAWN_SQUARE,
    PHALANX,
    ROOK_BEHIND_ENEMY,
    ROOK_BEHIND_OWN,
    SUPPORTED,
    UNSTOPPABLE,
)
from rlgames.compiled import compilable


@compilable
def east(squares: Word) -> Word:
    """The squares to the right of ``squares``."""
    return (squares & NOT_H) << 1


@compilable
def west(squares: Word) -> Word:
    """The squares to the left of ``squares``."""
    return shift_down(squares & NOT_A, 1)


@compilable
def beside(squares: Word) -> Word:
    """The squares to the left and right of ``squares``."""
    return east(squares) | west(squares)


@compilable
def above(squares: Word) -> Word:
    """``squares`` and all squares in front."""
    squares |= squares << 8
    squares |= squares << 16
    return squares | squares << 32


@compilable
def below(squares: Word) -> Word:
    """``squares`` and all squares behind."""
    squares |= shift_down(squares, 8)
    squares |= shift_down(squares, 16)
    return squares | shift_down(squares, 32)


@compilable
def distance(a: int, b: int) -> int:
    """King moves between two squares."""
    return max(abs((a & 7) - (b & 7)), abs((a >> 3) - (b >> 3)))


@compilable
def pawn_structure(sink: Any, own: Word, their: Word) -> tuple[Word, Word]:
    """Sum of the terms that depend on pawns alone, and the passed pawns.

    Args:
        sink: see above.
        own: pawns that move up.
        their: pawns that move down.
    """
    own_reach, their_attacks = above(beside(own) << 8), shift_down(beside(their), 8)
    passed = own & ~below(shift_down(their | beside(their), 8)) & ~below(shift_down(own, 8))
    supported, phalanx = own & beside(own) << 8, own & beside(own)
    files = above(own) | below(own)
    neighbours, doubled = beside(files), own & below(shift_down(own, 8))
    stopped = own & shift_down(their_attacks & ~own_reach, 8) & neighbours
    total = sink.note(MATERIAL, count_bits(own))
    total += sink.note(BACKWARD, count_bits(stopped))
    total += sink.note(BACKWARD_OPEN, count_bits(stopped & ~below(their)))
    total += sink.note(ISLANDS, count_bits(files & ~east(files) & 255))
    rest = own
    while rest:
        square = lowest_bit(rest)
        file, rank, pawn = square & 7, (square >> 3) - 1, rest & -rest
        total += sink.note(PAWN_SQUARE + square - 8, 1)
        if pawn & neighbours == 0:
            total += sink.note(ISOLATED + file, 1)
        if pawn & doubled:
            total += sink.note(DOUBLED + file, 1)
        if pawn & phalanx:
            total += sink.note(PHALANX + rank, 1)
        if pawn & supported:
            total += sink.note(SUPPORTED + rank - 1, 1)
        if pawn & passed:
            total += sink.note(PASSED + rank, 1)
            if pawn & supported:
                total += sink.note(PASSED_SUPPORTED + rank - 1, 1)
        rest &= rest - 1
    return total, passed


@compilable
def passed_pawns(sink: Any, v: Any, passed: Word, their_passed: Word) -> Word:
    """Sum of the terms of passed pawns and the pieces around them; ``their_passed`` move down."""
    total = sink.note(ROOK_BEHIND_OWN, count_bits(v.rooks & v.own & below(passed)))
    total += sink.note(ROOK_BEHIND_ENEMY, count_bits(v.rooks & v.own & above(their_passed)))
    if passed == 0:
        return total
    occupied, king, their_king = v.own | v.their, lowest_bit(v.kings & v.own), lowest_bit(v.kings & v.their)
    alone = v.their & ~(v.pawns | v.kings) == 0
    while passed:
        square = lowest_bit(passed)
        rank, stop, path = (square >> 3) - 1, square + 8, above(bit(square + 8))
        if v.their >> stop & 1:
            total += sink.note(PASSED_BLOCKED + rank, 1)
        elif path & occupied == 0:
            total += sink.note(PASSED_FREE + rank, 1)
            moves = min(6 - rank, 5)  # to promotion; the first move may be double
            if alone and distance(their_king, 56 + (square & 7)) - v.waits > moves:
                total += sink.note(UNSTOPPABLE, 1)
        if rank >= 2:
            total += sink.note(KING_TO_PASSED + distance(king, stop), 1)
            total += sink.note(ENEMY_TO_PASSED + distance(their_king, stop), 1)
        passed &= passed - 1
    return total
