"""Prints what alberta-framework 0.17.1 learns on the stream of test_packages.py: ``python tests/optim/alberta.py``.

Needs Python 3.13 and the package, which the tests do not: they know the numbers.
"""

import jax.numpy as jnp
import numpy as np
from alberta_framework.core import optimizers

FEATURES, STEPS, GAMMA, LAMBDA = 5, 200, 0.9, 0.5


def stream(share):
    """Features, of which that share is not 0, and TD errors."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((STEPS + 1, FEATURES)) * (rng.random((STEPS + 1, FEATURES)) < share)
    return x.astype(np.float32), (0.5 * rng.standard_normal(STEPS)).astype(np.float32)


def supervised(optimizer, share):
    (x, delta), state, w = stream(share), optimizer.init(FEATURES), np.zeros(FEATURES)
    for k in range(STEPS):
        out = optimizer.update(state, jnp.array(delta[k]), jnp.array(x[k]))
        state, w = out.new_state, w + np.array(out.weight_delta, np.float64)
    return w.tolist()


def temporal(optimizer, share):
    (x, delta), state, w = stream(share), optimizer.init(FEATURES), np.zeros(FEATURES)
    for k in range(STEPS):
        out = optimizer.update(state, jnp.array(delta[k]), jnp.array(x[k]), jnp.array(x[k + 1]), jnp.array(GAMMA))
        state, w = out.new_state, w + np.array(out.weight_delta, np.float64)
    return w.tolist()


if __name__ == "__main__":
    print("idbd", supervised(optimizers.IDBD(0.05, 0.1), 0.4))
    print("autostep", supervised(optimizers.Autostep(0.05, 0.1, 10.0), 0.4))
    print("autostep dense", supervised(optimizers.Autostep(0.4, 0.1, 10.0), 1.0))
    print("tidbd", temporal(optimizers.TDIDBD(0.05, 0.1, LAMBDA), 0.4))
    print("tidbd_ordinary", temporal(optimizers.TDIDBD(0.05, 0.1, LAMBDA, use_semi_gradient=False), 0.4))
    print("auto_tidbd", temporal(optimizers.AutoTDIDBD(0.05, 0.1, LAMBDA, 10.0), 0.4))
    print("auto_tidbd cut", temporal(optimizers.AutoTDIDBD(0.5, 0.1, LAMBDA, 10.0), 0.4))
