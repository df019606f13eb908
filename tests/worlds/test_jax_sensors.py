"""Sensors in JAX beside MuJoCo's C code."""

from __future__ import annotations

import copy
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax_cases import (
    States,
    compiled,
    double,
    leaves_of,
    over_states,
    quick,
    states_of,
)

from sameworld.core.errors import SceneError
from sameworld.worlds.differentiable.kinematics import posed
from sameworld.worlds.differentiable.readings import (
    READERS,
    SENSOR_LEAVES,
    Sensible,
    sensed,
)
from sameworld.worlds.differentiable.sensors import OFFERED, sensors_of
from sameworld.worlds.differentiable.structure import structure_of

OBJECTS = (("body", "hand"), ("xbody", "badge"), ("geom", "arm"), ("site", "tip"))
REFERENCES = (
    "",
    *(
        f'reftype="{kind}" refname="{name}"'
        for kind, name in (
            ("body", "drone"),
            ("xbody", "rotor"),
            ("geom", "ball"),
            ("site", "wall"),
        )
    ),
)
FRAME = ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel")


def frames() -> str:
    relative = [
        f'<frame{what} objtype="{kind}" objname="{name}" {reference}/>'
        for what in FRAME
        for (kind, name), reference in zip(OBJECTS * 2, (*REFERENCES, *REFERENCES[:3]), strict=True)
    ]
    absolute = [
        f'<frame{what} objtype="{kind}" objname="{name}"/>'
        for what in ("linacc", "angacc")
        for kind, name in OBJECTS
    ]
    return "\n".join(relative + absolute)


SENSORS = f"""
<tendon><fixed name="pair"><joint joint="shoulder" coef="1.5"/><joint joint="slide" coef="-2"/>
</fixed></tendon>
<actuator><motor name="push" joint="shoulder" gear="3"/><position name="pull" tendon="pair" kp="5"/>
</actuator>
<sensor>
  <gyro site="tip"/><clock name="clock"/><accelerometer site="tip"/><velocimeter site="rotor"/>
  <jointpos joint="slide"/><jointpos joint="rotor" cutoff=".1"/><jointvel joint="rotor"/>
  <accelerometer site="wall"/><tendonpos tendon="pair"/><tendonvel tendon="pair" cutoff=".2"/>
  <actuatorpos actuator="pull"/><actuatorvel actuator="push"/><actuatorfrc actuator="pull"/>
  <jointactuatorfrc joint="shoulder"/><ballquat joint="ball"/><ballangvel joint="ball"/>
  <magnetometer site="arm"/><subtreecom body="hand"/><subtreecom body="world"/>
  <subtreelinvel body="arm"/><subtreelinvel body="drone"/><gyro site="drone" cutoff=".5"/>
  <clock cutoff=".3"/>
  {frames()}
</sensor>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return compiled(SENSORS, option='magnetic=".1 -.5 .2"')


@pytest.fixture(scope="module")
def states(model) -> States:
    return states_of(model, 24, spread=2.0)


def seen(model: mujoco.MjModel, states: States) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What sensors can see in C, and what they read there."""
    fields = {
        "acceleration": "qacc",
        "tendon_length": "ten_length",
        "tendon_velocity": "ten_velocity",
        "actuator_length": "actuator_length",
        "actuator_velocity": "actuator_velocity",
        "actuator_force": "actuator_force",
        "joint_force": "qfrc_actuator",
    }
    data, rows = mujoco.MjData(model), []
    for k, (q, v) in enumerate(zip(states.q, states.v, strict=True)):
        data.qpos[:], data.qvel[:], data.time = q, v, 0.1 * k
        data.ctrl[:] = (0.3, -0.7)
        mujoco.mj_forward(model, data)
        inputs = [np.array(getattr(data, name)) for name in fields.values()]
        rows.append((*inputs, np.array(data.sensordata)))
    *inputs, values = (np.array(column) for column in zip(*rows, strict=True))
    given = dict(zip(fields, inputs, strict=True))
    return given | {"time": 0.1 * np.arange(len(states)), "q": states.q, "v": states.v}, values


