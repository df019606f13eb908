"""Information: against dense algebra, exact derivatives, recordings and the scatter of fits."""

from dataclasses import replace

import numpy as np
import pytest
from excite_arm import DAMPING, GAIN, MASS, NOISE, asked, positive, servo_arm
from hypothesis import given, settings
from hypothesis import strategies as st

from sameworld.core import (
    Belief,
    Channel,
    Episode,
    FitError,
    Parameter,
    SpecError,
    Values,
    jacobian,
    rollout,
)
from sameworld.maths.projection import project_out, solve_columns
from sameworld.stages.excite import ExciteConfig, Limit, appraise, excite, random_motions
from sameworld.stages.excite.information import eliminated, experiment, score
from sameworld.zoo import AnalyticPendulum

BOB, FRICTION = "body:bob.mass", "joint:pivot.damping"


def pendulum_config(**options):
    given = {
        "free": (BOB, FRICTION),
        "noise": {"pivot.pos": 2e-3},
        "drive": "command",
        "duration": 2.0,
        "terms": 3,
        "candidates": 8,
        "search": "none",
    }
    return ExciteConfig(**(given | options))


@pytest.fixture(scope="module")
def motion():
    return random_motions(servo_arm(), 1, config=asked(), seed=3)[0]


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 4), starts=st.integers(0, 3))
def test_elimination_equals_projection_of_stacked_rows(seed, size, starts):
    rng = np.random.default_rng(seed)
    theta, begun = rng.standard_normal((30, size)), rng.standard_normal((30, starts))
    precision = rng.uniform(0.1, 2, starts)
    rows = np.hstack([theta, begun])
    padded = np.vstack([theta, np.zeros((starts, size))])
    columns = np.vstack([begun, np.diag(np.sqrt(precision))])
    left = project_out(columns, padded)
    np.testing.assert_allclose(eliminated(rows.T @ rows, size, precision), left.T @ left, atol=1e-8)


def test_information_equals_the_dense_jacobian_with_starts_projected_out(motion):
    world = servo_arm()
    question = experiment(world, (), asked())
    _, found, method, _ = question.information(motion.start, motion.actions[None], central=True)
    starts = world.spec.start.names
    dense = jacobian(world, motion.start, motion.actions[None], wrt=(*question.names, *starts))
    rows = np.concatenate(
        [dense.derivatives[n][0].reshape(-1, 3 + len(starts)) / NOISE for n in question.noise]
    )
    left = project_out(rows[:, 3:], rows[:, :3] * np.array([0.6, 0.1, 20.0]))
    np.testing.assert_allclose(found[0], left.T @ left, rtol=1e-3)
    assert set(question.noise) == {"shoulder.pos", "elbow.pos"}
    assert method == "differences"


def test_worlds_with_gradients_are_asked_for_them_and_agree_with_differences():
    world = AnalyticPendulum(substeps=1)
    motions, result = excite(world, config=pendulum_config())
    assert result.method == "gradient"
    question = experiment(world, (), pendulum_config())
    wrt = (*question.names, *question.starts)
    slow = jacobian(
        world, motions[0].start, motions[0].actions[None], wrt=wrt, method="differences"
    )
    rows = slow.derivatives["pivot.pos"][0, :, 0] / 2e-3
    left = project_out(rows[:, 2:], rows[:, :2] * question.slopes)
    np.testing.assert_allclose(result.appraisal.information[0], left.T @ left, rtol=1e-4)


def test_predicted_spreads_are_the_scatter_of_estimates():
    world, count, rng = AnalyticPendulum(substeps=1), 200, np.random.default_rng(3)
    gentle = Limit(signal="pivot_motor", low=-1.0, high=1.0)
    motions, result = excite(world, config=pendulum_config(limits=(gentle,)))
    names, actions = motions[0].start.names, np.repeat(motions[0].actions[None], count, axis=0)
    start = motions[0].start.array + 0.02 * rng.standard_normal((count, 2))
    seen = rollout(world, Values(names=names, array=start), actions).signals["pivot.pos"]
    seen = seen + 2e-3 * rng.standard_normal(seen.shape)
    truth = np.array([g.value for g in result.appraisal.gains])
    theta = np.tile(truth, (count, 1))
    for _ in range(4):  # Gauss-Newton over parameters and starts, every recording on its own
        found = jacobian(
            world,
            Values(names=names, array=start),
            actions,
            wrt=(BOB, FRICTION, *names),
            parameters=Values(names=(BOB, FRICTION), array=theta),
        )
        slopes = found.derivatives["pivot.pos"][:, :, 0]
        error = seen - found.rollout.signals["pivot.pos"]
        step = np.stack([solve_columns(j, r) for j, r in zip(slopes, error, strict=True)])
        theta, start = theta + step[:, :2], start + step[:, 2:]
    z = (theta - truth) / [g.after for g in result.appraisal.gains]
    np.testing.assert_allclose(np.sqrt(np.mean(z**2, axis=0)), 1, atol=0.15)


