"""Rules as people use torch: several heads, odd gradients, bad numbers, states that are handed on, defaults."""

import contextlib
import copy
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from rlgames.optim import (
    ELK1,
    IDBD,
    SMD,
    TCL,
    TDL,
    AdaptiveObGD,
    AlphaBounds,
    Autostep,
    DivergenceError,
    IDBDnl,
    ObGD,
    RpropMinus,
    StepSize,
    SwiftTD,
    TCLDelta,
)
from rlgames.traces import Traces
from tests.support import RULES, few

rules = pytest.mark.parametrize("name", RULES)
TRACED = [name for name, (cls, *_) in RULES.items() if cls.traced]
TRACES = Traces(0.5, resetting=True)
CLASSES = sorted({cls for cls, *_ in RULES.values()}, key=lambda cls: cls.__name__)
REPRESENTATIVES = (TDL, IDBD, SMD, SwiftTD, RpropMinus)


def make(name, params, **changes):
    cls, hyper, _ = RULES[name]
    return cls(params, **hyper | changes)


def ones(*shape):
    return nn.Parameter(torch.ones(*shape, dtype=torch.float64))


def sparse(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)


def row(index, shape=(3, 1), value=1.0):
    return sparse([[index]], torch.full((1, *shape[1:]), value, dtype=torch.float64), shape)


