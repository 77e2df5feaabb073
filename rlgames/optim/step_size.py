"""The base of all step-size rules: a rule is written once, for one weight, and runs both on torch tensors and compiled.

A rule is a subclass of ``StepSize`` with up to five short functions of its hyper-parameters ``p``:

* ``update(p, w, s, t)`` returns the new weight and the new state. It is the paper's formula in torch functions.
  Eagerly ``w`` and the fields of ``s`` and ``t`` are tensors over the active weights; compiled they are single numbers.
* ``initial(p)`` returns the initial state of a weight.
* ``step_size(p, s)`` returns the effective step size of a weight (shown on dashboards).
* ``total(p, w, s, t)``, only if a rule needs a sum over the eligible weights: the summand. ``update`` finds the sum
  in ``t.sum``. A rule with several sums returns a NamedTuple of its class ``Sums``.
* ``adapt(p, s, t)``, only if the sum is over new state: the state from which ``total`` and ``update`` both begin.

Convention: gradients are those of the **value**, and rules **add**: w <- w + step size * td_error * gradient.
"""

import copy
import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from rlgames.compiled import HAS_COMPILER
from rlgames.optim.checks import is_number, plain
from rlgames.optim.lanes import params_class
from rlgames.optim.lesson import Lesson, Traced, ahead_of, all_finite, changes, gradients_of, largest, traces_of
from rlgames.optim.transition import Transition as Transition
from rlgames.optim.undecorated import Optimizer
from rlgames.traces import Traces

if HAS_COMPILER:
    from rlgames.compiled import torch_names  # noqa: F401 # what the torch names of rules mean to the compiler

Number = float | Tensor
Gradients = Sequence[Tensor | None]
DAMPERS = ("lr", "theta", "mu")  # hyper-parameters to lower when a rule diverges


class DivergenceError(ValueError):
    """A step would have made a weight or its state infinite or NaN; it was not made."""


class NoState(NamedTuple):
    """The state of a rule that remembers nothing."""


def _no_total(p: Any, w: Any, s: Any, t: Transition) -> Any:
    """Summand of ``t.sum`` for rules without sums."""
    return 0.0


