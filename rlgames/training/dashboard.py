"""What TensorBoard shows of a run: curves, step sizes, boards, and its configuration."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf
from torch.utils.tensorboard.summary import hparams

from rlgames.agents.agent import Agent
from rlgames.evaluation.evaluation import Measure
from rlgames.evaluation.matches import play_match
from rlgames.games.drawing import Picture, row
from rlgames.games.game import Game
from rlgames.players import GreedyPlayer
from rlgames.training.events import Summaries
from rlgames.training.raster import pixels

# Charts of the page "custom scalars"; tags are regular expressions; a margin chart lists value, lower and upper bound.
LAYOUT: dict[str, dict[str, list[Any]]] = {
    "learning": {"mean |TD error|": ["Multiline", ["train/td_error"]]},  # after the measures of the evaluation
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


class Dashboard:
    """TensorBoard events of a run; steps are games.

    Args:
        folder: the run folder.
        games: games played before; dashboards hide what an earlier process wrote about later games.
    """

    def __init__(self, folder: Path, games: int) -> None:
        self._writer = Summaries(folder, games + 1 if games else None)

    def begin(self, games: int, cfg: DictConfig, measures: Sequence[Measure] = ()) -> None:
        """Lay out the charts, and write the run's summary and configuration."""
        self._writer.add_custom_scalars(LAYOUT | {"learning": charts(measures) | LAYOUT["learning"]})
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
        metrics = {f"Final/{name}": number for name, number in numbers.items()}
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


def own_game(game: Game[Any], greedy: GreedyPlayer, rng: np.random.Generator) -> list[Any]:
    """The boards of a game that the agent plays against itself."""
    moves, _ = play_match(greedy, greedy, game.board, rng)
    return list(accumulate(moves, lambda board, move: board.play(move), initial=game.board))


def thoughts(game: Game[Any], agent: Agent[Any], boards: Sequence[Any]) -> Picture:
    """A game in four pictures, with the agent's value of each move where it still has a choice."""
    seen = [boards[k * (len(boards) - 1) // 3] for k in range(4)]
    pictures = []
    for board in seen:
        values = [] if board.over() else agent.move_values(board).tolist()
        pictures.append(game.picture(board, dict(zip(board.moves().tolist(), values, strict=True))))
    return row(pictures, (f"ply {board.ply}" for board in seen))


def charts(measures: Iterable[Measure]) -> dict[str, list[Any]]:
    """A chart of each kind of measure, and of each that has an interval."""
    found: dict[str, list[Any]] = {}
    for measure in measures:
        found.setdefault(measure.label, ["Multiline", []])[1].append(f"evaluation/{measure.name}$")
        if measure.low:
            tags = [f"evaluation/{name}" for name in (measure.name, measure.low, measure.high)]
            found[f"{measure.name.replace('_', ' ')}, 95 % interval"] = ["Margin", tags]
    return found


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
