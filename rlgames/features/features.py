"""The contract of features: how agents see boards."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.games.game import Board, PartBoard, TensorBoards

B = TypeVar("B", bound=Board, contravariant=True)
Rows = npt.NDArray[np.int32]


class Features(ABC, Generic[B]):
    """What an agent sees of boards. The constructor takes the game, and whatever its yaml names.

    Attributes:
        n_moves: the most moves that a board can have.
    """

    n_moves: int

    @abstractmethod
    def encode(self, boards: Sequence[B]) -> Tensor:
        """The input of a network for ``boards``, none of them over; ``[len(boards), ...]``, on the CPU."""

    def kept(self) -> dict[str, Any]:
        """Arguments of the constructor that a checkpoint keeps, such as the content of a file."""
        return {}


class CompiledFeatures(Protocol):
    """Features of a table inside compiled code: compact rows of boards, relative to the tables of the player to move.

    A NamedTuple, decorated with ``rlgames.compiled.value``; ``rlgames.features.ntuples`` explains compact rows.
    """

    @property
    def images(self) -> int:
        """Number of symmetric images: the features are those of the first image, then of the second, and so on."""

    def active(self, board: PartBoard, rows: Rows) -> None:
        """Write the compact rows of ``board`` into ``rows``, ``[n_features]``."""

    def step(self, board: PartBoard, move: int) -> Rows:
        """How the compact rows change from ``board`` to the board after ``move``; ``[n_features]``."""

    def begin_of(self, player: int) -> int:
        """The first compact row of the tables for boards with ``player`` to move."""

    def tables(self, table: npt.NDArray[Any], player: int) -> npt.NDArray[Any]:
        """The part of ``table`` for boards with ``player`` to move."""


class FeaturesOfMany(Protocol):
    """Features of a table for many boards at once, on a torch device; see ``rlgames.features.tensors``."""

    n_parts: int
    n_features: int
    slice: int

    def rows(self, boards: TensorBoards) -> Tensor:
        """Compact rows, relative to the tables of the player to move; int32 ``[n, n_features]``."""

    def sums(self, weights: Tensor, boards: TensorBoards, rows: Tensor, moves: Tensor, legal: Tensor) -> Tensor:
        """Sums of ``weights`` after each of ``moves``; undefined where not ``legal``; ``[n_moves, n]``."""

    def begin_of(self, player: Tensor) -> Tensor:
        """The first compact row of the tables for boards with ``player`` to move; ``[n]``."""

    def counts(self, rows: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """How often each of ``rows`` occurs on its board, and 1 for its first occurrence, else 0."""


class TableFeatures(Features[PartBoard]):
    """Features that are active or not: the rows of a table whose entries a network adds up.

    ``encode`` gives the rows, int64 ``[len(boards), n_features]``; a row that occurs k times counts k times.

    Attributes:
        size: number of rows of the table.
        n_features: number of rows of a board.
        rows: rows that boards can have, in the order of the compact table; ``[compact rows]`` int64.
        compact: the compiled side; None: ``engine=fused`` and ``engine=batched`` cannot use them.
        capacity: the most different rows that a game can touch.
    """

    size: int
    n_features: int
    rows: npt.NDArray[np.int64]
    compact: CompiledFeatures | None = None
    capacity: int

    def tensors(self, device: torch.device) -> FeaturesOfMany:
        """The same features for many boards at once; only if there is a compiled side."""
        raise NotImplementedError


class DenseFeatures(Features[B]):
    """Features that are numbers: ``encode`` gives float32 ``[len(boards), *shape]``.

    Attributes:
        shape: of one board.
    """

    shape: tuple[int, ...]


class Terms(DenseFeatures[B]):
    """Named terms that a board has in some number: ``encode`` gives these counts, ``[len(boards), size]``.

    Attributes:
        size: number of terms.
    """

    size: int

    @abstractmethod
    def start_values(self) -> npt.NDArray[np.float32]:
        """The coefficients of the terms before learning, ``[size]``."""

    @abstractmethod
    def active(self, board: B) -> tuple[Rows, npt.NDArray[np.float32]]:
        """Indices of the terms whose count on ``board`` is not 0, ascending, and their counts."""


def physical_memory() -> int:
    """Memory of this machine in bytes (8 GiB if the system does not tell)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30
