"""Delay, gain and bias on arrays: numpy beside traced ones, derivatives, and a plain reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rail_world import RAIL

from sameworld.core import Scene, Values, rollout
from sameworld.core.manifolds import normalised
from sameworld.maths.rotations import quat_exp
from sameworld.maths.rotations import slerp as plain_slerp
from sameworld.worlds import build
from sameworld.worlds.compiled.past import delayed, slerp
from sameworld.worlds.compiled.sensing import history_name
from sameworld.worlds.compiled.tables import make_tables

BALL = Scene(
    name="ball",
    mjcf="""<mujoco><option timestep="0.01"/><worldbody><body name="b"><freejoint/>
    <geom size=".1"/></body></worldbody></mujoco>""",
)
BATCH, TICKS = 3, 6
TABLES = make_tables(BALL)
SENSING, PERIOD = TABLES.sensing, TABLES.spec.period
COLUMNS = {s.name: k for k, s in enumerate(TABLES.slots)}
DELAYS = [COLUMNS[f"sensor:b.{part}.delay"] for part in ("pos", "quat", "vel")]
OPEN = [*DELAYS, *(COLUMNS[f"sensor:b.{p}"] for p in ("pos.gain", "pos.bias.y", "vel.bias.x"))]


def signals(rng, *lead):
    """True signals of all channels at ``lead`` rows; every third orientation does not turn."""
    turns = rng.normal(0, 0.2, (*lead, 3)) * (rng.integers(3, size=(*lead, 1)) > 0)
    seen = {c.name: rng.normal(size=(*lead, *c.shape)) for c in TABLES.spec.observations}
    return seen | {"b.quat": quat_exp(np.cumsum(turns, axis=-2))}


def case(seed=0):
    """Signals [B, T, ...], past of 4 ticks [B, 4, ...], and parameters [B, P]."""
    rng = np.random.default_rng(seed)
    seen = signals(rng, BATCH, TICKS + 3)
    raw = {name: s[:, 3:] for name, s in seen.items()}
    past = {history_name(c): seen[c][:, :4] for c in ("b.pos", "b.quat", "b.vel")}
    values = np.repeat([[s.value for s in TABLES.slots]], BATCH, axis=0)
    values[:, OPEN[3:]] = rng.uniform(0.8, 1.2, (BATCH, 3))
    values[:, DELAYS] = PERIOD * np.array([[0.0, 1.3, 2.0], [2.9, 0.4, 1.0], [1.5, 2.0, 0.0]])
    return raw, past, values


def reported_one_by_one(raw, past, values):
    """What is reported, sample by sample, as the definition says."""
    out = {}
    for name, shape in ((c.name, c.shape) for c in TABLES.spec.observations):
        out[name] = np.empty((BATCH, TICKS, *shape))
        for b, t in np.ndindex(BATCH, TICKS):
            line, now = raw[name][b], t
            if history_name(name) in past:
                line, now = np.concatenate([past[history_name(name)][b, :-1], line]), t + 3
            at = now - values[b, COLUMNS[f"sensor:{name}.delay"]] / PERIOD
            older, newer = (line[int(k)] for k in (np.floor(at + 1e-9), np.ceil(at - 1e-9)))
            share = np.array(np.ceil(at - 1e-9) - at)
            if name == "b.quat":
                out[name][b, t] = plain_slerp(newer, older, share)
                continue
            bias = [values[b, COLUMNS[f"sensor:{name}.bias.{axis}"]] for axis in "xyz"]
            gain = values[b, COLUMNS[f"sensor:{name}.gain"]]
            out[name][b, t] = gain * ((1 - share) * newer + share * older) + bias
    return out


def test_reports_are_those_of_the_definition():
    reported, expected = SENSING.applied(*case()), reported_one_by_one(*case())
    for name, signal in expected.items():
        np.testing.assert_allclose(reported[name], signal, rtol=0, atol=1e-12, err_msg=name)


def test_one_element_is_reported_like_a_row_of_a_batch():
    raw, past, values = case()
    every = SENSING.applied(raw, past, values)
    for b in range(BATCH):
        one = SENSING.applied(*({k: a[b] for k, a in d.items()} for d in (raw, past)), values[b])
        for name, signal in one.items():
            assert np.array_equal(signal, every[name][b])


def test_past_ticks_of_one_element_are_those_of_a_row_of_a_batch():
    rng = np.random.default_rng(1)
    first, second = signals(rng, BATCH, 1), signals(rng, BATCH, 1)
    depths = {"b.pos": 2, "b.quat": 3}
    many = [{name: s[:, 0] for name, s in seen.items()} for seen in (first, second)]
    moved = SENSING.advanced(SENSING.started(many[0], depths), many[1])
    assert {name: a.shape for name, a in moved.items()} == {
        "history:b.pos": (BATCH, 2, 3),
        "history:b.quat": (BATCH, 3, 4),
    }
    one = [{name: s[1] for name, s in seen.items()} for seen in many]
    alone = SENSING.advanced(SENSING.started(one[0], depths), one[1])
    for name, array in alone.items():
        assert np.array_equal(array, moved[name][1])
        assert np.array_equal(array[-1], one[1][name.removeprefix("history:")])
        assert np.array_equal(array[-2], one[0][name.removeprefix("history:")])


def test_depths_are_what_the_longest_delay_needs():
    values = case()[2]
    assert SENSING.depths(values) == {"b.pos": 4, "b.quat": 3, "b.vel": 3}
    assert SENSING.depths(0 * values) == {}
    every = ("b.pos", "b.quat", "b.vel", "b.omega")
    assert SENSING.depths(0 * values, least=2) == dict.fromkeys(every, 2)
    assert SENSING.depths(values[1]) == {"b.pos": 4, "b.quat": 2, "b.vel": 2}


def test_a_delay_that_is_no_number_ends_its_own_element_alone():
    start, actions = Values.of({"start:rail.vel": 1.0}), np.ones((4, 8, 1))
    delays = [0.013, np.nan, np.inf, -0.01]
    values = Values.of({"sensor:rail.pos.delay": delays})
    together = rollout(build(RAIL), start, actions, parameters=values)
    assert together.valid.all(axis=1).tolist() == [True, False, False, True]
    alone = Values.of({"sensor:rail.pos.delay": [0.013, 0.0]})
    expected = rollout(build(RAIL), start, actions[:2], parameters=alone)
    assert np.array_equal(together.signals["rail.pos"][[0, 3]], expected.signals["rail.pos"])
    only = Values.of({"sensor:rail.pos.delay": np.nan})
    assert not rollout(build(RAIL), start, actions[:1], parameters=only).valid.any()


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-12, 1e-7, 1e-3, 3.0]))
def test_slerp_gives_the_very_numbers_of_the_plain_one(seed, angle):
    rng = np.random.default_rng(seed)
    a = normalised(rng.normal(size=(5, 4)))
    b = normalised(a + angle * rng.normal(size=(5, 4))) * rng.choice([-1.0, 1.0], (5, 1))
    share = rng.uniform(size=5)
    assert np.array_equal(slerp(a, b, share), plain_slerp(a, b, share))


# ---- traced ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jx():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax


@pytest.fixture(scope="module")
def traced(jx):
    """Reports and their derivatives along changes of everything, compiled once."""

    def both(arguments, changes):
        return jx.jvp(SENSING.applied, arguments, changes)

    return jx.jit(both)


def zeros(tree):
    return {name: np.zeros_like(a) for name, a in tree.items()}


def test_traced_reports_equal_those_of_numpy(jx, traced):
    for seed in range(3):
        raw, past, values = case(seed)
        reported, _ = traced(case(seed), (zeros(raw), zeros(past), 0 * values))
        for name, signal in SENSING.applied(raw, past, values).items():
            np.testing.assert_allclose(reported[name], signal, rtol=0, atol=1e-12)


def nudged(column, step):
    raw, past, values = case()
    values[:, column] += step
    return SENSING.applied(raw, past, values)


@pytest.mark.parametrize("column", OPEN, ids=[TABLES.slots[k].name for k in OPEN])
def test_derivatives_are_those_of_finite_differences(jx, traced, column):
    """At whole ticks, of longer delays: one-sided differences are exact on linear pieces."""
    raw, past, values = case()
    change = np.zeros_like(values)
    change[:, column] = 1.0
    _, slopes = traced((raw, past, values), (zeros(raw), zeros(past), change))
    step = 1e-6 * PERIOD if column in DELAYS else 1e-4
    centred = np.mod(values[:, column] / PERIOD, 1.0) > 1e-9 if column in DELAYS else [True] * BATCH
    up, here, down = (nudged(column, s) for s in (step, 0.0, -step))
    for name, slope in slopes.items():
        assert np.isfinite(slope).all()
        two, one = (up[name] - down[name]) / (2 * step), (up[name] - here[name]) / step
        for b in range(BATCH):
            expected = two[b] if centred[b] else one[b]
            scale = 1.0 / PERIOD if column in DELAYS else 1.0
            np.testing.assert_allclose(slope[b], expected, rtol=0, atol=2e-6 * scale)


def test_derivatives_by_signals_and_past_are_those_of_finite_differences(jx, traced):
    raw, past, values = case()
    change = {name: 0.1 * a for name, a in case(5)[0].items()}, zeros(past), 0 * values
    _, slopes = traced((raw, past, values), change)
    sides = [
        SENSING.applied({n: a + s * change[0][n] for n, a in raw.items()}, past, values)
        for s in (1e-6, -1e-6)
    ]
    for name, slope in slopes.items():
        if name != "b.quat":  # off the sphere, differences and derivatives of turns mean nothing
            np.testing.assert_allclose(slope, (sides[0][name] - sides[1][name]) / 2e-6, atol=1e-8)


def test_a_delay_of_zero_has_a_derivative_where_a_tick_is_remembered(jx):
    raw, _, values = case()
    values[:, DELAYS] = 0.0
    begun = {name: signal[:, 0] for name, signal in raw.items()}
    past = SENSING.started(begun, SENSING.depths(values, least=2))

    def reported(delay):
        return SENSING.applied(raw, past, jx.numpy.asarray(values).at[:, DELAYS].set(delay))

    seen, slopes = jx.jit(lambda delay: jx.jvp(reported, (delay,), (1.0,)))(0.0)
    np.testing.assert_allclose(seen["b.quat"], raw["b.quat"], atol=1e-15)
    gain = values[:, OPEN[3]][:, None, None]
    expected = -gain * np.diff(raw["b.pos"], axis=1) / PERIOD
    np.testing.assert_allclose(slopes["b.pos"][:, 1:], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes["b.pos"][:, 0], 0.0, atol=1e-12)  # the past stood still


@pytest.mark.parametrize("lag", [2.0, 2.0 - 4e-16, 2.0 + 4e-16])
def test_a_delay_of_a_whole_tick_up_to_rounding_has_the_derivative_of_longer_ones(jx, lag):
    raw, past = np.array([3.0, 5.0]), np.array([0.0, 1.0, 1.5, 3.0])

    def late(ticks):
        return delayed(raw, past, ticks, axes=0, manifold="linear")

    seen, slope = jx.jvp(late, (jx.numpy.float64(lag),), (1.0,))
    np.testing.assert_allclose(seen, [1.0, 1.5], atol=1e-14)
    np.testing.assert_allclose(slope, [-1.0, -0.5], atol=1e-14)


def test_a_delay_beyond_the_past_holds_its_first_sample(jx):
    raw, past = np.array([3.0, 5.0]), np.array([1.0, 3.0])
    seen, slope = jx.jvp(
        lambda lag: delayed(raw, past, lag, axes=0, manifold="linear"),
        (jx.numpy.float64(3.7),),
        (1.0,),
    )
    assert seen.tolist() == [1.0, 3.0]
    assert slope.tolist() == [0.0, 0.0]
