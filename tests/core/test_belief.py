"""A belief is a Gaussian in a box: its laws, its draws, its file form."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sameworld.core import Belief, BeliefError, Block, Parameter


def _belief(size, seed=0, *, low=-math.inf, high=math.inf, prefix="p"):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size + 2))
    covariance = factor @ factor.T
    std = np.sqrt(np.diag(covariance))
    mean = rng.normal(size=size)
    return Belief(
        parameters=tuple(
            Parameter(name=f"body:{prefix}{i}.mass", value=m, std=s, low=low, high=high)
            for i, (m, s) in enumerate(zip(mean, std, strict=True))
        ),
        correlation=covariance / np.outer(std, std),
    )


def _same(a, b, tolerance=1e-12):
    assert a.names == b.names
    np.testing.assert_allclose(a.mean.array, b.mean.array, atol=tolerance)
    np.testing.assert_allclose(a.covariance, b.covariance, atol=tolerance)


sizes, seeds = st.integers(1, 5), st.integers(0, 10**6)


# ---- sampling -----------------------------------------------------------------------------


def test_draws_have_the_mean_and_covariance_when_bounds_are_far():
    belief, count = _belief(4, seed=1), 40000
    draws = belief.sample(count, seed=2).array
    error = (draws.mean(axis=0) - belief.mean.array[0]) / (belief.std / np.sqrt(count))
    assert np.abs(error).max() < 4.5
    scale = np.outer(belief.std, belief.std)
    np.testing.assert_allclose(np.cov(draws.T) / scale, belief.correlation, atol=0.03)


@given(sizes, seeds, st.floats(0.05, 1.0), st.floats(0.05, 1.0))
@settings(max_examples=30, deadline=None)
def test_draws_stay_in_the_box(size, seed, below, above):
    loose = _belief(size, seed)
    parameters = tuple(
        Parameter(
            name=p.name,
            value=p.value,
            std=p.std,
            low=p.value - below * p.std,
            high=p.value + above * p.std,
        )
        for p in loose.parameters
    )
    belief = Belief(parameters=parameters, correlation=loose.correlation)
    draws = belief.sample(40, seed=seed).array
    assert draws.shape == (40, size)
    assert (draws >= [p.low for p in parameters]).all()
    assert (draws <= [p.high for p in parameters]).all()


def test_a_parameter_without_opinion_is_uniform_between_its_bounds():
    belief = Belief(
        parameters=(
            Parameter(name="body:a.mass", value=1, std=0.1),
            Parameter(name="body:b.mass", value=1, low=0, high=4),
        )
    )
    draws = belief.sample(20000, seed=0)
    column = draws.column("body:b.mass")
    assert column.mean() == pytest.approx(2, abs=0.05)
    assert column.std() == pytest.approx(4 / math.sqrt(12), rel=0.03)
    assert draws.column("body:a.mass").std() == pytest.approx(0.1, rel=0.03)


def test_a_parameter_without_opinion_and_bounds_cannot_be_drawn():
    belief = Belief(parameters=(Parameter(name="body:b.mass", value=1, low=0),))
    with pytest.raises(BeliefError, match=r"Cannot sample 'body:b.mass'"):
        belief.sample(1, seed=0)


def test_a_certain_parameter_is_drawn_as_it_is():
    belief = Belief(parameters=(Parameter(name="body:b.mass", value=1.25, std=0, low=1.25),))
    np.testing.assert_array_equal(belief.sample(5, seed=0).array, 1.25)


def test_draws_are_seeded_and_may_be_none():
    belief = _belief(3)
    np.testing.assert_array_equal(belief.sample(9, seed=4).array, belief.sample(9, seed=4).array)
    assert (belief.sample(9, seed=4).array != belief.sample(9, seed=5).array).any()
    assert belief.sample(0, seed=4).array.shape == (0, 3)
    assert Belief().sample(3, seed=0).array.shape == (3, 0)


# ---- conditioning and marginals -----------------------------------------------------------


@given(st.integers(2, 5), seeds, st.floats(-2, 2))
@settings(deadline=None)
def test_conditioning_is_the_gaussian_conditional(size, seed, z):
    belief = _belief(size, seed)
    known, rest = [size - 1], list(range(size - 1))
    value = belief.parameters[-1].value + z * belief.std[-1]
    conditioned = belief.condition({belief.names[-1]: value})
    covariance = belief.covariance
    gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, rest)]).T
    mean = belief.mean.array[0, rest] + gain[:, 0] * (value - belief.mean.array[0, -1])
    spread = covariance[np.ix_(rest, rest)] - gain @ covariance[np.ix_(known, rest)]
    scale = belief.std[rest]
    np.testing.assert_allclose(
        (conditioned.mean.array[0, rest] - mean) / scale, 0, atol=1e-8 * (1 + abs(z))
    )
    found = conditioned.covariance[np.ix_(rest, rest)] / np.outer(scale, scale)
    np.testing.assert_allclose(found, spread / np.outer(scale, scale), atol=1e-7)
    assert conditioned.names == belief.names
    assert conditioned[belief.names[-1]].std == 0
    assert conditioned[belief.names[-1]].value == value


def test_conditioning_agrees_with_draws_near_the_known_value():
    belief = _belief(3, seed=5)
    name, value = belief.names[0], belief.parameters[0].value + belief.std[0]
    draws = belief.sample(200000, seed=1).array
    near = draws[np.abs(draws[:, 0] - value) < 0.05 * belief.std[0]]
    conditioned = belief.condition({name: value})
    np.testing.assert_allclose(
        near[:, 1:].mean(axis=0), conditioned.mean.array[0, 1:], atol=0.06 * belief.std.max()
    )
    np.testing.assert_allclose(near[:, 1:].std(axis=0), conditioned.std[1:], rtol=0.05)


def test_conditioning_on_several_equals_conditioning_one_after_the_other():
    belief = _belief(4, seed=6)
    one, two = belief.names[0], belief.names[2]
    together = belief.condition({two: 0.2, one: 0.1})
    _same(together, belief.condition({one: 0.1}).condition({two: 0.2}), 1e-9)
    _same(belief.condition({}), belief)


def test_conditioning_keeps_to_the_bounds_and_leaves_the_opinionless_alone():
    belief = Belief(
        parameters=(
            Parameter(name="body:a.mass", value=1, std=1, low=0, high=3),
            Parameter(name="body:b.mass", value=1, std=1, low=0.5, high=1.5),
            Parameter(name="body:c.mass", value=1),
        ),
        correlation=np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]]),
    )
    conditioned = belief.condition({"body:a.mass": 3})
    assert conditioned["body:b.mass"].value == 1.5
    assert conditioned["body:c.mass"] == belief["body:c.mass"]
    with pytest.raises(BeliefError, match="outside its bounds"):
        belief.condition({"body:a.mass": 4})
    with pytest.raises(BeliefError, match=r"Did you mean 'body:a\.mass'"):
        belief.condition({"body:a.mas": 1})


@given(st.integers(2, 5), seeds, st.data())
@settings(deadline=None)
def test_a_marginal_has_the_moments_of_its_parameters(size, seed, data):
    belief = _belief(size, seed)
    index = data.draw(st.permutations(range(size)))[: data.draw(st.integers(1, size))]
    part = belief.marginal([belief.names[i] for i in index])
    np.testing.assert_array_equal(part.mean.array[0], belief.mean.array[0, index])
    np.testing.assert_allclose(part.covariance, belief.covariance[np.ix_(index, index)])


def test_marginalising_commutes_with_drawing():
    belief = _belief(4, seed=8)
    names = (belief.names[2], belief.names[0])
    first = belief.sample(40000, seed=0).select(names).array
    second = belief.marginal(names).sample(40000, seed=1).array
    scale = belief.marginal(names).std
    np.testing.assert_allclose((first - second).mean(axis=0) / scale, 0, atol=0.03)
    np.testing.assert_allclose(
        (np.cov(first.T) - np.cov(second.T)) / np.outer(scale, scale), 0, atol=0.05
    )


# ---- editing ------------------------------------------------------------------------------


def test_updating_replaces_what_is_shared_and_adds_the_rest():
    old, new = _belief(3, 1), _belief(2, 2)
    other = Belief(
        parameters=(
            new.parameters[0],
            Parameter(name="joint:j.damping", value=1, std=0.5),
        ),
        correlation=np.array([[1, 0.3], [0.3, 1]]),
    )
    merged = old.updated(other)
    assert merged.names == (*old.names, "joint:j.damping")
    _same(merged.marginal(other.names), other)
    _same(merged.marginal(old.names[1:]), old.marginal(old.names[1:]))
    index = [merged.index(old.names[0]), merged.index(old.names[1])]
    assert merged.correlation[index[0], index[1]] == 0


@given(sizes, seeds)
@settings(deadline=None)
def test_updating_by_itself_or_by_nothing_changes_nothing(size, seed):
    belief = _belief(size, seed)
    _same(belief.updated(belief), belief)
    _same(belief.updated(Belief()), belief)
    _same(Belief().updated(belief), belief)


@given(sizes, seeds, st.data())
@settings(deadline=None)
def test_without_and_marginal_are_complements(size, seed, data):
    belief = _belief(size, seed)
    dropped = data.draw(st.sets(st.sampled_from(belief.names)))
    kept = belief.without(dropped)
    assert set(kept.names) == set(belief.names) - dropped
    _same(kept, belief.marginal(kept.names))
    _same(belief.without([]), belief)


def test_with_values_moves_means_alone():
    belief = _belief(3)
    moved = belief.with_values({belief.names[1]: 0.25})
    assert moved[belief.names[1]].value == 0.25
    np.testing.assert_array_equal(moved.covariance, belief.covariance)
    _same(moved.with_values({belief.names[1]: belief.parameters[1].value}), belief)
    with pytest.raises(BeliefError, match=r"has no 'body:q\.mass'"):
        belief.with_values({"body:q.mass": 1})


def test_blocks_and_discrepancy_follow_the_update():
    block = Block(name="dynamics", sha256="00")
    assert _belief(1).updated(Belief(blocks=(block,))).blocks == (block,)
    assert Belief(blocks=(block,)).updated(_belief(1)).blocks == (block,)


@given(sizes, seeds)
@settings(deadline=None)
def test_gaussian_gives_the_moments_it_was_given(size, seed):
    belief = _belief(size, seed)
    mean, covariance = belief.mean.array[0] + 1, 2 * belief.covariance
    found = Belief.gaussian(belief.parameters, mean, covariance, source="identified")
    np.testing.assert_allclose(found.mean.array[0], mean)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-12)
    assert {p.source for p in found.parameters} == {"identified"}


def test_gaussian_clips_means_to_the_bounds_and_takes_infinite_spread():
    parameters = (
        Parameter(name="body:a.mass", value=1, low=0, high=2),
        Parameter(name="body:b.mass", value=1, low=0, high=2),
    )
    found = Belief.gaussian(parameters, np.array([5.0, 1.0]), np.diag([np.inf, 0.0]))
    assert found["body:a.mass"].value == 2
    assert (found["body:a.mass"].std, found["body:b.mass"].std) == (math.inf, 0.0)


# ---- construction and file form -----------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.eye(3), r"shape \(3, 3\)"),
        ([[1, 0.5], [0.4, 1]], "symmetric"),
        ([[1, 0], [0, 0.9]], "unit diagonal"),
        ([[1, 1.5], [1.5, 1]], "positive semidefinite"),
        ([[1, np.nan], [np.nan, 1]], "NaN"),
        ([[1, 0], [0]], "not numeric"),
        ("high", "not numeric"),
    ],
)
def test_impossible_correlations_are_refused(matrix, words):
    with pytest.raises(BeliefError, match=words):
        Belief(parameters=_belief(2).parameters, correlation=matrix)


def test_a_name_twice_is_refused():
    with pytest.raises(BeliefError, match=r"twice: 'body:p0\.mass'"):
        Belief(parameters=_belief(1).parameters * 2)


def test_a_belief_cannot_be_changed_from_outside():
    matrix = np.eye(2)
    belief = Belief(parameters=_belief(2).parameters, correlation=matrix)
    matrix[0, 1] = 0.5
    assert belief.correlation[0, 1] == 0
    with pytest.raises(ValueError, match="read-only"):
        belief.correlation[0, 0] = 2


@given(
    st.integers(0, 4),
    seeds,
    arrays(np.float64, 4, elements=st.sampled_from([0.0, 0.1, math.pi, math.inf])),
)
@settings(deadline=None)
def test_json_gives_the_same_belief_back(size, seed, spreads):
    base = _belief(size, seed) if size else Belief()
    belief = Belief(
        parameters=tuple(
            Parameter(name=p.name, value=p.value, std=s, low=p.value - 1, source="measured")
            for p, s in zip(base.parameters, spreads, strict=False)
        ),
        correlation=base.correlation,
        blocks=(Block(name="net", sha256="ab", representation="ensemble:3"),),
    )
    back = Belief.from_json(json.loads(json.dumps(belief.to_json(), allow_nan=False)))
    assert (back.parameters, back.blocks) == (belief.parameters, belief.blocks)
    np.testing.assert_array_equal(back.correlation, belief.correlation)


def test_covariance_shows_where_there_is_no_opinion():
    belief = Belief(parameters=(Parameter(name="body:a.mass", value=1),))
    assert belief.covariance[0, 0] == math.inf
    assert len(belief) == 1
