"""Scenes survive the disk, open in a bare viewer, and read nothing outside their folder."""

import dataclasses
import struct

import mujoco
import numpy as np
import pytest

from sameworld.core import Belief, Camera, Component, HistoryLine, Parameter, Scene
from sameworld.core.errors import SceneError, StoreError
from sameworld.store import load_scene, save_scene


def _stl(scale=0.1):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * scale
    faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]
    rows = b"".join(
        struct.pack("<12fH", 0, 0, 0, *(float(x) for i in face for x in corners[i]), 0)
        for face in faces
    )
    return b"\0" * 80 + struct.pack("<I", 4) + rows


def _mjcf(file, compiler=""):
    return (
        f'<mujoco model="thing"><compiler {compiler}/><asset><mesh name="m" file="{file}"/></asset>'
        '<worldbody><body name="cube"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody>'
        "</mujoco>"
    )


def _scene(mjcf=None, assets=None):
    return Scene(
        name="Küche / 1",
        mjcf=mjcf or _mjcf("assets/cube.stl"),
        assets={"assets/cube.stl": _stl()} if assets is None else assets,
        components=(
            Component(
                name="f",
                type="stribeck",
                version=2,
                target="joint:j",
                settings={"v": 0.1, "mode": "fast"},
            ),
        ),
        cameras=(
            Camera(
                name="cam",
                width=64,
                height=48,
                intrinsics=np.array([[60.1, 0, 32], [0, 60, 24], [0, 0, 1]]),
                position=[0.1, 0.2, 1 / 3],
                quaternion=[1, 0, 0, 0],
                parent="cube",
            ),
        ),
        appearance={"cube/splats.bin": b"\x00\xff" * 100, "plain.ply": b"ply"},
        belief=Belief(parameters=(Parameter(name="body:cube.mass", value=0.1, std=0.02),)),
        history=(
            HistoryLine(
                stage="reconstruct", summary="Two\nlines.", inputs={"a": "00"}, seed=3, version="1"
            ),
            HistoryLine(stage="identify", summary="Ünïcode\u2028."),
        ),
    )


def _assert_same(a, b):
    assert (a.name, a.mjcf, a.id) == (b.name, b.mjcf, b.id)
    assert dict(a.assets) == dict(b.assets)
    assert dict(a.appearance) == dict(b.appearance)
    assert (a.components, a.history) == (b.components, b.history)
    assert a.belief.parameters == b.belief.parameters
    for one, two in zip(a.cameras, b.cameras, strict=True):
        for field in dataclasses.fields(Camera):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))


LAYOUTS = {
    "assets": (_mjcf("assets/cube.stl"), {"assets/cube.stl": _stl()}),
    "beside": (_mjcf("cube.stl"), {"cube.stl": _stl()}),
    "meshdir": (_mjcf("sub/cube.stl", 'meshdir="meshes"'), {"meshes/sub/cube.stl": _stl()}),
    "base name in memory": (_mjcf("cube.stl", 'meshdir="meshes/"'), {"cube.stl": _stl()}),
    "dots": (_mjcf("./cube.stl", 'assetdir="x/../assets"'), {"assets/cube.stl": _stl()}),
    "strippath": (_mjcf("C/far/cube.stl", 'strippath="true"'), {"cube.stl": _stl()}),
    "never named": (
        _mjcf("assets/cube.stl"),
        {"assets/cube.stl": _stl(), "notes/readme.txt": b"kept too"},
    ),
    "include": (
        '<mujoco><include file="parts/body.xml"/></mujoco>',
        {"parts/body.xml": _mjcf("a.stl").encode(), "parts/a.stl": _stl()},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_scene_survives_the_disk_and_opens_in_a_bare_viewer(tmp_path, layout):
    scene = _scene(*LAYOUTS[layout])
    save_scene(scene, tmp_path / "s")
    _assert_same(load_scene(tmp_path / "s"), scene)
    _assert_same(load_scene(tmp_path / "s" / "scene.xml"), scene)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "s" / "scene.xml"))
    assert model.nmesh == 1


