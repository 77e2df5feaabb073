"""Alpha-beta in plain Python for any game, network and device: easy to read, and a check for compiled code."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from rlgames.games.game import Board
from rlgames.search.bounds import EXACT, LOWER, UPPER

Values = Callable[[Sequence[Board]], Tensor]


class Found(NamedTuple):
    """What a search found.

    Attributes:
        value: for the player to move.
        line: the principal variation: the moves of best play by both sides.
        leaf: the board at its end, where ``value`` comes from.
    """

    value: float
    line: tuple[int, ...]
    leaf: Board


class Note(NamedTuple):
    """What a search found about a position of its tree, for TreeStrap (Veness et al. 2009).

    Attributes:
        board: the position.
        depth: plies looked ahead, at least 1.
        bound: whether the value is ``EXACT``, a ``LOWER`` or an ``UPPER`` bound; see ``rlgames.search.bounds``.
        value: for the player to move.
    """

    board: Board
    depth: int
    bound: int
    value: float


class Tactics(Protocol):
    """Where to search beyond the depth, as in exchanges of chess pieces."""

    def extension(self, board: Board) -> int:
        """Extra plies to search from here."""

    def moves(self, board: Board) -> Sequence[int]:
        """Moves to search when no depth is left."""

    def may_stand(self, board: Board) -> bool:
        """Whether the player to move may decline all of them."""


def search(
    board: Board,
    depth: int,
    values: Values,
    win: float = 1.0,
    prune: bool = True,
    tactics: Tactics | None = None,
    alpha: float = -math.inf,
    beta: float = math.inf,
    value: float | None = None,
    notes: list[Note] | None = None,
) -> Found:
    """Search ``depth`` plies; the value is exact between ``alpha`` and ``beta``, else a bound (fail-soft).

    The replies to a board just above the leaves are evaluated together, in one batch.

    Args:
        board: the position.
        depth: plies, at least 0.
        values: returns the values ``[n]`` of n boards that are not over, from the first player's view; for instance
            ``lambda boards: network(network.indices(*boards))``, whatever the device of the network.
        win: value of a finished game for its winner; a loss is -win, a draw 0.
        prune: skip moves that cannot matter; False is plain minimax, with the same value.
        tactics: where to search further.
        alpha: value that the player to move already has.
        beta: value that the opponent will not allow.
        value: value of ``board`` from the first player's view, if known.
        notes: list to which the finding about each position of the tree is appended.
    """
    player = board.player()
    if board.over():
        return Found(player * win * board.winner(), (), board)
    depth += tactics.extension(board) if tactics else 0
    best = Found(-math.inf, (), board)
    if depth <= 0 and (tactics is None or tactics.may_stand(board)):
        best = Found(player * (value if value is not None else values([board]).item()), (), board)
    if depth <= 0 and (tactics is None or (prune and best.value >= beta)):
        return best
    moves = [int(move) for move in (board.moves() if tactics is None or depth > 0 else tactics.moves(board))]
    replies = [board.play(move) for move in moves]
    known = _evaluate(replies, values) if depth <= 1 else [None] * len(moves)
    for move, reply, number in zip(moves, replies, known, strict=True):
        found = search(reply, depth - 1, values, win, prune, tactics, -beta, -max(alpha, best.value), number, notes)
        if -found.value > best.value:
            best = Found(-found.value, (move, *found.line), found.leaf)
        if prune and best.value >= beta:
            break
    if notes is not None and depth > 0:
        bound = EXACT if not prune or alpha < best.value < beta else LOWER if best.value >= beta else UPPER
        notes.append(Note(board, depth, bound, best.value))
    return best


def _evaluate(boards: Sequence[Board], values: Values) -> list[float | None]:
    """Values of ``boards`` in one batch; None for those that are over."""
    going_on = [board for board in boards if not board.over()]
    numbers = iter(values(going_on).tolist() if going_on else ())
    return [None if board.over() else next(numbers) for board in boards]
