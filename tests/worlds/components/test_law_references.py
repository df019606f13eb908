"""Laws against scalar twins written from their formulas, one number at a time."""

import math

import numpy as np
import pytest
from component_cases import CLOCK, FILTERED, FIRMWARE, IMPEDANCE, VOLTAGE, motion
from hypothesis import given, settings
from hypothesis import strategies as st

from sameworld.worlds.components import LAWS, Clock
from sameworld.worlds.components.goals import DelayLine, lagged

MODELS = ("m1", "m2", "m3", "m4", "m5", "m6")


def columns(values, count):
    return {name: np.full((count, 1), value) for name, value in values.items()}


# ---- friction ----------------------------------------------------------------------------------


def gear_limit(model, p, v, external, drive):
    """Largest Coulomb torque of the models M1 to M6, term by term."""
    slow = math.exp(-(abs(v / p["stribeck_velocity"]) ** p["stribeck_exponent"]))
    limit = p["coulomb"]
    if model in ("m2", "m4", "m5", "m6"):
        limit += p["stribeck"] * slow
    if model in ("m3", "m4"):
        limit += p["load"] * abs(external - drive)
    if model == "m4":
        limit += slow * p["load_stribeck"] * abs(external - drive)
    if model in ("m5", "m6"):
        limit += abs(p["load_external"] * external - p["load_drive"] * drive)
        inner = p["load_stribeck_external"] * external - p["load_stribeck_drive"] * drive
        limit += slow * abs(inner)
    if model == "m6" and np.sign(external) != np.sign(drive):
        if abs(external) < abs(drive):
            limit += slow * p["quadratic_external"] * external**2
        if abs(external) > abs(drive):
            limit += slow * p["quadratic_drive"] * drive**2
    return limit


GEAR = {
    "coulomb": 0.04,
    "viscous": 0.02,
    "stribeck": 0.03,
    "stribeck_velocity": 0.4,
    "stribeck_exponent": 1.7,
    "load": 0.06,
    "load_stribeck": 0.05,
    "load_drive": 0.08,
    "load_external": 0.11,
    "load_stribeck_drive": 0.03,
    "load_stribeck_external": 0.07,
    "quadratic_drive": 0.004,
    "quadratic_external": 0.009,
}


@pytest.mark.parametrize("model", MODELS)
def test_gear_friction_is_the_formula_of_its_model(model):
    law = LAWS["gear_friction"]({"model": model}, CLOCK)
    names = [f.name for f in law.fields()]
    assert set(names) <= set(GEAR)
    rng = np.random.default_rng(3)
    v, external, drive = rng.normal(0, 1, (3, 60))
    v[:3] = 0.0
    external[5], drive[6] = 0.0, 0.0
    seen = motion(v, v, load=external, drive=drive)
    effect = law.act(columns({n: GEAR[n] for n in names}, 60), np.zeros((60, 1, 0)), seen)
    wanted = [gear_limit(model, GEAR, *row) for row in zip(v, external, drive, strict=True)]
    np.testing.assert_allclose(effect.friction[:, 0], wanted, rtol=1e-13)
    np.testing.assert_array_equal(effect.damping, 0.02)
    assert effect.force is None and effect.velocity is None


def test_models_without_loads_do_not_ask_for_them():
    reads = {m: LAWS["gear_friction"]({"model": m}, CLOCK).reads() for m in MODELS}
    assert {m for m, what in reads.items() if not what} == {"m1", "m2"}


@given(
    v=st.floats(-5, 5),
    external=st.floats(-3, 3),
    drive=st.floats(-3, 3),
    model=st.sampled_from(MODELS),
)
def test_friction_never_falls_below_coulomb(v, external, drive, model):
    law = LAWS["gear_friction"]({"model": model}, CLOCK)
    values = columns({f.name: GEAR[f.name] for f in law.fields()}, 1)
    seen = motion([v], [v], load=[external], drive=[drive])
    assert law.act(values, np.zeros((1, 1, 0)), seen).friction[0, 0] >= GEAR["coulomb"]


def test_asymmetric_friction_takes_the_side_of_motion_or_of_the_push_at_rest():
    law = LAWS["asymmetric_friction"]({}, CLOCK)
    own = {
        "coulomb_positive": 1.0,
        "coulomb_negative": 2.0,
        "viscous_positive": 3.0,
        "viscous_negative": 4.0,
        "offset": -0.5,
    }
    #        moving, moving against the push, at rest pushed either way by drive and load
    v = np.array([0.1, -0.1, 0.1, 0.0, 0.0, 0.0])
    drive = np.array([0.0, 0.0, -9.0, 1.0, -1.0, 1.0])
    load = np.array([0.0, 0.0, 0.0, 0.5, 0.5, -2.0])
    effect = law.act(columns(own, 6), np.zeros((6, 1, 0)), motion(v, v, load=load, drive=drive))
    np.testing.assert_array_equal(effect.friction[:, 0], [1, 2, 1, 1, 2, 2])
    np.testing.assert_array_equal(effect.damping[:, 0], [3, 4, 3, 3, 4, 4])
    np.testing.assert_array_equal(effect.force, np.full((6, 1), -0.5))


