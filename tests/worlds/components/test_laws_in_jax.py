"""Every law traced by JAX, beside the same law on numpy arrays and its finite differences."""

from dataclasses import fields

import numpy as np
import pytest

from sameworld.worlds.components import LAWS, Clock, Effect, Motion
from sameworld.worlds.components.arrays import at_tick, namespace, slope
from sameworld.worlds.components.goals import DelayLine, lagged

jax = pytest.importorskip("jax")

CLOCK = Clock(timestep=0.01, substeps=3)
TICKS, BATCH, COUNT = 5, 4, 2
STEPS = TICKS * CLOCK.substeps

CASES = {
    **{f"gear_friction-{m}": {"model": m} for m in ("m2", "m4", "m6")},
    "asymmetric_friction": {},
    "firmware_servo-plain": {},
    "firmware_servo-inputs": {"inputs": "voltage+enable", "slew": "yes"},
    "voltage_motor": {},
    "joint_impedance": {},
    "filtered_pd-plain": {},
    "filtered_pd-disturbed": {"disturbance": "yes"},
    "kinematic_car": {},
    "dynamic_car": {},
}
RESULTS = tuple(f.name for f in fields(Effect))


def law_of_case(name):
    return LAWS[name.partition("-")[0]](CASES[name], CLOCK)


# ---- what a law is given -----------------------------------------------------------------------


def smooth_data(law, seed):
    """Values, starts, motion per engine step and commands per tick, none at a kink."""
    rng = np.random.default_rng(seed)
    cells = (BATCH, COUNT)
    joint = (STEPS, *cells, 3) if law.target == "body" else (STEPS, *cells)
    actions = max(1, len(law.actions()))
    values = {}
    for part in law.fields():
        low = max(part.low, -1.0) + 0.05
        values[part.name] = rng.uniform(low, min(part.high, 2.0 if part.low >= 0 else 1.0), cells)
    return {
        "values": values,
        "starts": {part.name: rng.uniform(-0.3, 0.3, cells) for part in law.starts()},
        "position": rng.normal(0, 0.3, joint),
        "velocity": rng.normal(0, 1.0, joint),
        "load": rng.normal(0, 1.0, (STEPS, *cells)),
        "drive": rng.normal(0, 1.0, (STEPS, *cells)),
        "mass": rng.uniform(0.5, 2.0, (*cells, 2)),
        "command": rng.uniform(-0.5, 0.5, (TICKS, *cells, actions)),
        "inputs": {s.name: rng.choice([0.2, 0.9], (TICKS, *cells)) for s in law.inputs()},
    }


def kinked_data(law):
    """The same with everything at the places where laws have corners."""
    data = smooth_data(law, 5)
    rng = np.random.default_rng(6)
    for name in ("position", "velocity", "load", "drive"):
        data[name] = np.where(rng.random(data[name].shape) < 0.7, 0.0, data[name])
    data["drive"][::2] = data["load"][::2]
    data["velocity"][:3] = np.array([0.0, 1e-307, 1e-300]).reshape(
        3, *[1] * (data["velocity"].ndim - 1)
    )
    data["command"] = np.round(2 * data["command"]) / 2
    corners = {
        "delay": CLOCK.timestep * np.array([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 10.0]),
        "lag": np.array([0.0, 5e-324, 1e-300, 1e-150, 1e-8, CLOCK.timestep / 800, 1e-4, 1.0]),
        "stribeck_exponent": np.array([0.3, 0.5, 0.99, 1.0, 1.5, 2.0, 9.0, 10.0]),
        "limit": np.array([0.0, 0.5, 1.0, 0.0, 0.5, 1.0, 2.0, 10.0]),
    }
    corners |= {"steer_lag": corners["lag"], "speed_lag": corners["lag"][::-1]}
    for name, values in corners.items():
        if name in data["values"]:
            high = next(f.high for f in law.fields() if f.name == name)
            data["values"][name] = np.minimum(values, high).reshape(BATCH, COUNT)
    return data


def seen_at(data, step, tick, substep):
    """What the law sees in one engine step; ``step`` selects rows of the motion."""
    return Motion(
        **{name: step[name] for name in ("position", "velocity", "load", "drive")},
        command=tick["command"],
        inputs=tick["inputs"],
        substep=substep,
        mass=data["mass"],
    )


