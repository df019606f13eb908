"""Torque fits: the truth comes back, and the quick way agrees with the plain one."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares
from torque_recordings import BIAS, DAMPING, FRICTION, JOINTS, TRUTH, arm, recorded, swing

from sameworld.core import AddressError, Belief, FitError, Parameter, Values
from sameworld.maths.filtering import correlation_time
from sameworld.maths.inertia import from_inertial_vector, inertia_problem
from sameworld.stages.identify import IdentifyResult, identify
from sameworld.stages.identify.holdout import split
from sameworld.stages.identify.torque import (
    TorqueConfig,
    fit_torque,
    identify_torque,
    read_motion,
)
from sameworld.stages.identify.torque.fit import predicted
from sameworld.zoo import AnalyticPendulum

FREE = ("body:*", "joint:*.damping", "joint:*.frictionloss", "sensor:*.bias")
CONFIG = TorqueConfig(free=FREE, cutoff=15.0)
CHANNELS = ("tau1", "tau2", "tau3")


@pytest.fixture(scope="module")
def answer():
    return identify_torque(arm(), [recorded()], config=CONFIG)


def test_friction_damping_and_offsets_come_back(answer):
    _, _, result = answer
    for k, joint in enumerate(JOINTS):
        for name, true in (
            (f"joint:{joint}.damping", DAMPING[k]),
            (f"joint:{joint}.frictionloss", FRICTION[k]),
            (f"sensor:tau{k + 1}.bias", BIAS[k]),
        ):
            row = result.verdict(name)
            assert row.verdict == "determined"
            assert abs(row.value - true) < max(5 * row.std, 0.02 * abs(true))


def test_the_same_call_takes_logged_torques(answer):
    _, _, result = identify(arm(), [recorded()], config=CONFIG)
    assert np.array_equal(result.posterior.mean.array, answer[2].posterior.mean.array)


def test_the_fitted_world_gives_the_true_torques(answer):
    world, _, _ = answer
    _, q, v, a = swing(3.0, seed=5)
    fitted, true = world.inverse(q, v, a), arm().inverse(q, v, a, Values.of(TRUTH))
    given = arm().inverse(q, v, a)
    assert np.abs(fitted - true).max() < 0.03 * np.abs(given - true).max()
    assert world.parameters["joint:yaw.damping"].source == "identified"
    assert np.isclose(
        world.inertias(["lower"])[0, 0], world.parameters["body:lower.mass"].value, rtol=1e-6
    )


def test_every_fitted_body_is_physical(answer):
    world, _, _ = answer
    for vector in world.inertias(world.mechanism.bodies):
        mass, _, inertia = from_inertial_vector(vector)
        assert inertia_problem(float(mass), inertia) is None


def test_what_torques_cannot_tell_apart_is_said_so(answer):
    _, _, result = answer
    loose = {v.name: v.verdict for v in result.verdicts}
    assert loose["body:load.mass"] == "only in combination"  # rigidly on the lower link
    assert loose["body:upper.com.z"] in ("zero gradient", "not excited")  # turns about z only
    texts = {c.text: c for c in result.combinations}
    assert "1 lower.moment.y +1 load.moment.y" in texts
    assert any("load" in line and "weigh" in line for line in result.advice)


def test_the_answer_is_that_of_identify(answer):
    _, episodes, result = answer
    assert isinstance(result, IdentifyResult)
    assert result.holdout is not None and result.holdout.passed and result.holdout.gain > 0.9
    assert [row.channel for row in result.residuals] == list(CHANNELS)
    assert all(row.rms_after < 0.1 * row.rms_before for row in result.residuals)
    assert episodes[0].id == "swing" and result.rollouts == 0
    assert json.loads(json.dumps(result.to_json()))["covariance_kind"] == "block jackknife"
    names = result.posterior.names
    assert len(names) == 14 * 4 + 9 and result.naive_covariance.shape == (len(names),) * 2


def test_a_load_is_weighed_by_the_same_call():
    known = {name: TRUTH[name] for name in ("body:lower.mass", "body:middle.com.z")}
    beliefs = [Parameter(name=name, value=value) for name, value in known.items()]
    world = arm().with_belief(Belief(parameters=tuple(beliefs)))
    config = replace(CONFIG, free=("body:load.*", *FREE[1:]), pull=1.0)
    _, _, result = identify_torque(world, [recorded()], config=config)
    mass = result.verdict("body:load.mass")
    assert mass.verdict == "determined" and mass.before == pytest.approx(0.4)
    assert abs(mass.value / TRUTH["body:load.mass"] - 1) < 0.02
    assert mass.low < TRUTH["body:load.mass"] < mass.high
    assert abs(result.verdict("body:load.com.z").value - 0.03) < 0.005


def test_uncertainty_of_what_is_not_fitted_is_carried_along():
    """Offsets believed to be zero, for certain or to 0.1 N m, while the true ones are not."""
    config = replace(CONFIG, free=("body:load.*",), pull=1.0)
    motion = read_motion(arm(), recorded(noise=0.05), config)
    rows = []
    for std in (0.0, 0.1):
        offsets = [
            Parameter(name=f"sensor:{channel}.bias", value=0.0, std=std) for channel in CHANNELS
        ]
        others = [Parameter(name=name, value=v) for name, v in TRUTH.items() if "load" not in name]
        losses = [
            Parameter(name=f"joint:{joint}.{part}", value=float(value), low=0.0, high=5.0)
            for k, joint in enumerate(JOINTS)
            for part, value in (("damping", DAMPING[k]), ("frictionloss", FRICTION[k]))
        ]
        world = arm().with_belief(Belief(parameters=(*offsets, *others, *losses)))
        model = fit_torque(world, [motion], channels=CHANNELS, config=config)
        rows.append(next(v for v in model.verdicts if v.name == "body:load.com.y"))
    sure, unsure = rows
    assert abs(unsure.value) < 0.3 * abs(sure.value)  # the true centre is at zero
    assert abs(unsure.value) < 3 * unsure.std and unsure.std < sure.std


def test_the_search_agrees_with_plain_least_squares_on_every_row():
    world = arm()
    motion = read_motion(world, recorded(seconds=4.0), CONFIG)
    model = fit_torque(world, [motion], channels=CHANNELS, config=replace(CONFIG, rounds=1))
    layout, given = model.layout, model.layout.given
    start = np.clip(given, *layout.bounds)
    first = [p.motion.torque - predicted(p, layout, start) for p in model.pieces]
    deviation = np.sqrt(np.mean(np.concatenate(first) ** 2, axis=0))
    share = np.array([len(r) for r in first], float)
    times = np.array([[correlation_time(c) for c in r.T] for r in first])
    weight = 1 / (deviation * np.sqrt(share @ times / share.sum()))

    def residual(x):
        rows = [
            ((p.motion.torque - predicted(p, layout, x)) * weight).ravel() for p in model.pieces
        ]
        return np.concatenate([*rows, np.sqrt(layout.precision) * (x - given)])

    slow = least_squares(residual, model.solution.x, x_scale="jac")
    mine = 0.5 * np.sum(residual(model.solution.x) ** 2)
    assert mine == pytest.approx(model.solution.cost, rel=1e-6)
    assert slow.cost > mine * (1 - 1e-5)
    assert np.abs(slow.x - model.solution.x)[: layout.inertial].max() < 0.02


def test_bounds_are_kept_and_named():
    tight = Parameter(name="joint:yaw.damping", value=0.5, low=0.4, high=1.0, unit="N m s/rad")
    world = arm().with_belief(Belief(parameters=(tight,)))
    _, _, result = identify_torque(world, [recorded()], config=CONFIG)
    row = result.verdict("joint:yaw.damping")
    assert row.verdict == "at bound" and row.value == pytest.approx(0.4)
    assert any("widen its bounds" in line for line in result.advice)


def test_several_episodes_are_fitted_together_and_clustered_from_eight_on():
    episodes = [recorded(seed, seconds=3.0, name=f"e{seed}") for seed in range(8)]
    _, placed, result = identify_torque(arm(), episodes, config=CONFIG)
    assert result.covariance_kind == "episode sandwich"
    assert [e.id for e in placed] == [e.id for e in episodes]
    assert result.verdict("joint:elbow.damping").value == pytest.approx(DAMPING[2], rel=0.05)


def test_a_fit_that_makes_things_worse_is_refused():
    """Torques of all but the held-out piece get a drag that is not there in the other."""
    losses = [
        Parameter(name=f"joint:{joint}.{part}", value=float(value), low=0.0, high=5.0)
        for k, joint in enumerate(JOINTS)
        for part, value in (("damping", DAMPING[k]), ("frictionloss", FRICTION[k]))
    ]
    truth = [Parameter(name=name, value=value) for name, value in TRUTH.items()]
    offsets = [
        Parameter(name=f"sensor:{c}.bias", value=b) for c, b in zip(CHANNELS, BIAS, strict=True)
    ]
    world = arm().with_belief(Belief(parameters=(*losses, *truth, *offsets)))
    episode, (held,) = recorded(), split(5, CONFIG.holdout, CONFIG.seed)[1]
    time = episode["tau3"].time
    begin = 0.5 + held * 1.4
    dragged = (time < begin - 0.1) | (time > begin + 1.5)
    torque = episode["tau3"].values + 2.0 * dragged * episode["elbow.vel"].values
    wrong = episode.with_channels([replace(episode["tau3"], values=torque)])
    config = replace(CONFIG, free=("joint:elbow.damping",))
    fitted, _, result = identify_torque(world, [wrong], config=config)
    assert result.verdict("joint:elbow.damping").value > 1.0
    assert result.holdout.gain < 0 and not result.holdout.passed
    assert fitted is world


@pytest.mark.parametrize(
    ("world", "episodes", "config", "error", "words"),
    [
        (AnalyticPendulum(), [recorded()], CONFIG, FitError, "capability 'inverse'"),
        (arm(), [], CONFIG, FitError, "No episodes"),
        (arm(), [recorded()], replace(CONFIG, free=("body:hand.*",)), AddressError, "hand"),
    ],
)
def test_what_cannot_be_fitted_is_refused(world, episodes, config, error, words):
    with pytest.raises(error, match=words):
        identify_torque(world, episodes, config=config)
