"""Robot descriptions for tests: random trees, and a small arm with everything in it."""

import numpy as np

from sameworld.maths.inertia import from_log_cholesky

KINDS = ("revolute", "continuous", "prismatic", "fixed", "planar")

ARM = """
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><origin xyz="0 0 0.2"/><mass value="1"/>
    <inertia ixx="0.015" iyy="0.015" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry>
      <material name="red"/></visual>
    <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry>
    </collision></link>
  <link name="tool"/>
  <link name="left"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1.1e-4" izz="0.9e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="right"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1.1e-4" izz="0.9e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.05"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="30" velocity="4"/>
    <dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/>
    <origin xyz="0 0 0.45"/></joint>
  <joint name="finger" type="prismatic"><parent link="tool"/><child link="left"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
  <joint name="mirror" type="prismatic"><parent link="tool"/><child link="right"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/>
    <mimic joint="finger" multiplier="1.5" offset="0.001"/></joint>
  <transmission name="t"><joint name="shoulder"/><actuator name="motor1">
    <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></actuator>
    </transmission>
  <ros2_control name="c" type="system"><joint name="finger"><command_interface name="position"/>
    </joint></ros2_control>
  <gazebo reference="base"/>
</robot>
"""


def _text(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


def _inertial(rng):
    """A physical inertia in a turned frame."""
    mass, com, inertia = from_log_cholesky(rng.normal(0, 0.5, 10) - [0, 2, 2, 2, 0, 0, 0, 0, 0, 0])
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    places = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    moments = " ".join(f'{n}="{float(inertia[p])!r}"' for n, p in zip(names, places, strict=True))
    return (
        f'<inertial><origin xyz="{_text(0.1 * com)}" rpy="{_text(rng.uniform(-2, 2, 3))}"/>'
        f'<mass value="{float(mass)!r}"/><inertia {moments}/></inertial>'
    )


def random_tree(seed, links=7):
    """A random robot whose every number is physical."""
    rng = np.random.default_rng(seed)
    parts = ['<link name="l0"/>']
    for k in range(1, links):
        kind = KINDS[rng.integers(len(KINDS))]
        limit = '<limit lower="-2" upper="2" effort="9" velocity="3"/>'
        dynamics = f'<dynamics damping="{rng.uniform():.3f}" friction="{rng.uniform():.3f}"/>'
        parts.append(
            f'<link name="l{k}">{_inertial(rng)}</link>'
            f'<joint name="j{k}" type="{kind}"><parent link="l{rng.integers(k)}"/>'
            f'<child link="l{k}"/><axis xyz="{_text(rng.normal(size=3))}"/>'
            f'<origin xyz="{_text(rng.normal(0, 0.3, 3))}" rpy="{_text(rng.uniform(-3, 3, 3))}"/>'
            f"{limit}{dynamics}</joint>"
        )
    order = rng.permutation(len(parts))
    return '<robot name="tree">' + "".join(parts[i] for i in order) + "</robot>"
