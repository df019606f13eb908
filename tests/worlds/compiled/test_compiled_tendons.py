"""Addresses of tendons: fields against recompilation, trajectories, export, warnings."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from sameworld.core import AddressError, Belief, Parameter, Scene, SceneError, Values, rollout
from sameworld.core.errors import SameworldWarning
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig, explicit_world

#: A cable that may be slack, an unnamed spring with a computed rest length, coupled joints.
ROPES = Scene(
    name="ropes",
    mjcf="""<mujoco><compiler angle="degree"/><option timestep="0.002" integrator="implicitfast"/>
    <worldbody><site name="hook" pos="0 0 1"/><site name="nail" pos=".1 0 1"/>
    <body name="lamp" pos="0 0 .4"><freejoint/><geom size=".05" mass=".3"/>
      <site name="eye" pos=".02 0 .05"/><site name="ear" pos="-.02 0 0"/></body>
    <body name="upper" pos="1 0 1"><joint name="a" axis="0 1 0" springref="20" stiffness=".1"/>
      <geom size=".04" pos="0 0 -.2" mass=".2"/>
      <body name="lower" pos="0 0 -.2"><joint name="b" axis="0 1 0"/>
        <geom size=".04" pos="0 0 -.2" mass=".1"/><site name="end" pos="0 0 -.2"/></body></body>
    </worldbody><tendon>
    <spatial name="cable" stiffness="60" damping=".5" springlength="0 .5"><site site="hook"/>
      <site site="eye"/></spatial>
    <spatial stiffness="3"><site site="nail"/><site site="end"/></spatial>
    <spatial name="leash" limited="true" range="0 .52" frictionloss=".05"><site site="hook"/>
      <site site="eye"/></spatial>
    <spatial name="seam"><site site="eye"/><site site="ear"/></spatial>
    <fixed name="belt" stiffness=".2" range="-.05 .3"><joint joint="a" coef="1"/>
      <joint joint="b" coef="-2"/></fixed>
    </tendon></mujoco>""",
)
START = Values.of({"start:lamp.pos.z": 0.41, "start:a.vel": 1.0, "start:b.vel": 4.0})


@pytest.fixture(scope="module")
def world():
    return build(ROPES)


def moved(parameter):
    """A value near the scene's, inside the bounds, no lower end above its upper one."""
    factor = 0.9 if parameter.name.endswith("low") else 1.1
    return factor * parameter.value + 0.013


def test_kinds_of_tendons_have_their_addresses_and_units(world):
    units = {p.name: p.unit for p in world.parameters.parameters if p.name.startswith("tendon:")}
    plain = {"stiffness": "N/m", "damping": "N s/m", "frictionloss": "N"}
    ends = {"springlength.low": "m", "springlength.high": "m"}
    expected = {f"tendon:cable.{part}": unit for part, unit in (plain | ends).items()}
    for name in ("tendon1", "leash", "seam"):
        expected |= {f"tendon:{name}.{part}": unit for part, unit in plain.items()}
        expected[f"tendon:{name}.springlength"] = "m"
    expected |= {"tendon:leash.range.low": "m", "tendon:leash.range.high": "m"}
    belt = (*plain, "springlength", "range.low", "range.high")
    assert units == expected | {f"tendon:belt.{part}": "" for part in belt}


def test_a_rest_length_left_open_is_the_computed_one(world):
    raw = mujoco.MjModel.from_xml_string(ROPES.mjcf)
    assert world.parameters["tendon:tendon1.springlength"].value == raw.tendon_lengthspring[1, 0]
    assert raw.tendon_lengthspring[1, 0] != raw.tendon_length0[1]  # springs rest elsewhere
    assert np.isclose(world.parameters["tendon:belt.springlength"].value, np.radians(20))


def test_every_address_edits_fields_as_recompiling_does(world):
    """``mj_setConst`` would compute rest lengths again: none of the edits may be lost to it."""
    editor = world.kernel.models.editor
    arrays = [n for n in dir(world.kernel.model) if n.startswith(("tendon_", "dof_", "body_"))]
    for column, slot in enumerate(editor.slots):
        change = ((column, moved(world.parameters[slot.name])),)
        if not slot.name.startswith(("tendon:", "joint:", "body:")) or ".inertia." in slot.name:
            continue
        fast = editor.edit_fields(change, frozenset())
        slow = editor.recompile(change, frozenset())
        for name in arrays:
            first, second = getattr(fast, name), getattr(slow, name)
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-11, err_msg=slot.name)
        for name, place, _ in slot.fields:
            assert getattr(fast, name)[place] == change[0][1]


