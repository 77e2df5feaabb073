"""Against other people's programs: rules that exist elsewhere take the same steps on random streams."""

import numpy as np
import pytest
import torch

from rlgames.optim import IDBD, TIDBD, Autostep, AutoTIDBD, OrdinaryTIDBD, SwiftTD
from rlgames.traces import Traces
from tests.support import few

FEATURES, STEPS = 12, 400


def positions(seed):
    """Positions of some active features out of 12, and the reward for reaching each: feature 0 is worth something."""
    rng = np.random.default_rng(seed)
    active = [np.unique(rng.integers(0, FEATURES, 4)) for _ in range(STEPS)]
    return active, rng.standard_normal(STEPS) + [1.0 * (0 in i) for i in active]


def run_swift_td(step, lambda_, hyper, stream=None):
    """Largest difference between the values of ours and those that ``step(active, reward)`` returns."""
    weight = torch.nn.Parameter(torch.zeros(FEATURES, 1, dtype=torch.float64))
    ours = SwiftTD([weight], **hyper)
    previous, gap, values = None, 0.0, []
    for active, reward in zip(*(stream or positions(7)), strict=True):
        theirs = step(active, float(reward))
        with torch.no_grad():
            value = weight[active].sum().item()
        gap = max(gap, abs(value - theirs))
        values.append(value)
        if previous is not None:  # on seeing this position learn from the one before
            ones = torch.ones(len(previous), 1, dtype=torch.float64)
            weight.grad = torch.sparse_coo_tensor(previous[None], ones, weight.shape, check_invariants=True)
            delta = float(reward) + 0.9 * value - weight.detach()[previous].sum().item()
            ours.step(delta, traces=Traces(0.9 * lambda_) if lambda_ else None)
        previous = active
    assert np.std(values) > 0.1
    return gap


@pytest.mark.parametrize(
    ("lambda_", "eta", "theta"),
    few(
        [(lambda_, *pair) for lambda_ in (0.5, 0.95) for pair in ((0.1, 0.02), (0.5, 0.02), (5.0, 0.005))],
        *((0.95, 0.1, 0.02), (0.5, 5.0, 0.005)),
    ),
)
def test_swift_td_is_that_of_its_authors(lambda_, eta, theta):
    """Their sparse class, in single precision, told never to drop a trace; at η = 0.1 most steps are cut, at 5 none."""
    package = pytest.importorskip("swifttd")
    hyper = {"lr": 0.05, "theta": theta, "eta": eta, "decay": 0.99}
    sparse = package.SwiftTD(FEATURES, lambda_, 0.05, 0.9, 0.0, eta, 0.99, theta, 1e-10)
    assert run_swift_td(lambda i, r: sparse.step([(int(k), 1.0) for k in i], r), lambda_, hyper) < 1e-5


@pytest.mark.parametrize(("eta", "same"), [(5.0, True), (0.1, False)])
def test_their_dense_class_is_another_rule_where_steps_are_cut(eta, same):
    package = pytest.importorskip("swifttd")
    hyper = {"lr": 0.05, "theta": 0.005, "eta": eta, "decay": 0.99}
    dense = package.SwiftTDNonSparse(FEATURES, 0.5, 0.05, 0.9, 0.0, eta, 0.99, 0.005, 1e-10)
    gap = run_swift_td(lambda i, r: dense.step([float(k in i) for k in range(FEATURES)], r), 0.5, hyper)
    assert (gap < 1e-5) is same


