import mujoco
import numpy as np
import pytest

from sameworld.core import SceneError
from sameworld.zoo import scene, scene_names


@pytest.mark.parametrize("name", scene_names())
def test_scenes_compile_and_stay_finite(name):
    model = mujoco.MjModel.from_xml_string(scene(name).mjcf)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=500)
    assert np.isfinite(data.qpos).all()
    assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "view") >= 0


@pytest.mark.parametrize("name", scene_names())
def test_the_control_period_is_a_whole_number_of_timesteps(name):
    model = mujoco.MjModel.from_xml_string(scene(name).mjcf)
    ratio = model.numeric("control_period").data[0] / model.opt.timestep
    assert ratio == pytest.approx(round(ratio), abs=1e-9)


@pytest.mark.parametrize("name", scene_names())
def test_every_name_in_the_belief_exists_in_the_model(name):
    kinds = {
        "body": mujoco.mjtObj.mjOBJ_BODY,
        "geom": mujoco.mjtObj.mjOBJ_GEOM,
        "pair": mujoco.mjtObj.mjOBJ_GEOM,
        "joint": mujoco.mjtObj.mjOBJ_JOINT,
        "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    }
    zoo_scene = scene(name)
    model = mujoco.MjModel.from_xml_string(zoo_scene.mjcf)
    assert len(zoo_scene.belief) > 0
    for parameter in zoo_scene.belief.parameters:
        address = parameter.address
        for target in address.target.split("+"):
            if address.kind in kinds:
                assert mujoco.mj_name2id(model, kinds[address.kind], target) >= 0, parameter.name


def test_the_cube_is_the_recorded_cube():
    model = mujoco.MjModel.from_xml_string(scene("cube").mjcf)
    assert model.body("cube").mass[0] == pytest.approx(0.37)
    assert model.body("cube").inertia == pytest.approx([0.00081] * 3)
    assert model.geom("cube_box").size == pytest.approx([0.0524] * 3)
    assert model.opt.timestep * 4 == pytest.approx(1 / 148)


def test_an_unknown_scene_is_named_with_what_exists():
    with pytest.raises(SceneError, match=r"'cub'.*Did you mean 'cube'"):
        scene("cub")


def test_scenes_know_where_they_come_from():
    assert scene("arm").history[0].stage == "zoo"
