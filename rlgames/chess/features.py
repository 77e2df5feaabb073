"""The terms of the chess evaluation as features of a linear network, and its coefficients as people see them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.chess.board import Board
from rlgames.chess.evaluation import NAMES, SIZE, evaluate, features, start_values
from rlgames.chess.moves import MOST_MOVES
from rlgames.chess.terms import MATERIAL, PAWN_SQUARE, PIECE_SQUARE, STAGES, WORDS
from rlgames.features.features import Terms
from rlgames.games.game import Rules

Floats = npt.NDArray[np.float32]


class ChessTerms(Terms[Board]):
    """The named terms of ``rlgames.chess.terms``.

    Args:
        game: chess.

    Attributes:
        size: number of coefficients.
        names: their names.

    Raises:
        ValueError: for another game.
    """

    size = SIZE
    names = NAMES
    n_moves = MOST_MOVES
    shape = (SIZE,)

    def __init__(self, game: Rules[Board]) -> None:
        if game.name != "chess":
            raise ValueError(f"features=chess do not fit {game.name}")

    def active(self, board: Board) -> tuple[npt.NDArray[np.int32], Floats]:
        """Indices, ascending, and counts of the coefficients that apply on ``board``, from White's view."""
        return features(board)

    def encode(self, boards: Sequence[Board]) -> Tensor:
        """Counts of all terms of ``boards``, from White's view; ``[len(boards), size]`` float32."""
        counts = torch.zeros(len(boards), SIZE)
        for row, board in zip(counts, boards, strict=True):
            indices, numbers = self.active(board)
            row[torch.from_numpy(indices).long()] = torch.from_numpy(numbers)
        return counts

    def evaluate(self, coefficients: Floats, board: Board) -> float:
        """J of ``board`` in pawns from White's view."""
        return evaluate(coefficients, board)

    def start_values(self) -> Floats:
        """Material only, ``[size]``."""
        return start_values()

    def piece_values(self, coefficients: Floats) -> dict[str, float]:
        """Value of each piece but the king, in hundredths of a pawn: material and the mean of its table, both stages.

        What all squares of a table share is part of the piece's value, like its material coefficient.
        """
        tables = self.tables(coefficients)
        values = [
            coefficients[MATERIAL + k] + np.mean([_mean(tables[f"{word} {stage}"], k) for stage in STAGES])
            for k, word in enumerate(WORDS[:5])
        ]
        return {word: float(100 * value / values[0]) for word, value in zip(WORDS[:5], values, strict=True)}

    def tables(self, coefficients: Floats) -> dict[str, Floats]:
        """The piece-square tables by piece and stage, rank 8 above, ``[8, 8]`` in pawns."""
        found = {}
        pairs = coefficients[len(WORDS) - 1 :].reshape(-1, 2)  # terms after the material have two stages
        for k, word in enumerate(WORDS):
            first = PAWN_SQUARE if k == 0 else PIECE_SQUARE + 64 * (k - 1)
            first -= len(WORDS) - 1
            for s, stage in enumerate(STAGES):
                values = pairs[first : first + (48 if k == 0 else 64), s]
                if k == 0:
                    values = np.pad(values, 8)
                found[f"{word} {stage}"] = values.reshape(8, 8)[::-1]
        return found


def _mean(table: Floats, piece: int) -> float:
    return float(table.sum() / (48 if piece == 0 else 64))
