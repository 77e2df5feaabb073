"""The terms of the chess evaluation: their names and their places.

Every term has two coefficients, one for the middlegame and one for the endgame, interpolated by
the material on the board; only the five piece values have a single one. Squares and ranks are as the piece's owner sees
them.
"""

WORDS = ("pawn", "knight", "bishop", "rook", "queen", "king")
STAGES = ("middlegame", "endgame")
FULL_PHASE = 24  # knights and bishops count 1, rooks 2, queens 4
_SQUARES = [file + rank for rank in "12345678" for file in "abcdefgh"]
_FILES = [f"on file {file}" for file in "abcdefgh"]
_RANKS = [f"on rank {rank}" for rank in "234567"]
_EDGES = [f"{name}-file" for name in ("a/h", "b/g", "c/f", "d/e")]
_AHEAD = ["missing", *_RANKS]

TERMS: list[str] = []


def _place(name: str, *labels: object) -> int:
    """Append the terms "name label"; returns the place of the first."""
    first = len(TERMS)
    TERMS.extend(f"{name} {label}".strip() for label in labels or [""])
    return first


MATERIAL = _place("", *WORDS[:5])
PAWN_SQUARE = _place("pawn", *_SQUARES[8:56])
PIECE_SQUARE = _place("", *(f"{word} {square}" for word in WORDS[1:] for square in _SQUARES))
TEMPO = _place("side to move")
BISHOP_PAIR = _place("bishop pair")
PAWNLESS = _place("no pawns")
KNIGHT_PAWNS, ROOK_PAWNS = _place("knight x own pawns"), _place("rook x own pawns")

ISOLATED = _place("isolated pawn", *_FILES)
DOUBLED = _place("doubled pawn", *_FILES)
BACKWARD, BACKWARD_OPEN = _place("backward pawn"), _place("backward pawn on half-open file")
PHALANX = _place("pawn beside pawn", *_RANKS)
SUPPORTED = _place("supported pawn", *_RANKS[1:])
ISLANDS = _place("pawn islands")
PASSED = _place("passed pawn", *_RANKS)
PASSED_SUPPORTED = _place("supported passed pawn", *_RANKS[1:])
PASSED_BLOCKED = _place("blocked passed pawn", *_RANKS)
PASSED_FREE = _place("passed pawn with free path", *_RANKS)
UNSTOPPABLE = _place("unstoppable passed pawn")
KING_TO_PASSED = _place("own king to passed pawn, distance", *range(8))
ENEMY_TO_PASSED = _place("enemy king to passed pawn, distance", *range(8))
ROOK_BEHIND_OWN, ROOK_BEHIND_ENEMY = _place("rook behind own passed pawn"), _place("rook behind enemy passed pawn")
BLOCKED_CENTRE = _place("blocked pawn", "d2", "e2")

MOBILITY = tuple(
    _place(f"{word} mobility", *range(most + 1)) for word, most in zip(WORDS[1:5], (8, 13, 14, 27), strict=True)
)
ROOK_OPEN, ROOK_HALF_OPEN = _place("rook on open file"), _place("rook on half-open file")
ROOK_SEVENTH, QUEEN_SEVENTH = _place("rook on seventh rank"), _place("queen on seventh rank")
CONNECTED_ROOKS = _place("connected rooks")
KNIGHT_OUTPOST = _place("knight outpost", *_RANKS[2:5])
BISHOP_OUTPOST, OUTPOST_REACHED = _place("bishop outpost"), _place("outpost in reach of knight")
BISHOP_PAWNS = _place("own pawns on the colour of a bishop")
BEHIND_PAWN = _place("minor piece behind own pawn")
SPACE = _place("safe squares in the centre")

SHELTER = _place("king shelter", *(f"{file} pawn {rank}" for file in _EDGES for rank in _AHEAD))
STORM = _place("pawn storm", *(f"{file} pawn {rank}" for file in _EDGES for rank in _AHEAD))
KING_OPEN, KING_HALF_OPEN = _place("king on open file"), _place("king on half-open file")
CASTLE_SHORT, CASTLE_LONG = _place("may castle short"), _place("may castle long")
KING_ATTACKERS = _place("pieces near enemy king", *range(8))
KING_HITS = _place("attacked squares near enemy king by", *WORDS[1:5])
KING_CHECKS = _place("checks possible by", *WORDS[1:5])
KING_WEAK = _place("weak squares near enemy king")

PAWN_THREAT = _place("pawn attacks", *WORDS[1:5])
PUSH_THREAT = _place("pawn push attacks a piece")
MINOR_THREAT = _place("minor piece attacks", *WORDS[:5])
ROOK_THREAT = _place("rook attacks", *WORDS[:5])
KING_THREAT = _place("king attacks a piece or pawn")
HANGING = _place("attacked and undefended", *WORDS[:5])

N_TERMS, N_MATERIAL = len(TERMS), len(WORDS) - 1
NAMES = TERMS[:N_MATERIAL] + [f"{term}, {stage}" for term in TERMS[N_MATERIAL:] for stage in STAGES]
SIZE = len(NAMES)