def tensors(optimizer):
    """All that an optimizer has, by parameter and name; copies."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    named = [{"w": param.detach(), **optimizer.state.get(param, {})} for param in params]
    return [{name: tensor.to_dense().clone() for name, tensor in fields.items()} for fields in named]


def equal(a, b):
    return [fields.keys() for fields in a] == [fields.keys() for fields in b] and all(
        torch.equal(x[name], y[name]) for x, y in zip(a, b, strict=True) for name in x
    )


# ---- heads without a gradient


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("name", TRACED)
def test_a_head_without_gradient_learns_by_its_trace_as_with_a_gradient_of_zeros(name, kind, ahead):
    def zeros(param):
        return row(0, value=0.0) if kind == "sparse" else torch.zeros_like(param)

    made = []
    for empty in (lambda param: None, zeros):
        a, b = ones(3, 1), ones(3, 1)
        optimizer = make(name, [a, b])
        for k, (delta, pair) in enumerate([(0.5, (0, 0)), (0.5, (None, 1)), (1.0, (None, 1)), (-0.25, (2, None))]):
            for param, index in zip((a, b), pair, strict=True):
                grad = empty(param) if index is None else row(index)
                param.grad = grad.to_dense() if kind == "dense" and grad is not None else grad
            following = [row(k % 3), row(1)] if ahead else ()
            optimizer.step(delta, traces=TRACES, next_grads=following)
        made.append(tensors(optimizer))
    for ours, theirs in zip(*made, strict=True):
        for key in ours:
            torch.testing.assert_close(ours[key], theirs[key], rtol=1e-12, atol=0, msg=key)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_head_without_gradient_by_hand(kind):
    """α = 0.1, decay 0.5: w_a = 0.1 (0.5 + 0.5 * 0.5 + 1 * 0.25) = 0.1, its trace 0.25 after it was asked once."""
    a, b = (nn.Parameter(torch.zeros(1, 1, dtype=torch.float64)) for _ in range(2))
    optimizer = TDL([a, b], lr=0.1)
    for delta, used in ((0.5, a), (0.5, b), (1.0, b)):
        optimizer.zero_grad()
        used.grad = row(0, (1, 1)) if kind == "sparse" else torch.ones(1, 1, dtype=torch.float64)
        optimizer.step(delta, traces=Traces(0.5))
    assert a.item() == pytest.approx(0.1)
    assert optimizer.state[a]["trace"].to_dense().item() == 0.25
    optimizer.zero_grad()
    optimizer.add_traces(Traces(0.5))
    assert [optimizer.state[p]["trace"].to_dense().item() for p in (a, b)] == [0.125, 0.75]


def test_a_step_without_traces_ends_them():
    weight = ones(1)
    optimizer = TDL([weight], lr=0.5)
    weight.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step(1.0, traces=Traces(0.5))
    optimizer.step(1.0)
    assert weight.item() == 2.0
    optimizer.step(1.0, traces=Traces(0.5))
    assert weight.item() == 2.5


def test_a_table_that_is_read_sparsely_now_and_densely_then():
    weights = []
    for kinds in ("sd", "ds", "dd", "ss"):
        weight = ones(3, 1)
        optimizer = TDL([weight], lr=0.5)
        for kind, index in zip(kinds + "s", (0, 1, 2), strict=True):
            weight.grad = row(index) if kind == "s" else row(index).to_dense()
            optimizer.step(1.0, traces=Traces(0.5))
        weights.append(weight.flatten().tolist())
    assert weights == [[1.875, 1.75, 1.5]] * 4


# ---- sparse gradients with several sparse dimensions


@rules
@pytest.mark.parametrize(
    ("shape", "traces"), [((5, 4), None), ((3, 4, 2), TRACES), ((5,), Traces(0.5, resetting=True, threshold=0.3))]
)
def test_gathered_entries_learn_as_with_dense_gradients(name, shape, traces):
    if traces and not RULES[name].cls.traced:
        pytest.skip("not defined with traces")
    made = []
    for sparsely in (True, False):
        generator = torch.Generator().manual_seed(0)
        weight = nn.Parameter(torch.linspace(-1, 1, math.prod(shape), dtype=torch.float64).reshape(shape))
        optimizer = make(name, [weight])
        for delta in (0.5, -0.25, 1.0, 0.125):
            index = torch.randint(0, shape[-1], (*shape[:-1], 2), generator=generator)
            optimizer.zero_grad()
            torch.gather(weight, len(shape) - 1, index, sparse_grad=sparsely)[:2].sum().backward()
            assert weight.grad.is_sparse is sparsely
            optimizer.step(delta, traces=traces)
        made.append(tensors(optimizer))
    (ours,), (theirs,) = made
    assert ours.keys() == theirs.keys()
    for key in ours:
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-12, atol=1e-15, msg=key)


def test_only_gathered_entries_move_as_with_sgd():
    table, other = ones(5, 4), ones(5, 4)
    index = torch.tensor([[0, 1], [2, 2], [3, 0], [1, 1], [0, 3]])
    optimizer = TDL([table], lr=0.1)
    torch.gather(table, 1, index, sparse_grad=True).sum().backward()
    optimizer.step(0.5)
    (-0.5 * torch.gather(other, 1, index).sum()).backward()
    torch.optim.SGD([other], lr=0.1).step()
    torch.testing.assert_close(table, other)
    assert int((table != 1).sum()) == 8


def test_other_layouts_and_precisions_are_refused():
    weight = nn.Parameter(torch.eye(3).to_sparse_csr())
    optimizer = TDL([weight])
    weight.grad = torch.eye(3).to_sparse_csr()
    with pytest.raises(ValueError, match=r"a gradient is torch.sparse_csr; allowed are"):
        optimizer.step(1.0)
    for dtype in (torch.float16, torch.bfloat16, torch.complex64):
        with pytest.raises(ValueError, match=rf"a parameter is {dtype}; rules learn torch.float32 and torch.float64"):
            TCL([nn.Parameter(torch.zeros(2, dtype=dtype))])


# ---- what is not finite


@rules
@pytest.mark.parametrize(("bad", "kind"), [(math.inf, "dense"), (math.nan, "sparse"), (-math.inf, "next")])
def test_a_gradient_that_is_not_finite_is_refused_and_changes_nothing(name, bad, kind):
    weight = ones(3, 1)
    optimizer = make(name, [weight])
    weight.grad = torch.ones_like(weight)
    traces = TRACES if name in TRACED else None
    optimizer.step(0.5, traces=traces)
    before = tensors(optimizer)
    if kind == "next":
        if not optimizer.looks_ahead:
            return
        words = {"next_grads": [row(1, value=bad)]}
    else:
        words = {}
        weight.grad = row(1, value=bad) if kind == "sparse" else row(1, value=bad).to_dense()
    with pytest.raises(ValueError, match=r"a (next )?gradient of shape \(3, 1\) holds inf or nan"):
        optimizer.step(0.5, traces=traces, **words)
    if traces and kind != "next":
        with pytest.raises(ValueError, match="holds inf or nan"):
            optimizer.add_traces(traces)
    assert equal(tensors(optimizer), before)


@rules
@pytest.mark.parametrize(
    ("delta", "size", "before"), [(1e30, 1.0, 0), (0.5, 1e20, 0), (0.5, 1e20, 3), (0.5, 3e38, 3), (-1e38, 1e38, 0)]
)
def test_large_numbers_change_no_other_weight_and_leave_nothing_infinite(name, delta, size, before):
    """In single precision, whose largest number is 3.4e38."""
    used, other = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(2))
    optimizer = make(name, [used, other])
    for _ in range(before):
        used.grad = torch.tensor([0.0, 1.0, 2.0, 0.0])
        optimizer.step(0.25)
    start = copy.deepcopy(optimizer.state_dict()), used.detach().clone()
    used.grad = torch.tensor([0.0, size, 1.0, 0.0])
    error = None
    try:
        optimizer.step(delta)
    except DivergenceError as refused:
        error = str(refused)
    if error:
        assert torch.equal(used, start[1])
        assert optimizer.state_dict()["state"].keys() == start[0]["state"].keys()
        assert f"{type(optimizer).__name__} diverged, lower lr" in error
        assert f"delta {delta:g}" in error
    assert [used[0].item(), used[3].item(), *other.tolist()] == [1.0] * 4
    for fields in tensors(optimizer):
        assert all(torch.isfinite(tensor).all() for tensor in fields.values())
    used.grad = torch.tensor([0.0, 1.0, 1.0, 0.0])
    with contextlib.suppress(DivergenceError):  # an h of 1e30 lets no step size be finite
        optimizer.step(0.25)
    assert torch.isfinite(used).all()


def test_a_refused_step_leaves_all_groups_traces_and_shared_numbers_as_they_were():
    a, b = (nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = AlphaBounds([{"params": [a]}, {"params": [b]}])
    a.grad, b.grad = torch.ones(2), torch.ones(2)
    optimizer.step(0.5, traces=TRACES)
    before = tensors(optimizer)
    a.grad, b.grad = torch.full((2,), 2.0), torch.full((2,), 1e30)
    with pytest.raises(DivergenceError):
        optimizer.step(0.5, traces=TRACES)
    assert equal(tensors(optimizer), before)


def test_what_helps_names_the_hyper_parameters_of_the_rule():
    found = {cls: cls([ones(1)]).remedy() for cls in (TDL, IDBD, Autostep, SMD, ELK1, AdaptiveObGD)}
    assert found == {
        TDL: "lower lr",
        IDBD: "lower lr or theta",
        Autostep: "lower lr or mu",
        SMD: "lower lr or theta or mu",
        ELK1: "lower lr or theta",
        AdaptiveObGD: "lower lr",
    }
    assert make("elk1", [ones(1)]).remedy() == "lower lr or theta, or set extra_x to false"
    with pytest.raises(ValueError, match=r"delta is nan; .* \(if values diverged, lower lr or theta\)"):
        IDBD([ones(1)]).step(math.nan)


def test_the_state_of_a_refused_first_step_is_not_kept():
    """Else a lower lr would not reach the weights, which have begun with the higher one."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = IDBD([weight], lr=1e5)
    weight.grad = torch.full((2,), 1e35)
    with pytest.raises(DivergenceError):
        optimizer.step(1.0)
    optimizer.param_groups[0]["lr"] = 0.5
    weight.grad = torch.ones(2)
    optimizer.step(1.0)
    assert weight.tolist() == pytest.approx([1.5, 1.5])


