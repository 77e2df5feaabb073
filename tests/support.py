"""What several tests share: paths, small runs, and positions."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hydra.utils import get_class
from omegaconf import OmegaConf

from rlgames.build import CONF, load
from rlgames.compiled import compile_function
from rlgames.games.connect4 import Connect4
from rlgames.optim import StepSize

PROJECT = Path(__file__).parents[1]
DATA = PROJECT.parent / "shared" / "data"  # published tuples and test positions, where somebody has put them


class Optimizer(NamedTuple):
    """A file of conf/optimizer."""

    cls: Any
    hyper: dict[str, Any]
    unit: str


def _optimizers():
    for file in sorted((CONF / "optimizer").glob("*.yaml")):
        text = OmegaConf.load(file)
        if "defaults" in text:  # builds on another file
            text = load(f"optimizer={file.stem}")
        node = text.get("optimizer", text)
        hyper = {str(key): number for key, number in node.items() if not str(key).startswith("_")}
        yield (
            file.stem,
            Optimizer(get_class(node["_target_"]), hyper, OmegaConf.select(text, "network.output", default="tanh")),
        )


OPTIMIZERS = dict(_optimizers())
RULES = {name: optimizer for name, optimizer in OPTIMIZERS.items() if issubclass(optimizer.cls, StepSize)}

QUICK = [
    "game=tictactoe",
    "engine=eager",
    "games=12",
    "eval_every=4",
    "opponent=random",
    "evaluation.first=2",
    "evaluation.second=0",
]


def few(values, *quick):
    """``values`` as parameters of a test, of which only ``quick`` (else the first) are outside of -m thorough."""
    values = list(values)
    quick = quick or values[:1]
    assert all(value in values for value in quick), quick
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else [value]), marks=[] if value in quick else [pytest.mark.thorough]
        )
        for value in values
    ]


def last_checkpoint(folder):
    return torch.load(sorted((folder / "checkpoints").glob("*.pt"))[-1], weights_only=True)


def result(folder):
    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    return json.loads((folder / "result.json").read_text(), parse_constant=refuse)


# ---- positions

# of Connect-4, columns from 0
DRAW = "5 4 5 0 6 2 4 5 5 0 4 1 1 0 4 5 6 5 3 1 1 2 2 6 2 6 6 3 6 2 0 3 0 3 3 4 3 1 4 2 1 0"


def moves_of(text):
    """A position of Connect-4 from 0-based columns such as "1 1 5"."""
    return Connect4().play(map(int, text.split()))


def random_boards(game, count, plies, rng):
    """Boards after a random number of ``plies``, none of them over."""
    boards = []
    while len(boards) < count:
        board = game.board
        for _ in range(int(rng.choice(plies))):
            if not board.over():
                board = board.play(int(rng.choice(board.moves())))
        if not board.over():
            boards.append(board)
    return boards


# ---- random games, played in compiled code


def trace(board, games, rng, n_moves, n_parts):
    """Random games: the moves, and for every position the legal moves in order, the winner, whether over, the codes."""
    plies = n_moves if n_moves == 9 else 42
    played = np.full((games, plies), -1, np.int8)
    legal = np.full((games, plies + 1, n_moves), -1, np.int8)
    winner = np.zeros((games, plies + 1), np.int8)
    over = np.zeros((games, plies + 1), np.bool_)
    codes = np.zeros((games, plies + 1, n_parts), np.int16)
    for game in range(games):
        b = board
        while True:
            moves = b.moves()
            legal[game, b.ply, : len(moves)] = moves
            winner[game, b.ply], over[game, b.ply] = b.winner(), b.over()
            for part in range(n_parts):
                codes[game, b.ply, part] = b.code(part)
            if b.over():
                break
            move = moves[int(rng.random() * len(moves))]
            played[game, b.ply] = move
            b = b.play(move)
    return played, legal, winner, over, codes


def random_games(game, count, seed=0):
    rng = np.random.default_rng(seed)
    return compile_function(trace)(game.board, count, rng, game.n_moves, game.n_parts)
