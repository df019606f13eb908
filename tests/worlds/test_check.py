import json

import numpy as np
import pytest

from sameworld.core import BeliefError, Values
from sameworld.worlds.check import WorldCheckError, check_names, check_world
from sameworld.zoo import AnalyticCart, AnalyticPendulum, RegressionWorld, learned_cart


def learned_pendulum(features):
    world = AnalyticPendulum()
    return RegressionWorld(
        scene=world.scene,
        period=world.period,
        observations=world.spec.observations,
        actions=world.spec.actions,
        context=3,
        features=features,
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "world",
    [
        AnalyticPendulum(),
        AnalyticPendulum(noise=0.2, substeps=1),
        AnalyticCart(period=0.005),
        AnalyticCart(noise=0.1),
        learned_cart(),
        learned_pendulum("quadratic"),
        learned_pendulum("random"),
    ],
    ids=lambda world: type(world).__name__,
)
def test_worlds_of_every_kind_keep_the_contract(world, seed):
    report = check_world(world, seed=seed)
    report.raise_if_failed()
    assert report.passed
    assert tuple(row.name for row in report.rows) == check_names()


def test_a_trained_world_keeps_the_contract():
    from sameworld.worlds.checks.capabilities import trial_episodes
    from sameworld.worlds.checks.probe import Probe, default_actions, default_start

    cart = AnalyticCart()
    probe = Probe(
        world=cart,
        start=default_start(cart.spec, 3, 0),
        actions=default_actions(cart.spec, 3, 12, 0),
        seed=0,
    )
    check_world(learned_cart().fit(trial_episodes(probe), seed=0)).raise_if_failed()


def test_only_what_does_not_apply_is_skipped():
    skipped = {row.name for row in check_world(AnalyticPendulum()).rows if row.outcome == "skip"}
    assert skipped == {
        "rollout equals looping step",
        "fit returns a new world",
        "render gives images",
        "inverse is linear in inertia",
    }


def test_given_starts_and_actions_are_used():
    start = Values.of({"start:rail.pos": [0.0, 1.0]})
    report = check_world(AnalyticCart(), starts=start, actions=np.zeros((2, 4, 1)))
    report.raise_if_failed()
    assert report.row("restored states continue exactly").detail == "1 ticks"


def test_only_chosen_parameters_are_varied_and_differentiated():
    report = check_world(AnalyticPendulum(), parameters=["body:bob.mass"])
    report.raise_if_failed()
    assert report.row("parameters act per element").detail == "1 parameters"
    assert report.row("gradient agrees with differences").detail.startswith("3 names")
    with pytest.raises(BeliefError, match=r"body:bob\.mass"):
        check_world(AnalyticPendulum(), parameters=["body:bob.mas"])


@pytest.mark.parametrize("shape", [(1, 12, 1), (3, 3, 1), (3, 12)])
def test_too_little_to_check_with_is_refused(shape):
    with pytest.raises(WorldCheckError, match="2 elements and 4 ticks"):
        check_world(AnalyticCart(), actions=np.zeros(shape))


def test_starts_and_actions_must_agree():
    with pytest.raises(WorldCheckError):
        check_world(AnalyticCart(), starts=Values.none(2), actions=np.zeros((3, 12, 1)))


def test_a_report_can_be_read_and_saved():
    report = check_world(AnalyticPendulum())
    record = json.loads(json.dumps(report.to_json()))
    assert record["passed"] and record["world"] == "AnalyticPendulum"
    assert len(record["rows"]) == len(check_names())
    text = str(report)
    assert text.startswith("AnalyticPendulum: ") and "0 fail" in text
    assert all(name in text for name in check_names())


def test_an_unknown_check_is_named_with_what_exists():
    with pytest.raises(WorldCheckError, match="step leaves its input"):
        check_world(AnalyticPendulum()).row("step is nice")
