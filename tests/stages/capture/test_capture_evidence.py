"""The pieces of evidence, each against a slow or exact reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from sameworld.core import Recording, Stream
from sameworld.stages.capture import CaptureConfig
from sameworld.stages.capture.arm import Arm, Assignment, Motion, advantage
from sameworld.stages.capture.columns import Column, tabulate
from sameworld.stages.capture.lags import Lag, delays
from sameworld.stages.capture.names import hints, unit_factor
from sameworld.stages.capture.pairs import groups_of
from sameworld.stages.capture.targets import Joint

CONFIG = CaptureConfig()


def joint(number, unit="rad"):
    return Joint(
        name=f"j{number + 1}", number=number, q=number, v=number, unit=unit, low=-3, high=3, rest=0
    )


# ---- torques -----------------------------------------------------------------------------------


def pendulums(q, v, a):
    """Two unlike pendulums that feel each other's motion a little."""
    swing = np.array([3.0, 1.0]) * a + np.array([9.0, 2.0]) * np.sin(q)
    return swing + 0.4 * v[:, ::-1] ** 2 + 0.3 * np.cos(q[:, :1] + q[:, 1:])


def random_arm(seed, rows=80):
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 6, rows)[:, None]
    speed, phase = rng.uniform(0.8, 2.5, 2), rng.uniform(0, 6, 2)
    turn = time * speed + phase
    motion = Motion(
        positions=np.sin(turn), rates=speed * np.cos(turn), bends=-(speed**2) * np.sin(turn)
    )
    torque = pendulums(motion.positions, motion.rates, motion.bends)
    torque = torque + 0.5 * motion.rates + 0.05 * rng.standard_normal(torque.shape)
    return Arm(
        joints=(joint(0), joint(1)),
        motion=motion,
        torques=torque * rng.choice([-1, 1], 2),
        inverse=pendulums,
        prior=np.zeros((2, 2)),
    )


def straight():
    return Assignment(order=np.arange(2), scales=np.ones(2), offsets=np.zeros(2))


def slow_cost(arm, assignment):
    """Every torque column, joint and sign by itself, with scipy's NNLS."""
    moved = arm.moved(assignment)
    own, terms = arm.inverse(*moved), arm.friction(moved)
    own = own - own.mean(axis=0)
    torque = arm.torques - arm.torques.mean(axis=0)
    table = np.empty((2, 2))
    for k in range(2):
        for j in range(2):
            shares = []
            for sign in (1, -1):
                _, left = nnls(terms[:, j], sign * torque[:, k] - own[:, j])
                shares.append(left**2 / np.sum(torque[:, k] ** 2))
            table[k, j] = math.log(min(shares) + 1e-4)
    return min(table[0, 0] + table[1, 1], table[0, 1] + table[1, 0])


