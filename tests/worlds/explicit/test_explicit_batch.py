"""`mujoco.batch`, where the installed MuJoCo has it, is an independent twin of the rollout."""

import copy

import mujoco
import numpy as np
import pytest

from sameworld.core import Values, rollout
from sameworld.worlds import build
from sameworld.zoo import scene

batch = pytest.importorskip("mujoco.batch", reason="this MuJoCo has no mujoco.batch")

FRICTION = "pair:cube_box+floor.friction.slide"


def test_rollout_equals_mujoco_batch_bit_for_bit():
    world = build(scene("cube"))
    ticks, values = 40, np.array([0.1, 0.18, 0.4])
    start = Values(
        names=("start:cube.pos.z", "start:cube.vel.x", "start:cube.omega.y"),
        array=np.array([[0.09, 1.0, 6.0]]),
    )
    mine = rollout(
        world,
        start.broadcast(3),
        np.zeros((3, ticks, 0)),
        parameters=Values(names=(FRICTION,), array=values[:, None]),
    )
    model = mujoco.MjModel.from_xml_string(scene("cube").mjcf)
    models = [copy.copy(model) for _ in values]
    for edited, friction in zip(models, values, strict=True):
        edited.geom_friction[:, 0] = friction
    twin = batch.Batch(model, 3, nthread=1)
    twin.set_models(models)
    twin.bind("qpos")[:] = np.concatenate([[0, 0, 0.09], [1, 0, 0, 0]])
    twin.bind("qvel")[:] = [1.0, 0, 0, 0, 6.0, 0]
    substeps = round(world.spec.period / model.opt.timestep)
    recorded = twin.rollout(ticks * substeps, record=["qpos"])["qpos"]
    theirs = np.asarray(recorded)[:, substeps - 1 :: substeps]
    np.testing.assert_array_equal(mine.signals["cube.pos"][:, 1:], theirs[:, :, :3])
    np.testing.assert_array_equal(mine.signals["cube.quat"][:, 1:], theirs[:, :, 3:])
