"""Robot descriptions that must be refused: hostile, broken, or with inertias no body has."""

import struct

from bad_case import Bad

from sameworld.core import AddressError, SceneError, StoreError
from sameworld.store import read_urdf
from sameworld.worlds.explicit.urdf import UrdfConfig, scene_from_urdf

_BOX = '<{0}><geometry><box size="0.2 0.1 0.1"/></geometry></{0}>'
_GOOD = '<inertia ixx="1e-3" iyy="2e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/>'
_SOLID = _BOX.format("collision")
_JOINT = (
    '<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="5" velocity="3"/></joint>'
)


def _robot(*parts):
    return "<robot name='r'>" + "".join(parts) + "</robot>"


def _arm(mass="1", inertia=_GOOD, *, com="0 0 0", shape=_SOLID):
    """Base and arm, the arm's inertia as given."""
    inertial = f'<inertial><origin xyz="{com}"/><mass value="{mass}"/>{inertia}</inertial>'
    return _robot('<link name="base"/>', f'<link name="arm">{inertial}{shape}</link>', _JOINT)


def _tensor(xx, yy, zz, xy=0, xz=0, yz=0):
    return f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/>'


def _links(*joints, names=("base", "arm")):
    return _robot(*(f'<link name="{name}"/>' for name in names), *joints)


def _joint(inner="", *, kind="revolute", ends='<parent link="base"/><child link="arm"/>', name="j"):
    return f'<joint name="{name}" type="{kind}">{ends}{inner}</joint>'


def _mesh(uri, tag="collision", scale=""):
    shape = f'<{tag}><geometry><mesh filename="{uri}" {scale}/></geometry></{tag}>'
    return _robot(f'<link name="base">{shape}</link>')


