"""What may be said about parameters: determined, only together, not at all."""

import math
from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import (
    CART,
    CART_NOISE,
    DAMPING,
    MASS,
    PENDULUM_NOISE,
    quick,
    record,
)

from sameworld.core import (
    Belief,
    Channel,
    Episode,
    Parameter,
    SameworldWarning,
    Scene,
    Values,
    rollout,
)
from sameworld.stages.identify import identify
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, AnalyticPendulum

TRUTH = {MASS: 0.8, DAMPING: 0.05}

#: Two masses on springs without any known force: a common scale cannot show.
SPRINGS = """<mujoco><option timestep="0.005" gravity="0 0 0"/>
<custom><numeric name="control_period" data="0.02"/></custom><worldbody>
<body name="a"><joint name="ja" type="slide" axis="1 0 0" stiffness="20" damping=".3"/>
  <geom type="sphere" size=".1" mass="1"/>
  <body name="b"><joint name="jb" type="slide" axis="1 0 0" stiffness="12" damping=".2"/>
    <geom type="sphere" size=".1" mass=".7"/></body></body></worldbody></mujoco>"""
SPRING_NAMES = {
    "body:a.mass": 1.0,
    "body:b.mass": 0.7,
    "joint:ja.stiffness": 20.0,
    "joint:jb.stiffness": 12.0,
    "joint:ja.damping": 0.3,
    "joint:jb.damping": 0.2,
}


def springs():
    """The scene with wide logarithmic priors, as a world."""
    parameters = tuple(
        Parameter(name=n, value=v, low=v / 10, high=10 * v, std=math.log(3) * v, transform="log")
        for n, v in SPRING_NAMES.items()
    )
    return build(Scene(name="springs", mjcf=SPRINGS, belief=Belief(parameters=parameters)))


def ring(world, count=8, ticks=50, seed=0):
    """Recordings of the springs left to themselves from random starts."""
    rng = np.random.default_rng(seed)
    truth = Values.of({n: 1.4 * v for n, v in SPRING_NAMES.items()})
    start = Values(names=world.spec.start.names, array=rng.normal(0, 0.5, (count, 4)))
    result = rollout(world, start, np.zeros((count, ticks, 0)), parameters=truth)
    return [
        Episode(
            id=f"e{i}",
            channels=tuple(
                Channel(
                    name=n,
                    time=result.time,
                    values=result.signals[n][i] + 1e-3 * rng.normal(size=ticks + 1),
                )
                for n in ("ja.pos", "jb.pos")
            ),
        )
        for i in range(count)
    ]


def judged(world, episodes, *free, **options):
    return identify(world, episodes, config=quick(*free, **options))[2]


def test_a_driven_pendulum_determines_mass_and_damping():
    result = judged(
        AnalyticPendulum(substeps=1),
        record(AnalyticPendulum(substeps=1), 8, truth=TRUTH, noise=PENDULUM_NOISE),
        *TRUTH,
    )
    assert [v.verdict for v in result.verdicts] == ["determined", "determined"]
    assert result.combinations == ()
    assert result.advice[0].startswith("Every parameter is determined")


@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize("prior", [True, False])
def test_a_passive_pendulum_determines_a_ratio_only_and_names_it(count, prior):
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, count, truth=TRUTH, noise=PENDULUM_NOISE, size=0.0, ticks=80)
    result = judged(world, episodes, MASS, DAMPING, prior=prior)
    for name, partner in ((MASS, DAMPING), (DAMPING, MASS)):
        row = result.verdict(name)
        assert row.verdict == "only in combination"
        assert partner in row.partners and partner in row.detail
        assert row.std > 0.3 * row.value  # the prior's width at least
    (combination,) = result.combinations
    assert combination.weights[MASS] == pytest.approx(-combination.weights[DAMPING], rel=1e-2)
    assert MASS in combination.text and DAMPING in combination.text
    values = [result.verdict(n).value for n in (MASS, DAMPING)]
    miss = math.log(values[0] / values[1]) - math.log(TRUTH[MASS] / TRUTH[DAMPING])
    assert abs(miss) < 4 * combination.std < 0.2


@pytest.mark.parametrize("prior", [True, False])
def test_a_common_scale_of_masses_springs_and_dampers_is_not_determined(prior):
    world = springs()
    result = judged(world, ring(world), *SPRING_NAMES, prior=prior)
    assert {v.verdict for v in result.verdicts} == {"only in combination"}
    for row in result.verdicts:
        assert len(row.partners) == 5
    logs = {n: math.log(result.verdict(n).value / v) for n, v in SPRING_NAMES.items()}
    for combination in result.combinations:  # everything was scaled alike: they all vanish
        value = sum(w * logs[n] for n, w in combination.weights.items())
        assert abs(value) < 5 * combination.std + 0.02
    assert len(result.combinations) >= 4


