"""The kit for step-size rules."""

import inspect
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlgames.agents import Eager, Fused
from rlgames.compiled import HAS_COMPILER
from rlgames.features.ntuples import NTuples
from rlgames.games.tictactoe import TicTacToe
from rlgames.learners.td import TD
from rlgames.networks.table import ValueNetwork
from rlgames.optim.step_size import StepSize
from rlgames.schedules import Constant
from rlgames.testing.contract import broken, kit, require, said, saved
from rlgames.traces import Traces

SIZE = 6  # weights
IDLE = SIZE - 1  # the weight that is never active
STEPS = 6
GAMES = 6


@kit
def check_rule(rule: type[StepSize], **hyper: Any) -> None:
    """Check whether ``rule`` keeps the contract of ``rlgames.optim.step_size`` with the hyper-parameters ``hyper``.

    A step must lead towards the target and move active weights only; sparse, dense and compiled it must do the same; a
    saved state must continue as if nothing had happened; bad input must be refused.

    Raises:
        ContractError: naming what is broken.
    """
    if not (isinstance(rule, type) and issubclass(rule, StepSize)):
        broken(f"{getattr(rule, '__name__', rule)} is no subclass of rlgames.StepSize")
    name = rule.__name__
    _check_constructor(rule, hyper, name)
    _check_direction(rule, hyper, name)
    _check_weights(rule, hyper, name)
    _check_order(rule, hyper, name)
    _check_dense(rule, hyper, name)
    for traces in (None, Traces(0.5)) if rule.traced else (None,):
        _check_saved(rule, hyper, traces, name)
    _check_refusals(rule, hyper, name)
    if HAS_COMPILER:
        _check_compiled(rule, hyper, name)


class Step(NamedTuple):
    """What a step is given: TD error, slope of the unit, the active weights and their x."""

    delta: float
    slope: float
    rows: list[int]
    x: list[float]


def _steps(seed: int) -> list[Step]:
    rng, steps = np.random.default_rng(seed), []
    for _ in range(STEPS):
        rows = rng.permutation(IDLE)[:3].tolist()
        steps.append(
            Step(float(rng.uniform(-1, 1)), float(rng.uniform(0.3, 1)), rows, rng.choice([1.0, 2.0], 3).tolist())
        )
    return steps


class Learned:
    """Some weights and the rule that changes them."""

    def __init__(self, rule: type[StepSize], hyper: dict[str, Any], weight: Tensor | None = None) -> None:
        start = torch.linspace(-0.5, 0.5, SIZE, dtype=torch.float64)[:, None] if weight is None else weight
        self.weight = torch.nn.Parameter(start.clone())
        self.optimizer = rule([self.weight], **hyper)

    def take(self, steps: list[Step], sparse: bool = True, traces: Traces | None = None) -> Tensor:
        """Take ``steps``, each of which the next one follows; return the weights."""
        grads = [self.gradient(step, sparse) for step in steps]
        for k, step in enumerate(steps):
            self.weight.grad = grads[k]
            self.optimizer.step(step.delta, step.slope, traces=traces, next_grads=grads[k + 1 : k + 2])
        return self.weight.detach().clone()

    def gradient(self, step: Step, sparse: bool) -> Tensor:
        """The gradient of the sum before the unit."""
        x = torch.tensor(step.x, dtype=self.weight.dtype)[:, None]
        grad = torch.sparse_coo_tensor(torch.tensor([step.rows]), x, self.weight.shape, check_invariants=True)
        return grad if sparse else grad.to_dense()


def _near(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, rtol=1e-10, atol=1e-12))


