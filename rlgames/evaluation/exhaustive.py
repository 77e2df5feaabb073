"""A proof instead of a sample: every line of play against a greedy agent, for small games."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rlgames.evaluation.evaluation import Evaluation, Measure
from rlgames.evaluation.matches import sample_game
from rlgames.games.game import Board, Game
from rlgames.interrupts import ask
from rlgames.players import GreedyPlayer, Player

MAX_CELLS = 9


class Tree(NamedTuple):
    """What can happen after a board, from the agent's view.

    Attributes:
        wins, draws, losses: number of lines of play with that result, over all replies of the opponent.
        win_rate, draw_rate: their probabilities if the opponent moves at random.
    """

    wins: int
    draws: int
    losses: int
    win_rate: float
    draw_rate: float

    @property
    def lines(self) -> int:
        """Number of lines of play."""
        return self.wins + self.draws + self.losses


ENDS = {1: Tree(1, 0, 0, 1.0, 0.0), 0: Tree(0, 1, 0, 0.0, 1.0), -1: Tree(0, 0, 1, 0.0, 0.0)}


class Proof(NamedTuple):
    """Result of all lines of play against an agent on one side.

    Attributes:
        tree: of the start position.
        states: number of boards at which the agent may have to move.
        bound: the highest win rate against a random opponent without ever risking a loss.
        losing_line: a line that the agent loses, in labels; None if there is none.
    """

    tree: Tree
    states: int
    bound: float
    losing_line: str | None

    @property
    def success(self) -> float:
        """Share of the lines that the agent does not lose."""
        return 1.0 - self.tree.losses / self.tree.lines

    def __str__(self) -> str:
        t = self.tree
        lost = max(0.0, 1.0 - t.win_rate - t.draw_rate)
        text = (
            f"{t.lines} lines, {t.wins} won, {t.draws} drawn, {t.losses} lost, {self.states} boards to move at;"
            f" against random moves {100 * t.win_rate:.2f} % won (without risk at most {100 * self.bound:.2f} %),"
            f" {100 * lost:.2f} % lost"
        )
        return text if self.losing_line is None else f"{text}; a losing line: {self.losing_line}"


class Exhaustive(Evaluation):
    """Pits the greedy agent against every line of play, as first and as second player.

    Args:
        game: a game of at most 9 cells.
        opponent: not used; accepted because all evaluations are built alike.

    Attributes:
        boards: all reachable positions that are not over.

    Raises:
        ValueError: for a larger game.
    """

    measures = (
        *(Measure(f"success_{side}", "lines not lost") for side in ("both", "first", "second")),
        *(Measure(f"losses_{side}", "lines lost", percent=False, more_is_better=False) for side in ("first", "second")),
        Measure("optimal", "best moves"),
    )
    levels = (100,)

    def __init__(self, game: Game[Any], opponent: Player | None = None) -> None:
        if game.n_cells > MAX_CELLS:
            raise ValueError(f"evaluation=exhaustive walks every line of play, and {game.name} has too many")
        self.game, self.opponent = game, opponent
        lines = _lines(game.board)
        self.boards = tuple(lines)
        self._lengths = np.array([len(line) for line in lines.values()])
        self._lines = np.array([[*line, *[0] * (game.n_cells - len(line))] for line in lines.values()])
        self._value = _values()
        self._bounds = {side: self._safest(side) for side in (1, -1)}

    def scores(self, agent: GreedyPlayer, rng: np.random.Generator) -> dict[str, Any]:
        """The results by name: first and second player, and the share of best moves over all boards.

        Args:
            agent: the player to be measured.
            rng: not used: nothing is left to chance.
        """
        moves = agent.moves(self.game.board, self._lines, self._lengths)
        ask()
        choice = {board: int(move) for board, move in zip(self.boards, moves, strict=True)}
        best = sum(-self._value(board.play(move)) == self._value(board) for board, move in choice.items())
        return {
            "first": self._prove(choice, 1),
            "second": self._prove(choice, -1),
            "optimal": best / len(self.boards),
        }

    def flat(self, scores: dict[str, Any]) -> dict[str, float]:
        """What ``scores`` returned, as one row."""
        proofs = {side: scores[side] for side in ("first", "second")}
        losses, lines = (sum(getattr(p.tree, name) for p in proofs.values()) for name in ("losses", "lines"))
        row = {"success_both": 1.0 - losses / lines, "losses_both": losses, "optimal": scores["optimal"]}
        for side, p in proofs.items():
            t = p.tree
            figures = {"success": p.success, "lines": t.lines, "wins": t.wins, "draws": t.draws, "losses": t.losses}
            figures |= {"states": p.states, "random_wins": t.win_rate, "random_draws": t.draw_rate}
            row |= {f"{name}_{side}": figure for name, figure in figures.items()}
        return row

    def headline(self, row: Mapping[str, Any]) -> str:
        """The main figures of ``row``, as text."""
        if "losses_both" not in row:
            return "not measured"
        return (
            f"{row['losses_first']} of {row['lines_first']} lines lost as first, {row['losses_second']} of"
            f" {row['lines_second']} as second player; {100 * row['optimal']:.1f} % of all moves are best"
        )

    def sample(self, agent: GreedyPlayer, rng: np.random.Generator) -> str:
        """A match of the agent against itself, as text."""
        return sample_game(self.game, agent, agent, rng)

    def report(self, scores: dict[str, Any]) -> str:
        """What ``scores`` returned, as text."""
        return "\n".join(
            [
                *(f"{side:>8}: {scores[side]}" for side in ("first", "second")),
                f"{'all':>8}: best moves at {100 * scores['optimal']:.2f} % of {len(self.boards):,} boards",
            ]
        )

    def _prove(self, choice: dict[Board, int], side: int) -> Proof:
        """Follow all lines of play against an agent that plays ``choice`` as ``side``."""

        @functools.cache
        def tree(board: Board) -> Tree:
            if board.over():
                return ENDS[side * board.winner()]
            if board.player() == side:
                states.add(board)
                return tree(board.play(choice[board]))
            return _any_of([tree(board.play(int(move))) for move in board.moves()])

        states: set[Board] = set()
        whole = tree(self.game.board)
        board, line = self.game.board, ""
        while whole.losses and not board.over():
            moves = [choice[board]] if board.player() == side else map(int, board.moves())
            move = next(move for move in moves if tree(board.play(move)).losses)
            board, line = board.play(move), line + self.game.labels[move]
        return Proof(whole, len(states), self._bounds[side], line or None)

    def _safest(self, side: int) -> float:
        """The highest win rate against a random opponent among players who never risk a loss."""

        @functools.cache
        def rate(board: Board) -> float:
            if board.over():
                return float(board.winner() == side)
            after = [board.play(int(move)) for move in board.moves()]
            if board.player() == side:
                safe = [a for a in after if self._value(a) <= 0] or after  # where all is lost, nothing more is risked
                return max(map(rate, safe))
            return sum(map(rate, after)) / len(after)

        return rate(self.game.board)


def _any_of(trees: list[Tree]) -> Tree:
    """What can happen if the opponent may choose any of ``trees``."""
    wins, draws, losses, win_rates, draw_rates = zip(*trees, strict=True)
    return Tree(sum(wins), sum(draws), sum(losses), sum(win_rates) / len(trees), sum(draw_rates) / len(trees))


def _lines(start: Board) -> dict[Board, tuple[int, ...]]:
    """Every board reachable from ``start`` that is not over, with a line of play that leads there."""
    lines: dict[Board, tuple[int, ...]] = {start: ()}
    for board in (boards := [start]):  # it grows as the loop runs
        for move in map(int, board.moves()):
            after = board.play(move)
            if not after.over() and after not in lines:
                lines[after] = (*lines[board], move)
                boards.append(after)
    return lines


def _values() -> Callable[[Board], int]:
    """A function that returns the value of a board for the player to move: +1 wins, 0 draws, -1 loses."""

    @functools.cache
    def value(board: Board) -> int:
        if board.over():
            return int(board.winner() * board.player())
        return max(-value(board.play(int(move))) for move in board.moves())

    return value
