"""A scene is content: its id follows physics, assets and components, nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sameworld.core import Belief, Camera, Component, HistoryLine, Parameter, Scene, SceneError

MJCF = "<mujoco/>"
FRICTION = Component(name="f", type="stribeck", version=1, target="joint:j", settings={"v": 0.1})


def test_the_id_follows_what_changes_the_physics():
    scene = Scene(name="s", mjcf=MJCF, assets={"a.stl": b"1"}, components=(FRICTION,))
    others = [
        replace(scene, mjcf=MJCF + " "),
        replace(scene, assets={"a.stl": b"2"}),
        replace(scene, assets={"b.stl": b"1"}),
        replace(scene, assets={}),
        replace(scene, components=()),
        replace(scene, components=(replace(FRICTION, settings={"v": 0.2}),)),
    ]
    assert len({s.id for s in (scene, *others)}) == len(others) + 1
    line = HistoryLine(stage="x", summary="y")
    belief = Belief(parameters=(Parameter(name="body:a.mass", value=1),))
    same = [
        replace(scene, name="t"),
        replace(scene, appearance={"s.ply": b"p"}),
        replace(scene, history=(line,)),
        scene.with_belief(belief, line),
    ]
    assert {s.id for s in same} == {scene.id}


def test_the_id_does_not_depend_on_the_kind_of_number():
    scenes = [
        Scene(name="s", mjcf=MJCF, components=(replace(FRICTION, settings=settings),))
        for settings in ({"v": 2.0, "m": "a"}, {"m": "a", "v": np.float64(2)}, {"v": 2, "m": "a"})
    ]
    assert len({scene.id for scene in scenes}) == 1


def test_assets_in_another_order_are_the_same_scene():
    one = Scene(name="s", mjcf=MJCF, assets={"a": b"1", "b": b"2"})
    two = Scene(name="s", mjcf=MJCF, assets={"b": b"2", "a": b"1"})
    assert one.id == two.id


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "C:\\x", "a\\b", "", "C:/x"])
@pytest.mark.parametrize("field", ["assets", "appearance"])
def test_file_names_stay_inside(path, field):
    with pytest.raises(SceneError, match="leaves the scene folder"):
        Scene(name="s", mjcf=MJCF, **{field: {path: b""}})


@pytest.mark.parametrize("scope", ["session", "episode"])
def test_a_scene_believes_in_scene_parameters_only(scope):
    belief = Belief(parameters=(Parameter(name="start:a.x", value=0, scope=scope),))
    with pytest.raises(SceneError, match=r"not of scope 'scene'.*Episode\.start"):
        Scene(name="s", mjcf=MJCF, belief=belief)


def test_a_new_belief_may_add_a_line_of_history():
    scene = Scene(name="s", mjcf=MJCF)
    line = HistoryLine(stage="identify", summary="Fitted.", inputs={"e": "00"}, seed=1)
    assert scene.with_belief(Belief()).history == ()
    assert scene.with_belief(Belief(), line).history == (line,)
    assert scene.history == ()


def test_history_survives_json_and_refuses_what_it_does_not_know():
    line = HistoryLine(stage="identify", summary="Fitted.", inputs={"e": "00"}, seed=1)
    assert HistoryLine.from_json(json.loads(json.dumps(line.to_json()))) == line
    for record in ({"stage": "x"}, {"stage": "x", "summary": "y", "mood": "good"}, [1], None):
        with pytest.raises(SceneError, match="malformed"):
            HistoryLine.from_json(record)


CAMERA = {
    "name": "c",
    "width": 4,
    "height": 3,
    "intrinsics": np.eye(3),
    "position": np.zeros(3),
    "quaternion": [1.0, 0, 0, 0],
}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"intrinsics": np.eye(4)}, r"intrinsics has shape \(4, 4\)"),
        ({"position": [0, np.nan, 0]}, "position holds 1 NaN"),
        ({"quaternion": [1, 1, 0, 0]}, "unit length"),
        ({"width": 0}, "0 x 3 pixels"),
    ],
)
def test_impossible_cameras_are_refused(fields, words):
    Camera(**CAMERA)
    with pytest.raises(SceneError, match=words):
        Camera(**{**CAMERA, **fields})
