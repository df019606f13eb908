"""Values per session with a pooled population: recovered, honest, and never invented."""

import math
from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import DAMPING, MASS, quick
from identify_sessions import DAMPED, LOUD, POPULATION, in_sessions, per_session

from sameworld.core import AddressError, Belief, FitError, predict_all
from sameworld.stages.identify import identify
from sameworld.stages.identify.eliminate import Eliminated
from sameworld.stages.identify.fit import pose


@pytest.fixture(scope="module")
def fitted():
    """Six sessions of four recordings, fitted."""
    world, episodes, masses = in_sessions(1)
    return world, episodes, masses, identify(world, episodes, config=per_session())


def test_every_session_and_the_population_are_recovered(fitted):
    _, _, masses, (_, _, result) = fitted
    (spread,) = result.sessions
    assert spread.name == MASS and spread.relative
    for row, mass in zip(spread.values, masses, strict=True):
        assert row.value == pytest.approx(mass, rel=0.03)
        assert abs(row.value - mass) < 4 * row.std
        assert row.verdict == "determined" and row.episodes == 4
        assert row.shrinkage < 0.05  # each session speaks for itself
        assert spread.session(row.session) == row
    middle = math.exp(np.mean(np.log(masses)))
    assert spread.mean == pytest.approx(middle, rel=0.02)
    assert spread.low < POPULATION < spread.high
    apart = np.std(np.log(masses), ddof=1)
    assert spread.spread / spread.mean == pytest.approx(apart, rel=0.1)
    assert spread.spread_low < 0.2 * spread.mean < spread.spread_high
    assert spread.std == pytest.approx(spread.spread / math.sqrt(6), rel=0.1)
    assert result.verdict(DAMPING).value == pytest.approx(DAMPED, rel=0.05)
    with pytest.raises(KeyError, match="sessions: "):
        spread.session("s9")


def test_one_value_for_all_is_wrong_where_sessions_differ(fitted):
    world, episodes, _, (_, _, result) = fitted
    pooled = identify(world, episodes, config=quick(MASS, DAMPING, rounds=8))[2]
    assert pooled.cost > 5 * result.cost
    assert pooled.sessions == ()


def test_the_world_expects_of_a_new_session_what_sessions_do(fitted):
    _, _, _, (after, _, result) = fitted
    (spread,) = result.sessions
    believed = after.parameters[MASS]
    assert believed.source == "identified"
    assert believed.value == pytest.approx(spread.mean)
    assert believed.std == pytest.approx(math.hypot(spread.std, spread.spread), rel=1e-6)
    damped = result.verdict(DAMPING)
    assert after.parameters[DAMPING].std == pytest.approx(damped.std)


def test_episodes_know_their_session_and_others_get_the_population(fitted):
    _, _, masses, (after, placed, result) = fitted
    for episode in placed:
        row = result.sessions[0].session(episode.session_id)
        assert episode.session[MASS].value == pytest.approx(row.value)
        assert episode.session[MASS].std == pytest.approx(row.std, rel=1e-6)
        assert episode.session[MASS].source == "identified"
        assert episode.session[MASS].scope == "session"
    extreme = int(np.argmax(np.abs(np.log(masses / POPULATION))))
    known = [e for e in placed if e.session_id == f"s{extreme}"]
    strange = [replace(e, session=Belief(), session_id="new") for e in known]
    plain = after.with_belief(after.parameters.with_values({MASS: result.sessions[0].mean}))
    errors = []
    for episodes, used in ((known, after), (strange, after), (strange, plain)):
        predictions = predict_all(used, episodes, 5)
        errors.append([np.abs(p.channels["pivot.pos"].error).mean() for p in predictions])
    assert np.mean(errors[0]) < 0.5 * np.mean(errors[1])
    np.testing.assert_allclose(errors[1], errors[2])


def test_a_second_fit_does_not_count_what_the_first_one_left_in_the_episodes(fitted):
    world, _, _, (_, placed, result) = fitted
    cleared = [replace(e, start=Belief()) for e in placed]
    again = identify(world, cleared, config=per_session())[2]
    assert again.sessions == result.sessions


def test_sessions_that_do_not_differ_get_no_spread():
    found = []
    for seed in range(4):
        world, episodes, _ = in_sessions(seed, apart=0.0, ticks=20)
        (spread,) = identify(world, episodes, config=per_session())[2].sessions
        assert spread.spread_low == 0
        alone = identify(world, episodes[:4], config=quick(MASS, DAMPING))[2].verdict(MASS).std
        assert spread.spread < 2 * alone
        found.append(spread.spread / alone)
        for row in spread.values:
            assert abs(row.value - POPULATION) < 4 * row.std
            assert row.shrinkage > 0.2
        assert np.median([r.std for r in spread.values]) < 1.6 * alone
    assert min(found) == 0  # a spread of zero is a possible answer
    assert np.median(found) < 1


