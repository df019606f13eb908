"""Scenes for control: what they are for happens, and its derivative is MuJoCo's."""

import numpy as np
import pytest

import sameworld as sw
from sameworld.core import Values, rollout
from sameworld.zoo import scene

TICKS = 80


def _swing() -> np.ndarray:
    actions = np.zeros((1, TICKS, 2))
    actions[0, :20], actions[0, 20:35] = (2.0, 0.35), (-1.0, 0.0)
    return actions


def _cast() -> np.ndarray:
    """Targets of the hand that draw the puck forward, in 1.6 s at 50 Hz."""
    time = 0.02 * np.arange(TICKS)
    x, y = 0.2 * np.sin(2 * np.pi * time), 0.2 * np.minimum(time, 1)
    return np.stack([np.where(time < 1, x, 0.0), y], axis=1)[None]


def test_the_thrower_s_ball_leaves_the_cup_and_flies_freely():
    signals = rollout(sw.build(scene("thrower")), Values.none(), _swing()).signals
    speed = signals["ball_x.vel"][0]
    np.testing.assert_allclose(speed[40:], speed[40], atol=1e-9)
    assert speed[40] > 1.0
    fall = np.diff(signals["ball_z.vel"][0, 40:]) / 0.01
    np.testing.assert_allclose(fall, -9.81, atol=1e-6)


def test_the_tether_s_puck_is_cast_and_comes_to_rest():
    signals = rollout(sw.build(scene("tether")), Values.none(), _cast()).signals
    assert signals["puck_y.vel"].max() > 0.3
    assert abs(signals["puck_x.vel"][0, -1]) + abs(signals["puck_y.vel"][0, -1]) < 1e-3
    assert np.hypot(signals["puck_x.pos"][0, -1], signals["puck_y.pos"][0, -1]) > 0.05


def test_the_reacher_s_links_answer_every_torque():
    actions = np.zeros((4, TICKS, 4))
    actions[np.arange(4), :, np.arange(4)] = 0.2
    tips = rollout(sw.build(scene("reacher")), Values.none(), actions).signals["tip"]
    moved = np.linalg.norm(tips[:, -1] - tips[:, 0], axis=1)
    assert (moved > 0.05).all()


def test_reverse_mode_through_the_cup_is_the_engine_s_difference():
    pytest.importorskip("jax")
    world, engine = sw.build(scene("thrower"), "differentiable"), sw.build(scene("thrower"))
    actions, weights = _swing(), {"ball_x.pos": np.zeros((1, TICKS + 1, 1))}
    weights["ball_x.pos"][0, -1] = 1.0
    slope = world.pullback(world.spec.start.mean, actions, weights).actions
    direction = np.random.default_rng(0).normal(size=actions.shape) * (np.abs(actions) > 0)
    errors = []
    for step in (1e-4, 1e-5, 1e-6):
        moved = np.concatenate([actions - step * direction, actions + step * direction])
        ends = rollout(engine, Values.none(), moved).signals["ball_x.pos"][:, -1]
        difference = (ends[1] - ends[0]) / (2 * step)
        errors.append(abs(np.sum(slope * direction) / difference - 1))
    assert min(errors) < 1e-3, errors


def test_the_tether_moves_in_jax_as_in_mujoco():
    """Its bodies slide, so that MuJoCo's implicit integration keeps no cross terms of tendons."""
    pytest.importorskip("jax")
    ours, theirs = (
        rollout(sw.build(scene("tether"), kind), Values.none(), _cast()).signals
        for kind in ("differentiable", "explicit")
    )
    for channel in ("hand_x.pos", "knot_x.pos", "puck_x.pos", "puck_y.pos"):
        np.testing.assert_allclose(ours[channel], theirs[channel], atol=1e-6)
