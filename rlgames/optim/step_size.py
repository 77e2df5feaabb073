"""The base of all step-size rules: a rule is written once, for one weight, and runs on torch tensors and compiled.

A rule is a subclass of ``StepSize`` with up to five short functions of its hyper-parameters ``p``:

* ``update(p, w, s, t)`` returns the new weight and the new state. It is the formula of the paper, in torch names.
  Eagerly ``w`` and the fields of ``s`` and ``t`` are tensors over the active weights; compiled they are single numbers.
* ``initial(p)`` returns the state of an untouched weight.
* ``step_size(p, s)`` returns the effective step size of a weight (what dashboards show).
* ``total(p, w, s, t)``, only where a rule needs a sum over the active weights: the summand. ``update`` finds the sum in
  ``t.sum``.
* ``adapt(p, s, t)``, only where the sum is one of new state: the state that ``total`` and ``update`` both begin with.

Convention: gradients are those of the **value**, and rules **add**: w <- w + step size * td_error * gradient.
"""

import inspect
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, overload

import torch
from numba import types
from torch import Tensor

from rlgames.compiled import bridge, check_names, depends_on, full_name, single_precision
from rlgames.optim.lanes import access
from rlgames.traces import Traces, add_trace


class Transition(NamedTuple):
    """What one step of learning tells a weight.

    Attributes:
        delta: TD error.
        slope: derivative of the output unit at the current value (1 for linear units).
        x: gradient of the sum before the output unit, i.e. the feature; 0 where the weight is not active.
        e: eligibility trace; without traces the gradient of the value, slope * x (of ``cross_entropy`` rules x).
        sum: over the active weights, of what the rule's ``total`` returns.
    """

    delta: Any
    slope: Any
    x: Any
    e: Any
    sum: Any


Number = float | Tensor


class NoState(NamedTuple):
    """The state of a rule that remembers nothing."""


def _no_total(p: Any, w: Any, s: Any, t: Transition) -> Any:
    """Summand of ``t.sum`` of rules without sums."""
    return 0.0


