"""Chess: the full rules on bitboards.

Squares count from a1 = 0 along the ranks to h8 = 63 (see ``rlgames.bitboards``)::

    56 57 58 59 60 61 62 63   rank 8
    ...
     8  9 10 11 12 13 14 15   rank 2
     0  1  2  3  4  5  6  7   rank 1

A move is ``from | to << 6 | promotion << 12`` (promotion: 0 none, 1 knight to 4 queen); castling is the king's move of
two squares. Draws by the fifty-move rule and by dead material end the game by themselves; threefold repetition needs
the history, see ``repetitions``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.bitboards import (
    BETWEEN,
    DARK,
    KING,
    KING_ATTACKS,
    KNIGHT_ATTACKS,
    LINE,
    NONE,
    PAWN,
    PAWN_ATTACKS,
    RANK_1,
    RANK_8,
    Words,
    bishop_attacks,
    bit,
    count_bits,
    lowest_bit,
    rook_attacks,
    signed,
)
from rlgames.compiled import compilable, compile_function, value
from rlgames.games.chess_text import diagram, parse_fen, picture, square_name, write_fen

MOST_MOVES = 448  # at least as many as 16 pieces have (15 queens: 413); the record of a reachable position is 218


def _zobrist(count: int) -> Words:
    """Random words for keys, by SplitMix64 (Steele et al. 2014): the same on every machine."""
    words, state = [], 0
    for _ in range(count):
        state += 0x9E3779B97F4A7C15
        z = state & 2**64 - 1
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 2**64 - 1
        words.append(signed(z ^ z >> 31))
    return np.array(words, np.int64)


_ALL_KEYS = _zobrist(768 + 16 + 64 + 1)
PIECE_KEYS = _ALL_KEYS[:768].reshape(2, 6, 64).copy()
CASTLING_KEYS, EN_PASSANT_KEYS, BLACK_KEY = _ALL_KEYS[768:784].copy(), _ALL_KEYS[784:848].copy(), int(_ALL_KEYS[848])

# Castling rights: 1 White short, 2 White long, 4 Black short, 8 Black long. What a move from or to a square leaves.
KEPT_RIGHTS = np.full(64, 15)
KEPT_RIGHTS[[4, 7, 0, 60, 63, 56]] = [12, 14, 13, 3, 11, 7]


@value
class Board(NamedTuple):
    """A position. Sets of squares are signed 64-bit words.

    Attributes:
        pawns, knights, bishops, rooks, queens, kings: of both colours.
        white, black: all pieces of a colour.
        key: Zobrist key of all that counts for repetition.
        castling: rights that are left, see ``KEPT_RIGHTS``.
        en_passant: the square on which a pawn can be taken en passant, legally, by the player to move; else -1.
        clock: half-moves since the last capture or pawn move.
        ply: half-moves since the start; even when White is to move.
    """

    pawns: int
    knights: int
    bishops: int
    rooks: int
    queens: int
    kings: int
    white: int
    black: int
    key: int
    castling: int
    en_passant: int
    clock: int
    ply: int

    @staticmethod
    def from_fen(text: str) -> "Board":
        """The position that ``text`` describes in Forsyth-Edwards notation; the last two fields may be missing.

        Raises:
            ValueError: saying what is wrong with it.
        """
        words, castling, en_passant, clock, ply = parse_fen(text)
        board = complete(Board(*map(signed, words), 0, castling, en_passant, clock, ply))
        if checkers(board._replace(ply=ply + 1)):
            raise ValueError(f"FEN {text!r}: the player who is not to move stands in check")
        return board

    def __str__(self) -> str:
        """The board as text, White below."""
        return diagram(self)

    def _repr_svg_(self) -> str:
        """The board as a picture, for notebooks."""
        return picture(self)

    def fen(self) -> str:
        """Forsyth-Edwards notation; the en passant square is given where a pawn can be taken legally."""
        return write_fen(self)

    def player(self) -> int:
        """+1 if White is to move, -1 if Black."""
        return 1 - 2 * (self.ply & 1)

    def in_check(self) -> bool:
        """Whether the king of the player to move is attacked."""
        return checkers(self) != 0

    def winner(self) -> int:
        """+1 or -1 for the player who has given mate, else 0."""
        return -self.player() if self.in_check() and len(legal_moves(self)) == 0 else 0

    def over(self) -> bool:
        """Whether the game has ended: mate, stalemate, fifty moves, dead material. Repetition needs the history."""
        return len(self.moves()) == 0

    def moves(self) -> npt.NDArray[np.int64]:
        """Legal moves; none if the game is over."""
        return legal_moves(self)[: 0 if drawn(self) else MOST_MOVES]

    def play(self, move: int) -> "Board":
        """The position after the legal move ``move``."""
        return play(self, move)

    def uci(self, move: int) -> str:
        """The move as text, such as "e2e4" or "e7e8q"."""
        return square_name(move & 63) + square_name(move >> 6 & 63) + ["", "n", "b", "r", "q"][move >> 12]

    def from_uci(self, text: str) -> int:
        """The legal move that ``text`` names in the form of ``uci``.

        Raises:
            ValueError: naming the legal moves if there is no such move.
        """
        legal = {self.uci(move): move for move in map(int, self.moves())}
        if text not in legal:
            allowed = f"legal moves are {' '.join(sorted(legal))}" if legal else "the game is over"
            raise ValueError(f"move {text!r} is not legal here; {allowed}\n{self}")
        return legal[text]


@compilable
def piece_at(b: Board, square: int) -> int:
    """The kind of piece on ``square``, ``NONE`` if it is empty."""
    kind = (b.knights >> square & 1) + 2 * (b.bishops >> square & 1) + 3 * (b.rooks >> square & 1)
    kind += 4 * (b.queens >> square & 1) + 5 * (b.kings >> square & 1)
    return kind + NONE * (1 - ((b.white | b.black) >> square & 1))


@compilable
def attackers(b: Board, square: int, occupied: int) -> int:
    """Pieces of both colours that attack ``square`` if the squares ``occupied`` are so."""
    pawns = (PAWN_ATTACKS[1, square] & b.white | PAWN_ATTACKS[0, square] & b.black) & b.pawns
    leapers = KNIGHT_ATTACKS[square] & b.knights | KING_ATTACKS[square] & b.kings
    diagonal = bishop_attacks(square, occupied) & (b.bishops | b.queens)
    return pawns | leapers | diagonal | rook_attacks(square, occupied) & (b.rooks | b.queens)


@compilable
def sides(b: Board) -> tuple[int, int]:
    """Pieces of the player to move and of the other."""
    return (b.black, b.white) if b.ply & 1 else (b.white, b.black)


@compile_function
def checkers(b: Board) -> int:
    """Pieces that attack the king of the player to move."""
    own, their = sides(b)
    return attackers(b, lowest_bit(own & b.kings), own | their) & their


@compilable
def can_take_en_passant(b: Board, source: int, target: int) -> bool:
    """Whether the pawn on ``source`` may take en passant on ``target`` without leaving its king in check."""
    own, their = sides(b)
    victim = bit(target ^ 8)
    occupied = (own | their) & ~(victim | bit(source)) | bit(target)
    return attackers(b, lowest_bit(own & b.kings), occupied) & their & ~victim == 0


@compilable
def legal_en_passant(b: Board, target: int) -> int:
    """``target``, behind a pawn that has just moved two squares, if a pawn can be taken there, else -1."""
    own, _ = sides(b)
    pawns = PAWN_ATTACKS[1 - (b.ply & 1), target] & own & b.pawns
    while pawns:
        if can_take_en_passant(b, lowest_bit(pawns), target):
            return target
        pawns &= pawns - 1
    return -1


@compile_function
def play(b: Board, move: int) -> Board:
    """The position after the legal move ``move``."""
    source, target, promotion, black = move & 63, move >> 6 & 63, move >> 12, b.ply & 1
    own, their = sides(b)
    piece, captured = piece_at(b, source), piece_at(b, target)
    added = promotion if promotion else piece
    goal = bit(target)
    gone = bit(source) | goal
    key = b.key ^ BLACK_KEY ^ PIECE_KEYS[black, piece, source] ^ PIECE_KEYS[black, added, target]
    own, rooks = own & ~gone | goal, b.rooks & ~gone
    if captured != NONE:
        key ^= PIECE_KEYS[1 - black, captured, target]
    elif piece == PAWN and target == b.en_passant:
        captured = PAWN
        gone |= bit(target ^ 8)
        key ^= PIECE_KEYS[1 - black, PAWN, target ^ 8]
    elif piece == KING and abs(target - source) == 2:
        corner, middle = (target + 1, target - 1) if target > source else (target - 2, target + 1)
        rooks ^= bit(corner) | bit(middle)
        own ^= bit(corner) | bit(middle)
        key ^= PIECE_KEYS[black, 3, corner] ^ PIECE_KEYS[black, 3, middle]
    their &= ~gone
    castling = b.castling & KEPT_RIGHTS[source] & KEPT_RIGHTS[target]
    key ^= CASTLING_KEYS[b.castling] ^ CASTLING_KEYS[castling]
    if b.en_passant >= 0:
        key ^= EN_PASSANT_KEYS[b.en_passant]
    after = Board(
        b.pawns & ~gone | (goal if added == 0 else 0),
        b.knights & ~gone | (goal if added == 1 else 0),
        b.bishops & ~gone | (goal if added == 2 else 0),
        rooks | (goal if added == 3 else 0),
        b.queens & ~gone | (goal if added == 4 else 0),
        b.kings & ~gone | (goal if added == 5 else 0),
        their if black else own,
        own if black else their,
        key,
        castling,
        -1,
        0 if piece == PAWN or captured != NONE else b.clock + 1,
        b.ply + 1,
    )
    if piece == PAWN and abs(target - source) == 16:
        square = legal_en_passant(after, (source + target) >> 1)
        if square >= 0:
            return with_en_passant(after, square, key ^ EN_PASSANT_KEYS[square])
    return after


@compilable
def with_en_passant(b: Board, square: int, key: int) -> Board:
    """``b`` with another en passant square and key."""
    return Board(
        *(b.pawns, b.knights, b.bishops, b.rooks, b.queens, b.kings, b.white, b.black),
        *(key, b.castling, square, b.clock, b.ply),
    )


@compile_function
def complete(b: Board) -> Board:
    """``b`` with its key, and without an en passant square where nothing can be taken."""
    square = legal_en_passant(b, b.en_passant) if b.en_passant >= 0 else -1
    key = CASTLING_KEYS[b.castling] ^ (BLACK_KEY if b.ply & 1 else 0)
    if square >= 0:
        key ^= EN_PASSANT_KEYS[square]
    for place in range(64):
        piece = piece_at(b, place)
        if piece != NONE:
            key ^= PIECE_KEYS[b.black >> place & 1, piece, place]
    return with_en_passant(b, square, key)


@compilable
def pinned_pieces(b: Board, king: int) -> int:
    """Pieces of the player to move that stand alone between their king and a long-range piece."""
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
def generate(b: Board, moves: npt.NDArray[np.int64], captures: bool) -> int:
    """Write the legal moves into ``moves`` and return their number.

    Args:
        b: the position.
        moves: ``[MOST_MOVES]``.
        captures: only moves that change the material: captures and promotions.
    """
    own, their = sides(b)
    occupied, king = own | their, lowest_bit(own & b.kings)
    goals = their if captures else ~own
    checks = attackers(b, king, occupied) & their
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
def add_moves(moves: npt.NDArray[np.int64], count: int, square: int, targets: int) -> int:
    """Append the moves from ``square`` to ``targets``; returns the new number of moves."""
    while targets:
        moves[count] = square | lowest_bit(targets) << 6
        count += 1
        targets &= targets - 1
    return count


@compilable
def add_king_moves(b: Board, moves: npt.NDArray[np.int64], king: int, goals: int) -> int:
    """Write the king's moves by one square at the beginning of ``moves``; returns their number."""
    own, their = sides(b)
    occupied, targets, safe = (own | their) & ~bit(king), KING_ATTACKS[king] & goals, np.int64(0)
    while targets:
        square = lowest_bit(targets)
        if attackers(b, square, occupied) & their == 0:
            safe |= bit(square)
        targets &= targets - 1
    return add_moves(moves, 0, king, safe)


