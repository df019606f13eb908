"""Worlds with components against independent integrations, and against what physics demands."""

import math

import numpy as np
import pytest
from component_cases import (
    FIRMWARE,
    VOLTAGE,
    arm,
    car,
    component,
    firmware,
    friction,
    hinge,
    simulated,
    slider,
)
from scipy.integrate import solve_ivp

from sameworld.core import Values, rollout
from sameworld.worlds.explicit import explicit_world

#: Of the hinge about its axis [kg m^2], and the torque of gravity at 90 degrees [N m].
RADIUS, LENGTH = 0.01, 0.15


def hinge_constants():
    """Moment of inertia and greatest gravity torque, from the compiled model."""
    model = explicit_world(hinge()).kernel.model
    own = float(model.body_inertia[1].max()) + 0.3 * float(model.body_ipos[1, 2]) ** 2
    return own + 0.003, 0.3 * 9.81 * abs(float(model.body_ipos[1, 2]))


INERTIA, WEIGHT = hinge_constants()


# ---- friction ----------------------------------------------------------------------------------


@pytest.mark.parametrize("timestep", [0.001, 0.005])
def test_a_joint_held_below_the_limit_does_not_creep(timestep):
    scene = hinge(friction("m1", coulomb=0.12, viscous=0.01), timestep=timestep)
    start = {"start:elbow.pos": [math.asin(0.1 / WEIGHT)]}
    signals, _ = simulated(scene, start, np.zeros((200, 1)))
    drift = np.abs(signals["elbow.pos"] - signals["elbow.pos"][0]).max()
    assert drift < 1e-4


@pytest.mark.parametrize("timestep", [0.001, 0.005])
def test_creep_is_a_small_share_of_the_motion_that_friction_prevents(timestep):
    scene = hinge(friction("m1", coulomb=0.12), timestep=timestep, gravity=0)
    signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, np.full((200, 1), 0.1))
    assert signals["elbow.pos"][-1] / 2.0 == pytest.approx(1e-4 * timestep * 0.1 / INERTIA, rel=0.1)


def test_an_mjcf_that_chooses_its_own_softness_is_left_alone():
    soft = 'solreffriction="0.03 1"'
    drift = {}
    for joint in ("", soft):
        scene = hinge(friction("m1", coulomb=0.12), joint=joint, gravity=0)
        signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, np.full((200, 1), 0.1))
        drift[joint] = signals["elbow.pos"][-1]
    assert drift[soft] > 20 * drift[""]


def test_a_joint_pushed_beyond_the_limit_moves_and_stops_again():
    scene = hinge(friction("m1", coulomb=0.2, viscous=0.01), gravity=0)
    push = np.concatenate([np.full((20, 1), 0.25), np.zeros((80, 1))])
    signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, push)
    assert signals["elbow.pos"][20] > 0.1
    assert abs(signals["elbow.vel"][-1]) < 1e-6
    assert np.ptp(signals["elbow.pos"][-20:]) < 1e-5


def test_load_dependent_friction_holds_what_the_motor_cannot():
    """A gearbox whose friction grows with its load locks itself."""
    own = {"coulomb": 0.001, "viscous": 0.001, "stribeck": 0.0, "load_stribeck": 0.0}
    start = {"start:elbow.pos": [1.2]}
    moved = {}
    for share in (0.5, 1.0):
        signals, _ = simulated(hinge(friction("m4", load=share, **own)), start, np.zeros((100, 1)))
        moved[share] = abs(signals["elbow.pos"][-1] - 1.2)
    assert moved[1.0] < 1e-3 < 0.5 < moved[0.5]


@pytest.mark.parametrize("model", ["m1", "m2", "m3", "m4", "m5", "m6"])
def test_friction_never_adds_energy(model):
    start = {"start:elbow.pos": [2.5], "start:elbow.vel": [3.0]}
    scene = hinge(friction(model, coulomb=0.02), timestep=0.0005, period=0.01)
    signals, _ = simulated(scene, start, np.zeros((150, 1)))
    energy = 0.5 * INERTIA * signals["elbow.vel"] ** 2 - WEIGHT * np.cos(signals["elbow.pos"])
    assert np.diff(energy).max() < 1e-6
    assert energy[0] - energy[-1] > 0.1


