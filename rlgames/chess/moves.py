"""Attacks, legal moves, draws; compiled functions of the ``Board`` of ``rlgames.chess.board``."""

from typing import Any

import numpy as np
import numpy.typing as npt

from rlgames.chess.bitboards import (
    BETWEEN,
    DARK,
    KING_ATTACKS,
    KNIGHT_ATTACKS,
    LINE,
    NONE,
    PAWN_ATTACKS,
    RANK_1,
    RANK_8,
    Word,
    bishop_attacks,
    bit,
    count_bits,
    lowest_bit,
    rook_attacks,
)
from rlgames.compiled import compilable, compile_function

MOST_MOVES = 448  # enough for any 16 pieces (15 queens: 413); the most in a reachable position is 218


@compilable
def piece_at(b: Any, square: int) -> int:
    """The kind of piece on ``square``, ``NONE`` if it is empty."""
    kind = (b.knights >> square & 1) + 2 * (b.bishops >> square & 1) + 3 * (b.rooks >> square & 1)
    kind += 4 * (b.queens >> square & 1) + 5 * (b.kings >> square & 1)
    return kind + NONE * (1 - ((b.white | b.black) >> square & 1))  # type: ignore[no-any-return]


@compilable
def attackers(b: Any, square: int, occupied: Word) -> Word:
    """Pieces of both colours that attack ``square``, given the ``occupied`` squares."""
    pawns = (PAWN_ATTACKS[1, square] & b.white | PAWN_ATTACKS[0, square] & b.black) & b.pawns
    leapers = KNIGHT_ATTACKS[square] & b.knights | KING_ATTACKS[square] & b.kings
    diagonal = bishop_attacks(square, occupied) & (b.bishops | b.queens)
    return pawns | leapers | diagonal | rook_attacks(square, occupied) & (b.rooks | b.queens)


@compilable
def sides(b: Any) -> tuple[Word, Word]:
    """Pieces of the side to move, and of the other."""
    return (b.black, b.white) if b.ply & 1 else (b.white, b.black)


@compile_function
def checkers(b: Any) -> Word:
    """Pieces that attack the king of the side to move."""
    own, their = sides(b)
    return attackers(b, lowest_bit(own & b.kings), own | their) & their


@compilable
def can_take_en_passant(b: Any, source: int, target: int) -> bool:
    """Whether the pawn on ``source`` may take en passant on ``target`` without leaving its king in check."""
    own, their = sides(b)
    victim = bit(target ^ 8)
    occupied = (own | their) & ~(victim | bit(source)) | bit(target)
    return attackers(b, lowest_bit(own & b.kings), occupied) & their & ~victim == 0  # type: ignore[no-any-return]


@compilable
def legal_en_passant(b: Any, target: int) -> int:
    """``target``, behind a pawn that has just moved two squares, if a pawn can be taken there, else -1."""
    own, _ = sides(b)
    pawns = PAWN_ATTACKS[1 - (b.ply & 1), target] & own & b.pawns
    while pawns:
        if can_take_en_passant(b, lowest_bit(pawns), target):
            return target
        pawns &= pawns - 1
    return -1


@compilable
def pinned_pieces(b: Any, king: int) -> Word:
    """Pieces of the side to move that alone shield their king from a long-range piece."""
    own, their = sides(b)
    snipers = rook_attacks(king, their) & (b.rooks | b.queens) | bishop_attacks(king, their) & (b.bishops | b.queens)
    snipers &= their
    pinned = np.int64(0)
    while snipers:
        between = BETWEEN[king, lowest_bit(snipers)] & own
        if between & (between - 1) == 0:
            pinned |= between
        snipers &= snipers - 1
    return pinned


@compilable
def generate(b: Any, checks: Word, moves: npt.NDArray[np.int64], captures: bool) -> int:
    """Write the legal moves into ``moves`` and return their number.

    Args:
        b: the position.
        checks: its ``checkers``.
        moves: ``[MOST_MOVES]``.
        captures: only moves that change material: captures and promotions.
    """
    own, their = sides(b)
    occupied, king = own | their, lowest_bit(own & b.kings)
    goals = their if captures else ~own
    count = add_king_moves(b, moves, king, goals)
    if checks & (checks - 1):
        return count
    if checks:
        goals &= BETWEEN[king, lowest_bit(checks)] | checks
    elif not captures and b.castling:
        count = add_castling(b, moves, count)
    pinned = pinned_pieces(b, king)
    pieces = own & ~(b.pawns | b.kings)
    while pieces:
        square = lowest_bit(pieces)
        targets = np.int64(0)
        if b.knights >> square & 1:
            targets = KNIGHT_ATTACKS[square]
        else:
            if (b.bishops | b.queens) >> square & 1:
                targets = bishop_attacks(square, occupied)
            if (b.rooks | b.queens) >> square & 1:
                targets |= rook_attacks(square, occupied)
        targets &= goals & (LINE[king, square] if pinned >> square & 1 else -1)
        count = add_moves(moves, count, square, targets)
        pieces &= pieces - 1
    if checks:
        captured, ahead = checks, BETWEEN[king, lowest_bit(checks)]
    else:
        captured, ahead = their, np.int64(-1)
    return add_pawn_moves(b, moves, count, captured, ahead & (RANK_1 | RANK_8) if captures else ahead, pinned, king)


