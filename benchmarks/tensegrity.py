"""A three-bar tensegrity identified from one throw: what is known, and what is known in ratios.

Run: ``python -m benchmarks.tensegrity [--seed N] [--out FILE.json]``.

The robot of ``sameworld.zoo`` (three rods, nine cables that only pull) is thrown onto a floor with
random velocities. Its rods are tracked for 0.96 s at 200 Hz; noise 0.5 mm and 2 mrad, that of a
camera system with markers at the ends of the rods. (The noise of the published experiments was not
at hand.) Unknown are three masses, which carry the moments along, stiffness and damping of each
cable, friction, time constant and damping ratio of the floor, and the start: 24 and 36 numbers. The
truth is drawn log-uniformly within a factor of 1.5 around what is believed.

Two questions. With one mass given, is everything else found? Key ``worst_parameter_pct``, the
largest relative error of the other 23. The differentiable world, which compiles for minutes in
every round, is run for the first two rounds; ``short_`` keys are those of the explicit world after
as many. With nothing given, does the verdict say that masses, stiffness and damping are known only
in combination, and does it name their common scale? Key ``scale_named``, see ``scale_is_named``.

Long throws forget their start at every impact, and a cost over all of one has many minima. So
the recording is cut into pieces with starts of their own, and pieces are joined as parameters get
better: 0.06, 0.12, 0.24 and 0.48 s. Where a longer piece begins, the start of the shorter one is
its first guess and, five times as uncertain, its prior. A round that leaves more unexplained than
the shorter pieces did is tried again with fresh starts, and if that does not help it is not taken.
Seeds 0 and 1 were looked at while this was settled; seed 2 is published.

Source: K. Wang, W. R. Johnson, S. Lu, X. Huang, J. Booth, R. Kramer-Bottiglio, M. Aanjaneya,
K. Bekris, "Real2Sim2Real transfer for control of cable-driven robots via a differentiable physics
engine", IROS 2023, arXiv 2209.06261, which identifies from one random trajectory cut into
segments; K. Wang, M. Aanjaneya, K. Bekris, "Sim2Sim evaluation of a novel data-efficient
differentiable physics engine for tensegrity robots", IROS 2021, arXiv 2011.04929.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json
from sameworld.core import Belief, Episode, Scene, Values, World
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.worlds import build
from sameworld.worlds.build import Kind
from sameworld.zoo import TENSEGRITY_FLOOR, TENSEGRITY_SCALED, scene, tensegrity_throw

#: Length of the recording, and of the pieces that it is cut into, one round after the other [s].
SECONDS = 0.96
PIECES = (0.06, 0.12, 0.24, 0.48)
#: How many of these rounds the differentiable world is run for: each compiles programs for minutes.
COMPILED = 2
#: How many times more uncertain a start is taken to be when it is handed on.
LOOSER = 5.0
#: Cost per row, over that of the shorter pieces, at which a round has lost its way.
WORSE = 1.1
#: Factor within which the truth lies.
SPREAD = 1.5
GIVEN = "body:rod1.mass"
FREE = (*TENSEGRITY_SCALED, *TENSEGRITY_FLOOR)
#: Largest difference between exponents that count as equal.
EQUAL = 0.05
#: Rows with one mass given: label, prefix of keys, kind of world, rounds.
ROWS: tuple[tuple[str, str, Kind, int], ...] = (
    ("explicit", "", "explicit", len(PIECES)),
    ("explicit, shorter pieces", "short_", "explicit", COMPILED),
    ("differentiable, shorter pieces", "differentiable_", "differentiable", COMPILED),
)
FIGURES = "worst_parameter_pct", "median_parameter_pct", "z_rms", "cpu_seconds"


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One throw and the truth behind it."""

    scene: Scene
    episode: Episode
    truth: Values


def make_problem(seed: int) -> Problem:
    """Draw the truth and throw the robot."""
    believed = scene("tensegrity")
    spread = np.log(SPREAD) * np.random.default_rng([seed, 7]).uniform(-1, 1, len(FREE))
    nominal = np.array([believed.belief[name].value for name in FREE])
    truth = Values(names=FREE, array=(nominal * np.exp(spread))[None])
    thrown = tensegrity_throw(build(believed), truth=truth, seconds=SECONDS, seed=seed)
    return Problem(scene=believed, episode=thrown, truth=truth)


def fit(
    problem: Problem, kind: Kind, free: tuple[str, ...], pieces: Sequence[float] = PIECES
) -> tuple[IdentifyResult, float]:
    """Fit ``free`` with pieces that get longer; what is not free is given.

    Returns:
        The result of the longest pieces and the CPU time of everything [s].
    """
    began = time.process_time()
    world = build(_told(problem, free), kind)
    taken = _Round(values=world.parameters, pieces=(), result=None)
    for length in pieces:
        handed = _cut(problem.episode, length, taken.pieces)
        tried = _round(world, taken.values, handed, free)
        if tried.unexplained > WORSE * taken.unexplained:
            fresh = _cut(problem.episode, length, ())
            again = _round(world, tried.values, fresh, free)
            tried = min(tried, again, key=lambda r: r.unexplained)
        if tried.unexplained > WORSE * taken.unexplained:
            break
        taken = tried
    assert taken.result is not None
    return taken.result, time.process_time() - began


@dataclass(frozen=True, kw_only=True, eq=False)
class _Round:
    """What pieces of one length gave: values to go on from, pieces with their starts."""

    values: Belief
    pieces: tuple[Episode, ...]
    result: IdentifyResult | None

    @property
    def unexplained(self) -> float:
        """Cost per row; infinite before anything was fitted."""
        if self.result is None:
            return np.inf
        return self.result.cost / sum(len(c) for e in self.pieces for c in e.channels)


