"""Scenes with components on disk, and what a bare MuJoCo viewer is told."""

import json
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from component_cases import SCENES, excitation, servo

from sameworld.core import Belief, Parameter, rollout
from sameworld.store import load_scene, save_scene
from sameworld.worlds.explicit import explicit_world


@pytest.mark.parametrize("name", ["servo_m6", "firmware_inputs", "arm", "kinematic_car"])
def test_scenes_with_components_survive_the_disk(name, tmp_path):
    scene = SCENES[name]
    first = scene.components[0]
    field = next(
        p.name
        for p in explicit_world(scene).parameters.parameters
        if p.name.startswith(f"component:{first.name}.") and p.value > 0
    )
    known = explicit_world(scene).parameters[field]
    belief = Belief(parameters=(Parameter(name=field, value=1.01 * known.value, std=0.1),))
    scene = scene.with_belief(belief)
    save_scene(scene, tmp_path / "scene")
    back = load_scene(tmp_path / "scene")
    assert back.id == scene.id
    assert back.components == scene.components
    worlds = explicit_world(scene), explicit_world(back)
    assert worlds[1].parameters[field].value == pytest.approx(1.01 * known.value)
    start, actions = excitation(worlds[0], 2, 10)
    mine, theirs = (rollout(w, start, actions).signals for w in worlds)
    for signal, values in mine.items():
        np.testing.assert_array_equal(values, theirs[signal])


def test_the_folder_says_what_a_bare_viewer_does_not_run(tmp_path):
    save_scene(servo("m4"), tmp_path / "scene")
    told = json.loads((tmp_path / "scene" / "scene.json").read_text())["not_run_by_a_bare_viewer"]
    assert told == [
        "gear_friction 'friction' acting on joint:elbow",
        "firmware_servo 'firmware' acting on actuator:motor",
    ]
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml")).nu == 1


def test_components_written_by_hand_are_read(tmp_path):
    save_scene(servo("m1"), tmp_path / "scene")
    record = {
        "schema": 1,
        "components": [
            {
                "name": "gearbox",
                "type": "gear_friction",
                "version": 1,
                "target": "joint:elbow",
                "settings": {"model": "m2", "coulomb": 0.07},
            }
        ],
    }
    (tmp_path / "scene" / "components.json").write_text(json.dumps(record))
    world = explicit_world(load_scene(tmp_path / "scene"))
    assert world.parameters["component:gearbox.coulomb"].value == 0.07
    assert "component:gearbox.stribeck" in world.parameters.names


def test_plain_mjcf_of_a_scene_names_the_components_it_leaves_out():
    text = explicit_world(servo("m4")).mjcf()
    comment = text.split("-->")[0]
    assert text.startswith("<!-- MuJoCo alone does not run these components:")
    assert "gear_friction 'friction' on joint:elbow" in comment
    assert "firmware_servo 'firmware' on actuator:motor" in comment
    model = mujoco.MjModel.from_xml_string(text)
    assert model.dof_frictionloss[0] == 0
    again = explicit_world(replace(servo("m4"), mjcf=text))
    assert again.parameters["component:friction.load"].value == 0.05


def test_plain_mjcf_without_components_has_no_such_comment():
    scene = servo("m4")
    bare = type(scene)(name="bare", mjcf=scene.mjcf)
    assert "components" not in explicit_world(bare).mjcf()