def recorded(world, motion, rng, name, sd=2e-3, **truth):
    moved = motion.start.array + 0.02 * rng.standard_normal(motion.start.array.shape)
    start = Values(names=motion.start.names, array=moved)
    given = Values.of(truth) if truth else None
    result = rollout(world, start, motion.actions[None], parameters=given)
    channels = tuple(
        Channel(name=c.name, time=result.time, values=v[0] + sd * rng.standard_normal(v[0].shape))
        for c in world.spec.observations
        if c.name.endswith(".pos")
        for v in [result.signals[c.name]]
    )
    return Episode(id=name, channels=(*channels, *motion.channels(world.spec)))


def test_earlier_episodes_say_what_their_motion_was_predicted_to_say(motion):
    world, rng = servo_arm(), np.random.default_rng(0)
    episode = recorded(world, motion, rng, "earlier", sd=NOISE)
    held = experiment(world, (episode,), asked()).prior
    predicted = appraise(world, (motion,), config=asked())
    total = predicted.prior + predicted.information[0]
    assert np.linalg.slogdet(held)[1] == pytest.approx(np.linalg.slogdet(total)[1], abs=0.1)
    assert np.linalg.slogdet(held)[1] > np.linalg.slogdet(predicted.prior)[1] + 5


def test_noise_is_taken_from_earlier_episodes_where_it_is_not_given(motion):
    world, rng = servo_arm(), np.random.default_rng(1)
    episode = recorded(world, motion, rng, "earlier", sd=NOISE)
    levels = experiment(world, (episode,), asked(noise={"elbow.pos": 5e-3})).noise
    assert levels["elbow.pos"] == 5e-3
    assert levels["shoulder.pos"] == pytest.approx(NOISE, rel=0.3)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 5))
def test_criteria_are_logs_of_determinant_trace_and_largest_eigenvalue(seed, size):
    root = np.random.default_rng(seed).standard_normal((size, size + 3))
    information = root @ root.T + 0.1 * np.eye(size)
    wanted = list(range(0, size, 2))
    block = np.linalg.inv(information)[np.ix_(wanted, wanted)]
    expected = {
        "D": np.linalg.slogdet(block)[1],
        "A": np.log(np.trace(block)),
        "E": np.log(np.linalg.eigvalsh(block)[-1]),
    }
    for criterion, value in expected.items():
        assert score(information[None], wanted, criterion)[0] == pytest.approx(value, abs=1e-6)
        assert score(4 * information[None], wanted, criterion)[0] < value


def test_prior_is_the_belief_with_its_correlations():
    correlated = Belief(
        parameters=(positive(MASS, 0.6, 0.2), positive(GAIN, 20.0, 0.1)),
        correlation=np.array([[1, 0.5], [0.5, 1]]),
    )
    world = servo_arm().with_belief(servo_arm().parameters.updated(correlated))
    covariance = np.linalg.inv(experiment(world, (), asked(free=(MASS, GAIN))).prior)
    np.testing.assert_allclose(covariance, [[0.04, 0.01], [0.01, 0.01]], rtol=1e-6)


def test_no_opinion_between_bounds_counts_as_uniform():
    loose = Parameter(name=DAMPING, value=0.1, low=0.05, high=0.4)
    world = servo_arm().with_belief(servo_arm().parameters.updated(Belief(parameters=(loose,))))
    found = appraise(world, (), config=asked(free=(DAMPING,)))
    assert found.gains[0].before == pytest.approx(0.35 / np.sqrt(12))
    assert found.gains[0].after == found.gains[0].before


def test_what_is_known_exactly_cannot_be_designed_for():
    exact = replace(positive(MASS, 0.6), std=0.0)
    world = servo_arm().with_belief(servo_arm().parameters.updated(Belief(parameters=(exact,))))
    with pytest.raises(FitError, match="known exactly"):
        experiment(world, (), asked())


def test_noise_must_be_known_and_name_signals():
    with pytest.raises(SpecError, match="How noisy"):
        experiment(servo_arm(), (), asked(noise={}))
    with pytest.raises(SpecError, match=r"noise names 'wrist.pos'"):
        experiment(servo_arm(), (), asked(noise={"wrist.pos": 1e-3}))
