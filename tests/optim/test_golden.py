"""Two weights, five steps: every rule against its formula, written once more, literally, with plain numbers.

The references know nothing of the package: lists of floats, a loop over the weights, the paper's order of lines. x
holds a 2 (an index that stands twice) and a 0 (a weight that is not active, which no rule may touch).
"""

from math import exp, log, sqrt

import pytest
import torch
from torch import nn

from rlgames.optim import AlphaBounds
from tests.support import RULES

W = [0.3, -0.2]
X = [[1, 1], [1, 2], [1, 0], [2, 1], [1, 1]]
DELTA = [0.5, -0.25, 0.75, 0.125, -1.0]
SLOPE = [0.9, 0.75, 0.5, 0.8, 0.25]  # of a tanh or logistic unit; a linear one has 1
AFTER = [*X[1:], [0, 0]]  # features of the next position
ACTIVE = [[i for i in (0, 1) if x[i]] for x in X]


def tdl(y, lr, cross_entropy=False):
    w = W.copy()
    for x, d, s in zip(X, DELTA, y, strict=True):
        for i in (0, 1):
            w[i] += lr * d * (1 if cross_entropy else s) * x[i]
    return {"w": w}


former_tdl = tdl  # the same rule, with another exploration


def tcl(y, lr, cross_entropy=False, g=lambda u: u, counted=None):
    w, N, A = W.copy(), [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        for i in ACTIVE[k]:
            alpha = lr * (1 if A[i] == 0 else g(abs(N[i]) / A[i]))
            change = DELTA[k] * X[k][i] * (1 if cross_entropy else y[k])
            r = counted(DELTA[k], X[k][i]) if counted else change
            w[i] += alpha * change
            N[i] += r
            A[i] += abs(r)
    return {"w": w, "N": N, "A": A}


def tcl_delta(y, lr, cross_entropy, extra_x):
    return tcl(y, lr, cross_entropy, counted=lambda delta, x: delta * x if extra_x else delta)


def tcl_exp(y, lr, beta, cross_entropy):
    return tcl(y, lr, cross_entropy, lambda u: exp(beta * (u - 1)))


def tcl_pl(y, lr, beta, cross_entropy):
    return tcl(y, lr, cross_entropy, lambda u: max(beta * u + 1 - beta, exp(-beta)))


def idbd(y, lr, theta, guards):
    w, beta, h = W.copy(), [log(lr)] * 2, [0.0, 0.0]
    for k in range(5):
        for i in (0, 1):
            x, d = X[k][i], DELTA[k]
            change = theta * d * x * h[i]
            if guards:
                change = min(max(change, -2), 2)
            beta[i] += change
            if guards:
                beta[i] = max(beta[i], -10)
            alpha = exp(beta[i])
            w[i] += alpha * d * x
            h[i] = h[i] * max(0, 1 - alpha * x * x) + alpha * d * x
    return {"w": w, "beta": beta, "h": h}


def tidbd(y, **hyper):
    return idbd(y, **hyper)  # without traces


def tidbd_ordinary(y, **hyper):
    return idbd(y, **hyper)  # without traces and next positions


def auto_tidbd(y, lr, theta, tau, old_trace, gamma=0.0, decay=0.0):
    """Kearney et al., line by line; x_next is X one step later, gamma 0 leaves it out."""
    w, beta, h, v, z = W.copy(), [log(lr)] * 2, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        x, d = X[k], DELTA[k]
        change = [gamma * AFTER[k][i] - x[i] for i in (0, 1)]
        joined = [decay * z[i] + x[i] for i in (0, 1)]
        seen = ([0.0, 0.0] if decay == 0 else z) if old_trace else joined
        for i in (0, 1):
            decayed = v[i] - exp(beta[i]) * change[i] * seen[i] * (abs(d * x[i] * h[i]) - v[i]) / tau
            v[i] = max(abs(d * change[i] * h[i]), decayed)
            if v[i] > 0:
                beta[i] -= theta * d * change[i] * h[i] / v[i]
        M = max(-sum(exp(beta[i]) * change[i] * seen[i] for i in (0, 1)), 1)
        z = joined
        for i in (0, 1):
            if x[i] or z[i] or gamma * AFTER[k][i]:
                beta[i] -= log(M)
            alpha = exp(beta[i])
            w[i] += alpha * d * z[i]
            h[i] = h[i] * max(0, 1 + alpha * change[i] * z[i]) + alpha * d * z[i]
    return {"w": w, "beta": beta, "h": h, "v": v}


def swift_td(y, lr, theta, eta, decay):
    """Without traces, where little of it is left."""
    w, beta, h = W.copy(), [log(lr)] * 2, [0.0, 0.0]
    for k in range(5):
        rate = sum(exp(beta[i]) * X[k][i] ** 2 for i in (0, 1))
        for i in ACTIVE[k]:
            x, d = X[k][i], DELTA[k]
            step = min(1, eta / rate) * exp(beta[i]) * x
            if rate > eta:
                h[i] = 0.0
                beta[i] += log(decay) * x**2
            p = h[i] * x
            w[i] += step * d
            h[i] = h[i] * (1 - step * x) + step * d
            beta[i] = min(beta[i] + theta / exp(beta[i]) * d * p, log(eta))
    return {"w": w, "beta": beta, "h": h}


def idbd_nl(y, lr, theta, guards):
    w, beta, h = W.copy(), [log(lr)] * 2, [0.0, 0.0]
    for k in range(5):
        for i in (0, 1):
            x, d = X[k][i], DELTA[k]
            change = theta * d * x * h[i]
            if guards:
                change = min(max(change, -2), 2)
            beta[i] += change
            if guards:
                beta[i] = max(beta[i], -10)
            alpha = exp(beta[i])
            w[i] += alpha * d * x
            h[i] = h[i] * max(0, 1 - alpha * y[k] * x * x) + alpha * d * x
    return {"w": w, "beta": beta, "h": h}


def k1(y, lr, theta, R, guards, extra_x):
    w, beta, h = W.copy(), [log(lr)] * 2, [0.0, 0.0]
    for k in range(5):
        x, d = X[k], DELTA[k]
        for i in (0, 1):
            beta[i] += theta * d * x[i] * h[i]
            if guards:
                beta[i] = max(beta[i], -10)
        M = sum(exp(beta[i]) * x[i] ** 2 for i in (0, 1))
        for i in (0, 1):
            gain = exp(beta[i]) * x[i] / (R + M)
            w[i] += gain * d * (x[i] if extra_x else 1)
            h[i] = (h[i] + gain * d) * max(0, 1 - gain * x[i])
    return {"w": w, "beta": beta, "h": h}


def elk1(y, lr, theta, guards, extra_x, slope_min):
    """The authors' program, line by line."""
    w, beta, h = W.copy(), [log(lr)] * 2, [0.0, 0.0]
    for k in range(5):
        x, d = X[k], DELTA[k]
        for i in ACTIVE[k]:
            beta[i] += theta * d * x[i] * h[i] * y[k]
            if guards:
                beta[i] = max(beta[i], -10)
        M = sum(exp(beta[i]) * x[i] ** 2 for i in ACTIVE[k])
        for i in ACTIVE[k]:
            e = y[k] * x[i]
            gain = exp(beta[i]) * e / ((1 + M) * y[k] ** 2)
            w[i] += gain * d * (e if extra_x else y[k])
            h[i] = (h[i] + gain * d * y[k] / max(y[k], slope_min)) * max(0, 1 - gain * e)
    return {"w": w, "beta": beta, "h": h}


def autostep(y, lr, mu, tau):
    w, alpha, h, v = W.copy(), [lr, lr], [0.0, 0.0], [0.0, 0.0]
    for k in range(5):
        x, d = X[k], DELTA[k]
        for i in ACTIVE[k]:
            z = d * x[i] * h[i]
            v[i] = max(abs(z), v[i] + alpha[i] * x[i] ** 2 * (abs(z) - v[i]) / tau)
            if v[i] > 0:
                alpha[i] *= exp(mu * z / v[i])
        M = max(sum(alpha[i] * x[i] ** 2 for i in ACTIVE[k]), 1)
        for i in ACTIVE[k]:
            alpha[i] /= M
            w[i] += alpha[i] * d * x[i]
            h[i] = h[i] * max(0, 1 - alpha[i] * x[i] ** 2) + alpha[i] * d * x[i]
    return {"w": w, "alpha": alpha, "h": h, "v": v}


def alpha_bounds(y, lr, original):
    w, alpha = W.copy(), lr
    for k in range(5):
        alpha = min(alpha, 1 / (y[k] ** 2 * sum(x * x for x in X[k])))
        for i in (0, 1):
            w[i] += alpha * DELTA[k] * y[k] * X[k][i]
    return {"w": w}


def smd(y, lr, theta, mu, extra_x):
    w, alpha, h = W.copy(), [lr, lr], [0.0, 0.0]
    for k in range(5):
        x, d = X[k], DELTA[k]
        product = sum(h[i] * x[i] * (x[i] if extra_x else 1) for i in (0, 1))
        for i in ACTIVE[k]:
            alpha[i] *= max(0.5, 1 + theta * d * x[i] * h[i])
            w[i] += alpha[i] * d * x[i]
            h[i] = mu * h[i] - mu * alpha[i] * y[k] * x[i] * product + alpha[i] * d * x[i]
    return {"w": w, "alpha": alpha, "h": h}


def obgd(y, lr, kappa):
    w = W.copy()
    for k in range(5):
        e, d = [y[k] * x for x in X[k]], DELTA[k]
        dot = max(abs(d), 1) * sum(map(abs, e)) * lr * kappa
        for i in (0, 1):
            w[i] += (lr / dot if dot > 1 else lr) * d * e[i]
    return {"w": w}


def adaptive_obgd(y, lr, kappa, beta2, eps):
    w, v, n = W.copy(), [0.0, 0.0], [0, 0]
    for k in range(5):
        e, d, u = [y[k] * x for x in X[k]], DELTA[k], [0.0, 0.0]
        for i in ACTIVE[k]:
            n[i] += 1
            v[i] = beta2 * v[i] + (1 - beta2) * (d * e[i]) ** 2
            u[i] = e[i] / sqrt(v[i] / (1 - beta2 ** n[i]) + eps)
        dot = max(abs(d), 1) * sum(map(abs, u)) * lr * kappa
        for i in (0, 1):
            w[i] += (lr / dot if dot > 1 else lr) * d * u[i]
    return {"w": w, "v": v}


def rprop(y, lr, up, down, lr_min, lr_max, *, plus, improved):
    """All four of Igel & Hüsken 2003, minimising: g is the gradient of half the squared error."""
    w, width, before, change, error = W.copy(), [lr, lr], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    sign = lambda u: (u > 0) - (u < 0)  # noqa: E731
    for k in range(5):
        for i in ACTIVE[k]:
            g = -DELTA[k] * y[k] * X[k][i]
            product = g * before[i]
            if product > 0:
                width[i] = min(up * width[i], lr_max)
            elif product < 0:
                width[i] = max(down * width[i], lr_min)
            if product < 0 and plus:
                change[i] = 0 if improved and abs(DELTA[k]) <= error[i] else -change[i]
                g = 0
            else:
                if product < 0 and improved:
                    g = 0
                change[i] = -sign(g) * width[i]
            w[i] += change[i]
            before[i], error[i] = g, abs(DELTA[k])
    return {"w": w, "width": width}


def rprop_minus(y, **hyper):
    return rprop(y, **hyper, plus=False, improved=False)


def irprop_minus(y, **hyper):
    return rprop(y, **hyper, plus=False, improved=True)


def rprop_plus(y, **hyper):
    return rprop(y, **hyper, plus=True, improved=False)


def irprop_plus(y, **hyper):
    return rprop(y, **hyper, plus=True, improved=True)


# settings beside those of the yaml, in which guards, bounds and the second sum act
CROSS_ENTROPY = [{"cross_entropy": True}]
MORE = {
    **dict.fromkeys(("tdl", "tcl", "tcl_exp", "tcl_pl"), CROSS_ENTROPY),
    "tcl_delta": [{"cross_entropy": True}, {"extra_x": True}],
    "idbd": [{"theta": 60, "lr": 0.4}, {"theta": 5, "lr": 0.4, "guards": False}, {"lr": 5e-5, "theta": 0.0}],
    "tidbd": [{"theta": 60, "lr": 0.4}],
    "tidbd_ordinary": [{"theta": 60, "lr": 0.4}],
    "auto_tidbd": [{"lr": 0.4, "theta": 0.5, "tau": 10, "old_trace": False}],
    "swift_td": [{"eta": 2.0, "lr": 0.3, "theta": 0.5}, {"eta": 9.0, "lr": 1.0, "theta": 5.0}],
    "idbd_nl": [{"theta": 60, "lr": 0.4}, {"theta": 5, "lr": 0.4, "guards": False}],
    "k1": [{"lr": 2.0, "R": 0.5, "theta": 100}, {"lr": 0.5, "extra_x": True}, {"lr": 0.5, "guards": False}],
    "elk1": [
        {"lr": 0.5, "slope_min": 0.6},
        {"lr": 2.0, "theta": 100},
        {"lr": 0.5, "extra_x": False},
        {"lr": 0.5, "guards": False, "theta": 20},
    ],
    "autostep": [{"lr": 0.5, "mu": 0.5, "tau": 10}],
    "smd": [{"lr": 1.5, "theta": 20, "mu": 0.9}, {"lr": 0.5, "extra_x": True}],
    "alpha_bounds": [{"lr": 0.2}, {"original": True}],
    "obgd": [{"lr": 0.1}],
    "adaptive_obgd": [{"lr": 0.01, "beta2": 0.9}],
    "rprop_minus": [{"lr_max": 0.0011}],
    "rprop_plus": [{"lr_min": 0.0009}],
    "irprop_minus": [{"lr_min": 0.0009}],
    "irprop_plus": [{"lr_min": 0.0009}],
}
CASES = [(name, change) for name in RULES for change in ({}, *MORE.get(name, []))]


def test_every_rule_has_an_example():
    assert {name for name in RULES if name not in globals()} == set()


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_five_steps(name, change, sparse):
    cls, hyper, unit = RULES[name]
    y = SLOPE if unit != "identity" else [1.0] * 5
    hyper = hyper | change
    table = nn.EmbeddingBag.from_pretrained(torch.tensor(W).double()[:, None], False, mode="sum", sparse=sparse)
    optimizer = cls(table.parameters(), **hyper)
    with torch.no_grad():
        table.weight[:] = torch.tensor(W, dtype=torch.float64)[:, None]
    for x, delta, slope in zip(X, DELTA, y, strict=True):
        optimizer.zero_grad()
        table(torch.tensor([[0] * x[0] + [1] * x[1]])).sum().backward()
        optimizer.step(delta, slope)
    ours = {"w": table.weight, **optimizer.state[table.weight]}
    for key, numbers in globals()[name](y, **hyper).items():
        assert ours[key].flatten().tolist() == pytest.approx(numbers, rel=1e-12, abs=1e-15), key


@pytest.mark.parametrize("original", [False, True])
def test_alpha_bounds_see_the_next_position(original):
    """e (γ x' - x) at slope 1, γ 1: x = (1, 0), x' = (3, 5): 2, which the original bound ignores; then x' = 0: -1."""
    weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = AlphaBounds([weight], original=original)
    weight.grad = torch.tensor([1.0, 0.0], dtype=torch.float64)
    optimizer.step(1.0, next_grads=[torch.tensor([3.0, 5.0], dtype=torch.float64)])
    assert weight.tolist() == [1.0 if original else 0.5, 0.0]
    optimizer.step(1.0)
    assert weight.tolist() == [2.0 if original else 1.0, 0.0]


def test_tdl_by_hand():
    """α = 1/2: w₀ = 0.3 + (0.5 - 0.25 + 0.75 + 2 * 0.125 - 1) / 2, w₁ = -0.2 + (0.5 - 2 * 0.25 + 0.125 - 1) / 2."""
    assert tdl([1.0] * 5, 0.5)["w"] == pytest.approx([0.425, -0.6375])


def test_alpha_bounds_remembers_the_tightest_bound():
    """Slope and features: 0.81 * 2, 0.5625 * 5, 0.25 * 1, 0.64 * 5, 0.0625 * 2; the largest is the fourth."""
    weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = AlphaBounds([weight])
    for x, delta, slope in zip(X, DELTA, SLOPE, strict=True):
        weight.grad = torch.tensor(x, dtype=torch.float64)
        optimizer.step(delta, slope)
    assert optimizer.state[weight]["peak"].item() == pytest.approx(3.2)
    p = optimizer.hyper(optimizer.param_groups[0])
    assert p.step_size(optimizer.state_of(weight, optimizer.param_groups[0])).item() == pytest.approx(1 / 3.2)
