"""Where an episode began, from its first rows only."""

from dataclasses import replace

import numpy as np
import pytest

from sameworld.core import (
    Belief,
    Channel,
    ChannelSpec,
    Episode,
    EpisodeError,
    Parameter,
    Spec,
    Values,
    rollout,
)
from sameworld.core.manifolds import compose, quat_exp
from sameworld.core.starts import context_from, estimate_starts, guess_starts, session_values
from sameworld.zoo import AnalyticPendulum, learned_cart

POS, VEL = "start:pivot.pos", "start:pivot.vel"
MASS = "body:bob.mass"
NOISE = 0.004


def swings(world, count, *, rows=12, noise=NOISE, seed=0, parameters=None, states=None):
    """Episodes of a driven pendulum from random starts, and those starts [E, 2]."""
    rng = np.random.default_rng(seed)
    states = rng.normal(0, 0.5, (count, 2)) if states is None else states
    actions = rng.uniform(-1, 1, (count, rows - 1, 1))
    start = Values(names=(POS, VEL), array=states)
    result = rollout(world, start, actions, parameters=parameters)
    episodes = [
        Episode(
            id=f"e{i}",
            channels=(
                Channel(
                    name="pivot.pos",
                    time=result.time,
                    values=result.signals["pivot.pos"][i] + rng.normal(0, noise, rows),
                ),
                Channel(
                    name="pivot_motor",
                    time=result.time[:-1],
                    values=actions[i, :, 0],
                    role="action",
                ),
            ),
        )
        for i in range(count)
    ]
    return episodes, states


def wide(world):
    """The world without an opinion on its start."""
    loose = tuple(replace(p, std=np.inf) for p in world.spec.start.parameters)
    object.__setattr__(world, "spec", replace(world.spec, start=Belief(parameters=loose)))
    return world


def test_estimates_scatter_about_the_truth_as_their_covariance_says():
    world = wide(AnalyticPendulum())
    episodes, truth = swings(world, 200)
    found = estimate_starts(world, episodes, warmup=8, noise={"pivot.pos": NOISE})
    gap = found.values.array - truth
    z = gap / np.sqrt(np.einsum("eii->ei", found.covariance))
    assert np.sqrt(np.mean(z**2, axis=0)) == pytest.approx([1, 1], abs=0.15)
    white = np.einsum("ei,eij,ej->e", gap, np.linalg.inv(found.covariance), gap)
    assert np.mean(white) == pytest.approx(2, rel=0.2)


def test_more_rows_and_less_noise_narrow_the_estimate():
    world = wide(AnalyticPendulum())
    episodes, _ = swings(world, 3)
    spread = {
        (rows, noise): np.sqrt(
            estimate_starts(world, episodes, warmup=rows, noise={"pivot.pos": noise}).covariance[
                0, 1, 1
            ]
        )
        for rows in (4, 12)
        for noise in (1e-3, 4e-3)
    }
    assert spread[4, 4e-3] > 2 * spread[12, 4e-3]
    assert spread[4, 4e-3] == pytest.approx(4 * spread[4, 1e-3], rel=0.05)


def test_only_warm_up_rows_are_used():
    world = AnalyticPendulum()
    episodes, _ = swings(world, 2)
    noise = {"pivot.pos": NOISE}
    spoilt = [
        e.with_channels(
            [
                replace(
                    e["pivot.pos"],
                    values=np.r_[e["pivot.pos"].values[:5], np.full(7, 9.0)],
                )
            ]
        )
        for e in episodes
    ]
    plain = estimate_starts(world, episodes, warmup=5, noise=noise)
    assert np.array_equal(
        estimate_starts(world, spoilt, warmup=5, noise=noise).values.array, plain.values.array
    )


def test_a_prior_of_the_episode_pulls_the_estimate_by_its_precision():
    world = wide(AnalyticPendulum())
    (episode,), truth = swings(world, 1)
    noise = {"pivot.pos": NOISE}
    free = estimate_starts(world, [episode], warmup=6, noise=noise)
    std = float(np.sqrt(free.covariance[0, 1, 1]))
    believed = truth[0, 1] + 0.7
    opinion = Parameter(name=VEL, value=believed, std=std, scope="episode")
    told = replace(episode, start=Belief(parameters=(opinion,)))
    pulled = estimate_starts(world, [told], warmup=6, noise=noise)
    middle = 0.5 * (free.values.column(VEL)[0] + believed)
    assert pulled.values.column(VEL)[0] == pytest.approx(middle, abs=0.02)
    assert pulled.covariance[0, 1, 1] == pytest.approx(0.5 * std**2, rel=0.05)


