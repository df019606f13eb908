"""What is wrong with a component is said before anything runs, with what would be right."""

from dataclasses import replace

import pytest
from component_cases import (
    FILTERED,
    FIRMWARE,
    IMPEDANCE,
    VOLTAGE,
    car,
    component,
    firmware,
    friction,
    hinge,
    servo,
    slider,
)

from sameworld.core import AddressError, Belief, Parameter, SceneError
from sameworld.worlds.components import LAWS, Clock
from sameworld.worlds.explicit import ExplicitConfig, explicit_world

CASES = {
    "a type that does not exist": (
        hinge(component("f", "gear_fricton", "joint:elbow")),
        r"'f' is of type 'gear_fricton', which does not exist.*Types: .*Did you mean",
    ),
    "another version": (
        hinge(replace(friction(), version=7)),
        "'friction' is version 7 of 'gear_friction'; this package has version 1",
    ),
    "an unknown setting": (
        hinge(friction("m1", colomb=0.1)),
        "has the setting 'colomb'.*It knows 'model', 'coulomb', 'viscous'.*Did you mean",
    ),
    "a parameter of a richer model": (
        hinge(friction("m1", stribeck=0.1)),
        "has the setting 'stribeck', which 'gear_friction' does not know",
    ),
    "a word that means nothing": (
        hinge(friction("m7")),
        "setting model = 'm7' must be one of 'm1', 'm2', 'm3', 'm4', 'm5', 'm6'",
    ),
    "a word for a number": (
        hinge(friction("m1", coulomb="much")),
        "'coulomb' is a number, got 'much'",
    ),
    "a number that is not finite": (
        hinge(friction("m1", coulomb=float("nan"))),
        "'coulomb' is a number, got nan",
    ),
    "a value outside its range": (
        hinge(friction("m1", coulomb=-0.1)),
        r"'component:friction.coulomb' = -0.1 lies outside \[0.0, inf\]",
    ),
    "a joint that is not there": (
        hinge(component("f", "gear_friction", "joint:elbo")),
        "acts on joint 'elbo', which the scene lacks. It has 'elbow'.*Did you mean",
    ),
    "an actuator that is not there": (
        hinge(component("m", "voltage_motor", "actuator:engine", **VOLTAGE)),
        "acts on actuator 'engine', which the scene lacks. It has 'motor'",
    ),
    "a body that is not there": (
        hinge(component("c", "kinematic_car", "body:wheels")),
        "acts on body 'wheels', which the scene lacks.*rod",
    ),
    "a joint for an actuator": (
        hinge(component("m", "voltage_motor", "joint:elbow", **VOLTAGE)),
        "'m' of type 'voltage_motor' acts on actuators: its target must read 'actuator:NAME', got "
        "'joint:elbow'",
    ),
    "a target without a name": (
        hinge(component("f", "gear_friction", "joint:")),
        "its target must read 'joint:NAME', got 'joint:'",
    ),
    "two on one actuator": (
        hinge(firmware(), component("m", "voltage_motor", "actuator:motor", **VOLTAGE)),
        "Components 'firmware', 'm' both drive actuator 'motor'",
    ),
    "two of one name": (
        hinge(friction("m1"), friction("m2")),
        r"has component\(s\) 'friction' twice",
    ),
    "a missing value": (
        hinge(component("m", "voltage_motor", "actuator:motor", resistance=1.0)),
        "'component:m.torque_constant' has no usual value: give it in the component's settings",
    ),
    "a body that cannot roll on the plane": (
        hinge(component("c", "kinematic_car", "body:rod")),
        "needs body 'rod' to have three joints in this order: slide along x, slide along y, hinge",
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_bad_components_are_refused(case):
    scene, message = CASES[case]
    with pytest.raises(SceneError, match=message):
        explicit_world(scene)


@pytest.mark.parametrize(
    "actuator",
    [
        '<position name="motor" joint="elbow" kp="3"/>',
        '<motor name="motor" joint="elbow" ctrlrange="-1 1"/>',
        '<motor name="motor" joint="elbow" delay=".004" nsample="4"/>',
        '<general name="motor" joint="elbow" gainprm="2"/>',
    ],
)
def test_an_actuator_that_does_not_pass_forces_on_is_refused(actuator):
    scene = hinge(firmware())
    mjcf = scene.mjcf.replace('<motor name="motor" joint="elbow"/>', actuator)
    with pytest.raises(SceneError, match="must pass it on unchanged: make it a <motor>"):
        explicit_world(replace(scene, mjcf=mjcf))


def test_a_ball_joint_has_no_scalar_friction():
    scene = hinge(friction("m1"))
    mjcf = scene.mjcf.replace('axis="0 1 0"', 'type="ball"').split("<actuator>")[0] + "</mujoco>"
    with pytest.raises(SceneError, match="needs a hinge or slide joint; 'elbow' is neither"):
        explicit_world(replace(scene, mjcf=mjcf))


def test_a_belief_may_give_the_value_that_settings_lack():
    own = {k: v for k, v in FIRMWARE.items() if k != "kp"}
    scene = hinge(component("firmware", "firmware_servo", "actuator:motor", **own))
    name = "component:firmware.kp"
    with pytest.raises(SceneError, match=name):
        explicit_world(scene)
    known = Belief(parameters=(Parameter(name=name, value=123.0, std=10.0),))
    assert explicit_world(scene.with_belief(known)).parameters[name].value == 123.0


def test_a_parameter_that_no_component_has_is_named_with_those_that_exist():
    name = "component:friction.colomb"
    scene = servo("m1").with_belief(Belief(parameters=(Parameter(name=name, value=0.1),)))
    with pytest.raises(AddressError, match=r"'component:friction.colomb'.*friction.coulomb"):
        explicit_world(scene)


def test_failures_of_components_cannot_be_dumped_for_a_bare_replay(tmp_path):
    with pytest.raises(SceneError, match=r"components 'friction', 'firmware'.*without 'guard'"):
        explicit_world(servo(), ExplicitConfig(guard=tmp_path))


def test_every_law_says_which_words_it_takes():
    for kind, law in LAWS.items():
        for name, allowed in law.options.items():
            with pytest.raises(SceneError, match=f"'{kind}': setting {name} = 'x' must be one of"):
                law({name: "x"}, Clock(timestep=0.01, substeps=1))
            for word in allowed:
                assert law({name: word}, Clock(timestep=0.01, substeps=1)).fields()


def test_units_follow_the_joint():
    """The same field is a torque on a hinge and a force on a rail."""
    turning = explicit_world(servo("m4")).parameters
    sliding = explicit_world(
        slider(
            component("pd", "filtered_pd", "actuator:motor", **FILTERED),
            component("f", "gear_friction", "joint:rail", model="m6"),
        )
    )
    assert turning["component:friction.coulomb"].unit == "N m"
    assert turning["component:friction.viscous"].unit == "N m s/rad"
    assert turning["component:firmware.gain"].unit == "1/rad"
    assert sliding.parameters["component:f.coulomb"].unit == "N"
    assert sliding.parameters["component:f.quadratic_drive"].unit == "1/N"
    assert sliding.parameters["component:pd.drive_gain"].unit == "N/V"
    assert [c.unit for c in sliding.spec.actions] == ["m"]
    held = explicit_world(hinge(component("h", "joint_impedance", "actuator:motor", **IMPEDANCE)))
    assert held.parameters["component:h.stiffness"].unit == "N m/rad"
    wheeled = explicit_world(car("kinematic_car"))
    assert [(c.name, c.unit) for c in wheeled.spec.actions] == [
        ("drive.steering", "rad"),
        ("drive.throttle", "m/s"),
    ]
