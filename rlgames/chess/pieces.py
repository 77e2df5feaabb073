"""Pieces, kings and threats, always for the side that moves up the board; see ``pawns`` for sinks."""

from typing import Any, NamedTuple

import numpy as np

from rlgames.chess import terms as t
from rlgames.chess.bitboards import (
    DARK,
    FILE_A,
    KING_ATTACKS,
    KNIGHT_ATTACKS,
    RANK_7,
    RANK_8,
    Word,
    bishop_attacks,
    count_bits,
    lowest_bit,
    rook_attacks,
    shift_down,
    swap_bytes,
)
from rlgames.chess.pawns import above, below, beside
from rlgames.compiled import compilable


class View(NamedTuple):
    """The board as the owner of ``own`` sees it, moving up.

    Attributes:
        pawns, knights, bishops, rooks, queens, kings: of both colours.
        own, their: all pieces of a colour.
        castling: own rights: 1 short, 2 long.
        waits: 1 if the other side is to move, else 0.
    """

    pawns: int
    knights: int
    bishops: int
    rooks: int
    queens: int
    kings: int
    own: int
    their: int
    castling: int
    waits: int


@compilable
def views(b: Any) -> tuple[View, View]:
    """``b`` as White and as Black sees it."""
    white = View(
        *(b.pawns, b.knights, b.bishops, b.rooks, b.queens, b.kings),
        *(b.white, b.black, b.castling & 3, b.ply & 1),
    )
    black = View(
        *(swap_bytes(b.pawns), swap_bytes(b.knights), swap_bytes(b.bishops)),
        *(swap_bytes(b.rooks), swap_bytes(b.queens), swap_bytes(b.kings)),
        *(swap_bytes(b.black), swap_bytes(b.white), b.castling >> 2, 1 - (b.ply & 1)),
    )
    return white, black


@compilable
def pieces(sink: Any, v: View) -> tuple[Word, Word]:
    """Sum of the terms of knights to king and of their threats, and all squares they attack, without the king's."""
    own_pawns, occupied = v.own & v.pawns, v.own | v.their
    own_support, guarded = beside(own_pawns) << 8, shift_down(beside(v.their & v.pawns), 8)
    free, their_king = ~(v.own | guarded), lowest_bit(v.kings & v.their)
    zone = KING_ATTACKS[their_king] | v.kings & v.their
    outposts = own_support & ~below(guarded) & 0x0000FFFFFF000000
    total, near = np.int64(0), 0
    knights, bishops, rooks, queens = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    rest = v.own & v.knights
    while rest:
        square = lowest_bit(rest)
        attacks = KNIGHT_ATTACKS[square]
        knights |= attacks
        near += attacks & zone != 0
        total += piece(sink, 0, t.MOBILITY[0], square, attacks, free, zone)
        rest &= rest - 1
    rest = v.own & v.bishops
    while rest:
        square = lowest_bit(rest)
        attacks = bishop_attacks(square, occupied)
        bishops |= attacks
        near += attacks & zone != 0
        total += piece(sink, 1, t.MOBILITY[1], square, attacks, free, zone)
        rest &= rest - 1
    rest = v.own & v.rooks
    while rest:
        square = lowest_bit(rest)
        attacks = rook_attacks(square, occupied)
        rooks |= attacks
        near += attacks & zone != 0
        total += piece(sink, 2, t.MOBILITY[2], square, attacks, free, zone)
        rest &= rest - 1
    rest = v.own & v.queens
    while rest:
        square = lowest_bit(rest)
        attacks = bishop_attacks(square, occupied) | rook_attacks(square, occupied)
        queens |= attacks
        near += attacks & zone != 0
        total += piece(sink, 3, t.MOBILITY[3], square, attacks, free, zone)
        rest &= rest - 1
    total += sink.note(t.KING_ATTACKERS + min(near, 7), 1)
    total += minor_pieces(sink, v, outposts, knights)
    total += heavy_pieces(sink, v, rooks)
    total += checks(sink, v, ~(v.own | guarded | zone), their_king, knights, bishops, rooks, queens)
    total += threats(sink, v, own_support, guarded, knights | bishops, rooks)
    return total, own_support | knights | bishops | rooks | queens