@pytest.mark.parametrize("seed", range(6))
def test_costs_agree_with_nonnegative_least_squares_one_by_one(seed):
    arm = random_arm(seed)
    scales = np.random.default_rng(seed + 50).choice([-1.0, 1.0], 2)
    for order in ([0, 1], [1, 0]):
        assignment = Assignment(order=np.array(order), scales=scales, offsets=np.array([0.2, 0.0]))
        priors = 0.02 * 0.04 + 0.05 * int((scales < 0).sum())
        assert arm.cost(assignment) == pytest.approx(slow_cost(arm, assignment) + priors, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_true_assignment_costs_least_and_explains_the_torques(seed):
    arm = random_arm(seed)
    others = [
        straight().swapped(0, 1),
        straight().scaled((0,), -1.0),
        straight().scaled((0, 1), -1),
    ]
    assert arm.cost(straight()) < min(arm.cost(o) for o in others)
    assert arm.explain(straight()).fit.min() > 0.98


def test_zero_offsets_come_back_with_honest_deviations():
    errors = []
    for seed in range(12):
        arm = random_arm(seed)
        moved = Motion(
            positions=arm.motion.positions - 0.4, rates=arm.motion.rates, bends=arm.motion.bends
        )
        shifted = Arm(**{**vars(arm), "motion": moved})
        found, spread = shifted.zeroed(straight(), np.ones(2, dtype=bool), rounds=8)
        errors.append((found.offsets - 0.4) / spread)
    assert np.sqrt(np.mean(np.square(errors))) < 1.5


def test_an_advantage_is_many_deviations_only_where_it_is_everywhere():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(400)
    assert abs(advantage(noise, rng.standard_normal(400))) < 4
    assert advantage(noise + 1, noise + 0.2 * rng.standard_normal(400)) > 10
    assert advantage(noise, noise + 1) < -10


# ---- velocities and clocks -----------------------------------------------------------------------


def wave(lag=0.0, factor=1.0, velocity=1.0, step=0.02, seed=0):
    """A position and a velocity column of one joint, the velocity ``lag`` s late."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, 12, step)
    tones, phases = rng.uniform(0.1, 0.7, 4)[:, None], rng.uniform(0, 6, 4)[:, None]
    size = 2 * math.pi * tones
    position = np.sum(0.4 * np.sin(size * time + phases), axis=0)
    rate = np.sum(0.4 * size * np.cos(size * (time - lag) + phases), axis=0)
    values = np.stack([position * factor, rate * velocity], axis=1)
    stream = Stream(name="s", time=time, values=values, labels=("a", "b"))
    return tabulate([Recording(id="r", streams=(stream,))], CONFIG)


def only_group(table):
    (group,) = groups_of(table, hints(table.columns, [joint(0)]), CONFIG, [joint(0)])
    return group


@settings(max_examples=15, deadline=None)
@given(lag=st.floats(-0.03, 0.03), seed=st.integers(0, 1000))
def test_the_lag_of_a_velocity_is_measured_far_below_a_sample(lag, seed):
    group = only_group(wave(lag=lag, seed=seed))
    assert (group.position, group.velocity, group.sign) == (0, 1, 1)
    assert group.lag == pytest.approx(lag, abs=5e-4)


@pytest.mark.parametrize(
    ("factor", "velocity", "units", "sign"),
    [
        (1.0, -1.0, (1.0, 1.0), -1),
        (180 / math.pi, 1.0, (math.pi / 180, 1.0), 1),
        (1.0, 180 / math.pi, (1.0, math.pi / 180), 1),
        (180 / math.pi, -180 / math.pi, (math.pi / 180, math.pi / 180), -1),
        (4096 / (2 * math.pi), 1.0, (2 * math.pi / 4096, 1.0), 1),
    ],
)
def test_units_and_signs_follow_from_the_gain_and_the_range(factor, velocity, units, sign):
    group = only_group(wave(factor=factor, velocity=velocity))
    assert (group.units[0].position, group.units[0].velocity) == pytest.approx(units)
    assert group.sign == sign


def lag(column, seconds, family="velocity", spread=1e-4):
    return Lag(column=column, family=family, lag=seconds, spread=spread, step=0.02)


def test_delays_are_whole_samples_against_the_most_common_clock():
    positions = [lag(k, 0.0, "position", 0.0) for k in range(3)]
    late = [lag(3 + k, 0.021 + 0.001 * k) for k in range(3)]
    assert delays([*positions, *late]) == {0: 0, 1: 0, 2: 0, 3: 0.02, 4: 0.02, 5: 0.02}


def test_where_all_others_seem_early_the_positions_are_late():
    positions = [lag(k, 0.0, "position", 0.0) for k in range(3)]
    rest = [lag(3 + k, -0.02) for k in range(3)]
    rest += [lag(6 + k, -0.0195 - 0.0003 * k, "torque", 1e-3) for k in range(3)]
    found = delays([*positions, *rest])
    assert [found[k] for k in range(9)] == pytest.approx([0.02] * 3 + [0.0] * 6)


def test_uncertain_and_small_lags_are_left_alone():
    small = [lag(k, 0.006) for k in range(3)]
    vague = [lag(3 + k, 0.03 + 0.04 * k, "torque", 0.05) for k in range(3)]
    positions = [lag(9 + k, 0.0, "position", 0.0) for k in range(3)]
    assert set(delays([*positions, *small, *vague]).values()) == {0.0}


def test_one_column_of_a_family_may_have_a_clock_of_its_own():
    lags = [lag(k, 0.0001 * k) for k in range(4)] + [lag(4, 0.04)]
    assert delays(lags) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 0.04}


# ---- names -------------------------------------------------------------------------------------


def column(stream, label="", unit=""):
    return Column(
        stream=stream, label=label, index=0, labelled=True, unit=unit, step=0.1, low=0, high=1
    )


@pytest.mark.parametrize(
    ("columns", "kind", "joints"),
    [
        ([column("q", str(k)) for k in range(3)], "position", [0, 1, 2]),
        ([column("arm", f"dq{k}") for k in (1, 2, 3)], "velocity", [0, 1, 2]),
        ([column("arm", f"joint_{k}_effort") for k in (1, 2, 3)], "torque", [0, 1, 2]),
        ([column("action.joint_position", str(k)) for k in range(3)], "command", [0, 1, 2]),
        ([column("state", f"j{k}.pos") for k in (3, 1, 2)], "position", [2, 0, 1]),
        ([column("state.cartesian_position", str(k)) for k in range(3)], "other", [-1, -1, -1]),
        ([column("log", f"c{k}") for k in range(3)], None, [-1, -1, -1]),
        ([column("arm", f"q{k}") for k in (4, 5, 6)], "position", [-1, -1, -1]),
    ],
)
def test_names_say_kind_and_joint_or_nothing(columns, kind, joints):
    found = hints(columns, [joint(k) for k in range(3)])
    assert {h.kind for h in found} == {kind} and [h.joint for h in found] == joints


def test_stated_units_give_their_factor():
    degrees, plain, ticks = hints(
        [column("q [deg]"), column("q (rad)"), column("pos", unit="ticks")], [joint(0)]
    )
    assert degrees.factor == pytest.approx(math.pi / 180) and degrees.unit == "rad"
    assert plain.factor == 1.0 and ticks.factor == pytest.approx(2 * math.pi / 4096)
    assert unit_factor("furlong") is None
