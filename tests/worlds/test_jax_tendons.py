"""Tendons in JAX beside MuJoCo's C code."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax_cases import (
    States,
    central,
    compiled,
    double,
    forwarded,
    leaves_of,
    moment_arms,
    over_states,
    quick,
    states_of,
)

from sameworld.core.errors import SceneError
from sameworld.worlds.differentiable.kinematics import Pose, posed
from sameworld.worlds.differentiable.rows import referenced
from sameworld.worlds.differentiable.structure import structure_of
from sameworld.worlds.differentiable.tendons import (
    TENDON_LEAVES,
    friction_block,
    limit_block,
    tendon_damping,
    tendon_motion,
    tendon_weights,
    tendons_of,
    tension,
)

TENDONS = """
<tendon>
  <fixed name="pair" stiffness="30" damping=".4" springlength="-.3 .4" limited="true" range="-.3 .4"
    margin=".05" frictionloss=".7" solreffriction=".03 1.2" solimpfriction=".8 .9 .01 .4 3">
    <joint joint="shoulder" coef="1.5"/><joint joint="slide" coef="-2"/>
  </fixed>
  <spatial name="cable" stiffness="200" damping="3" springlength="0 .9" frictionloss=".2">
    <site site="wall"/><site site="arm"/><site site="tip"/><site site="drone"/>
  </spatial>
  <spatial name="blocks" stiffness="50" springlength=".5" limited="true" range=".6 .9"
    solreflimit=".05 .8" solimplimit=".7 .95 .2 .5 2">
    <site site="wall"/><site site="hand"/><pulley divisor="2"/>
    <site site="hand"/><site site="rotor"/><site site="drone"/><pulley divisor="3"/>
    <site site="tip"/><site site="arm"/>
  </spatial>
  <fixed name="one" limited="true" range="0 1"><joint joint="rotor" coef=".5"/></fixed>
  <spatial name="inside" damping="2"><site site="arm"/><site site="hand"/></spatial>
  <spatial name="pinch" stiffness="10" damping="1" springlength="0">
    <site site="wrist"/><site site="palm"/>
  </spatial>
</tendon>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return compiled(TENDONS)


@pytest.fixture(scope="module")
def states(model) -> States:
    return states_of(model, 24)


@pytest.fixture(scope="module")
def function(model):
    """Lengths, moment arms, velocities, joint forces, and rows of limits and friction."""
    s, t = structure_of(model), tendons_of(model)

    def everything(leaves, q, v):
        length, jacobian = tendon_motion(t, s, leaves, posed(s, leaves, q), q)
        speed = jacobian @ v
        limits = limit_block(t, leaves, length, jacobian)
        friction, loss = friction_block(t, leaves, jacobian)
        force = jacobian.T @ tension(s, leaves, length, speed)
        rows = (
            (limits, referenced(limits, v, s.timestep, safe=True)),
            (friction, referenced(friction, v, s.timestep, safe=True, spring=False), loss),
        )
        return length, jacobian, speed, force, rows

    return over_states(everything)


@pytest.fixture(scope="module")
def computed(model, states, function):
    return function(leaves_of(model), states.q, states.v)


