"""Every log-Cholesky coordinate is a body that could exist, and every body has coordinates."""

import re

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sameworld.core.errors import SceneError
from sameworld.maths import inertia as ine
from sameworld.maths.rotations import quat_to_matrix, random_quat

thetas = arrays(np.float64, 10, elements=st.floats(-2, 2, width=32))


@given(thetas)
def test_every_coordinate_is_physical(theta):
    mass, com, inertia = ine.from_log_cholesky(theta)
    assert ine.inertia_problem(float(mass), inertia) is None
    assert np.linalg.eigvalsh(ine.pseudo_inertia(mass, com, inertia))[0] > 0
    a, b, c = np.linalg.eigvalsh(inertia)
    assert a + b > c * (1 - 1e-12)


@given(thetas)
def test_coordinates_survive_the_round_trip(theta):
    np.testing.assert_allclose(ine.log_cholesky(*ine.from_log_cholesky(theta)), theta, atol=1e-6)


@given(thetas)
def test_pseudo_inertia_is_the_product_of_its_factor(theta):
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    factor = np.exp(alpha) * np.array(
        [
            [np.exp(d1), s12, s13, t1],
            [0, np.exp(d2), s23, t2],
            [0, 0, np.exp(d3), t3],
            [0, 0, 0, 1],
        ]
    )
    pseudo = ine.pseudo_inertia(*ine.from_log_cholesky(theta))
    np.testing.assert_allclose(pseudo, factor @ factor.T, rtol=1e-9, atol=1e-9)
    mass, com, inertia = ine.from_pseudo_inertia(factor @ factor.T)
    again = ine.pseudo_inertia(mass, com, inertia)
    np.testing.assert_allclose(again, factor @ factor.T, rtol=1e-9, atol=1e-9)


def test_batches_equal_single_elements():
    theta = np.random.default_rng(0).uniform(-1, 1, (3, 2, 10))
    mass, com, inertia = ine.from_log_cholesky(theta)
    assert (mass.shape, com.shape, inertia.shape) == ((3, 2), (3, 2, 3), (3, 2, 3, 3))
    np.testing.assert_allclose(ine.log_cholesky(mass, com, inertia), theta, atol=1e-9)
    one = ine.from_log_cholesky(theta[1, 1])
    np.testing.assert_array_equal(one[2], inertia[1, 1])


def test_point_masses_have_the_inertia_of_the_sum():
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(50, 3)), rng.uniform(0.1, 1, 50)
    mass = weights.sum()
    com = weights @ points / mass
    arms = points - com
    inertia = sum(
        w * (a @ a * np.eye(3) - np.outer(a, a)) for w, a in zip(weights, arms, strict=True)
    )
    homogeneous = np.c_[points, np.ones(50)]
    expected = homogeneous.T @ (weights[:, None] * homogeneous)
    np.testing.assert_allclose(ine.pseudo_inertia(mass, com, inertia), expected, rtol=1e-12)
    about_origin = sum(
        w * (p @ p * np.eye(3) - np.outer(p, p)) for w, p in zip(weights, points, strict=True)
    )
    np.testing.assert_allclose(ine.moved(mass, inertia, com), about_origin, rtol=1e-12)
    np.testing.assert_allclose(ine.moved(-mass, about_origin, com), inertia, rtol=1e-10)


def test_principal_axes_agree_with_the_engine():
    full = np.array([[3.0, 0.2, -0.1], [0.2, 2.0, 0.3], [-0.1, 0.3, 2.5]]) * 1e-3
    text = " ".join(str(full[i, j]) for i, j in [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)])
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body name='b'><freejoint/><inertial pos='0 0 0' mass='1' "
        f"fullinertia='{text}'/></body></worldbody></mujoco>"
    )
    moments, quaternion = ine.principal(full)
    np.testing.assert_allclose(moments, model.body("b").inertia, rtol=1e-9)
    np.testing.assert_allclose(
        ine.rotated(np.diag(moments), quaternion), full, rtol=1e-12, atol=1e-18
    )
    engine = quat_to_matrix(model.body("b").iquat) @ np.diag(model.body("b").inertia)
    engine = engine @ quat_to_matrix(model.body("b").iquat).T
    np.testing.assert_allclose(engine, full, rtol=1e-9, atol=1e-15)


def test_principal_axes_are_right_handed_in_batches():
    quaternions = random_quat(np.random.default_rng(3), (20,))
    full = ine.rotated(np.diag([3.0, 2.0, 1.5]), quaternions)
    moments, axes = ine.principal(full)
    np.testing.assert_allclose(moments, np.broadcast_to([3, 2, 1.5], (20, 3)))
    np.testing.assert_allclose(ine.rotated(np.diag([3.0, 2.0, 1.5]), axes), full, atol=1e-12)


@pytest.mark.parametrize(
    ("mass", "matrix", "words"),
    [
        (1.0, np.eye(2), r"shape \(2, 2\)"),
        (1.0, np.full((3, 3), np.nan), "NaN"),
        (np.inf, np.eye(3), "NaN or infinite"),
        (0.0, np.eye(3), "mass is 0 kg"),
        (-2.0, np.eye(3), "mass is -2 kg"),
        (1.0, np.eye(3) + np.triu(np.ones((3, 3)), 1) * 0.1, "not symmetric"),
        (1.0, np.diag([1.0, 1.0, -1.0]), "not positive definite"),
        (1.0, np.zeros((3, 3)), "not positive definite"),
        (1.0, np.diag([1.0, 1.0, 2.1]), r"a \+ b >= c .*1 \+ 1 < 2.1"),
    ],
)
def test_unphysical_inertia_is_named_in_words(mass, matrix, words):
    problem = ine.inertia_problem(mass, matrix)
    assert problem is not None
    assert re.search(words, problem)


def test_unphysical_inertia_has_no_coordinates():
    with pytest.raises(SceneError, match="triangle inequality"):
        ine.log_cholesky(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.1]))


def test_a_thin_plate_is_physical_but_has_no_coordinates():
    plate = np.diag([1.0, 1.0, 2.0])
    assert ine.inertia_problem(1.0, plate) is None
    with pytest.raises(SceneError, match="flat or point-like"):
        ine.log_cholesky(1.0, np.zeros(3), plate)
