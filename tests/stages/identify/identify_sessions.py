"""Recordings in sessions whose masses differ."""

from dataclasses import replace

import numpy as np
from identify_recordings import DAMPING, MASS, PENDULUM_NOISE, quick, record

from sameworld.zoo import AnalyticPendulum

POPULATION, DAMPED = 0.8, 0.05
LOUD = {"pivot.pos": 0.1, "pivot.vel": 0.5}


def in_sessions(
    seed, *, sessions=6, episodes=4, apart=0.2, ticks=40, noise=PENDULUM_NOISE, draws=None
):
    """Recordings of a pendulum whose bob was changed between sessions, and the bobs' masses."""
    world = AnalyticPendulum(substeps=1)
    rng = np.random.default_rng([seed, 99])
    normal = rng.normal(size=sessions) if draws is None else np.asarray(draws)
    masses = POPULATION * np.exp(apart * normal)
    found = []
    for s, mass in enumerate(masses.tolist()):
        truth = {MASS: mass, DAMPING: DAMPED}
        recorded = record(
            world, episodes, truth=truth, noise=noise, ticks=ticks, seed=1000 * seed + s
        )
        found += [replace(e, id=f"s{s}{e.id}", session_id=f"s{s}") for e in recorded]
    return world, found, masses


def per_session(**options):
    """Quick options with a mass per session."""
    return quick(MASS, DAMPING, per_session=(MASS,), rounds=8, **options)
