"""Our own chess engine as a player: compiled search with learned coefficients."""

import numpy as np
import numpy.typing as npt

from rlgames.chess.board import Board, Chess
from rlgames.chess.contest import Course, Engine
from rlgames.chess.evaluation import start_values
from rlgames.chess.search import Limits, Result, Search


class Searcher(Engine):
    """Spends the same nodes, depth or time on every move.

    Args:
        coefficients: of the evaluation, ``[SIZE]`` in pawns.
        nodes, depth, ms: limits per move; 0: none.
        hash_mb: size of the transposition table.
        name: for people.
        tree: also report what is found about the positions of the tree.

    Raises:
        ValueError: without any limit, or for invalid coefficients.
    """

    def __init__(
        self,
        coefficients: npt.NDArray[np.float32],
        nodes: int = 2000,
        depth: int = 0,
        ms: float = 0.0,
        hash_mb: float = 4.0,
        name: str = "rlgames",
        tree: bool = False,
    ) -> None:
        self.name, self.limits = name, Limits(nodes, depth, ms)
        if min(self.limits) < 0 or not any(self.limits):
            raise ValueError(f"nodes is {nodes}, depth is {depth}, ms is {ms}; one must be above 0, none below")
        self.search = Search(coefficients, hash_mb, tree=tree)

    def load(self, coefficients: npt.NDArray[np.float32]) -> None:
        """Use other coefficients from now on."""
        self.search.load(coefficients)

    def new_game(self) -> None:
        """Clear the memory, so that a game does not depend on earlier ones."""
        self.search.clear()

    def think(self, course: Course) -> Result:
        """The move in the present position of ``course``, and its basis."""
        return self.search.run(course.board, course.keys, self.limits)

    def score(self, board: Board) -> float:
        """The evaluation of ``board`` after captures are played out, in pawns, for the side to move."""
        return self.search.run(board, (), Limits(depth=1)).score


class Untrained(Searcher):
    """The engine before learning: material only.

    Args:
        game: chess.
        nodes, depth: limits per move.

    Raises:
        ValueError: without any limit.
    """

    def __init__(self, game: Chess, nodes: int = 2000, depth: int = 0) -> None:
        super().__init__(start_values(), nodes, depth, name="untrained")
