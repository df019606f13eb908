"""Derivatives of contacts: right away from events, finite everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from collide_cases import (
    MESH,
    PAIRS,
    PLANE,
    QUICK,
    Poses,
    label,
    model_of,
    near_poses,
    snapped_poses,
)

from sameworld.worlds.differentiable.collide import ABSENT, FUNCTIONS, Shape, hulls_of

STEPS = (1e-5, 1e-6)


def packed(poses: Poses) -> np.ndarray:
    """Position, rotation and size of both geoms in a row, [B, 30]."""
    rotations = poses.rotations.reshape(-1, 2, 9)
    return np.concatenate([poses.positions, rotations, poses.sizes], -1).reshape(-1, 30)


def shape(row):
    return Shape(row[:3], row[3:12].reshape(3, 3), row[12:])


class Derivatives:
    """Contacts of a pair as functions of one row, compiled once for batches of one size."""

    def __init__(self, pair, margin):
        def function(row):
            found = FUNCTIONS[pair][0](shape(row[:15]), shape(row[15:]), margin)
            distance = found.distance[:, None]
            rest = found.frame.reshape(-1, 9)
            return jnp.concatenate([distance, found.point, rest], axis=-1)

        def both(row):
            found = function(row)
            return found, found

        forward = jax.jit(jax.vmap(jax.jacfwd(both, has_aux=True)), compiler_options=QUICK)
        self.forward = lambda rows: np.asarray(forward(rows)[0])
        self.value = lambda rows: np.asarray(forward(rows)[1])
        self.reverse = jax.jit(jax.vmap(jax.jacrev(function)), compiler_options=QUICK)


@pytest.fixture(scope="module", params=PAIRS, ids=label)
def derivatives(request):
    with jax.enable_x64(True):
        yield request.param, Derivatives(request.param, 0.02)


def test_derivatives_agree_with_central_differences(derivatives):
    pair, found = derivatives
    rows = packed(near_poses(pair, np.random.default_rng(5), 20))
    exact = found.forward(rows)
    present = found.value(rows)[:, :, :1, None] < ABSENT
    errors = []
    for step in STEPS:
        ahead = np.stack([found.value(rows + step * e) for e in np.eye(30)], axis=-1)
        behind = np.stack([found.value(rows - step * e) for e in np.eye(30)], axis=-1)
        gap = np.where(present, (ahead - behind) / (2 * step) - exact, 0.0)
        errors.append(np.abs(gap / np.maximum(1.0, np.abs(exact))).max(axis=(1, 2, 3)))
    assert np.min(errors, axis=0).max() < 1e-6


def test_reverse_derivatives_are_the_forward_ones(derivatives):
    pair, found = derivatives
    rows = packed(near_poses(pair, np.random.default_rng(6), 20))
    forward, reverse = found.forward(rows), found.reverse(rows)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-9)


def test_derivatives_are_finite_at_ties_contacts_at_zero_and_coincident_centres(derivatives):
    pair, found = derivatives
    rows = packed(snapped_poses(pair, np.random.default_rng(7), 20))
    rows[:4, 15:18] = rows[:4, :3]
    assert np.isfinite(found.value(rows)).all()
    assert np.isfinite(found.forward(rows)).all()
    assert np.isfinite(found.reverse(rows)).all()


def test_absent_contacts_have_no_derivative_of_their_distance(derivatives):
    pair, found = derivatives
    poses = near_poses(pair, np.random.default_rng(8), 20)
    lifted = poses.positions[:, 1] + 20.0 * poses.rotations[:, 0, :, 2]
    far = Poses(
        positions=np.stack([poses.positions[:, 0], lifted], axis=1),
        rotations=poses.rotations,
        sizes=poses.sizes,
    )
    rows = packed(far)
    assert (found.value(rows)[..., 0] == ABSENT).all()
    assert (found.forward(rows)[:, :, 0] == 0.0).all()
    assert np.isfinite(found.reverse(rows)).all()


def test_derivatives_of_a_mesh_on_a_plane_agree_with_central_differences():
    points = np.random.default_rng(2).normal(size=12 * 3) * 0.1
    text = " ".join(f"{x:.6g}" for x in points)
    hull = hulls_of(model_of((PLANE, MESH), f'<mesh name="hull" vertex="{text}"/>'), [1])
    own = {name: array[0] for name, array in hull._asdict().items()}

    def points_of(row):
        found = FUNCTIONS[PLANE, MESH][0](shape(row[:15]), shape(row[15:])._replace(**own), 10.0)
        return jnp.concatenate([found.distance[:, None], found.point], axis=-1)

    with jax.enable_x64(True):
        row = packed(near_poses((PLANE, MESH), np.random.default_rng(9), 1))[0]
        value = jax.jit(points_of)
        exact = np.asarray(jax.jit(jax.jacrev(points_of))(row))
        ahead = np.stack([value(row + 1e-6 * e) for e in np.eye(30)], axis=-1)
        behind = np.stack([value(row - 1e-6 * e) for e in np.eye(30)], axis=-1)
    np.testing.assert_allclose((ahead - behind) / 2e-6, exact, atol=1e-6)
    assert np.abs(exact).max() > 0.5
