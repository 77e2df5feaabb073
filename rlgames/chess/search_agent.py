"""The agent that looks ahead: compiled search over a linear evaluation that a torch optimizer changes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rlgames.agents.agent import Agent
from rlgames.chess.board import Board
from rlgames.chess.contest import Course
from rlgames.chess.features import ChessTerms
from rlgames.chess.search import Result
from rlgames.chess.search.tree import Tree, evaluations, weighted_counts
from rlgames.chess.searcher import Searcher
from rlgames.networks.linear import LinearEvaluation
from rlgames.optim import StepSize
from rlgames.search.bounds import EXACT, LOWER, UPPER

Weights = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.floating[Any]]


class SearchAgent(Agent[Board]):
    """Plays by search; learns by any of our step-size rules, which take every error, or any torch optimizer.

    The functions that it runs are handed the agent itself, which has a ``best`` move.

    Args:
        network: a linear evaluation of chess terms.
        optimizer: over its parameters.
        searcher: makes a player of coefficients, see ``rlgames.chess.searcher.Searcher``.
        fixed: a coefficient that does not learn; -1: none.
    """

    afterstates = False
    network: LinearEvaluation
    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        searcher: Callable[[Weights], Searcher],
        fixed: int = -1,
    ) -> None:
        if not (isinstance(network, LinearEvaluation) and isinstance(network.features, ChessTerms)):
            raise ValueError("learner=td_leaf learns the coefficients of a linear evaluation of chess: network=linear")
        self.network, self.optimizer = network, optimizer
        self.features, self.fixed = network.features, fixed
        self._searcher: Callable[[Weights], Searcher] = searcher
        self._player: Searcher | None = None
        (self.weight,) = network.parameters()
        self._sum = torch.zeros_like(self.weight)

    def coefficients(self) -> Weights:
        """A copy of the coefficients, ``[SIZE]``."""
        copy: Weights = self.weight.detach().cpu().numpy().reshape(-1).astype(np.float32)
        return copy

    def move_values(self, board: Board) -> npt.NDArray[np.float64]:
        """Value of each legal move by a search of the board after it, for the player to move."""
        player = board.player()
        after = [board.play(int(move)) for move in board.moves()]
        return np.array([player * (b.winner() if b.over() else self.best(b)[1]) for b in after], np.float64)

    def learn(self, board: Board, colour: int, value: float, delta: float) -> None:
        """Learn from one position: w ← w + step size · delta · ∇V(board), for a plain rule.

        Args:
            board: the position.
            colour: +1 if the value is White's, -1 if Black's.
            value: V, for ``colour``.
            delta: how much higher it should have been.
        """
        indices, counts = self.features.active(board)
        slope = self.network.slope(value)
        free = indices != self.fixed
        rows = torch.from_numpy(indices[free].astype(np.int64)).to(self.weight.device)
        x = torch.from_numpy(colour * counts[free]).to(self.weight)[:, None]
        if isinstance(self.optimizer, StepSize):
            self.weight.grad = torch.sparse_coo_tensor(
                rows[None], x, self.weight.shape, is_coalesced=True, check_invariants=False
            )
            self.optimizer.step(delta, slope)
        else:
            self._sum[rows] -= delta * slope * x  # gradient of a loss, which torch's optimizers descend

    def learn_tree(self, tree: Tree) -> None:
        """Learn from the tree of a search: w ← w + step size · Σ δ ∇V, over all its quiet positions in one step.

        δ leads from V of a position's present evaluation to what the search found; to a bound only if the evaluation
        violates it (Veness et al. 2009). Most moves of a tree are blunders that the side to move is about to punish:
        there the evaluation, which the search uses only in quiet positions, would learn that having the move is worth
        a pawn and a half.

        Args:
            tree: see ``rlgames.chess.search.tree.Tree``.
        """
        values = self.units(tree.players * evaluations(tree.boards, self.coefficients()))
        errors = self.units(tree.scores) - values
        errors *= tree.quiet & ((tree.bounds == EXACT) | (tree.bounds == np.where(errors > 0, LOWER, UPPER)))
        gradient = weighted_counts(tree.boards, tree.players * errors * self.network.slope(values))
        if self.fixed >= 0:
            gradient[self.fixed] = 0
        step = torch.from_numpy(gradient).to(self.weight)[:, None]
        if isinstance(self.optimizer, StepSize):
            self.weight.grad = step.to_sparse(1)
            self.optimizer.step(1.0)
        else:
            self._sum -= step

    def finish(self) -> None:
        """The positions of a batch of games are learned: torch's optimizers make their step here."""
        if not isinstance(self.optimizer, StepSize):
            sparse = isinstance(self.optimizer, torch.optim.SparseAdam)
            self.weight.grad = self._sum.to_sparse(1) if sparse else self._sum
            self.optimizer.step()
            self._sum = torch.zeros_like(self.weight)
        self._player = None

    @torch.no_grad()
    def scale(self, factor: float) -> None:
        """Multiply all coefficients by ``factor``."""
        self.weight.mul_(factor)

    def evaluate(self, board: Board) -> float:
        """J of ``board`` in pawns from White's view."""
        j: float = self.features.evaluate(self.coefficients(), board)
        return j

    def values(self, found: Sequence[Result]) -> Numbers:
        """V of search results, for the side to move: of the score, or -1 or +1 for a mate."""
        values = self.units([thought.score for thought in found])
        mates = np.sign([thought.mate for thought in found])
        return np.where(mates != 0, mates, values)

    def units(self, pawns: Sequence[float] | Numbers) -> Numbers:
        """V of evaluations."""
        values: Numbers = self.network.unit(torch.tensor(pawns, dtype=torch.float64)).numpy()
        return values

    def best(self, board: Board) -> tuple[int, float]:
        """The move that a search without the game's history finds, and its V from White's view."""
        self._player = self._player or self._searcher(self.coefficients())
        found = self._player.think(Course(board))
        return found.move, board.player() * float(self.values([found])[0])

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(agent, *args)``."""
        return function(self, *args)

    def look(self) -> dict[str, Any]:
        """Piece values (pawn = 100) and pictures of the piece-square tables."""
        features, coefficients = self.features, self.coefficients()
        tables = features.tables(coefficients)
        limit = max(float(np.abs(table).max()) for table in tables.values())
        pictures = {f"table_{name.replace(' ', '_')}": heat_map(table, limit) for name, table in tables.items()}
        return {f"value_{name}": value for name, value in features.piece_values(coefficients).items()} | pictures


def heat_map(table: Numbers, limit: float, cell: int = 24) -> npt.NDArray[np.uint8]:
    """``table`` as a picture, ``[8 cell, 8 cell, 3]``: blue below 0, white, red above, in full colour at ``limit``."""
    share = np.clip(table / limit if limit else table, -1, 1)[..., None]
    colour = np.where(share > 0, np.array([178, 24, 43]), np.array([33, 102, 172]))
    pixels = 255 + np.abs(share) * (colour - 255)
    return np.kron(pixels, np.ones((cell, cell, 1))).astype(np.uint8)