@pytest.mark.parametrize("apart", [True, False])
def test_without_traces_it_is_their_dense_class_while_no_weight_is_active_twice_in_a_row(apart):
    """As in Connect-4, where the tables of the players take turns; no step is cut. Their sparse class differs."""
    package = pytest.importorskip("swifttd")
    active, rewards = positions(7)
    if apart:
        active = [6 * (k % 2) + np.unique(i % 6) for k, i in enumerate(active)]
    hyper = {"lr": 0.05, "theta": 0.005, "eta": 5.0, "decay": 0.99}
    dense = package.SwiftTDNonSparse(FEATURES, 0.0, 0.05, 0.9, 0.0, 5.0, 0.99, 0.005, 1e-10)
    gap = run_swift_td(
        lambda i, r: dense.step([float(k in i) for k in range(FEATURES)], r), 0, hyper, (active, rewards)
    )
    assert (gap < 1e-5) is apart
    sparse = package.SwiftTD(FEATURES, 0.0, 0.05, 0.9, 0.0, 5.0, 0.99, 0.005, 1e-10)
    gap = run_swift_td(lambda i, r: sparse.step([(int(k), 1.0) for k in i], r), 0, hyper, (active, rewards))
    assert gap > 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_swift_td_stays_finite_where_theirs_does(seed):
    """In single precision, for features of any size. Where a step size of theirs underflows they end in NaN."""
    package = pytest.importorskip("swifttd")
    rng, size = np.random.default_rng(seed), 8
    scale, lambda_, gamma = 10 ** rng.uniform(-1, 4), float(rng.choice([0, 0.5, 0.95])), 0.9
    hyper = {"lr": float(10 ** rng.uniform(-3, -1)), "theta": float(10 ** rng.uniform(-4, -1)), "eta": 0.1}
    words = (size, lambda_, hyper["lr"], gamma, 0.0, hyper["eta"], 0.999, hyper["theta"], 1e-10)
    sparse, dense = package.SwiftTD(*words), package.SwiftTDNonSparse(*words)
    weight = torch.nn.Parameter(torch.zeros(size))
    optimizer, before, theirs = SwiftTD([weight], **hyper), None, []
    for x, reward in zip(np.abs(scale * rng.standard_normal((150, size))), rng.standard_normal(150), strict=True):
        theirs.append([sparse.step(list(enumerate(x.tolist())), reward), dense.step(x.tolist(), reward)])
        if not np.isfinite(theirs).all(0).any():
            return
        x = torch.from_numpy(x).float()
        if before is not None:
            weight.grad = before
            delta = float(reward + gamma * (x @ weight.detach()) - before @ weight.detach())
            optimizer.step(delta, traces=Traces(gamma * lambda_) if lambda_ else None)
        before = x
    assert torch.isfinite(weight).all()


ALBERTA = [  # what alberta.py prints: rule, hyper-parameters, share of features, inputs, weights after 200 steps
    (
        IDBD, {"lr": 0.05, "theta": 0.1}, 0.4,
        [-0.10290345869361772, -0.12216408320819028, 0.23271903955901507, 0.06335030254194862, -0.1803567596944049],
    ),
    (
        Autostep, {"lr": 0.05, "mu": 0.1, "tau": 10}, 0.4,
        [-0.1438684892236779, -0.0989785232959548, 0.21838321063114563, 0.05925301129173022, -0.11798521864693612],
    ),
    (
        Autostep, {"lr": 0.4, "mu": 0.1, "tau": 10}, 1.0,
        [0.26422049858229, 0.16087973240064457, -0.20491937709448393, 0.7177331561329083, -0.6473045625880331],
    ),
    (
        TIDBD, {"lr": 0.05, "theta": 0.1}, 0.4,
        [-0.09248398621639353, -0.11379941967905438, 0.2871610112961207, -0.07598871760183101, -0.3249334283910912],
    ),
    (
        OrdinaryTIDBD, {"lr": 0.05, "theta": 0.1}, 0.4,
        [-0.10966936397380778, -0.13114158745131022, 0.2880575695562584, -0.07365782028250578, -0.32194565876110914],
    ),
    (
        AutoTIDBD, {"lr": 0.05, "theta": 0.1, "tau": 10}, 0.4,
        [-0.10974574236570334, -0.1310340993939576, 0.2881122720791609, -0.07362262748802095, -0.32192502299051284],
    ),
    (
        AutoTIDBD, {"lr": 0.5, "theta": 0.1, "tau": 10}, 0.4,
        [-0.1307678463344928, -0.26438667873890154, 1.8560072092641349, -0.4037221506205242, -0.5904747113320354],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "hyper", "share", "expected"), ALBERTA, ids=lambda p: getattr(p, "__name__", ""))
def test_rules_of_the_alberta_framework(cls, hyper, share, expected):
    """Theirs begins AutoTIDBD with v = 1 and has in Autostep a bias that is always on: here a sixth feature of 1."""
    rng, size = np.random.default_rng(11), (201, 5)
    x = (rng.standard_normal(size) * (rng.random(size) < share)).astype(np.float32)
    deltas = (0.5 * rng.standard_normal(200)).astype(np.float32)
    if cls is Autostep:
        x = np.concatenate([x, np.ones((201, 1), np.float32)], 1)
    features = torch.from_numpy(x).double()[:, :, None]
    weight = torch.nn.Parameter(torch.zeros_like(features[0]))
    optimizer = cls([weight], **hyper)
    if cls is AutoTIDBD:
        optimizer.state_of(weight, optimizer.param_groups[0]).v.fill_(1.0)
    temporal = {"traces": Traces(0.45)} if issubclass(cls, TIDBD | AutoTIDBD) else {}
    for now, after, delta in zip(features[:-1], features[1:], deltas, strict=True):
        weight.grad = now.to_sparse(1)
        optimizer.step(float(delta), **temporal, next_grads=[0.9 * after.to_sparse(1)])
    assert weight.flatten().tolist()[:5] == pytest.approx(expected, rel=1e-5)
