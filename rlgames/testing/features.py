"""The kit for features."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.compiled import HAS_COMPILER, compile_function
from rlgames.features.features import CompiledFeatures, DenseFeatures, Features, TableFeatures
from rlgames.games.game import Game, PartBoard, Rules
from rlgames.testing.contract import broken, kit, name_of, random_boards, random_lines, require, said, saved
from rlgames.testing.game import place

COUNT = 40  # boards


@kit
def check_features(
    features: Features[Any], game: Rules[Any], make: Callable[..., Features[Any]] | None = None, seed: int = 0
) -> None:
    """Check whether ``features`` keep the contract of ``rlgames.features.features`` on boards of ``game``.

    What ``encode`` gives must have its shape and type and depend on nothing but the board. The compact side of a table
    must equal it, in Python, compiled and as tensors, and must see symmetric images alike if it says so.

    Args:
        features: the features.
        game: their game, which keeps its own contract.
        make: builds the features again, given what ``kept`` returns; None: not tried.
        seed: of the boards.

    Raises:
        ContractError: naming what is broken, and where.
    """
    name = name_of(features)
    if not isinstance(features, Features):
        broken(f"{name} is not an rlgames.Features")
    boards = random_boards(game, COUNT, seed)
    _check_encode(features, boards, name)
    if isinstance(game, Game) and features.n_moves < game.n_moves:
        broken(f"{name}: n_moves is {features.n_moves}, but a board of {game.name} can have {game.n_moves}")
    if isinstance(features, TableFeatures) and isinstance(game, Game):
        _check_table(features, game, boards, seed, name)
    kept = saved(features.kept())
    if make is not None:
        again = make(**kept).encode(boards)
        require(bool(torch.equal(again, features.encode(boards))), f"{name}: built from kept() they encode differently")


def _check_encode(features: Features[Any], boards: list[Any], name: str) -> None:
    """The encoding has its shape and type, and depends on nothing but the board."""
    x = features.encode(boards)
    if not isinstance(x, Tensor) or x.ndim < 1 or len(x) != len(boards):
        given = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        broken(f"{name}: encode gives {given} for {len(boards)} boards; the first axis counts the boards")
    require(x.device.type == "cpu", f"{name}: encode gives a tensor on {x.device}; the agent moves it from the CPU")
    require(not x.is_floating_point() or bool(x.isfinite().all()), f"{name}: encode gives numbers that are not finite")
    if isinstance(features, DenseFeatures):
        _expected(x, torch.float32, (len(boards), *features.shape), name)
    if isinstance(features, TableFeatures):
        _expected(x, torch.int64, (len(boards), features.n_features), name)
        low, high = int(x.min()), int(x.max())
        require(
            low >= 0 and high < features.size,
            f"{name}: encode gives row {low if low < 0 else high}; rows are from 0 to size - 1 = {features.size - 1}",
        )
    require(torch.equal(features.encode(boards), x), f"{name}: encode gives other numbers for the same boards again")
    for k in reversed(range(len(boards))):
        require(
            torch.equal(features.encode(boards[k : k + 1])[0], x[k]),
            f"{name}: encode gives other numbers for a board alone than among others: {tuple(boards[k])}",
        )


def _expected(x: Tensor, dtype: torch.dtype, shape: tuple[int, ...], name: str) -> None:
    require(
        x.dtype == dtype and tuple(x.shape) == shape,
        f"{name}: encode gives {x.dtype} {list(x.shape)}, not {dtype} {list(shape)}",
    )


def _check_table(features: TableFeatures, game: Game[Any], boards: list[Any], seed: int, name: str) -> None:
    """Everything else that table features promise."""
    compact = features.compact
    lines = random_lines(game, 8, seed)
    most = max(len(np.unique(features.encode(line[:-1]).numpy())) for line, _ in lines)
    require(features.capacity >= most, f"{name}: capacity is {features.capacity}, but a game touches {most} rows")
    if compact is None:
        return
    images, n = compact.images, features.n_features
    require(images >= 1 and n % images == 0, f"{name}: images is {images}, which does not divide n_features = {n}")
    require(
        images in (1, len(game.symmetries)),
        f"{name}: images is {images}; {game.name} has {len(game.symmetries)} symmetries, and 1 is for none",
    )
    for line, moves in lines:
        for ply, board in enumerate(line[:-1]):
            where = f"{name}, {place(game, moves[:ply])}"
            relative = _rows(compact, board, n)
            full = features.rows[relative + compact.begin_of(board.player())]
            encoded = features.encode([board])[0].numpy()
            require(
                bool(np.array_equal(full, encoded)),
                f"{where}: the compact rows stand for {full}, encode gives {encoded}",
            )
            _check_places(encoded, images, where)
            _check_step(compact, board, relative, moves[ply], where)
    weights = np.random.default_rng(seed).normal(size=len(features.rows))
    for board in boards[:4]:
        part, begin = compact.tables(weights, board.player()), compact.begin_of(board.player())
        rows = _rows(compact, board, n)
        require(
            bool(np.array_equal(part[rows], weights[rows + begin])),
            f"{name}: tables() of player {board.player()} does not begin at begin_of() = {begin}",
        )
    if images > 1:
        _check_images(features, game, lines, name)
    if HAS_COMPILER:
        _check_compiled(compact, lines[:3], n, name)
    if game.boards is not None:
        _check_tensors(features, game, boards, name)


def _rows(compact: CompiledFeatures, board: PartBoard, n: int) -> npt.NDArray[np.int32]:
    rows = np.full(n, -1, np.int32)
    compact.active(board, rows)
    return rows


def _check_places(encoded: npt.NDArray[np.int64], images: int, where: str) -> None:
    """A row that occurs twice does so at one place of several images: only there compiled code looks for it."""
    places = np.arange(len(encoded)) % (len(encoded) // images)
    pairs = np.unique(np.stack([encoded, places]), axis=1)[0]
    twice = pairs[1:][pairs[1:] == pairs[:-1]]
    require(
        not len(twice), f"{where}: row {twice[:1]} occurs at two places of one image; allowed is one place of several"
    )


def _check_step(
    compact: CompiledFeatures, board: PartBoard, rows: npt.NDArray[np.int32], move: int, where: str
) -> None:
    after = board.play(move)
    if not after.over():
        stepped, there = rows + compact.step(board, move), _rows(compact, after, len(rows))
        require(
            bool(np.array_equal(stepped, there)), f"{where}: step({move}) leads to rows {stepped}, active gives {there}"
        )


def _check_images(
    features: TableFeatures, game: Game[Any], lines: list[tuple[list[Any], list[int]]], name: str
) -> None:
    """Images of a board have the same rows, in another order."""
    size = game.n_cells // game.n_parts
    for k, symmetry in enumerate(game.symmetries):
        image_of = {symmetry[part * size] // size: part for part in range(game.n_parts)}
        for line, moves in lines[:3]:
            image = game.board
            for ply, board in enumerate(line[:-1]):
                mine, theirs = (features.encode([b])[0].sort()[0] for b in (board, image))
                require(
                    torch.equal(mine, theirs),
                    f"{name}, {place(game, moves[:ply])}: the image by symmetries[{k}] has other rows",
                )
                image = image.play(image_of[moves[ply]])


def walk(
    compact: CompiledFeatures, board: PartBoard, moves: npt.NDArray[np.int64], rows: npt.NDArray[np.int32]
) -> None:
    """Play ``moves``; runs compiled.

    Args:
        compact: the features.
        board: the first board.
        moves: legal moves, the last of which may end the game.
        rows: receives the compact rows before each move, how it changes them, and where the tables of the player to
            move begin; ``[plies, 3, n_features]``.
    """
    for k in range(len(moves)):
        compact.active(board, rows[k, 0])
        rows[k, 1] = compact.step(board, moves[k])
        rows[k, 2] = compact.begin_of(board.player())
        board = board.play(moves[k])


def _check_compiled(compact: CompiledFeatures, lines: list[tuple[list[Any], list[int]]], n: int, name: str) -> None:
    for boards, moves in lines:
        seen = []
        for function in (walk, compile_function(walk)):
            rows = np.zeros((len(moves), 3, n), np.int32)
            try:
                function(compact, boards[0], np.array(moves), rows)
            except Exception as error:
                broken(f"{name}: the compiled side cannot be compiled: {said(error)}", error)
            seen.append(rows)
        differ = np.argwhere(seen[0] != seen[1])
        if len(differ):
            ply, kind, _ = differ[0]
            method = ("active", "step", "begin_of")[kind]
            broken(f"{name}: compiled, {method} gives other rows than in Python after {ply} plies")


def _check_tensors(features: TableFeatures, game: Game[Any], boards: list[Any], name: str) -> None:
    """Many boards at once are seen as each of them alone."""
    assert game.boards is not None
    assert features.compact is not None
    many = game.boards(*(torch.tensor(field) for field in zip(*boards, strict=True)))
    tensors, compact, n = features.tensors(torch.device("cpu")), features.compact, features.n_features
    rows = tensors.rows(many)
    alone = np.stack([_rows(compact, board, n) for board in boards])
    require(bool(np.array_equal(rows.numpy(), alone)), f"{name}: tensors() gives other rows than active()")
    begin = [compact.begin_of(board.player()) for board in boards]
    require(tensors.begin_of(many.player()).tolist() == begin, f"{name}: tensors() begins the tables elsewhere")
    weights = torch.from_numpy(np.random.default_rng(0).normal(size=len(features.rows)))
    moves, legal = many.moves()
    sums = tensors.sums(weights, many, rows, moves, legal)
    x, first = tensors.counts(rows, torch.float64)
    for k, board in enumerate(boards):
        for move, sum_ in zip(moves[legal[:, k], k].tolist(), sums[legal[:, k], k].tolist(), strict=True):
            after = board.play(move)
            if not after.over():
                index = _rows(compact, after, n) + compact.begin_of(after.player())
                require(
                    abs(float(weights[index].sum()) - sum_) < 1e-9,
                    f"{name}: sums of tensors() after move {game.labels[move]} of {tuple(board)} are wrong",
                )
        unique, counts = np.unique(alone[k], return_counts=True)
        right = x[k].tolist() == counts[np.searchsorted(unique, alone[k])].tolist() and first[k].sum() == len(unique)
        require(bool(right), f"{name}: counts of tensors() are wrong for {tuple(board)}")
