"""Alpha-beta in plain Python over any game, with any network on any device: to read, and to check compiled code by."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor

Values = Callable[[Sequence[Any]], Tensor]


class Found(NamedTuple):
    """What a search found.

    Attributes:
        value: for the player to move.
        line: the principal variation, best play of both sides as moves.
        leaf: the board at its end, which ``value`` is the value of.
    """

    value: float
    line: tuple[int, ...]
    leaf: Any


def search(
    board: Any,
    depth: int,
    values: Values,
    win: float = 1.0,
    prune: bool = True,
    alpha: float = -math.inf,
    beta: float = math.inf,
) -> Found:
    """Look ``depth`` plies ahead; exact between ``alpha`` and ``beta``, else a bound (fail-soft).

    The replies to a board just above the leaves are evaluated together, in one batch.

    Args:
        board: the position.
        depth: plies, at least 0.
        values: gives the values ``[n]`` of n boards that are not over, from the first player's view; for instance
            ``lambda boards: network(network.indices(*boards))``, whatever the device of the network.
        win: value of a finished game for its winner; a loss is -win, a draw 0.
        prune: leave out moves that cannot matter; False is plain minimax, of the same value.
        alpha: what the player to move has already.
        beta: what the opponent will not allow.
    """
    if board.over() or depth == 0:
        return _leaf(board, values, win)
    moves = [int(move) for move in board.moves()]
    after = [board.play(move) for move in moves]
    if depth == 1:
        replies = _leaves(after, values, win)
    best = Found(-math.inf, (), board)
    for move, reply in zip(moves, after, strict=True):
        if depth == 1:
            found = next(replies)
        else:
            found = search(reply, depth - 1, values, win, prune, -beta, -max(alpha, best.value))
        if -found.value > best.value:
            best = Found(-found.value, (move, *found.line), found.leaf)
        if prune and best.value >= beta:
            break
    return best


def _leaf(board: Any, values: Values, win: float) -> Found:
    return next(_leaves([board], values, win))


def _leaves(boards: Sequence[Any], values: Values, win: float) -> Iterator[Found]:
    """Each of ``boards`` without looking ahead."""
    going_on = [board for board in boards if not board.over()]
    numbers = iter(values(going_on).tolist() if going_on else ())
    for board in boards:
        value = win * board.winner() if board.over() else next(numbers)
        yield Found(board.player() * value, (), board)
