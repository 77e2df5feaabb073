"""Games of chess as text: standard algebraic notation and Portable Game Notation (PGN standard, 1994)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rlgames.chess.bitboards import KING, PAWN, PIECES
from rlgames.chess.board import START, legal_moves, piece_at
from rlgames.chess.contest import Course, Record
from rlgames.chess.text import square_name

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
WIDTH = 80  # columns of the move text

# piece, file and rank of the first square, the second square, promotion
_SAN = re.compile(r"([PNBRQK]?)([a-h]?)([1-8]?)[x:-]?([a-h][1-8])(?:=?\(?([NBRQnbrq])\)?)?")
_TOKEN = re.compile(
    r"\{[^}]*\}|;.*|^%.*|\$\d+"  # comments, escaped lines, numeric annotation glyphs
    r'|\[\s*(?P<tag>\w+)\s*"(?P<text>(?:\\.|[^"\\]|"(?!\s*\]))*)"\s*\]'
    r"|(?P<variation>[()])|(?P<end>1-0|0-1|1/2(?:-1/2)?|\*)(?![\w/-])"
    r"|(?:\d+\.+)?(?P<word>[^\s(){}\[\];*$]+)",
    re.MULTILINE,
)
_NO_MOVE = re.compile(r"[\d.]+|[!?]+|e\.?p\.?")  # move numbers, annotation signs, "en passant"


class Game(NamedTuple):
    """A game from a PGN file.

    Attributes:
        tags: by their names.
        moves: of the main line, as text.
    """

    tags: dict[str, str]
    moves: list[str]


def read_pgn(text: str) -> Iterator[Game]:
    """The games of ``text``, without comments and variations; blank lines are ignored.

    A game ends with its result, or before the tags of the next one.
    """
    game, depth = Game({}, []), 0
    for token in _TOKEN.finditer(text):
        tag, word = token["tag"], token["word"]
        if (token["end"] and not depth) or (tag and (game.moves or tag in game.tags)):
            yield game
            game = Game({}, [])
        if tag:
            game.tags[tag], depth = re.sub(r'\\(["\\])', r"\1", token["text"]), 0
        elif token["variation"]:
            depth = max(0, depth + (1 if token["variation"] == "(" else -1))
        elif word and not depth and not _NO_MOVE.fullmatch(word):
            game.moves.append(word)
    if game.tags or game.moves:
        yield game


def san(board: Any, move: int) -> str:
    """The legal ``move`` in standard algebraic notation, such as "Nbd2", "exd8=Q+" or "O-O"."""
    source, target, promotion = move & 63, move >> 6 & 63, move >> 12
    piece = piece_at(board, source)
    if piece == KING and abs(target - source) == 2:
        text = "O-O" if target > source else "O-O-O"
    elif piece == PAWN:
        file = "" if (target - source) % 8 == 0 else f"{square_name(source)[0]}x"
        text = file + square_name(target) + ["", "=N", "=B", "=R", "=Q"][promotion]
    else:
        takes = "x" if (board.white | board.black) >> target & 1 else ""
        text = "PNBRQK"[piece] + _origin(board, move, piece) + takes + square_name(target)
    after = board.play(move)
    return text + ("" if not after.in_check() else "#" if after.winner() else "+")


def from_san(board: Any, text: str) -> int:
    """The legal move that ``text`` names, "Nf3" or "g1f3"; signs such as "+" and "!" and redundant detail are ignored.

    Raises:
        ValueError: if there is none, or more than one.
    """
    bare = text.rstrip("+#!?")
    legal = [int(move) for move in legal_moves(board)]
    if bare.replace("0", "O") in ("O-O", "O-O-O"):
        step = 2 if len(bare) == 3 else -2
        found = [m for m in legal if (m >> 6) - (m & 63) == step and piece_at(board, m & 63) == KING]
    elif parts := _SAN.fullmatch(bare):
        piece, file, rank, goal, promotion = parts.groups()
        kind, added = PIECES.index(piece or "P"), " NBRQ".index((promotion or " ").upper())
        found = [m for m in legal if square_name(m >> 6 & 63) == goal and m >> 12 == added]
        found = [m for m in found if piece_at(board, m & 63) == kind and _begins(m, file, rank)]
        if kind == PAWN and not file:  # a capture would name its file
            found = [m for m in found if _begins(m, goal[0], rank)] or found
    else:
        found = []
    found = found or [m for m in legal if board.uci(m) == bare.lower()]
    if len(found) != 1:
        raise ValueError(f"move {text[:20]!r} is {'ambiguous' if found else 'not legal'} in {board.fen()}")
    return found[0]


def _begins(move: int, file: str | None, rank: str | None) -> bool:
    """Whether ``move`` begins on ``file`` and ``rank``, as far as they are named."""
    name = square_name(move & 63)
    return file in (None, "", name[0]) and rank in (None, "", name[1])


def _origin(board: Any, move: int, piece: int) -> str:
    """The part of the first square needed to tell ``move`` from moves of other such pieces."""
    source, target = move & 63, move >> 6 & 63
    others = [m & 63 for m in map(int, legal_moves(board)) if m >> 6 & 63 == target and m & 63 != source]
    others = [square for square in others if piece_at(board, square) == piece]
    file, rank = tuple(square_name(source))
    if not others:
        return ""
    if all(square % 8 != source % 8 for square in others):
        return file
    return rank if all(square // 8 != source // 8 for square in others) else file + rank


def pgn(record: Record, tags: Mapping[str, str]) -> str:
    """The game as PGN; the thought on a move follows it as {score in pawns / depth}.

    Args:
        record: the game.
        tags: such as Event, White and Black; the seven standard ones come first, "?" if missing.
    """
    course = record.course
    known = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
    known |= dict(tags) | {"Result": RESULTS[record.winner]}
    if course.boards[0] != START:
        known |= {"SetUp": "1", "FEN": course.boards[0].fen()}
    known["Termination"] = record.reason
    heads = [f'[{name} "{_quoted(text)}"]' for name, text in known.items()]
    words = [*_words(course, record), RESULTS[record.winner]]
    return "\n".join([*heads, "", *_lines(words), "", ""])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _words(course: Course, record: Record) -> Iterable[str]:
    bare = False  # whether White's move directly precedes, so that Black's needs no number
    for n, (board, move) in enumerate(zip(course.boards, course.moves, strict=False)):
        if board.player() > 0 or not bare:
            yield f"{board.ply // 2 + 1}{'.' if board.player() > 0 else '...'}"
        yield san(board, move)
        bare = n < course.opening
        if not bare:
            yield comment(record.thoughts[n - course.opening])


def comment(thought: Any) -> str:
    """Such as "{+0.34/7}" or "{-M2/5}", from the view of the side that moved."""
    score = f"{'+' if thought.mate > 0 else '-'}M{abs(thought.mate)}" if thought.mate else f"{thought.score:+.2f}"
    return f"{{{score}/{thought.depth}}}"


def _lines(words: Iterable[str]) -> Iterable[str]:
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > WIDTH:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield line