def test_stiffened_joints_do_not_change_how_friction_slows_a_swing():
    """Coulomb friction takes away the torque times the path."""
    scene = slider(
        component("f", "gear_friction", "joint:rail", model="m1", coulomb=1.0, viscous=0.0)
    )
    signals, _ = simulated(scene, {"start:rail.vel": [1.0]}, np.zeros((250, 1)))
    assert signals["rail.pos"][-1] == pytest.approx(0.5 * 2.0 * 1.0**2 / 1.0, rel=5e-3)


def swing_by_hand(limit, viscous, torque, start, ticks, timestep=0.0005, period=0.01):
    """The hinge with Coulomb friction that stops it exactly, in plain scalars.

    ``limit(v, external, drive)`` is the largest friction, ``torque(tick, q, v)`` the motor's.
    """
    q, v, last = *start, -WEIGHT * math.sin(start[0])
    seen = [(q, v)]
    for tick in range(ticks):
        for _ in range(round(period / timestep)):
            drive = torque(tick, q, v)
            most = limit(v, last, drive)
            last = -WEIGHT * math.sin(q)
            free = v + timestep * (drive + last) / INERTIA
            free /= 1 + timestep * viscous / INERTIA
            stop = timestep * most / INERTIA / (1 + timestep * viscous / INERTIA)
            v = math.copysign(max(abs(free) - stop, 0.0), free)
            q += timestep * v
        seen.append((q, v))
    return np.array(seen)


def test_a_servo_swings_as_the_scalar_integration_does():
    own = {
        "coulomb": 0.02,
        "viscous": 0.01,
        "stribeck": 0.03,
        "stribeck_velocity": 0.5,
        "stribeck_exponent": 1.3,
        "load": 0.1,
        "load_stribeck": 0.08,
    }
    scene = hinge(friction("m4", **own), firmware(kd=0.0), timestep=0.0005)
    goals = np.repeat(np.random.default_rng(2).uniform(-1.5, 1.5, 6), 20)
    signals, _ = simulated(scene, {"start:elbow.pos": [0.3]}, goals[:, None])

    def limit(v, external, drive):
        slow = math.exp(-(abs(v / 0.5) ** 1.3))
        carried = abs(external - drive)
        return 0.02 + slow * 0.03 + (0.1 + slow * 0.08) * carried

    def torque(tick, q, v):
        duty = min(max(FIRMWARE["gain"] * FIRMWARE["kp"] * (goals[tick] - q), -1.0), 1.0)
        return 0.9 / 4.0 * (7.5 * duty - 0.9 * v)

    wanted = swing_by_hand(limit, 0.01, torque, (0.3, 0.0), len(goals))
    np.testing.assert_allclose(signals["elbow.pos"], wanted[:, 0], atol=3e-3)


def test_asymmetric_friction_gives_its_steady_speed_to_each_side():
    own = {
        "coulomb_positive": 1.0,
        "coulomb_negative": 2.0,
        "viscous_positive": 3.0,
        "viscous_negative": 5.0,
        "offset": 0.5,
    }
    scene = slider(component("f", "asymmetric_friction", "joint:rail", **own))
    for force, steady in ((10.0, (10 + 0.5 - 1) / 3), (-10.0, (-10 + 0.5 + 2) / 5)):
        signals, _ = simulated(scene, {"start:rail.pos": [0.0]}, np.full((600, 1), force))
        assert signals["rail.vel"][-1] == pytest.approx(steady, rel=1e-3)


def test_asymmetric_friction_holds_pushes_up_to_the_limit_of_their_side():
    own = {"coulomb_positive": 1.0, "coulomb_negative": 2.0, "offset": 0.0}
    scene = slider(component("f", "asymmetric_friction", "joint:rail", **own))
    moved = {}
    for force in (0.9, 1.2, -1.8, -2.2):
        signals, _ = simulated(scene, {"start:rail.pos": [0.0]}, np.full((200, 1), force))
        moved[force] = abs(signals["rail.pos"][-1])
    assert max(moved[0.9], moved[-1.8]) < 1e-4 < 0.05 < min(moved[1.2], moved[-2.2])


# ---- motors and controllers --------------------------------------------------------------------