# ---- delays and lags ---------------------------------------------------------------------------


def delayed_by_averaging(commands, period, begin, end, delay, fine=4000):
    """Mean over [begin, end] of the zero-order hold of commands, moved by a delay."""
    at = begin + (np.arange(fine) + 0.5) / fine * (end - begin) - delay
    tick = np.clip(np.floor(at / period).astype(int), 0, len(commands) - 1)
    return commands[tick].mean()


def read_all(line, clock, commands, delay):
    """What the delay line gives at every engine step."""
    memory, out = line.begin(commands[:1]), []
    for tick, command in enumerate(commands):
        if tick:
            memory = line.pushed(memory, np.array([command]))
        out += [line.read(memory, np.array([delay]), k)[0] for k in range(clock.substeps)]
    return np.array(out)


@pytest.mark.parametrize("substeps", [1, 4, 5])
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.0073, 0.01, 0.0245, 0.05, 0.0999])
def test_delay_line_is_the_mean_of_the_delayed_hold(substeps, delay):
    clock = Clock(timestep=0.01 / substeps, substeps=substeps)
    line = DelayLine(0.1, clock)
    commands = np.random.default_rng(1).normal(size=25)
    seen = read_all(line, clock, commands, delay)
    wanted = [
        delayed_by_averaging(
            commands, clock.period, k * clock.timestep, (k + 1) * clock.timestep, delay
        )
        for k in range(len(seen))
    ]
    np.testing.assert_allclose(seen, wanted, atol=2e-3)


steps_and_delays = st.tuples(st.sampled_from([1, 2, 5]), st.integers(0, 4), st.floats(0, 0.1))


@given(steps_and_delays)
def test_delay_zero_is_the_plain_hold(case):
    substeps, substep, _ = case
    clock = Clock(timestep=0.01 / substeps, substeps=substeps)
    line = DelayLine(0.1, clock)
    memory = np.random.default_rng(0).normal(size=(1, line.size))
    seen = line.read(memory, np.zeros(1), min(substep, substeps - 1))
    assert seen[0] == memory[0, -1]


@settings(max_examples=200)
@given(steps_and_delays, st.floats(1e-9, 1e-6))
def test_delayed_command_is_continuous_in_the_delay(case, nudge):
    substeps, substep, delay = case
    clock = Clock(timestep=0.01 / substeps, substeps=substeps)
    line = DelayLine(0.1, clock)
    memory = np.random.default_rng(0).uniform(-1, 1, (1, line.size))
    substep = min(substep, substeps - 1)
    here, there = (line.read(memory, np.array([d]), substep)[0] for d in (delay, delay + nudge))
    assert abs(there - here) <= 2 * nudge / clock.timestep + 1e-6


@settings(max_examples=100)
@given(steps_and_delays)
def test_delayed_command_is_linear_between_the_kinks(case):
    substeps, substep, delay = case
    clock = Clock(timestep=0.01 / substeps, substeps=substeps)
    line = DelayLine(0.1, clock)
    memory = np.random.default_rng(0).uniform(-1, 1, (1, line.size))
    cell = math.floor(delay / clock.timestep)
    at = clock.timestep * (cell + np.array([0.1, 0.5, 0.9]))
    low, middle, high = (
        line.read(memory, at[[k]], min(substep, substeps - 1))[0] for k in range(3)
    )
    assert middle == pytest.approx((low + high) / 2, abs=1e-9)


@pytest.mark.parametrize("lag", [0.0, 0.001, 0.02, 1.0])
def test_lag_is_exact_for_a_held_command(lag):
    state, command, step = 0.3, 1.7, 0.004
    once = lagged(np.array([state]), np.array([command]), np.array([lag]), step)
    halves = np.array([state])
    for _ in range(8):
        halves = lagged(halves, np.array([command]), np.array([lag]), step / 8)
    exact = command if lag == 0 else command + (state - command) * math.exp(-step / lag)
    assert once[0] == pytest.approx(exact, rel=1e-12)
    assert halves[0] == pytest.approx(exact, rel=1e-12)


# ---- controllers and motors --------------------------------------------------------------------


def run_law(law, values, path, commands, inputs=None):
    """Forces of a law along given positions and velocities [N], commands per tick."""
    count = len(path[0])
    clock = law.clock
    memory = law.begin(values, {}, motion(path[0][:1], path[1][:1]))
    out = []
    for k in range(count):
        tick, substep = divmod(k, clock.substeps)
        given_inputs = {n: [v[tick]] for n, v in (inputs or {}).items()}
        seen = motion(
            path[0][k : k + 1],
            path[1][k : k + 1],
            command=[commands[tick]],
            inputs=given_inputs,
            substep=substep,
        )
        effect = law.act(values, memory, seen)
        memory = effect.memory
        out.append(effect.force[0, 0])
    return np.array(out)


