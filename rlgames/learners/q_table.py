"""The Q-table: a row for every board, a value for every move; and the agent that plays and learns with it.

The row of a board is its code: the codes of its parts as the digits of one number, part 0 the most significant. In
tic-tac-toe it has nine digits in base 3; a first player's mark on field 1 and a second player's on 5 give 100020000.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rlgames.agents.agent import Agent
from rlgames.compiled import compile_function, require_compiler, value
from rlgames.games.game import Game, PartBoard

MAX_ROWS = 1_000_000


class QTable(nn.Module):
    """Q(board, move) for the player to move, in ``nn.Embedding(n_codes ** n_parts, n_moves)``.

    Args:
        game: a game whose boards fit into a table.
        symmetric: moves that a symmetry of the board maps to each other share one value.
        init: values start uniform in [0, init]; 0 starts from zeros.
        dtype: ``float32`` or ``float64``.
        seed: for the initial values.

    Attributes:
        entries: index into the flat table of every move on every board, ``[rows, n_moves]`` int32.

    Raises:
        ValueError: for a game with too many boards, an unknown dtype or a negative init.
    """

    def __init__(
        self, game: Game[Any], symmetric: bool = False, init: float = 1.0, dtype: str = "float32", seed: int = 0
    ) -> None:
        super().__init__()
        if not isinstance(game, Game):
            raise ValueError(f"learner=q keeps a row for every board, and {game.name} has too many")
        rows = game.n_codes**game.n_parts
        if rows > MAX_ROWS:
            raise ValueError(f"learner=q keeps a row for every board, and {game.name} would need {rows:.1e} of them")
        if dtype not in ("float32", "float64"):
            raise ValueError(f"learner.dtype is {dtype!r}; allowed are float32 and float64")
        if not 0 <= init < float("inf"):
            raise ValueError(f"learner.init is {init}; it must be at least 0 and finite")
        weight = torch.zeros(rows, game.n_moves, dtype=getattr(torch, dtype))
        weight.uniform_(0, init, generator=torch.Generator().manual_seed(seed))
        self.embedding = nn.Embedding(rows, game.n_moves, _weight=weight)
        self.entries = shared_entries(game, game.symmetries if symmetric else game.symmetries[:1])
        self.bases = np.array([game.n_codes**part for part in reversed(range(game.n_parts))])

    def row(self, board: PartBoard) -> int:
        """The row of ``board``."""
        return int(self.view().row(board))

    def view(self) -> "CompiledTable":
        """The table for compiled code, in the same memory."""
        return CompiledTable(self.embedding.weight.detach().numpy().reshape(-1), self.entries, self.bases)

    def full(self) -> npt.NDArray[np.floating[Any]]:
        """Q of every move on every board, shared values repeated; ``[rows, n_moves]``."""
        table = self.view()
        return table.weights[table.entries]

    def save_text(self, path: str | Path) -> None:
        """Write one line per row: its values, separated by blanks.

        Raises:
            OSError: if the file cannot be written.
        """
        lines = (" ".join(map(repr, row)) for row in self.full().tolist())
        Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")

    def load_text(self, path: str | Path) -> None:
        """Read the values from a file that ``save_text`` wrote; a refused file leaves the table unchanged.

        Raises:
            ValueError: for a wrong number of lines, or for a line, which it names, without one finite number per move.
            OSError: if the file cannot be read.
        """
        weight = self.embedding.weight.detach()
        rows, moves = weight.shape
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) != rows:
            raise ValueError(f"{path} has {len(lines)} lines; a table has {rows}, one for every board")
        values = np.array([_numbers(line, f"{path}, line {n}", moves) for n, line in enumerate(lines, start=1)])
        weight.view(-1)[torch.from_numpy(self.entries).long()] = torch.from_numpy(values).to(weight.dtype)


def _numbers(line: str, where: str, count: int) -> list[float]:
    words = line.split()
    if len(words) != count:
        raise ValueError(f"{where} has {len(words)} values; it must have {count}")
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{where} holds a value that is not finite")
    return numbers


def shared_entries(game: Game[Any], symmetries: Sequence[Sequence[int]]) -> npt.NDArray[np.int32]:
    """Index into the flat table of every move on every board: the least to which one of ``symmetries`` maps the pair.

    Symmetries other than the identity need a game whose moves and parts are its cells.
    """
    rows, places = np.arange(game.n_codes**game.n_parts), np.arange(game.n_parts)[::-1]
    digits = rows[:, None] // game.n_codes**places % game.n_codes
    images = []
    for symmetry in symmetries:
        image = np.zeros_like(digits)
        image[:, list(symmetry)[: game.n_parts]] = digits
        turned = list(symmetry) if len(symmetries) > 1 else range(game.n_moves)
        images.append((image @ game.n_codes**places)[:, None] * game.n_moves + np.array(turned))
    least: npt.NDArray[np.int32] = np.min(images, axis=0).astype(np.int32)
    return least


@value
class CompiledTable(NamedTuple):
    """The Q-table inside compiled code.

    Attributes:
        weights: all values, ``[rows * n_moves]``.
        entries: index into ``weights`` of every move on every board, ``[rows, n_moves]``.
        bases: factor of each part's code in the row, ``[n_parts]``.
    """

    weights: npt.NDArray[np.floating[Any]]
    entries: npt.NDArray[np.int32]
    bases: npt.NDArray[np.int64]

    def row(self, board: PartBoard) -> int:
        """The row of ``board``."""
        row = 0
        for part in range(len(self.bases)):
            row += self.bases[part] * board.code(part)
        return row

    def places(self, board: PartBoard) -> npt.NDArray[np.int32]:
        """Index into ``weights`` of every move on ``board``."""
        places: npt.NDArray[np.int32] = self.entries[self.row(board)]
        return places

    def q_values(self, places: npt.NDArray[np.int32], moves: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Q of each of ``moves`` on the board with these ``places``."""
        q = np.empty(len(moves), np.float64)
        for k in range(len(moves)):
            q[k] = self.weights[places[moves[k]]]
        return q

    def best(self, board: PartBoard) -> tuple[int, float]:
        """The first move in the game's order with the highest Q, and this Q from the first player's view."""
        moves = board.moves()
        q = self.q_values(self.places(board), moves)
        k = int(np.argmax(q))
        return moves[k], board.player() * q[k]

    def correct(self, entry: int, target: float, alpha: float) -> float:
        """Set w ← w + α (target - w) at ``entry``; return target - w."""
        w = np.float64(self.weights[entry])
        self.weights[entry] = w + alpha * (target - w)
        return target - w


class TableAgent(Agent[PartBoard]):
    """Plays and learns with a Q-table, on the CPU.

    The functions that it runs are handed a ``CompiledTable``.

    Args:
        network: the table.
        compiled: whether to compile the functions it runs.

    Raises:
        ValueError: if ``compiled`` and numba is not installed.
    """

    afterstates = False
    network: QTable

    def __init__(self, network: QTable, compiled: bool) -> None:
        if compiled:
            require_compiler("engine=fused", "engine=eager")
        self.network, self.optimizer, self.compiled = network, None, compiled

    def move_values(self, board: PartBoard) -> npt.NDArray[np.float64]:
        """Q of each legal move, for the player to move."""
        table = self.network.view()
        return table.q_values(table.places(board), board.moves())

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(table, *args)``."""
        table = self.network.view()
        return compile_function(function)(table, *args) if self.compiled else function(table, *args)
