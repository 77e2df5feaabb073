"""The alpha-beta search for people and programs."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.chess.board import Board, legal_moves
from rlgames.chess.evaluation import PAWN, packed_coefficients
from rlgames.chess.search.alphabeta import MATE, MATE_SCORE, find_quiet, search_position
from rlgames.chess.search.memory import MEMORY, State
from rlgames.chess.search.tree import Tree, noted, tree_of
from rlgames.compiled import require_compiler
from rlgames.interrupts import ask, asked, telling


class Limits(NamedTuple):
    """When a search ends; 0: no limit, and without any limit the search is endless.

    Attributes:
        nodes: positions to search (depth 1 is always completed).
        depth: half-moves to look ahead, up to 64.
        ms: milliseconds.
    """

    nodes: int = 0
    depth: int = 0
    ms: float = 0


DEFAULT = Limits(depth=4)


class Result(NamedTuple):
    """What a search found.

    Attributes:
        move: the best move.
        score: of the position in pawns, for the side to move; meaningless if ``mate`` is not 0.
        mate: moves to mate: above 0 the side to move wins, below 0 it loses; 0 if no mate was found.
        pv: the principal variation.
        leaf: the position after it.
        leaf_is_evaluation: whether ``score`` is the evaluation of ``leaf`` (with the sign of the side to move at the
            root), not the value of a mate or a draw.
        nodes: positions searched.
        depth: half-moves of the last iteration that gave an answer; 0 if the search was stopped before there was one.
        tree: what was found about the positions of the tree; None if not requested.
    """

    move: int
    score: float
    mate: int
    pv: tuple[int, ...]
    leaf: Board
    leaf_is_evaluation: bool
    nodes: int
    depth: int
    tree: Tree | None = None


class Search:
    """Alpha-beta search with the linear evaluation; deterministic for limits of nodes and depth after ``clear``.

    Args:
        coefficients: of the evaluation in pawns, ``[SIZE]``.
        hash_mb: size of the hash table in MiB, rounded down to a power of two.
        table_use: 2 uses all hash entries, 1 only those of the same depth, 0 only their moves, for ordering.
        selective: skip or shorten lines that are rarely good (null moves, late move reductions).
        tree: record what is found about the positions of the tree.

    Attributes:
        state: the memory, for compiled code.

    Raises:
        ValueError: without numba, for a wrong number of coefficients, one that is not finite, or a size below 0.001.
    """

    def __init__(
        self,
        coefficients: npt.ArrayLike,
        hash_mb: float = 16,
        table_use: int = 2,
        selective: bool = True,
        tree: bool = False,
    ) -> None:
        require_compiler("a chess search")
        if not 0.001 <= hash_mb < 2**20:
            raise ValueError(f"hash_mb is {hash_mb}; it must be a number of MiB from 0.001 to {2**20}")
        entries = 1 << (int(hash_mb * 2**20) // 16).bit_length() - 1
        self.state = State(np.zeros(1, MEMORY), np.zeros((entries, 2), np.int64))
        for name, number in (("table_use", table_use), ("selective", selective), ("noting", tree)):
            self.state.memory[name] = number
        self.load(coefficients)

    def load(self, coefficients: npt.ArrayLike) -> None:
        """Set other coefficients, and clear what was found with the old ones.

        Raises:
            ValueError: as above.
        """
        self.state.memory["packed"][0] = packed_coefficients(coefficients)
        self.clear()

    def clear(self) -> None:
        """Clear everything that earlier searches found."""
        self.state.table[:] = 0
        for name in ("history", "pawns", "age"):
            self.state.memory[name] = 0

    def run(
        self, board: Board, history_keys: Sequence[int] = (), limits: Limits = DEFAULT, roots: Sequence[int] = ()
    ) -> Result:
        """Search ``board``.

        Args:
            board: the position; there must be a legal move.
            history_keys: ``key`` of the earlier positions of the game, for draws by repetition.
            limits: when to stop.
            roots: legal moves to choose from; empty: all.

        Raises:
            ValueError: if there is no legal move, or for a negative limit.
            rlgames.interrupts.Interrupted: if a signal asks for an end.
        """
        n_legal = len(legal_moves(board))
        if n_legal == 0:
            raise ValueError(f"the game is over; there is no move to choose in\n{board}")
        if min(limits) < 0:
            raise ValueError(f"{limits}: limits must not be negative")
        self.state.memory["n_roots"] = len(roots) if len(roots) < n_legal else 0
        self.state.memory["roots"][0, : len(roots)] = roots
        keys = np.array(history_keys, np.int64)
        with telling(self.stop):
            self.state.memory["stop"] = asked()
            timer = threading.Timer(limits.ms / 1000, self.stop) if limits.ms else None
            if timer:
                timer.daemon = True
                timer.start()
            found = search_position(self.state, board, keys, len(keys), int(limits.nodes), int(limits.depth))
            if timer:
                timer.cancel()
        ask()
        memory = self.state.memory[0]
        pv = tuple(map(int, memory["best_line"][: memory["best_length"]])) or (found.move,)
        mate = 0
        if abs(found.score) > MATE_SCORE:
            plies = MATE - abs(found.score)
            mate = (plies + 1) // 2 if found.score > 0 else -(plies // 2)
        leaf, tree = Board(*found.leaf), self._tree() if memory["noting"] else None
        return Result(
            found.move, found.score / PAWN, mate, pv, leaf, found.is_evaluation, found.nodes, found.depth, tree
        )

    def _tree(self) -> Tree:
        rows = noted(self.state.memory[0])
        quiet = np.empty(len(rows), bool)
        find_quiet(self.state, rows, quiet)
        return tree_of(rows, quiet)

    def stop(self) -> None:
        """Stop the running search, from another thread."""
        self.state.memory["stop"] = 1