def test_the_worlds_own_prior_acts_where_the_episode_has_no_opinion():
    world = AnalyticPendulum()  # believes pos 0 +- 0.5
    (episode,), _ = swings(world, 1, states=np.array([[2.0, 0.0]]))
    vague = estimate_starts(world, [episode], warmup=6, noise={"pivot.pos": 2.0})
    sure = estimate_starts(world, [episode], warmup=6, noise={"pivot.pos": 1e-3})
    assert abs(vague.values.column(POS)[0]) < 1.0 < 1.95 < sure.values.column(POS)[0]


def test_estimates_stay_inside_the_bounds_of_the_start():
    world = AnalyticPendulum()
    bounded = tuple(replace(p, low=-0.3, high=0.3) for p in world.spec.start.parameters)
    object.__setattr__(world, "spec", replace(world.spec, start=Belief(parameters=bounded)))
    episodes, _ = swings(AnalyticPendulum(), 4, states=np.full((4, 2), 0.8))
    found = estimate_starts(world, episodes, warmup=6).values.array
    assert (np.abs(found) <= 0.3).all() and np.allclose(found[:, 0], 0.3)


def test_session_parameters_take_part():
    world = AnalyticPendulum()
    heavy = Values.of({MASS: 2.5})
    episodes, truth = swings(world, 6, rows=30, noise=1e-4, parameters=heavy)
    payload = Belief(parameters=(Parameter(name=MASS, value=2.5, scope="session"),))
    told = [replace(e, session=payload) for e in episodes]
    noise = {"pivot.pos": 1e-4}
    right = estimate_starts(world, told, warmup=30, noise=noise).values.array
    given = estimate_starts(world, episodes, warmup=30, noise=noise, parameters=heavy).values.array
    wrong = estimate_starts(world, episodes, warmup=30, noise=noise).values.array
    np.testing.assert_allclose(right, given, atol=1e-9)
    assert np.abs(right - truth).max() < 2e-3 < np.abs(wrong - truth).max()


def test_session_values_sit_on_top_of_the_base_and_name_nothing_else():
    world = AnalyticPendulum()
    episodes, _ = swings(world, 3)
    payload = Belief(parameters=(Parameter(name=MASS, value=2.5, scope="session"),))
    mixed = [episodes[0], replace(episodes[1], session=payload), episodes[2]]
    plain = session_values(world, mixed, Values.none())
    assert plain.names == (MASS,)
    assert plain.array[:, 0].tolist() == [0.5, 2.5, 0.5]
    based = session_values(world, mixed, Values.of({MASS: 1.0, "joint:pivot.damping": 0.3}))
    assert based.column(MASS).tolist() == [1.0, 2.5, 1.0]
    assert based.column("joint:pivot.damping").tolist() == [0.3, 0.3, 0.3]
    assert session_values(world, episodes, Values.none()).names == ()


def test_a_session_parameter_that_the_world_lacks_is_ignored():
    world = AnalyticPendulum()
    episodes, _ = swings(world, 1)
    other = Belief(parameters=(Parameter(name="body:tool.mass", value=1.0, scope="session"),))
    assert session_values(world, [replace(episodes[0], session=other)], Values.none()).names == ()


# ---- guesses -------------------------------------------------------------------------------

TURN = ChannelSpec(
    name="turn",
    shape=(4,),
    manifold="quaternion",
    start=("start:c.turn.x", "start:c.turn.y", "start:c.turn.z"),
    rate=("start:c.omega.x", "start:c.omega.y", "start:c.omega.z"),
)
FREE = tuple(
    Parameter(name=n, value=0.0, scope="episode", unit="rad") for n in (*TURN.start, *TURN.rate)
)


def test_guesses_read_rotation_and_body_rate_off_quaternions():
    spec = Spec(period=0.01, observations=(TURN,), start=Belief(parameters=FREE))
    first, rate = np.array([0.4, -0.9, 0.3]), np.array([3.0, -1.0, 2.0])
    time = 5.0 + 0.01 * np.arange(6)
    turned = compose(np.tile(quat_exp(first), (6, 1)), quat_exp((time - 5.0)[:, None] * rate))
    turned[::2] *= -1
    episode = Episode(id="e", channels=(Channel(name="turn", time=time, values=turned),))
    found = guess_starts(spec, [episode], 6)
    np.testing.assert_allclose(found.array[0], [*first, *rate], atol=1e-6)


def test_guesses_are_lines_at_the_begin_of_the_episode():
    world = AnalyticPendulum()
    time = 3.0 + 0.02 * np.arange(4)
    late = Channel(name="pivot.pos", time=time + 0.05, values=0.3 + 2.0 * (time - 3.0 + 0.05))
    early = Channel(name="pivot.vel", time=time, values=np.full(4, 7.0))
    spec = world.spec
    alone = Episode(id="a", channels=(replace(late, time=time, values=late.values - 0.1),))
    found = guess_starts(spec, [alone, Episode(id="b", channels=(late, early))], 4)
    assert found.column(POS) == pytest.approx([0.3, 0.3])
    assert found.column(VEL)[0] == pytest.approx(2.0)


