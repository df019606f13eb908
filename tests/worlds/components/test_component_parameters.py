"""Parameters of components: every one acts, identifies, or is said to do nothing."""

import warnings

import numpy as np
import pytest
from component_cases import (
    SCENES,
    component,
    excitation,
    firmware,
    friction,
    hinge,
    servo,
    with_settings,
)

from sameworld.core import (
    Belief,
    Channel,
    Episode,
    Parameter,
    SameworldWarning,
    Values,
    predict,
    rollout,
    simulate,
)
from sameworld.core.errors import EpisodeError, SpecError
from sameworld.policies import Hold, Replay
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds.explicit import explicit_world

#: What excites fields that the usual motion leaves alone.
EXTREMES = {
    "firmware.duty_limit": {"component:firmware.kp": 3000.0, "component:firmware.duty_limit": 0.4},
    "friction.quadratic_drive": {"component:firmware.kp": 20.0},
    "drive.limit": {"component:drive.limit": 0.3},
    "pd.limit": {"component:pd.limit": 0.3},
}


def believed(scene, *names):
    world = explicit_world(scene)
    found = tuple(Parameter(name=n, value=world.parameters[n].value) for n in names)
    return scene.with_belief(Belief(parameters=found))


@pytest.mark.parametrize("name", list(SCENES))
def test_every_field_acts_or_is_said_to_do_nothing(name):
    scene = SCENES[name]
    world = explicit_world(scene)
    own = [p for p in world.parameters.parameters if p.name.startswith("component:")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explicit_world(scene.with_belief(Belief(parameters=tuple(own))))
    idle = {str(w.message).split("'")[1] for w in caught}
    start, actions = excitation(world, 1, 60, seed=2)
    names = {p.name for p in own}.union(*EXTREMES.values()) & set(world.parameters.names)
    columns = {n: np.full(2 * len(own), world.parameters[n].value) for n in sorted(names)}
    for k, parameter in enumerate(own):
        extreme = EXTREMES.get(parameter.name.removeprefix("component:"), {})
        for field, value in extreme.items():
            columns[field][2 * k : 2 * k + 2] = value
        column = columns[parameter.name]
        column[2 * k + 1] += 0.02 * max(abs(column[2 * k]), 0.1)
    signals = rollout(world, start, actions, parameters=Values.of(columns)).signals
    still = [
        parameter.name
        for k, parameter in enumerate(own)
        if max(float(np.abs(v[2 * k + 1] - v[2 * k]).max()) for v in signals.values()) < 1e-9
    ]
    assert set(still) == idle
    assert len(still) < len(own)


def test_a_field_without_effect_warns_with_the_reason():
    cases = [
        (servo("m1", inputs="voltage"), "component:firmware.voltage", "takes its place"),
        (
            hinge(friction("m2", stribeck=0.0)),
            "component:friction.stribeck_velocity",
            "everything that the Stribeck term multiplies is 0",
        ),
        (
            hinge(component("h", "joint_impedance", "actuator:motor", stiffness=0.0, damping=1.0)),
            "component:h.lag",
            "the stiffness is 0",
        ),
    ]
    for scene, name, reason in cases:
        with pytest.warns(SameworldWarning, match=f"'{name}' has no effect: .*{reason}"):
            explicit_world(believed(scene, name))


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("frictionloss", "component:friction.coulomb"),
        ("damper", "component:friction.viscous"),
        ("actuation", "component:firmware.kp"),
    ],
)
def test_flags_of_the_scene_that_switch_components_off_warn(flag, name):
    scene = servo("m1")
    option = f'gravity="0 0 -9.81"><flag {flag}="disable"/></option>'
    mjcf = scene.mjcf.replace('gravity="0 0 -9.81"/>', option)
    assert mjcf != scene.mjcf
    scene = believed(type(scene)(name="off", mjcf=mjcf, components=scene.components), name)
    with pytest.warns(SameworldWarning, match=f"'{name}' has no effect: .*{flag}.* is disabled"):
        explicit_world(scene)


def test_naming_what_it_depends_on_makes_a_parameter_count():
    """A Stribeck speed does nothing at Stribeck friction 0, unless that is to be found too."""
    scene = hinge(friction("m2", stribeck=0.0))
    names = ("component:friction.stribeck", "component:friction.stribeck_velocity")
    explicit_world(believed(scene, *names))


# ---- identification ----------------------------------------------------------------------------

TRUTH = {
    "component:friction.coulomb": 0.03,
    "component:friction.viscous": 0.012,
    "component:friction.load": 0.09,
    "component:firmware.kp": 300.0,
    "component:firmware.resistance": 3.6,
}
NOISE = 0.002


