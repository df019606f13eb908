"""Designs: within limits, better than random, deterministic, and about what was wanted."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from excite_arm import DAMPING, GAIN, LIMITS, MASS, asked, motor_arm, positive, servo_arm

from sameworld.core import AddressError, Belief, FitError, MissingExtraError, SpecError, rollout
from sameworld.stages.excite import ExciteConfig, Limit, appraise, excite, random_motions
from sameworld.stages.excite.shapes import basis
from sameworld.zoo import AnalyticPendulum

TIP = Limit(signal="tip", low=(-0.25, -0.1, 0.3), high=(0.25, 0.1, 0.8))


@pytest.fixture(scope="module")
def designed():
    return excite(servo_arm(), config=asked(limits=(*LIMITS, TIP), motions=2, evaluations=80))


def test_commands_and_simulated_signals_keep_to_every_limit(designed):
    motions, result = designed
    world = servo_arm()
    assert min(m.left for m in result.margins) >= 0
    for motion in motions:
        signals = rollout(world, motion.start, motion.actions[None]).signals
        for name, column in (("shoulder.pos", 0), ("elbow.pos", 1)):
            limit = LIMITS[column]
            for path in (signals[name][0], motion.actions[:, column]):
                rate = np.diff(path) / world.spec.period
                assert limit.low <= path.min() and path.max() <= limit.high
                assert np.abs(rate).max() <= limit.speed
                assert np.abs(np.diff(rate)).max() / world.spec.period <= limit.acceleration
        tip = signals["tip"][0]
        assert (tip >= TIP.low).all() and (tip <= TIP.high).all()
        np.testing.assert_allclose(tip, motion.signals["tip"])


def test_motions_begin_at_rest_and_end_where_they_began(designed):
    motions, _ = designed
    for motion in motions:
        np.testing.assert_allclose(motion.actions[0], motion.actions[-1], atol=0.01)
        still = {n: float(motion.start.column(n)[0]) for n in motion.start.names}
        assert abs(still["start:shoulder.vel"]) < 1e-3 and abs(still["start:elbow.vel"]) < 1e-3
        assert np.ptp(motion.actions, axis=0).min() > 0.1


def test_a_design_says_more_than_random_motions_under_the_same_limits(designed):
    motions, result = designed
    config = asked(limits=(*LIMITS, TIP))
    drawn = random_motions(servo_arm(), 10, config=config, seed=9)
    single = [appraise(servo_arm(), (m,), config=config) for m in drawn]
    assert max(a.violations[0] for a in single) == 0
    mine = appraise(servo_arm(), motions[:1], config=config)
    assert mine.logdet < min(a.logdet for a in single)
    assert result.appraisal.logdet < mine.logdet - 0.5


def test_the_search_is_told_step_by_step(designed):
    _, result = designed
    for step in result.steps:
        assert step.criterion <= min(step.screened)
        assert list(step.trace) == sorted(step.trace, reverse=True)
        assert len(step.trace) <= 80
    assert result.steps[1].criterion < result.steps[0].criterion
    assert result.steps[1].criterion == pytest.approx(result.appraisal.logdet, abs=0.02)
    record = result.to_json()
    assert record["logdet"] < record["logdet_before"]
    assert {g["name"] for g in record["gains"]} == {MASS, DAMPING, GAIN}


def test_designs_repeat_with_the_seed():
    config = asked(evaluations=6, candidates=4)
    first, again = (excite(servo_arm(), config=config)[0][0] for _ in range(2))
    np.testing.assert_array_equal(first.actions, again.actions)
    other = excite(servo_arm(), config=asked(evaluations=6, candidates=4, seed=1))[0][0]
    assert np.abs(other.actions - first.actions).max() > 0.01


@pytest.mark.parametrize("search", ["cma", "cobyqa"])
def test_both_searches_improve_on_the_best_random_motion(search):
    _, result = excite(servo_arm(), config=asked(search=search, evaluations=40))
    assert result.steps[0].trace[-1] < min(result.steps[0].screened) - 0.05


@pytest.mark.parametrize("criterion", ["A", "E"])
def test_other_criteria_are_made_small_too(criterion):
    config = asked(criterion=criterion, evaluations=40)
    _, result = excite(servo_arm(), config=config)
    assert result.steps[0].criterion < min(result.steps[0].screened)


def test_motions_serve_what_is_wanted_with_the_nuisances_unknown():
    config = asked(wanted=(DAMPING,), evaluations=40)
    _, result = excite(servo_arm(), config=config)
    spread = result.gain(DAMPING).after / result.gain(DAMPING).value
    assert result.appraisal.wanted == (DAMPING,)
    assert [g.name for g in result.appraisal.gains if g.wanted] == [DAMPING]
    assert result.steps[0].criterion == pytest.approx(2 * np.log(spread), abs=0.02)
    assert result.steps[0].criterion < min(result.steps[0].screened)
    ignored = appraise(servo_arm(), (), config=asked(free=(DAMPING,)))
    assert result.appraisal.logdet_before == pytest.approx(ignored.logdet_before)


def test_limits_hold_for_draws_of_the_belief_when_asked():
    config = asked(search="none", draws=8, limits=(*LIMITS, TIP))
    motions, result = excite(servo_arm(), config=config)
    belief = servo_arm().parameters.marginal((MASS, DAMPING, GAIN))
    signals = rollout(
        servo_arm(), motions[0].start, motions[0].actions[None], parameters=belief.sample(8, seed=0)
    ).signals
    assert (signals["tip"] >= TIP.low).all() and (signals["tip"] <= TIP.high).all()
    careless, _ = excite(servo_arm(), config=asked(search="none", limits=(*LIMITS, TIP)))
    assert result.steps[0].scale <= 1.0
    assert np.ptp(motions[0].actions) <= np.ptp(careless[0].actions)


def test_one_command_may_move_alone_from_a_home_of_its_own():
    config = asked(actions=("elbow_servo",), home={"elbow_servo": 0.4}, search="none")
    motions, _ = excite(servo_arm(), config=config)
    assert np.ptp(motions[0].actions[:, 0]) == 0
    assert motions[0].actions[0, 1] == pytest.approx(0.4)
    assert float(motions[0].start.column("start:elbow.pos")[0]) == pytest.approx(0.4, abs=0.15)


def test_torques_carry_a_motor_arm_along_the_designed_path():
    config = asked(free=(MASS, DAMPING), search="none", shape="spline", terms=4)
    motions, result = excite(motor_arm(), config=config)
    shape = basis("spline", 4, 1.6, np.append(motions[0].time, 1.6)).values
    for row, name in enumerate(("shoulder.pos", "elbow.pos")):
        moved, path = motions[0].signals[name], shape @ motions[0].coefficients[row]
        assert np.ptp(moved) > 0.2
        assert np.abs(moved - path).max() < 0.1 * np.ptp(path)
    assert min(m.left for m in result.margins) >= 0


def test_torques_without_inverse_dynamics_are_shaped_themselves_or_refused():
    world = AnalyticPendulum(substeps=1)
    config = ExciteConfig(free=("body:bob.mass",), noise={"pivot.pos": 1e-3}, duration=1.0)
    with pytest.raises(SpecError, match="drive='command'"):
        excite(world, config=config)
    shaped = ExciteConfig(
        free=("body:bob.mass",),
        noise={"pivot.pos": 1e-3},
        duration=1.0,
        drive="command",
        candidates=4,
        search="none",
    )
    motions, _ = excite(world, config=shaped)
    assert np.ptp(motions[0].actions) > 0


def test_what_no_motion_excites_is_said():
    known = Belief(parameters=(positive(DAMPING, 0.1, 1e-4),))
    world = servo_arm().with_belief(servo_arm().parameters.updated(known))
    _, result = excite(world, config=asked(search="none"))
    assert any(DAMPING in said for said in result.advice)
    assert not any(said.startswith(f"'{GAIN}'") for said in result.advice)


def test_motions_become_action_channels(designed):
    motions, _ = designed
    channels = motions[0].channels(servo_arm().spec)
    assert [c.name for c in channels] == ["shoulder_servo", "elbow_servo"]
    assert all(c.role == "action" and len(c) == 80 for c in channels)
    np.testing.assert_array_equal(channels[1].values, motions[0].actions[:, 1])


def test_progress_is_reported_in_stages():
    heard = []
    excite(servo_arm(), config=asked(evaluations=3, candidates=2), progress=heard.append)
    assert {p.stage for p in heard} == {"screening", "improving"}


def test_cma_that_is_not_installed_gives_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(MissingExtraError, match=r"sameworld\[global\]"):
        excite(servo_arm(), config=asked(search="cma", candidates=2))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"home": {"elbow_servo": 1.9}}, SpecError, "lies outside"),
        ({"home": {"wrist": 0.0}}, SpecError, "home names 'wrist'"),
        ({"actions": ("wrist*",)}, AddressError, "wrist"),
        ({"drive": "torque"}, SpecError, "None of the commands"),
        ({"free": ("body:hand.mass",)}, AddressError, "matches no parameter"),
    ],
)
def test_what_the_world_lacks_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        excite(servo_arm(), config=asked(search="none", candidates=2, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "T"},
        {"motions": 0},
        {"terms": 1},
        {"duration": 0.0},
        {"noise": {"*.pos": -1.0}},
        {"free": ()},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(FitError):
        asked(**options)


def test_the_table_of_options_says_the_defaults_of_the_code():
    page = (Path(__file__).parents[3] / "docs" / "stages" / "excite.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S*) \|", page, re.MULTILINE))
    for name, value in vars(ExciteConfig(free=("x",))).items():
        if name != "free":
            assert rows[name].strip("`") == str(value)