def _round(
    world: World, values: Belief, pieces: tuple[Episode, ...], free: tuple[str, ...]
) -> _Round:
    """Fit pieces from given values; what was known before the first round stays the prior."""
    moved = {name: values[name].value for name in free}
    begun = world.with_belief(world.parameters.with_values(moved))
    fitted, placed, result = identify(begun, pieces, config=_config(free))
    return _Round(values=fitted.parameters, pieces=placed, result=result)


def _config(free: tuple[str, ...]) -> IdentifyConfig:
    return IdentifyConfig(
        free=free,
        window=np.inf,
        starts="joint",
        weighting="noise",
        loss="cauchy",
        rounds=3,
        search="none",
        holdout=0.0,
    )


def _told(problem: Problem, free: tuple[str, ...]) -> Scene:
    """The scene with true values of what is not fitted."""
    known = {n: float(problem.truth.column(n)[0]) for n in FREE if n not in free}
    return problem.scene.with_belief(problem.scene.belief.with_values(known))


def _cut(episode: Episode, length: float, before: Sequence[Episode]) -> tuple[Episode, ...]:
    """Pieces of ``length`` s, which begin with what shorter ones found."""
    count = round(SECONDS / length)
    starts = {round(e.begin, 6): _looser(e.start) for e in before}
    cuts = [
        episode.window(k * length, (k + 1) * length, id=f"{episode.id}_{k}") for k in range(count)
    ]
    return tuple(replace(c, start=starts.get(round(c.begin, 6), Belief())) for c in cuts)


def _looser(start: Belief) -> Belief:
    return Belief(parameters=tuple(replace(p, std=LOOSER * p.std) for p in start.parameters))


# ---- numbers -----------------------------------------------------------------------------------


def errors(problem: Problem, result: IdentifyResult) -> NDArray[np.float64]:
    """Relative error of every fitted parameter [P]."""
    rows = result.verdicts
    return np.array([row.value / float(problem.truth.column(row.name)[0]) - 1 for row in rows])


def numbers_of(problem: Problem, result: IdentifyResult, cpu: float) -> dict[str, float]:
    """Errors and cost of one fit."""
    off = np.abs(errors(problem, result))
    spread = np.array([row.std / row.value for row in result.verdicts])
    return {
        "worst_parameter_pct": 100 * float(off.max()),
        "median_parameter_pct": 100 * float(np.median(off)),
        "z_rms": float(np.sqrt(np.mean((off / spread) ** 2))),
        "cpu_seconds": cpu,
    }


def widest(result: IdentifyResult) -> dict[str, float]:
    """Exponents of what the recording leaves open most, the largest being 1."""
    posterior = result.posterior
    value = posterior.mean.array[0]
    relative = posterior.covariance / np.outer(value, value)
    direction = np.linalg.eigh(relative)[1][:, -1]
    direction = direction / direction[np.argmax(np.abs(direction))]
    return dict(zip(posterior.names, direction.tolist(), strict=True))


def scale_is_named(result: IdentifyResult) -> bool:
    """Whether the result alone tells which common scale it cannot know.

    Every mass, stiffness and damping must be ``only in combination``, each with all the others as
    its partners; nothing of the floor may be. What is left open most must be a product of all of
    them with equal exponents, and of nothing else.
    """
    verdicts = {row.name: row for row in result.verdicts}
    shares = widest(result)
    named = [shares[name] for name in TENSEGRITY_SCALED]
    others = [abs(shares[name]) for name in TENSEGRITY_FLOOR]
    return (
        all(verdicts[name].verdict == "only in combination" for name in TENSEGRITY_SCALED)
        and all(len(verdicts[n].partners) == len(named) - 1 for n in TENSEGRITY_SCALED)
        and all(verdicts[name].verdict == "determined" for name in TENSEGRITY_FLOOR)
        and max(named) - min(named) <= EQUAL
        and max(others) <= EQUAL
    )


def ratio_error(problem: Problem, result: IdentifyResult) -> float:
    """Largest error of masses, stiffness and damping over their geometric mean [%]."""
    found = dict(zip((row.name for row in result.verdicts), errors(problem, result), strict=True))
    logs = np.log1p(np.array([found[name] for name in TENSEGRITY_SCALED]))
    return 100 * float(np.abs(np.expm1(logs - logs.mean())).max())


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    problem = make_problem(opts.seed)
    numbers: dict[str, float] = {}
    table: list[tuple[object, ...]] = []
    known = tuple(name for name in FREE if name != GIVEN)
    for label, prefix, kind, rounds in ROWS:
        result, cpu = fit(problem, kind, known, PIECES[:rounds])
        found = numbers_of(problem, result, cpu)
        numbers |= {prefix + key: value for key, value in found.items()}
        table.append((label, *(found[key] for key in FIGURES)))
    result, cpu = fit(problem, "explicit", FREE)
    numbers |= {
        "scale_named": float(scale_is_named(result)),
        "scaled_only_in_combination": float(
            sum(result.verdict(n).verdict == "only in combination" for n in TENSEGRITY_SCALED)
        ),
        "scale_ratios_worst_pct": ratio_error(problem, result),
        "scale_cpu_seconds": cpu,
    }
    show("Three-bar tensegrity, one throw, one mass given", ("fit", *FIGURES), table)
    show("Nothing given", ("key", "value"), [(k, v) for k, v in numbers.items() if "scale" in k])
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
