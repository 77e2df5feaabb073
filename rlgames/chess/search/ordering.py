"""Which moves to search first, and which captures lose material."""

from typing import Any

import numpy as np

from rlgames.chess.bitboards import NONE, PAWN, bishop_attacks, bit, rook_attacks
from rlgames.chess.board import Board
from rlgames.chess.moves import attackers, generate, piece_at
from rlgames.compiled import compilable

VALUES = np.array([100, 320, 330, 500, 900, 10_000, 0])  # for move ordering only, whatever was learned
FIRST, GOOD, KILLER, BAD = 1 << 28, 1 << 26, 1 << 24, -(1 << 26)  # hash move, captures, quiet moves, losing captures
MARGIN = 1 << 20  # ranks of captures lie within this of ``GOOD`` and ``BAD``
MOST_HISTORY = 1 << 14


@compilable
def loses_material(b: Board, move: int) -> bool:
    """Whether the capture ``move`` loses material if both sides keep taking on its square, least piece first."""
    source, target = move & 63, move >> 6 & 63
    captured = piece_at(b, target)
    balance = VALUES[piece_at(b, source)] - VALUES[PAWN if captured == NONE else captured]
    if balance <= 0:
        return False
    occupied = (b.white | b.black) & ~bit(source) | bit(target)
    around = attackers(b, target, occupied)
    side, safe = b.ply & 1, 1
    while True:
        side = 1 - side
        around &= occupied
        mine = around & (b.black if side else b.white)
        if mine == 0:
            break
        safe = 1 - safe
        if mine & b.pawns:
            taker, value = mine & b.pawns, VALUES[0]
        elif mine & b.knights:
            taker, value = mine & b.knights, VALUES[1]
        elif mine & b.bishops:
            taker, value = mine & b.bishops, VALUES[2]
        elif mine & b.rooks:
            taker, value = mine & b.rooks, VALUES[3]
        elif mine & b.queens:
            taker, value = mine & b.queens, VALUES[4]
        else:  # the king may not take a defended piece
            return (safe == 0) == (around & ~mine & (b.white if side else b.black) == 0)  # type: ignore[no-any-return]
        balance = value - balance
        if balance < safe:
            break
        occupied &= ~(taker & -taker)
        around |= bishop_attacks(target, occupied) & (b.bishops | b.queens)
        around |= rook_attacks(target, occupied) & (b.rooks | b.queens)
    return safe == 0


@compilable
def choices(s: Any, b: Board, checks: int, ply: int) -> int:
    """Write the moves to be searched at ``ply`` into the memory; returns their number."""
    if ply == 0 and s.n_roots > 0:
        s.moves[0, : s.n_roots] = s.roots[: s.n_roots]
        return s.n_roots  # type: ignore[no-any-return]
    return generate(b, checks, s.moves[ply], False)


@compilable
def order(s: Any, b: Board, ply: int, n: int, first: int) -> None:
    """Prefix each of the ``n`` moves of ``ply`` with its rank; ``first`` is the move of the hash table."""
    their, black, killers, moves = b.white if b.ply & 1 else b.black, b.ply & 1, s.killers, s.moves[ply]
    for k in range(n):
        move = moves[k]
        target = move >> 6 & 63
        if move == first:
            rank = FIRST
        elif their >> target & 1 or move >> 12 or (target == b.en_passant and b.pawns >> (move & 63) & 1):
            victim, taker = VALUES[piece_at(b, target)], VALUES[piece_at(b, move & 63)]
            if move >> 12:
                victim += VALUES[move >> 12]
            rank = GOOD + 2 * (32 * victim - taker) + (victim < taker)
        elif move == killers[ply, 0]:
            rank = KILLER + 1
        elif move == killers[ply, 1]:
            rank = KILLER
        else:
            rank = s.history[black, move & 4095]
        moves[k] = rank + (1 << 30) << 16 | move


@compilable
def pick(s: Any, b: Board, ply: int, k: int, n: int) -> int:
    """Move the best of the moves ``k`` to ``n`` to place ``k`` and return it with its rank.

    Only here are captures by greater pieces (with odd ranks) examined, and sent to the end if they lose.
    """
    moves = s.moves[ply]
    while True:
        best = k
        for j in range(k + 1, n):
            if moves[j] > moves[best]:
                best = j
        move, rank = moves[best], rank_of(moves[best])
        if rank & 1 and GOOD - MARGIN < rank < FIRST and loses_material(b, move & 0x7FFF):
            moves[best] += (BAD - GOOD) << 16
            continue
        moves[best] = moves[k]
        moves[k] = move
        return move  # type: ignore[no-any-return]


@compilable
def rank_of(picked: int) -> int:
    """The rank of a move as ``pick`` returned it."""
    return (picked >> 16) - (1 << 30)


@compilable
def remember_quiet(s: Any, b: Board, ply: int, depth: int, move: int) -> None:
    """``move``, not a capture, caused a cutoff: try it earlier next time."""
    if s.killers[ply, 0] != move:
        s.killers[ply, 1] = s.killers[ply, 0]
        s.killers[ply, 0] = move
    bonus, old = min(depth * depth * 16, 2048), s.history[b.ply & 1, move & 4095]
    s.history[b.ply & 1, move & 4095] = old + bonus - old * bonus // MOST_HISTORY