def test_saving_again_needs_a_word_and_replaces_everything(tmp_path):
    save_scene(_scene(), tmp_path / "s")
    other = _scene(_mjcf("assets/other.stl"), {"assets/other.stl": _stl(0.2)})
    with pytest.raises(StoreError, match="overwrite=True"):
        save_scene(other, tmp_path / "s")
    _assert_same(load_scene(tmp_path / "s"), _scene())
    save_scene(other, tmp_path / "s", overwrite=True)
    _assert_same(load_scene(tmp_path / "s"), other)
    assert not (tmp_path / "s" / "assets" / "cube.stl").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_foreign_files_are_never_lost(tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(StoreError, match="no scene folder"):
        save_scene(_scene(), tmp_path, overwrite=True)
    save_scene(_scene(), tmp_path / "s")
    (tmp_path / "s" / "assets" / "mine.txt").write_text("precious")
    with pytest.raises(StoreError, match=r"mine\.txt.*would be lost"):
        save_scene(_scene(), tmp_path / "s", overwrite=True)
    assert (tmp_path / "s" / "assets" / "mine.txt").read_text() == "precious"
    with pytest.raises(StoreError, match="is a file"):
        save_scene(_scene(), tmp_path / "notes.txt", overwrite=True)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("belief.json", StoreError, "name of another part"),
        ("Scene.XML", StoreError, "name of another part"),
        ("appearance/x.stl", StoreError, "name of another part"),
        ("a\0b", SceneError, "leave the scene folder"),
        ("x" * 300, StoreError, "Cannot write"),
    ],
)
def test_hostile_asset_names_are_refused_and_nothing_is_left(tmp_path, name, error, words):
    scene = _scene("<mujoco/>", {name: b""})
    with pytest.raises(error, match=words):
        save_scene(scene, tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_scene_that_names_a_file_it_lacks_is_not_saved(tmp_path):
    with pytest.raises(SceneError, match=r"assets/cube\.stl.*not among its assets"):
        save_scene(_scene(assets={}), tmp_path / "s")


def test_a_bare_file_brings_its_includes_and_assets(tmp_path):
    (tmp_path / "robot" / "meshes" / "arm").mkdir(parents=True)
    (tmp_path / "robot" / "meshes" / "arm" / "a.stl").write_bytes(_stl())
    (tmp_path / "robot" / "main.xml").write_text(
        '<mujoco model="duo"><compiler meshdir="meshes"/><include file="parts/one.xml"/>'
        '<worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'
    )
    (tmp_path / "robot" / "parts").mkdir()
    (tmp_path / "robot" / "parts" / "one.xml").write_text(
        '<mujoco><include file="two.xml"/><asset><mesh name="m" file="arm/a.stl"/></asset></mujoco>'
    )
    (tmp_path / "robot" / "parts" / "two.xml").write_text(
        "<mujocoinclude><worldbody><body name='b'><freejoint/><geom type='mesh' mesh='m'/></body>"
        "</worldbody></mujocoinclude>"
    )
    twin = mujoco.MjModel.from_xml_path(str(tmp_path / "robot" / "main.xml"))
    scene = load_scene(tmp_path / "robot" / "main.xml")
    assert scene.name == "duo"
    assert "include" not in scene.mjcf
    assert set(scene.assets) == {"meshes/arm/a.stl"}
    assert scene.history[0].inputs.keys() == {"main.xml"}
    model = mujoco.MjSpec.from_string(scene.mjcf, assets=dict(scene.assets)).compile()
    np.testing.assert_array_equal(model.body_mass, twin.body_mass)
    save_scene(scene, tmp_path / "s")
    _assert_same(load_scene(tmp_path / "s"), scene)


def test_assets_beside_an_included_file_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.stl").write_bytes(_stl())
    (tmp_path / "sub" / "b.xml").write_text(_mjcf("a.stl"))
    (tmp_path / "main.xml").write_text('<mujoco><include file="sub/b.xml"/></mujoco>')
    scene = load_scene(tmp_path / "main.xml")
    assert set(scene.assets) == {"sub/a.stl"}
    assert mujoco.MjSpec.from_string(scene.mjcf, assets=dict(scene.assets)).compile().nmesh == 1


def test_attached_models_bring_their_own_assets(tmp_path):
    (tmp_path / "gripper").mkdir()
    (tmp_path / "gripper" / "g.xml").write_text(_mjcf("finger.stl"))
    (tmp_path / "gripper" / "finger.stl").write_bytes(_stl())
    (tmp_path / "main.xml").write_text(
        '<mujoco><asset><model name="g" file="gripper/g.xml"/></asset><worldbody><frame>'
        '<attach model="g" body="cube" prefix="g_"/></frame></worldbody></mujoco>'
    )
    scene = load_scene(tmp_path / "main.xml")
    assert set(scene.assets) == {"gripper/g.xml", "gripper/finger.stl"}
    parts = {"gripper/g.xml": scene.assets["gripper/g.xml"]}
    spec = mujoco.MjSpec.from_string(scene.mjcf, include=parts, assets=dict(scene.assets))
    assert spec.compile().nmesh == 1


def test_textures_and_height_fields_follow_their_own_folders(tmp_path):
    for name in ("t/a.png", "t/b.png", "m/h.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "x.xml").write_text(
        '<mujoco><compiler meshdir="m" texturedir="t"/><asset><hfield name="h" file="h.png"/>'
        '<texture name="s" type="skybox" fileup="a.png" filedown="b.png"/></asset></mujoco>'
    )
    assert set(load_scene(tmp_path / "x.xml").assets) == {"t/a.png", "t/b.png", "m/h.png"}


def test_a_folder_of_another_tool_needs_only_the_xml(tmp_path):
    (tmp_path / "f" / "assets").mkdir(parents=True)
    (tmp_path / "f" / "appearance").mkdir()
    (tmp_path / "f" / "scene.xml").write_text(_mjcf("assets/cube.stl"))
    (tmp_path / "f" / "assets" / "cube.stl").write_bytes(_stl())
    (tmp_path / "f" / "assets" / "extra.txt").write_bytes(b"x")
    (tmp_path / "f" / "appearance" / "s.ply").write_bytes(b"ply")
    scene = load_scene(tmp_path / "f")
    assert set(scene.assets) == {"assets/cube.stl", "assets/extra.txt"}
    assert dict(scene.appearance) == {"s.ply": b"ply"}
    assert (scene.name, len(scene.belief), scene.history) == ("thing", 0, ())


def test_an_edited_xml_brings_the_files_it_newly_names(tmp_path):
    save_scene(_scene(), tmp_path / "s")
    (tmp_path / "s" / "new.stl").write_bytes(_stl(0.3))
    (tmp_path / "s" / "scene.xml").write_text(_mjcf("new.stl"))
    assert set(load_scene(tmp_path / "s").assets) == {"assets/cube.stl", "new.stl"}


def test_the_size_limit_counts_all_files(tmp_path):
    save_scene(_scene(), tmp_path / "s")
    size = sum(p.stat().st_size for p in (tmp_path / "s").rglob("*") if p.is_file())
    load_scene(tmp_path / "s", limit=size)
    with pytest.raises(StoreError, match="limit of"):
        load_scene(tmp_path / "s", limit=size - 1)
