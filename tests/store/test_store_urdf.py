"""Robot descriptions as records: tree order, meshes and packages, actuators, notes."""

import numpy as np
import pytest

from sameworld.core import SceneError
from sameworld.maths.rotations import quat_to_matrix
from sameworld.store import parse_urdf, read_urdf

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def with_mesh(uri, tag="collision"):
    return (
        f'<robot name="r"><link name="a"><{tag}><geometry><mesh filename="{uri}"/></geometry>'
        f"</{tag}></link></robot>"
    )


def placed(folder, place):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TETRAHEDRON)
    return path


def described(folder, uri, place="r.urdf", tag="collision"):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(with_mesh(uri, tag))
    return path


@pytest.mark.parametrize(
    ("uri", "mesh", "urdf"),
    [
        ("m.obj", "m.obj", "r.urdf"),
        ("meshes/m.obj", "meshes/m.obj", "r.urdf"),
        ("file://meshes/m.obj", "meshes/m.obj", "r.urdf"),
        ("a%20b/m.obj", "a%20b/m.obj", "r.urdf"),
        ("package://pack/meshes/m.obj", "pack/meshes/m.obj", "pack/urdf/r.urdf"),
        ("package://pack/m.obj", "deep/down/pack/m.obj", "r.urdf"),
        ("package://pack/a%20b.obj", "pack/a b.obj", "r.urdf"),
    ],
)
def test_meshes_are_found(tmp_path, uri, mesh, urdf):
    placed(tmp_path, mesh)
    robot = read_urdf(described(tmp_path, uri, urdf))
    assert list(robot.assets.values()) == [TETRAHEDRON.encode()]
    assert robot.links[0].shapes[0].mesh in robot.assets


def test_roots_and_packages_open_other_folders(tmp_path):
    placed(tmp_path, "meshes/m.obj")
    near = described(tmp_path, "../meshes/m.obj", "urdf/r.urdf")
    with pytest.raises(SceneError, match="leaves the folders that may be read"):
        read_urdf(near)
    assert read_urdf(near, roots=[tmp_path]).assets
    far = described(tmp_path, "package://pack/m.obj", "other/r.urdf")
    with pytest.raises(SceneError, match="which is not there"):
        read_urdf(far)
    assert read_urdf(far, packages={"pack": tmp_path / "meshes"}).assets


