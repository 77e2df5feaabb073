"""TD-Leaf(λ): the evaluation learns at the leaves of the search (Baxter, Tridgell & Weaver 1999), and its relatives."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rlgames.agents.agent import Agent
from rlgames.episodes import Episodes
from rlgames.features.features import Features
from rlgames.learners.learner import Learner, Numbers
from rlgames.learners.td_errors import CLIPS, clipped, decaying_sums, differences
from rlgames.schedules import Constant, Schedule

RESULTS = ("draws", "white_wins", "black_wins")  # by the winner, 0, 1 and -1
METHODS = ("td_leaf", "td_directed", "root_strap", "tree_strap")


class SelfPlay(Protocol):
    """Plays the games that are learned from; see ``rlgames.chess.self_play``."""

    trees: bool

    def agent(self, network: nn.Module, optimizer: Any, fixed: int) -> Agent[Any]:
        """The agent that plays and learns with ``network``, whose coefficient ``fixed`` does not learn (-1: all do)."""

    def games(self, coefficients: Any, first: int, rng: np.random.Generator, count: int) -> Iterator[Any]:
        """Play ``count`` games with the same ``coefficients``; ``first`` were played before."""

    def remember(self, games: int, coefficients: Any) -> None:
        """Keep ``coefficients`` after ``games`` games, as a past self."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""

    def close(self) -> None:
        """End all processes."""


class Lesson(NamedTuple):
    """What a player can learn from a game; one entry for each of its own moves.

    Attributes:
        values: of the positions, for the player, -1 to +1.
        errors: how much higher each value should have been.
        boards: where the evaluation changes.
        learnable: whether the value is the evaluation of that board.
        dropped: whether a rise in value is ignored.
        differences: temporal differences, before any is dropped.
    """

    values: Numbers
    errors: Numbers
    boards: list[Any]
    learnable: npt.NDArray[np.bool_]
    dropped: npt.NDArray[np.bool_]
    differences: Numbers


