"""The TD learner in lockstep: a batch of games as tensors, one move each per step; finished games restart in place.

With lambda above 0, positions learn from truncated lambda-returns instead of traces: after n plies a position learns
the sum of the TD errors since it occurred, decayed by gamma * lambda per ply. Its trace would have brought the same
(Sutton & Barto 2018, section 12.1: forward and backward view), except for weight changes within those n plies and for
later errors. A step therefore costs the same for every lambda.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlgames.episodes import Episodes
from rlgames.games.game import TensorBoards
from rlgames.interrupts import asked
from rlgames.learners.learner import Learner, Numbers
from rlgames.policy import TOLERANCE

if TYPE_CHECKING:
    from rlgames.agents.batched import Batched
    from rlgames.learners.td import TD


class Pending(NamedTuple):
    """Positions of the last plies, waiting for their lambda-returns in a ring of ``horizon`` slots.

    Attributes:
        boards: the positions; ``[horizon, games]``.
        errors: sums of decayed TD errors so far.
        open: whether more errors may come.
        learns: whether there is anything to learn.
    """

    boards: TensorBoards
    errors: Tensor
    open: Tensor
    learns: Tensor


class BatchedTD(Learner):
    """Plays ``batch`` games at a time with the numbers and schedules of ``learner``.

    Args:
        learner: the TD learner for single games; its game must have tensor boards.
        batch: number of games at a time.
        device: where to play.
        dtype: of the weights.
        horizon: plies after which a position learns its lambda-return, at least 1.

    Raises:
        ValueError: for traces that are not supported here.
    """

    def __init__(self, learner: "TD", batch: int, device: torch.device, dtype: torch.dtype, horizon: int = 8) -> None:
        traces = learner.traces
        if traces and (traces.replacing or traces.threshold):
            raise ValueError(
                "engine=batched supports only learner.traces=et and res without a threshold; "
                "batched.horizon cuts traces here (engine=fused supports all kinds)"
            )
        self.td, self.batch, self._device = learner, batch, device
        self.lr, self.traces, self.tactical = learner.lr, traces, learner.tactical
        self._horizon, self._resetting = (horizon, traces.resetting) if traces else (1, False)
        self._boards = self._start = learner.game.start_boards(batch, device)
        ages = torch.arange(self._horizon, device=device)
        decay = torch.tensor(traces.decay if traces else 0.0, dtype=dtype, device=device)
        self._decay = decay ** ((ages.unsqueeze(1) - ages) % self._horizon)  # [slot of now, slot]
        self._step = 0
        empty = torch.zeros(self._horizon, batch, device=device)
        rings = type(self._start)(*(x.expand_as(empty).clone() for x in self._start))
        self._pending = Pending(rings, empty.to(dtype), empty.bool(), empty.bool())
        self._totals = torch.zeros(len(Episodes._fields), batch, dtype=torch.float64, device=device)
        self._generator: torch.Generator | None = None

    def curves(self, games: npt.NDArray[np.int64], lr: float = 1.0) -> dict[str, Numbers]:
        """Those of the learner for single games."""
        return self.td.curves(games, lr)

    def train(self, agent: "Batched", first_game: int, games: int, lr: float, rng: np.random.Generator) -> Episodes:
        """Play until at least ``games`` more games are finished, or a signal asks for an end; see ``TD.train``.

        Schedules are read once, for game ``first_game``.

        Raises:
            ValueError: if a schedule leaves its range, or memory runs out.
        """
        curves = self.td.curves(np.array([first_game]), lr)
        agent.set_lr(curves["lr"][0])
        if self._generator is None:
            self._generator = torch.Generator(self._device).manual_seed(int(rng.integers(2**63)))
        self._totals.zero_()
        episodes = Episodes()
        while episodes.games < games:
            # Few games have fewer plies than a quarter of the cells, so this approaches ``games`` step by step.
            steps = (games - episodes.games - 1) * self.td.game.n_cells // (4 * self.batch)
            try:
                for _ in range(max(1, steps)):
                    self.step(agent, float(curves["epsilon"][0]))
                    if asked():
                        return self.played()
                episodes = self.played()
            except torch.OutOfMemoryError as error:
                half = max(1, self.batch // 2)
                raise ValueError(f"batch is {self.batch}, too large for {self._device}; try batch={half}") from error
            if not np.isfinite(episodes.errors):
                break
        return episodes

    def played(self) -> Episodes:
        """What was played since ``train`` began; waits for the device."""
        sums = self._totals.sum(1).tolist()
        return Episodes(
            *(number if name == "errors" else int(number) for name, number in zip(Episodes._fields, sums, strict=True))
        )

    def uniforms(self) -> Tensor:
        """Random numbers from 0 to 1 for one step: whether to explore, and which move; float64 ``[2, games]``."""
        return torch.rand(2, self.batch, dtype=torch.float64, device=self._device, generator=self._generator)

    @torch.no_grad()
    def step(self, agent: "Batched", epsilon: float) -> None:
        """Make one move in every game and learn from it.

        Nothing here waits for the device. ``masked_fill`` sets constants, as ``torch.where`` would copy a plain number
        to the device.
        """
        boards, (chance, choice) = self._boards, self.uniforms()
        player, (moves, legal) = boards.player(), boards.moves()
        wins, rows = boards.wins(moves) & legal, agent.features.rows(boards)
        sums = agent.sums(boards, rows, moves, legal)
        values, bad = agent.unit(sums), ~legal
        if self.td.tactical:
            loses = legal & ~wins & answered(boards, moves)
            lost = agent.target(-player * (1.0 - self.td.win_decay * (boards.ply + 1).to(sums.dtype)))
            values, bad = torch.where(loses, lost, values), bad | loses
        best = first_best((player * sums).masked_fill(wins, torch.inf).masked_fill(bad, -torch.inf))
        explores = chance < epsilon
        k = torch.where(explores, (choice * legal.sum(0)).long(), best).unsqueeze(0)
        move, won, v = (numbers.gather(0, k).squeeze(0) for numbers in (moves, wins, values))
        over = won | boards.last()
        reward = player * won * (1.0 - self.td.win_decay * boards.ply.to(v.dtype))  # as in rlgames.policy
        target = torch.where(over, agent.target(reward), self.td.gamma * v)
        learns = ~explores | over | self.td.learn_exploratory  # as in play_game of rlgames.learners.td
        look = agent.look(boards, rows)
        delta = (target - look.v).masked_fill(~learns, 0)
        if self._horizon == 1:
            agent.learn(look, delta, learns)
        else:
            self._learn_later(agent, delta, learns, over)
        self._boards = _where(over, self._start, boards.play(move))
        first, second = won & (player > 0), won & (player < 0)
        self._totals += torch.stack([over, over * (boards.ply + 1), learns, delta.abs().double(), first, second])

    def _learn_later(self, agent: "Batched", delta: Tensor, learns: Tensor, over: Tensor) -> None:
        """Put the boards into the ring, add the TD error to all slots, and let the oldest learn."""
        slot, resetting = self._step % self._horizon, self._resetting
        boards, errors, opened, learn = self._pending
        for ring, field in zip(boards, self._boards, strict=True):
            ring[slot] = field
        errors[slot], opened[slot], learn[slot] = 0, True, learns | (not resetting)
        errors += self._decay[slot].unsqueeze(1) * delta * opened
        opened &= ~over & (learns | (not resetting))
        self._step += 1
        oldest = self._step % self._horizon
        agent.learn(agent.look(type(boards)(*(ring[oldest] for ring in boards))), errors[oldest], learn[oldest])

    def state_dict(self) -> dict[str, Any]:
        """The games in progress, what they have yet to learn, and the state of the random generator."""
        assert self._generator is not None, "play first"
        boards, *pending = self._pending
        tensors = [*self._boards, *boards, *pending]
        return {
            "batch": self.batch,
            "device": self._device.type,
            "step": self._step,
            "tensors": [tensor.cpu() for tensor in tensors],
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state`` if it has the same batch and horizon; else all games start anew.

        The random state of another kind of device cannot be used here: a new stream begins.
        """
        boards, *pending = self._pending
        tensors = [*self._boards, *boards, *pending]
        if [t.shape for t in tensors] != [t.shape for t in state["tensors"]]:
            return
        fields = len(tuple(self._boards))
        self._boards = type(self._boards)(*(t.to(self._device) for t in state["tensors"][:fields]))
        for mine, saved in zip(tensors[fields:], state["tensors"][fields:], strict=True):
            mine.copy_(saved)
        self._step = state["step"]
        if state["device"] == self._device.type:
            self._generator = torch.Generator(self._device)
            self._generator.set_state(state["generator"])


def answered(boards: TensorBoards, moves: Tensor) -> Tensor:
    """Whether the opponent can win at once after each of ``moves``; ``[n_moves, games]``."""
    answers = []
    for move in moves:
        after = boards.play(move)
        replies, legal = after.moves()
        answers.append((after.wins(replies) & legal).any(0))
    return torch.stack(answers)


def first_best(values: Tensor) -> Tensor:
    """The index in dimension 0 that ``rlgames.policy.best_move`` takes: a later one must exceed it by a tolerance."""
    best, index = values[0], torch.zeros_like(values[0], dtype=torch.int64)
    for k in range(1, len(values)):
        better = values[k] > best + TOLERANCE
        best, index = torch.where(better, values[k], best), index.masked_fill(better, k)
    return index


def _where(condition: Tensor, a: TensorBoards, b: TensorBoards) -> TensorBoards:
    """``a`` where ``condition`` holds, else ``b``, for every field."""
    return type(a)(*(torch.where(condition, x, y) for x, y in zip(a, b, strict=True)))
