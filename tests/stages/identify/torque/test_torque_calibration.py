"""Intervals of torque fits hold what they promise, also where noise is correlated in time."""

import numpy as np
import pytest
from torque_recordings import BIAS, DAMPING, FRICTION, JOINTS, TRUTH, arm, recorded

from sameworld.core import Values
from sameworld.stages.identify.torque import TorqueConfig, fit_torque, read_motion
from sameworld.stages.identify.torque.base import NUMBERS, determined_combinations

FREE = ("body:*", "joint:*.damping", "joint:*.frictionloss", "sensor:*.bias")
CONFIG = TorqueConfig(free=FREE, cutoff=15.0, trim=0.3)
SEEDS = range(5)


def truth(world):
    vectors = world.inertias(world.mechanism.bodies, Values.of(TRUTH))
    true = {
        f"body:{body}.{number}": vectors[row, k]
        for row, body in enumerate(world.mechanism.bodies)
        for k, number in enumerate(NUMBERS)
    }
    for k, joint in enumerate(JOINTS):
        true[f"joint:{joint}.damping"] = DAMPING[k]
        true[f"joint:{joint}.frictionloss"] = FRICTION[k]
        true[f"sensor:tau{k + 1}.bias"] = BIAS[k]
    return true


@pytest.mark.parametrize("rho", [0.0, 0.98])
def test_z_scores_are_about_one_and_intervals_cover(rho):
    world, terms, combinations, inside = arm(), [], [], []
    true = truth(world)
    for seed in SEEDS:
        episode = recorded(seed, rho=rho, noise=0.1, seconds=5.0)
        motion = read_motion(world, episode, CONFIG)
        model = fit_torque(world, [motion], channels=("tau1", "tau2", "tau3"), config=CONFIG)
        rows = [v for v in model.verdicts if not v.name.startswith("body:")]
        terms += [(v.value - true[v.name]) / v.std for v in rows if v.verdict != "at bound"]
        coefficients = model.layout.coefficients(model.solution.x)[0]
        names = [f"body:{b}.{n}" for b in model.layout.bodies for n in NUMBERS]
        names += [model.layout.terms[k].parameter.name for k in model.layout.free]
        found = dict(zip(names, coefficients, strict=True))
        for row in determined_combinations(
            model.pieces, model.layout, model.solution.x, model.spread.covariance, 0.5
        ):
            error = sum(w * (found[name] - true[name]) for name, w in row.weights.items())
            combinations.append(error / row.std)
        fresh = read_motion(world, recorded(seed + 100, rho=rho, noise=0.1, seconds=3.0), CONFIG)
        miss = np.abs(model.predict(fresh) - fresh.torque)
        inside.append((miss <= model.half_width(fresh)).mean())
    assert len(combinations) >= 10 * len(SEEDS)
    assert 0.65 < np.sqrt(np.mean(np.square(terms))) < 1.4
    assert 0.7 < np.sqrt(np.mean(np.square(combinations))) < 1.3
    assert 0.82 < np.mean(inside) < 0.97
