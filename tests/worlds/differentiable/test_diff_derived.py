"""What MuJoCo's compiler derives from a model is derived alike, and so are its quirks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import jax
import mujoco
import numpy as np
import pytest
from diff_cases import quick

from sameworld.worlds.differentiable.dynamics import inverted
from sameworld.worlds.differentiable.parameters import raw_leaves
from sameworld.worlds.differentiable.step import derived, plant_of
from sameworld.worlds.differentiable.system import system_of
from sameworld.worlds.differentiable.touch import candidates

FLOOR = '<geom type="plane" size="1 1 1"/>'
SLIDE_X, SLIDE_Y = '<joint type="slide" axis="1 0 0"/>', '<joint type="slide" axis="0 1 0"/>'
JOINTS = {
    "free": "<freejoint/>",
    "free with armature": '<joint type="free" armature=".3"/>',
    "ball": '<joint type="ball"/>',
    "hinge": '<joint axis="0 0 1"/>',
    "hinge away from the centre": '<joint axis="0 0 1" pos=".2 0 0"/>',
    "two hinges": '<joint axis="0 0 1"/><joint axis="0 1 0"/>',
    "slide": SLIDE_X,
    "oblique slide": '<joint type="slide" axis="1 .4 0"/>',
    "slide with armature": '<joint type="slide" armature="2"/>',
    "two slides": SLIDE_X + SLIDE_Y,
    "two slides and a hinge": SLIDE_X + SLIDE_Y + '<joint axis="0 0 1"/>',
    "no joint": "",
}
CHILDREN = {
    "alone": "",
    "with a fixed child": '<body pos=".3 0 .1"><geom size=".1"/></body>',
    "with a moving child": '<body pos=".3 0 .1"><joint type="slide"/><geom size=".1"/></body>',
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """Inverse weights of the core, and the model that has C's."""

    model: mujoco.MjModel
    bodies: np.ndarray
    dofs: np.ndarray


@pytest.fixture(scope="module")
def weights() -> Weights:
    """One tree for every kind of joint and child, all in one scene."""
    trees = [
        f"""<body name="{joint}, {child}" pos="{3 * k} 0 1">{JOINTS[joint]}
            <geom size=".1"/>{CHILDREN[child]}</body>"""
        for k, (joint, child) in enumerate(product(JOINTS, CHILDREN))
    ]
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{FLOOR}{''.join(trees)}</worldbody></mujoco>"
    )
    system = system_of(model, candidates(model))
    with jax.enable_x64(True):
        run = quick(lambda leaves: derived(system, leaves))
        found = jax.tree.map(np.array, run(raw_leaves(model)))
    return Weights(model=model, bodies=found["body_invweight0"], dofs=found["dof_invweight0"])


@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("joint", JOINTS)
def test_inverse_weights_are_those_of_mujoco(weights: Weights, joint: str, child: str) -> None:
    model, root = weights.model, weights.model.body(f"{joint}, {child}").id
    bodies = np.flatnonzero(model.body_rootid == root)
    dofs = np.flatnonzero(np.isin(model.dof_bodyid, bodies))
    exact = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(weights.bodies[bodies], model.body_invweight0[bodies], **exact)
    np.testing.assert_allclose(weights.dofs[dofs], model.dof_invweight0[dofs], **exact)


def test_the_scene_has_bodies_of_every_kind_that_mujoco_simplifies(weights: Weights) -> None:
    assert set(weights.model.body_simple.tolist()) == {0, 1, 2}


def test_laws_see_the_moment_about_the_z_axis_of_the_body_not_a_principal_one() -> None:
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><body><freejoint/>
        <geom type="box" size=".3 .1 .05"/><geom type="box" size=".05 .1 .05" pos=".2 0 .1"/>
        </body></worldbody></mujoco>""")
    system, data, inertia = system_of(model, []), mujoco.MjData(model), np.zeros((6, 6))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, inertia)
    about_centre = inertia[5, 5] - model.body_mass[1] * np.sum(model.body_ipos[1, :2] ** 2)
    with jax.enable_x64(True):
        leaves = {name: jax.numpy.asarray(array) for name, array in raw_leaves(model).items()}
        mass, moment = np.array(plant_of(system, leaves).masses)[1]
    assert mass == pytest.approx(model.body_mass[1], rel=1e-12)
    assert moment == pytest.approx(about_centre, rel=1e-12)
    assert abs(moment - model.body_inertia[1, 2]) > 0.1


@pytest.mark.parametrize(("count", "rows"), [(4, 6), (64, 6), (4, 40), (64, 25)])
def test_matrices_of_a_batch_are_inverted_as_each_alone(count: int, rows: int) -> None:
    spread = np.random.default_rng(0).normal(size=(count, rows, rows))
    matrices = spread @ np.swapaxes(spread, 1, 2) + rows * np.eye(rows)

    def both(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        return inverted(matrix), inverted(2 * matrix)

    with jax.enable_x64(True):
        once, half = jax.tree.map(np.array, quick(jax.vmap(both))(matrices))
        slope = jax.grad(lambda a: jax.vmap(inverted)(a).sum())(jax.numpy.asarray(matrices))
    np.testing.assert_allclose(once, np.linalg.inv(matrices), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(2 * half, once, rtol=1e-9, atol=1e-12)
    assert not np.any(slope)
