"""The agent for many games at once: tensors on any device, a compact copy of weights and state, no autograd.

Every game of the batch computes, from the same weights, the update that it would make alone: the rule's own function,
on tensors ``[games, features]``. These updates are combined: the **change** of a weight, and of each number of its
state, is the mean or the sum over the games that hit it. A batch of one game is exactly ``Eager``. A mean always lies
between the changes of the single games, for any rule; a sum learns more from one batch if it does not overshoot.
"""

import copy
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlgames.agents.agent import Agent
from rlgames.agents.eager import Eager
from rlgames.agents.fused import Fused
from rlgames.compiled import HAS_COMPILER
from rlgames.features.features import physical_memory
from rlgames.games.game import PartBoard, TensorBoards
from rlgames.networks.network import target
from rlgames.networks.table import ValueNetwork, require_table
from rlgames.optim.step_size import StepSize, Transition
from rlgames.policy import afterstate_values

COMBINE = ("mean", "sum")


class Look(NamedTuple):
    """What an agent sees of boards.

    Attributes:
        rows: their compact rows; int32 ``[n, n_features]``.
        flat: the same, int64 ``[n * n_features]``.
        w: the weights of these rows; ``[n, n_features]``.
        v, slope: values, and the slope of the output unit there; ``[n]``.
    """

    rows: Tensor
    flat: Tensor
    w: Tensor
    v: Tensor
    slope: Tensor


