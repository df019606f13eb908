"""Contacts are MuJoCo's: number, distances, points and frames."""

import mujoco
import numpy as np
import pytest
from collide_cases import (
    BOX,
    CAPSULE,
    MESH,
    NAMES,
    PAIRS,
    PLANE,
    Poses,
    aligned_poses,
    differences,
    in_c,
    label,
    model_of,
    near_poses,
    ours,
    rotated,
    snapped_poses,
)

from sameworld.core import SceneError
from sameworld.worlds.differentiable.collide import ABSENT, FUNCTIONS, Shape, hulls_of

COUNT = 300
ROUNDING = 1e-9
"""For poses whose tangent or rim direction is badly determined: 1e-16 over a tilt of 1e-4 or so."""


@pytest.fixture(scope="module", params=PAIRS, ids=label)
def compared(request):
    """Largest differences per pose, by the way that poses were drawn."""
    pair, rng = request.param, np.random.default_rng(11)
    drawn = {
        "near": near_poses(pair, rng, COUNT),
        "parallel": aligned_poses(pair, rng, COUNT, 0.0),
        "almost parallel": aligned_poses(pair, rng, COUNT, 1e-4),
        "tilted": aligned_poses(pair, rng, COUNT, 0.05),
        "snapped": snapped_poses(pair, rng, COUNT),
    }
    model, mine = model_of(pair), ours(pair, list(drawn.values()))
    found = {}
    for (name, poses), rows in zip(drawn.items(), mine, strict=True):
        theirs = in_c(model, poses)
        found[name] = differences(rows, theirs), np.array([len(r) for r in theirs])
    return pair, found


def test_contacts_of_random_poses_are_those_of_mujoco(compared):
    _, found = compared
    gaps, counts = found["near"]
    assert np.quantile(gaps, 0.99) < 1e-12
    assert gaps.max() < ROUNDING
    assert counts.max() > 0


@pytest.mark.parametrize("name", ["almost parallel", "tilted"])
def test_contacts_of_nearly_aligned_poses_are_those_of_mujoco(compared, name):
    _, found = compared
    gaps, _ = found[name]
    assert np.quantile(gaps, 0.7) < 1e-12
    assert gaps.max() < 1e-7


@pytest.mark.parametrize("name", ["parallel", "snapped"])
def test_contact_sets_at_exact_ties_are_mostly_those_of_mujoco(compared, name):
    pair, found = compared
    gaps, _ = found[name]
    tied = 0.06 if pair == (CAPSULE, BOX) else 0.02
    assert np.mean(gaps > ROUNDING) <= tied


def test_every_number_of_contacts_up_to_the_slots_occurs(compared):
    pair, found = compared
    counts = np.concatenate([counts for _, counts in found.values()])
    assert set(range(FUNCTIONS[pair][1])) <= set(counts)
    assert counts.max() <= FUNCTIONS[pair][1]


def prism(corners: int, lean: float = 0.3) -> np.ndarray:
    """A flat prism with an uneven base."""
    turn = np.arange(corners) * 2 * np.pi / corners
    radius = 0.2 * (1 + lean * np.cos(turn))
    base = np.stack([radius * np.cos(turn), 0.2 * np.sin(turn)], axis=1)
    return np.concatenate([np.insert(base, 2, z, axis=1) for z in (-0.05, 0.05)])


def box_of_points() -> np.ndarray:
    return np.stack(np.meshgrid((-0.1, 0.1), (-0.2, 0.2), (-0.3, 0.3)), axis=-1).reshape(-1, 3)


CLOUDS = {
    "box": box_of_points(),
    "prism": prism(12),
    "scattered": np.random.default_rng(0).normal(size=(20, 3)) * 0.15,
}


@pytest.mark.parametrize("name", CLOUDS)
def test_contacts_of_a_mesh_on_a_plane_are_those_of_mujoco(name):
    text = " ".join(f"{x:.9g}" for x in CLOUDS[name].ravel())
    model = model_of((PLANE, MESH), f'<mesh name="hull" vertex="{text}"/>')
    rng = np.random.default_rng(3)
    drawn = near_poses((PLANE, MESH), rng, 400)
    lift = rng.uniform(-0.1, 0.25, (400, 1)) * drawn.rotations[:, 0, :, 2]
    first = drawn.positions[:, 0]
    poses = Poses(
        positions=np.stack([first, first + lift], axis=1),
        rotations=drawn.rotations,
        sizes=drawn.sizes,
        margin=0.02,
    )
    (mine,), theirs = ours((PLANE, MESH), [poses], hulls_of(model, [1])), in_c(model, poses)
    assert differences(mine, theirs).max() < 1e-12
    assert {len(rows) for rows in theirs} >= {1, 2, 3, 4} - ({4} if name == "scattered" else set())


def test_hulls_of_different_meshes_are_padded_to_one_shape():
    meshes = "".join(
        f'<mesh name="m{k}" vertex="{" ".join(f"{x:.9g}" for x in points.ravel())}"/>'
        for k, points in enumerate(CLOUDS.values())
    )
    geoms = "".join(f'<geom type="mesh" mesh="m{k}"/>' for k in range(3))
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{meshes}</asset><worldbody>{geoms}</worldbody></mujoco>"
    )
    both = hulls_of(model, [0, 1, 2])
    for k in range(3):
        alone = hulls_of(model, [k])
        n, m = alone.corners.shape[1:3]
        np.testing.assert_array_equal(both.vertices[k, :n], alone.vertices[0])
        np.testing.assert_array_equal(both.corners[k, :n, :m], alone.corners[0])
        assert (both.corners[k, n:] == -1).all()


def test_a_mesh_without_its_hull_is_refused_by_name():
    bare = Shape(*(np.zeros(3), np.eye(3), np.zeros(3)))
    with pytest.raises(SceneError, match="hulls_of"):
        FUNCTIONS[PLANE, MESH][0](bare, bare, 0.0)


def test_the_table_holds_slots_and_orders_the_types():
    for (first, second), (_, slots) in FUNCTIONS.items():
        assert first <= second
        assert {first, second} <= NAMES.keys()
        assert slots >= 1
    assert ABSENT > 1e6


def stacked(height: float, turn: float) -> Poses:
    """A box of half length 0.1 above one of half length 0.3, turned about the vertical."""
    return Poses(
        positions=np.array([[[0, 0, 0], [0.02, 0.05, 0.4 + height]]]),
        rotations=np.array([[np.eye(3), rotated([0, 0, turn])]]),
        sizes=np.array([[[0.3, 0.3, 0.3], [0.1, 0.1, 0.1]]]),
    )


def test_a_box_on_a_box_stands_on_its_four_corners():
    ((rows,),) = ours((BOX, BOX), [stacked(-1e-3, 0.4)])
    np.testing.assert_allclose(rows[:, 0], -1e-3, atol=1e-12)
    np.testing.assert_allclose(rows[:, 4:7], np.tile([0.0, 0.0, 1.0], (4, 1)), atol=1e-12)
    np.testing.assert_allclose(rows[:, 1:3].mean(axis=0), [0.02, 0.05], atol=1e-12)


def test_no_contact_at_exactly_the_margin():
    poses = Poses(
        positions=np.array([[[0.0, 0, 0], [0, 0, 0.5]]]),
        rotations=np.array([[np.eye(3), np.eye(3)]]),
        sizes=np.array([[[1, 1, 1], [0.25, 0, 0]]]),
        margin=0.25,
    )
    ((rows,),) = ours((PLANE, 2), [poses])
    assert len(rows) == 0
    assert len(in_c(model_of((PLANE, 2)), poses)[0]) == 0