def _block(folder, size=1.0, name="m.stl"):
    """A binary STL of a tetrahedron."""
    corners = [(0, 0, 0), (size, 0, 0), (0, size, 0), (0, 0, size)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    data = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        data += struct.pack("<3f", 0, 0, 0)
        data += b"".join(struct.pack("<3f", *corners[k]) for k in face) + bytes(2)
    (folder / name).write_bytes(data)


def _millimetres(folder):
    _block(folder, 120.0)


def _junk(folder):
    (folder / "m.stl").write_bytes(b"junk")


def _secret(folder):
    _block(folder.parent, name="secret.stl")
    (folder / "m.stl").symlink_to(folder.parent / "secret.stl")


def _collada(folder):
    (folder / "m.dae").write_text("<COLLADA/>")


def _bad(
    name, text, words, *, error=SceneError, prepare=None, file="r.urdf", config=None, limit=1 << 20
):
    def attempt(folder):
        inside = folder / "inside"
        inside.mkdir()
        (inside / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        if prepare is not None:
            prepare(inside)
        return scene_from_urdf(read_urdf(inside / file, limit=limit), config=config)

    return Bad(name=f"urdf: {name}", attempt=attempt, error=error, words=words)


_LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><robot name="&b;"/>'
_EXTERNAL = '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>'

HOSTILE = (
    _bad("billion laughs", _LAUGHS, "declares a document type or entities"),
    _bad("external entity", _EXTERNAL, "declares a document type or entities"),
    _bad("too deep", "<robot>" + "<a>" * 100 + "</a>" * 100 + "</robot>", "30 deep"),
    _bad("too many elements", _robot("<a/>" * 200_001), "more than 200000 elements"),
    _bad("too many bytes", "<robot>" + " " * (1 << 24) + "</robot>", "the limit is"),
    _bad("mesh of a parent", _mesh("../secret.stl"), "leaves the folders that may be read"),
    _bad("mesh by an absolute path", _mesh("/etc/passwd"), "leaves the folders"),
    _bad("mesh by a file URL", _mesh("file:///etc/passwd"), "leaves the folders"),
    _bad("mesh over the network", _mesh("http://localhost/m.stl"), "Nothing is fetched"),
    _bad("mesh by backslashes", _mesh(r"..\m.stl"), "Use a relative name with '/'"),
    _bad("mesh behind a link", _mesh("m.stl"), "leaves the folders", prepare=_secret),
    _bad("package that climbs", _mesh("package://../m.stl"), "must be package://NAME/PATH"),
    _bad("package path that climbs", _mesh("package://p/../../secret.stl"), "leaves the folders"),
    _bad(
        "meshes beyond the limit",
        _mesh("m.stl"),
        "limit of 100 bytes",
        error=StoreError,
        prepare=_block,
        limit=100,
    ),
)

BROKEN = (
    _bad("empty", "", "is empty"),
    _bad("cut off", "<robot><link", "not well-formed"),
    _bad("binary", b"\x7fELF\xff\xfe\x00\x01", "not well-formed"),
    _bad("MJCF", "<mujoco/>", "begins with <mujoco>; a URDF begins with <robot>"),
    _bad("xacro by name", "<robot/>", "is a xacro template", file="r.urdf.xacro"),
    _bad(
        "xacro by content",
        '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arm/></robot>',
        "xacro template.*Expand it first",
    ),
    _bad("unexpanded placeholder", _robot('<link name="${a}"/>'), "holds a placeholder"),
    _bad("no link", _robot(), "has no <link>"),
    _bad("link without a name", _robot("<link/>"), "<link> has no name"),
    _bad("link twice", _links(names=("a", "a")), "more than one link named 'a'"),
    _bad("names equal after cleaning", _links(names=("a.b", "a_b")), "named 'a_b'"),
    _bad("joint of an unknown type", _links(_joint(kind="hinge")), "has type 'hinge'"),
    _bad("joint without a parent", _links(_joint(ends="")), "joint 'j' has no <parent"),
    _bad(
        "joint to nowhere",
        _links(_joint(kind="fixed", ends='<parent link="base"/><child link="amr"/>')),
        "names the link 'amr', which does not exist.*Did you mean 'arm'",
    ),
    _bad("two roots", _links(), "2 links without a joint above them: 'base', 'arm'"),
    _bad(
        "two parents",
        _links(
            _joint(kind="fixed"),
            _joint(kind="fixed", ends='<parent link="c"/><child link="arm"/>', name="k"),
            names=("base", "c", "arm"),
        ),
        "is the child of 'j' and of 'k'",
    ),
    _bad(
        "a circle",
        _links(
            _joint(kind="fixed", ends='<parent link="arm"/><child link="hand"/>'),
            _joint(kind="fixed", ends='<parent link="hand"/><child link="arm"/>', name="k"),
            names=("base", "arm", "hand"),
        ),
        "'arm', 'hand' hang from each other",
    ),
    _bad("revolute without limits", _links(_joint()), "revolute and has no <limit>"),
    _bad(
        "limits crossed",
        _links(_joint('<limit lower="1" upper="-1"/>')),
        "lower limit 1 is above upper limit -1",
    ),
    _bad("negative effort", _links(_joint('<limit upper="1" effort="-4"/>')), "effort='-4'"),
    _bad("axis of nothing", _links(_joint('<axis xyz="0 0 0"/>', kind="continuous")), "direction"),
    _bad("axis of two numbers", _links(_joint('<axis xyz="0 1"/>')), "holds 2 numbers, not 3"),
    _bad("axis of words", _links(_joint('<axis xyz="0 one 0"/>')), "is not numeric"),
    _bad(
        "negative friction",
        _links(_joint('<limit upper="1"/><dynamics damping="-1"/>')),
        "damping -1 and friction 0",
    ),
    _bad(
        "mimics nobody",
        _links(_joint('<mimic joint="k"/>', kind="continuous")),
        "mimics 'k'; both must be",
    ),
    _bad("mimics itself", _links(_joint('<mimic joint="j"/>', kind="continuous")), "mimics itself"),
    _bad("box without a size", _arm(shape="<visual><geometry><box/></geometry></visual>"), "size"),
    _bad(
        "negative radius",
        _arm(shape='<visual><geometry><sphere radius="-1"/></geometry></visual>'),
        "must be positive",
    ),
    _bad(
        "unknown shape",
        _arm(shape="<collision><geometry><cone/></geometry></collision>"),
        "it holds 'cone'",
    ),
    _bad("mesh not there", _mesh("meshes/m.stl"), "'meshes/m.stl', which is not there"),
    _bad("package not there", _mesh("package://p/m.stl"), "Looked for it at"),
    _bad("Collada mesh", _mesh("m.dae"), "MuJoCo reads .*not '.dae'.*Convert", prepare=_collada),
    _bad("mesh of junk", _mesh("m.stl"), "A shape of robot 'r' cannot be used", prepare=_junk),
    _bad("mesh scaled to nothing", _mesh("m.stl", scale='scale="1 0 1"'), "zero", prepare=_block),
    _bad("inertial without a mass", _arm().replace('<mass value="1"/>', ""), "has no <mass"),
    _bad("inertial without moments", _arm(inertia=""), "its inertia is zero, though"),
    _bad("inertia without izz", _arm(inertia='<inertia ixx="1" iyy="1"/>'), "no izz"),
    _bad("infinite mass", _arm(mass="inf"), "value='inf'> is not finite"),
    _bad("an absurd number", _arm(mass="1e300"), "value='1e300'> is absurdly large"),
    _bad(
        "a world that moves",
        _links(_joint(kind="fixed", ends='<parent link="a"/><child link="world"/>'), names="a"),
        "joint 'j' names the link 'world', which does not exist",
    ),
    _bad(
        "a world that hangs",
        _links(
            _joint(kind="fixed", ends='<parent link="a"/><child link="world"/>'),
            names=("a", "world"),
        ),
        "'world' is the child of joint 'j'",
    ),
    _bad(
        "a chain of 200 links",
        _links(
            *(
                _joint(
                    kind="fixed",
                    ends=f'<parent link="l{k}"/><child link="l{k + 1}"/>',
                    name=f"j{k}",
                )
                for k in range(199)
            ),
            names=[f"l{k}" for k in range(200)],
        ),
        "a chain of more than 150 links",
    ),
    _bad("only spaces", "  \n", "is empty"),
)

UNPHYSICAL = (
    _bad("negative mass", _arm(mass="-1"), "link 'arm': mass is -1 kg, it must be positive"),
    _bad("mass of nothing", _arm(mass="0"), "its mass is 0 kg and nothing fixed to it has any"),
    _bad("no inertial", _arm().replace("inertial", "left_out"), "it moves and has no <inertial>"),
    _bad("a point", _arm(inertia=_tensor(0, 0, 0)), "its inertia is zero, though its mass is 1 kg"),
    _bad(
        "triangle inequality",
        _arm(inertia=_tensor(0.05, 0.05, 0.5)),
        r"link 'arm': .*0\.05 \+ 0\.05 < 0\.5.*Ixx \+ Iyy = 0\.1 < Izz = 0\.5",
    ),
    _bad(
        "triangle inequality off the axes",
        _arm(inertia=_tensor(1.3, 1.3, 1, xy=1.2)),
        r"principal moments 0\.1, 1, 2\.5.*0\.1 \+ 1 < 2\.5",
    ),
    _bad("a line", _arm(inertia=_tensor(1e-3, 1e-3, 1e-15)), "moment 1e-15 .* of a line"),
    _bad("negative moment", _arm(inertia=_tensor(-1, 1, 1)), "not positive definite"),
    _bad("indefinite", _arm(inertia=_tensor(1, 1, 1, xy=2)), "not positive definite.*-1, 1, 3"),
    _bad(
        "identity inertia",
        _arm(inertia=_tensor(1, 1, 1)),
        r"1 kg m\^2 on every axis looks like a placeholder .*0\.00167",
    ),
    _bad(
        "placeholder without shapes",
        _arm(inertia=_tensor(1e-3, 1e-3, 1e-3), shape=""),
        "0.001 kg m.2 on every axis.*no geometry to compare with",
    ),
    _bad(
        "centre of mass outside",
        _arm(com="0 0 0.4"),
        r"centre of mass \(0, 0, 0\.4\) m lies 0\.35 m outside its shapes",
    ),
    _bad(
        "spread wider than the shapes",
        _arm(inertia=_tensor(0.5, 0.6, 0.7)),
        r"radius of gyration of 0\.707 m, but no point .* farther than 0\.0707 m",
    ),
    _bad("denser than metal", _arm(mass="100", inertia=_tensor(0.2, 0.4, 0.4)), r"5e\+04 kg/m\^3"),
    _bad(
        "millimetres",
        _mesh("m.stl"),
        r"120 m large.*scale='0\.001 0\.001 0\.001'>, which makes them 0\.12 m",
        prepare=_millimetres,
    ),
    _bad(
        "scaled twice",
        _mesh("m.stl", scale='scale="0.0001 0.0001 0.0001"'),
        "0.0001 m large. Was a scale of 0.001 applied",
        prepare=_block,
    ),
    _bad(
        "an impossible inertia is not to be accepted",
        _arm(mass="-1"),
        "mass is -1 kg",
        config=UrdfConfig(accept=("arm",)),
    ),
    _bad(
        "nothing to repair from",
        _arm(inertia=_tensor(1, 1, 3), shape=""),
        r"\(It has no shapes to be repaired from\.\)",
        config=UrdfConfig(repair=True),
    ),
    _bad(
        "a scale is not repaired",
        _mesh("m.stl"),
        "120 m large",
        prepare=_millimetres,
        config=UrdfConfig(repair=True),
    ),
    _bad(
        "acceptance of nobody",
        _arm(),
        "accept: 'leg' matches no link",
        error=AddressError,
        config=UrdfConfig(accept=("leg",)),
    ),
)

URDFS = (*HOSTILE, *BROKEN, *UNPHYSICAL)
