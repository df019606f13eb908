"""The exported MJCF carries the belief's means: any MuJoCo program simulates the same world."""

import mujoco
import numpy as np
import pytest

from sameworld.core import SceneError, Values, rollout
from sameworld.worlds import build
from sameworld.zoo import scene

VALUES = {
    "cube": {
        "body:cube.com.z": 0.006,
        "body:cube.inertia.x": 0.0011,
        "pair:cube_box+floor.friction.slide": 0.3,
        "pair:cube_box+floor.solref.timeconst": 0.009,
        "geom:floor.pos.z": -0.002,
    },
    "cart": {"body:cart.mass": 2.5, "joint:rail.damping": 0.9},
    "arm": {"joint:j2.damping": 2.0, "joint:j4.frictionloss": 0.7},
}


@pytest.mark.parametrize("name", VALUES)
def test_exported_scene_simulates_as_the_world_does(name):
    world = build(scene(name))
    fitted = world.with_belief(world.parameters.with_values(VALUES[name]))
    raw = mujoco.MjModel.from_xml_string(fitted.mjcf())
    data = mujoco.MjData(raw)
    mine = rollout(
        fitted,
        Values.none(),
        np.full((1, 30, fitted.spec.action_size), 0.2),
    )
    substeps = round(fitted.spec.period / raw.opt.timestep)
    data.ctrl[:] = 0.2
    for _ in range(30):
        mujoco.mj_step(raw, data, substeps)
    seen = np.concatenate([np.ravel(mine.signals[c.name][0, -1]) for c in fitted.spec.observations])
    again = build(scene(name)).kernel.tables.signals(
        data.qpos[None], data.qvel[None], data.sensordata[None]
    )
    raw_seen = np.concatenate([np.ravel(again[c.name]) for c in fitted.spec.observations])
    np.testing.assert_allclose(seen, raw_seen, atol=2e-5)  # MJCF text holds six digits


def test_impossible_means_are_refused():
    world = build(scene("cube"))
    broken = world.with_belief(
        world.parameters.with_values(
            {
                "body:cube.inertia.x": 0.002,
                "body:cube.inertia.y": 0.0005,
                "body:cube.inertia.z": 0.0005,
            }
        )
    )
    with pytest.raises(SceneError, match="cannot be written"):
        broken.mjcf()
