"""Scenes that must be refused: hostile, broken or unphysical."""

import pickle
from pathlib import Path

from bad_case import Bad

from sameworld.core import Scene, SceneError, SpecError, StoreError
from sameworld.store import load_scene
from sameworld.worlds import build

_CUBE = '<body name="cube"><freejoint/>{}</body>'
_INERTIAL = '<inertial pos="0 0 0" mass="{}" {}/><geom size=".1"/>'
_LAUGHS = (
    '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
    '<mujoco model="&c;"/>'
)
_EXTERNAL = '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><mujoco model="&a;"/>'
_PARAMETER = '<!DOCTYPE l [<!ENTITY % p SYSTEM "http://localhost/x.dtd"> %p;]><mujoco/>'


def _world(name, mjcf, words, *, error=SceneError, assets=None):
    """A text that the explicit world must refuse."""

    def attempt(folder):
        return build(Scene(name="s", mjcf=mjcf, assets=assets or {}), "explicit")

    return Bad(name=f"world: {name}", attempt=attempt, error=error, words=words)


def _disk(name, content, words, *, error=SceneError, prepare=None, file="scene.xml", limit=1 << 20):
    """A file that loading must refuse."""

    def attempt(folder: Path):
        inside = folder / "inside"
        inside.mkdir()
        (folder / "secret.stl").write_bytes(b"secret")
        (folder / "secret.xml").write_text("<mujoco/>")
        path = inside / file
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if prepare is not None:
            prepare(inside)
        return load_scene(path, limit=limit)

    return Bad(name=f"disk: {name}", attempt=attempt, error=error, words=words)


def _body(inner):
    return f"<mujoco><worldbody>{_CUBE.format(inner)}</worldbody></mujoco>"


def _asset(element):
    return f"<mujoco><asset>{element}</asset></mujoco>"


def _mesh(file):
    return _asset(f'<mesh name="m" file="{file}"/>')


def _link_file(folder):
    (folder / "m.stl").symlink_to(folder.parent / "secret.stl")


def _link_folder(folder):
    (folder / "assets").symlink_to(folder.parent)


def _link_loop(folder):
    (folder / "m.stl").symlink_to(folder / "m.stl")


def _circle(folder):
    (folder / "other.xml").write_text('<mujoco><include file="third.xml"/></mujoco>')
    (folder / "third.xml").write_text('<mujoco><include file="other.xml"/></mujoco>')


def _deep_includes(folder):
    for n in range(40):
        text = f'<mujoco><include file="i{n + 1}.xml"/></mujoco>'
        (folder / f"i{n}.xml").write_text(text)


def _bomb_inside(folder):
    (folder / "other.xml").write_text(_LAUGHS)


def _large(folder):
    (folder / "m.stl").write_bytes(bytes(3000))


def _asset_folder(folder):
    (folder / "m.stl").mkdir()


def _index(text):
    def prepare(folder):
        (folder / "scene.json").write_text(text)

    return prepare


def _part(name, text):
    def prepare(folder):
        (folder / "scene.json").write_text(
            '{"schema": 1, "name": "s", "assets": {}, "appearance": {}}'
        )
        (folder / name).write_text(text)

    return prepare


