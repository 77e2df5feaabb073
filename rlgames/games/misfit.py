"""Where a game breaks the contract of ``rlgames.games.game``, in one sentence."""

from typing import Any, TypeVar

import numpy as np
import torch

from rlgames.games.game import Game, PartBoard

P = TypeVar("P", bound=PartBoard)


def misfit(game: Game[Any], games: int = 20, seed: int = 0) -> str | None:
    """What of the contract ``game`` breaks, in one sentence; None if ``games`` random games show nothing."""
    broken = _broken_class(game)
    if broken:
        return f"{game.name}: {broken}"
    rng = np.random.default_rng(seed)
    for _ in range(games):
        board, line = game.board, ""
        while not (broken := _broken(game, board) or _broken_tensors(game, board)) and not board.over():
            move = int(rng.choice(board.moves()))
            line += game.labels[move]
            after = board.play(move)
            broken = _broken_move(game, board, move, after)
            if broken:
                break
            board = after
        if broken:
            return f"{game.name}{f', after {line}' if line else ''}: {broken}"
    return None


def _broken_class(game: Game[Any]) -> str | None:
    """What is wrong with the attributes of ``game``."""
    cells, size = list(range(game.n_cells)), game.n_cells // game.n_parts
    if size * game.n_parts != game.n_cells:
        return f"n_cells is {game.n_cells}, which is no multiple of n_parts = {game.n_parts}"
    if game.n_moves > game.n_parts:
        return f"n_moves is {game.n_moves} and n_parts {game.n_parts}; a move changes the part with its own number"
    if len(game.labels) != game.n_moves or len(set(game.labels)) < game.n_moves:
        return f"labels is {game.labels!r}; it must be {game.n_moves} different characters, one for each move"
    if np.ndim(game.grid) != 2 or sorted(np.ravel(game.grid).tolist()) != cells:
        return f"grid must hold each cell from 0 to {cells[-1]} once, in rows and columns"
    previous = np.asarray(game.previous)
    if previous.shape != (game.n_codes,) or not np.all((previous >= 0) & (previous < game.n_codes)):
        return f"previous must hold a code from 0 to {game.n_codes - 1} for each of the {game.n_codes} codes"
    if not game.symmetries or list(game.symmetries[0]) != cells:
        return "symmetries must begin with the identity"
    for k, symmetry in enumerate(game.symmetries):
        if sorted(symmetry) != cells:
            return f"symmetries[{k}] is no permutation of the cells 0 to {cells[-1]}"
        if any(len({cell // size for cell in symmetry[first : first + size]}) > 1 for first in cells[::size]):
            return f"symmetries[{k}] tears a part of the board apart; cells of one part stay together in one part"
    return None


def _broken(game: Game[P], board: P) -> str | None:
    """What is wrong with ``board``."""
    room = np.empty(game.n_moves + 1, np.int64)
    moves, listed = board.moves().tolist(), room[: board.list_moves(room)].tolist()
    codes = [board.code(part) for part in range(game.n_parts)]
    if board.player() not in (1, -1) or board.winner() not in (1, 0, -1):
        return f"player() is {board.player()} and winner() {board.winner()}; a player is +1 or -1, and 0 nobody"
    if listed != moves:
        return f"moves() gives {moves}, but list_moves() writes {listed}"
    if board.over() and moves:
        return f"the game is over, but moves() gives {moves}"
    if not board.over() and board.winner():
        return f"winner() is {board.winner()}, but over() is False"
    if not board.over() and not moves:
        return "there are no moves, but over() is False; games with passes do not fit"
    if not all(0 <= move < game.n_moves for move in moves) or len(set(moves)) < len(moves):
        return f"moves() gives {moves}; moves are different numbers from 0 to n_moves - 1 = {game.n_moves - 1}"
    if not all(0 <= code < game.n_codes for code in codes):
        return f"code() gives {codes}; codes are from 0 to n_codes - 1 = {game.n_codes - 1}"
    return None


def _broken_move(game: Game[P], board: P, move: int, after: P) -> str | None:
    """What is wrong with the ``move`` from ``board`` to ``after``."""
    if after.ply != board.ply + 1:
        return f"ply is {board.ply} before and {after.ply} after the move; each move adds 1"
    if after.ply > game.n_cells:
        return f"there are more than n_cells = {game.n_cells} plies"
    if not after.over() and after.player() != -board.player():
        return f"player() is {board.player()} before and after the move; games with passes do not fit"
    others = [part for part in range(game.n_parts) if part != move and board.code(part) != after.code(part)]
    if others:
        return f"the move {move} changes part {others[0]}; a move may change only the part with its own number"
    if not 0 <= after.code(move) < game.n_codes:
        return f"the move {move} leads to code {after.code(move)}; codes are from 0 to n_codes - 1 = {game.n_codes - 1}"
    if after.code(move) == board.code(move):
        return f"the move {move} is offered, but changes nothing"
    if game.previous[after.code(move)] != board.code(move):
        return (
            f"part {move} has code {board.code(move)} before and {after.code(move)} after the move, but previous says"
            f" {game.previous[after.code(move)]}"
        )
    return None


def _broken_tensors(game: Game[P], board: P) -> str | None:
    """Where the tensor boards of ``game`` say anything else than ``board``, which ``engine=batched`` would believe."""
    if game.boards is None or board.over():
        return None
    many = game.boards(*(torch.tensor([field]) for field in board))
    codes = many.code(torch.arange(game.n_parts).unsqueeze(1)).flatten().tolist()
    moves, legal = many.moves()
    listed = moves[legal].tolist()
    wins, last = many.wins(moves)[legal].tolist(), bool(many.last())
    own = board.moves().tolist()
    after = [board.play(move) for move in own]
    said: dict[str, tuple[Any, Any]] = {
        "player": (int(many.player()), board.player()),
        "code": (codes, [board.code(part) for part in range(game.n_parts)]),
        "moves": (listed, own),
        "wins": (wins, [b.winner() == board.player() for b in after]),
        "wins and last": ([won or last for won in wins], [b.over() for b in after]),
    }
    if listed == own:
        played = [list(map(int, many.play(torch.tensor([move])))) for move in own]
        said["play"] = played, [list(map(int, b)) for b in after]
    for name, (tensors, numbers) in said.items():
        if tensors != numbers:
            return f"boards: {name} gives {tensors} where the board says {numbers}; boards = None does without them"
    return None
