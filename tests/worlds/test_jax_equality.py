"""Equality constraints in JAX beside MuJoCo's C code."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax_cases import (
    States,
    compiled,
    double,
    forwarded,
    leaves_of,
    over_states,
    quick,
    states_of,
)
from test_jax_tendons import TENDONS

from sameworld.core.errors import SceneError
from sameworld.worlds.differentiable.equality import (
    EQUALITY_LEAVES,
    equalities_of,
    equality_block,
    reference_data,
)
from sameworld.worlds.differentiable.instant import Inputs, accelerated, smoothed
from sameworld.worlds.differentiable.kinematics import posed
from sameworld.worlds.differentiable.parameters import raw_leaves
from sameworld.worlds.differentiable.rows import referenced
from sameworld.worlds.differentiable.step import derived
from sameworld.worlds.differentiable.structure import structure_of
from sameworld.worlds.differentiable.system import system_of
from sameworld.worlds.differentiable.tendons import tendon_motion, tendons_of

EQUALITIES = """
<equality>
  <weld name="glue" body1="hand" body2="drone" relpose=".1 .2 .3 .5 .5 .5 .4" anchor=".1 0 .1"
    torquescale=".7" solref=".03 .9" solimp=".8 .95 .5 .4 3"/>
  <joint joint1="shoulder" joint2="elbow" polycoef=".1 .5 .2 .3 -.1" solimp=".7 .9 2 .5 2"/>
  <connect body1="arm" body2="drone" anchor=".1 .2 .3" solimp=".8 .99 1 .5 1"/>
  <tendon tendon1="pair" tendon2="cable" polycoef=".1 .5 .2 .3 -.1"/>
  <weld site1="arm" site2="rotor" torquescale="1.3" solref="-300 -20"/>
  <connect site1="tip" site2="drone" solref=".001 1"/>
  <joint joint1="rotor" polycoef=".1 .3 0 0 0" solref=".1 2"/>
  <weld body1="badge"/>
  <connect body1="hand" body2="arm" anchor="0 0 0" active="false"/>
  <tendon tendon1="blocks" polycoef=".1 0 0 0 0"/>
  <weld body1="ball" body2="hand"/>
  <weld body1="ball" body2="hand" relpose="0 0 0 0 1 0 0"/>
