"""A body at rest has accelerations of zero, to which no tolerance is relative."""

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.cost import Layout, Problem
from sameworld.worlds.differentiable.solve import Effort, minimised

_GRAVITY = 9.81


def _resting(mass, stiffness):
    """A mass on one frictionless contact that carries it where the acceleration is zero."""
    weight = mass * _GRAVITY
    return Problem(
        mass=jnp.array([[mass]]),
        smooth=jnp.array([-weight]),
        jacobian=jnp.array([[1.0]]),
        reference=jnp.array([weight / stiffness]),
        stiffness=jnp.array([stiffness]),
        limit=jnp.zeros(0),
        friction=(),
        regular=(),
    )


def test_solver_converges_for_bodies_that_rest():
    layout, rng = Layout(onesided=1), np.random.default_rng(0)
    masses, stiffnesses = 10 ** rng.uniform(-3, 2, 200), 10 ** rng.uniform(-2, 6, 200)
    with jax.enable_x64(True):
        solve = jax.jit(
            jax.vmap(lambda m, d: minimised(layout, _resting(m, d), jnp.ones(1), Effort()))
        )
        found = solve(jnp.array(masses), jnp.array(stiffnesses))
        acceleration, iterations = np.asarray(found.acceleration), np.asarray(found.iterations)
    assert np.asarray(found.converged).all()
    assert np.max(np.abs(acceleration)) < 1e-12 * _GRAVITY
    assert np.max(iterations) <= 5


def test_solver_still_says_when_it_has_not_converged():
    layout = Layout(onesided=1)
    with jax.enable_x64(True):
        found = minimised(layout, _resting(1.0, 3.0), jnp.ones(1), Effort(iterations=0))
    assert not found.converged
