"""Throw a tensegrity robot: which of its numbers one throw shows, and which only as ratios.

Twice the masses, stiffness and damping give the same throw, so no fit can tell them apart. The
verdict says so by itself. Ratios and the floor it does find, from one noisy recording cut into
pieces that get longer, because a long throw forgets its start at every impact.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sameworld import Belief, Episode, IdentifyConfig, IdentifyResult, Values, build, identify
from sameworld.zoo import TENSEGRITY_FLOOR, TENSEGRITY_SCALED, scene, tensegrity_throw

FREE = (*TENSEGRITY_SCALED, *TENSEGRITY_FLOOR)
SECONDS, PIECES = 0.96, (0.06, 0.12)


def hidden() -> Values:
    """What reality is like: every number up to a factor of 1.3 from what is believed."""
    believed = scene("tensegrity").belief
    factors = np.exp(np.random.default_rng(11).uniform(-1, 1, len(FREE)) * math.log(1.3))
    nominal = np.array([believed[name].value for name in FREE])
    return Values(names=FREE, array=(nominal * factors)[None])


def cut(throw: Episode, length: float, before: tuple[Episode, ...]) -> tuple[Episode, ...]:
    """Pieces of ``length`` s; where a shorter piece began, its start is a loose prior."""
    known = {round(e.begin, 6): e.start.parameters for e in before}
    pieces: list[Episode] = []
    for k in range(round(SECONDS / length)):
        piece = throw.window(k * length, (k + 1) * length, id=f"piece{k}")
        start = known.get(round(piece.begin, 6), ())
        loose = Belief(parameters=tuple(replace(p, std=5 * p.std) for p in start))
        pieces.append(replace(piece, start=loose))
    return tuple(pieces)


def run() -> IdentifyResult:
    """Throw once, fit pieces of 60 ms, then of 120 ms."""
    world, pieces = build(scene("tensegrity")), tuple[Episode, ...]()
    given = world.parameters
    throw = tensegrity_throw(world, truth=hidden(), seconds=SECONDS, seed=3)
    config = IdentifyConfig(
        free=FREE, window=np.inf, starts="joint", search="none", rounds=2,
        weighting="noise", holdout=0.0,
    )  # fmt: skip
    for length in PIECES:
        pieces = cut(throw, length, pieces)
        fitted, pieces, result = identify(world, pieces, config=config)
        found = {name: fitted.parameters[name].value for name in FREE}
        world = world.with_belief(given.with_values(found))
    return result


def check() -> None:
    """The scale is not known, and the result says so; ratios and the floor are known."""
    result, truth = run(), hidden()
    off = {row.name: math.log(row.value / truth.column(row.name)[0]) for row in result.verdicts}
    for name in TENSEGRITY_SCALED:
        assert result.verdict(name).verdict == "only in combination", name
    for name in TENSEGRITY_FLOOR:
        assert result.verdict(name).verdict == "determined", name
        assert abs(off[name]) < 0.1, off[name]
    mass = off["body:rod1.mass"]
    assert all(abs(off[n] - mass) < 0.1 for n in FREE if n.endswith((".mass", ".stiffness")))


if __name__ == "__main__":
    for row in run().verdicts:
        print(f"{row.name}: {row.value:.4g} [{row.low:.4g}, {row.high:.4g}] {row.verdict}")