def _check_constructor(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    """Hyper-parameters that are no numbers, or unknown words, are refused by name."""
    known = [key for key in inspect.signature(rule.__init__).parameters if key not in ("self", "params")]
    for key in known:
        for bad in (float("nan"), "no such word"):
            try:
                Learned(rule, {**hyper, key: bad})
            except (ValueError, TypeError) as error:
                require(key in str(error), f"{name}: the refusal of {key}={bad!r} does not name {key}: {error}")
            else:
                broken(f"{name} accepts {key}={bad!r}; its constructor must check {key}")


def _check_direction(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    """A few steps towards a target above, or below, lead there."""
    small = {**hyper, "lr": min(0.001, hyper.get("lr", 0.001))} if "lr" in rule.Params._fields else hyper  # type: ignore[attr-defined]
    x = torch.tensor([1.0, 0, 2, 1, 0, 0], dtype=torch.float64)[:, None]
    for sign in (1, -1):
        learned = Learned(rule, small)
        value = before = float((learned.weight.detach() * x).sum())
        for _ in range(STEPS):
            learned.weight.grad = x.clone()
            learned.optimizer.step(before + 0.5 * sign - value)
            value = float((learned.weight.detach() * x).sum())
        what = "not at all" if value == before else "away from it"
        require(sign * (value - before) > 0, f"{name}: {STEPS} steps towards a target move the value {what}")


def _check_weights(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    """A TD error of 0 moves nothing, and no step moves what takes no part."""
    learned = Learned(rule, hyper)
    start = learned.weight.detach().clone()
    for sparse in (True, False):
        before = learned.take(_steps(0), sparse)
        require(bool(before[IDLE] == start[IDLE]), f"{name}: a weight moves that was never active")
        after = learned.take([step._replace(delta=0.0) for step in _steps(1)], sparse)
        require(bool(torch.equal(before, after)), f"{name}: weights move though delta is 0")


def _check_order(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    steps = _steps(0)
    turned = [step._replace(rows=step.rows[::-1], x=step.x[::-1]) for step in steps]
    same = _near(Learned(rule, hyper).take(steps), Learned(rule, hyper).take(turned))
    require(same, f"{name}: what is learned depends on the order of rows in a sparse gradient")


def _check_dense(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    steps = _steps(0)
    same = _near(Learned(rule, hyper).take(steps), Learned(rule, hyper).take(steps, sparse=False))
    require(same, f"{name}: dense gradients lead to other weights than sparse ones")


def _check_saved(rule: type[StepSize], hyper: dict[str, Any], traces: Traces | None, name: str) -> None:
    """Saved and loaded, an optimizer continues as if nothing had happened."""
    one = Learned(rule, hyper)
    one.take(_steps(0), traces=traces)
    other = Learned(rule, hyper, one.weight.detach())
    other.optimizer.load_state_dict(saved(one.optimizer.state_dict()))
    same = torch.equal(one.take(_steps(1), traces=traces), other.take(_steps(1), traces=traces))
    require(
        same, f"{name}: loaded from state_dict() it learns other weights than without a break; some state is not saved"
    )


def _check_refusals(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    """What is not finite is refused, and changes nothing."""
    learned, step = Learned(rule, hyper), _steps(2)[0]
    before = learned.take(_steps(0))
    nan = float("nan")
    for what, bad in (
        ("delta", step._replace(delta=nan)),
        ("slope", step._replace(slope=nan)),
        ("a gradient", step._replace(x=[nan, 1.0, 1.0])),
    ):
        try:
            learned.take([bad])
        except ValueError:
            same = bool(torch.equal(learned.weight.detach(), before))
            require(same, f"{name}: a step refused because {what} is NaN has moved weights")
        else:
            broken(f"{name} takes a step though {what} is NaN")


def _check_compiled(rule: type[StepSize], hyper: dict[str, Any], name: str) -> None:
    """A few games teach the same, eager and compiled."""
    game = TicTacToe()
    features = NTuples(game, [[0, 1, 2], [3, 4, 5], [0, 4, 8]], states=3)
    weights = []
    for kind in (Eager, Fused):
        network = ValueNetwork(features, rule.units[0], init=0.1, dtype="float64")
        agent = kind(network, rule(network.parameters(), **hyper))
        try:
            TD(game, Constant(0.1)).train(agent, 0, GAMES, agent.optimizer.defaults["lr"], np.random.default_rng(0))
            agent.store()
        except Exception as error:
            broken(f"{name}: {kind.__name__} cannot learn with it: {said(error)}", error)
        weights.append(network.embedding.weight.detach())
    difference = float((weights[0] - weights[1]).abs().max())
    require(
        difference < 1e-10, f"{name}: compiled, {GAMES} games lead to weights {difference:.2g} away from those in torch"
    )