@pytest.fixture(scope="module")
def reactions(world):
    """Signals of the scene, then with one tendon address moved a row; fast, and the slow twin."""
    names = [
        n for n in world.parameters.names if n.startswith("tendon:") and not n.startswith(IDLE)
    ]
    values = np.repeat(world.parameters.mean.array, len(names) + 1, axis=0)
    for row, name in enumerate(names, 1):
        values[row, world.parameters.names.index(name)] = moved(world.parameters[name])
    parameters = Values(names=world.parameters.names, array=values)
    twin = explicit_world(ROPES, ExplicitConfig(edits="recompile"))
    actions = np.zeros((1, 300, 0))
    runs = [rollout(w, START, actions, parameters=parameters) for w in (world, twin)]
    return names, *runs


#: Tendons and parts that do nothing in the scene as it is.
IDLE = ("tendon:seam", "tendon:leash.springlength", "tendon:cable.springlength.low")


def test_every_address_changes_the_motion(reactions):
    names, fast, _ = reactions
    seen = np.concatenate([s.reshape(len(names) + 1, -1) for s in fast.signals.values()], axis=1)
    shift = np.abs(seen[1:] - seen[0]).max(axis=1)
    still = {n for n, s in zip(names, shift, strict=True) if not s > 1e-6}
    assert still == {"tendon:leash.range.low"}  # a cable is never shorter than nothing


def test_every_address_moves_trajectories_as_recompiling_does(reactions):
    _, fast, slow = reactions
    assert fast.valid.all() and slow.valid.all()
    for channel, signal in fast.signals.items():
        np.testing.assert_allclose(signal, slow.signals[channel], atol=1e-9)


def test_exported_mjcf_carries_the_edits(world):
    values = {
        "tendon:cable.stiffness": 42.0,
        "tendon:cable.springlength.high": 0.47,
        "tendon:tendon1.springlength": 0.8,
        "tendon:belt.range.low": -0.2,
        "tendon:belt.frictionloss": 0.03,
    }
    told = world.with_belief(world.parameters.with_values(values))
    model = mujoco.MjModel.from_xml_string(told.mjcf())
    assert model.tendon_stiffness.tolist() == [42.0, 3.0, 0.0, 0.0, 0.2]
    assert np.allclose(model.tendon_lengthspring[:2], [[0.0, 0.47], [0.8, 0.8]])
    assert np.allclose(model.tendon_range[4], [-0.2, 0.3])
    assert model.tendon_frictionloss[4] == 0.03


@pytest.mark.parametrize("edits", ["fields", "recompile"])
def test_a_lower_end_above_the_upper_one_is_a_failure_with_a_reason(edits):
    values = Values.of({"tendon:belt.range.low": [0.1, 0.4], "tendon:cable.damping": 1.0})
    twin = explicit_world(ROPES, ExplicitConfig(edits=edits))
    result = rollout(twin, START, np.zeros((2, 3, 0)), parameters=values)
    assert result.valid.all(axis=1).tolist() == [True, False]
    assert "'tendon:belt.range.low' 0.4 is above 'tendon:belt.range.high' 0.3" in result.reason[1]
    crossed = twin.parameters.with_values({"tendon:cable.springlength.low": 0.6})
    with pytest.raises(SceneError, match=r"is above 'tendon:cable.springlength\.high' 0\.5"):
        twin.with_belief(crossed).mjcf()


def test_a_spring_with_one_rest_length_has_no_ends(world):
    belief = Belief(parameters=(Parameter(name="tendon:tendon1.springlength.high", value=0.7),))
    with pytest.raises(AddressError, match=r"Did you mean 'tendon:tendon1\.springlength'"):
        world.with_belief(belief)


@pytest.mark.parametrize(
    ("name", "flag", "reason"),
    [
        ("tendon:leash.springlength", "", "no stiffness"),
        ("tendon:seam.damping", "", "one rigid body"),
        ("tendon:cable.damping", 'damper="disable"', "'damper' is disabled"),
        ("tendon:cable.stiffness", 'spring="disable"', "'spring' is disabled"),
        ("tendon:cable.springlength.high", 'spring="disable"', "'spring' is disabled"),
        ("tendon:leash.frictionloss", 'frictionloss="disable"', "'frictionloss' is disabled"),
        ("tendon:leash.range.high", 'limit="disable"', "'limit' is disabled"),
    ],
)
def test_an_address_without_effect_warns_with_the_reason(name, flag, reason):
    option = f"<option><flag {flag}/></option>" if flag else ""
    mjcf = ROPES.mjcf.replace("<worldbody>", f"{option}<worldbody>")
    belief = Belief(parameters=(Parameter(name=name, value=0.25),))
    with pytest.warns(SameworldWarning, match=f"'{name}' has no effect: .*{reason}"):
        build(replace(ROPES, mjcf=mjcf, belief=belief))


def test_addresses_with_effect_do_not_warn():
    """A rest length acts as soon as the stiffness is open too."""
    names = ("leash.stiffness", "leash.springlength", "belt.damping", "belt.range.high")
    belief = Belief(parameters=tuple(Parameter(name=f"tendon:{n}", value=0.4) for n in names))
    assert build(replace(ROPES, belief=belief)).parameters["tendon:belt.damping"].value == 0.4