HOSTILE = (
    _world("path traversal", _mesh("../../etc/passwd"), "leaves the scene"),
    _world("absolute path", _mesh("/etc/passwd"), "'/etc/passwd' leaves the scene"),
    _world("Windows path", _mesh(r"C:\Windows\win.ini"), "leaves the scene"),
    _world("backslashes", _mesh(r"..\..\x.stl"), "leaves the scene"),
    _world(
        "absolute meshdir",
        _mesh("passwd").replace("<asset>", '<compiler meshdir="/etc"/><asset>'),
        "meshdir '/etc' leaves",
    ),
    _world(
        "absolute texture",
        _asset('<texture name="t" type="2d" file="/etc/passwd"/>'),
        "<texture> file '/etc/passwd'",
    ),
    _world(
        "absolute cube texture",
        _asset('<texture name="t" type="skybox" fileup="/etc/passwd"/>'),
        "<texture> file '/etc/passwd'",
    ),
    _world(
        "absolute height field",
        _asset('<hfield name="h" file="/etc/passwd" size="1 1 1 1"/>'),
        "<hfield> file",
    ),
    _world(
        "include of a parent", '<mujoco><include file="../x.xml"/></mujoco>', "leaves the scene"
    ),
    _world(
        "include of nothing", '<mujoco><include file="x.xml"/></mujoco>', "not among the assets"
    ),
    _world(
        "include in a circle",
        '<mujoco><include file="a.xml"/></mujoco>',
        "circle",
        assets={"a.xml": b'<mujoco><include file="a.xml"/></mujoco>'},
    ),
    _world(
        "bomb in an include",
        '<mujoco><include file="a.xml"/></mujoco>',
        "DOCTYPE",
        assets={"a.xml": _LAUGHS.encode()},
    ),
    _world("billion laughs", _LAUGHS, "DOCTYPE or entities"),
    _world("external entity", _EXTERNAL, "DOCTYPE or entities"),
    _world("document type", '<!DOCTYPE mujoco SYSTEM "x.dtd"><mujoco/>', "DOCTYPE or entities"),
    _world("parameter entity", _PARAMETER, "DOCTYPE or entities"),
    _world(
        "engine plugin",
        '<mujoco><extension><plugin plugin="mujoco.elasticity.cable"/></extension></mujoco>',
        "load shared libraries",
    ),
    _world(
        "plugin in a body",
        _body('<geom size=".1"/><plugin plugin="mujoco.pid"/>'),
        "load shared libraries",
    ),
    _world(
        "ten million copies",
        _body('<replicate count="10000000" offset="1 0 0"><geom size=".1"/></replicate>'),
        "10000000 copies",
    ),
    _world(
        "nested copies",
        _body('<replicate count="1000">' * 3 + '<geom size=".1"/>' + "</replicate>" * 3),
        "copies; the limit",
    ),
    _world("absurd memory", '<mujoco><size memory="900G"/></mujoco>', "exceeds the limit"),
    _disk("path traversal", _mesh("../secret.stl"), "leaves the folder"),
    _disk("traversal that comes back", _mesh("../inside/../secret.stl"), "leaves the folder"),
    _disk("absolute path", _mesh("/etc/passwd"), "Only relative names"),
    _disk("Windows path", _mesh(r"C:\Windows\win.ini"), "Only relative names"),
    _disk("backslashes", _mesh(r"..\secret.stl"), "Only relative names"),
    _disk("URL", _mesh("http://localhost/x.stl"), "Only relative names"),
    _disk(
        "meshdir of a parent",
        _mesh("secret.stl").replace("<asset>", '<compiler meshdir=".."/><asset>'),
        "leaves the folder",
    ),
    _disk(
        "include of a parent",
        '<mujoco><include file="../secret.xml"/></mujoco>',
        "leaves the folder",
    ),
    _disk("link out of the folder", _mesh("m.stl"), "leaves the folder", prepare=_link_file),
    _disk(
        "linked asset folder", _mesh("assets/secret.stl"), "leaves the folder", prepare=_link_folder
    ),
    _disk("link to itself", _mesh("m.stl"), "unusable|not in", prepare=_link_loop),
    _disk(
        "includes in a circle",
        '<mujoco><include file="other.xml"/></mujoco>',
        "in a circle",
        prepare=_circle,
    ),
    _disk(
        "includes 40 deep",
        '<mujoco><include file="i0.xml"/></mujoco>',
        "20 files deep",
        prepare=_deep_includes,
    ),
    _disk(
        "bomb in an include",
        '<mujoco><include file="other.xml"/></mujoco>',
        "'other.xml' declares a document type",
        prepare=_bomb_inside,
    ),
    _disk("document type", '<!DOCTYPE mujoco SYSTEM "x.dtd"><mujoco/>', "declares a document type"),
    _disk("billion laughs", _LAUGHS, "declares a document type"),
    _disk("external entity", _EXTERNAL, "declares a document type"),
    _disk(
        "assets beyond the limit",
        _mesh("m.stl"),
        "limit of 2000 bytes",
        error=StoreError,
        prepare=_large,
        limit=2000,
    ),
    _disk(
        "index with a foreign file",
        "<mujoco/>",
        "leaves the folder",
        prepare=_index(
            '{"schema": 1, "name": "s", "assets": {"a": "../secret.stl"}, "appearance": {}}'
        ),
    ),
    _disk(
        "index with a hostile name",
        "<mujoco/>",
        "leaves the scene folder",
        prepare=_index(
            '{"schema": 1, "name": "s", "assets": {"../a": "scene.xml"}, "appearance": {}}'
        ),
    ),
)