</equality>
"""
WELD = mujoco.mjtEq.mjEQ_WELD


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return compiled(TENDONS + EQUALITIES)


@pytest.fixture(scope="module")
def states(model) -> States:
    return states_of(model, 24, spread=1.5)


def rows_of(model: mujoco.MjModel):
    """Rows and their references as a function of arrays and state."""
    s, t, e = structure_of(model), tendons_of(model), equalities_of(model)

    def rows(leaves, q, v):
        pose = posed(s, leaves, q)
        length, jacobian = tendon_motion(t, s, leaves, pose, q)
        block = equality_block(e, s, leaves, pose, q, v, length, jacobian)
        return block, referenced(block, v, s.timestep, safe=True)

    return rows


def in_order(model: mujoco.MjModel) -> np.ndarray:
    """Our rows in the order of C."""
    return np.argsort(equalities_of(model).row, kind="stable")


@pytest.fixture(scope="module")
def function(model):
    return over_states(rows_of(model))


@pytest.fixture(scope="module")
def computed(model, states, function):
    return function(leaves_of(model), states.q, states.v)


def signs(model, ours: np.ndarray, data: mujoco.MjData) -> np.ndarray:
    """Sign of our rows [n] against those of C; only orientations of welds may differ."""
    sign = np.ones(len(ours))
    for weld in np.flatnonzero((model.eq_type == WELD) & model.eq_active0):
        rows = np.flatnonzero((data.efc_type == 0) & (data.efc_id == weld))[3:]
        sign[rows] = np.sign(ours[rows] @ data.efc_pos[rows])
    return sign


def test_rows_are_those_of_c(model, states, computed):
    block, reference = jax.tree.map(lambda part: part[:, in_order(model)], computed)
    flipped = 0
    for k, data in enumerate(forwarded(model, states)):
        rows = slice(0, data.ne)
        sign = signs(model, block.position[k], data)
        flipped += np.sum(sign < 0)
        jacobian = data.efc_J.reshape(data.nefc, model.nv)[rows]
        close(block.jacobian[k] * sign[:, None], jacobian)
        close(block.position[k] * sign, data.efc_pos[rows])
        close(block.margin[k], data.efc_margin[rows])
        np.testing.assert_allclose(reference.regularisation[k], data.efc_R[rows], rtol=1e-11)
        np.testing.assert_allclose(
            reference.acceleration[k] * sign, data.efc_aref[rows], rtol=1e-11, atol=1e-9
        )
        assert block.present[k].all()
    assert flipped > 0


def close(ours: object, theirs: object, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_rows_are_the_rate_of_residuals_and_drift_that_of_rows(model, states, computed, function):
    h = 1e-5
    moved = np.array([states.q, states.q])
    for k, v in enumerate(states.v):
        for side, sign in enumerate((1, -1)):
            mujoco.mj_integratePos(model, moved[side, k], v, sign * h)
    ahead, back = (function(leaves_of(model), side, states.v)[0] for side in moved)
    block = computed[0]
    speed, pace, trace = (
        np.einsum("bnv,bv->bn", b.jacobian, states.v) for b in (block, ahead, back)
    )
    same = np.abs(ahead.position - back.position) < 0.01
    assert same.mean() > 0.9
    rate = (ahead.position - back.position) / (2 * h)
    np.testing.assert_allclose(np.where(same, rate - speed, 0), 0, atol=1e-6)
    bodies = model.eq_type[equalities_of(model).row] <= int(WELD)
    drift = np.where(same & bodies, (pace - trace) / (2 * h) - block.drift, 0.0)
    np.testing.assert_allclose(drift, 0, atol=1e-6)
    assert not np.any(block.drift[:, ~bodies])


NAMES = ("eq_data", "site_pos", "site_quat", "eq_solref", "eq_solimp", "tendon_length0")


@pytest.fixture(scope="module")
def derivatives(model):
    """Residuals; rates of reference accelerations along a direction; and the reverse products."""
    rows, constant, order = rows_of(model), leaves_of(model), in_order(model)

    def reference(chosen, q, v):
        block, found = rows(constant | chosen, q, v)
        return found.acceleration[order], block.position[order]

    def both(at, along, weights):
        _, rate, position = jax.jvp(reference, at, along, has_aux=True)
        return position, rate, jax.vjp(reference, *at, has_aux=True)[1](weights)

    compiled = quick(both)

    def run(q, v, along):
        weights = np.random.default_rng(0).normal(size=len(order))
        with double():
            at = ({name: jnp.array(constant[name]) for name in NAMES}, q, v)
            return weights, *jax.tree.map(np.array, compiled(at, along, weights))

    return run


def directions(model, seed: int):
    """Random directions of parameters and of the velocity, and a velocity to move along."""
    rng = np.random.default_rng(seed)
    base = leaves_of(model)
    chosen = {name: rng.normal(size=base[name].shape) for name in NAMES}
    return chosen, rng.normal(size=model.nv), rng.normal(size=model.nv)


def references_of_c(model, states: States, way, h: float) -> np.ndarray:
    """What C computes a little along a direction."""
    chosen, turn, push = way
    changed, q = copy.copy(model), states.q[5].copy()
    for name, direction in chosen.items():
        getattr(changed, name)[...] += h * direction
    mujoco.mj_integratePos(model, q, turn, h)
    only = States(q=q[None], v=(states.v[5] + h * push)[None], acceleration=push[None])
    data = next(iter(forwarded(changed, only)))
    return data.efc_aref[: data.ne].copy()


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_c(model, states, derivatives, seed):
    h, (chosen, turn, push) = 1e-6, directions(model, seed)
    theirs = np.subtract(
        *(references_of_c(model, states, (chosen, turn, push), side) for side in (h, -h))
    ) / (2 * h)
    moved = np.stack([states.q[5]] * 2)
    mujoco.mj_integratePos(model, moved[0], turn, 1e-5)
    mujoco.mj_integratePos(model, moved[1], turn, -1e-5)
    along = chosen, (moved[0] - moved[1]) / 2e-5, push
    weights, position, rate, reverse = derivatives(states.q[5], states.v[5], along)
    only = States(q=states.q[5:6], v=states.v[5:6], acceleration=states.v[5:6])
    sign = signs(model, position, next(iter(forwarded(model, only))))
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(sign * rate / scale, theirs / scale, atol=1e-6)
    parts = zip(jax.tree.leaves(reverse), jax.tree.leaves(along), strict=True)
    total = sum(np.sum(one * other) for one, other in parts)
    np.testing.assert_allclose(total, weights @ rate, rtol=1e-9)
    assert all(np.any(one) for one in jax.tree.leaves(reverse))


def test_satisfied_constraints_have_finite_derivatives(model, derivatives):
    """Residuals of zero length and of half a turn, where a norm or an angle has none."""
    chosen, _, push = directions(model, 0)
    along = chosen, np.ones(model.nq), push
    _, position, rate, reverse = derivatives(model.qpos0.copy(), np.ones(model.nv), along)
    welds = [np.abs(position[in_order_of(model, weld)]).max() for weld in (7, 10, 11)]
    np.testing.assert_allclose(welds, [0, 0, 1], atol=1e-12)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((rate, reverse)))


def in_order_of(model: mujoco.MjModel, constraint: int) -> np.ndarray:
    """Rows of one constraint, in the order of C."""
    return np.flatnonzero(np.sort(equalities_of(model).row) == constraint)


TOGETHER = """
<equality>
  <weld body1="hand" body2="drone" torquescale=".7"/><connect site1="tip" site2="rotor"/>
  <joint joint1="shoulder" joint2="elbow" polycoef=".1 .5 .2 .3 -.1"/>
  <tendon tendon1="pair" tendon2="cable" polycoef=".1 .5 .2 .3 -.1"/>