class Past(NamedTuple):
    now: Any
    before: Any
    w: Any


class Memorising(StepSize):
    """Remembers what it had: its new state is made of old state and weights."""

    State = Past

    def __init__(self, params, lr: float = 1.0):
        super().__init__(params, lr=lr)

    @staticmethod
    def initial(p):
        return Past(0.0, 0.0, 0.0)

    @staticmethod
    def update(p, w, s, t):
        return w + t.e, Past(s.now + 1, s.now, w)


@pytest.mark.parametrize("dense", [True, False])
def test_a_rule_sees_nothing_of_what_was_written_a_moment_ago(dense):
    weight = ones(2, 1)
    optimizer = Memorising([weight])
    for _ in range(2):
        weight.grad = torch.ones_like(weight) if dense else torch.ones_like(weight).to_sparse(1)
        optimizer.step(1.0)
    now, before, w = (optimizer.state[weight][name][0].item() for name in Past._fields)
    assert (now, before, w) == (2, 1, 2)


# ---- numbers


@pytest.mark.parametrize(
    "scalar", [np.float32, np.float64, torch.tensor, lambda u: np.array([u]), lambda u: torch.tensor([[u]])]
)
def test_numpy_and_tensor_scalars_are_numbers(scalar):
    made = []
    for kind in (float, scalar):
        weight = ones(1)
        optimizer = IDBD([weight], lr=kind(0.25), theta=kind(0.5))
        assert optimizer.defaults["lr"] == 0.25
        assert isinstance(optimizer.defaults["lr"], float)
        for delta in (0.5, -0.25):
            weight.grad = torch.ones_like(weight)
            optimizer.step(kind(delta), kind(0.75))
        optimizer.param_groups[0]["lr"] = kind(0.25)
        optimizer.step(kind(0.5))
        made.append(tensors(optimizer))
    assert equal(*made)
    assert RpropMinus([ones(1)], lr_max=np.int64(3)).defaults["lr_max"] == 3
    assert IDBD([ones(1)], guards=np.bool_(False)).defaults["guards"] is False
    with pytest.raises(ValueError, match=r"optimizer.lr is nan"):
        TDL([ones(1)], lr=np.float32("nan"))
    with pytest.raises(ValueError, match=r"optimizer.lr is array"):
        TDL([ones(1)], lr=np.array([0.1, 0.2]))


