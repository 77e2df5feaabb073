"""Games of chess as text: standard algebraic notation and Portable Game Notation (PGN standard, 1994)."""

from collections.abc import Iterable, Mapping
from typing import Any

from rlgames.chess.bitboards import KING, PAWN
from rlgames.chess.board import START, legal_moves, piece_at
from rlgames.chess.contest import Course, Record
from rlgames.chess.text import square_name

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
WIDTH = 80  # columns of the move text


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
    """The legal move that ``text`` names; signs such as "+" and "!" do not matter, nor does it if it says too much.

    Raises:
        ValueError: if there is none, or more than one.
    """
    bare = text.rstrip("+#!?").replace("0", "O").replace("=", "")
    names = {move: san(board, move).rstrip("+#").replace("=", "") for move in map(int, legal_moves(board))}
    found = [move for move, name in names.items() if name == bare]
    found = found or [move for move, name in names.items() if bare in _forms(move, name)]
    if len(found) != 1:
        raise ValueError(f"move {text!r} is {'ambiguous' if found else 'not legal'} in {board.fen()}")
    return found[0]


def _forms(move: int, name: str) -> set[str]:
    """Other ways to write the move ``name``: with more of its first square, with or without the sign of a capture."""
    if name.startswith("O"):
        return set()
    origin, goal = square_name(move & 63), square_name(move >> 6 & 63)
    letter, promotion = name[0] if name[0].isupper() else "", name[-1] if name[-1].isupper() else ""
    starts = ("", origin[0], origin[1], origin)
    return {f"{letter}{start}{x}{goal}{promotion}" for start in starts for x in ("", "x")}


def _origin(board: Any, move: int, piece: int) -> str:
    """What of the first square is needed to tell ``move`` from moves of other such pieces."""
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
    """The game as PGN; what was thought of a move stands behind it as {score in pawns / depth}.

    Args:
        record: the game.
        tags: such as Event, White and Black; the seven standard ones come first, "?" where they are missing.
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
    bare = False  # whether White's move stands just before, so that Black's needs no number
    for n, (board, move) in enumerate(zip(course.boards, course.moves, strict=False)):
        if board.player() > 0 or not bare:
            yield f"{board.ply // 2 + 1}{'.' if board.player() > 0 else '...'}"
        yield san(board, move)
        bare = n < course.opening
        if not bare:
            yield comment(record.thoughts[n - course.opening])


def comment(thought: Any) -> str:
    """Such as "{+0.34/7}" or "{-M2/5}", from the view of the player who moved."""
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
