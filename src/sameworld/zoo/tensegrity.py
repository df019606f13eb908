"""A three-bar tensegrity: what is unknown about it, and a throw of it onto the floor.

Three rods that never touch are held apart by nine cables that only pull. Nothing that drives them
has a known strength, so the motion shows ratios of masses, stiffness and damping only: all of them
doubled, the same throw comes out.

Source: the robot and the question are those of K. Wang, W. R. Johnson, S. Lu, X. Huang, J. Booth,
R. Kramer-Bottiglio, M. Aanjaneya, K. Bekris, "Real2Sim2Real transfer for control of cable-driven
robots via a differentiable physics engine", IROS 2023, arXiv 2209.06261; sizes and numbers of this
scene are its own. The twist of 150 degrees at which such a prism stands by itself: H. Kenner,
"Geodesic Math and How to Use It", 1976.
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import SpecError
from sameworld.core.manifolds import compose, quat_exp
from sameworld.core.rollout import rollout
from sameworld.core.values import Values
from sameworld.core.world import World

__all__ = [
    "TENSEGRITY_CABLES",
    "TENSEGRITY_FLOOR",
    "TENSEGRITY_NOISE",
    "TENSEGRITY_SCALED",
    "tensegrity_throw",
]

_RODS = ("rod1", "rod2", "rod3")
#: Names of the nine cables: two triangles and the sides between them.
TENSEGRITY_CABLES = tuple(f"{kind}{k}" for kind in ("bottom", "top", "side") for k in (1, 2, 3))
#: What has a common scale that no throw shows: masses, stiffness and damping.
TENSEGRITY_SCALED = (
    *(f"body:{rod}.mass" for rod in _RODS),
    *(f"tendon:{cable}.stiffness" for cable in TENSEGRITY_CABLES),
    *(f"tendon:{cable}.damping" for cable in TENSEGRITY_CABLES),
)
#: What describes the contact with the floor; accelerations are scaled, not forces.
TENSEGRITY_FLOOR = (
    "geom:floor.friction.slide",
    "geom:floor.solref.timeconst",
    "geom:floor.solref.dampratio",
)
#: Noise of the tracked rods: position [m] and orientation [rad], as of markers 0.36 m apart.
TENSEGRITY_NOISE = (5e-4, 2e-3)

#: Mean velocity of a throw [m/s], and spreads of each rod's own [m/s] and turning [rad/s].
_THROWN = (0.8, 0.5, -1.0)
_SHAKEN, _TURNED = 0.5, 4.0


def tensegrity_throw(
    world: World, *, truth: Values | None = None, seconds: float = 1.0, seed: int = 0
) -> Episode:
    """Throw the robot onto the floor, every rod with a velocity of its own, and track the rods.

    Args:
        world: A world of the scene ``tensegrity``, explicit or differentiable.
        truth: Parameter values that play reality, one element; the world's means if not given.
        seconds: Length of the recording [s].
        seed: Seed of the throw and of the noise.

    Returns:
        An episode with ``rodK.pos`` [T, 3] m and ``rodK.quat`` [T, 4] (body to world, wxyz) for
        K = 1, 2, 3 at every control period, with the noise ``TENSEGRITY_NOISE``. Its start is
        unknown.

    Raises:
        SpecError: The world holds no such rods.
        RolloutError: No robot can have these parameters, or the simulation fails.
    """
    lacking = [r for r in _RODS if f"start:{r}.omega.x" not in world.spec.start.names]
    if lacking:
        raise SpecError(
            f"The world has no free rods {lacking}. Build it from zoo.scene('tensegrity')."
        )
    throw, noise = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    ticks = max(1, round(seconds / world.spec.period))
    actions = np.zeros((1, ticks, world.spec.action_size))
    parameters = Values.none() if truth is None else truth
    start = _thrown(world, throw)
    found = rollout(world, start, actions, parameters=parameters, raise_on_failure=True)
    time: Array = world.spec.period * np.arange(ticks + 1, dtype=np.float64)
    channels = [c for rod in _RODS for c in _tracked(rod, time, found.signals, noise)]
    return Episode(id=f"throw{seed}", channels=tuple(channels), source="mujoco")


def _thrown(world: World, rng: np.random.Generator) -> Values:
    """The start: every rod flies along, and shakes and turns by itself."""
    spec = world.spec.start
    start = {n: float(v) for n, v in zip(spec.names, spec.mean.array[0], strict=True)}
    for rod in _RODS:
        for axis, mean in zip("xyz", _THROWN, strict=True):
            start[f"start:{rod}.vel.{axis}"] += mean + _SHAKEN * float(rng.standard_normal())
        for axis in "xyz":
            start[f"start:{rod}.omega.{axis}"] += _TURNED * float(rng.standard_normal())
    return Values.of(start)


def _tracked(
    rod: str, time: Array, signals: Signals, rng: np.random.Generator
) -> tuple[Channel, Channel]:
    """Noisy position and orientation of one rod."""
    place, turn = signals[f"{rod}.pos"][0], signals[f"{rod}.quat"][0]
    off: Array = TENSEGRITY_NOISE[0] * rng.standard_normal((len(time), 3))
    tilt: Array = TENSEGRITY_NOISE[1] * rng.standard_normal((len(time), 3))
    return (
        Channel(
            name=f"{rod}.pos", time=time, values=place + off, unit="m", noise=TENSEGRITY_NOISE[0]
        ),
        Channel(
            name=f"{rod}.quat",
            time=time,
            values=compose(turn, quat_exp(tilt)),
            unit="rad",
            noise=TENSEGRITY_NOISE[1],
        ),
    )