def close(ours: object, theirs: object, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_lengths_moment_arms_and_velocities_are_those_of_c(model, states, computed):
    length, jacobian, speed, _, _ = computed
    for k, data in enumerate(forwarded(model, states)):
        close(length[k], data.ten_length)
        close(jacobian[k], moment_arms(model, data))
        close(speed[k], data.ten_velocity)


def test_springs_with_slack_and_dampers_give_the_joint_forces_of_c(model, states, computed):
    for k, data in enumerate(forwarded(model, states)):
        close(computed[3][k], data.qfrc_passive, 1e-11)
    length, (lower, upper) = computed[0][:, 0], model.tendon_lengthspring[0]
    assert {*np.searchsorted([lower, upper], length)} == {0, 1, 2}


def test_limit_rows_are_those_of_c(model, states, computed):
    block, reference = computed[4][0]
    which = np.tile(np.flatnonzero(model.tendon_limited), 2)
    seen = 0
    for k, data in enumerate(forwarded(model, states)):
        rows = np.flatnonzero(data.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
        mine = np.flatnonzero(block.present[k])
        assert sorted(which[mine]) == sorted(data.efc_id[rows])
        mine = mine[np.argsort(which[mine], kind="stable")]
        compared(block, reference, k, mine, data, rows)
        seen += len(rows)
    assert seen > len(states)


def test_friction_rows_are_those_of_c(model, states, computed):
    block, reference, loss = computed[4][1]
    for k, data in enumerate(forwarded(model, states)):
        rows = np.flatnonzero(data.efc_type == mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
        assert len(rows) == 2
        compared(block, reference, k, np.arange(2), data, rows)
        close(loss[k], data.efc_frictionloss[rows])


def compared(block, reference, k, mine, data, rows):
    nv = data.qvel.size
    close(block.jacobian[k][mine], data.efc_J.reshape(-1, nv)[rows])
    close(block.position[k][mine], data.efc_pos[rows])
    close(block.margin[k][mine], data.efc_margin[rows])
    close(reference.regularisation[k][mine], data.efc_R[rows])
    np.testing.assert_allclose(
        reference.acceleration[k][mine], data.efc_aref[rows], rtol=1e-11, atol=1e-10
    )


def test_moment_arms_are_the_rate_of_the_length_along_any_motion(model, states, computed, function):
    moved = [steps(model, q, v) for q, v in zip(states.q, states.v, strict=True)]
    ahead, back = (
        function(leaves_of(model), np.array(side), states.v)[0] for side in zip(*moved, strict=True)
    )
    np.testing.assert_allclose((ahead - back) / 2e-6, computed[2], atol=1e-8)


def steps(model, q, v, h=1e-6):
    """States a little later and a little earlier."""
    both = np.stack([q, q])
    mujoco.mj_integratePos(model, both[0], v, h)
    mujoco.mj_integratePos(model, both[1], v, -h)
    return both


NAMES = ("tendon_stiffness", "tendon_damping", "tendon_lengthspring", "site_pos", "wrap_prm")


@pytest.fixture(scope="module")
def derivatives(model):
    """Joint forces, and their derivatives by parameters, positions and velocities, both ways."""
    s, t, constant = structure_of(model), tendons_of(model), leaves_of(model)

    def force(chosen, q, v):
        leaves = constant | chosen
        length, jacobian = tendon_motion(t, s, leaves, posed(s, leaves, q), q)
        return jacobian.T @ tension(s, leaves, length, jacobian @ v), length

    modes = [mode(force, argnums=(0, 1, 2), has_aux=True) for mode in (jax.jacfwd, jax.jacrev)]
    both = quick(lambda *at: tuple(mode(*at) for mode in modes))

    def run(q, v):
        with double():
            chosen = {name: jnp.array(constant[name]) for name in NAMES}
            return jax.tree.map(np.array, both(chosen, q, v))

    return run


def test_derivatives_of_joint_forces_by_parameters_are_those_of_c(model, states, derivatives):
    constant, q, v = leaves_of(model), states.q[3], states.v[3]

    def by_c(name):
        def passive(value):
            changed = copy.copy(model)
            changed.site_sameframe[:] = 0  # C would skip frames that coincide in the file
            getattr(changed, name)[...] = value
            data = mujoco.MjData(changed)
            data.qpos[:], data.qvel[:] = q, v
            mujoco.mj_forward(changed, data)
            return data.qfrc_passive.copy()

        return central(passive, constant[name])

    ((forward, *_), _), ((reverse, *_), _) = derivatives(q, v)
    for name in NAMES:
        np.testing.assert_allclose(forward[name], by_c(name), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(reverse[name], forward[name], rtol=1e-10, atol=1e-10)
        assert np.abs(forward[name]).max() > 0


def test_a_piece_of_length_zero_is_as_in_c_and_has_finite_derivatives(
    model, states, derivatives, function
):
    q, v = model.qpos0, np.ones(model.nv)
    (forward, length), (reverse, _) = derivatives(q, v)
    assert length[model.tendon("pinch").id] < 1e-15
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((forward, reverse)))
    rest = np.repeat(q[None], len(states), axis=0)
    jacobian = function(leaves_of(model), rest, states.v)[1][0]
    data = next(iter(forwarded(model, States(q=q[None], v=v[None], acceleration=v[None]))))
    close(jacobian, moment_arms(model, data))


def test_inverse_weights_are_those_that_the_compiler_stored(model, states, function):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    q = np.repeat(model.qpos0[None], len(states), axis=0)
    jacobian = function(leaves_of(model), q, states.v)[1][0]
    with double():
        weights = np.asarray(tendon_weights(jnp.asarray(jacobian), np.linalg.inv(inertia)))
    np.testing.assert_allclose(weights, model.tendon_invweight0, rtol=1e-12)


@pytest.mark.parametrize(
    ("flag", "gone"), [("spring", "tendon_damping"), ("damper", "tendon_stiffness")]
)
def test_disabled_springs_and_dampers_give_no_force(flag, gone):
    model = compiled(TENDONS, flag=f'{flag}="disable"')
    s, leaves = structure_of(model), leaves_of(model)
    rest = leaves | {gone: np.zeros(model.ntendon)}
    with double():
        assert np.any(np.asarray(tension(s, leaves, jnp.full(6, 3.0), jnp.ones(6))))
        assert not np.any(np.asarray(tension(s, rest, jnp.full(6, 3.0), jnp.ones(6))))
        assert np.any(np.asarray(tendon_damping(s, leaves))) == (flag == "spring")


def test_disabled_limits_and_friction_leave_no_rows():
    model = compiled(TENDONS, flag='limit="disable" frictionloss="disable"')
    assert len(tendons_of(model).limited) == len(tendons_of(model).rubbing) == 0
    assert list(tendons_of(compiled(TENDONS)).limited) == [0, 2, 3]
    assert list(tendons_of(compiled(TENDONS)).rubbing) == [0, 1]


def test_model_without_tendons_has_none():
    model = compiled(bodies="<worldbody><body><joint/><geom/></body></worldbody>")
    s, t, leaves = structure_of(model), tendons_of(model), leaves_of(model)
    q = np.zeros(1)
    length, jacobian = tendon_motion(t, s, leaves, STILL, q)
    assert (length.shape, jacobian.shape) == ((0,), (0, model.nv))


STILL = Pose(*(np.zeros((2, 3)) for _ in Pose._fields))


def test_declared_arrays_are_all_that_is_read(model, states):
    s, t, every = structure_of(model), tendons_of(model), leaves_of(model)

    def everything(q):
        few = {name: jnp.asarray(every[name]) for name in TENDON_LEAVES}
        length, jacobian = tendon_motion(t, s, few, posed(s, every, q), q)
        rows = limit_block(t, few, length, jacobian), friction_block(t, few, jacobian)
        return tension(s, few, length, length), rows

    with double():
        every = {name: jnp.asarray(value) for name, value in every.items()}
        force, _ = jax.eval_shape(everything, states.q[0])
    assert force.shape == (model.ntendon,)


WRAPPED = """<spatial name="bad"><site site="wall"/><geom geom="bead"/><site site="hand"/>
</spatial>"""


@pytest.mark.parametrize(
    ("tendon", "says"),
    [
        (WRAPPED, "wraps around a geom; route it through sites"),
        (
            '<fixed name="bad" stiffness="1 2"><joint joint="rotor" coef="1"/></fixed>',
            "polynomial stiffness",
        ),
        (
            '<fixed name="bad" damping="1 2"><joint joint="rotor" coef="1"/></fixed>',
            "polynomial damping",
        ),
        (
            '<fixed name="bad" actuatorfrclimited="true" actuatorfrcrange="-1 1">'
            '<joint joint="rotor" coef="1"/></fixed>',
            "limits its actuator force",
        ),
    ],
)
def test_what_is_not_offered_is_refused_by_name(tendon, says):
    bodies = """<worldbody><site name="wall" pos="1 0 1"/>
    <geom name="bead" type="sphere" size=".1" pos=".5 0 1"/>
    <body><joint name="rotor"/><geom/><site name="hand"/></body></worldbody>"""
    model = compiled(f"<tendon>{tendon}</tendon>", bodies=bodies)
    with pytest.raises(SceneError, match=f"Tendon 'bad' .*{says}"):
        tendons_of(model)