def test_a_known_scale_makes_the_rest_determined():
    world = springs()
    known = {"body:a.mass": 1.4}
    told = world.with_belief(world.parameters.with_values(known))
    rest = [n for n in SPRING_NAMES if n not in known]
    result = judged(told, ring(world), *rest)
    assert {v.verdict for v in result.verdicts} == {"determined"}
    for name in rest:
        assert result.verdict(name).value == pytest.approx(1.4 * SPRING_NAMES[name], rel=0.05)


def test_a_parameter_that_changes_nothing_has_zero_gradient():
    world = AnalyticCart(substeps=1)
    rest = record(world, 8, noise=CART_NOISE, size=0.0, spread=0.0, ticks=30)
    idle = [
        e.with_channels(
            Channel(name=c.name, time=c.time, values=0 * c.values, noise=1e-3)
            for c in e.observations
        )
        for e in rest
    ]
    still = tuple(
        Parameter(name=n, value=0.0, std=0.0, scope="episode") for n in world.spec.start.names
    )
    object.__setattr__(world, "spec", replace(world.spec, start=Belief(parameters=still)))
    with pytest.warns(SameworldWarning, match="changes nothing here") as heard:
        result = judged(world, idle, *CART)
    assert len(heard) == len(CART)
    for name in CART:
        row = result.verdict(name)
        assert row.verdict == "zero gradient"
        assert row.value == row.before
        assert math.isinf(row.std)
        assert any(name in line for line in result.advice)


def test_one_dead_parameter_does_not_spoil_the_others():
    world = build(
        Scene(
            name="two",
            mjcf="""<mujoco><option timestep="0.01" gravity="0 0 0"/>
            <custom><numeric name="control_period" data="0.02"/></custom><worldbody>
            <body name="a"><joint name="ja" type="slide" axis="1 0 0" damping=".5"/>
              <geom type="sphere" size=".1" mass="1"/></body>
            <body name="b" pos="0 1 0"><joint name="jb" type="slide" axis="1 0 0" damping=".5"/>
              <geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>""",
        )
    )
    rng = np.random.default_rng(1)
    start = Values(names=world.spec.start.names, array=rng.normal(0, 1, (9, 4)))
    truth = Values.of({"joint:ja.damping": 0.8, "joint:jb.damping": 0.3})
    result = rollout(world, start, np.zeros((9, 40, 0)), parameters=truth)
    episodes = [
        Episode(
            id=f"e{i}",
            channels=(
                Channel(
                    name="ja.pos",
                    time=result.time,
                    values=result.signals["ja.pos"][i] + 1e-3 * rng.normal(size=41),
                ),
            ),
        )
        for i in range(9)
    ]
    for chosen in (episodes, episodes[:3]):
        found = judged(world, chosen, "joint:ja.damping", "joint:jb.damping")
        assert found.verdict("joint:jb.damping").verdict == "zero gradient"
        row = found.verdict("joint:ja.damping")
        assert row.verdict == "determined"
        assert abs(row.value - 0.8) < 4 * row.std < 0.1


def test_a_tiny_effect_is_not_excited_and_the_advice_says_what_to_record():
    world = AnalyticPendulum(substeps=1)
    episodes = record(
        world, 8, truth=TRUTH, noise={"pivot.pos": 0.05}, ticks=12, spread=0.05, size=0.02
    )
    result = judged(world, episodes, DAMPING)
    row = result.verdict(DAMPING)
    assert row.verdict == "not excited"
    assert not row.partners and row.std > 0.3 * row.value
    assert any("coast" in line for line in result.advice)


def test_a_truth_outside_the_bounds_ends_at_the_bound():
    world = AnalyticPendulum(substeps=1)
    narrow = replace(world.parameters[MASS], high=0.6)
    tight = world.with_belief(world.parameters.updated(Belief(parameters=(narrow,))))
    result = judged(tight, record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE), MASS, DAMPING)
    row = result.verdict(MASS)
    assert row.verdict == "at bound" and row.value == pytest.approx(0.6, rel=1e-3)
    assert row.low <= row.value <= row.high <= 0.6
    assert any("widen its bounds" in line for line in result.advice)


def test_more_recordings_turn_not_excited_into_determined():
    world = AnalyticPendulum(substeps=1)
    spreads = []
    for count, ticks in ((8, 15), (8, 60)):
        episodes = record(
            world, count, truth=TRUTH, noise={"pivot.pos": 0.05}, ticks=ticks, size=1.0, seed=2
        )
        spreads.append(judged(world, episodes, DAMPING).verdict(DAMPING).naive_std)
    assert spreads[1] < 0.3 * spreads[0]
