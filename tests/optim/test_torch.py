"""Rules are torch optimizers: whoever knows torch.optim finds nothing surprising."""

import copy
import io
import math
import pickle
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import rlgames.optim
from rlgames.optim import IDBD, TCL, TDL, AlphaBounds, StepSize
from tests.support import RULES

rules = pytest.mark.parametrize("name", RULES)


def make(name, params, **changes):
    cls, hyper, _ = RULES[name]
    return cls(params, **hyper | changes)


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 1).double()


def regress(model, optimizer, first=0, steps=5):
    """Plain supervised regression, one example at a time."""
    generator = torch.Generator().manual_seed(9)
    xs = torch.randn(first + steps, 3, dtype=torch.float64, generator=generator)
    for x in xs[first:]:
        y = model(x).squeeze()
        optimizer.zero_grad()
        y.backward()
        optimizer.step((x.sum().sin() - y).item())


def parameters(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(parameters(a), parameters(b), strict=True))


def test_all_rules_can_be_imported_from_the_package():
    for cls, *_ in RULES.values():
        assert getattr(rlgames.optim, cls.__name__) is cls
        assert cls.__name__ in rlgames.optim.__all__
        assert set(cls.units) <= set(StepSize.units)


@rules
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dense_layers_learn(name, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)
    optimizer = make(name, model.parameters())
    before = parameters(model)
    x = torch.randn(3, dtype=dtype)
    for _ in range(3):
        y = model(x).squeeze()
        optimizer.zero_grad()
        y.backward()
        optimizer.step(0.1)
    assert model(x).item() > y.item()  # a positive error raises the value
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.isfinite(new).all()
        assert not torch.equal(old, new)
        assert all(tensor.dtype == dtype for tensor in optimizer.state[new].values())


@rules
def test_embeddings_sparse_and_dense_are_equal(name):
    models = []
    for sparse in (True, False):
        torch.manual_seed(0)
        table = nn.EmbeddingBag(6, 2, mode="sum", sparse=sparse).double()
        optimizer = make(name, table.parameters())
        for k in range(4):
            optimizer.zero_grad()
            table(torch.tensor([[k, k + 1, k, 2]])).sum().backward()
            optimizer.step(0.3 - 0.2 * k, 0.5)
        models.append(table)
    torch.testing.assert_close(*(m.weight for m in models), rtol=1e-13, atol=0)


@rules
def test_state_dict_continues_identically(name):
    model = linear()
    optimizer = make(name, model.parameters())
    regress(model, optimizer)
    buffer = io.BytesIO()
    torch.save((model.state_dict(), optimizer.state_dict()), buffer)
    buffer.seek(0)
    weights, state = torch.load(buffer, weights_only=True)
    other = linear(1)
    other.load_state_dict(weights)
    resumed = make(name, other.parameters(), lr=0.5)
    resumed.load_state_dict(state)
    regress(model, optimizer, 5)
    regress(other, resumed, 5)
    assert equal(model, other)
    assert resumed.param_groups[0]["lr"] == RULES[name][1]["lr"]


@rules
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies_continue_identically(name, clone):
    model = linear()
    optimizer = make(name, model.parameters())
    regress(model, optimizer)
    other, copied = clone((model, optimizer))
    assert copied.defaults.items() >= RULES[name][1].items()
    regress(model, optimizer, 5)
    regress(other, copied, 5)
    assert equal(model, other)
    copied.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    assert copied.param_groups[1]["lr"] == RULES[name][1]["lr"]
    copied.state_dict()


@rules
def test_missing_options_of_an_old_state_dict_get_their_defaults(name):
    model = linear()
    optimizer = make(name, model.parameters())
    regress(model, optimizer)
    option = list(RULES[name][1])[-1]
    saved = optimizer.state_dict()
    del saved["param_groups"][0][option]
    resumed = make(name, model.parameters())
    with pytest.warns(UserWarning, match=option):
        resumed.load_state_dict(saved)
    assert resumed.param_groups[0][option] == RULES[name][1][option]
    regress(model, resumed, 5)


@rules
def test_missing_state_is_named(name):
    model = linear()
    optimizer = make(name, model.parameters())
    regress(model, optimizer)
    fields = RULES[name][0].State._fields
    if len(fields) < 2:
        return
    saved = copy.deepcopy(optimizer.state_dict())
    for state in saved["state"].values():
        del state[fields[-1]]
    resumed = make(name, model.parameters())
    resumed.load_state_dict(saved)
    with pytest.raises(ValueError, match=fields[-1]):
        regress(model, resumed, 5)