class TDLeaf(Learner):
    """TD-Leaf(λ) for a linear evaluation J at the leaves of an alpha-beta search.

    A player's own positions x_1 ... x_N have the values v_t = V(leaf_t), where leaf_t is the end of the principal
    variation, whose evaluation is the score of the search, and V = tanh(β J) or the network's other output. With
    d_t = v_{t+1} - v_t, where the outcome (+1, 0, -1) follows the last value, a game changes the coefficients by

        w ← w + α Σ_t ∇v_t Σ_{j ≥ t} λ^{j-t} d_j

    Any step-size rule or optimizer can take the place of α.

    Args:
        game: chess.
        self_play: plays the games.
        method: ``td_leaf``; ``td_directed``: moves come from the search, but values and gradients are those of the
            positions themselves; ``root_strap``: the evaluation of each position moves towards its search value;
            ``tree_strap``: so do the evaluations of all quiet positions of the search tree (Veness et al. 2009).
        lambda_: decay of the differences per own move, 0 to 1.
        clip: rises that are not learned from: ``none``, ``unpredicted`` or ``knightcap``; see ``td_errors``.
        lr: factor on the optimizer's lr, by game number.
        update_every: number of games played with the same coefficients, then learned from one by one.
        min_moves: games with fewer own moves teach nothing.
        pawn: ``free``: its value learns like all others; ``fixed``: it stays 1 (KnightCap); ``normalised``: all
            coefficients are divided by it after every update (FUSc#).
        draw_value: what a draw is worth to either player, in pawns.

    Attributes:
        chunk: number of games played at a time.

    Raises:
        ValueError: for a number or word out of range.
    """

    def __init__(
        self,
        game: Any,
        self_play: SelfPlay,
        method: str = "td_leaf",
        lambda_: float = 0.7,
        clip: str = "none",
        lr: Schedule = Constant(1.0),  # noqa: B008
        update_every: int = 8,
        min_moves: int = 8,
        pawn: str = "free",
        draw_value: float = 0.0,
    ) -> None:
        words = {"method": (method, METHODS), "clip": (clip, CLIPS), "pawn": (pawn, ("fixed", "normalised", "free"))}
        for name, (word, allowed) in words.items():
            if word not in allowed:
                raise ValueError(f"learner.{name} is {word!r}; allowed are {', '.join(allowed)}")
        if not 0 <= lambda_ <= 1:
            raise ValueError(f"learner.lambda_ is {lambda_}; allowed are numbers from 0 to 1")
        if update_every < 1 or min_moves < 1:
            raise ValueError(
                f"learner.update_every is {update_every}, learner.min_moves {min_moves}; both must be at least 1"
            )
        self.game, self.self_play, self.method, self.lambda_, self.lr = game, self_play, method, lambda_, lr
        self.clip, self.min_moves, self.pawn, self.chunk = clip, min_moves, pawn, update_every
        self.draw_value = draw_value
        self_play.trees = method == "tree_strap"
        self.curves(np.zeros(1, np.int64))  # refuse a schedule that is wrong from the start
        self._file: Path | None = None
        self._since_look = Counter[str]()

    # ---- what the trainer asks for

    def agent(
        self, engine: str, network: nn.Module, optimizer: torch.optim.Optimizer | None, features: Features[Any] | None
    ) -> Agent[Any]:
        """The agent that plays and learns with ``network``; ``engine`` makes no difference: searches are compiled.

        Raises:
            ValueError: if the network is not a linear evaluation.
        """
        agent: Agent[Any] = self.self_play.agent(network, optimizer, fixed=0 if self.pawn == "fixed" else -1)
        return agent

    def train(self, agent: Any, first_game: int, games: int, lr: float, rng: np.random.Generator) -> Episodes:
        """Play ``games`` games and learn from them.

        Args:
            agent: made by ``agent``.
            first_game: number of games played before.
            games: number of games to play; what is learned depends on where multiples of ``chunk`` fall.
            lr: the optimizer's lr, which the schedule multiplies.
            rng: source of randomness.

        Raises:
            ValueError: if the schedule leaves its range, or an opponent fails.
        """
        total = Episodes()
        while total.games < games:
            first = first_game + total.games
            count = min(self.chunk - first % self.chunk, games - total.games)
            lrs, texts = self.curves(np.arange(first, first + count), lr)["lr"], []
            for lr_now, game in zip(lrs, self.self_play.games(agent.coefficients(), first, rng, count), strict=True):
                agent.set_lr(lr_now)
                total = total.plus(self._learn(agent, game))
                texts.append(game.text)
            agent.finish()
            if self.pawn == "normalised":
                agent.scale(1 / float(agent.coefficients()[0]))
            self.self_play.remember(first + count, agent.coefficients())
            self._write(texts)
        return total

    def _learn(self, agent: Any, game: Any) -> Episodes:
        """Learn from ``game``."""
        updates, errors, winner = 0, 0.0, game.record.winner
        for colour in game.learners:
            lesson = self.lesson(agent, game.record, colour)
            if len(lesson.values) < self.min_moves:
                continue
            if self.method == "tree_strap":
                for n in own_moves(game.record, colour):
                    agent.learn_tree(game.record.thoughts[n].tree)
            else:
                for t in np.flatnonzero(lesson.learnable):
                    agent.learn(lesson.boards[t], colour, float(lesson.values[t]), float(lesson.errors[t]))
            updates += len(lesson.values)
            errors += float(np.abs(lesson.differences).sum())
            self._since_look.update(dropped=int(lesson.dropped.sum()), moves=len(lesson.values))
        self._since_look.update(games=1, **{RESULTS[winner]: 1})
        return Episodes(1, len(game.record.thoughts), updates, errors, int(winner > 0), int(winner < 0))

    def lesson(self, agent: Any, record: Any, colour: int) -> Lesson:
        """What the player of ``colour`` can learn from a game."""
        own, course, opening = own_moves(record, colour), record.course, record.course.opening
        thoughts = [record.thoughts[n] for n in own]
        found = values = agent.values(thoughts)
        boards, learnable = [t.leaf for t in thoughts], np.array([t.leaf_is_evaluation for t in thoughts], bool)
        if self.method in ("td_directed", "root_strap"):
            boards, learnable = [course.boards[opening + n] for n in own], np.ones(len(own), bool)
            values = agent.units([colour * agent.evaluate(board) for board in boards])
        replies = (tuple(course.moves[opening + n + 1 : opening + n + 2]) for n in own)
        predicted = np.array([t.pv[1:2] == reply for t, reply in zip(thoughts, replies, strict=True)])
        outcome = colour * record.winner if record.winner else float(agent.units([self.draw_value])[0])
        d = differences(values, outcome)
        kept = clipped(d, predicted, self.clip)
        errors = found - values if self.method == "root_strap" else decaying_sums(kept, self.lambda_)
        return Lesson(values, errors, boards, learnable, kept != d, d)

    # ---- what people see

    def look(self, agent: Any, games: int) -> dict[str, Any]:
        """Piece values (pawn = 100), pictures of tables, shares of results and of dropped rises since the last look."""
        seen, self._since_look = self._since_look, Counter()
        shares = {name: seen[name] / max(1, seen["games"]) for name in RESULTS}
        return {"dropped": seen["dropped"] / max(1, seen["moves"]), **shares, **agent.look()}

    # ---- what it leaves behind

    def open_folder(self, folder: Path, games: int) -> None:
        """Write all games to games.pgn in ``folder``, after the first ``games`` that it may already hold."""
        self._file = folder / "games.pgn"
        if self._file.exists():
            texts = self._file.read_text(encoding="utf-8").split("[Event ")[1 : games + 1]
            self._file.write_text("".join("[Event " + text for text in texts), encoding="utf-8")

    def _write(self, texts: list[str]) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write("".join(texts))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold besides coefficients and optimizer."""
        state: dict[str, Any] = self.self_play.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.self_play.load_state_dict(state)

    def close(self) -> None:
        """End all processes."""
        self.self_play.close()


def own_moves(record: Any, colour: int) -> list[int]:
    """Indices of the moves after the opening that the player of ``colour`` made."""
    boards = record.course.boards[record.course.opening : -1]
    return [n for n, board in enumerate(boards) if board.player() == colour]