@pytest.mark.parametrize(
    ("delta", "sentence"),
    [
        (torch.ones(4), r"delta has the shape \(4,\).* minibatch .*\(deltas \* values\).sum\(\).backward\(\)"),
        (np.ones((2, 1)), r"delta has the shape \(2, 1\)"),
        (torch.empty(0), r"delta has the shape \(0,\)"),
        ("big", "delta is 'big'; a step needs a finite number"),
        (True, "delta is True; a step needs a finite number"),
        ([0.5], r"delta is \[0.5\]; a step needs a finite number"),
        (torch.tensor(math.inf), "delta is inf; a step needs a finite number"),
    ],
)
def test_a_delta_that_is_no_number_is_answered_with_a_sentence(delta, sentence):
    weight = ones(2)
    weight.grad = torch.ones_like(weight)
    with pytest.raises(ValueError, match=sentence):
        TDL([weight]).step(delta)
    assert weight.tolist() == [1, 1]


@pytest.mark.parametrize("bad", [1.5, -0.5, math.nan, math.inf, "1", True])
@pytest.mark.parametrize("name", ["decay", "threshold"])
def test_traces_are_checked(name, bad):
    with pytest.raises(ValueError, match=rf"traces: {name} is .*; allowed are numbers from 0 to 1"):
        Traces(**{"decay": 0.5, name: bad})
    Traces(0), Traces(1), Traces(np.float32(0.5))
    with pytest.raises(ValueError, match="replacing is 2"):
        Traces(0.5, replacing=2)


# ---- states


@rules
def test_a_loaded_state_is_a_copy(name):
    first, second = ones(3), ones(3)
    one, two = make(name, [first]), make(name, [second])
    traces = TRACES if name in TRACED else None
    first.grad = torch.ones_like(first)
    one.step(0.5, traces=traces)
    before = tensors(one)
    two.load_state_dict(one.state_dict())
    second.grad = torch.ones_like(second)
    two.step(0.5, traces=traces)
    two.param_groups[0]["lr"] = 7.0
    assert equal(tensors(one), before)
    assert one.param_groups[0]["lr"] != 7.0


def test_the_state_of_another_rule_is_refused():
    weight = ones(3)
    weight.grad = torch.ones_like(weight)
    one, two = TCL([weight]), IDBD([weight])
    one.step(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="the saved state of IDBD lacks beta, h"):
        two.step(0.5)


def test_a_warning_of_lr_is_given_once_and_by_hand_too():
    weight = ones(2)
    optimizer = IDBD([weight], lr=0.1)
    weight.grad = torch.ones_like(weight)
    optimizer.step(0.5)
    for lr in (0.05, 0.01):
        optimizer.param_groups[0]["lr"] = lr
    with pytest.warns(UserWarning, match="a new lr has no effect on weights that began with another one"):
        optimizer.step(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step(0.5)
        other = copy.deepcopy(optimizer)
        other.step(0.5)
        optimizer.param_groups[0]["lr"] = 0.3
        optimizer.step(0.5)


# ---- formulas


def test_tcl_delta_counts_the_error_of_every_weight_that_takes_part():
    """x = (2, 0), then (0, 1) with a trace of (1, 0): N counts δ once for each, A its size; by hand."""
    weight = nn.Parameter(torch.zeros(3, 1, dtype=torch.float64))
    optimizer = TCLDelta([weight], lr=0.5)
    weight.grad = row(0, value=2.0)
    optimizer.step(0.5, traces=Traces(0.5))
    weight.grad = row(1)
    optimizer.step(-0.25, traces=Traces(0.5))
    state = optimizer.state[weight]
    assert state["N"].flatten().tolist() == pytest.approx([0.25, -0.25, 0])
    assert state["A"].flatten().tolist() == pytest.approx([0.75, 0.25, 0])
    assert weight.flatten().tolist() == pytest.approx([0.5 * 0.5 * 2 + 0.5 * 1 * -0.25 * 1, 0.5 * -0.25, 0])


@pytest.mark.parametrize("rule", [TDL, TCL, TCLDelta])
def test_cross_entropy_is_the_gradient_of_the_cross_entropy(rule):
    """Of a logistic unit with target t: -dE/dw = (t - V) x, where the squared error has (t - V) V (1 - V) x."""
    changes = []
    for cross_entropy in (True, False):
        layer = nn.Linear(3, 1).double()
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[0.5, -1.0, 2.0]]))
            layer.bias.zero_()
        optimizer = rule(layer.parameters(), lr=0.125, cross_entropy=cross_entropy)
        f = layer(torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)).squeeze()
        v = torch.sigmoid(f)
        loss = nn.functional.binary_cross_entropy(v, torch.ones_like(v)) if cross_entropy else (1 - v) ** 2 / 2
        (expected,) = torch.autograd.grad(-0.125 * loss, layer.weight, retain_graph=True)
        before = layer.weight.detach().clone()
        f.backward()
        optimizer.step(1 - v.item(), slope=(v * (1 - v)).item())
        torch.testing.assert_close(layer.weight.detach() - before, expected)
        changes.append(expected)
    assert not torch.equal(*changes)