def test_a_voltage_motor_turns_as_its_differential_equation_says():
    scene = hinge(
        component("drive", "voltage_motor", "actuator:motor", **VOLTAGE),
        timestep=0.0002,
    )
    volts = np.repeat([3.0, -5.0, 9.0, 0.0], 10)
    signals, time = simulated(scene, {"start:elbow.pos": [0.4]}, volts[:, None])

    def rate(t, y):
        applied = min(max(volts[min(int(t / 0.01 + 1e-9), 39)], -6.0), 6.0)
        torque = 0.3 / 1.5 * (applied - 0.3 * y[1])
        return [y[1], (torque - WEIGHT * math.sin(y[0])) / INERTIA]

    exact = solve_ivp(
        rate, (0, time[-1]), [0.4, 0.0], t_eval=time, rtol=1e-8, atol=1e-8, max_step=0.01
    )
    np.testing.assert_allclose(signals["elbow.pos"], exact.y[0], atol=5e-3)
    assert np.ptp(exact.y[0]) > 0.5


def test_back_emf_limits_the_speed_of_a_saturated_servo():
    scene = hinge(firmware(kd=0.0, duty_limit=0.5), gravity=0)
    signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, np.full((150, 1), 1e4))
    assert signals["elbow.vel"][-1] == pytest.approx(0.5 * 7.5 / 0.9, rel=1e-3)


def test_a_higher_supply_voltage_is_faster():
    scene = hinge(firmware(kd=0.0, inputs="voltage"), gravity=0)
    speeds = []
    for volts in (6.0, 9.0):
        actions = np.column_stack([np.full(150, 1e4), np.full(150, volts)])
        signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, actions)
        speeds.append(signals["elbow.vel"][-1] * 0.9)
    assert speeds == pytest.approx([6.0, 9.0], rel=1e-3)


def test_a_disabled_motor_gives_no_torque():
    """With enable = 0 the rod swings as if the firmware were not there."""
    start = {"start:elbow.pos": [0.7]}
    off = np.column_stack([np.full(50, -1.0), np.zeros(50)])
    disabled, _ = simulated(hinge(firmware(inputs="enable")), start, off)
    free, _ = simulated(hinge(), start, np.zeros((50, 1)))
    np.testing.assert_allclose(disabled["elbow.pos"], free["elbow.pos"], atol=1e-12)
    on = np.column_stack([np.full(50, -1.0), np.ones(50)])
    driven, _ = simulated(hinge(firmware(inputs="enable")), start, on)
    assert np.abs(driven["elbow.pos"] - free["elbow.pos"]).max() > 0.5


def test_impedance_rests_where_spring_and_gravity_balance():
    scene = hinge(
        component(
            "hold",
            "joint_impedance",
            "actuator:motor",
            compensation=0.0,
            stiffness=2.0,
            damping=0.3,
        )
    )
    signals, _ = simulated(scene, {"start:elbow.pos": [0.0]}, np.full((600, 1), 1.0))
    rest = signals["elbow.pos"][-1]
    assert 2.0 * (1.0 - rest) == pytest.approx(WEIGHT * math.sin(rest), rel=1e-4)
    assert abs(signals["elbow.vel"][-1]) < 1e-4


def test_gravity_compensation_holds_an_arm_still():
    start = {"start:j0.pos": [0.9], "start:j1.pos": [-0.4], "start:j2.pos": [0.3]}
    pose = np.tile([0.9, -0.4, 0.3], (200, 1))
    sag = {}
    for share in (0.0, 1.0):
        signals, _ = simulated(arm(compensation=share, friction=""), start, pose)
        sag[share] = max(float(np.abs(signals[f"j{i}.pos"] - pose[0, i]).max()) for i in range(3))
    assert sag[1.0] < 1e-6 < 0.02 < sag[0.0]


def test_impedance_follows_a_late_goal_with_its_lag():
    """Without gravity and stiff, the joint is where the delayed and smoothed goal is."""
    scene = hinge(
        component(
            "hold",
            "joint_impedance",
            "actuator:motor",
            stiffness=4000.0,
            damping=20.0,
            delay=0.1,
            lag=0.2,
        ),
        gravity=0,
        timestep=0.0005,
    )
    goals = np.concatenate([np.zeros(20), np.ones(80)])
    signals, time = simulated(scene, {"start:elbow.pos": [0.0]}, goals[:, None])
    late = np.maximum(time - 0.3, 0)
    smooth = np.where(late > 0, 1 - np.exp(-late / 0.2), 0.0)
    # The damper pulls back with the speed: a lag of damping / stiffness more.
    np.testing.assert_allclose(signals["elbow.pos"], smooth, atol=0.03)