@compilable
def add_castling(b: Board, moves: npt.NDArray[np.int64], count: int) -> int:
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
    b: Board, moves: npt.NDArray[np.int64], count: int, captured: int, ahead: int, pinned: int, king: int
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
def legal_moves(b: Board) -> npt.NDArray[np.int64]:
    """All moves that the rules of movement allow, whether or not the game is drawn already."""
    moves = np.empty(MOST_MOVES, np.int64)
    return moves[: generate(b, moves, False)]


@compile_function
def drawn(b: Board) -> bool:
    """Whether the game is drawn by the fifty-move rule or by dead material (mate cannot be reached by any play)."""
    if b.pawns | b.rooks | b.queens == 0:
        if count_bits(b.knights | b.bishops) < 2:
            return True
        if b.knights == 0 and (b.bishops & DARK == 0 or b.bishops & ~DARK == 0):
            return True
    return b.clock >= 100 and (checkers(b) == 0 or len(legal_moves(b)) > 0)


@compile_function
def repetitions(keys: npt.NDArray[np.int64], n: int, b: Board) -> int:
    """How often the position ``b`` is among the last of ``keys[:n]``, the keys of the positions before it in order.

    Two or more mean a draw by threefold repetition. Only positions after the last capture or pawn move are looked at.
    """
    count = 0
    for k in range(n - 2, max(n - b.clock, 0) - 1, -2):
        count += keys[k] == b.key
    return count


START = Board.from_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")


class Chess:
    """The rules of chess for people and programs."""

    name = "chess"
    board = START

    def text(self, board: Board) -> str:
        """The board as text."""
        return str(board)

    def play(self, moves: str | Iterable[int], board: Board | None = None) -> Board:
        """Play ``moves`` (text such as "e2e4 e7e5", or integers) from ``board`` (the start position).

        Raises:
            ValueError: for a move that is not legal, or comes after the end of the game.
        """
        board = self.board if board is None else board
        for move in moves.split() if isinstance(moves, str) else moves:
            board = board.play(board.from_uci(move if isinstance(move, str) else board.uci(int(move))))
        return board
