"""Chess positions as text (FEN, diagrams) and as pictures."""

from typing import Any

from rlgames.chess.bitboards import PIECES
from rlgames.games.drawing import CELL, Picture, Rect, Shape, Text

LIGHT_SQUARE, DARK_SQUARE = "#f0d9b5", "#b58863"


def square_name(square: int) -> str:
    """Such as "e4"."""
    return "abcdefgh"[square % 8] + str(square // 8 + 1)


def letters(board: Any) -> list[str]:
    """The letter of the piece on each square (capital: White), "." where empty; from a1 to h8."""
    found = ["."] * 64
    for word, letter in zip(board[:6], PIECES, strict=True):
        for square in range(64):
            if int(word) >> square & 1:
                found[square] = letter if int(board.white) >> square & 1 else letter.lower()
    return found


def diagram(board: Any) -> str:
    """The board as text, White below."""
    found = letters(board)
    rows = [f"{rank + 1}  {' '.join(found[8 * rank : 8 * rank + 8])}" for rank in range(7, -1, -1)]
    return "\n".join([*rows, "", "   a b c d e f g h", f"{'Black' if board.ply & 1 else 'White'} to move"])


def picture(board: Any) -> Picture:
    """The board as a picture, White below."""
    shapes: list[Shape] = []
    for square, letter in enumerate(letters(board)):
        x, y = CELL * (square % 8), CELL * (7 - square // 8)
        colour = LIGHT_SQUARE if (square + square // 8) % 2 else DARK_SQUARE
        shapes.append(Rect(x, y, CELL, CELL, colour))
        if letter != ".":
            figure = ("♙♘♗♖♕♔" if letter.isupper() else "♟♞♝♜♛♚")[PIECES.index(letter.upper())]
            shapes.append(Text(x + CELL / 2, y + CELL / 2, figure, 32, "#000000"))
    return Picture(8 * CELL, 8 * CELL, shapes)


def write_fen(board: Any) -> str:
    """The position in Forsyth-Edwards notation."""
    found, ranks = letters(board), []
    for rank in range(7, -1, -1):
        row = "".join(found[8 * rank : 8 * rank + 8])
        for length in range(8, 0, -1):
            row = row.replace("." * length, str(length))
        ranks.append(row)
    rights = "".join(letter for k, letter in enumerate("KQkq") if board.castling >> k & 1) or "-"
    en_passant = "-" if board.en_passant < 0 else square_name(board.en_passant)
    side = "b" if board.ply & 1 else "w"
    return f"{'/'.join(ranks)} {side} {rights} {en_passant} {board.clock} {board.ply // 2 + 1}"


def parse_fen(text: str) -> tuple[list[int], int, int, int, int]:
    """Read Forsyth-Edwards notation; impossible castling rights and en passant squares are dropped.

    Returns:
        The words of pawns to kings, White and Black; castling rights; en passant square or -1; clock; ply.

    Raises:
        ValueError: naming the fault.
    """
    fields = text.split()
    if not 1 <= len(fields) <= 6:
        raise ValueError(f"FEN {text!r}: it has {len(fields)} fields; it needs pieces, side, castling, en passant, clock, move")  # fmt: skip # noqa: E501
    pieces, side, rights, en_passant, clock, number = [*fields, *["w", "-", "-", "0", "1"][len(fields) - 1 :]]
    words = _pieces(text, pieces)
    if side not in ("w", "b"):
        raise ValueError(f"FEN {text!r}: the side to move is {side!r}; it must be w or b")
    castling = _castling(text, rights, words)
    target = _en_passant(text, en_passant, side == "b", words)
    for name, word, least in (("half-move clock", clock, 0), ("move number", number, 0)):
        if not (word.isascii() and word.isdecimal() and len(word) < 6 and int(word) >= least):
            raise ValueError(f"FEN {text!r}: the {name} is {word!r}; it must be a whole number of at least {least}")
    return words, castling, target, int(clock), 2 * max(int(number) - 1, 0) + (side == "b")


def _pieces(text: str, pieces: str) -> list[int]:
    words, rows = [0] * 8, pieces.split("/")
    if len(rows) != 8:
        raise ValueError(f"FEN {text!r}: it has {len(rows)} ranks; a board has 8")
    for rank, row in zip(range(7, -1, -1), rows, strict=True):
        square = 8 * rank
        for letter in row:
            if letter in "12345678":
                square += int(letter)
                continue
            if letter.upper() not in PIECES:
                raise ValueError(f"FEN {text!r}: {letter!r} is not a piece; pieces are PNBRQK and pnbrqk")
            if square < 8 * rank + 8:
                words[PIECES.index(letter.upper())] |= 1 << square
                words[6 + letter.islower()] |= 1 << square
            square += 1
        if square != 8 * rank + 8:
            raise ValueError(f"FEN {text!r}: rank {rank + 1} is {row!r}, which has {square - 8 * rank} squares, not 8")
    for colour, word in zip(("White", "Black"), words[6:], strict=True):
        kings, pawns = (words[5] & word).bit_count(), (words[0] & word).bit_count()
        if kings != 1:
            raise ValueError(f"FEN {text!r}: {colour} has {kings} kings; it must have one")
        if word.bit_count() > 16 or pawns > 8:
            raise ValueError(f"FEN {text!r}: {colour} has {word.bit_count()} pieces, {pawns} of them pawns; at most 16 and 8 are allowed")  # fmt: skip # noqa: E501
    if words[0] & 0xFF000000000000FF:
        raise ValueError(f"FEN {text!r}: there is a pawn on the first or last rank")
    return words


def _castling(text: str, rights: str, words: list[int]) -> int:
    castling = 0
    for letter in "" if rights == "-" else rights:
        if letter not in "KQkq":
            raise ValueError(f"FEN {text!r}: castling rights are {rights!r}; they must be some of KQkq, or -")
        k = "KQkq".index(letter)
        king, rook = (4, 7 if k % 2 == 0 else 0) if k < 2 else (60, 63 if k % 2 == 0 else 56)
        own = words[6 + k // 2]
        if words[5] & own & 1 << king and words[3] & own & 1 << rook:
            castling |= 1 << k
    return castling


def _en_passant(text: str, name: str, black: bool, words: list[int]) -> int:
    if name == "-":
        return -1
    if len(name) != 2 or name[0] not in "abcdefgh" or name[1] not in "12345678":
        raise ValueError(f"FEN {text!r}: the en passant square is {name!r}; it must be - or a square such as e3")
    square = "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)
    pawn, start = (square + 8, square - 8) if black else (square - 8, square + 8)
    if name[1] != ("3" if black else "6") or (words[6] | words[7]) & (1 << square | 1 << start):
        return -1
    return square if words[0] & words[6 if black else 7] & 1 << pawn else -1