class StepSize(torch.optim.Optimizer):
    """A torch optimizer that is told the TD error: ``optimizer.step(delta)``, with the value's gradient in ``grad``.

    Sparse gradients (``nn.EmbeddingBag(sparse=True)``) touch the active rows only; dense gradients update every entry.
    An index that stands several times in a sparse gradient is one weight with the sum as its gradient.

    Attributes:
        State: NamedTuple of what the rule remembers per weight; its fields name the tensors in ``optimizer.state``.
        Params: NamedTuple of the hyper-parameters, made from the constructor, then the ``shared`` numbers.
        shared: names of numbers that all weights of a parameter group share. They start at 0; in ``p`` each is an array
            without axes, kept in the state of the group's first parameter: ``p.name[()]`` reads it and may be assigned.
        units: output units for which the rule is derived.
        cross_entropy: the rule descends the cross-entropy of a logistic unit: the slope of the unit cancels, and
            ``t.e`` is (the trace of) x instead of slope * x.
        traced: the rule is defined with eligibility traces.
    """

    State: ClassVar[type] = NoState
    Params: ClassVar[type]
    shared: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ("identity", "tanh", "sigmoid")
    cross_entropy: ClassVar[bool] = False
    traced: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.Params = _params_class(cls)
        depends_on(cls)

    def __init__(self, params: Iterable[Any], **hyper: float) -> None:
        super().__init__(params, hyper)

    @property
    def _names(self) -> list[str]:
        """The hyper-parameters; torch adds other options to ``defaults``."""
        return [name for name in self.Params._fields if name not in self.shared]  # type: ignore[attr-defined]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; its own hyper-parameters are checked as those of the constructor."""
        own = {name: param_group[name] for name in self._names if name in param_group}
        if own:
            checked = type(self)([torch.zeros(1)], **own)
            param_group = param_group | {name: checked.defaults[name] for name in own}
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a saved state; hyper-parameters that did not exist when it was saved get their defaults."""
        super().__setstate__(state)
        for group in self.param_groups:
            missing = [name for name in self._names if name not in group]
            if missing:
                names = ", ".join(missing)
                warnings.warn(f"the saved {type(self).__name__} has no {names}: the defaults hold", stacklevel=3)
            group.update({name: self.defaults[name] for name in missing})

    @staticmethod
    def initial(p: Any) -> Any:
        """State of a weight that was never updated."""
        return NoState()

    @staticmethod
    def step_size(p: Any, s: Any) -> Any:
        """Effective step size of a weight with state ``s``."""
        return p.lr + 0 * sum(s)

    total = staticmethod(_no_total)

    @staticmethod
    def adapt(p: Any, s: Any, t: Transition) -> Any:
        """The state with that part renewed which ``total`` needs."""
        return s

    @staticmethod
    def update(p: Any, w: Any, s: Any, t: Transition) -> tuple[Any, Any]:
        """New weight and new state."""
        raise NotImplementedError

    def hyper(self, group: dict[str, Any]) -> Any:
        """The hyper-parameters of a parameter group as the value that ``update`` receives."""
        first = group["params"][0]
        for name in self.shared:
            self.state[first].setdefault(name, first.detach().new_zeros(()))
        values = group | {name: self.state[first][name] for name in self.shared}
        return self.Params(*(values[name] for name in self.Params._fields))  # type: ignore[attr-defined]

    def state_of(self, param: Tensor, group: dict[str, Any]) -> Any:
        """The state tensors of ``param``, in its shape, made on first use."""
        state = self.state[param]
        initial = self.initial(self.hyper(group))
        missing = [name for name in initial._fields if name not in state]
        if 0 < len(missing) < len(initial):
            raise ValueError(f"the saved state of {type(self).__name__} lacks {', '.join(missing)}")
        for name, start in zip(initial._fields, initial, strict=True):
            if name not in state:
                state[name] = torch.full_like(param, start, memory_format=torch.contiguous_format)
        return type(initial)(*(state[name] for name in initial._fields))

    @overload  # type: ignore[override]
    def step(self, delta: Number, slope: Number = 1.0, *, traces: Traces | None = None) -> None: ...
    @overload
    def step(
        self, delta: Number, slope: Number = 1.0, *, traces: Traces | None = None, closure: Callable[[], float]
    ) -> float: ...
    @torch.no_grad()
    def step(
        self,
        delta: Number,
        slope: Number = 1.0,
        *,
        traces: Traces | None = None,
        closure: Callable[[], float] | None = None,
    ) -> float | None:
        """Learn from one TD error.

        Args:
            delta: TD error, or target minus prediction in supervised learning.
            slope: derivative of the output unit, if ``grad`` holds the gradient of the sum before the unit instead of
                the gradient of the value.
            traces: let weights learn that were active before too; None for lambda 0.
            closure: computes the gradients (called once, with gradients enabled); its result is returned.

        Raises:
            ValueError: if ``delta`` or ``slope`` is not a finite number.
        """
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        for name, number in (("delta", delta), ("slope", slope)):
            if not torch.isfinite(torch.as_tensor(number, dtype=torch.float64)).all():
                raise ValueError(f"{name} is {float(number)}; a step needs a finite number")
        if traces is not None:
            self.add_traces(traces, slope)
        for group in self.param_groups:
            self._step_group(group, delta, slope)
        return result

    @torch.no_grad()
    def add_traces(self, traces: Traces, slope: Number = 1.0) -> None:
        """Let the traces decay and add the gradients of the value, without learning; ``step`` does so by itself."""
        for param in (param for group in self.param_groups for param in group["params"]):
            if param.grad is not None:
                gradient = param.grad.coalesce() if param.grad.is_sparse else param.grad
                gradient = gradient if self.cross_entropy else gradient * slope
                self.state[param]["trace"] = add_trace(self.state[param].get("trace"), gradient, traces)

    def end_traces(self) -> None:
        """Forget all traces: an episode begins."""
        for state in self.state.values():
            state.pop("trace", None)

    def _step_group(self, group: dict[str, Any], delta: Number, slope: Number) -> None:
        p = self.hyper(group)
        parts = []
        for param in group["params"]:
            if param.grad is None:
                continue
            state = self.state_of(param, group)
            i, x, e = _eligible(param.grad, self.state[param].get("trace"), 1.0 if self.cross_entropy else slope)
            s = type(state)(*(tensor[i] for tensor in state))
            parts.append((param, state, i, param[i], s, Transition(delta, slope, x, e, 0.0)))
        total = sum(torch.as_tensor(p.total(w, s, t)).sum() for *_, w, s, t in parts)
        for param, state, i, w, s, t in parts:
            param[i], new = p.update(w, s, t._replace(sum=total))
            for tensor, values in zip(state, new, strict=True):
                tensor[i] = values


def _eligible(grad: Tensor, trace: Tensor | None, slope: Number) -> tuple[Any, Tensor, Tensor]:
    """Indices of the entries that learn, the gradient there (0 where only the trace is not), and the trace.

    A sparse gradient is made unique, because rules are not linear in x and must meet a weight once; a dense one is
    taken whole.
    """
    if not grad.is_sparse:
        return ..., grad, slope * grad if trace is None else trace
    grad = grad.coalesce()
    i, x = grad.indices()[0], grad.values()
    if trace is None:
        return i, x, slope * x
    eligible, e = trace.indices()[0], trace.values()
    all_x = torch.zeros_like(e)
    all_x[torch.searchsorted(eligible, i)] = x  # both are sorted, and what is active is eligible
    return eligible, all_x, e


# ---- the compiled side: the hyper-parameters carry the rule, so that compiled code finds it by their type

_RULE_FUNCTIONS = ("update", "total", "adapt", "step_size")  # in single precision under the name "single_..." as well


def _params_class(rule: type[StepSize]) -> type:
    """NamedTuple of the constructor's hyper-parameters whose methods are the rule's functions."""
    names = [name for name in inspect.signature(rule.__init__).parameters if name not in ("self", "params", "hyper")]
    cls: Any = namedtuple("Params", (*names, *rule.shared))  # type: ignore[misc]
    cls.__module__, cls.__qualname__ = rule.__module__, f"{rule.__qualname__}.Params"
    for fields in (cls, rule.State):
        full_name(fields)
        check_names(fields)
    for name in _RULE_FUNCTIONS:
        setattr(cls, name, getattr(rule, name))
        setattr(cls, f"single_{name}", single_precision(getattr(rule, name)))
    for name, function in access(cls, rule.State).items():
        setattr(cls, name, function)
    setattr(cls, "sum_total", _no_sum if rule.total is _no_total else _sum_total)  # noqa: B010
    return cls


def _sum_total(self: Any, lanes: Any, memory: Any, n: Any, delta: Any, slope: Any) -> Any:
    """Sum of the rule's ``total`` over the first ``n`` lanes; a weight that fills x lanes counts once."""
    zero = total = delta * 0
    x, e = memory.x, memory.e
    for j in range(n):
        part = self.total(lanes[0, j], self.load(lanes, j), Transition(delta, slope, x[j], e[j], zero))
        total += part if memory.distinct else part / x[j]
    return total


def _no_sum(self: Any, lanes: Any, memory: Any, n: Any, delta: Any, slope: Any) -> Any:
    """The sum of a rule without ``total``."""
    return delta * 0


def _by_precision(name: str) -> Callable[..., Any]:
    def choose(self: Any, *args: Any) -> Any:
        single = self[self.fields.index("lr")] == types.float32
        return getattr(self.instance_class, f"single_{name}" if single else name, None)

    return choose


for _name in _RULE_FUNCTIONS:
    bridge(_name, getattr(StepSize, _name), _by_precision(_name))
for _name, _function in access(namedtuple("Params", ["lr"]), NoState).items():
    bridge(_name, _function, lambda self, *args, name=_name: getattr(self.instance_class, name, None))
bridge("sum_total", _no_sum, lambda self, *args: getattr(self.instance_class, "sum_total", None))