def test_filtered_pd_drives_a_rail_as_the_scalar_loop_does():
    own = {"kp": 20.0, "kv": 3.0, "limit": 4.0, "drive_gain": 5.0}
    scene = slider(component("pd", "filtered_pd", "actuator:motor", **own), timestep=0.0005)
    goals = np.repeat([0.2, -0.1, 0.4], 40)
    signals, _ = simulated(scene, {"start:rail.vel": [0.3]}, goals[:, None])
    q, v, period = 0.0, 0.3, 0.01
    past, wanted = [q - 2 * period * v, q - period * v], [q]
    for goal in goals:
        past.append(q)
        speed = (past[-1] - past[-3]) / (2 * period)
        u = min(max(3.0 * (20.0 * (goal - q) - speed), -4.0), 4.0)
        for _ in range(20):
            v += 0.0005 * 5.0 * u / 2.0
            q += 0.0005 * v
        wanted.append(q)
    np.testing.assert_allclose(signals["rail.pos"], wanted, atol=1e-9)


# ---- cars --------------------------------------------------------------------------------------

START = {"start:x.pos": [0.2], "start:heading.pos": [0.3], "start:drive.steer": [0.05]}


def held(sequence, t):
    return sequence[min(int(t / 0.02 + 1e-9), len(sequence) - 1)]