@compilable
def piece(sink: Any, kind: int, mobility: int, square: int, attacks: Word, free: Word, zone: Word) -> Word:
    """Sum of the terms of one knight (``kind`` 0) to queen (3): place, mobility, attacks near the enemy king."""
    total = sink.note(t.PIECE_SQUARE + 64 * kind + square, 1) + sink.note(mobility + count_bits(attacks & free), 1)
    return total + sink.note(t.KING_HITS + kind, count_bits(attacks & zone))


@compilable
def minor_pieces(sink: Any, v: View, outposts: Word, knight_attacks: Word) -> Word:
    """Sum of the terms of knights and bishops except place and mobility."""
    pawns, knights, bishops = v.own & v.pawns, v.own & v.knights, v.own & v.bishops
    n_pawns, n_knights, n_bishops = count_bits(pawns), count_bits(knights), count_bits(bishops)
    total = sink.note(t.MATERIAL + 1, n_knights) + sink.note(t.MATERIAL + 2, n_bishops)
    total += sink.note(t.KNIGHT_PAWNS, n_knights * n_pawns)
    if n_bishops > 1:
        total += sink.note(t.BISHOP_PAIR, 1)
    dark, light = count_bits(bishops & DARK) * count_bits(pawns & DARK), count_bits(pawns & ~DARK)
    total += sink.note(t.BISHOP_PAWNS, dark + count_bits(bishops & ~DARK) * light)
    total += sink.note(t.BEHIND_PAWN, count_bits((knights | bishops) << 8 & pawns))
    total += sink.note(t.OUTPOST_REACHED, count_bits(knight_attacks & outposts & ~v.own))
    if outposts & (knights | bishops):
        total += sink.note(t.BISHOP_OUTPOST, count_bits(bishops & outposts))
        for rank in range(3):
            total += sink.note(t.KNIGHT_OUTPOST + rank, count_bits(knights & outposts & np.int64(255) << 24 + 8 * rank))
    return total


@compilable
def heavy_pieces(sink: Any, v: View, rook_attacked: Word) -> Word:
    """Sum of the terms of rooks and queens except place and mobility."""
    pawns, rooks, queens = v.own & v.pawns, v.own & v.rooks, v.own & v.queens
    total = sink.note(t.MATERIAL + 3, count_bits(rooks)) + sink.note(t.MATERIAL + 4, count_bits(queens))
    if pawns == 0:
        total += sink.note(t.PAWNLESS, 1)
    if rooks | queens == 0:
        return total
    total += sink.note(t.ROOK_PAWNS, count_bits(rooks) * count_bits(pawns))
    half_open = rooks & ~(above(pawns) | below(pawns))
    their_files = above(v.their & v.pawns) | below(v.their & v.pawns)
    total += sink.note(t.ROOK_OPEN, count_bits(half_open & ~their_files))
    total += sink.note(t.ROOK_HALF_OPEN, count_bits(half_open & their_files))
    total += sink.note(t.CONNECTED_ROOKS, count_bits(rooks & rook_attacked))
    if v.their & (v.pawns & RANK_7 | v.kings & RANK_8):
        total += sink.note(t.ROOK_SEVENTH, count_bits(rooks & RANK_7))
        total += sink.note(t.QUEEN_SEVENTH, count_bits(queens & RANK_7))
    return total


@compilable
def checks(sink: Any, v: View, safe: Word, king: int, knights: Word, bishops: Word, rooks: Word, queens: Word) -> Word:
    """Sum of the terms of possible checks to the enemy ``king`` from ``safe`` squares."""
    occupied = v.own | v.their
    diagonal, straight = bishop_attacks(king, occupied) & safe, rook_attacks(king, occupied) & safe
    total = sink.note(t.KING_CHECKS, count_bits(KNIGHT_ATTACKS[king] & safe & knights))
    total += sink.note(t.KING_CHECKS + 1, count_bits(diagonal & bishops))
    total += sink.note(t.KING_CHECKS + 2, count_bits(straight & rooks))
    return total + sink.note(t.KING_CHECKS + 3, count_bits((diagonal | straight) & queens))


