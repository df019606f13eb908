"""How the tossed cube is fitted: the one recipe of the demo, the quick start and benchmarks."""

from __future__ import annotations

from sameworld.stages.identify import IdentifyConfig

__all__ = ["CUBE_CONTACT", "CUBE_INERTIAL", "cube_config"]

#: Friction, torsional friction, solref and the height of the board; starts are always unknown.
CUBE_CONTACT = (
    "pair:cube_box+floor.friction.slide",
    "pair:cube_box+floor.friction.spin",
    "pair:cube_box+floor.solref.*",
    "geom:floor.pos.z",
)
#: Where the mass sits: published as the centre of a solid cube, never measured.
CUBE_INERTIAL = ("body:cube.com.*", "body:cube.inertia.*")

_WARMUP = 5
_ROWS = 35
_RATE = 148.0


def cube_config(*, seed: int = 0, inertial: bool = True, holdout: float = 0.2) -> IdentifyConfig:
    """Options for fitting recorded tosses of the cube.

    Windows hold the flight, the first impact and a little more (35 rows at 148 Hz): after several
    impacts a toss has forgotten its start.

    Args:
        seed: Seed of everything random.
        inertial: Whether the centre of mass and the inertia are free too.
        holdout: Share of the tosses kept out for the gate.
    """
    return IdentifyConfig(
        free=(*CUBE_CONTACT, *CUBE_INERTIAL) if inertial else CUBE_CONTACT,
        warmup=_WARMUP,
        window=_ROWS / _RATE,
        most_windows=1,
        candidates=8,
        polished=1,
        holdout=holdout,
        seed=seed,
    )
