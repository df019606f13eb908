"""A cable that pulls when it is tight and is slack otherwise, from how its load bounces."""

import numpy as np
from identify_recordings import quick

from sameworld.core import Channel, Episode, Scene, Values, rollout
from sameworld.stages.identify import identify
from sameworld.worlds import build

#: A weight that hangs from a hook by nothing but the cable.
CRADLE = Scene(
    name="cradle",
    mjcf="""<mujoco><option timestep="0.002"/>
    <custom><numeric name="control_period" data="0.01"/></custom><worldbody>
    <site name="hook" pos="0 0 1"/>
    <body name="bob" pos="0 0 .5"><joint name="fall" type="slide" axis="0 0 1" damping=".1"/>
      <geom size=".03" mass=".2"/><site name="top"/></body></worldbody><tendon>
    <spatial name="cable" stiffness="80" damping=".3" springlength="0 .45"><site site="hook"/>
      <site site="top"/></spatial></tendon></mujoco>""",
)
TRUTH = {"tendon:cable.stiffness": 120.0, "tendon:cable.springlength.high": 0.48}
NOISE = 0.001


def bounces(count=4, ticks=80, seed=0):
    """Recordings of the load dropped from heights at which the cable is slack."""
    world, rng = build(CRADLE), np.random.default_rng(seed)
    heights = np.linspace(0.0, 0.2, count)
    starts = Values.of({"start:fall.pos": heights})
    actions = np.zeros((count, ticks, 0))
    seen = rollout(world, starts, actions, parameters=Values.of(TRUTH))
    episodes = []
    for number, row in enumerate(seen.signals["fall.pos"]):
        noisy = row + rng.normal(0, NOISE, row.shape)
        channel = Channel(name="fall.pos", time=seen.time, values=noisy)
        episodes.append(Episode(id=f"drop{number}", channels=(channel,)))
    return world, episodes


def test_stiffness_and_length_of_a_cable_are_recovered():
    world, episodes = bounces()
    _, _, result = identify(world, episodes, config=quick(*TRUTH))
    for name, value in TRUTH.items():
        row = result.verdict(name)
        assert row.verdict == "determined", row.detail
        assert abs(row.value - value) < 4 * row.std
        assert row.std < 0.02 * value
