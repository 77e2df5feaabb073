"""What holds for every rule: found in conf/optimizer, tried on random steps."""

import copy

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from rlgames.optim import StepSize
from rlgames.traces import Traces
from tests.support import RULES

SIZE = 5

rules = pytest.mark.parametrize("name", RULES)
small = settings(max_examples=5, deadline=None)
number = st.floats(-1, 1).map(lambda u: round(u, 3))
step = st.tuples(
    number,
    st.sampled_from([0.1, 0.25, 0.75, 1.0]),
    st.lists(st.tuples(st.integers(0, SIZE - 1), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=4),
)
steps = st.lists(step, min_size=1, max_size=6)


def make(name, dtype=torch.float64, sparse=True):
    """A parameter of five weights and its optimizer."""
    cls, hyper, _ = RULES[name]
    weight = torch.nn.Parameter(torch.linspace(-0.5, 0.5, SIZE, dtype=dtype)[:, None])
    return weight, cls([weight], **hyper), sparse


def take(made, steps, traces=None, ahead=False):
    """Steps of (delta, slope, [(index, x), ...]); ``ahead`` makes those of the next step the next position."""
    weight, optimizer, sparse = made
    grads = []
    for _, _, entries in steps:
        i, x = [[i for i, _ in entries]], torch.tensor([[x] for _, x in entries], dtype=weight.dtype)
        grad = torch.sparse_coo_tensor(i, x, weight.shape, check_invariants=True)
        grads.append(grad if sparse else grad.to_dense())
    for k, (delta, slope, _) in enumerate(steps):
        weight.grad = grads[k]
        optimizer.step(delta, slope, traces=traces, next_grads=grads[k + 1 : k + 2] if ahead else ())
    return made


def tensors(made):
    weight, optimizer, _ = made
    return {"weight": weight.detach(), **optimizer.state[weight]}


def same(a, b, rtol=1e-12, atol=1e-13):
    a, b = tensors(a), tensors(b)
    assert a.keys() == b.keys()
    for key in a:
        torch.testing.assert_close(a[key].double(), b[key].double(), rtol=rtol, atol=atol)


@rules
@small
@given(steps=steps)
def test_no_error_changes_no_weight(name, steps):
    made = take(make(name), steps)
    before = made[0].detach().clone()
    take(made, [(0.0, *rest) for _, *rest in steps])
    assert torch.equal(made[0], before)


@rules
@small
@given(steps=steps, order=st.randoms(use_true_random=False))
def test_the_order_of_indices_does_not_matter(name, steps, order):
    shuffled = [(delta, slope, order.sample(entries, len(entries))) for delta, slope, entries in steps]
    same(take(make(name), steps), take(make(name), shuffled))


@rules
@small
@given(steps=steps)
def test_a_repeated_index_is_one_weight_with_the_sum(name, steps):
    apart = [(delta, slope, [(i, x / 2) for i, x in entries for _ in (0, 1)]) for delta, slope, entries in steps]
    same(take(make(name), steps), take(make(name), apart))


@rules
@small
@given(steps=steps)
def test_dense_gradients_do_what_sparse_ones_do(name, steps):
    same(take(make(name), steps), take(make(name, sparse=False), steps))


@pytest.mark.parametrize("name", [name for name, (cls, *_) in RULES.items() if cls.looks_ahead or cls.transient])
@small
@given(steps=steps, threshold=st.sampled_from([0.0, 0.3]), game=st.integers(1, 6))
def test_dense_and_sparse_with_traces_and_next_positions(name, steps, threshold, game):
    made = [make(name, sparse=sparse) for sparse in (True, False)]
    for part in (steps[:game], steps[game:]):
        for one in made:
            one[1].end_traces()
            take(one, part, Traces(0.5, threshold=threshold), ahead=True)
            one[1].state[one[0]].pop("trace", None)
    same(*made)


@rules
@small
@given(steps=steps)
def test_single_precision_is_near(name, steps):
    if "rprop" in name:  # the sign of a difference of 0 is not a continuous thing
        steps = [(round(delta, 1), *rest) for delta, *rest in steps]
    if name == "swift_td":  # nor is a sum of step sizes that is exactly the one from which on they are cut
        steps = [(delta, 0.97 * slope, entries) for delta, slope, entries in steps]
    same(take(make(name), steps), take(make(name, torch.float32), steps), rtol=2e-4, atol=2e-5)


@rules
@small
@given(steps=steps)
def test_weights_that_take_no_part_do_not_move(name, steps):
    made = take(make(name), steps)
    before = copy.deepcopy(tensors(made))
    touched = {0, 2}
    take(made, [(delta, slope, [(i if i in touched else 0, x) for i, x in entries]) for delta, slope, entries in steps])
    for key, tensor in tensors(made).items():
        if tensor.shape:
            for i in set(range(SIZE)) - touched:
                assert torch.equal(tensor[i], before[key][i]), key


@rules
@small
@given(steps=steps)
def test_step_sizes_are_positive_numbers(name, steps):
    weight, optimizer, _ = take(make(name), steps)
    group = optimizer.param_groups[0]
    sizes = torch.as_tensor(optimizer.step_size(optimizer.hyper(group), optimizer.state_of(weight, group)))
    assert torch.isfinite(sizes).all()
    assert (sizes >= 0).all()


@rules
def test_doubling_lr_doubles_the_first_step_of_rules_without_sums(name):
    cls, hyper, _ = RULES[name]
    if cls.total is not StepSize.total or name == "alpha_bounds":
        pytest.skip("its first step is normalised")
    moves = []
    for factor in (1, 2):
        made = make(name)
        optimizer = cls([made[0]], **hyper | {"lr": hyper["lr"] * factor})
        start = made[0].detach().clone()
        take((made[0], optimizer, True), [(0.5, 0.75, [(1, 1.0), (3, 2.0)])])
        moves.append(made[0].detach() - start)
    torch.testing.assert_close(2 * moves[0], moves[1])
