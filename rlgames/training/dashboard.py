"""What TensorBoard shows of a run: curves, step sizes, boards, and its configuration."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard.summary import hparams

from rlgames.evaluation.matches import play_match
from rlgames.games.drawing import Picture, row
from rlgames.players import GreedyPlayer
from rlgames.training.events import Summaries
from rlgames.training.raster import pixels

# Charts of the page "custom scalars"; tags are regular expressions; a margin chart lists value, lower and upper bound.
LAYOUT: dict[str, dict[str, list[Any]]] = {
    "learning": {
        "success": ["Multiline", ["evaluation/success_.*", "evaluation/optimal"]],
        "success as first, 95 % interval": [
            "Margin",
            ["evaluation/success_first", "evaluation/low_first", "evaluation/high_first"],
        ],
        "lost": ["Multiline", ["evaluation/losses_(first|second)$"]],
        "mean |TD error|": ["Multiline", ["train/td_error"]],
    },
    "speed": {"games per second": ["Multiline", ["train/games_per_second"]]},
    "step sizes": {
        "step size, median and 5 to 95 %": [
            "Margin",
            ["optimizer/step_size_50", "optimizer/step_size_5", "optimizer/step_size_95"],
        ],
        "schedule of lr": ["Multiline", ["train/lr", "train/alpha"]],
        "share of the error that a step takes off": ["Multiline", ["optimizer/step_share"]],
        "shared by all weights": ["Multiline", ["optimizer/(?!step_).*"]],
    },
    "games": {
        "plies per game": ["Multiline", ["train/game_length"]],
        "exploration": ["Multiline", ["train/epsilon", "train/temperature"]],
    },
}
MOST = 1e19  # TensorBoard's bins end slightly above
PARTS = ("game", "features", "network", "learner", "optimizer")
PROOF = {"losses_first", "losses_second", "optimal"}  # figures of evaluations without success rates


class Dashboard:
    """TensorBoard events of a run; steps are games.

    Args:
        folder: the run folder.
        games: games played before; dashboards hide what an earlier process wrote about later games.
    """

    def __init__(self, folder: Path, games: int) -> None:
        self._writer = Summaries(folder, games + 1 if games else None)

    def begin(self, games: int, cfg: DictConfig) -> None:
        """Lay out the charts, and write the run's summary and configuration."""
        self._writer.add_custom_scalars(LAYOUT)
        self._writer.add_text("run", f"**{sentence(cfg)}**", games)
        self.text(games, "configuration", OmegaConf.to_yaml(cfg, resolve=True))

    def scalars(self, games: int, numbers: Mapping[str, Any]) -> None:
        """Log ``numbers``; values that are not numbers are left out."""
        for tag, number in numbers.items():
            if isinstance(number, int | float) and math.isfinite(number):
                self._writer.add_scalar(tag, number, games)

    def text(self, games: int, tag: str, text: str) -> None:
        """Log ``text`` verbatim."""
        indented = "    " + text.replace("\n", "\n    ")  # a Markdown code block
        self._writer.add_text(tag, indented, games)

    def show(self, games: int, figures: Mapping[str, Any]) -> None:
        """Log numbers as scalars, texts verbatim, and arrays (uint8 ``[height, width, 3]``) as pictures."""
        self.scalars(games, {f"learner/{tag}": figure for tag, figure in figures.items()})
        for tag, figure in figures.items():
            if isinstance(figure, str):
                self.text(games, tag, figure)
            elif isinstance(figure, np.ndarray):
                self._writer.add_image(f"learner/{tag}", figure, games, dataformats="HWC")

    def picture(self, games: int, tag: str, picture: Picture) -> None:
        """Log a picture."""
        self._writer.add_image(tag, pixels(picture), games, dataformats="HWC")

    def step_sizes(self, games: int, step_sizes: torch.Tensor) -> None:
        """Log effective step sizes: their histogram, median, and 5 and 95 % quantiles, without NaN and infinity."""
        step_sizes = step_sizes[step_sizes.isfinite()]
        if len(step_sizes):
            self._writer.add_histogram("optimizer/step_size", step_sizes.clamp(-MOST, MOST), games)
            for percent in (5, 50, 95):
                quantile = float(torch.quantile(step_sizes.double(), percent / 100))
                self.scalars(games, {f"optimizer/step_size_{percent}": quantile})

    def hparams(self, games: int, cfg: DictConfig, numbers: Mapping[str, float]) -> None:
        """Log the configuration and last evaluation for the table of runs, in the events of this run.

        TensorBoard makes the columns itself, first those in which runs differ: the summary that would name them is left
        out, since one run's would be used for all. It treats every scalar as a metric, in alphabetical order; "Final"
        comes first.
        """
        names = [name for name in numbers if name.startswith("success")] or list(numbers.keys() & PROOF)
        metrics = {f"Final/{name}": numbers[name] for name in names}
        _, *session = hparams(choices(cfg), metrics)  # type: ignore[no-untyped-call]
        for summary in session:
            self._writer._get_file_writer().add_summary(summary)
        self.scalars(games, metrics)

    def flush(self) -> None:
        """Flush everything to disk."""
        self._writer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._writer.close()


def own_game(game: Any, greedy: GreedyPlayer, rng: np.random.Generator) -> list[Any]:
    """The boards of a game that the agent plays against itself."""
    moves, _ = play_match(greedy, greedy, game.board, rng)
    return list(accumulate(moves, lambda board, move: board.play(move), initial=game.board))


def thoughts(parts: Any, boards: Sequence[Any]) -> Picture:
    """A game in four pictures, with the agent's value of each move where it still has a choice."""
    game = parts.game
    seen = [boards[k * (len(boards) - 1) // 3] for k in range(4)]
    move_values = getattr(parts.learner, "move_values", None)  # not every learner reports move values
    pictures = []
    for board in seen:
        values = move_values(parts.agent, board).tolist() if move_values and not board.over() else []
        pictures.append(game.picture(board, dict(zip(board.moves().tolist(), values, strict=False))))
    return row(pictures, (f"ply {board.ply}" for board in seen))


def sentence(cfg: DictConfig) -> str:
    """The run as a pipeline, such as "Connect4 → NTuples → ... → 500,000 games → Evaluation"."""
    names = [_name(cfg[part]) for part in PARTS if cfg.get(part) is not None]
    opponent = "the best player" if cfg.opponent._target_.endswith("perfect_or_minimax") else _name(cfg.opponent)
    against = f" against {opponent}" if "game" in cfg and "Evaluation" in _name(cfg.evaluation) else ""
    return " → ".join([*names, f"{cfg.games:,} games", f"{_name(cfg.evaluation)}{against}"])


def _name(node: DictConfig) -> str:
    """The class that ``node`` builds."""
    return str(node._target_).rpartition(".")[2].replace("_", " ")


def choices(cfg: DictConfig) -> dict[str, int | float | str | bool]:
    """What usually varies between runs: names of the parts, games, seed, and numbers of learner and optimizer."""
    found: dict[str, int | float | str | bool] = {part: _name(cfg[part]) for part in PARTS if cfg.get(part) is not None}
    found |= {key: cfg[key] for key in ("engine", "games", "seed")}
    for part in ("features", "network", "learner", "optimizer"):
        for key, value in (cfg.get(part) or {}).items():
            if isinstance(value, DictConfig):  # a schedule
                found[f"{part}.{key}"] = _name(value)
            elif isinstance(value, int | float | str) and not str(key).startswith("_"):
                found[f"{part}.{key}"] = value
    return found
