"""How strong is an agent? Matches against an opponent, with counts and an interval."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlgames.evaluation import evaluation
from rlgames.evaluation.evaluation import Measure
from rlgames.games.game import Board, Game
from rlgames.interrupts import ask
from rlgames.players import Perfect, Player


class Score(NamedTuple):
    """Result of some matches, from the agent's view.

    Attributes:
        wins, draws, losses: of the agent.
        plies: of all matches in total.
        distinct: number of different matches; repeated ones add no information.
    """

    wins: int
    draws: int
    losses: int
    plies: int
    distinct: int

    @property
    def matches(self) -> int:
        """Number of matches."""
        return self.wins + self.draws + self.losses

    @property
    def success(self) -> float:
        """Success rate, 0 to 1: a win counts 1, a draw 1/2."""
        return (self.wins + self.draws / 2) / self.matches

    @property
    def length(self) -> float:
        """Mean length of a match in plies."""
        return self.plies / self.matches

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the success rate; a match that was repeated counts once, since it says nothing new."""
        return wilson(self.success, self.distinct)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.success:.3f} [{low:.3f}, {high:.3f}], {self.wins} won, {self.draws} drawn, {self.losses} lost,"
            f" {self.length:.1f} plies{f', {self.distinct} different' if self.distinct < self.matches else ''}"
        )


def wilson(rate: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a ``rate`` observed in ``n`` trials (Wilson 1927, eq. 3); ``z`` 1.96 gives 95 %."""
    middle = rate + z * z / (2 * n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def play_match(first: Player, second: Player, board: Board, rng: np.random.Generator) -> tuple[list[int], Board]:
    """Play a match from ``board`` to the end; return the moves and the final board.

    Raises:
        rlgames.interrupts.Interrupted: if a signal asks for an end.
    """
    moves = []
    while not board.over():
        ask()
        moves.append((first if board.player() > 0 else second).move(board, rng))
        board = board.play(moves[-1])
    return moves, board


def play_matches(
    game: Game[Any],
    agent: Player,
    opponent: Player,
    matches: int,
    first: bool,
    rng: np.random.Generator,
    starts: Sequence[Board] = (),
) -> Score:
    """Play ``matches`` matches.

    Args:
        game: the game.
        agent: the player whose score is returned.
        opponent: the other player.
        matches: number of matches.
        first: whether the agent is the first player.
        rng: source of all randomness.
        starts: boards from which the matches start, in turn; the game's start position if empty.

    Raises:
        ValueError: for fewer than one match.
    """
    if matches < 1:
        raise ValueError(f"matches is {matches}; it must be at least 1")
    starts = starts or (game.board,)
    players = (agent, opponent) if first else (opponent, agent)
    results = {1: 0, 0: 0, -1: 0}
    plies, distinct = 0, set()
    for match in range(matches):
        start = starts[match % len(starts)]
        moves, board = play_match(*players, start, rng)
        results[board.winner() if first else -board.winner()] += 1
        plies += board.ply
        distinct.add((start, *moves))
    return Score(results[1], results[0], results[-1], plies, len(distinct))


PROTOCOLS = ("first", "second", "first_distant", "second_distant")
COLUMNS = ("success", "low", "high", "wins", "draws", "losses", "length", "distinct")


class Evaluation(evaluation.Evaluation):
    """The protocols by which an agent is measured. The agent always plays greedily.

    ``first`` is the published protocol of Connect-4: the agent moves first in 200 matches against a perfect player with
    random losing moves (Thill 2015, section 4.2.1). ``first_distant`` is harder: the opponent always chooses a most
    distant loss.

    The second player cannot beat perfect play, so there the opponent's first move is given: every legal first move in
    turn (in Connect-4, perfect play then scores 5/7: four of the seven openings lose, two draw).

    Args:
        game: the game.
        opponent: a player; protocols with ``distant`` are skipped unless it is ``Perfect``.
        first, second, first_distant, second_distant: number of matches, 0 to leave the protocol out.

    Attributes:
        protocols: names of the protocols played.

    Raises:
        ValueError: for a negative number of matches, or none at all.
    """

    levels = (80, 90)

    def __init__(
        self,
        game: Game[Any],
        opponent: Player,
        first: int = 200,
        second: int = 70,
        first_distant: int = 50,
        second_distant: int = 35,
    ) -> None:
        matches = dict(zip(PROTOCOLS, (first, second, first_distant, second_distant), strict=True))
        for name, number in matches.items():
            if number < 0:
                raise ValueError(f"evaluation.{name} is {number}; it must be at least 0")
        if not first + second:
            raise ValueError("evaluation.first and evaluation.second are both 0; at least one must be above 0")
        distant = isinstance(opponent, Perfect)
        self.game, self.opponent = game, opponent
        self._matches = {name: n for name, n in matches.items() if n and (distant or "distant" not in name)}
        self.protocols = tuple(self._matches)
        self.columns = tuple(f"{column}_{name}" for name in self.protocols for column in COLUMNS)
        self.measures = tuple(
            Measure(f"success_{name}", "success", low=f"low_{name}", high=f"high_{name}") for name in self.protocols
        )

    def scores(self, agent: Player, rng: np.random.Generator) -> dict[str, Score]:
        """Play all protocols; return the scores by name.

        Args:
            agent: the player to be measured.
            rng: source of all randomness; not the one of training.
        """
        return {name: self._score(name, agent, rng) for name in self.protocols}

    def flat(self, scores: dict[str, Score]) -> dict[str, float]:
        """What ``scores`` returned, as one row; see ``columns``."""
        return flat(scores)

    def headline(self, row: Mapping[str, Any]) -> str:
        """The main success rate with its 95 % interval, from a row of figures."""
        figures = [row.get(f"{name}_{self.protocols[0]}") for name in ("success", "low", "high")]
        if None in figures:
            return "success not measured"
        success, low, high = (f"{100 * figure:.1f}" for figure in figures if figure is not None)
        return f"success {success} % (95 % interval {low} to {high} %)"

    def report(self, scores: dict[str, Score]) -> str:
        """What ``scores`` returned, as text."""
        return "\n".join(f"{name:>15}: {score}" for name, score in scores.items())

    def sample(self, agent: Player, rng: np.random.Generator) -> str:
        """A match of the agent against itself, as text."""
        return sample_game(self.game, agent, agent, rng)

    def _score(self, name: str, agent: Player, rng: np.random.Generator) -> Score:
        side, _, distant = name.partition("_")
        opponent = self.opponent.playing("distant") if distant and isinstance(self.opponent, Perfect) else self.opponent
        openings = [self.game.board.play(int(move)) for move in self.game.board.moves()] if side == "second" else ()
        return play_matches(self.game, agent, opponent, self._matches[name], side == "first", rng, openings)


def flat(scores: dict[str, Score]) -> dict[str, float]:
    """Scores by protocol as one row; see ``Evaluation.columns``."""
    row: dict[str, float] = {}
    for name, s in scores.items():
        figures = (s.success, *s.interval, s.wins, s.draws, s.losses, s.length, s.distinct)
        row |= {f"{column}_{name}": figure for column, figure in zip(COLUMNS, figures, strict=True)}
    return row


def sample_game(game: Game[Any], first: Player, second: Player, rng: np.random.Generator) -> str:
    """A match as text: the labels of the moves, the result, and the final board."""
    moves, board = play_match(first, second, game.board, rng)
    result = {1: "the first player wins", -1: "the second player wins", 0: "a draw"}[board.winner()]
    return f"{''.join(game.labels[move] for move in moves)}: {result} after {board.ply} plies\n{game.text(board)}"
