"""The same scene in several kinds of world: one contract, one behaviour."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from sameworld.core import Belief, Values, jacobian, rollout
from sameworld.worlds import build
from sameworld.worlds.check import check_world
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart, scene, scene_names

#: Starts that let a short run touch something.
CONTACT_STARTS = {
    "cube": Values.of(
        {
            "start:cube.pos.z": [0.06, 0.055, 0.12],
            "start:cube.vel.x": [0.5, 0.0, -0.4],
            "start:cube.omega.y": [1.0, -2.0, 3.0],
        }
    ),
    "sliding_box": Values.of({"start:slide.vel": [1.0, -0.5, 0.0]}),
}


@pytest.mark.parametrize("name", scene_names())
def test_the_explicit_kind_keeps_the_contract_on_every_scene(name):
    report = check_world(build(scene(name), "explicit"), starts=CONTACT_STARTS.get(name))
    report.raise_if_failed()
    assert report.row("parameters have an effect").outcome == "pass"
    assert report.row("rollout equals looping step").outcome == "pass"


@pytest.mark.parametrize("name", scene_names())
def test_the_scene_believes_what_the_model_holds(name):
    believed = scene(name).belief
    bare = build(replace(scene(name), belief=Belief()), "explicit").parameters
    for parameter in believed.parameters:
        if parameter.name in bare.names:
            assert bare[parameter.name].value == pytest.approx(parameter.value), parameter.name
            assert bare[parameter.name].unit in ("", parameter.unit), parameter.name


@pytest.mark.parametrize("analytic", [AnalyticPendulum(), AnalyticCart()])
def test_engine_and_formula_agree_in_signals_and_derivatives(analytic):
    explicit = build(analytic.scene, "explicit")
    assert explicit.spec.agrees_with(analytic.spec)
    rng = np.random.default_rng(2)
    start = Values(names=analytic.spec.start.names, array=rng.normal(size=(2, 2)))
    actions = rng.uniform(-3, 3, (2, 60, 1))
    wrt = (*analytic.spec.start.names, *analytic.parameters.names)
    engine = jacobian(explicit, start, actions, wrt=wrt)
    formula = jacobian(analytic, start, actions, wrt=wrt)
    assert (engine.method, formula.method) == ("differences", "gradient")
    for name, values in formula.rollout.signals.items():
        assert np.allclose(engine.rollout.signals[name], values, atol=1e-9)
        exact = formula.derivatives[name]
        error = np.abs(engine.derivatives[name] - exact).max(axis=(0, 1, 2))
        assert (error <= 1e-4 * np.abs(exact).max(axis=(0, 1, 2)) + 1e-9).all()


def test_other_parameter_values_mean_the_same_in_both_kinds():
    analytic = AnalyticPendulum()
    explicit = build(analytic.scene, "explicit")
    values = Values.of(
        {"body:bob.mass": [0.2, 1.3], "joint:pivot.damping": 0.1, "option:gravity.z": -3.7}
    )
    start = Values.of({"start:pivot.pos": 1.0})
    runs = [
        rollout(world, start, np.full((1, 80, 1), 0.4), parameters=values).signals["pivot.pos"]
        for world in (analytic, explicit)
    ]
    assert np.allclose(*runs, atol=1e-9)


def test_the_learned_kind_offers_the_same_signals():
    assert learned_cart().spec.agrees_with(AnalyticCart().spec)


def test_the_explicit_cube_is_plain_mujoco():
    world = build(scene("cube"), "explicit")
    start = Values.of({"start:cube.pos.z": 0.1, "start:cube.vel.x": 0.8, "start:cube.omega.y": 4.0})
    ours = rollout(world, start, np.zeros((1, 60, 0))).signals
    model = mujoco.MjModel.from_xml_string(world.scene.mjcf)
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[0], data.qvel[4] = 0.1, 0.8, 4.0
    for tick in range(60):
        mujoco.mj_step(model, data, nstep=4)
        assert np.allclose(ours["cube.pos"][0, tick + 1], data.qpos[:3], atol=1e-9)