def test_a_channel_that_shows_a_start_beats_one_that_differentiates_to_it():
    world = AnalyticPendulum()
    time = 0.02 * np.arange(4)
    position = Channel(name="pivot.pos", time=time, values=0.3 + 2.0 * time)
    speed = Channel(name="pivot.vel", time=time, values=np.full(4, 7.0))
    for channels in ((position, speed), (speed, position)):
        found = guess_starts(world.spec, [Episode(id="e", channels=channels)], 4)
        assert found.column(VEL)[0] == pytest.approx(7.0)


def test_an_opinion_of_the_episode_wins_over_the_rows():
    world = AnalyticPendulum()
    (episode,), _ = swings(world, 1)
    told = replace(
        episode, start=Belief(parameters=(Parameter(name=VEL, value=1.5, scope="episode"),))
    )
    assert guess_starts(world.spec, [told], 4).column(VEL)[0] == 1.5


# ---- contexts ------------------------------------------------------------------------------


def ramp(rows=10, step=0.02, offset=0.0):
    """A cart episode whose position is 2 t and whose velocity is 2."""
    time = offset + step * np.arange(rows)
    return Episode(
        id="ramp",
        channels=(
            Channel(name="rail.pos", time=time, values=2.0 * time),
            Channel(name="rail.vel", time=time, values=np.full(rows, 2.0)),
            Channel(
                name="rail_motor", time=time, values=np.arange(rows, dtype=float), role="action"
            ),
        ),
    )


def test_a_context_ends_at_the_last_warm_up_row():
    spec = learned_cart().spec
    context, lasts = context_from(spec, [ramp(), ramp(offset=1.0)], 4)
    assert lasts == pytest.approx([0.06, 1.06])
    assert context.observations["rail.pos"] == pytest.approx(np.array([[0.08, 0.12], [2.08, 2.12]]))
    assert context.actions[:, :, 0].tolist() == [[2.0], [2.0]]


def test_context_rows_between_samples_are_interpolated():
    spec = learned_cart().spec
    context, lasts = context_from(spec, [ramp(step=0.015)], 4)  # rows 0, 15, 30, 45 ms
    assert lasts == pytest.approx([0.045])
    assert context.observations["rail.pos"] == pytest.approx(2 * np.array([[0.025, 0.045]]))


def test_a_context_longer_than_the_warm_up_is_an_error_that_says_how_much_is_needed():
    spec = replace(learned_cart().spec, context=5)
    with pytest.raises(EpisodeError, match=r"3 warm-up rows span 0\.04 s.*0\.08 s of context"):
        context_from(spec, [ramp()], 3)


def test_a_context_needs_every_channel_of_the_world():
    episode = ramp()
    lacking = replace(episode, channels=tuple(c for c in episode.channels if c.name != "rail.vel"))
    with pytest.raises(EpisodeError, match="lacks channels"):
        context_from(learned_cart().spec, [lacking], 4)


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "message"),
    [(0, "at least 1"), (50, "12 rows, fewer than the warm-up of 50")],
)
def test_impossible_warm_ups_are_refused(warmup, message):
    world = AnalyticPendulum()
    episodes, _ = swings(world, 1)
    with pytest.raises(EpisodeError, match=message):
        estimate_starts(world, episodes, warmup=warmup)


# ---- one warm-up row -------------------------------------------------------------------------


def test_one_row_that_does_not_show_the_velocity_is_refused():
    world = wide(AnalyticPendulum(substeps=1))
    episodes, _ = swings(world, 2)
    with pytest.raises(EpisodeError, match=r"does not show 'start:pivot\.vel'.*at least 2 rows"):
        estimate_starts(world, episodes, warmup=1)


def test_one_row_will_do_with_a_prior_on_what_it_does_not_show():
    world = wide(AnalyticPendulum(substeps=1))
    episodes, states = swings(world, 2, noise=1e-5)
    told = [
        replace(
            e,
            start=Belief(
                parameters=(Parameter(name=VEL, value=float(v), std=0.1, scope="episode"),)
            ),
        )
        for e, v in zip(episodes, states[:, 1], strict=True)
    ]
    found = estimate_starts(world, told, warmup=1, noise={"pivot.pos": 1e-5})
    np.testing.assert_allclose(found.values.array, states, atol=1e-4)
    np.testing.assert_allclose(found.covariance[:, 1, 1], 0.1**2, rtol=1e-6)


def test_a_guess_from_one_row_does_not_look_at_the_next():
    world = AnalyticPendulum(substeps=1)
    (episode,), states = swings(world, 1, noise=0.0)
    later = replace(episode["pivot.pos"], values=episode["pivot.pos"].values + np.arange(12) * 0.1)
    guesses = [
        guess_starts(world.spec, [e], 1).array for e in (episode, episode.with_channels([later]))
    ]
    np.testing.assert_array_equal(*guesses)
    assert guesses[0][0, 0] == states[0, 0]
