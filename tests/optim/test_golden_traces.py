"""Two weights, five steps with traces and next positions: formulas once more, literally, as in test_golden."""

from math import exp, log

import pytest
import torch
from torch import nn

from rlgames.optim import IDBD, SMD, TIDBD, AutoTIDBD, IDBDnl, OrdinaryTIDBD, SwiftTD
from rlgames.traces import Traces
from tests.optim.test_golden import AFTER, DELTA, SLOPE, W, X, auto_tidbd


def meta_traces(y, lr, theta, decay, *, by_trace, logistic=False):
    """IDBD(λ) (by trace) and TIDBD(λ), semi-gradient; accumulating traces of y' x, in logistic units of x."""
    w, beta, h, e = W.copy(), [log(lr)] * 2, [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        for i in (0, 1):
            gradient = X[k][i] * (1 if logistic else y[k])
            e[i] = decay * e[i] + gradient
            beta[i] += theta * DELTA[k] * (e[i] if by_trace else gradient) * h[i]
            alpha = exp(beta[i])
            w[i] += alpha * DELTA[k] * e[i]
            h[i] = h[i] * max(0, 1 - alpha * X[k][i] * y[k] * e[i]) + alpha * DELTA[k] * e[i]
    return {"w": w, "beta": beta, "h": h}


def smd_traces(y, lr, theta, decay):
    w, alpha, h, e = W.copy(), [lr, lr], [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        product = sum(h[i] * X[k][i] for i in (0, 1))
        for i in (0, 1):
            e[i] = decay * e[i] + X[k][i]
            alpha[i] *= max(0.5, 1 + theta * DELTA[k] * e[i] * h[i])
            w[i] += alpha[i] * DELTA[k] * e[i]
            h[i] = h[i] - alpha[i] * y[k] * e[i] * product + alpha[i] * DELTA[k] * e[i]
    return {"w": w, "alpha": alpha, "h": h}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    ("cls", "reference"),
    [
        (IDBD, lambda *args: meta_traces([1.0] * 5, *args, by_trace=True)),
        (TIDBD, lambda *args: meta_traces([1.0] * 5, *args, by_trace=False)),
        (IDBDnl, lambda *args: meta_traces(SLOPE, *args, by_trace=True, logistic=True)),
        (SMD, lambda *args: smd_traces(SLOPE, *args)),
    ],
    ids=["idbd", "tidbd", "idbd_nl", "smd"],
)
def test_five_steps_with_traces(cls, reference, sparse):
    weight = nn.Parameter(torch.tensor(W, dtype=torch.float64)[:, None])
    optimizer = cls([weight], lr=0.25, theta=2.0)
    for x, delta, slope in zip(X, DELTA, [1.0] * 5 if "identity" in cls.units else SLOPE, strict=True):
        grad = torch.tensor(x, dtype=torch.float64)[:, None]
        weight.grad = grad.to_sparse(1) if sparse else grad
        optimizer.step(delta, slope, traces=Traces(0.5))
    ours = {"w": weight, **optimizer.state[weight]}
    for key, numbers in reference(0.25, 2.0, 0.5).items():
        assert ours[key].flatten().tolist() == pytest.approx(numbers, rel=1e-12), key


def tensor_of(x, sparse):
    dense = torch.tensor(x, dtype=torch.float64)[:, None]
    return dense.to_sparse(1) if sparse else dense


def tidbd_ordinary_traces(lr, theta, gamma, decay):
    w, beta, h, z = W.copy(), [log(lr)] * 2, [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        for i in (0, 1):
            change = gamma * AFTER[k][i] - X[k][i]
            beta[i] -= theta * DELTA[k] * change * h[i]
            z[i] = decay * z[i] + X[k][i]
            alpha = exp(beta[i])
            w[i] += alpha * DELTA[k] * z[i]
            h[i] = h[i] * max(0, 1 + alpha * z[i] * change) + alpha * DELTA[k] * z[i]
    return {"w": w, "beta": beta, "h": h}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    ("cls", "hyper", "reference"),
    [
        (OrdinaryTIDBD, {"theta": 2.0, "guards": False}, lambda: tidbd_ordinary_traces(0.25, 2.0, 0.9, 0.45)),
        (AutoTIDBD, {"theta": 0.3, "tau": 10}, lambda: auto_tidbd([], 0.25, 0.3, 10, True, 0.9, 0.45)),
        (AutoTIDBD, {"old_trace": False}, lambda: auto_tidbd([], 0.25, 0.01, 1e4, False, 0.9, 0.45)),
    ],
    ids=["tidbd_ordinary", "auto_tidbd", "auto_tidbd-new_trace"],
)
def test_five_steps_with_traces_and_next_positions(cls, hyper, reference, sparse):
    weight = nn.Parameter(torch.tensor(W, dtype=torch.float64)[:, None])
    optimizer = cls([weight], lr=0.25, **hyper)
    for x, after, delta in zip(X, AFTER, DELTA, strict=True):
        weight.grad = tensor_of(x, sparse)
        optimizer.step(delta, traces=Traces(0.45), next_grads=[0.9 * tensor_of(after, sparse)])
    ours = {"w": weight, **optimizer.state[weight]}
    for key, numbers in reference().items():
        assert ours[key].flatten().tolist() == pytest.approx(numbers, rel=1e-12), key


def swift_td_stream(xs, rewards, lr, theta, eta, shrink, gamma, fade):
    """The paper's order: on seeing the next position learn from the last error, then renew the traces."""
    n = len(xs[0])
    w, beta, h, old, temp, dw, z, p, bar, z_delta = ([0.0] * n for _ in range(10))
    beta, v_delta, v_old = [log(lr)] * n, 0.0, 0.0
    for x, reward in zip(xs, rewards, strict=True):
        v = sum(w[i] * x[i] for i in range(n))
        d = reward + gamma * v - v_old
        for i in range(n):
            dw[i] = d * z[i] - z_delta[i] * v_delta
            w[i] += dw[i]
            beta[i] = min(beta[i] + theta / exp(beta[i]) * (d - v_delta) * p[i], log(eta))
            old[i] = h[i]
            h[i] = temp[i] = temp[i] + d * bar[i] - z_delta[i] * v_delta
            z[i], p[i], bar[i], z_delta[i] = fade * z[i], fade * p[i], fade * bar[i], 0.0
        rate, b = sum(exp(beta[i]) * x[i] ** 2 for i in range(n)), sum(z[i] * x[i] for i in range(n))
        v_delta, v_old = sum(dw[i] * x[i] for i in range(n)), v
        for i in (i for i in range(n) if x[i]):
            z_delta[i] = min(1, eta / rate) * exp(beta[i]) * x[i]
            if rate > eta:
                h[i] = old[i] = bar[i] = 0.0
                beta[i] += x[i] ** 2 * log(shrink)
            z[i] += z_delta[i] * (1 - b)
            p[i] += old[i] * x[i]
            bar[i] += z_delta[i] * (1 - b - bar[i] * x[i])
            temp[i] = h[i] - old[i] * x[i] * (z[i] - z_delta[i]) - h[i] * z_delta[i] * x[i]
    return w, beta


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("eta", [0.5, 3.0])
def test_swift_td_is_the_algorithm_of_the_paper(eta, sparse):
    """Features of a position, then the reward of leaving it; 0.9 discount, 0.45 decay of traces."""
    xs, rewards = [*X, *X[::-1], [0, 0]], [0.0, *DELTA, *DELTA]
    weight = nn.Parameter(torch.zeros(2, 1, dtype=torch.float64))
    optimizer = SwiftTD([weight], lr=0.2, theta=0.1, eta=eta)
    for x, after, reward in zip(xs[:-1], xs[1:], rewards[1:], strict=True):
        weight.grad = tensor_of(x, sparse)
        v, v_next = (float(torch.tensor(f).double() @ weight.detach().flatten()) for f in (x, after))
        optimizer.step(reward + 0.9 * v_next - v, traces=Traces(0.45))
    w, beta = swift_td_stream(xs, rewards, 0.2, 0.1, eta, 0.999, 0.9, 0.45)
    assert weight.flatten().tolist() == pytest.approx(w, rel=1e-12)
    assert optimizer.state[weight]["beta"].flatten().tolist() == pytest.approx(beta, rel=1e-12)