def test_an_uncertain_session_is_drawn_to_the_others():
    world, episodes, masses = in_sessions(3, sessions=5, draws=[-1, -0.5, 0, 0.5, 2.5])
    short = [e if e.session_id != "s4" else e.head(8) for e in episodes]
    (spread,) = identify(world, short, config=per_session(weighting="noise"))[2].sessions
    rows = {r.session: r for r in spread.values}
    assert rows["s4"].shrinkage > 5 * rows["s2"].shrinkage
    assert rows["s4"].std > 3 * rows["s2"].std
    assert abs(rows["s4"].value - masses[4]) < 4 * rows["s4"].std


@pytest.mark.slow
def test_deviations_are_as_large_as_they_claim():
    sessions, means, inside = [], [], []
    for seed in range(20):
        world, episodes, masses = in_sessions(seed + 100, episodes=3, ticks=12, noise=LOUD)
        (spread,) = identify(world, episodes, config=per_session())[2].sessions
        sessions += [
            (r.value - m) / r.std for r, m in zip(spread.values, masses.tolist(), strict=True)
        ]
        means.append((spread.mean - POPULATION) / spread.std)
        inside.append(spread.low <= POPULATION <= spread.high)
    assert 0.75 < np.sqrt(np.mean(np.square(sessions))) < 1.3
    assert 0.6 < np.sqrt(np.mean(np.square(means))) < 1.5
    assert np.mean(inside) > 0.75


def test_whole_sessions_are_held_out_by_the_gate():
    world, episodes, _ = in_sessions(2, episodes=2, ticks=25)
    start = world.with_belief(world.parameters.with_values({MASS: 0.4, DAMPING: 0.02}))
    after, _, result = identify(start, episodes, config=per_session(holdout=0.34))
    out = {e.session_id for e in episodes if e.id in result.holdout.episodes}
    assert len(out) == 2
    assert set(result.holdout.episodes) == {e.id for e in episodes if e.session_id in out}
    assert result.holdout.passed and after.parameters.discrepancy is not None


def test_many_sessions_use_the_sandwich_over_sessions():
    world, episodes, masses = in_sessions(5, sessions=9, episodes=2, ticks=25)
    result = identify(world, episodes, config=per_session())[2]
    assert result.covariance_kind == "session sandwich"
    (spread,) = result.sessions
    apart = np.std(np.log(masses), ddof=1) / 3
    assert spread.std / spread.mean == pytest.approx(apart, rel=0.3)


def test_one_session_says_that_it_cannot_tell():
    world, episodes, _ = in_sessions(1, sessions=1, ticks=10)
    with pytest.raises(FitError, match="session 's0': how sessions differ cannot be told"):
        identify(world, episodes, config=per_session())


def test_episodes_without_a_session_are_refused():
    world, episodes, _ = in_sessions(1, sessions=2, ticks=10)
    with pytest.raises(FitError, match=r"s0e0.*name none"):
        identify(world, [replace(episodes[0], session_id=""), *episodes[1:]], config=per_session())


def test_a_pattern_must_name_something_that_is_free():
    world, episodes, _ = in_sessions(1, sessions=2, ticks=10)
    with pytest.raises(AddressError, match="matches no parameter"):
        identify(world, episodes, config=quick(DAMPING, per_session=(MASS,)))


# ---- against slow twins ------------------------------------------------------------------------


def test_session_columns_equal_differences_of_the_residuals():
    world, episodes, _ = in_sessions(1, sessions=3, episodes=2, ticks=15)
    for mode in ("joint", "warmup"):
        problem = pose(world, episodes, per_session(starts=mode, warmup=6))
        scaled = replace(problem.sessions, scale=np.array([0.3]))
        problem = replace(problem, sessions=scaled)
        u = np.append(problem.prior_mean + 0.1, [0.5, -0.2, 0.1])
        starts = problem.warm_starts(u, 6)
        eliminated = Eliminated(problem, u, starts)
        fast, step = eliminated.jacobian(u), 1e-3
        for k in range(2, 5):
            move = step * (np.arange(5) == k)
            ends = [eliminated.residual(u + sign * move) for sign in (-1, 1)]
            slow = (ends[1] - ends[0]) / (2 * step)
            if mode == "joint":  # what starts absorb was projected out of both
                fast_size, slow_size = (np.linalg.norm(c) for c in (fast[:, k], slow))
                assert slow_size == pytest.approx(fast_size, rel=0.05)
            else:
                np.testing.assert_allclose(fast[:, k], slow, atol=0.03 * np.abs(slow).max())
            windows = [len(b.residual) for b in problem.simulate(u, starts)]
            owner = np.repeat(problem.sessions.member, windows)
            assert not fast[: len(owner)][owner != k - 2, k].any()


def test_without_sessions_coordinates_are_those_of_the_parameters():
    world, episodes, _ = in_sessions(1, sessions=2, episodes=1, ticks=10)
    problem = pose(world, episodes, quick(MASS, DAMPING))
    assert problem.sessions.extra == 0
    u = problem.prior_mean
    assert problem.sessions.local(u) is u
    assert problem.units == problem.clusters
