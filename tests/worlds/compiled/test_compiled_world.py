"""A second engine on a compiled scene: what worlds share needs nothing of MuJoCo's stepping."""

import subprocess
import sys

import numpy as np
import pytest
from rail_world import PERIOD, RAIL, rail_world

from sameworld.core import Belief, Context, Parameter, SpecError, Values
from sameworld.core.errors import AddressError
from sameworld.core.rollout import loop
from sameworld.worlds import build, check_world
from sameworld.worlds.explicit import ExplicitConfig

VALUES = Values.of(
    {
        "body:cart.mass": [1.5, 1.0, 3.0, 2.0],
        "joint:rail.damping": [2.0, 0.5, 0.0, 4.0],
        "sensor:rail.pos.delay": [0.0, 0.013, 0.04, 0.01],
        "sensor:rail.vel.gain": [1.0, 1.1, 0.9, 1.0],
        "sensor:rail.vel.bias": [0.0, 0.2, 0.0, -0.1],
    }
)
START = Values.of({"start:rail.vel": [0.0, 0.5, -0.5, 1.0]})
ACTIONS = np.random.default_rng(0).uniform(5, 25, (4, 50, 1))


@pytest.fixture(scope="module")
def ours():
    return rail_world()


@pytest.fixture(scope="module")
def theirs():
    return build(RAIL, config=ExplicitConfig(period=PERIOD))


def test_a_world_made_of_the_shared_parts_keeps_the_contract(ours):
    check_world(ours).raise_if_failed()


@pytest.mark.parametrize("values", [Values.none(), VALUES], ids=["means", "delays and gains"])
def test_it_agrees_with_the_explicit_world(ours, theirs, values):
    seen = [w.rollout(w.reset(START, values), ACTIONS) for w in (ours, theirs)]
    for name, signal in seen[0].signals.items():
        assert np.allclose(signal, seen[1].signals[name], rtol=0, atol=1e-11)
        assert np.ptp(signal) > 0.1
    assert all(result.valid.all() for result in seen)


def test_delayed_signals_are_the_same_ticked_and_rolled_out(ours):
    state = ours.reset(START, VALUES)
    fast, slow = ours.rollout(state, ACTIONS), loop(ours, state, ACTIONS)
    assert all(np.array_equal(fast.signals[n], slow.signals[n]) for n in fast.signals)
    for tick in range(7):
        state = ours.step(state, ACTIONS[:, tick])
    rest = ours.rollout(state, ACTIONS[:, 7:])
    assert all(np.array_equal(rest.signals[n], fast.signals[n][:, 7:]) for n in rest.signals)


def test_only_delayed_channels_are_remembered(ours):
    assert set(ours.reset(START).arrays) == {"moving"}
    assert set(ours.reset(START, VALUES).arrays) == {"moving", "history:rail.pos"}


def test_both_worlds_believe_and_offer_the_same(ours, theirs):
    assert ours.parameters.parameters == theirs.parameters.parameters
    assert ours.spec.agrees_with(theirs.spec)
    assert ours.spec.start.parameters == theirs.spec.start.parameters
    assert ours.spec.capabilities == {"rollout"}
    assert theirs.spec.capabilities == {"rollout", "render", "inverse"}


def test_both_worlds_learn_the_same_from_a_belief(ours, theirs):
    news = Belief(parameters=(Parameter(name="body:cart.mass", value=2.5, std=0.1),))
    first, second = ours.with_belief(news), theirs.with_belief(news)
    assert first.parameters.parameters == second.parameters.parameters
    assert first.scene.belief.names == second.scene.belief.names == ("body:cart.mass",)
    assert first.parameters["body:cart.mass"].unit == "kg"
    assert first.believed.mjcf() == second.mjcf() != theirs.mjcf()
    assert first.tables is ours.tables


def test_what_no_engine_need_look_at_is_refused(ours):
    with pytest.raises(SpecError, match="not from a context"):
        ours.reset(Context(observations={}, actions=np.zeros((1, 0, 1))))
    with pytest.raises(SpecError, match=r"rail\.vel"):
        ours.reset(Values.of({"start:rail.vell": 0.0}))
    with pytest.raises(AddressError, match=r"no parameter 'body:cart\.masse'"):
        ours.with_belief(Belief(parameters=(Parameter(name="body:cart.masse", value=1.0),)))


def test_compiling_a_scene_loads_no_kind_of_world():
    program = (
        "import sys, sameworld.worlds.compiled.believed\n"
        "kinds = ('sameworld.worlds.explicit', 'sameworld.worlds.differentiable', 'jax')\n"
        "sys.exit(' '.join(k for k in kinds if k in sys.modules) or 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