@compilable
def threats(sink: Any, v: View, pawn_attacks: Word, guarded: Word, minors: Word, rooks: Word) -> Word:
    """Sum of the terms of attacks on enemy pieces; ``guarded`` squares are attacked by enemy pawns."""
    empty = ~(v.own | v.their)
    blocked = v.own & v.pawns & ~shift_down(empty, 8)
    total = sink.note(t.BLOCKED_CENTRE, blocked >> 11 & 1) + sink.note(t.BLOCKED_CENTRE + 1, blocked >> 12 & 1)
    pushed = (v.own & v.pawns) << 8 & empty & ~guarded
    total += sink.note(t.PUSH_THREAT, count_bits(beside(pushed) << 8 & v.their & ~v.pawns))
    total += sink.note(t.KING_THREAT, count_bits(KING_ATTACKS[lowest_bit(v.kings & v.own)] & v.their & ~guarded))
    total += sink.note(t.SPACE, count_bits(0x000000003C3C3C00 & ~(v.own & v.pawns | guarded)))
    if pawn_attacks & v.their:
        total += threat_by(sink, v, t.PAWN_THREAT - 1, 1, pawn_attacks)
    if minors & v.their:
        total += threat_by(sink, v, t.MINOR_THREAT, 0, minors & ~(guarded & v.pawns))
    if rooks & v.their:
        total += threat_by(sink, v, t.ROOK_THREAT, 0, rooks & ~(guarded & (v.pawns | v.knights | v.bishops)))
    return total


@compilable
def threat_by(sink: Any, v: View, term: int, first: int, attacks: Word) -> Word:
    """Sum of the terms from ``term`` on for ``attacks`` on enemy pawns (if ``first`` is 0) to queens."""
    attacked = attacks & v.their
    total = sink.note(term, count_bits(attacked & v.pawns)) if first == 0 else np.int64(0)
    total += sink.note(term + 1, count_bits(attacked & v.knights)) + sink.note(
        term + 2, count_bits(attacked & v.bishops)
    )
    return (
        total
        + sink.note(term + 3, count_bits(attacked & v.rooks))
        + sink.note(term + 4, count_bits(attacked & v.queens))
    )


@compilable
def king_and_undefended(sink: Any, v: View, attacks: Word, their_attacks: Word) -> Word:
    """Sum of the terms of the own king, and of what enemy pieces do not defend.

    ``attacks`` are by all own pieces, ``their_attacks`` by all enemy pieces, both without the kings'.
    """
    their_king = KING_ATTACKS[lowest_bit(v.kings & v.their)]
    total = sink.note(t.KING_WEAK, count_bits(their_king & attacks & ~their_attacks))
    hanging = attacks & ~(their_attacks | their_king)
    if hanging & v.their:
        total += threat_by(sink, v, t.HANGING, 0, hanging)
    king = lowest_bit(v.kings & v.own)
    total += sink.note(t.PIECE_SQUARE + 256 + king, 1)
    total += sink.note(t.CASTLE_SHORT, v.castling & 1) + sink.note(t.CASTLE_LONG, v.castling >> 1)
    ahead = above(np.int64(255) << (king & 56))
    own, their = v.own & v.pawns & ahead, v.their & v.pawns & ahead
    middle = min(max(king & 7, 1), 6)
    for file in range(middle - 1, middle + 2):
        column, edge = np.int64(FILE_A) << file, 7 * min(file, 7 - file)
        mine, other = own & column, their & column
        total += sink.note(t.SHELTER + edge + (lowest_bit(mine) >> 3 if mine else 0), 1)
        total += sink.note(t.STORM + edge + (lowest_bit(other) >> 3 if other else 0), 1)
    column = np.int64(FILE_A) << (king & 7)
    if v.own & v.pawns & column == 0:
        total += sink.note(t.KING_HALF_OPEN if v.their & v.pawns & column else t.KING_OPEN, 1)
    return total
