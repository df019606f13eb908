"""One call for every kind of world, on recordings of known truth."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import (
    CART,
    CART_NOISE,
    DAMPING,
    GRAVITY,
    MASS,
    PENDULUM_NOISE,
    quick,
    random_starts,
    record,
)

from sameworld.core import (
    AddressError,
    Belief,
    Channel,
    EpisodeError,
    FitError,
    Parameter,
    predict_all,
)
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart, scene

PENDULUM_TRUTH = {MASS: 0.8, DAMPING: 0.05}
CART_TRUTH = {CART[0]: 2.3, CART[1]: 0.7}

#: kind -> world to fit, who plays reality, truth, noise, size of actions.
KINDS = {
    "analytic": lambda: (
        AnalyticPendulum(substeps=1),
        AnalyticPendulum(substeps=1),
        PENDULUM_TRUTH,
        PENDULUM_NOISE,
        1,
    ),
    "explicit": lambda: (
        build(scene("cart"), "explicit"),
        AnalyticCart(substeps=1),
        CART_TRUTH,
        CART_NOISE,
        10,
    ),
    "learned": lambda: (learned_cart(), AnalyticCart(substeps=1), CART_TRUTH, CART_NOISE, 10),
}


def assert_recovered(result, truth, sigmas=4.0):
    """Every true value lies within a few of the reported standard deviations, and is determined."""
    for name, value in truth.items():
        row = result.verdict(name)
        assert row.verdict == "determined", row.detail
        assert abs(row.value - value) < sigmas * row.std, name
        assert row.low < row.value < row.high


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_call_fits_every_kind_of_world(kind):
    world, reality, truth, noise, size = KINDS[kind]()
    episodes = record(reality, 12, truth=truth, noise=noise, size=size, seed=3)
    fresh = record(reality, 6, truth=truth, noise=noise, size=size, seed=4)
    free = () if kind == "learned" else tuple(truth)
    fitted, placed, result = identify(world, episodes, config=quick(*free, holdout=0.25))
    assert result.blocks_only == (kind == "learned")
    assert result.holdout is not None and result.holdout.passed and result.holdout.gain > 0.3
    assert [e.id for e in placed] == [e.id for e in episodes]
    if free:
        assert_recovered(result, truth)
        assert fitted.parameters[free[0]].source == "identified"
    pairs = zip(predict_all(world, fresh, 6), predict_all(fitted, fresh, 6), strict=True)
    name = next(iter(noise))
    errors = np.array([[np.abs(p.channels[name].error).mean() for p in pair] for pair in pairs])
    assert np.median(errors[:, 1]) < 0.5 * np.median(errors[:, 0])
    assert all(p.calibrated for p in predict_all(fitted, fresh, 6))


def test_the_true_start_is_found_with_the_parameters():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 20, truth=PENDULUM_TRUTH, noise=PENDULUM_NOISE, seed=5)
    _, placed, _ = identify(world, episodes, config=quick(*PENDULUM_TRUTH))
    truth = random_starts(world, 20, 5)
    assert all(e.start[n].source == "identified" for e in placed for n in truth.names)
    z = [
        (e.start[n].value - truth.column(n)[i]) / e.start[n].std
        for i, e in enumerate(placed)
        for n in truth.names
    ]
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.5


def test_an_opinion_on_the_start_is_used():
    world = AnalyticPendulum(substeps=1)
    noise = {"pivot.pos": 0.1}
    (episode,) = record(world, 1, truth=PENDULUM_TRUTH, noise=noise, seed=6)
    believed = random_starts(world, 1, 6).column("start:pivot.vel")[0] + 0.02
    sure = Parameter(name="start:pivot.vel", value=believed, std=1e-4, scope="episode")
    told = replace(episode, start=Belief(parameters=(sure,)))
    _, (placed,), _ = identify(world, [told], config=quick(MASS))
    assert placed.start["start:pivot.vel"].value == pytest.approx(believed, abs=1e-3)


def test_channels_may_come_at_their_own_rates_and_jittered_times():
    world = AnalyticPendulum(substeps=1)
    episodes = record(
        world,
        10,
        truth=PENDULUM_TRUTH,
        noise=PENDULUM_NOISE,
        every={"pivot.vel": 3},
        jitter=0.45,
        seed=7,
    )
    assert len(episodes[0]["pivot.vel"]) < len(episodes[0]["pivot.pos"])
    _, _, result = identify(world, episodes, config=quick(*PENDULUM_TRUTH))
    for name, value in PENDULUM_TRUTH.items():
        assert result.verdict(name).value == pytest.approx(value, rel=0.03)


def test_a_clean_channel_counts_more_than_a_noisy_one():
    world, spreads = AnalyticPendulum(substeps=1), {}
    for label, noise in {
        "clean": {"pivot.pos": 1e-3},
        "noisy": {"pivot.pos": 0.1},
        "both": {"pivot.pos": 1e-3, "pivot.vel": 1.0},
    }.items():
        episodes = record(world, 10, truth=PENDULUM_TRUTH, noise=noise, seed=8)
        _, _, result = identify(world, episodes, config=quick(*PENDULUM_TRUTH))
        spreads[label] = result.verdict(MASS).naive_std
    assert spreads["both"] == pytest.approx(spreads["clean"], rel=0.2)
    assert spreads["noisy"] > 30 * spreads["clean"]


def test_stated_noise_is_believed():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 8, truth=PENDULUM_TRUTH, noise={"pivot.pos": 2e-3}, seed=9)
    stated = [e.with_channels([replace(e["pivot.pos"], noise=0.02)]) for e in episodes]
    _, _, result = identify(world, stated, config=quick(MASS))
    assert result.residuals[0].noise == 0.02


def test_patterns_choose_what_is_free_and_the_rest_stays():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 8, truth=PENDULUM_TRUTH, noise=PENDULUM_NOISE, seed=10)
    fitted, _, result = identify(world, episodes, config=quick("body:*", "joint:*.damping"))
    assert [v.name for v in result.verdicts] == [MASS, DAMPING]
    assert fitted.parameters[GRAVITY] == world.parameters[GRAVITY]


def test_session_parameters_differ_between_episodes():
    world = AnalyticPendulum(substeps=1)
    light = record(world, 5, truth={MASS: 0.5, DAMPING: 0.05}, noise=PENDULUM_NOISE, seed=11)
    heavy = record(world, 5, truth={MASS: 1.5, DAMPING: 0.05}, noise=PENDULUM_NOISE, seed=12)
    load = Belief(parameters=(Parameter(name=MASS, value=1.5, scope="session"),))
    told = [
        *light,
        *(replace(e, id=f"heavy{i}", session=load) for i, e in enumerate(heavy)),
    ]
    _, _, result = identify(world, told, config=quick(DAMPING))
    assert_recovered(result, {DAMPING: 0.05})


def test_several_starts_of_the_search_agree_and_are_reported():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 4, truth={MASS: 2.5, DAMPING: 0.3}, noise=PENDULUM_NOISE, seed=13)
    config = quick(MASS, DAMPING, search="sobol", candidates=8, polished=2, prior=True)
    _, _, result = identify(world, episodes, config=config)
    assert result.verdict(MASS).value == pytest.approx(2.5, rel=0.05)
    assert len(result.searches) >= 1
    assert min(s.cost for s in result.searches) >= result.cost * 0.99


def test_the_same_seed_gives_the_same_answer():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 6, truth=PENDULUM_TRUTH, noise=PENDULUM_NOISE, seed=14)
    config = IdentifyConfig(free=(MASS, DAMPING), window=np.inf, candidates=4, rounds=2)
    first, second = (identify(world, episodes, config=config)[2] for _ in range(2))
    assert first.posterior.to_json() == second.posterior.to_json()


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (IdentifyConfig(free=()), FitError, "Name parameters"),
        (IdentifyConfig(free=("body:bop.mass",)), AddressError, "Did you mean 'body:bob.mass'"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_advice(config, error, message):
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 2, noise=PENDULUM_NOISE)
    with pytest.raises(error, match=message):
        identify(world, episodes, config=config)


def test_other_refusals():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 2, noise=PENDULUM_NOISE)
    with pytest.raises(FitError, match="No episodes"):
        identify(world, [], config=quick(MASS))
    with pytest.raises(FitError, match=r"repeat.*e0"):
        identify(world, [episodes[0], episodes[0]], config=quick(MASS))
    with pytest.raises(FitError, match="starts from a context"):
        carts = record(AnalyticCart(substeps=1), 2, noise=CART_NOISE)
        identify(learned_cart(), carts, config=quick("body:cart.mass"))
    known = world.parameters[MASS]
    fixed = world.with_belief(
        world.parameters.updated(Belief(parameters=(replace(known, std=0.0),)))
    )
    with pytest.raises(FitError, match="known exactly"):
        identify(fixed, episodes, config=quick(MASS))
    stranger = replace(
        episodes[0], channels=(Channel(name="x", time=[0.0, 1.0], values=[0.0, 1.0]),)
    )
    with pytest.raises(EpisodeError, match="nothing in common"):
        identify(world, [stranger], config=quick(MASS))


@pytest.mark.parametrize(
    "options",
    [
        {"warmup": 0},
        {"rounds": 0},
        {"holdout": 1.0},
        {"tolerance": 0.0},
        {"window": -1.0},
        {"loss": "square"},
        {"starts": "first"},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(FitError):
        IdentifyConfig(free=(MASS,), **options)
