import io

import numpy as np
import pytest

from sameworld.core import (
    Belief,
    BeliefError,
    Block,
    Channel,
    ChannelSpec,
    Context,
    Episode,
    FitError,
    Parameter,
    SpecError,
    StoreError,
    Values,
    rollout,
)
from sameworld.zoo import AnalyticCart, AnalyticPendulum, RegressionWorld, learned_cart


def recorded(world, count, ticks, *, size, noise=0.0, seed=0, shift=0.0, step=1):
    """Episodes of an analytic world under smooth random actions, measured every ``step`` ticks."""
    rng = np.random.default_rng(seed)
    start = Values(names=world.spec.start.names, array=0.3 * rng.standard_normal((count, 2)))
    knots = rng.uniform(-size, size, (count, ticks // 10 + 1, 1))
    actions = np.repeat(knots, 10, axis=1)[:, :ticks]
    result = rollout(world, start, actions)
    motor = world.spec.actions[0]
    episodes = []
    for row in range(count):
        seen = [
            Channel(
                name=c.name,
                time=result.time[::step] + shift,
                values=result.signals[c.name][row, ::step]
                + noise * rng.standard_normal(len(result.time[::step])),
                unit=c.unit,
            )
            for c in world.spec.observations
        ]
        acted = Channel(
            name=motor.name,
            time=result.time[:-1] + shift,
            values=actions[row, :, 0],
            unit=motor.unit,
            role="action",
        )
        episodes.append(Episode(id=f"e{row}", channels=(*seen, acted), source="analytic"))
    return episodes


def open_loop_error(world, episode, channel, ticks=50):
    """Root mean square error of an open-loop prediction from the episode's first rows."""
    depth = world.context
    names = [c.name for c in world.observations]
    acts = episode[world.actions[0].name].values[None, :, None]
    context = Context(
        observations={n: episode[n].values[None, :depth] for n in names},
        actions=acts[:, : depth - 1],
    )
    result = rollout(world, context, acts[:, depth - 1 : depth - 1 + ticks])
    truth = episode[channel].values[depth - 1 : depth + ticks]
    return float(np.sqrt(np.mean((result.signals[channel][0] - truth) ** 2)))


def learned_pendulum(features):
    return RegressionWorld(
        scene=AnalyticPendulum().scene,
        period=0.02,
        observations=(ChannelSpec(name="pivot.pos"), ChannelSpec(name="pivot.vel")),
        actions=(ChannelSpec(name="pivot_motor"),),
        context=1,
        features=features,
    )


def test_a_linear_world_learns_the_cart_exactly():
    world = learned_cart().fit(recorded(AnalyticCart(), 4, 100, size=5), seed=0)
    unseen = recorded(AnalyticCart(), 1, 100, size=5, seed=1)[0]
    assert open_loop_error(world, unseen, "rail.pos") < 1e-5


def test_noise_in_the_recordings_costs_accuracy_but_not_stability():
    world = learned_cart().fit(recorded(AnalyticCart(), 8, 200, size=5, noise=1e-3), seed=0)
    unseen = recorded(AnalyticCart(), 1, 100, size=5, seed=1)[0]
    assert 1e-5 < open_loop_error(world, unseen, "rail.pos") < 0.03


def test_random_features_learn_what_lines_cannot():
    episodes = recorded(AnalyticPendulum(), 12, 150, size=3)
    unseen = recorded(AnalyticPendulum(), 1, 100, size=3, seed=1)[0]
    linear, random = (
        open_loop_error(learned_pendulum(kind).fit(episodes, seed=0), unseen, "pivot.pos")
        for kind in ("linear", "random")
    )
    assert random < 0.2 * linear


def test_an_untrained_world_predicts_no_change():
    world = learned_cart()
    context = Context(
        observations={"rail.pos": np.array([[0.1, 0.3]]), "rail.vel": np.array([[1.0, 2.0]])},
        actions=np.zeros((1, 1, 1)),
    )
    signals = rollout(world, context, np.ones((1, 5, 1))).signals
    assert np.array_equal(signals["rail.pos"], np.full((1, 6), 0.3))


def test_recordings_on_another_clock_are_brought_to_control_ticks():
    episodes = recorded(AnalyticCart(), 4, 200, size=5, shift=0.5, step=2)
    world = learned_cart().fit(episodes, seed=0)
    unseen = recorded(AnalyticCart(), 1, 100, size=5, seed=1)[0]
    assert open_loop_error(world, unseen, "rail.pos") < 0.02


def test_weights_survive_a_file_bit_for_bit():
    world = learned_pendulum("random").fit(recorded(AnalyticPendulum(), 3, 60, size=3), seed=4)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **world.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        back = learned_pendulum("random").from_arrays(dict(arrays))
    assert back.parameters.blocks == world.parameters.blocks
    unseen = recorded(AnalyticPendulum(), 1, 60, size=3, seed=1)[0]
    errors = [open_loop_error(w, unseen, "pivot.pos") for w in (world, back)]
    assert errors[0] == errors[1]


def test_the_block_names_the_weights():
    episodes = recorded(AnalyticCart(), 2, 60, size=5)
    world = learned_cart().fit(episodes, seed=0)
    assert world.parameters.blocks == learned_cart().fit(episodes, seed=0).parameters.blocks
    assert world.parameters.blocks != learned_cart().fit(episodes[:1], seed=0).parameters.blocks
    assert len(world.parameters) == 0


def test_weights_of_another_world_are_refused():
    world = learned_cart().fit(recorded(AnalyticCart(), 2, 60, size=5), seed=0)
    with pytest.raises(StoreError, match="shape"):
        learned_pendulum("linear").from_arrays(world.to_arrays())
    with pytest.raises(StoreError, match="'scale'"):
        learned_cart().from_arrays({k: v for k, v in world.to_arrays().items() if k != "scale"})


def test_a_belief_about_other_weights_is_refused():
    other = Belief(blocks=(Block(name="one_step", sha256="0" * 64),))
    with pytest.raises(BeliefError, match="from_arrays"):
        learned_cart().with_belief(other)
    named = Belief(parameters=(Parameter(name="body:cart.mass", value=1.0),))
    with pytest.raises(BeliefError, match="no named parameters"):
        learned_cart().with_belief(named)


def test_too_short_episodes_are_refused():
    short = recorded(AnalyticCart(), 1, 1, size=5)
    with pytest.raises(FitError, match="3 control ticks"):
        learned_cart().fit(short, seed=0)


def test_rotations_are_refused():
    with pytest.raises(SpecError, match=r"cube\.quat"):
        RegressionWorld(
            scene=AnalyticCart().scene,
            period=0.02,
            observations=(ChannelSpec(name="cube.quat", shape=(4,), manifold="quaternion"),),
        )


@pytest.mark.parametrize(
    ("observations", "actions"),
    [
        ({"rail.pos": np.zeros((1, 2))}, np.zeros((1, 1, 1))),
        ({"rail.pos": np.zeros((1, 3)), "rail.vel": np.zeros((1, 3))}, np.zeros((1, 2, 1))),
        ({"rail.pos": np.zeros((1, 2)), "rail.vel": np.zeros((2, 2))}, np.zeros((1, 1, 1))),
        ({"rail.pos": np.zeros((1, 2)), "rail.vel": np.zeros((1, 2))}, np.zeros((1, 2, 1))),
    ],
)
def test_contexts_that_do_not_fit_are_refused(observations, actions):
    with pytest.raises(SpecError):
        learned_cart().reset(Context(observations=observations, actions=actions))