def pick(data, names, k):
    return jax.tree.map(lambda a: a[k], {name: data[name] for name in names})


MOVING, TOLD = ("position", "velocity", "load", "drive"), ("command", "inputs")


# ---- driving a law -----------------------------------------------------------------------------


def in_numpy(law, data):
    """Results of every engine step, one after the other."""
    found = []
    first = seen_at(data, pick(data, MOVING, 0), pick(data, TOLD, 0), 0)
    memory = law.begin(data["values"], data["starts"], first)
    for k in range(STEPS):
        tick, substep = divmod(k, CLOCK.substeps)
        motion = seen_at(data, pick(data, MOVING, k), pick(data, TOLD, tick), substep)
        effect = law.act(data["values"], memory, motion)
        memory = effect.memory
        found.append({n: getattr(effect, n) for n in RESULTS if getattr(effect, n) is not None})
    return {name: np.stack([np.asarray(row[name]) for row in found]) for name in found[0]}


def in_jax(law, data):
    """The same by ``scan``, with a traced substep."""
    first = seen_at(data, pick(data, MOVING, 0), pick(data, TOLD, 0), 0)
    memory = law.begin(data["values"], data["starts"], first)

    def advance(memory, k):
        motion = seen_at(
            data,
            pick(data, MOVING, k),
            pick(data, TOLD, k // CLOCK.substeps),
            k % CLOCK.substeps,
        )
        effect = law.act(data["values"], memory, motion)
        shown = {n: getattr(effect, n) for n in RESULTS if getattr(effect, n) is not None}
        return effect.memory, shown

    return jax.lax.scan(advance, memory, jax.numpy.arange(STEPS))[1]


def direction(like, seed):
    """A random direction, as long in every entry as in every other."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda a: rng.choice([-1.0, 1.0], np.shape(a)), like)


def moved(data, by, length):
    return jax.tree.map(lambda a, b: a + length * b, data, by)


def dot(mine, theirs):
    return sum(np.sum(a * b) for a, b in zip(*map(jax.tree.leaves, (mine, theirs)), strict=True))


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    """A law and its compiled values, forward and reverse derivatives along given directions."""
    law = law_of_case(request.param)

    @jax.jit
    def compiled(data, along, weights):
        run = lambda given: in_jax(law, given)  # noqa: E731
        out, tangents = jax.jvp(run, (data,), (along,))
        return out, tangents, jax.vjp(run, data)[1](weights)[0]

    def both(data, along, weights):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, compiled(data, along, weights))

    return law, both


def along_and_weights(law, data):
    return direction(data, 1), direction(in_numpy(law, data), 2)


# ---- what must hold ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_jax_gives_the_numbers_of_numpy(case, seed):
    law, both = case
    data = smooth_data(law, seed)
    mine = both(data, *along_and_weights(law, data))[0]
    wanted = in_numpy(law, data)
    assert set(mine) == set(wanted)
    for name, values in wanted.items():
        assert mine[name].dtype == np.float64
        np.testing.assert_allclose(mine[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


def test_jax_gives_the_numbers_of_numpy_at_the_corners(case):
    law, both = case
    data = kinked_data(law)
    mine = both(data, *along_and_weights(law, data))[0]
    for name, values in in_numpy(law, data).items():
        np.testing.assert_allclose(mine[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_derivatives_are_those_of_finite_differences(case, seed):
    law, both = case
    data = smooth_data(law, seed)
    along, weights = along_and_weights(law, data)
    _, tangents, pulled = both(data, along, weights)
    step = 1e-6
    at = {s: in_numpy(law, moved(data, along, s * step)) for s in (-2, -1, 1, 2)}
    for name, values in tangents.items():
        near, far = (at[s][name] - at[-s][name] for s in (1, 2))
        slopes = (8 * near - far) / (12 * step)
        size = 1 + np.abs(slopes)
        np.testing.assert_allclose(values / size, slopes / size, atol=1e-6, err_msg=name)
    forward, reverse = dot(weights, tangents), dot(pulled, along)
    assert reverse == pytest.approx(forward, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("model", ["m1", "m3", "m5"])
def test_simpler_frictions_give_the_numbers_of_numpy(model):
    law = LAWS["gear_friction"]({"model": model}, CLOCK)
    data = smooth_data(law, 0)
    with jax.enable_x64(True):
        mine = jax.jit(lambda given: in_jax(law, given))(data)
    for name, values in in_numpy(law, data).items():
        np.testing.assert_allclose(mine[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


def test_derivatives_are_finite_at_the_corners(case):
    law, both = case
    data = kinked_data(law)
    _, tangents, pulled = both(data, *along_and_weights(law, data))
    for values in (*jax.tree.leaves(tangents), *jax.tree.leaves(pulled)):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", [n for n in CASES if law_of_case(n).memory()])
def test_a_plain_substep_gives_the_same_as_a_traced_one(name):
    law = law_of_case(name)
    data = smooth_data(law, 3)

    @jax.jit
    def two_ticks(data):
        first = seen_at(data, pick(data, MOVING, 0), pick(data, TOLD, 0), 0)
        memory, rows = law.begin(data["values"], data["starts"], first), []
        for k in range(CLOCK.substeps + 1):
            tick, substep = divmod(k, CLOCK.substeps)
            motion = seen_at(data, pick(data, MOVING, k), pick(data, TOLD, tick), substep)
            memory = law.act(data["values"], memory, motion).memory
            rows.append(memory)
        return jax.numpy.stack(rows)

    with jax.enable_x64(True):
        mine = np.asarray(two_ticks(data))
    wanted = in_numpy(law, data)["memory"][: len(mine)]
    assert wanted.size
    np.testing.assert_allclose(mine, wanted, rtol=1e-13, atol=1e-13)


# ---- parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 6])
def test_a_delay_at_a_kink_has_the_slope_towards_longer_delays(steps):
    line = DelayLine(0.1, CLOCK)
    memory = np.random.default_rng(0).normal(size=(CLOCK.substeps, line.size))
    delay, nudge = steps * CLOCK.timestep, 1e-7

    def read(delay):
        late = [line.read(memory[:1], delay[k : k + 1], k)[0] for k in range(CLOCK.substeps)]
        return namespace(delay).stack(late)

    ones = np.ones(CLOCK.substeps)
    with jax.enable_x64(True):
        _, slopes = jax.jvp(read, (delay * jax.numpy.asarray(ones),), (jax.numpy.asarray(ones),))
    right = (read((delay + nudge) * ones) - read(delay * ones)) / nudge
    np.testing.assert_allclose(slopes, right, atol=1e-4)
    assert np.abs(right).max() > 1


def test_a_slope_is_exactly_zero_and_has_the_derivative():
    numbers = np.concatenate(
        [np.random.default_rng(0).uniform(0.5, 8, 500), [0.5, 1.0, 1 - 2**-53]]
    )
    np.testing.assert_array_equal(slope(numbers), 0.0)
    with jax.enable_x64(True):
        zeros, slopes = jax.jvp(slope, (jax.numpy.asarray(numbers),), (3.0 * np.ones(503),))
    np.testing.assert_array_equal(zeros, 0.0)
    np.testing.assert_array_equal(slopes, 3.0)


def test_a_lag_too_short_to_matter_counts_as_none():
    one = np.ones(1)
    for timeconst in (0.0, 1e-300, CLOCK.timestep / 746):
        assert lagged(0 * one, 7 * one, timeconst * one, CLOCK.timestep)[0] == 7.0


def test_the_library_is_that_of_the_traced_array():
    plain = np.ones(2)
    assert namespace(plain, plain) is np
    assert namespace() is np
    with jax.enable_x64(True):
        assert namespace(plain, jax.numpy.ones(2)) is jax.numpy
        seen = []
        jax.jit(lambda x: seen.append(namespace(plain, x)) or x)(plain)
    assert seen == [jax.numpy]


def test_later_engine_steps_of_a_tick_compute_nothing_anew():
    def never():
        raise AssertionError("computed")

    assert at_tick(2, never, np.ones(1))[0] == 1.0
    assert at_tick(0, lambda: np.zeros(1), np.ones(1))[0] == 0.0