BROKEN = (
    _world("cut off", "<mujoco><worldbody>", "not well-formed"),
    _world("empty text", "", "not well-formed"),
    _world("control characters", "\x00\x01\x02", "not well-formed"),
    _world("a robot description", "<robot/>", "Convert URDF"),
    _world(
        "3000 bodies deep",
        "<mujoco><worldbody>" + "<body>" * 3000 + "</body>" * 3000 + "</worldbody></mujoco>",
        "nesting is too deep",
    ),
    _world(
        "unknown element", "<mujoco><worldbody><spaceship/></worldbody></mujoco>", "'spaceship'"
    ),
    _world("unknown attribute", _body('<geom colour="red" size=".1"/>'), "'colour'"),
    _world(
        "name twice",
        "<mujoco><worldbody>" + 2 * _CUBE.format('<geom size=".1"/>') + "</worldbody></mujoco>",
        "repeated name 'cube'",
    ),
    _world(
        "motor of no joint",
        _body('<geom size=".1"/>')[:-9] + '<actuator><motor joint="k"/></actuator></mujoco>',
        "unknown transmission target 'k'",
    ),
    _world("unknown asset", _mesh("cube.stl"), "'cube.stl', which is not among the assets"),
    _world(
        "mesh that is junk",
        _asset('<mesh name="m" file="m.stl"/>').replace(
            "</mujoco>", _body('<geom type="mesh" mesh="m"/>')[8:]
        ),
        "MuJoCo says",
        assets={"m.stl": b"junk"},
    ),
    _disk("no such file", "", "empty", file="empty.xml"),
    _disk("only spaces", " \n\t ", "is empty"),
    _disk("binary", b"\x7fELF\xff\xfe\x00\x01" * 20, "is not text"),
    _disk("compiled model", b"\x8a\xd4\x00\x00mjb" * 9, "not text", file="model.mjb"),
    _disk("pickle", pickle.dumps({"a": [1.5, 2]}, protocol=4), "not text", file="scene.pkl"),
    _disk("cut off", "<mujoco><worldbody>", "not well-formed XML"),
    _disk("HTML", "<html></html>", "begins with <html>"),
    _disk("JSON", "{}", "not well-formed XML"),
    _disk(
        "50000 elements deep",
        "<mujoco>" + "<a>" * 50000 + "</a>" * 50000 + "</mujoco>",
        "200 deep|not well-formed",
    ),
    _disk("missing asset", _mesh("cube.stl"), r"'cube\.stl', which is not in"),
    _disk(
        "missing include", '<mujoco><include file="x.xml"/></mujoco>', r"'x\.xml', which is not in"
    ),
    _disk("include without a name", "<mujoco><include/></mujoco>", "which is not in"),
    _disk("folder as an asset", _mesh("m.stl"), "which is not in", prepare=_asset_folder),
    _disk(
        "index of another kind",
        "<mujoco/>",
        "no scene index",
        error=StoreError,
        prepare=_index("[]"),
    ),
    _disk(
        "index cut off",
        "<mujoco/>",
        r"scene\.json' is not JSON",
        error=StoreError,
        prepare=_index('{"schema": 1'),
    ),
    _disk(
        "components of another schema",
        "<mujoco/>",
        "schema 7",
        error=StoreError,
        prepare=_part("components.json", '{"schema": 7, "components": []}'),
    ),
    _disk(
        "component with an unknown key",
        "<mujoco/>",
        "'mood'",
        error=StoreError,
        prepare=_part("components.json", '{"schema": 1, "components": [{"mood": "good"}]}'),
    ),
    _disk(
        "cameras that are no list",
        "<mujoco/>",
        "a list 'cameras'",
        error=StoreError,
        prepare=_part("cameras.json", '{"schema": 1, "cameras": {}}'),
    ),
    _disk(
        "history with NaN",
        "<mujoco/>",
        r"history\.jsonl, line 2' holds NaN",
        error=StoreError,
        prepare=_part("history.jsonl", '{"stage": "a", "summary": "b"}\n{"stage": NaN}\n'),
    ),
    _disk(
        "history with an unknown key",
        "<mujoco/>",
        "History line is malformed",
        prepare=_part("history.jsonl", '{"stage": "a", "summary": "b", "mood": 1}\n'),
    ),
)

UNPHYSICAL = (
    _world("NaN position", _body('<geom size=".1" pos="0 nan 0"/>'), "holds NaN"),
    _world("NaN size", _body('<geom size="NaN"/>'), "holds NaN"),
    _world("NaN gravity", '<mujoco><option gravity="0 0 nan"/></mujoco>', "holds NaN"),
    _world("NaN mass", _body(_INERTIAL.format("nan", 'diaginertia="1 1 1"')), "NaN"),
    _world("infinite mass", _body(_INERTIAL.format("inf", 'diaginertia="1 1 1"')), "infinite"),
    _world(
        "triangle inequality, diagonal",
        _body(_INERTIAL.format(1, 'diaginertia="1 1 2.5"')),
        r"'cube'.*a \+ b >= c.*1 \+ 1 < 2\.5",
    ),
    _world(
        "triangle inequality, full",
        _body(_INERTIAL.format(1, 'fullinertia="1 1 2.5 0.01 0.01 0.01"')),
        r"'cube'.*triangle inequality",
    ),
    _world(
        "indefinite inertia",
        _body(_INERTIAL.format(1, 'fullinertia="1 1 1 2 0 0"')),
        "'cube'.*not positive definite",
    ),
    _world(
        "negative moment",
        _body(_INERTIAL.format(1, 'diaginertia="1 1 -1"')),
        "not positive definite",
    ),
    _world("negative mass", _body(_INERTIAL.format(-1, 'diaginertia="1 1 1"')), "mass is -1 kg"),
    _world("mass of nothing", _body(_INERTIAL.format(0, 'diaginertia="1 1 1"')), "mass is 0 kg"),
    _world("negative geom mass", _body('<geom size=".1" mass="-1"/>'), "negative"),
    _world("moving body without mass", _body('<geom size=".1" mass="0"/>'), "moving bodies"),
    _world("moving body without shape", _body(""), "moving bodies"),
    _world(
        "time going back",
        '<mujoco><option timestep="-1"/></mujoco>',
        "must be positive",
        error=SpecError,
    ),
)

SCENES = (*HOSTILE, *BROKEN, *UNPHYSICAL)
