"""What the kits share: their exception, random positions, and what a checkpoint does to a state."""

import functools
import io
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
import torch

from rlgames.games.game import Game, PartBoard, Rules

P = ParamSpec("P")
B = TypeVar("B", bound=PartBoard)
S = TypeVar("S")


class ContractError(ValueError):
    """A contract is broken; the message is one sentence that says how, and where."""


def broken(sentence: str, cause: BaseException | None = None) -> NoReturn:
    """Raise a ``ContractError``."""
    raise ContractError(sentence) from cause


def require(kept: bool | np.bool_, sentence: str) -> None:
    """Raise a ``ContractError`` that says ``sentence`` unless a promise is ``kept``."""
    if not kept:
        broken(sentence)


def kit(check: Callable[P, None]) -> Callable[P, None]:
    """Let ``check`` raise nothing but ``ContractError``, whatever the code that it checks raises."""

    @functools.wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except ContractError:
            raise
        except Exception as error:
            first = args[0] if args else next(iter(kwargs.values()))
            broken(f"{name_of(first)}: {said(error)}", error)

    return checked


def name_of(thing: object) -> str:
    """The name of a game, a class, or the class of ``thing``."""
    if isinstance(thing, Rules):
        return thing.name
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def said(error: BaseException) -> str:
    """The kind and the first line of ``error``."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}{f': {lines[0]}' if lines else ''}"


def random_lines(game: Game[B], games: int, seed: int = 0) -> list[tuple[list[B], list[int]]]:
    """Random games: their boards, the start position first, and the moves between them."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(games):
        boards: list[B] = [game.board]
        moves: list[int] = []
        while not boards[-1].over():
            moves.append(int(rng.choice(boards[-1].moves())))
            boards.append(boards[-1].play(moves[-1]))
        lines.append((boards, moves))
    return lines


def random_boards(game: Rules[Any], count: int, seed: int = 0) -> list[Any]:
    """Positions of random games, none of them over, the start position first."""
    rng, boards = np.random.default_rng(seed), [game.board]
    board = game.board
    while len(boards) < count:
        board = board.play(int(rng.choice(board.moves())))
        board = game.board if board.over() else board
        if board.ply != game.board.ply:
            boards.append(board)
    return boards


def saved(state: S) -> S:
    """``state`` after it was written to a checkpoint and read again.

    Raises:
        ContractError: if a checkpoint cannot hold it.
    """
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    try:
        back: S = torch.load(file, weights_only=True)
    except Exception as error:
        broken(f"state_dict() holds what a checkpoint cannot: {said(error)}", error)
    return back
