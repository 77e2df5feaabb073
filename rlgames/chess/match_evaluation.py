"""How strong has a chess agent become? Pairs of games against an opponent, as Elo with its interval."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlgames.chess.contest import Adjudication, Engine, Record
from rlgames.chess.openings import Openings
from rlgames.chess.pairs import play_pair
from rlgames.chess.pgn import pgn
from rlgames.chess.search_agent import SearchAgent
from rlgames.chess.searcher import Searcher
from rlgames.evaluation.elo import Pairs, elo, in_words
from rlgames.evaluation.evaluation import Evaluation, Measure
from rlgames.players import GreedyPlayer

COLUMNS = ("success", "low", "high", "elo", "elo_low", "elo_high", "wins", "draws", "losses", "length")


class MatchEvaluation(Evaluation):
    """A match over random openings, each played with both colours.

    Args:
        game: chess.
        opponent: an engine, see ``rlgames.chess.contest.Engine``.
        openings, adjudication: see ``rlgames.chess.openings.Openings`` and ``rlgames.chess.contest.Adjudication``.
        games: an even number.
        nodes, depth: limits of the agent per move; 0: none.

    Raises:
        ValueError: for a number out of range, or an opponent that does not play chess.
    """

    measures = (
        Measure("success_match", "success", low="low_match", high="high_match"),
        Measure("elo_match", "Elo", percent=False, low="elo_low_match", high="elo_high_match"),
    )
    columns = tuple(f"{column}_match" for column in COLUMNS)
    levels = (60, 75)

    def __init__(
        self,
        game: Any,
        opponent: Any,
        openings: Openings = Openings(),  # noqa: B008
        adjudication: Adjudication = Adjudication(),  # noqa: B008
        games: int = 40,
        nodes: int = 2000,
        depth: int = 0,
    ) -> None:
        if games < 2 or games % 2:
            raise ValueError(f"evaluation.games is {games}; it must be an even number of at least 2")
        if nodes < 0 or depth < 0 or not nodes + depth:
            raise ValueError(f"evaluation.nodes is {nodes}, depth is {depth}; one must be above 0, none below")
        if not isinstance(opponent, Engine):
            name = type(opponent).__name__
            raise ValueError(f"opponent is {name}, which does not play chess; name opponent=untrained or opponent=uci")
        self.opponent, self.openings, self.adjudication = opponent, openings, adjudication
        self.pairs, self.nodes, self.depth = games // 2, nodes, depth
        self._last: Record | None = None

    def scores(self, agent: GreedyPlayer, rng: np.random.Generator) -> dict[str, Any]:
        """Play the match of ``agent``, a ``GreedyPlayer`` of a ``SearchAgent``.

        Raises:
            ValueError: if no pair of games was completed.
        """
        if not isinstance(agent.agent, SearchAgent):
            raise ValueError("evaluation=match is for agents that search, of learner=td_leaf; name another evaluation")
        engine = Searcher(agent.agent.coefficients(), self.nodes, self.depth, name="agent")
        played = [
            play_pair(engine, self.opponent, self.openings, self.adjudication, engine.score, rng)
            for _ in range(self.pairs)
        ]
        points = {pair.digest: pair.points for pair in played if pair.points is not None}  # equal pairs count once
        if not points:
            raise ValueError(f"no pair of games was completed: {played[0].errors[0]}")
        results = [result for pair in played for result in pair.results]
        records = [record for pair in played for record in pair.records if record is not None]
        self._last = records[0]
        plies = float(np.mean([len(record.course.moves) for record in records]))
        return {"pairs": Pairs.of(points.values()), "results": results, "length": plies}

    def flat(self, scores: dict[str, Any]) -> dict[str, float]:
        """What ``scores`` returned as one row; a clean sweep has an infinite Elo."""
        pairs, results = scores["pairs"], scores["results"]
        low, high = pairs.interval
        figures = [pairs.score, low, high, elo(pairs.score), elo(low), elo(high)]
        figures += [results.count(1), results.count(0), results.count(-1), scores["length"]]
        return dict(zip(self.columns, figures, strict=True))

    def headline(self, row: Mapping[str, Any]) -> str:
        """Elo above the opponent with its 95 % interval, from a row of figures."""
        if "elo_match" not in row:
            return "strength not measured"
        words = in_words(*(row[f"{name}_match"] for name in ("elo_low", "elo", "elo_high")))
        return f"Elo {words} (95 % interval) against {self.opponent.name}"

    def report(self, scores: dict[str, Any]) -> str:
        """What ``scores`` returned, for people."""
        results = scores["results"]
        counts = f"{results.count(1)} won, {results.count(0)} drawn, {results.count(-1)} lost"
        return f"against {self.opponent.name}: {scores['pairs']}; {counts}, {scores['length']:.0f} plies"

    def sample(self, agent: GreedyPlayer, rng: np.random.Generator) -> str:
        """The first game of the last match as PGN."""
        return pgn(self._last, {"White": "agent", "Black": self.opponent.name}) if self._last else "no game yet"