def test_groups_have_hyper_parameters_of_their_own():
    a, b = (nn.Parameter(torch.zeros(1, dtype=torch.float64)) for _ in range(2))
    optimizer = TDL([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.25)
    a.grad = b.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step(1.0)
    assert (a.item(), b.item()) == (0.5, 0.25)
    with pytest.raises(ValueError, match=r"optimizer.lr is -1"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))], "lr": -1})


def test_alpha_bounds_keep_a_bound_per_group():
    a, b = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    optimizer = AlphaBounds([{"params": [a]}, {"params": [b]}])
    a.grad, b.grad = torch.full((2,), 2.0), torch.full((2,), 0.5)
    optimizer.step(1.0)
    assert a.tolist() == [0.25, 0.25]
    assert b.tolist() == [0.5, 0.5]


@rules
def test_schedulers_set_the_lr(name):
    model = linear()
    optimizer = make(name, model.parameters())
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    regress(model, optimizer, steps=1)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == RULES[name][1]["lr"] / 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            regress(model, optimizer, steps=1)
            scheduler.step()
    expected = [f"{type(optimizer).__name__} learns a step size for each weight"] * optimizer.lr_is_start
    assert [str(warning.message).split(":")[0] for warning in caught] == expected
    assert {Path(warning.filename).name for warning in caught} <= {"lr_scheduler.py", "test_torch.py"}


def test_a_scheduler_scales_the_steps_of_tcl():
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = TCL([weight], lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    weight.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step(1.0)
    scheduler.step()
    optimizer.step(1.0)
    assert weight.item() == pytest.approx(0.75)


@rules
def test_closures(name):
    model, plain = linear(), linear()
    optimizer, expected = (make(name, m.parameters()) for m in (model, plain))
    x, calls = torch.ones(3, dtype=torch.float64), []

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        y = model(x).squeeze()
        y.backward()
        return y.item()

    with torch.no_grad():
        result = optimizer.step(0.25, closure=closure)
    y = plain(x).squeeze()
    y.backward()
    expected.step(0.25)
    assert calls == [True]
    assert result == y.item()
    assert equal(model, plain)


@rules
def test_parameters_without_gradient_are_left_alone(name):
    used, unused = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    optimizer = make(name, [used, unused])
    used.grad = torch.ones(2)
    optimizer.step(0.5)
    assert unused.tolist() == [0, 0]
    assert unused not in optimizer.state


@rules
def test_empty_and_zero_gradients(name):
    weight = nn.Parameter(torch.ones(3, 1))
    optimizer = make(name, [weight])
    for grad in (
        torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.long), torch.empty(0, 1), (3, 1), check_invariants=True),
        torch.sparse_coo_tensor([[1]], torch.zeros(1, 1), (3, 1), check_invariants=True),
        torch.zeros(3, 1),
    ):
        weight.grad = grad
        optimizer.step(0.5)
        assert weight.grad is grad
        assert weight.flatten().tolist() == [1, 1, 1]
    assert all(torch.isfinite(tensor).all() for tensor in optimizer.state[weight].values())


@rules
def test_the_gradient_is_not_modified(name):
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.tensor([1.0, 0.0, -2.0])
    make(name, [weight]).step(0.5)
    assert weight.grad.tolist() == [1, 0, -2]


@rules
@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "x"], ids=str)
def test_bad_hyper_parameters(name, bad):
    cls, hyper, _ = RULES[name]
    for key, good in hyper.items():
        if isinstance(good, bool) and bad is True:
            continue
        with pytest.raises(ValueError, match=rf"optimizer\.{key} is .*must be") as error:
            cls([nn.Parameter(torch.zeros(1))], **{key: bad})
        assert repr(bad) in str(error.value)


@rules
def test_lr_must_be_above_0_and_misspelt_words_fail(name):
    cls, *_ = RULES[name]
    with pytest.raises(ValueError, match=r"optimizer\.lr is 0"):
        cls([nn.Parameter(torch.zeros(1))], lr=0)
    with pytest.raises(TypeError, match="thetta"):
        cls([nn.Parameter(torch.zeros(1))], thetta=1.0)


@rules
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_steps_that_are_no_numbers_are_refused(name, bad):
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = make(name, [weight])
    with pytest.raises(ValueError, match="delta is"):
        optimizer.step(bad)
    with pytest.raises(ValueError, match="slope is"):
        optimizer.step(0.1, bad)
    with pytest.raises(TypeError, match="step was given no delta; it needs the TD error"):
        optimizer.step()
    with pytest.raises(TypeError, match="step was given a function; it needs the TD error"):
        optimizer.step(lambda: 1.0)
    assert weight.tolist() == [1, 1]


def test_idbd_without_meta_step_is_sgd():
    model, plain = linear(), linear()
    regress(model, IDBD(model.parameters(), lr=0.1, theta=0.0))
    regress(plain, TDL(plain.parameters(), lr=0.1))
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-14, atol=0)