def recorded(scene, count, ticks=80, seed=0, noise=NOISE):
    """Episodes of a scene's servo under stepwise goals, from starts at rest."""
    world = explicit_world(scene)
    rng = np.random.default_rng(seed)
    start = Values.of(
        {"start:elbow.pos": rng.uniform(-0.5, 0.5, count), "start:elbow.vel": np.zeros(count)}
    )
    goals = np.repeat(rng.uniform(-1.5, 1.5, (count, ticks // 16, 1)), 16, axis=1)
    result = rollout(world, start, goals, parameters=Values.of({k: [v] for k, v in TRUTH.items()}))
    assert result.valid.all()
    measured = result.signals["elbow.pos"] + noise * rng.normal(size=(count, ticks + 1))
    return [
        Episode(
            id=f"e{k}",
            channels=(
                Channel(name="elbow.pos", time=result.time, values=measured[k], noise=noise),
                Channel(name="motor", time=result.time[:-1], values=goals[k, :, 0], role="action"),
            ),
        )
        for k in range(count)
    ]


def test_identify_recovers_friction_and_firmware():
    scene = servo("m4")
    episodes = recorded(scene, 6, ticks=64)
    config = IdentifyConfig(
        free=tuple(TRUTH),
        window=np.inf,
        starts="joint",
        weighting="noise",
        loss="linear",
        rounds=1,
        search="none",
        holdout=0.0,
        prior=False,
    )
    _, _, result = identify(explicit_world(scene), episodes, config=config)
    z = {n: (result.verdict(n).value - v) / result.verdict(n).std for n, v in TRUTH.items()}
    assert np.sqrt(np.mean(np.square(list(z.values())))) < 2.0, z
    close = {n: abs(result.verdict(n).value / v - 1) for n, v in TRUTH.items()}
    assert max(close.values()) < 0.25, close
    assert min(close.values()) < 0.03, close


# ---- exogenous inputs --------------------------------------------------------------------------


def test_a_policy_decides_only_what_is_no_exogenous_input():
    world = explicit_world(servo("m1", inputs="enable"))
    names = [(c.name, c.default) for c in world.spec.actions]
    assert names == [("motor", None), ("firmware.enable", 1.0)]
    goals = np.linspace(-1, 1, 20)[:, None]
    start = Values.of({"start:elbow.pos": [0.2]})
    own = simulate(world, Replay(actions=goals), start, 20)
    whole = simulate(world, Replay(actions=np.column_stack([goals, np.ones(20)])), start, 20)
    np.testing.assert_array_equal(own.signals["elbow.pos"], whole.signals["elbow.pos"])
    np.testing.assert_array_equal(own.actions[..., 1], 1.0)
    off = simulate(world, Replay(actions=np.column_stack([goals, np.zeros(20)])), start, 20)
    assert np.abs(off.signals["elbow.pos"] - own.signals["elbow.pos"]).max() > 0.1


def test_an_input_without_a_default_must_be_given():
    world = explicit_world(servo("m1", inputs="voltage"))
    assert world.spec.actions[1].default is None
    with pytest.raises(SpecError, match=r"hold 1 numbers.*'motor', 'firmware\.voltage'"):
        simulate(world, Hold(action=np.zeros(1)), Values.of({"start:elbow.pos": [0.2]}), 3)


def episode_of(world, actions, *, enable):
    """An episode of a world, with or without the channel of the enable flag."""
    start = Values.of({"start:elbow.pos": [0.3]})
    result = rollout(world, start, actions[None])
    channels = [
        Channel(name="elbow.pos", time=result.time, values=result.signals["elbow.pos"][0]),
        Channel(name="motor", time=result.time[:-1], values=actions[:, 0], role="action"),
    ]
    if enable:
        channels.append(
            Channel(
                name="firmware.enable",
                time=result.time[:-1],
                values=actions[:, 1],
                role="exogenous",
            )
        )
    return Episode(id="e", channels=tuple(channels))


def test_an_episode_without_the_exogenous_channel_takes_its_default():
    world = explicit_world(servo("m1", inputs="enable"))
    goals = np.repeat([1.0, -0.5], 30)
    flag = np.repeat([1.0, 0.0], 30)
    told = predict(
        world, episode_of(world, np.column_stack([goals, flag]), enable=True), 5
    ).channels["elbow.pos"]
    assert np.abs(told.error).max() < 1e-3
    default = predict(
        world, episode_of(world, np.column_stack([goals, np.ones(60)]), enable=False), 5
    ).channels["elbow.pos"]
    assert np.abs(default.error).max() < 1e-3
    lacking = predict(
        world, episode_of(world, np.column_stack([goals, flag]), enable=False), 5
    ).channels["elbow.pos"]
    assert np.abs(lacking.error).max() > 0.1


def test_an_episode_that_lacks_what_has_no_default_is_refused():
    world = explicit_world(servo("m1", inputs="voltage"))
    episode = episode_of(
        explicit_world(servo("m1", inputs="enable")), np.ones((20, 2)), enable=False
    )
    with pytest.raises(EpisodeError, match=r"lacks the action channel 'firmware\.voltage'"):
        predict(world, episode, 5)


def test_the_supply_as_an_input_is_the_supply_as_a_parameter():
    start = Values.of({"start:elbow.pos": [0.2]})
    goals = np.linspace(1, -1, 30)
    fixed = rollout(explicit_world(servo("m4", voltage=6.3)), start, goals[None, :, None])
    world = explicit_world(with_settings(servo("m4"), "firmware", inputs="voltage"))
    given = rollout(world, start, np.column_stack([goals, np.full(30, 6.3)])[None])
    np.testing.assert_array_equal(fixed.signals["elbow.pos"], given.signals["elbow.pos"])


def test_firmware_without_a_usual_voltage_needs_none_where_it_is_an_input():
    own = {k: v for k, v in firmware().settings.items() if k != "voltage"}
    part = component("firmware", "firmware_servo", "actuator:motor", inputs="voltage", **own)
    assert explicit_world(hinge(part)).parameters["component:firmware.voltage"].value == 0.0
