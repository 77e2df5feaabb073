"""The kit for games."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rlgames.compiled import HAS_COMPILER, compile_function
from rlgames.games.game import Game, PartBoard
from rlgames.games.misfit import misfit
from rlgames.testing.contract import broken, kit, name_of, random_lines, require, said

B = TypeVar("B", bound=PartBoard)
Line = tuple[list[B], list[int]]

GAMES = 30


@kit
def check_game(game: Game[Any], seed: int = 0) -> None:
    """Check whether ``game`` keeps the contract of ``rlgames.games.game``.

    Plays random games: attributes and codes, legal and illegal moves, tensor boards, symmetries, what people see, and
    compiled play against Python.

    Args:
        game: the game.
        seed: of the random games.

    Raises:
        ContractError: naming what is broken, and after which moves.
    """
    if not isinstance(game, Game):
        broken(f"{name_of(game)} is not an rlgames.Game")
    sentence = misfit(game, GAMES, seed)
    if sentence:
        broken(sentence)
    lines = random_lines(game, GAMES, seed)
    for line in lines:
        _check_codes(game, line)
        _check_play(game, line)
        for k in range(1, len(game.symmetries)):
            _check_mirror(game, k, line)
    if HAS_COMPILER:
        _check_compiled(game, seed)


def place(game: Game[Any], moves: list[int]) -> str:
    """Where a sentence applies: the game and the labels of the ``moves`` that led there."""
    line = "".join(game.labels[move] for move in moves)
    return f"{game.name}{f', after {line}' if line else ''}"


def _check_codes(game: Game[B], line: Line[B]) -> None:
    """States and cells have their shapes and ranges, and no impossible code occurs."""
    states, shape = game.states(3), (game.n_parts, game.n_codes, game.n_cells // game.n_parts)
    require(states.shape == shape, f"{game.name}: states(3) has shape {states.shape}, not {shape}")
    require(
        bool(np.all((states >= -1) & (states < 3))), f"{game.name}: states(3) goes beyond 0 to 2, and -1 for impossible"
    )
    for ply, board in enumerate(line[0]):
        where = place(game, line[1][:ply])
        for part in range(game.n_parts):
            code = board.code(part)
            require(
                states[part, code].min() >= 0, f"{where}: part {part} has code {code}, which states calls impossible"
            )
        cells = game.cells(board)
        require(
            cells.shape == game.grid.shape and bool(np.all((cells >= 0) & (cells <= 2))),
            f"{where}: cells() must give 0, 1 or 2 in the shape of grid, {game.grid.shape}",
        )


def _check_play(game: Game[B], line: Line[B]) -> None:
    """``play`` takes legal moves and labels, and refuses all others; equal boards are equal; they can be shown."""
    boards, moves = line
    for ply, board in enumerate(boards):
        where = place(game, moves[:ply])
        again = game.play(moves[:ply])
        named = game.play("".join(game.labels[move] for move in moves[:ply]))
        require(again == board == named, f"{where}: play() leads to {tuple(again)}, the board to {tuple(board)}")
        require(hash(again) == hash(board), f"{where}: equal boards have different hashes")
        legal = set(board.moves().tolist())
        for move in {-1, *range(game.n_moves + 1)} - legal:
            _refused(game, board, move, where)
        require(isinstance(game.text(board), str), f"{where}: text() gives {type(game.text(board)).__name__}, not text")
        try:
            game.picture(board, dict.fromkeys(legal, 0.5)).svg()
        except Exception as error:
            broken(f"{where}: picture() fails with {said(error)}", error)


def _refused(game: Game[B], board: B, move: int, where: str) -> None:
    try:
        game.play([move], board)
    except ValueError:
        return
    broken(f"{where}: play() accepts the move {move}, which is not legal here")


def _check_mirror(game: Game[B], k: int, line: Line[B]) -> None:
    """Symmetry ``k`` of a game is a game: the image shows in cell c what the board shows in cell s[c]."""
    boards, moves = line
    symmetry = list(game.symmetries[k])
    size, states = game.n_cells // game.n_parts, game.states(3)
    image_of = {symmetry[part * size] // size: part for part in range(game.n_parts)}
    image = game.board
    for ply, board in enumerate(boards):
        where = f"{place(game, moves[:ply])}: symmetries[{k}]"
        seen, expected = (
            np.concatenate([states[part, b.code(part)] for part in range(game.n_parts)]) for b in (image, board)
        )
        require(
            seen.tolist() == expected[symmetry].tolist(), f"{where} leads to a board that is not the image of this one"
        )
        legal, mapped = set(image.moves().tolist()), {image_of[move] for move in board.moves().tolist()}
        require(
            legal == mapped, f"{where} maps the legal moves to {sorted(mapped)}, but {sorted(legal)} are legal there"
        )
        require(
            (image.winner(), image.over()) == (board.winner(), board.over()),
            f"{where}: winner and over are {board.winner()} and {board.over()}, but {image.winner()} and {image.over()}"
            " on the image",
        )
        if ply < len(moves):
            image = image.play(image_of[moves[ply]])


def play_random(
    board: PartBoard, games: int, rng: np.random.Generator, moves: npt.NDArray[np.int64], seen: npt.NDArray[np.int64]
) -> None:
    """Play random games; runs compiled.

    Args:
        board: the start position.
        games: number of games.
        rng: source of randomness.
        moves: receives the moves, -1 after the last; ``[games, plies]``.
        seen: receives of every position player, winner, over, the number of legal moves, these in order (all moves have
            room), and the codes; ``[games, plies + 1, 4 + n_moves + n_parts]``.
    """
    room = np.empty(seen.shape[2], np.int64)
    for game in range(games):
        b = board
        for ply in range(seen.shape[1]):
            row = seen[game, ply]
            legal = b.moves()
            row[0], row[1], row[2], row[3] = b.player(), b.winner(), b.over(), b.list_moves(room)
            for k in range(row[3]):
                row[4 + k] = room[k]
            for part in range(seen.shape[2] - 4 - moves.shape[1]):
                row[4 + moves.shape[1] + part] = b.code(part)
            if b.over() or len(legal) == 0:
                break
            move = legal[int(rng.random() * len(legal))]
            moves[game, ply] = move
            b = b.play(move)


def _check_compiled(game: Game[B], seed: int) -> None:
    """Random games are the same in Python and compiled."""
    played = []
    for function in (play_random, compile_function(play_random)):
        moves = np.full((GAMES, max(game.n_cells, game.n_moves)), -1, np.int64)
        seen = np.zeros((GAMES, game.n_cells + 1, 4 + moves.shape[1] + game.n_parts), np.int64)
        try:
            function(game.board, GAMES, np.random.default_rng(seed), moves, seen)
        except Exception as error:
            broken(f"{game.name}: the board cannot be compiled: {said(error)}", error)
        played.append((moves, seen))
    (moves, python), (other, compiled) = played
    differ = np.argwhere((python != compiled).any(2))
    if not len(differ):
        require(bool(np.array_equal(moves, other)), f"{game.name}: compiled games differ from those in Python")
        return
    k, ply = map(int, differ[0])
    column = int(np.flatnonzero(python[k, ply] != compiled[k, ply])[0])
    width = 4 + moves.shape[1]
    name = ("player()", "winner()", "over()", "the number of moves")[column] if column < 4 else "moves()"
    name = f"code({column - width})" if column >= width else name
    broken(
        f"{place(game, moves[k, :ply].tolist())}: compiled, {name} gives {compiled[k, ply, column]}, in Python"
        f" {python[k, ply, column]}"
    )
