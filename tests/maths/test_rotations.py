"""Rotations form a group, and every form of them is the same rotation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from sameworld.maths import rotations as rot

components = st.floats(-1, 1, allow_nan=False, width=32)
quats = (
    arrays(np.float64, 4, elements=components)
    .filter(lambda q: np.linalg.norm(q) > 1e-2)
    .map(rot.normalised)
)
vectors = arrays(np.float64, 3, elements=st.floats(-3, 3, width=32))


def _same(a, b, tolerance=1e-7):
    return float(np.max(rot.angle_between(a, b))) < tolerance


@given(quats, quats, quats)
def test_composition_is_associative_with_identity_and_inverse(a, b, c):
    identity = np.array([1.0, 0, 0, 0])
    left, right = rot.compose(rot.compose(a, b), c), rot.compose(a, rot.compose(b, c))
    np.testing.assert_allclose(left, right, atol=1e-14)
    np.testing.assert_allclose(rot.compose(a, identity), a, atol=0)
    np.testing.assert_allclose(rot.compose(a, rot.inverse(a)), identity, atol=1e-14)


@given(quats, quats, vectors)
def test_rotating_twice_is_rotating_by_the_product(a, b, v):
    np.testing.assert_allclose(
        rot.rotate(rot.compose(a, b), v), rot.rotate(a, rot.rotate(b, v)), atol=1e-13
    )


@given(quats, vectors)
def test_quaternion_and_its_matrix_rotate_alike(q, v):
    matrix = rot.quat_to_matrix(q)
    np.testing.assert_allclose(matrix @ v, rot.rotate(q, v), atol=1e-13)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-13)
    assert np.linalg.det(matrix) == pytest.approx(1)


@given(quats)
def test_matrix_round_trip_keeps_the_rotation_and_a_nonnegative_scalar(q):
    back = rot.matrix_to_quat(rot.quat_to_matrix(q))
    assert back[0] >= 0
    np.testing.assert_allclose(back * np.sign(back @ q), q, atol=1e-12)


@given(quats)
def test_roll_pitch_yaw_round_trip_keeps_the_rotation(q):
    rpy = rot.quat_to_rpy(q)
    assert abs(rpy[1]) <= np.pi / 2 + 1e-12
    assert _same(rot.rpy_to_quat(rpy), q, 1e-6)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_gimbal_lock_keeps_the_rotation(pitch):
    q = rot.rpy_to_quat(np.array([0.4, pitch, -0.9]))
    assert _same(rot.rpy_to_quat(rot.quat_to_rpy(q)), q, 1e-6)


@given(vectors)
def test_logarithm_undoes_the_exponential_below_a_half_turn(v):
    angle = np.linalg.norm(v)
    v = v if angle < 3 else v / angle * 3
    np.testing.assert_allclose(rot.quat_log(rot.quat_exp(v)), v, atol=1e-12)


def test_batched_forms_agree_with_scipy():
    q = rot.random_quat(np.random.default_rng(0), (4, 5))
    twin = Rotation.from_quat(q.reshape(-1, 4), scalar_first=True)
    np.testing.assert_allclose(
        rot.quat_to_matrix(q).reshape(-1, 3, 3), twin.as_matrix(), atol=1e-14
    )
    np.testing.assert_allclose(rot.quat_to_rpy(q).reshape(-1, 3), twin.as_euler("xyz"), atol=1e-12)
    np.testing.assert_allclose(rot.quat_log(q).reshape(-1, 3), twin.as_rotvec(), atol=1e-12)
    back = rot.matrix_to_quat(rot.quat_to_matrix(q))
    assert back.shape == (4, 5, 4)
    assert _same(back, q)


@given(quats, quats)
@settings(max_examples=50)
def test_slerp_walks_at_constant_speed(a, b):
    total = rot.angle_between(a, b)
    part = rot.slerp(a, b, np.array(0.25))
    assert rot.angle_between(a, part) == pytest.approx(0.25 * total, abs=1e-7)
    assert _same(rot.slerp(a, b, np.array(1.0)), b)


@given(quats, quats, quats)
@settings(max_examples=50)
def test_angle_is_a_distance(a, b, c):
    assert rot.angle_between(a, -a) == pytest.approx(0, abs=1e-7)
    assert rot.angle_between(a, b) == pytest.approx(rot.angle_between(b, a), abs=1e-9)
    assert rot.angle_between(a, c) <= rot.angle_between(a, b) + rot.angle_between(b, c) + 1e-7


def test_random_orientations_are_uniform():
    q = rot.random_quat(np.random.default_rng(1), (20000,))
    moved = rot.rotate(q, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(moved.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(moved.T @ moved / len(q), np.eye(3) / 3, atol=0.01)