def wander(ticks, seed=0):
    """A made-up motion at engine steps, and commands at ticks."""
    rng = np.random.default_rng(seed)
    time = CLOCK.timestep * np.arange(ticks * CLOCK.substeps)
    position = 0.5 * np.sin(9 * time) + 0.2 * np.cos(23 * time)
    velocity = 4.5 * np.cos(9 * time) - 4.6 * np.sin(23 * time)
    return (position, velocity), rng.uniform(-1, 1, ticks)


def test_firmware_is_the_scalar_duty_cycle_loop():
    own = {**FIRMWARE, "duty_limit": 0.1, "offset": 0.05, "delay": 0.012, "goal_speed": 3.0}
    settings_ = {"inputs": "voltage+enable", "slew": "yes"}
    law = LAWS["firmware_servo"](settings_, CLOCK)
    (position, velocity), goals = wander(12)
    supply = np.linspace(6, 8, 12)
    enable = np.array([1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1.0])
    seen = run_law(
        law,
        columns(own, 1),
        (position, velocity),
        goals,
        {"voltage": supply, "enable": enable},
    )
    followed, wanted, saturated = goals[0], [], 0
    for k, (q, v) in enumerate(zip(position, velocity, strict=True)):
        tick, begin = k // CLOCK.substeps, k * CLOCK.timestep
        late = delayed_by_averaging(
            goals, CLOCK.period, begin, begin + CLOCK.timestep, own["delay"]
        )
        reach = own["goal_speed"] * CLOCK.timestep
        followed = min(max(late, followed - reach), followed + reach)
        duty = own["gain"] * (own["kp"] * (followed - q - own["offset"]) - own["kd"] * v)
        saturated += abs(duty) > 0.1
        duty = min(max(duty, -0.1), 0.1)
        back = own["torque_constant"] * v
        torque = own["torque_constant"] / own["resistance"] * (supply[tick] * duty - back)
        wanted.append(torque if enable[tick] else 0.0)
    assert 0 < saturated < len(wanted)
    np.testing.assert_allclose(seen, wanted, atol=1e-3)


def test_voltage_motor_limits_its_voltage_and_feels_back_emf():
    law = LAWS["voltage_motor"]({}, CLOCK)
    (position, velocity), commands = wander(6)
    seen = run_law(law, columns(VOLTAGE, 1), (position, velocity), 12 * commands)
    volts = [min(max(12 * commands[k // 5], -6.0), 6.0) for k in range(30)]
    wanted = [0.3 / 1.5 * (u - 0.3 * v) for u, v in zip(volts, velocity, strict=True)]
    np.testing.assert_allclose(seen, wanted, rtol=1e-12)


def test_filtered_pd_is_the_scalar_loop():
    law = LAWS["filtered_pd"]({"disturbance": "yes"}, CLOCK)
    own = {**FILTERED, "limit": 2.0, "offset": -0.2}
    (position, velocity), goals = wander(20)
    known = 0.3 * np.cos(np.arange(20))
    seen = run_law(law, columns(own, 1), (position, velocity), goals, {"disturbance": known})
    period = CLOCK.period
    samples = [position[0] - 2 * period * velocity[0], position[0] - period * velocity[0]]
    wanted, saturated = [], 0
    for tick in range(20):
        samples.append(position[tick * CLOCK.substeps])
        means = (samples[-1] + samples[-2]) / 2, (samples[-2] + samples[-3]) / 2
        speed = (means[0] - means[1]) / period
        u = own["kp"] * own["kv"] * (goals[tick] - samples[-1]) - own["kv"] * speed + known[tick]
        saturated += abs(u) > 2
        wanted += [own["drive_gain"] * min(max(u, -2.0), 2.0) - 0.2] * CLOCK.substeps
    assert 0 < saturated < 20
    np.testing.assert_allclose(seen, wanted, rtol=1e-9, atol=1e-12)


def test_impedance_is_the_scalar_loop():
    law = LAWS["joint_impedance"]({}, CLOCK)
    own = {**IMPEDANCE, "compensation": 0.0, "offset": 0.1, "delay": 0.0085, "lag": 0.03}
    (position, velocity), goals = wander(15)
    seen = run_law(law, columns(own, 1), (position, velocity), goals)
    smooth, wanted = position[0] + own["offset"], []
    share = 1 - math.exp(-CLOCK.timestep / own["lag"])
    for k, (q, v) in enumerate(zip(position, velocity, strict=True)):
        begin = k * CLOCK.timestep
        late = delayed_by_averaging(
            goals, CLOCK.period, begin, begin + CLOCK.timestep, own["delay"]
        )
        smooth += share * (late - smooth)
        wanted.append(own["stiffness"] * (smooth - q - own["offset"]) - own["damping"] * v)
    np.testing.assert_allclose(seen, wanted, atol=0.02)


def test_impedance_carries_the_share_of_the_load_it_is_told():
    law = LAWS["joint_impedance"]({}, CLOCK)
    own = {**IMPEDANCE, "compensation": 0.7, "offset": 0.0, "delay": 0.0, "lag": 0.0}
    seen = motion([0.2], [0.0], load=[-3.0], command=[0.2])
    effect = law.act(columns(own, 1), law.begin(columns(own, 1), {}, seen), seen)
    assert effect.force[0, 0] == pytest.approx(0.7 * 3.0)
