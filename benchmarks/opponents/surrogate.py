"""Gradient descent through a learned surrogate of the simulator, after PhysAligner.

The idea of EmbodieDreamer's PhysAligner: simulate many parameters, train a network that predicts
how far each simulation is from the recording, and descend through the network, which unlike the
simulator has a gradient. No code and no details of its network were public, so these are ours:
the network maps the logarithms of the factors to the logarithm of each joint's root mean square
error, is trained on Sobol points of the box, and is descended from the best of them; the best of
the points reached, simulated once each, is the answer.

Source: EmbodieDreamer, arXiv:2507.05198, and its project page, for the method.
"""

from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.stats import qmc

Array = NDArray[np.float64]

SAMPLES = 1024
HIDDEN = 128
BATCH = 128
TRAINING_STEPS = 3000
TRAINING_RATE = 2e-3
DESCENTS = 16
DESCENT_STEPS = 300
DESCENT_RATE = 1e-2


def descend(errors: Callable[[Array], Array], size: int, *, seed: int) -> Array:
    """Best point [size] of the unit box that descents through the network reach.

    Args:
        errors: Root mean square error of every joint [N, J] at points [N, size].
        size: Number of parameters.
        seed: Seed of samples and network.
    """
    points = qmc.Sobol(size, rng=np.random.default_rng(seed)).random(SAMPLES)
    found = np.log(errors(points))
    centre, scale = found.mean(axis=0), found.std(axis=0)
    network = _trained(points, (found - centre) / scale, seed)
    best = points[np.argsort(np.sum(np.exp(2 * found), axis=1))[:DESCENTS]]
    reached = _descended(network, best, centre, scale)
    tried = np.concatenate([reached, best])
    return tried[int(np.argmin(np.sum(errors(tried) ** 2, axis=1)))]


def _layers(seed: int, widths: tuple[int, ...]) -> list[tuple[jax.Array, jax.Array]]:
    rng = np.random.default_rng([seed, 1])
    return [
        (jnp.asarray(rng.normal(0, 1 / np.sqrt(a), (a, b)), jnp.float32), jnp.zeros(b))
        for a, b in pairwise(widths)
    ]


def _said(network: list[tuple[jax.Array, jax.Array]], points: jax.Array) -> jax.Array:
    value = 4 * points - 2
    for weight, offset in network[:-1]:
        value = jnp.tanh(value @ weight + offset)
    return value @ network[-1][0] + network[-1][1]


def _trained(points: Array, wanted: Array, seed: int) -> list[tuple[jax.Array, jax.Array]]:
    """A network fitted by Adam with a cosine schedule."""
    x, y = jnp.asarray(points, jnp.float32), jnp.asarray(wanted, jnp.float32)
    network = _layers(seed, (x.shape[1], HIDDEN, HIDDEN, y.shape[1]))
    adam = optax.adam(optax.cosine_decay_schedule(TRAINING_RATE, TRAINING_STEPS))

    def step(carry: tuple[object, object], key: jax.Array) -> tuple[tuple[object, object], None]:
        network, memory = carry
        rows = jax.random.randint(key, (BATCH,), 0, len(x))
        slope = jax.grad(lambda n: jnp.mean((_said(n, x[rows]) - y[rows]) ** 2))(network)
        update, memory = adam.update(slope, memory)
        return (optax.apply_updates(network, update), memory), None

    keys = jax.random.split(jax.random.key(seed), TRAINING_STEPS)
    run = jax.jit(lambda carry: jax.lax.scan(step, carry, keys)[0])
    return run((network, adam.init(network)))[0]


def _descended(
    network: list[tuple[jax.Array, jax.Array]], points: Array, centre: Array, scale: Array
) -> Array:
    """Points [N, size] after Adam on the predicted sum of squares, kept inside the box."""
    adam = optax.adam(DESCENT_RATE)
    middle, width = jnp.asarray(centre, jnp.float32), jnp.asarray(scale, jnp.float32)

    def predicted(points: jax.Array) -> jax.Array:
        squares = jnp.exp(2 * (middle + width * _said(network, points)))
        return jnp.sum(jnp.log(jnp.sum(squares, axis=1)))

    def step(carry: tuple[jax.Array, object], _: None) -> tuple[tuple[jax.Array, object], None]:
        here, memory = carry
        update, memory = adam.update(jax.grad(predicted)(here), memory)
        return (jnp.clip(here + update, 0.0, 1.0), memory), None

    begin = jnp.asarray(points, jnp.float32)
    run = jax.jit(lambda carry: jax.lax.scan(step, carry, None, DESCENT_STEPS)[0])
    return np.asarray(run((begin, adam.init(begin)))[0], dtype=np.float64)