class Batched(Agent[PartBoard]):
    """Values boards and learns from them, a batch at a time.

    The network and the optimizer stay unchanged on the CPU; this agent learns on a compact copy of both on ``device``
    (without rows that no board can have), and ``store`` writes it back.

    Args:
        network: the value network, on the CPU; see ``rlgames.networks.table.table_of``.
        optimizer: one of this package's rules without shared numbers, or any of torch's, over the network's parameters.
        device: where to learn.
        combine: how the changes that several games make to a weight are combined, ``mean`` or ``sum``.

    Raises:
        ValueError: for a rule that cannot learn from a batch, a network that computes in another way, or an unknown
            ``combine``.
    """

    network: ValueNetwork
    optimizer: torch.optim.Optimizer

    def __init__(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device, combine: str = "mean"
    ) -> None:
        if combine not in COMBINE:
            raise ValueError(f"batched.combine is {combine!r}; allowed are {' and '.join(COMBINE)}")
        if isinstance(optimizer, StepSize) and optimizer.shared:
            name, numbers = type(optimizer).__name__, ", ".join(optimizer.shared)
            raise ValueError(
                f"engine=batched cannot use {name}: its weights share one number ({numbers}), which every game would "
                f"change at the same time; use engine=fused or another optimizer"
            )
        if isinstance(optimizer, StepSize) and (optimizer.looks_ahead or optimizer.transient):
            raise ValueError(
                f"engine=batched cannot use {type(optimizer).__name__}: it looks at the next position or keeps traces "
                f"of its own; use engine=fused or another optimizer"
            )
        table, _ = require_table(network, "batched")
        self.network, self.device, self._mean = table, device, combine == "mean"
        self.features = table.features.tensors(device)
        self.optimizer, self._rows = optimizer, torch.from_numpy(table.features.rows)
        self._player: Fused | Eager | None = None
        self.load()

    def load(self) -> None:
        """Copy weights and state to the device."""
        (param,) = self.network.parameters()
        self._weights = nn.Parameter(self._compact(param.detach()))
        self._optimizer = copy.copy(self.optimizer)
        self._optimizer.param_groups = [{**self.optimizer.param_groups[0], "params": [self._weights]}]
        state = {name: self._compact(value) for name, value in self.optimizer.state[param].items()}
        self._optimizer.state = defaultdict(dict, {self._weights: state})
        self._hits = torch.zeros_like(self._weights.detach())

    def store(self) -> None:
        """Write weights, state and lr back to network and optimizer."""
        (param,) = self.network.parameters()
        if isinstance(self.optimizer, StepSize):
            self.optimizer.state_of(param, self.optimizer.param_groups[0])  # the initial state, for untouched weights
        state = self.optimizer.state[param]
        for name, value in self._optimizer.state[self._weights].items():
            if _like(value, self._weights):
                state[name] = state.get(name, torch.zeros_like(param.detach()))
                state[name][self._rows, 0] = value.cpu()
            else:
                state[name] = copy.deepcopy(value)
        param.detach()[self._rows, 0] = self._weights.detach().cpu()
        self.optimizer.param_groups[0]["lr"] = self._optimizer.param_groups[0]["lr"]
        self._player = None

    def forget(self) -> None:
        """Note that others changed the network's tensors: single boards see it, learning does not."""
        self._player = None

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(agent, *args)`` with an agent for single boards that has the weights stored last."""
        if self._player is None:
            engine = Fused if HAS_COMPILER and isinstance(self.optimizer, StepSize) else Eager
            self._player = engine(self.network, self.optimizer)
        return self._player.run(function, *args)

    def move_values(self, board: PartBoard) -> npt.NDArray[np.float64]:
        """See ``Agent``; by the weights stored last."""
        values: npt.NDArray[np.float64] = self.run(afterstate_values, board)
        return values

    def check_room(self, batch: int) -> None:
        """Refuse a ``batch`` that does not fit in the memory of the device.

        Raises:
            ValueError: with the memory it needs and the largest batch that fits.
        """
        there = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else physical_memory()
        fields = len(self._optimizer.State._fields) if isinstance(self._optimizer, StepSize) else 2  # type: ignore[attr-defined]
        item, features = self._weights.element_size(), self.features.n_features
        # Measured with 0 to 4 state numbers (64, 74 and 93 bytes per feature): ten tensors of lanes and two per number
        # are alive at once, besides indices (16 bytes). A slice has lanes for each move, 12 bytes each.
        lanes = self.features.n_parts * features * min(batch, self.features.slice)
        fixed = (2 + fields) * item * len(self._weights) + 12 * lanes
        per_game = features * (16 + item * (10 + 2 * fields)) + 2000
        if fixed + batch * per_game > there:
            most = max(0, int((there - fixed) // per_game))
            raise ValueError(
                f"batch is {batch}, which needs about {(fixed + batch * per_game) / 2**30:.1f} GiB of the "
                f"{there / 2**30:.1f} GiB on {self.device}; the largest batch that fits is about {most}"
            )

    # ---- values

    def sums(self, boards: TensorBoards, rows: Tensor, moves: Tensor, legal: Tensor) -> Tensor:
        """Sums of weights after each of ``moves``; see ``TensorNTuples.sums``."""
        sums: Tensor = self.features.sums(self._weights.detach(), boards, rows, moves, legal)
        return sums

    def look(self, boards: TensorBoards, rows: Tensor | None = None) -> Look:
        """See ``Look``; ``rows`` are relative to the tables of the player to move, if already known."""
        rows = self.features.rows(boards) if rows is None else rows
        rows = rows + self.features.begin_of(boards.player()).unsqueeze(1)
        index = rows.flatten().long()
        w = _at(self._weights.detach(), index, rows)
        v = self.unit(w.sum(1))
        output = self.network.output
        slope = torch.ones_like(v) if output == "identity" else 1 - v * v if output == "tanh" else v * (1 - v)
        return Look(rows, index, w, v, slope)

    def unit(self, f: Tensor) -> Tensor:
        """Values of the sums ``f``."""
        return self.network.unit(f)

    def target(self, reward: Tensor) -> Tensor:
        """``reward`` on the scale of the output unit."""
        return target(self.network.output, reward)

    # ---- learning

    def set_lr(self, lr: float) -> None:
        """Set the global step size."""
        self._optimizer.param_groups[0]["lr"] = float(lr)

    @torch.no_grad()
    def learn(self, look: Look, delta: Tensor, learns: Tensor) -> None:
        """Let every board that ``learns`` learn from its TD error.

        Args:
            look: the boards, looked at since the weights last changed.
            delta: TD errors, 0 where nothing is learned; ``[n]``.
            learns: bool ``[n]``.
        """
        x, first = self.features.counts(look.rows, look.w.dtype)
        lanes = first * learns.unsqueeze(1)  # a weight learns once per board; its other lanes count 0
        delta, slope = delta.unsqueeze(1), look.slope.unsqueeze(1)
        if isinstance(self._optimizer, StepSize):
            e = x if self._optimizer.cross_entropy else slope * x
            self._learn_by_rule(
                self._optimizer, look, first, lanes, Transition(delta, slope, x, e, x_next=0.0, decay=0.0, sum=0.0)
            )
        else:
            self._learn_by_gradient(look, lanes, -delta * slope * x)

    def _learn_by_rule(self, rule: StepSize, look: Look, first: Tensor, lanes: Tensor, t: Transition) -> None:
        group = rule.param_groups[0]
        p, tensors = rule.hyper(group), rule.state_of(self._weights, group)
        s = type(tensors)(*(_at(tensor, look.flat, look.w) for tensor in tensors))
        summand = torch.as_tensor(rule.total(p, look.w, s, t))
        if summand.ndim:
            t = t._replace(sum=(first * summand).sum(1, keepdim=True))
        new_w, new_s = rule.update(p, look.w, s, t)
        share = self._share(look.flat, lanes)
        for tensor, old, new in zip((self._weights.detach(), *tensors), (look.w, *s), (new_w, *new_s), strict=True):
            if new is not old:
                tensor.scatter_add_(0, look.flat, ((new - old) * share).flatten())

    def _learn_by_gradient(self, look: Look, lanes: Tensor, gradient: Tensor) -> None:
        """Take a step of a torch optimizer. These count steps, so this waits for the device to see who learns."""
        learning = lanes.flatten() > 0
        index, gradient = look.flat[learning], (gradient * self._share(look.flat, lanes)).flatten()[learning]
        if not len(index):
            return
        shape = self._weights.shape
        if self.network.embedding.sparse:
            grad = torch.sparse_coo_tensor(index.unsqueeze(0), gradient, shape, check_invariants=False)
        else:
            grad = torch.zeros_like(self._weights).scatter_add_(0, index, gradient)
        self._weights.grad = grad
        self._optimizer.step()

    def _share(self, index: Tensor, lanes: Tensor) -> Tensor:
        """How much a board's change of a weight counts: fully, or 1 / (number of boards that hit the weight)."""
        if not self._mean or len(lanes) == 1:
            return lanes
        self._hits.zero_()
        self._hits.scatter_add_(0, index, lanes.flatten())
        return lanes / _at(self._hits, index, lanes).clamp_min(1)

    def _compact(self, value: Any) -> Any:
        """The entries of ``value`` for rows that boards can have, if it has one per weight; else a copy of it."""
        (param,) = self.network.parameters()
        return value[self._rows, 0].to(self.device) if _like(value, param) else copy.deepcopy(value)


def _like(value: Any, param: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == param.shape


def _at(tensor: Tensor, index: Tensor, like: Tensor) -> Tensor:
    """``tensor[index]`` in the shape of ``like``; index_select is several times faster."""
    return torch.index_select(tensor, 0, index).view_as(like)
