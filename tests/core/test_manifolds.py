"""Unit quaternions as a manifold: exponential, logarithm, Jacobian, continuity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sameworld.core import manifolds as man

vectors = arrays(np.float64, 3, elements=st.floats(-1.75, 1.75, width=32))
steps = arrays(np.float64, 3, elements=st.floats(-1, 1, width=32))


@given(vectors)
def test_the_exponential_is_a_unit_quaternion(v):
    assert np.linalg.norm(man.quat_exp(v)) == pytest.approx(1, abs=1e-14)


@given(vectors)
def test_the_logarithm_undoes_the_exponential(v):
    v = v / max(1.0, np.linalg.norm(v) / 3.1)
    np.testing.assert_allclose(man.quat_log(man.quat_exp(v)), v, atol=1e-13)


@given(vectors, st.floats(-2, 2))
def test_turns_about_one_axis_add_up(v, share):
    twice = man.compose(man.quat_exp(v), man.quat_exp(share * v))
    np.testing.assert_allclose(twice, man.quat_exp((1 + share) * v), atol=1e-13)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-12, 1e-8, 1e-7, 1e-4, np.pi - 1e-9])
def test_small_and_large_turns_keep_their_digits(size):
    v = size * np.array([0.6, 0.0, -0.8])
    np.testing.assert_allclose(man.quat_log(man.quat_exp(v)), v, rtol=1e-9, atol=1e-300)


def test_a_half_turn_has_a_logarithm_of_length_pi():
    for axis in np.eye(3):
        for sign in (1, -1):
            found = man.quat_log(sign * np.r_[0.0, axis])
            np.testing.assert_allclose(np.abs(found), np.pi * axis, atol=1e-15)


@given(vectors, steps)
@settings(max_examples=60)
def test_inverse_left_jacobian_is_the_derivative(v, d):
    v = v / max(1.0, np.linalg.norm(v) / 2.9)
    h = 1e-6
    forward = man.quat_log(man.compose(man.quat_exp(h * d), man.quat_exp(v)))
    backward = man.quat_log(man.compose(man.quat_exp(-h * d), man.quat_exp(v)))
    numerical = (forward - backward) / (2 * h)
    np.testing.assert_allclose(man.inverse_left_jacobian(v) @ d, numerical, atol=2e-7)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 9e-5, 1.1e-4, 1.0, 3.0])
def test_inverse_left_jacobian_is_smooth_where_the_formula_changes(angle):
    v = angle * np.array([0.6, 0.0, 0.8])
    here = man.inverse_left_jacobian(v)
    near = man.inverse_left_jacobian(v * (1 + 1e-7) + 1e-12)
    np.testing.assert_allclose(here, near, atol=1e-6)


def test_inverse_left_jacobian_takes_batches():
    v = np.random.default_rng(0).normal(size=(2, 3, 3))
    batched = man.inverse_left_jacobian(v)
    assert batched.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(batched[1, 2], man.inverse_left_jacobian(v[1, 2]), atol=1e-15)


def test_continuous_removes_sign_jumps_without_changing_rotations():
    rng = np.random.default_rng(1)
    turns = man.quat_exp(rng.normal(0, 0.3, size=(200, 3)))
    path = [np.array([1.0, 0, 0, 0])]
    for turn in turns:
        path.append(man.compose(path[-1], turn))
    path = np.array(path)
    flipped = path * rng.choice([-1.0, 1.0], size=(201, 1))
    smooth = man.continuous(flipped)
    assert (np.sum(smooth[1:] * smooth[:-1], axis=1) > 0).all()
    np.testing.assert_allclose(smooth * np.sign(smooth[:1] @ path[0]), path, atol=1e-13)


@given(vectors, vectors)
def test_inverse_undoes_composition(a, b):
    p, q = man.quat_exp(a), man.quat_exp(b)
    np.testing.assert_allclose(man.compose(man.inverse(p), man.compose(p, q)), q, atol=1e-14)
    np.testing.assert_allclose(man.normalised(3 * p), p, atol=1e-15)