def reader(model: mujoco.MjModel):
    s, c = structure_of(model), sensors_of(model)

    def read(leaves: dict[str, Any], given: dict[str, Any]) -> Any:
        pose = posed(s, leaves, given["q"])
        return sensed(c, s, leaves, Sensible(pose=pose, **given))

    return read


def arrays(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    return leaves_of(model) | {"opt.gravity": np.array(model.opt.gravity)}


@pytest.fixture(scope="module")
def readings(model, states) -> tuple[np.ndarray, np.ndarray]:
    given, theirs = seen(model, states)
    return over_states(reader(model))(arrays(model), given), theirs


def types(model: mujoco.MjModel) -> list[str]:
    return [mujoco.mjtSensor(kind).name.removeprefix("mjSENS_") for kind in model.sensor_type]


@pytest.mark.parametrize("kind", OFFERED)
def test_readings_are_those_of_c(kind, model, readings):
    which = [k for k, other in enumerate(types(model)) if other == kind]
    largest = 0.0
    for k in which:
        columns = slice(model.sensor_adr[k], model.sensor_adr[k] + model.sensor_dim[k])
        ours, theirs = (values[:, columns] for values in readings)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        largest = max(largest, np.abs(theirs).max())
    assert largest > 0


def test_every_offered_type_has_a_reader():
    assert sorted(READERS) == sorted(OFFERED)


def test_cutoffs_bound_what_is_read(readings, model):
    ours, _ = readings
    bounded = np.flatnonzero(model.sensor_cutoff)
    assert len(bounded) == 4
    for k in bounded:
        values = ours[:, model.sensor_adr[k] : model.sensor_adr[k] + model.sensor_dim[k]]
        assert values.max() == model.sensor_cutoff[k]


MOVED = ("site_pos", "site_quat", "geom_pos", "geom_quat", "body_ipos", "body_mass", "jnt_axis")
COPIED = ("TENDON", "ACTUATOR", "JOINTACTFRC", "CLOCK")


def shifted(model: mujoco.MjModel, states: States, direction: dict[str, Any], h: float):
    """A model, positions, velocities and accelerations moved along a direction."""
    moved = copy.copy(model)
    for kind in ("body", "geom", "site"):  # C would skip frames that coincide in the file
        getattr(moved, f"{kind}_sameframe")[:] = 0
    for name in MOVED:
        getattr(moved, name)[...] += h * direction[name]
    moved.body_subtreemass[:] = moved.body_mass
    for body in range(model.nbody - 1, 0, -1):
        moved.body_subtreemass[model.body_parentid[body]] += moved.body_subtreemass[body]
    q = states.q[0].copy()
    mujoco.mj_integratePos(model, q, direction["q"], h)
    return moved, q, states.v[0] + h * direction["v"], h * direction["acceleration"]


def in_c(model: mujoco.MjModel, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Readings of C at a given acceleration."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    data.qacc[:] = a
    mujoco.mj_rnePostConstraint(model, data)
    for stage in (mujoco.mj_sensorPos, mujoco.mj_sensorVel, mujoco.mj_sensorAcc):
        stage(model, data)
    return data.sensordata.copy()


def test_derivatives_along_a_random_direction_are_those_of_c(model, states):
    rng, h, count = np.random.default_rng(3), 1e-6, model.nsensordata
    base = arrays(model)
    direction = {name: rng.normal(size=base[name].shape) for name in MOVED}
    for name in ("site_quat", "geom_quat", "jnt_axis"):
        direction[name] -= np.sum(direction[name] * base[name], axis=1, keepdims=True) * base[name]
    direction |= {"q": rng.normal(size=model.nv), "v": rng.normal(size=model.nv)}
    direction["acceleration"] = rng.normal(size=model.nv)
    ahead, back = (in_c(*shifted(model, states, direction, side)) for side in (h, -h))
    turned = [shifted(model, states, direction, side)[1] for side in (1e-5, -1e-5)]
    read, given = reader(model), {k: one[0] for k, one in seen(model, states)[0].items()}
    tangent = {name: np.zeros_like(one) for name, one in given.items()} | {
        "q": (turned[0] - turned[1]) / 2e-5,
        "v": direction["v"],
        "acceleration": direction["acceleration"],
    }
    given["acceleration"] = np.zeros(model.nv)
    weights = rng.normal(size=count)

    def moving(chosen, given):
        return read(base | chosen, given)

    with double():
        base = {name: jnp.array(one) for name, one in base.items()}
        at = {name: base[name] for name in MOVED}, given
        along = {name: direction[name] for name in MOVED}, tangent
        both = quick(
            lambda at, along: (jax.jvp(moving, at, along)[1], jax.vjp(moving, *at)[1](weights))
        )
        forward, reverse = jax.tree.map(np.array, both(at, along))
    free = np.repeat([not kind.startswith(COPIED) for kind in types(model)], model.sensor_dim)
    np.testing.assert_allclose(forward[free], ((ahead - back) / (2 * h))[free], atol=2e-6)
    parts = zip(jax.tree.leaves(reverse), jax.tree.leaves(along), strict=True)
    total = sum(np.sum(one * other) for one, other in parts)
    np.testing.assert_allclose(total, weights @ forward, rtol=1e-10)


def test_disabled_sensors_read_zero_and_disabled_gravity_is_not_felt():
    sensors = '<sensor><accelerometer site="wall"/></sensor>'
    off = compiled(sensors, flag='sensor="disable"')
    weightless = compiled(sensors, flag='gravity="disable"')
    assert sensors_of(off).groups == ()
    assert not sensors_of(weightless).gravity
    with double():
        silent = sensed(sensors_of(off), structure_of(off), {}, Sensible(*[jnp.zeros(1)] * 11))
    assert silent.tolist() == [0.0] * 3


def test_declared_arrays_are_all_that_is_read(model, states):
    s, c, every = structure_of(model), sensors_of(model), arrays(model)
    oriented = ("qpos0", "jnt_axis", "jnt_pos", "body_pos", "body_quat")

    def read(given):
        few = {name: jnp.asarray(every[name]) for name in (*SENSOR_LEAVES, *oriented)}
        return sensed(c, s, few, Sensible(pose=posed(s, few, given["q"]), **given))

    with double():
        given = {name: one[0] for name, one in seen(model, states)[0].items()}
        assert jax.eval_shape(read, given).shape == (model.nsensordata,)


@pytest.mark.parametrize(
    ("sensor", "says"),
    [
        ('<touch name="bad" site="tip"/>', "is a touch.*Use a framepos of the body"),
        ('<rangefinder name="bad" site="tip"/>', "is a rangefinder.*Use a framepos of a site"),
        ('<force name="bad" site="tip"/>', "is a force.*explicit world"),
        ('<e_kinetic name="bad"/>', "is a e_kinetic.*Use the explicit world"),
        (
            '<framepos name="bad" objtype="camera" objname="eye"/>',
            "is on a camera.*attach a site there",
        ),
        (
            '<jointpos name="bad" joint="rotor" delay=".01" nsample="4"/>',
            "is delayed by the engine.*sensor:bad.delay",
        ),
    ],
)
def test_what_is_not_offered_is_refused_by_name(sensor, says):
    bodies = """<worldbody><camera name="eye"/><body><joint name="rotor"/><geom/><site name="tip"/>
    </body></worldbody>"""
    model = compiled(f"<sensor>{sensor}</sensor>", bodies=bodies)
    with pytest.raises(SceneError, match=f"Sensor 'bad' {says}"):
        sensors_of(model)
