"""Chess: the full rules on bitboards.

Squares count from a1 = 0 along the ranks to h8 = 63 (see ``rlgames.chess.bitboards``)::

    56 57 58 59 60 61 62 63   rank 8
    ...
     8  9 10 11 12 13 14 15   rank 2
     0  1  2  3  4  5  6  7   rank 1

A move is ``from | to << 6 | promotion << 12`` (promotion: 0 none, 1 knight to 4 queen); castling is the king's move of
two squares. The fifty-move rule and dead material end the game automatically; threefold repetition needs the history,
see ``repetitions``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.bitboards import KING, NONE, PAWN, Words, bit, signed
from rlgames.chess.moves import (
    MOST_MOVES,
    checkers,
    drawn,
    generate,
    legal_en_passant,
    legal_moves,
    piece_at,
    repetitions,
    sides,
)
from rlgames.chess.text import diagram, parse_fen, picture, square_name, write_fen
from rlgames.compiled import compilable, compile_function, require_compiler, value
from rlgames.games.drawing import Picture
from rlgames.games.game import Rules

__all__ = [
    "MOST_MOVES",
    "checkers",
    "drawn",
    "generate",
    "legal_moves",
    "piece_at",
    "repetitions",
    "sides",
]  # re-exported


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

# Castling rights: 1 White short, 2 White long, 4 Black short, 8 Black long; those left after a move on a square.
KEPT_RIGHTS = np.full(64, 15)
KEPT_RIGHTS[[4, 7, 0, 60, 63, 56]] = [12, 14, 13, 3, 11, 7]


@value
class Board(NamedTuple):
    """A position. Sets of squares are signed 64-bit words.

    Attributes:
        pawns, knights, bishops, rooks, queens, kings: of both colours.
        white, black: all pieces of a colour.
        key: Zobrist key of everything that counts for repetition.
        castling: remaining rights, see ``KEPT_RIGHTS``.
        en_passant: the square on which the side to move can legally take en passant; else -1.
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
            ValueError: naming the fault.
        """
        words, castling, en_passant, clock, ply = parse_fen(text)
        board: Board = complete(Board(*(*map(signed, words), 0, castling, en_passant, clock, ply)))
        if checkers(board._replace(ply=ply + 1)):
            raise ValueError(f"FEN {text!r}: the side not to move is in check")
        return board

    def __str__(self) -> str:
        """The board as text, White below."""
        return diagram(self)

    def _repr_svg_(self) -> str:
        """The board as a picture, for notebooks."""
        return picture(self).svg()

    def fen(self) -> str:
        """Forsyth-Edwards notation; with the en passant square only if a legal capture exists."""
        return write_fen(self)

    def player(self) -> int:
        """+1 if White is to move, -1 if Black."""
        return 1 - 2 * (self.ply & 1)

    def in_check(self) -> bool:
        """Whether the king of the side to move is attacked."""
        return checkers(self) != 0  # type: ignore[no-any-return]

    def winner(self) -> int:
        """+1 or -1 for the side that has given mate, else 0."""
        return -self.player() if self.in_check() and len(legal_moves(self)) == 0 else 0

    def over(self) -> bool:
        """Whether the game has ended: mate, stalemate, fifty moves, dead material; repetition needs the history."""
        return len(self.moves()) == 0

    def moves(self) -> npt.NDArray[np.int64]:
        """Legal moves; none if the game is over."""
        return legal_moves(self)[: 0 if drawn(self) else MOST_MOVES]  # type: ignore[no-any-return]

    def play(self, move: int) -> "Board":
        """The position after the legal move ``move``."""
        return play(self, move)  # type: ignore[no-any-return]

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


@compilable
def pass_move(b: Board) -> Board:
    """The position with the other side to move."""
    key = b.key ^ BLACK_KEY ^ (EN_PASSANT_KEYS[b.en_passant] if b.en_passant >= 0 else 0)
    return Board(
        *(b.pawns, b.knights, b.bishops, b.rooks, b.queens, b.kings, b.white, b.black),
        *(key, b.castling, -1, b.clock + 1, b.ply + 1),
    )


@compile_function
def complete(b: Board) -> Board:
    """``b`` with its key, and without an en passant square if nothing can be taken."""
    square = legal_en_passant(b, b.en_passant) if b.en_passant >= 0 else -1
    key = CASTLING_KEYS[b.castling] ^ (BLACK_KEY if b.ply & 1 else 0)
    if square >= 0:
        key ^= EN_PASSANT_KEYS[square]
    for place in range(64):
        piece = piece_at(b, place)
        if piece != NONE:
            key ^= PIECE_KEYS[b.black >> place & 1, piece, place]
    return with_en_passant(b, square, key)


START = Board.from_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")


class Chess(Rules[Board]):
    """The rules of chess for people and programs.

    Raises:
        ValueError: if numba is not installed.
    """

    name = "chess"
    board = START

    def __init__(self) -> None:
        require_compiler("game=chess")

    def text(self, board: Board) -> str:
        """The board as text."""
        return str(board)

    def picture(self, board: Board) -> Picture:
        """The board as a picture."""
        return picture(board)

    def play(self, moves: str | Iterable[int], board: Board | None = None) -> Board:
        """Play ``moves`` (text such as "e2e4 e7e5", or integers) from ``board`` (the start position).

        Raises:
            ValueError: for a move that is illegal or comes after the end of the game.
        """
        board = self.board if board is None else board
        for move in moves.split() if isinstance(moves, str) else moves:
            board = board.play(board.from_uci(move if isinstance(move, str) else board.uci(int(move))))
        return board
