"""Coordinates of inertia relative to a reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from sameworld.core import SceneError
from sameworld.maths.inertia import (
    from_inertial_vector,
    inertia_problem,
    inertial_vector,
    log_cholesky,
    pseudo_inertia,
)
from sameworld.maths.stretch import log_cholesky_of, stretched, upper_root

TENSOR = np.array([[0.03, 0.002, -0.003], [0.002, 0.04, 0.001], [-0.003, 0.001, 0.02]])
BODY = inertial_vector(2.0, [0.1, -0.2, 0.05], TENSOR)
coordinates = st.lists(st.floats(-1.5, 1.5), min_size=10, max_size=10).map(np.array)


def test_inertial_vectors_go_there_and_back():
    mass, com, inertia = from_inertial_vector(np.stack([BODY, 2 * BODY]))
    assert np.allclose(mass, [2.0, 4.0])
    assert np.allclose(com, [0.1, -0.2, 0.05])
    assert np.allclose(inertia[0], TENSOR)
    assert np.isclose(BODY[4], TENSOR[0, 0] + 2.0 * (0.2**2 + 0.05**2))  # parallel axes


def test_the_reference_is_zero():
    vector, _ = stretched(upper_root(BODY), np.zeros(10))
    assert np.allclose(vector, BODY)


@settings(max_examples=50, deadline=None)
@given(coordinates)
def test_every_point_is_a_body(theta):
    mass, _, inertia = from_inertial_vector(stretched(upper_root(BODY), theta)[0])
    assert inertia_problem(float(mass), inertia, tolerance=1e-4) is None


@settings(max_examples=20, deadline=None)
@given(coordinates)
def test_derivatives_agree_with_differences(theta):
    root = upper_root(BODY)
    for function in (stretched, log_cholesky_of):
        slope = function(root, theta)[1]
        for k in range(10):
            step = 1e-6 * np.eye(10)[k]
            numeric = (function(root, theta + step)[0] - function(root, theta - step)[0]) / 2e-6
            assert np.allclose(slope[:, k], numeric, rtol=1e-5, atol=1e-7 * np.exp(4))


@settings(max_examples=20, deadline=None)
@given(coordinates)
def test_log_cholesky_coordinates_are_those_of_the_body(theta):
    root = upper_root(BODY)
    body = from_inertial_vector(stretched(root, theta)[0])
    assert np.allclose(log_cholesky_of(root, theta)[0], log_cholesky(*body), atol=1e-6)


def test_the_norm_measures_the_invariant_distance():
    rng = np.random.default_rng(0)
    root = upper_root(BODY)
    reference = pseudo_inertia(*from_inertial_vector(BODY))
    for _ in range(5):
        theta = 1e-3 * rng.normal(size=10)
        moved = pseudo_inertia(*from_inertial_vector(stretched(root, theta)[0]))
        logs = np.log(linalg.eigh(moved, reference, eigvals_only=True))
        assert np.isclose(0.5 * np.sum(logs**2), theta @ theta, rtol=1e-2)


def test_batches_equal_singles():
    roots = upper_root(np.stack([BODY, 3 * BODY]))
    theta = np.random.default_rng(1).normal(size=(2, 10))
    for function in (stretched, log_cholesky_of):
        both = function(roots, theta)
        for k in range(2):
            alone = function(roots[k], theta[k])
            assert np.allclose(both[0][k], alone[0]) and np.allclose(both[1][k], alone[1])


def test_what_is_no_body_has_no_root():
    with pytest.raises(SceneError, match="triangle inequality"):
        upper_root(inertial_vector(1.0, [0, 0, 0], np.diag([1.0, 0.1, 0.1])))
