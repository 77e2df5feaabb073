"""What every learner reports about the games it has played."""

from typing import NamedTuple


class Episodes(NamedTuple):
    """Sums over some games of self-play.

    Attributes:
        games, plies, updates: their numbers.
        errors: sum of |td_error| over the updates; not finite if the values were not.
        first, second: wins of the first and the second player.
    """

    games: int = 0
    plies: int = 0
    updates: int = 0
    errors: float = 0.0
    first: int = 0
    second: int = 0

    def plus(self, other: "Episodes") -> "Episodes":
        """The sums of both."""
        return Episodes(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[arg-type]