</equality>
"""


def test_accelerations_with_tendons_limits_friction_and_equalities_are_those_of_c():
    option = 'tolerance="1e-14" iterations="200" ls_iterations="100"'
    model = compiled(TENDONS + TOGETHER, option=option)
    states = states_of(model, 12, spread=0.3)
    m = system_of(model, [])

    def accelerations(leaves, q, v):
        leaves = derived(m, leaves)
        friction, damping = leaves["dof_frictionloss"], leaves["dof_damping"]
        zero = jnp.zeros(model.nv)
        given = Inputs(control=jnp.zeros(0), friction=friction, damping=damping, applied=zero)
        at = smoothed(m, leaves, q, v, given)
        return accelerated(m, leaves, at, q, v, friction, zero).acceleration

    ours = over_states(accelerations)(raw_leaves(model), states.q, states.v)
    kinds = set[int]()
    for k, data in enumerate(forwarded(model, states)):
        kinds |= {*data.efc_type.tolist()}
        np.testing.assert_allclose(ours[k], data.qacc, atol=1e-11 * np.abs(data.qacc).max())
    assert kinds == {0, 2, 4}


def test_anchors_follow_the_reference_configuration_as_in_c(model):
    s, e, leaves = structure_of(model), equalities_of(model), leaves_of(model)
    changed = copy.copy(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, changed.qpos0, rng.normal(size=model.nv), 0.5)
    changed.body_pos[1:] += 0.1 * rng.normal(size=(model.nbody - 1, 3))
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    leaves |= {"qpos0": np.array(changed.qpos0), "body_pos": np.array(changed.body_pos)}

    def data(leaves, q):
        return reference_data(e, leaves, posed(s, leaves, q))

    found = over_states(data)(leaves, changed.qpos0[None])[0][model.eq_active0]
    wanted = changed.eq_data[model.eq_active0]
    turns = np.sign(np.sum(found[:, 6:10] * wanted[:, 6:10], axis=1, keepdims=True))
    found[:, 6:10] *= np.where(turns == 0, 1.0, turns)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert np.sum(np.abs(wanted - model.eq_data[model.eq_active0]).max(axis=1) > 0.01) == 3


def test_only_constraints_active_at_the_start_have_rows(model):
    assert 8 not in equalities_of(model).row
    assert len(equalities_of(model).row) == 6 * 5 + 3 * 2 + 4


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_disabled_constraints_leave_no_rows(flag):
    model = compiled(TENDONS + EQUALITIES, flag=f'{flag}="disable"')
    function = rows_of(model)
    with double():
        leaves = {name: jnp.asarray(value) for name, value in leaves_of(model).items()}
        block, _ = jax.eval_shape(function, leaves, model.qpos0, np.zeros(model.nv))
    assert block.jacobian.shape == (0, model.nv)
    assert {part.shape[0] for part in block} == {0}


def test_declared_arrays_are_all_that_is_read(model, states):
    s, e, every = structure_of(model), equalities_of(model), leaves_of(model)

    def rows(q, v):
        few = {name: every[name] for name in EQUALITY_LEAVES}
        length, jacobian = jnp.ones(model.ntendon), jnp.ones((model.ntendon, model.nv))
        return equality_block(e, s, few, posed(s, every, q), q, v, length, jacobian)

    with double():
        every = {name: jnp.asarray(value) for name, value in every.items()}
        block = jax.eval_shape(rows, states.q[0], states.v[0])
    assert block.position.shape == (40,)


def test_kinds_that_are_not_offered_are_refused_by_name():
    model = mujoco.MjModel.from_xml_string("""
        <mujoco><worldbody><flexcomp name="rope" type="grid" count="4 1 1" spacing=".1 .1 .1"
        dim="1" radius=".01"><edge equality="true"/></flexcomp></worldbody></mujoco>""")
    with pytest.raises(SceneError, match=r"kind 'flex'.*connect, weld, joint and tendon"):
        equalities_of(model)