def commanded(ticks=75):
    rng = np.random.default_rng(4)
    steer = np.repeat(rng.uniform(-0.35, 0.35, ticks // 15), 15)
    speed = np.repeat(rng.uniform(0.5, 2.5, ticks // 15), 15)
    return np.column_stack([steer, speed])


def test_the_kinematic_car_drives_as_its_differential_equation_says():
    own = {
        "wheelbase": 0.4,
        "rear": 0.12,
        "steer_gain": 0.9,
        "steer_offset": 0.02,
        "speed_offset": 0.1,
    }
    scene = car("kinematic_car", speed_gain=1.1, steer_lag=0.06, speed_lag=0.3, **own)
    actions = commanded()
    signals, time = simulated(scene, {**START, "start:drive.speed": [1.0]}, actions)

    def rate(t, y):
        steer, speed = held(actions, t)
        turn = y[4] * math.tan(y[3]) / 0.4
        return [
            y[4] * math.cos(y[2]) - 0.12 * turn * math.sin(y[2]),
            y[4] * math.sin(y[2]) + 0.12 * turn * math.cos(y[2]),
            turn,
            (0.9 * steer + 0.02 - y[3]) / 0.06,
            (1.1 * speed + 0.1 - y[4]) / 0.3,
        ]

    begin = [0.2, 0.0, 0.3, 0.05, 1.0]
    exact = solve_ivp(rate, (0, time[-1]), begin, t_eval=time, rtol=1e-8, max_step=0.02)
    for row, name in enumerate(("x.pos", "y.pos", "heading.pos", "drive.steer", "drive.speed")):
        np.testing.assert_allclose(signals[name], exact.y[row], atol=2e-3, err_msg=name)


def test_a_car_circles_with_the_radius_of_its_steering():
    scene = car("kinematic_car", steer_lag=0.0, speed_lag=0.0, wheelbase=0.5)
    actions = np.tile([0.3, 1.0], (550, 1))
    signals, time = simulated(scene, {"start:x.pos": [0.0]}, actions)
    turned = signals["heading.pos"][-1] - signals["heading.pos"][100]
    assert turned / (time[-1] - time[100]) == pytest.approx(math.tan(0.3) / 0.5, rel=1e-9)
    radius = 0.5 / math.tan(0.3)
    span = np.ptp(signals["y.pos"])
    assert span == pytest.approx(2 * radius, rel=2e-3)


def test_the_dynamic_car_drives_as_its_differential_equation_says():
    own = {"front": 0.2, "rear": 0.15, "stiffness_front": 60.0, "stiffness_rear": 70.0, "grip": 0.6}
    scene = car("dynamic_car", timestep=0.001, steer_lag=0.08, speed_lag=0.3, **own)
    turn = float(explicit_world(scene).kernel.model.body_inertia[1, 2])
    actions = commanded()
    signals, time = simulated(scene, {**START, "start:x.vel": [1.0]}, actions)

    def rate(t, y):
        x_rate, y_rate, heading, spin, steer = y[3], y[4], y[2], y[5], y[6]
        forward = x_rate * math.cos(heading) + y_rate * math.sin(heading)
        sideways = y_rate * math.cos(heading) - x_rate * math.sin(heading)
        wanted_steer, wanted = held(actions, t)
        slow = max(abs(forward), 0.3)
        slips = (
            math.atan2(sideways + 0.2 * spin, slow) - steer * np.sign(forward),
            math.atan2(sideways - 0.15 * spin, slow),
        )
        loads = (3.5 * 9.81 * 0.15 / 0.35, 3.5 * 9.81 * 0.2 / 0.35)
        front, rear = (
            -0.6 * load * math.tanh(c * slip / (0.6 * load))
            for load, c, slip in zip(loads, (60.0, 70.0), slips, strict=True)
        )
        along = 3.5 * (wanted - forward) / 0.3 - front * math.sin(steer)
        across = front * math.cos(steer) + rear
        moment = 0.2 * front * math.cos(steer) - 0.15 * rear
        return [
            x_rate,
            y_rate,
            spin,
            (along * math.cos(heading) - across * math.sin(heading)) / 3.5,
            (along * math.sin(heading) + across * math.cos(heading)) / 3.5,
            moment / turn,
            (wanted_steer - steer) / 0.08,
        ]

    begin = [0.2, 0.0, 0.3, 1.0, 0.0, 0.0, 0.05]
    exact = solve_ivp(rate, (0, time[-1]), begin, t_eval=time, rtol=1e-7, atol=1e-8, max_step=0.02)
    for row, name in ((0, "x.pos"), (1, "y.pos"), (2, "heading.pos"), (6, "drive.steer")):
        np.testing.assert_allclose(signals[name], exact.y[row], atol=1e-2, err_msg=name)


def test_grip_bounds_the_sideways_force():
    """A car that turns too fast for its tyres slides outwards."""
    spans = {}
    for grip in (0.05, 1.0):
        scene = car("dynamic_car", grip=grip, steer_lag=0.0, speed_lag=0.1)
        actions = np.tile([0.3, 3.0], (100, 1))
        signals, _ = simulated(scene, {"start:x.vel": [3.0]}, actions)
        spans[grip] = signals["heading.pos"][-1]
    assert spans[0.05] < 0.5 * spans[1.0]


# ---- gears -------------------------------------------------------------------------------------


def test_friction_feels_the_motor_through_its_gear():
    """Load-dependent friction sees the torque on the joint, not the motor's own."""
    own = {"coulomb": 0.0, "viscous": 0.0, "stribeck": 0.0, "load_stribeck": 0.0, "load": 0.5}
    parts = (
        component("friction", "gear_friction", "joint:rail", model="m4", **own),
        component(
            "drive", "voltage_motor", "actuator:motor", torque_constant=1e-3, resistance=1e-3
        ),
    )
    for gear in (1.0, 4.0):
        world = explicit_world(slider(*parts, gear=gear))
        result = rollout(world, Values.of({"start:rail.pos": [0.0]}), np.full((1, 100, 1), 1.0))
        assert result.signals["rail.vel"][0, -1] == pytest.approx(gear * 0.5 / 2.0, rel=0.02)
        edited = rollout(
            explicit_world(slider(*parts)),
            Values.of({"start:rail.pos": [0.0]}),
            np.full((1, 100, 1), 1.0),
            parameters=Values.of({"actuator:motor.gear": [gear]}),
        )
        np.testing.assert_allclose(
            edited.signals["rail.vel"], result.signals["rail.vel"], atol=1e-12
        )


def test_two_frictions_of_one_law_on_a_joint_add_up():
    def swung(*limits):
        parts = [
            component(f"f{k}", "gear_friction", "joint:elbow", model="m1", coulomb=c, viscous=v)
            for k, (c, v) in enumerate(limits)
        ]
        start = {"start:elbow.pos": [0.0], "start:elbow.vel": [5.0]}
        return simulated(hinge(*parts), start, np.zeros((40, 1)))[0]["elbow.pos"]

    np.testing.assert_allclose(swung((0.1, 0.01), (0.2, 0.0)), swung((0.3, 0.01)), atol=1e-12)