@compilable
def add_moves(moves: npt.NDArray[np.int64], count: int, square: int, targets: Word) -> int:
    """Append the moves from ``square`` to ``targets``; returns the new number of moves."""
    while targets:
        moves[count] = square | lowest_bit(targets) << 6
        count += 1
        targets &= targets - 1
    return count


@compilable
def add_king_moves(b: Any, moves: npt.NDArray[np.int64], king: int, goals: Word) -> int:
    """Write the king's one-square moves to the start of ``moves``; returns their number."""
    own, their = sides(b)
    occupied, targets, safe = (own | their) & ~bit(king), KING_ATTACKS[king] & goals, np.int64(0)
    while targets:
        square = lowest_bit(targets)
        if attackers(b, square, occupied) & their == 0:
            safe |= bit(square)
        targets &= targets - 1
    return add_moves(moves, 0, king, safe)


@compilable
def add_castling(b: Any, moves: npt.NDArray[np.int64], count: int) -> int:
    """Append castling, if the king is not in check; returns the new number of moves."""
    own, their = sides(b)
    king, rights = (60, b.castling >> 2) if b.ply & 1 else (4, b.castling & 3)
    for side in range(2):
        step, corner = (1, king + 3) if side == 0 else (-1, king - 4)
        if rights >> side & 1 and BETWEEN[king, corner] & (own | their) == 0:
            middle, target = king + step, king + 2 * step
            if (attackers(b, middle, own | their) | attackers(b, target, own | their)) & their == 0:
                moves[count] = king | target << 6
                count += 1
    return count


@compilable
def add_pawn_moves(
    b: Any, moves: npt.NDArray[np.int64], count: int, captured: Word, ahead: Word, pinned: Word, king: int
) -> int:
    """Append the pawns' moves that take one of ``captured`` or go to ``ahead``; returns the new number of moves."""
    own, their = sides(b)
    black, empty = b.ply & 1, ~(own | their)
    forward, double_rank, last_rank = (-8, 6, RANK_1) if black else (8, 1, RANK_8)
    pawns = own & b.pawns
    while pawns:
        square = lowest_bit(pawns)
        pawns &= pawns - 1
        push = bit(square + forward) & empty
        if push and square >> 3 == double_rank:
            push |= bit(square + 2 * forward) & empty
        targets = push & ahead | PAWN_ATTACKS[black, square] & captured
        if pinned >> square & 1:
            targets &= LINE[king, square]
        if targets & last_rank:
            for promotion in range(4, 0, -1):
                first = count
                count = add_moves(moves, count, square, targets)
                for k in range(first, count):
                    moves[k] |= promotion << 12
        else:
            count = add_moves(moves, count, square, targets)
    if b.en_passant >= 0:
        pawns = PAWN_ATTACKS[1 - black, b.en_passant] & own & b.pawns
        while pawns:
            if can_take_en_passant(b, lowest_bit(pawns), b.en_passant):
                count = add_moves(moves, count, lowest_bit(pawns), bit(b.en_passant))
            pawns &= pawns - 1
    return count


@compile_function
def legal_moves(b: Any) -> npt.NDArray[np.int64]:
    """All legal moves, even if the game is already drawn."""
    moves = np.empty(MOST_MOVES, np.int64)
    return moves[: generate(b, checkers(b), moves, False)]


@compile_function
def drawn(b: Any) -> bool:
    """Whether the game is drawn by the fifty-move rule or by dead material (no play leads to mate)."""
    if b.pawns | b.rooks | b.queens == 0:
        if count_bits(b.knights | b.bishops) < 2:
            return True
        if b.knights == 0 and (b.bishops & DARK == 0 or b.bishops & ~DARK == 0):
            return True
    return b.clock >= 100 and (checkers(b) == 0 or len(legal_moves(b)) > 0)


@compile_function
def repetitions(keys: npt.NDArray[np.int64], n: int, b: Any) -> int:
    """How often position ``b`` occurs in ``keys[:n]``, the keys of the positions before it, in order.

    Two or more mean a draw by threefold repetition. Only positions since the last capture or pawn move are compared.
    """
    count = 0
    for k in range(n - 2, max(n - b.clock, 0) - 1, -2):
        count += keys[k] == b.key
    return count
