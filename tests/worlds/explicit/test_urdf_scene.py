"""Scenes made of robot descriptions: MuJoCo's own reader as reference, doubts, repairs."""

import contextlib
import re

import mujoco
import numpy as np
import pytest
from robot_descriptions import ARM, random_tree
from scipy.spatial import ConvexHull

from sameworld.core import SceneError
from sameworld.store import load_scene, parse_urdf, read_urdf, save_scene
from sameworld.worlds import build, check_world
from sameworld.worlds.explicit.urdf import UrdfConfig, scene_from_urdf
from sameworld.worlds.explicit.urdf_geometry import link_geometries

BOX = '<collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision>'


def converted(text, **options):
    return scene_from_urdf(parse_urdf(text), config=UrdfConfig(**options))


def compiled(scene):
    return mujoco.MjSpec.from_string(scene.mjcf, assets=dict(scene.assets)).compile()


def one_link(inertial, shape=BOX):
    return (
        f'<robot name="r"><link name="base"/><link name="arm">{inertial}{shape}</link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/>'
        '<axis xyz="0 1 0"/></joint></robot>'
    )


def inertial(mass, xx, yy, zz, com="0 0 0"):
    return (
        f'<inertial><origin xyz="{com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


# ---- the reference ------------------------------------------------------------------------


def _same_joint(name):
    """Our names of planar joints' parts to MuJoCo's."""
    return name.replace("_angle", "_RZ")


@pytest.mark.parametrize("seed", range(12))
def test_dynamics_equal_those_of_the_reader_of_mujoco(seed):
    """Mass matrix, bias force, damping and friction at random states of random trees.

    In-plane axes of planar joints may be chosen in any way, so they are kept at rest.
    """
    text = random_tree(seed)
    scene, _ = converted(text)
    ours, theirs = compiled(scene), mujoco.MjSpec.from_string(text).compile()
    assert ours.nv == theirs.nv > 0
    names = [ours.joint(j).name for j in range(ours.njnt)]
    free = [n for n in names if not n.endswith(("_x", "_y"))]
    dofs = np.array([ours.joint(n).dofadr[0] for n in free])
    others = np.array([theirs.joint(_same_joint(n)).dofadr[0] for n in free])
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, v = rng.uniform(-1.5, 1.5, len(free)), rng.normal(size=len(free))
        mass, bias = _dynamics(ours, dofs, q, v)
        mass2, bias2 = _dynamics(theirs, others, q, v)
        scale = np.abs(mass2).max()
        np.testing.assert_allclose(mass, mass2, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(bias, bias2, rtol=0, atol=1e-8 * np.abs(bias2).max())
    for field in ("dof_damping", "dof_frictionloss"):
        np.testing.assert_allclose(getattr(ours, field)[dofs], getattr(theirs, field)[others])
    for name in free:
        mine, other = ours.joint(name), theirs.joint(_same_joint(name))
        np.testing.assert_allclose(mine.range, other.range)
        efforts = ours.jnt_actfrcrange[mine.id], theirs.jnt_actfrcrange[other.id]
        np.testing.assert_allclose(*efforts)


def _dynamics(model, dofs, q, v):
    data = mujoco.MjData(model)
    data.qpos[dofs], data.qvel[dofs] = q, v
    mujoco.mj_forward(model, data)
    columns = []
    for dof in dofs:
        unit, column = np.zeros(model.nv), np.zeros(model.nv)
        unit[dof] = 1
        mujoco.mj_mulM(model, data, column, unit)
        columns.append(column[dofs])
    return np.array(columns), data.qfrc_bias[dofs]


def test_floating_base_equals_that_of_the_reader_of_mujoco():
    text = one_link(inertial(1, 2e-3, 3e-3, 4e-3)).replace(
        '<joint name="j" type="continuous">', '<joint name="j" type="floating">'
    )
    ours, theirs = compiled(converted(text)[0]), mujoco.MjSpec.from_string(text).compile()
    assert ours.nq == 7
    np.testing.assert_allclose(ours.body("arm").inertia, theirs.body("arm").inertia)


# ---- what is kept ---------------------------------------------------------------------------


def test_everything_a_simulation_needs_is_kept():
    scene, report = converted(ARM)
    model = compiled(scene)
    assert [model.body(k).name for k in range(1, model.nbody)] == [
        "base", "upper", "tool", "left", "right",
    ]  # fmt: skip
    shoulder = model.joint("shoulder")
    assert shoulder.range.tolist() == [-1, 2]
    assert model.jnt_actfrcrange[shoulder.id].tolist() == [-30, 30]
    assert (shoulder.damping[0], shoulder.frictionloss[0]) == (0.3, 0.1)
    assert model.numeric("velocity_limit:shoulder").data[0] == 4
    assert model.eq("mirror_mimics_finger").data[:2].tolist() == [0.001, 1.5]
    assert model.geom("upper_visual0").rgba.tolist() == [1, 0, 0, 1]
    assert model.geom("upper_visual0").contype[0] == 0
    assert any("<gazebo> (1)" in note for note in report.notes)
    assert scene.history[0].summary.startswith("Made of the URDF of 'arm': 5 links, 4 joints")


def test_a_mimicking_joint_follows_in_the_simulation():
    scene, _ = converted(ARM)
    model = compiled(scene)
    data = mujoco.MjData(model)
    data.qpos[model.joint("finger").qposadr] = 0.02
    for _ in range(2000):
        data.qfrc_applied[model.joint("finger").dofadr] = (
            50 * (0.02 - data.qpos[model.joint("finger").qposadr])
            - 2 * data.qvel[model.joint("finger").dofadr]
        )
        mujoco.mj_step(model, data)
    leader, follower = (data.qpos[model.joint(n).qposadr][0] for n in ("finger", "mirror"))
    assert follower == pytest.approx(1.5 * leader + 0.001, abs=2e-4)


def test_neighbours_never_touch_and_overlaps_at_home_are_told():
    far = ARM.replace('<origin xyz="0 0 0.45"/>', '<origin xyz="0 0 -0.45"/>').replace(
        '<link name="left">', f'<link name="left">{BOX}'
    )
    scene, report = converted(far.replace("-0.45", "0"))
    assert report.overlapping == (("base", "left"),)
    assert any("'base' and 'left' overlap at the home pose" in note for note in report.notes)
    model = compiled(scene)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


def test_the_world_of_a_robot_keeps_the_contract_and_survives_the_disk(tmp_path):
    scene, _ = converted(ARM)
    save_scene(scene, tmp_path / "s")
    loaded = load_scene(tmp_path / "s")
    assert loaded.id == scene.id
    assert check_world(build(loaded)).passed


def test_a_floating_root_falls():
    model = compiled(converted(ARM, base="floating")[0])
    assert model.joint("base_free").type[0] == mujoco.mjtJoint.mjJNT_FREE


# ---- doubts ---------------------------------------------------------------------------------


def test_all_doubts_are_listed_at_once():
    text = ARM.replace('<mass value="1"/>', '<mass value="-1"/>')
    text = text.replace('ixx="1e-4" iyy="1.1e-4"', 'ixx="1e-4" iyy="5e-4"')
    with pytest.raises(SceneError) as caught:
        converted(text)
    told = str(caught.value)
    assert told.count("\n  - link") == 3
    assert "link 'upper': mass is -1 kg" in told
    assert "link 'left': inertia violates the triangle inequality" in told


def test_plausible_inertias_pass_without_a_word():
    _, report = converted(one_link(inertial(1, 2e-3, 4e-3, 4e-3)))
    assert report.doubts == () and report.notes == ()


def test_a_repair_takes_the_given_mass_and_is_written_down_with_a_wide_belief():
    scene, report = converted(one_link(inertial(1.2, 1, 1, 3)), repair=True)
    assert report.repaired == ("arm",)
    body = compiled(scene).body("arm")
    sides = np.array([0.2, 0.1, 0.1])
    solid = np.sort(1.2 / 12 * (np.sum(sides**2) - sides**2))
    assert body.mass[0] == pytest.approx(1.2)
    np.testing.assert_allclose(np.sort(body.inertia), solid, rtol=1e-6)
    assert any("with the given 1.2 kg" in line.summary for line in scene.history)
    belief = build(scene).parameters
    for axis in "xyz":
        moment = belief[f"body:arm.inertia.{axis}"]
        assert moment.std == pytest.approx(moment.value) and moment.source == "assumed"
    assert "body:arm.mass" not in scene.belief.names


def test_a_missing_mass_is_repaired_by_a_density_and_believed_least():
    scene, report = converted(one_link(""), repair=True, density=500)
    mass = scene.belief["body:arm.mass"]
    assert mass.value == mass.std == pytest.approx(500 * 0.2 * 0.1 * 0.1)
    assert "500 kg/m^3: 1 kg. Weigh it." in report.notes[0]


def test_a_link_between_two_joints_without_mass_or_shape_is_repaired_by_a_speck():
    text = ARM.replace(
        '<joint name="flange" type="fixed">', '<joint name="flange" type="floating">'
    )
    with pytest.raises(SceneError, match=r"link 'tool': it moves and has no <inertial>"):
        converted(text)
    scene, report = converted(text, repair=True)
    assert compiled(scene).body("tool").mass[0] == 1e-3
    assert "sphere of 1 g" in report.notes[-2] + report.notes[-3]
    assert scene.belief["body:tool.mass"].std == 1e-3


@pytest.mark.parametrize("seed", range(150))
def test_damaged_descriptions_are_read_or_refused_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    text = bytearray((ARM if seed % 2 else random_tree(seed)).encode())
    words = (b"0", b"-1", b"1e19", b"nan", b"world", b"floating", b"planar", b"fixed", b"1 2 3")
    for _ in range(1 + seed % 3):
        spans = list(re.finditer(rb'"([^"]*)"', bytes(text)))
        span = spans[rng.integers(len(spans))]
        text[span.start(1) : span.end(1)] = words[rng.integers(len(words))]
        if seed % 5 == 0:
            text[rng.integers(len(text))] = rng.integers(256)
    with contextlib.suppress(SceneError):
        robot = parse_urdf(bytes(text))
        scene, _ = scene_from_urdf(robot, config=UrdfConfig(repair=seed % 3 == 0))
        assert compiled(scene).nbody > 1


def test_a_repair_by_a_mesh_uses_its_hull(tmp_path):
    corners = [(x, y, z) for x in (0, 0.1) for y in (0, 0.2) for z in (0, 0.3)]
    faces = ["1 2 4", "1 4 3", "5 7 8", "5 8 6"]  # two open sides: no volume of its own
    (tmp_path / "m.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "".join(f"f {f}\n" for f in faces)
    )
    mesh = '<collision><geometry><mesh filename="m.obj"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(one_link(inertial(2, 1, 1, 1), mesh))
    scene, _ = scene_from_urdf(read_urdf(tmp_path / "r.urdf"), config=UrdfConfig(repair=True))
    body = compiled(scene).body("arm")
    sides = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(body.ipos, sides / 2, atol=1e-6)
    solid = 2 / 12 * (np.sum(sides**2) - sides**2)
    np.testing.assert_allclose(np.sort(body.inertia), np.sort(solid), rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_solids_of_hulls_equal_those_of_mujoco(seed, tmp_path):
    """One mesh twice: to be seen (own sum over tetrahedra) and to be touched (MuJoCo's)."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * [0.1, 0.05, 0.02] + [0.3, -0.1, 0.2]
    hull = ConvexHull(points)
    first, *others = (points[hull.simplices[:, k]] for k in range(3))
    normals = np.cross(*(other - first for other in others))
    outward = np.einsum("ni,ni->n", hull.equations[:, :3], normals)
    faces = np.where(outward[:, None] > 0, hull.simplices, hull.simplices[:, ::-1]) + 1
    (tmp_path / "m.obj").write_text(
        "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())
        + "".join(f"f {a} {b} {c}\n" for a, b, c in faces)
    )
    found = {}
    for tag in ("visual", "collision"):
        mesh = f'<{tag}><origin rpy="0.3 0.5 -1"/><geometry><mesh filename="m.obj" scale="1 2 1"/>'
        (tmp_path / "r.urdf").write_text(one_link("", f"{mesh}</geometry></{tag}>"))
        found[tag] = link_geometries(read_urdf(tmp_path / "r.urdf"))["arm"]
    seen, touched = found["visual"], found["collision"]
    assert seen.volume == pytest.approx(touched.volume, rel=1e-5)
    np.testing.assert_allclose(seen.com, touched.com, rtol=1e-5)
    np.testing.assert_allclose(seen.unit_inertia, touched.unit_inertia, rtol=1e-4, atol=1e-9)


def test_flat_visual_meshes_do_no_harm(tmp_path):
    (tmp_path / "m.obj").write_text("v 0 0 0\nv .1 0 0\nv .1 .1 0\nv 0 .1 0\nf 1 2 3\nf 1 3 4\n")
    mesh = '<visual><geometry><mesh filename="m.obj"/></geometry></visual>'
    (tmp_path / "r.urdf").write_text(one_link(inertial(0.1, 1e-4, 2e-4, 2e-4, "0.05 0.05 0"), mesh))
    scene, _ = scene_from_urdf(read_urdf(tmp_path / "r.urdf"), config=UrdfConfig(accept="arm"))
    assert compiled(scene).nmesh == 1


def test_flat_collision_meshes_are_seen_but_touch_nothing(tmp_path):
    (tmp_path / "m.obj").write_text("v 0 0 0\nv .1 0 0\nv .1 .1 0\nv 0 .1 0\nf 1 2 3\nf 1 3 4\n")
    mesh = '<collision><geometry><mesh filename="m.obj"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(one_link(inertial(1, 2e-3, 4e-3, 4e-3), BOX + mesh))
    scene, report = scene_from_urdf(read_urdf(tmp_path / "r.urdf"))
    assert compiled(scene).geom_contype.tolist() == [1, 0]
    assert "'assets/m.obj' is flat; it is seen, but touches nothing" in report.notes[0]


def test_what_is_unusual_but_possible_is_taken_when_accepted():
    text = one_link(inertial(1, 2e-3, 4e-3, 4e-3, com="0 0 0.3"))
    with pytest.raises(SceneError, match="centre of mass"):
        converted(text)
    scene, report = converted(text, accept="arm")
    assert compiled(scene).body("arm").ipos[2] == 0.3
    assert "outside its shapes" in report.notes[0]


def test_what_never_moves_needs_no_inertia_unless_it_floats():
    text = ARM.replace('ixx="0.02" iyy="0.02" izz="0.02"', 'ixx="0.02" iyy="0.02" izz="0.2"')
    _, report = converted(text)
    assert "It never moves; its inertia is left out." in "".join(report.notes)
    with pytest.raises(SceneError, match=r"link 'base': .*0\.04 < Izz = 0\.2"):
        converted(text, base="floating")


def test_markers_fixed_to_heavier_links_may_have_round_inertias():
    marker = '<link name="tool">' + inertial(1e-4, 1e-8, 1e-8, 1e-8) + "</link>"
    _, report = converted(ARM.replace('<link name="tool"/>', marker))
    assert "Negligible beside what it is fixed to." in "".join(report.notes)


def test_a_moment_at_the_bound_passes_and_beyond_it_fails():
    """A box with all mass in two opposite corners has the largest moment it can have."""
    half = np.array([0.1, 0.05, 0.05])
    corner = 0.5 * (np.outer(half, half) + np.outer(-half, -half))
    matrix = np.trace(corner) * np.eye(3) - corner + 1e-9 * np.eye(3)

    def tensor(factor):
        names = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2)}
        names |= {"ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
        moments = " ".join(f'{n}="{float(factor * matrix[p])!r}"' for n, p in names.items())
        return f'<inertial><mass value="1"/><inertia {moments}/></inertial>'

    converted(one_link(tensor(1.0)))
    with pytest.raises(SceneError, match="radius of gyration"):
        converted(one_link(tensor(1.5)))
