"""Two engines play pairs of games: the same opening twice, with colours exchanged."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlgames.contest import Adjudication, Engine, Record, play
from rlgames.openings import Openings
from rlgames.players.uci_engine import EngineError


class Pair(NamedTuple):
    """Two games from the same opening.

    Attributes:
        records: the first player has White in the first game; None for a game that an engine did not survive.
        errors: what such an engine said.
    """

    records: tuple[Record | None, Record | None]
    errors: tuple[str, ...]

    @property
    def results(self) -> list[int]:
        """+1, 0, -1 for the first player in every game that was played to its end."""
        return [side * record.winner for side, record in zip((1, -1), self.records, strict=True) if record is not None]

    @property
    def points(self) -> float | None:
        """Of the first player, 0 to 2; None if a game is missing."""
        return 1 + sum(self.results) / 2 if len(self.results) == 2 else None


def play_pair(
    first: Engine,
    second: Engine,
    openings: Openings,
    rules: Adjudication,
    score: Any,
    rng: np.random.Generator,
) -> Pair:
    """Play both games of a pair.

    Args:
        first: a player.
        second: the other.
        openings: where they begin.
        rules: when they end early.
        score: judges openings, see ``Openings.draw``.
        rng: draws the opening.
    """
    opening = openings.draw(rng, score)
    records: list[Record | None] = []
    errors = []
    for white, black in ((first, second), (second, first)):
        try:
            records.append(play(white, black, opening.copy(), rules))
        except EngineError as error:
            records.append(None)
            errors.append(str(error))
    return Pair((records[0], records[1]), tuple(errors))


def coefficients_of(saved: dict[str, Any], path: str) -> npt.NDArray[np.float32]:
    """The coefficients that a checkpoint holds.

    Raises:
        ValueError: if it is not one of chess.
    """
    from rlgames.features.chess import SIZE

    for tensor in saved["network"].values():
        if tensor.numel() == SIZE:
            coefficients: npt.NDArray[np.float32] = tensor.numpy().reshape(-1).astype(np.float32)
            return coefficients
    game = str(saved["config"].get("game", {}).get("_target_", "")).rpartition(".")[2]
    raise ValueError(f"{path} holds no agent of chess with {SIZE} coefficients, but one of {game}")
