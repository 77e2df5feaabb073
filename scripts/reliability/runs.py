"""Small runs of all learners and engines, and whether two of them learned the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from reliability.cases import FoundError
from reliability.processes import Lab
from rlgames.training import checkpoint

SMALL = ("game=tictactoe", "opponent=random", "evaluation.first=2", "evaluation.second=0", "checkpoint_minutes=0.002")
FUSED = (*SMALL, "games=10000", "eval_every=2000")
EAGER = (*SMALL, "engine=eager", "games=30", "eval_every=6")
BATCHED = (*SMALL, "engine=batched", "batch=32", "games=480", "eval_every=96")
Q = ("+experiment=tictactoe_q", "checkpoint_minutes=0.002", "games=600", "eval_every=120")
CHESS = (
    *("+experiment=chess_td_leaf", "games=24", "eval_every=8", "learner.self_play.nodes=20", "evaluation.games=2"),
    *("evaluation.nodes=20", "opponent.nodes=20", "checkpoint_minutes=0.002"),
)
RUNS = {
    "td fused": FUSED,
    "td fused traces": (*FUSED, "learner.lambda_=0.5"),
    "td fused mean": (*FUSED, "average_from=2000", "average_over=3000"),
    "td eager": EAGER,
    "td eager traces": (*EAGER, "learner.lambda_=0.5", "optimizer=swift_td"),
    "td eager adam": (*EAGER, "optimizer=adam"),
    "td batched": BATCHED,
    "td batched traces": (*BATCHED, "learner.lambda_=0.5"),
    "q fused": Q,
    "q eager": (*Q, "engine=eager"),
    "td_leaf chess": CHESS,
    "td_leaf chess past": (*CHESS, "learner.self_play.past=0.5", "learner.self_play.past_every=8"),
}
DROPPED = ("seconds", "config", "games_per_second")  # of a checkpoint: what two equal runs do not share


def newest(run: Path) -> dict[str, Any]:
    """The content of the newest checkpoint.

    Raises:
        FoundError: if there is none that can be read.
    """
    try:
        return checkpoint.load(run)
    except ValueError as error:
        raise FoundError("no checkpoint", str(error)) from error


def difference(one: Any, other: Any, path: str = "") -> str:
    """Where two checkpoints, or parts of them, differ to the bit; empty if they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = {key for key in (*one, *other) if not str(key).endswith(DROPPED)}
        gone = [key for key in keys if (key in one) != (key in other)]
        if gone:
            return f"{path}.{gone[0]} is in one only"
        parts = ((one[key], other[key], f"{path}.{key}") for key in sorted(keys, key=str))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{path} has {len(one)} entries and {len(other)}"
        parts = ((*pair, f"{path}[{k}]") for k, pair in enumerate(zip(one, other, strict=True)))
    elif isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        same = one.dtype == other.dtype and one.shape == other.shape
        bits = [tensor.detach().cpu().to_dense().contiguous().view(-1).view(torch.uint8) for tensor in (one, other)]
        return "" if same and torch.equal(*bits) else f"{path} differs"
    else:
        return "" if repr(one) == repr(other) else f"{path} is {one!r} and {other!r}"
    return next(filter(None, (difference(*part) for part in parts)), "")


def expect_same(run: Path, reference: Mapping[str, Any]) -> None:
    """Compare the newest checkpoint of ``run`` with a ``reference``.

    Raises:
        FoundError: if they differ.
    """
    if where := difference(newest(run), reference):
        raise FoundError("wrong result", f"{where.lstrip('.')} after {run.name}")


class Finished:
    """A run that was not disturbed: its folder, what it learned, and the seconds it took."""

    def __init__(self, lab: Lab, words: tuple[str, ...], folder: Path) -> None:
        done = lab.run("train", [*words, "run_dir=run"], folder, limit=600).inspect()
        if done.status:
            raise FoundError("cannot go on", done.sentence)
        self.folder, self.content, self.seconds = folder / "run", newest(folder / "run"), done.seconds


def finished(lab: Lab, words: tuple[str, ...]) -> Finished:
    """The run of ``words``, which is made once."""
    lab.reference("machine code of " + " ".join(words), lambda folder: Finished(lab, words, folder))  # compiles
    return lab.reference("run of " + " ".join(words), lambda folder: Finished(lab, words, folder))
