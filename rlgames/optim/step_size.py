"""The base of all step-size rules: a rule is written once, for one weight, and runs on torch tensors and compiled.

A rule is a subclass of ``StepSize`` with up to five short functions of its hyper-parameters ``p``:

* ``update(p, w, s, t)`` returns the new weight and the new state. It is the formula of the paper, in torch names.
  Eagerly ``w`` and the fields of ``s`` and ``t`` are tensors over the active weights; compiled they are single numbers.
* ``initial(p)`` returns the state of an untouched weight.
* ``step_size(p, s)`` returns the effective step size of a weight (what dashboards show).
* ``total(p, w, s, t)``, only where a rule needs a sum over the eligible weights: the summand. ``update`` finds the sum
  in ``t.sum``. A rule with several sums returns a tuple of the class that it names as ``Sums``.
* ``adapt(p, s, t)``, only where the sum is one of new state: the state that ``total`` and ``update`` both begin with.

Convention: gradients are those of the **value**, and rules **add**: w <- w + step size * td_error * gradient.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, overload

import torch
from torch import Tensor

from rlgames.optim.eligible import eligible
from rlgames.optim.lanes import params_class
from rlgames.optim.transition import Transition as Transition
from rlgames.optim.undecorated import Optimizer
from rlgames.traces import Traces, add_trace, faded

Number = float | Tensor
Gradients = Sequence[Tensor | None]


class NoState(NamedTuple):
    """The state of a rule that remembers nothing."""


def _no_total(p: Any, w: Any, s: Any, t: Transition) -> Any:
    """Summand of ``t.sum`` of rules without sums."""
    return 0.0


class StepSize(Optimizer):
    """A torch optimizer that is told the TD error: ``optimizer.step(delta)``, with the value's gradient in ``grad``.

    Sparse gradients (``nn.EmbeddingBag(sparse=True)``) touch the active rows only; dense gradients update every entry.
    An index that stands several times in a sparse gradient is one weight with the sum as its gradient.

    ``lr`` may change at any time, by hand or by an LR scheduler. Of rules that learn a step size per weight
    (``lr_is_start``) it is only the first one: a new lr then reaches parameters that were never stepped, and no others.

    Attributes:
        State: NamedTuple of what the rule remembers per weight; its fields name the tensors in ``optimizer.state``.
        Sums: NamedTuple of what ``total`` returns, of rules with several sums.
        Params: NamedTuple of the hyper-parameters, made from the constructor, then the ``shared`` numbers.
        Params32: the same for compiled code in single precision.
        shared: names of numbers that all weights of a parameter group share. They start at 0; in ``p`` each is an array
            without axes, kept in the state of the group's first parameter: ``p.name[()]`` reads it and may be assigned.
        units: output units for which the rule is derived.
        cross_entropy: the rule descends the cross-entropy of a logistic unit: the slope of the unit cancels, and
            ``t.e`` is (the trace of) x instead of slope * x.
        traced: the rule is defined with eligibility traces.
        transient: fields of the state that a weight forgets (0) when its trace ends.
        looks_ahead: the rule reads ``t.x_next``: ``step`` needs ``next_grads``, without which they are 0.
        learns_ahead: weights that are active in the next position alone change too.
    """

    State: ClassVar[type] = NoState
    Sums: ClassVar[type | None] = None
    Params: ClassVar[type]
    Params32: ClassVar[type]
    shared: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ("identity", "tanh", "sigmoid")
    cross_entropy: ClassVar[bool] = False
    traced: ClassVar[bool] = True
    transient: ClassVar[tuple[str, ...]] = ()
    looks_ahead: ClassVar[bool] = False
    learns_ahead: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        has_total = cls.total is not StepSize.total
        cls.Params, cls.Params32 = params_class(cls, has_total), params_class(cls, has_total, single=True)

    def __init__(self, params: Iterable[Any], **hyper: float) -> None:
        super().__init__(params, hyper)

    @property
    def lr_is_start(self) -> bool:
        """Whether lr is only the step size with which weights begin."""
        p = self.hyper(self.param_groups[0])
        return bool(self.initial(p) != self.initial(p._replace(lr=2 * p.lr)))

    @classmethod
    def check_traces(cls, traces: Traces) -> None:
        """Refuse kinds of traces with which the rule is not defined.

        Raises:
            ValueError: naming the rule.
        """
        if not cls.traced:
            raise ValueError(
                f"learner.lambda_ above 0 needs eligibility traces, with which {cls.__name__} is not defined"
            )

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
    def step(
        self, delta: Number, slope: Number = 1.0, *, traces: Traces | None = None, next_grads: Gradients = ()
    ) -> None: ...
    @overload
    def step(
        self,
        delta: Number,
        slope: Number = 1.0,
        *,
        traces: Traces | None = None,
        next_grads: Gradients = (),
        closure: Callable[[], float],
    ) -> float: ...
    @torch.no_grad()
    def step(
        self,
        delta: Number,
        slope: Number = 1.0,
        *,
        traces: Traces | None = None,
        next_grads: Gradients = (),
        closure: Callable[[], float] | None = None,
    ) -> float | None:
        """Learn from one TD error.

        Args:
            delta: TD error, or target minus prediction in supervised learning.
            slope: derivative of the output unit, if ``grad`` holds the gradient of the sum before the unit instead of
                the gradient of the value.
            traces: let weights learn that were active before too; None for lambda 0.
            next_grads: for rules that look ahead, the gradient of the discounted next value for each parameter (before
                the unit, if ``grad`` is): ``torch.autograd.grad(gamma * model(x_next), model.parameters())``. Empty
                stands for zeros, right after the last position of an episode.
            closure: computes the gradients (called once, with gradients enabled); its result is returned.

        Raises:
            ValueError: if ``delta`` or ``slope`` is not a finite number, or ``next_grads`` not one per parameter.
        """
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        for name, number in (("delta", delta), ("slope", slope)):
            if not torch.isfinite(torch.as_tensor(number, dtype=torch.float64)).all():
                raise ValueError(f"{name} is {float(number)}; a step needs a finite number")
        ahead = self._by_parameter(next_grads)
        before = {} if traces is None else self._extend_traces(traces, slope)
        for group in self.param_groups:
            self._step_group(group, delta, slope, traces, before, ahead)
        return result

    @torch.no_grad()
    def add_traces(self, traces: Traces, slope: Number = 1.0) -> None:
        """Let the traces decay and add the gradients of the value, without learning; ``step`` does so by itself."""
        self._extend_traces(traces, slope)

    def _extend_traces(self, traces: Traces, slope: Number) -> dict[Tensor, Tensor | None]:
        """As ``add_traces``; what was left of the traces before the gradients joined them."""
        before = {}
        for param in self._parameters():
            if param.grad is not None:
                gradient = param.grad.coalesce() if param.grad.is_sparse else param.grad
                gradient = gradient if self.cross_entropy else gradient * slope
                before[param] = faded(self.state[param].get("trace"), traces)
                self.state[param]["trace"] = add_trace(before[param], gradient, traces)
        return before

    def end_traces(self) -> None:
        """Forget all traces: an episode begins."""
        for state in self.state.values():
            state.pop("trace", None)

    def _parameters(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def _by_parameter(self, grads: Gradients) -> dict[Tensor, Tensor | None]:
        params = self._parameters()
        if grads and len(grads) != len(params):
            raise ValueError(f"next_grads holds {len(grads)} gradients; the optimizer has {len(params)} parameters")
        return dict(zip(params, grads, strict=True)) if grads else {}

    def _step_group(
        self,
        group: dict[str, Any],
        delta: Number,
        slope: Number,
        traces: Traces | None,
        before: dict[Tensor, Tensor | None],
        ahead: dict[Tensor, Tensor | None],
    ) -> None:
        p, factor, decay = self.hyper(group), 1.0 if self.cross_entropy else slope, traces.decay if traces else 0.0
        parts = []
        for param in group["params"]:
            if param.grad is None:
                continue
            state = self.state_of(param, group)
            trace, next_grad = self.state[param].get("trace"), ahead.get(param) if self.looks_ahead else None
            who = eligible(param.grad, trace, before.get(param), next_grad, factor, pick=bool(self.transient))
            i, x, e, x_next, fresh = who
            s = type(state)(*(tensor[i] for tensor in state))
            s = s._replace(**{name: getattr(s, name).masked_fill(fresh, 0) for name in self.transient})
            parts.append((param, state, i, param[i], s, Transition(delta, slope, x, e, x_next, decay, 0.0)))
        if not parts:
            return
        total = self._sum([p.total(w, s, t) for *_, w, s, t in parts])
        for param, state, i, w, s, t in parts:
            param[i], new = p.update(w, s, t._replace(sum=total))
            for tensor, values in zip(state, new, strict=True):
                tensor[i] = values

    def _sum(self, summands: list[Any]) -> Any:
        """Sum of what ``total`` returned for the parameters of a group."""
        if self.Sums is None:
            return sum(torch.as_tensor(summand).sum() for summand in summands)
        return self.Sums(*(sum(column.sum() for column in columns) for columns in zip(*summands, strict=True)))
