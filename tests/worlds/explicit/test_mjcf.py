"""The gate: what a scene may not contain."""

from dataclasses import replace

import numpy as np
import pytest

from sameworld.core import Scene, SceneError
from sameworld.core.errors import SameworldWarning
from sameworld.worlds import build
from sameworld.worlds.explicit import checked_mjcf

TETRAHEDRON = b"""v 0 0 0
v .1 0 0
v 0 .12 0
v 0 0 .14
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
BODY = '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>'


def scene(inside, assets=None):
    return Scene(name="s", mjcf=f"<mujoco>{inside}</mujoco>", assets=assets or {})


MESH = '<asset><mesh name="m" file="{}"/></asset>'
REFUSED = {
    "a DOCTYPE": ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco/>', "DOCTYPE"),
    "another root": ("<robot/>", "root <robot>"),
    "broken XML": ("<mujoco", "not well-formed"),
    "an absolute file": (f"<mujoco>{MESH.format('/etc/passwd')}</mujoco>", "leaves the scene"),
    "a file above": (f"<mujoco>{MESH.format('../x.obj')}</mujoco>", "leaves the scene"),
    "a foreign drive": (f"<mujoco>{MESH.format('C:x.obj')}</mujoco>", "leaves the scene"),
    "a folder above": ('<mujoco><compiler meshdir="../.."/></mujoco>', "leaves the scene"),
    "a missing file": (f"<mujoco>{MESH.format('x.obj')}</mujoco>", "not among the assets"),
    "a missing include": ('<mujoco><include file="b.xml"/></mujoco>', "not among the assets"),
    "a sub-model": ('<mujoco><asset><model name="m" file="/x.xml"/></asset></mujoco>', "leaves"),
    "a plugin": (
        '<mujoco><extension><plugin plugin="mujoco.pid"/></extension></mujoco>',
        "shared libraries",
    ),
    "copies without end": (
        '<mujoco><worldbody><replicate count="9999"><replicate count="9999"><geom size="1"/>'
        "</replicate></replicate></worldbody></mujoco>",
        "copies",
    ),
    "a huge arena": ('<mujoco><size memory="900G"/></mujoco>', "exceeds the limit"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_the_gate_refuses(what):
    text, reason = REFUSED[what]
    with pytest.raises(SceneError, match=reason):
        checked_mjcf(text, {})
    with pytest.raises(SceneError, match=reason):
        build(Scene(name="s", mjcf=text))


def test_includes_are_read_from_the_assets_and_checked_too():
    inside = '<include file="parts/b.xml"/>'
    good = scene(inside, {"parts/b.xml": f"<mujoco>{BODY}</mujoco>".encode()})
    assert build(good).spec.observation("j.pos")
    bad = scene(inside, {"parts/b.xml": b'<mujoco><include file="/etc/hosts"/></mujoco>'})
    with pytest.raises(SceneError, match=r"asset 'parts/b.xml'.*leaves the scene"):
        build(bad)
    circle = scene(inside, {"parts/b.xml": b'<mujoco><include file="parts/b.xml"/></mujoco>'})
    with pytest.raises(SceneError, match="circle"):
        build(circle)


def test_an_include_of_any_ending_comes_from_the_assets_not_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.mjcf").write_text(f"<mujoco>{BODY.replace('j', 'disk')}</mujoco>")
    asset = {"part.mjcf": f"<mujoco>{BODY}</mujoco>".encode()}
    world = build(scene('<include file="part.mjcf"/>', asset))
    assert [c.name for c in world.spec.observations] == ["j.pos", "j.vel"]


def test_mujocos_complaints_become_scene_errors_with_the_line():
    with pytest.raises(SceneError, match=r"unrecognized attribute: 'foo'.*line 1"):
        build(scene('<worldbody><geom size="1" foo="2"/></worldbody>'))
    with pytest.raises(SceneError, match="mesh 'q' not found"):
        build(scene('<worldbody><geom type="mesh" mesh="q"/></worldbody>'))


@pytest.mark.parametrize(
    ("inertial", "reason"),
    [
        ('mass="1" diaginertia="1 1 3"', r"triangle inequality.*1 \+ 1 < 3"),
        ('mass="1" fullinertia="1 1 3 0 0 0"', "triangle inequality"),
        ('mass="1" fullinertia="1 1 1 2 0 0"', "positive definite"),
        ('mass="0" diaginertia="1 1 1"', "must be positive"),
        ('mass="-1" diaginertia="1 1 1"', "must be positive"),
    ],
)
def test_an_unphysical_inertia_names_body_and_numbers(inertial, reason):
    body = f'<body name="b"><joint/><inertial pos="0 0 0" {inertial}/><geom size=".1"/></body>'
    with pytest.raises(SceneError, match=f"'b': .*{reason}"):
        build(scene(f"<worldbody>{body}</worldbody>"))


def test_a_moving_body_without_mass_is_refused():
    with pytest.raises(SceneError, match="moving bodies"):
        build(scene('<worldbody><body name="b"><freejoint/></body></worldbody>'))


def test_millimetres_for_metres_are_suspected():
    big = (
        '<worldbody><body name="b"><joint/><geom name="g" size="{}" mass="{}"/></body></worldbody>'
    )
    with pytest.warns(SameworldWarning, match="written in millimetres"):
        build(scene(big.format(250, 1)))
    with pytest.warns(SameworldWarning, match=r"weighs 2e\+04 kg"):
        build(scene(big.format(0.1, 2e4)))


def test_a_mass_from_an_open_mesh_is_suspected(zoo):
    lidless = TETRAHEDRON.replace(b"f 2 3 4\n", b"")
    with pytest.warns(SameworldWarning, match="body 'rock' comes from mesh 't'.*not watertight"):
        build(replace(zoo, assets={"t.obj": lidless}))


def test_unnamed_elements_get_stable_names():
    body = '<body><joint/><geom name="geom0" size=".1"/><geom size=".2"/></body>'
    names = build(scene(f"<worldbody>{body}</worldbody>")).parameters.names
    assert "joint:joint0.damping" in names and "body:body1.mass" in names
    assert "geom:geom0.pos.x" in names and "geom:geom1.pos.x" in names


def test_assets_reach_mujoco_without_the_disk(zoo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = build(zoo)
    assert np.isclose(world.parameters["body:rock.com.x"].value, world.kernel.model.body_ipos[2, 0])
    with pytest.raises(SceneError, match="not among the assets"):
        build(replace(zoo, assets={}))