# ---- defaults


def regression_error(optimizer, weight, task, seed, steps=1000):
    """Mean squared error over the last tenth of a noiseless regression on normally distributed inputs."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(len(weight), dtype=weight.dtype, generator=generator)
    logistic, errors = task == "logistic", []
    for _ in range(steps):
        x = torch.randn(len(weight), dtype=weight.dtype, generator=generator)
        v, goal = float(weight.detach() @ x), float(target @ x)
        v, goal = (1 / (1 + math.exp(-v)), 1 / (1 + math.exp(-goal))) if logistic else (v, goal)
        weight.grad = x
        optimizer.step(goal - v, v * (1 - v) if logistic else 1.0)
        errors.append((goal - v) ** 2)
    return sum(errors[-steps // 10 :]) / (steps // 10)


@pytest.mark.parametrize(
    ("cls", "seed"),
    few([(cls, seed) for cls in CLASSES for seed in range(3)], *((cls, 0) for cls in CLASSES)),
    ids=lambda p: getattr(p, "__name__", p),
)
def test_defaults_learn_a_regression(cls, seed):
    """Five inputs, as a newcomer would try a rule; Rprop is made for whole batches and only stays finite."""
    weight = nn.Parameter(torch.zeros(5))
    task = "logistic" if cls in (IDBDnl, SMD) else "linear"
    error = regression_error(cls([weight]), weight, task, seed)
    limit = math.inf if issubclass(cls, RpropMinus) else 0.05
    assert error < limit


@pytest.mark.parametrize("cls", few(CLASSES, *REPRESENTATIVES), ids=lambda cls: cls.__name__)
def test_defaults_stay_finite_on_twenty_inputs(cls):
    weight = nn.Parameter(torch.zeros(20))
    assert regression_error(cls([weight]), weight, "linear", 0, 500) < (1e4 if issubclass(cls, RpropMinus) else 20)


@pytest.mark.parametrize(
    ("scale", "lambda_"),
    few([(scale, x) for scale in (1.0, 10.0, 100.0) for x in (0.0, 0.5, 0.95)], (100.0, 0.0), (100.0, 0.5)),
)
def test_swift_td_stays_finite_for_large_features(scale, lambda_):
    generator = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.zeros(8))
    optimizer = SwiftTD([weight])
    for _ in range(1000):
        weight.grad = scale * torch.rand(8, generator=generator)
        delta = float(torch.randn((), generator=generator)) - float(weight.grad @ weight.detach())
        optimizer.step(delta, traces=Traces(0.9 * lambda_, resetting=True) if lambda_ else None)
        assert torch.isfinite(weight).all()


@pytest.mark.parametrize("rule", [RpropMinus, IDBDnl, TCL, ObGD], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("lr", [0.0, -1.0, 1.1e6, 1e30, math.inf, math.nan, True, "0.1"])
def test_step_sizes_have_a_range(rule, lr):
    with pytest.raises(ValueError, match=r"optimizer.lr is .*; it must be a number above 0 and at most 1e\+06"):
        rule([torch.nn.Parameter(torch.zeros(2))], lr=lr)
    rule([torch.nn.Parameter(torch.zeros(2))], lr=1e6)


def test_meta_step_sizes_have_a_range():
    with pytest.raises(ValueError, match=r"optimizer.theta is 1e\+30; it must be a number of at least 0 and at most"):
        IDBDnl([torch.nn.Parameter(torch.zeros(2))], theta=1e30)
    with pytest.raises(ValueError, match=r"optimizer.lr_max is 1e\+30"):
        RpropMinus([torch.nn.Parameter(torch.zeros(2))], lr_max=1e30)