def test_meshes_of_one_name_stay_apart_and_one_file_is_read_once(tmp_path):
    placed(tmp_path, "one/m.obj")
    placed(tmp_path, "two/m.obj")
    shapes = "".join(
        f'<collision><geometry><mesh filename="{place}/m.obj"/></geometry></collision>'
        for place in ("one", "two", "one")
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{shapes}</link></robot>')
    robot = read_urdf(tmp_path / "r.urdf")
    assert sorted(robot.assets) == ["assets/m.obj", "assets/m_2.obj"]
    assert [shape.mesh for shape in robot.links[0].shapes] == [
        "assets/m.obj", "assets/m_2.obj", "assets/m.obj",
    ]  # fmt: skip


def test_visuals_are_left_out_on_request_without_looking_for_their_meshes(tmp_path):
    path = described(tmp_path, "nowhere.dae", tag="visual")
    with pytest.raises(SceneError, match="nowhere"):
        read_urdf(path)
    link = read_urdf(path, drop_visuals=True).links[0]
    assert link.shapes == () and link.incomplete


def test_links_come_parents_first_whatever_their_order():
    joints = "".join(
        f'<joint name="j{c}" type="fixed"><parent link="{p}"/><child link="{c}"/></joint>'
        for p, c in (("b", "c"), ("a", "b"), ("a", "d"))
    )
    links = "".join(f'<link name="{name}"/>' for name in "dcba")
    robot = parse_urdf(f'<robot name="r">{joints}{links}</robot>')
    assert [link.name for link in robot.links] == ["a", "b", "c", "d"]
    assert [joint.child for joint in robot.joints] == ["b", "c", "d"]


def test_a_joint_to_the_world_needs_no_link_of_that_name():
    robot = parse_urdf(
        '<robot name="r"><joint name="weld" type="fixed"><parent link="world"/><child link="a"/>'
        '</joint><link name="a"/></robot>'
    )
    assert robot.root.name == "world"
    assert "'world' is not defined" in robot.notes[0]


def test_inertia_is_turned_into_the_link_frame():
    robot = parse_urdf(
        '<robot name="r"><link name="a"><inertial><origin xyz="1 2 3" rpy="0.3 -0.5 0.7"/>'
        '<mass value="2"/><inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0.2" iyz="0.3"/>'
        "</inertial></link></robot>"
    )
    given = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    cr, sr, cp, sp, cy, sy = (f(a) for a in (0.3, -0.5, 0.7) for f in (np.cos, np.sin))
    turn = (
        np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        @ np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
        @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    )
    inertial = robot.root.inertial
    np.testing.assert_allclose(inertial.inertia, turn @ given @ turn.T, atol=1e-14)
    assert inertial.com.tolist() == [1, 2, 3]


def test_actuators_come_from_transmissions_and_from_ros2_control():
    joints = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="continuous"><parent link="a"/>'
        f'<child link="l{k}"/></joint>'
        for k in range(3)
    )
    robot = parse_urdf(
        f'<robot name="r"><link name="a"/>{joints}'
        '<transmission name="t"><joint name="j0"><hardwareInterface>PositionJointInterface'
        '</hardwareInterface></joint><actuator name="m.0"><mechanicalReduction>50'
        "</mechanicalReduction></actuator></transmission>"
        '<ros2_control name="c" type="system"><joint name="j1"><command_interface name="effort"/>'
        '</joint><joint name="j9"><command_interface name="velocity"/></joint></ros2_control>'
        "</robot>"
    )
    told = [(a.joint, a.name, a.interface, a.reduction) for a in robot.actuators]
    assert told == [("j0", "m_0", "position", 50.0), ("j1", "j1", "effort", 1.0)]
    assert any("'j9', which does not exist" in note for note in robot.notes)


def test_what_is_changed_or_left_out_is_told():
    robot = parse_urdf(
        '<robot name="r"><link name="a.b"/><link name="c"/><joint name="j" type="revolute">'
        '<parent link="a.b"/><child link="c"/><limit lower="0" upper="0" effort="0" velocity="1"/>'
        '<safety_controller k_velocity="1"/></joint><gazebo/><gazebo/></robot>'
    )
    told = "\n".join(robot.notes)
    assert "link 'a.b' is called 'a_b'" in told
    assert "lower = upper = 0 is read as no range" in told
    assert "effort = 0 is read as not given" in told
    assert "<safety_controller> is left out" in told
    assert "<gazebo> (2)" in told
    assert robot.joints[0].limit.effort is None and robot.joints[0].limit.lower is None


def test_prefixes_that_nobody_declared_do_no_harm():
    robot = parse_urdf(
        '<?xml version="1.0"?><robot name="r"><link name="a"/><drake:group x:y="1"/></robot>'
    )
    assert "<drake:group> (1)" in robot.notes[0]


def test_endless_ranges_are_none():
    robot = parse_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute">'
        '<parent link="a"/><child link="b"/><limit lower="-1e16" upper="1e16"/></joint></robot>'
    )
    assert robot.joints[0].limit.lower is None
    assert "range -1e+16 to 1e+16 is read as none" in robot.notes[0]


def test_axes_are_normalised_and_poses_read_as_fixed_axis_angles():
    robot = parse_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><axis xyz="0 0 4"/>'
        '<origin rpy="0 0 1.5707963267948966"/></joint></robot>'
    )
    joint = robot.joints[0]
    assert joint.axis.tolist() == [0, 0, 1]
    turned = quat_to_matrix(joint.pose.quaternion) @ [1, 0, 0]
    np.testing.assert_allclose(turned, [0, 1, 0], atol=1e-15)
