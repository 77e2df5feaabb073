"""What a search remembers, as one record of fixed size (compiled code passes its address) and a hash table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.board import MOST_MOVES
from rlgames.chess.terms import N_TERMS
from rlgames.compiled import compilable

MOST_PLIES = 128  # from the root to the deepest position
MOST_KEYS = 100  # positions before the root that can recur: none is older than fifty moves
PAWN_ENTRIES = 4096
MOST_NOTES, NOTE = 4096, 16  # notes per iteration and numbers per note, see ``rlgames.chess.search.tree``

MEMORY = np.dtype(
    [
        ("stop", "i8"),  # set to 1 from outside to end the search
        ("aborted", "i8"),  # 1 while the search unwinds
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("n_roots", "i8"),  # 0: all moves
        ("roots", "i8", MOST_MOVES),  # moves that the root may choose from
        ("table_use", "i8"),  # 0: the hash table only orders moves; 1: bounds of equal depth count; 2: also of greater
        ("selective", "i8"),  # 1: null moves and late move reductions
        ("age", "i8"),  # of entries of the hash table
        ("root", "i8"),  # place of the root in ``keys``
        ("keys", "i8", MOST_KEYS + MOST_PLIES),
        ("packed", "i8", N_TERMS),  # coefficients
        ("moves", "i8", (MOST_PLIES, MOST_MOVES)),  # order << 16 | move
        ("passed", "i8", MOST_PLIES),  # 1 where a null move was made
        ("killers", "i8", (MOST_PLIES, 2)),
        ("history", "i8", (2, 4096)),  # by colour and from | to << 6
        ("line", "i8", (MOST_PLIES, MOST_PLIES)),  # principal variation from each ply on
        ("length", "i8", MOST_PLIES),  # of it
        ("judged", "i8", MOST_PLIES),  # 1 if the evaluation ends it, 0 if mate or a draw does
        ("pawns", "i8", (PAWN_ENTRIES, 5)),  # White's and Black's pawns, their sum, passed pawns of both
        # the answer: the last line that was searched to the end with an exact value
        ("best_line", "i8", MOST_PLIES),
        ("best_length", "i8"),
        ("best_score", "i8"),
        ("best_judged", "i8"),
        ("best_depth", "i8"),
        # notes on the tree, only if requested: one half is written while the other holds the last whole iteration
        ("noting", "i8"),  # 1 if requested
        ("half", "i8"),  # being written
        ("noted", "i8"),  # notes in it
        ("kept", "i8"),  # notes in the other one
        ("notes", "i8", (2, MOST_NOTES, NOTE)),
    ],
    align=True,
)


class State(NamedTuple):
    """A search for compiled code.

    Attributes:
        memory: one ``MEMORY``, ``[1]``.
        table: hash table, ``[entries, 2]`` (key, data), entries being a power of two.
    """

    memory: Any
    table: npt.NDArray[np.int64]


@compilable
def entry_move(data: int) -> int:
    """The best move of an entry, or 0."""
    return data & 0x7FFF


@compilable
def entry_depth(data: int) -> int:
    """The depth of an entry."""
    return data >> 15 & 255


@compilable
def entry_bound(data: int) -> int:
    """The kind of an entry's score."""
    return data >> 23 & 3


@compilable
def entry_score(data: int) -> int:
    """The score of an entry."""
    return data >> 32


@compilable
def store(table: npt.NDArray[np.int64], key: int, age: int, move: int, depth: int, bound: int, score: int) -> None:
    """Keep an entry, unless a deeper one of the same search occupies its place."""
    place = key & (len(table) - 1)
    old = table[place, 1]
    if table[place, 0] != key and old >> 25 & 127 == age and entry_depth(old) > depth:
        return
    table[place, 0] = key
    table[place, 1] = move | depth << 15 | bound << 23 | age << 25 | score << 32


@compilable
def forget(s: Any, table: npt.NDArray[np.int64]) -> None:
    """Clear what was found with other coefficients, and what would make searches depend on earlier ones."""
    table[:] = 0
    s.pawns[:] = 0
    s.history[:] = 0
    s.age = 0