class StepSize(Optimizer):
    """A torch optimizer that takes the TD error: ``optimizer.step(delta)``, with the value's gradient in ``grad``.

    Sparse gradients (``nn.EmbeddingBag(sparse=True)``) update only the active rows; dense gradients update every entry.
    An index that occurs several times in a sparse gradient is one weight, with the sum as its gradient. Values that
    are not finite are refused, and a refused step changes nothing.

    ``lr`` may change at any time, by hand or by an LR scheduler. For rules that learn a step size per
    weight (``lr_is_start``) it is only the initial one: a new lr then affects only parameters that were never stepped,
    and a warning says so once.

    Attributes:
        State: NamedTuple of the rule's state per weight; its fields name the tensors in ``optimizer.state``.
        Sums: NamedTuple that ``total`` returns, for rules with several sums.
        Params: NamedTuple of the hyper-parameters, made from the constructor, then the ``shared`` numbers.
        Params32: the same for compiled code in single precision.
        shared: names of numbers that all weights of a parameter group share. They start at 0; in ``p`` each is an array
            without axes, kept in the state of the group's first parameter: ``p.name[()]`` reads it and may be assigned.
        units: output units the rule is derived for.
        traced: whether the rule is defined with eligibility traces.
        transient: fields of the state that a weight forgets (0) when its trace ends.
        looks_ahead: whether the rule reads ``t.x_next``: ``step`` needs ``next_grads``; without them x_next is 0.
        learns_ahead: whether weights active only in the next position change too.
    """

    State: ClassVar[type] = NoState
    Sums: ClassVar[type | None] = None
    Params: ClassVar[type]
    Params32: ClassVar[type]
    shared: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ("identity", "tanh", "sigmoid")
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
    def cross_entropy(self) -> bool:
        """Whether the rule descends the cross-entropy of a logistic unit: ``t.e`` is (the trace of) x, not slope * x.

        An option of some rules; others set it as an attribute of the class.
        """
        return bool(self.param_groups[0].get("cross_entropy", False))

    @functools.cached_property
    def lr_is_start(self) -> bool:
        """Whether lr is only the initial step size of weights."""
        p = self.hyper(self.param_groups[0])
        return bool(self.initial(p) != self.initial(p._replace(lr=2 * p.lr)))

    def remedy(self, prefix: str = "") -> str:
        """What to do if values diverge; ``prefix`` precedes the names of hyper-parameters."""
        extra = f", or set {prefix}extra_x to false" if self.param_groups[0].get("extra_x") else ""
        return f"lower {' or '.join(prefix + name for name in DAMPERS if name in self._names)}{extra}"

    @classmethod
    def check_traces(cls, traces: Traces) -> None:
        """Refuse traces for which the rule is not defined.

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
        """Add a group of parameters; its hyper-parameters are checked like the constructor's.

        Raises:
            ValueError: for hyper-parameters out of range, or parameters that are neither float32 nor float64.
        """
        own = {name: param_group[name] for name in self._names if name in param_group}
        if own:
            checked = type(self)([torch.zeros(1)], **own)
            param_group = param_group | {name: checked.defaults[name] for name in own}
        super().add_param_group(param_group)
        for dtype in {param.dtype for param in self.param_groups[-1]["params"]} - {torch.float32, torch.float64}:
            del self.param_groups[-1]  # counters begin at 1e-30, and sums go over millions of steps
            raise ValueError(f"a parameter is {dtype}; rules learn torch.float32 and torch.float64")

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a copy of ``state_dict``, independent of the optimizer it came from."""
        super().load_state_dict(copy.deepcopy(state_dict))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state; hyper-parameters that it lacks get their defaults."""
        super().__setstate__(state)
        for group in self.param_groups:
            missing = [name for name in self._names if name not in group]
            if missing:
                names = ", ".join(missing)
                warnings.warn(f"the saved {type(self).__name__} has no {names}: the defaults hold", stacklevel=3)
            group.update({name: self.defaults[name] for name in missing})

    @staticmethod
    def initial(p: Any) -> Any:
        """State of a weight before its first update."""
        return NoState()

    @staticmethod
    def step_size(p: Any, s: Any) -> Any:
        """Effective step size of a weight with state ``s``."""
        return p.lr + 0 * sum(s)

    total = staticmethod(_no_total)

    @staticmethod
    def adapt(p: Any, s: Any, t: Transition) -> Any:
        """The state with the part that ``total`` needs updated."""
        return s

    @staticmethod
    def update(p: Any, w: Any, s: Any, t: Transition) -> tuple[Any, Any]:
        """New weight and new state."""
        raise NotImplementedError

    def hyper(self, group: dict[str, Any]) -> Any:
        """The hyper-parameters of a parameter group, as ``update`` receives them."""
        first = group["params"][0]
        for name in self.shared:
            self.state[first].setdefault(name, first.detach().new_zeros(()))
        values = {name: plain(group[name]) for name in self._names}
        return self.Params(**values, **{name: self.state[first][name] for name in self.shared})

    def state_of(self, param: Tensor, group: dict[str, Any]) -> Any:
        """The state tensors of ``param``, in its shape, made on first use."""
        state = self.state[param]
        initial = self.initial(self.hyper(group))
        missing = [name for name in initial._fields if name not in state]
        if missing and state.keys() - {"trace", *self.shared}:  # of an older version, or of another rule
            raise ValueError(f"the saved state of {type(self).__name__} lacks {', '.join(missing)}")
        for name, start in zip(initial._fields, initial, strict=True):
            if name not in state:
                state[name] = torch.full_like(param, start, memory_format=torch.contiguous_format)
        return type(initial)(*(state[name] for name in initial._fields))

    @torch.no_grad()
    def step(  # type: ignore[override]
        self,
        delta: Number | None = None,
        slope: Number = 1.0,
        *,
        traces: Traces | None = None,
        next_grads: Gradients = (),
        closure: Callable[[], float] | None = None,
    ) -> float | None:
        """Learn from one TD error. A refused step changes nothing.

        Args:
            delta: TD error, or target minus prediction in supervised learning; may be a numpy or torch scalar.
            slope: derivative of the output unit, if ``grad`` holds the gradient of the sum before the unit instead of
                the gradient of the value.
            traces: let weights that were active earlier learn too, even in parameters without a gradient in this
                step; None for lambda 0, which ends all traces.
            next_grads: for rules that look ahead, the gradient of the discounted next value for each parameter (before
                the unit, if ``grad`` is): ``torch.autograd.grad(gamma * model(x_next), model.parameters())``. Empty
                means zeros, as after the last position of an episode.
            closure: computes the gradients (called once, with gradients enabled); its result is returned.

        Raises:
            TypeError: without a TD error.
            ValueError: if ``delta``, ``slope`` or a gradient is not finite, or ``next_grads`` not one per parameter.
            DivergenceError: a ValueError, if a weight or its state would become infinite or NaN.
        """
        if delta is None or callable(delta):
            raise TypeError(
                f"step was given {'a function' if delta else 'no delta'}; it needs the TD error, target minus value: "
                f"step(delta), or step(delta, closure=closure)"
            )
        delta, slope, known = self._told("delta", delta), self._told("slope", slope), set(self.state)
        with torch.enable_grad():
            result = closure() if closure else None
        ahead = ahead_of(self, next_grads)
        gradients = gradients_of(self, traces is not None, ahead)
        traced = traces_of(self, gradients, traces, slope) if traces else {}
        lesson = Lesson(delta, slope, traces.decay if traces else 0.0, gradients, traced, ahead)
        made = [change for group in self.param_groups for change in changes(self, group, lesson)]
        if not all_finite(made):
            for param in set(self.state) - known:  # it may start with another lr
                del self.state[param]
            raise DivergenceError(
                f"{type(self).__name__} diverged, {self.remedy()}: with delta {delta:g} and gradients of up to "
                f"{largest(gradients):g} a weight or its state would be infinite or NaN"
            )
        for tensor, i, values in made:
            tensor[i] = values
        self._remember(traced)
        self._warn_of_lr()
        return result

    @torch.no_grad()
    def add_traces(self, traces: Traces, slope: Number = 1.0) -> None:
        """Decay the traces and add the gradients of the value, without learning; ``step`` does this itself.

        Raises:
            ValueError: if ``slope`` or a gradient is not finite.
        """
        slope = self._told("slope", slope)
        self._remember(traces_of(self, gradients_of(self, True, {}), traces, slope))

    def end_traces(self) -> None:
        """Clear all traces: an episode begins."""
        for state in self.state.values():
            state.pop("trace", None)

    def excerpt(self, rows: Tensor) -> Self:
        """An optimizer of the same rule over copies of some ``rows`` of the first parameter and of their state."""
        group, param = self.param_groups[0], self.param_groups[0]["params"][0]
        part, state = torch.nn.Parameter(param.detach()[rows]), self.state_of(param, group)
        fields = {name: tensor[rows] for name, tensor in zip(state._fields, state, strict=True)}
        shared = {name: self.state[param][name].clone() for name in self.shared}
        other = copy.copy(self)
        other.param_groups, other.state = [{**group, "params": [part]}], defaultdict(dict, {part: fields | shared})
        return other

    def _told(self, name: str, value: Any) -> float:
        """``value`` as a Python number.

        Raises:
            ValueError: if it is not a finite number.
        """
        number, shape = plain(value), tuple(getattr(value, "shape", ()))
        if not is_number(number) and shape:
            raise ValueError(
                f"{name} has the shape {shape}, but a step learns from one TD error; for a minibatch put the errors "
                f"into the gradient, (deltas * values).sum().backward(), and call step(1.0)"
            )
        if not is_number(number) or not math.isfinite(number):
            hint = f" (if values diverged, {self.remedy()})" if is_number(number) else ""
            raise ValueError(f"{name} is {number!r}; a step needs a finite number{hint}")
        return float(number)

    def _remember(self, traced: Traced) -> None:
        self.end_traces()
        for param, (_, trace) in traced.items():
            self.state[param]["trace"] = trace

    def _warn_of_lr(self) -> None:
        """Warn once per group that a new lr does not reach weights that have their own step size."""
        for group in self.param_groups:
            start = group.setdefault("start_lr", group["lr"])  # None: already warned
            if start not in (None, group["lr"]) and self.lr_is_start:
                group["start_lr"] = None
                warnings.warn(
                    f"{type(self).__name__} learns a step size for each weight: a new lr has no effect on weights that "
                    f"began with another one",
                    stacklevel=5,  # past step and torch's wrapper
                )
