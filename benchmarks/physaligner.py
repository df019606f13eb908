"""Arm gains: fourteen servo gains of a Panda, against annealing, plain TRF and a learned surrogate.

Run: ``python -m benchmarks.physaligner [--out FILE.json]``.

SIMPLER aligns an arm by annealing its stiffness and damping; EmbodieDreamer's PhysAligner reports
3.74 % less error and 89.91 % less time than that by gradients through a learned surrogate. Here
everybody fits the same recordings by the same simulator (``gain_problem``), twenty seeds. Scored
are a held-out recording and the mean relative error of the gains; CPU is process time of the whole
fit. ``motion`` is the root mean square distance to the motion behind the held-out recording,
``heldout`` and chi^2/N (1 for the truth) count its noise, too; ``fit_chi2`` is chi^2/N of the
recording that was fitted.

Annealing has SIMPLER's budget: rounds of 2000 rollouts, each in half of the last one's box around
the best point, as its authors narrowed theirs by hand. Its schedule is the frozen one of the
shoot-out. Keys: ``predict_ratio_worst``, distance to the held-out motion over annealing's on the
worst seed, ``heldout_ratio_worst`` and ``chi2_ratio_worst``, the same with noise;
``fit_chi2_ratio_worst``, of what was fitted;
``error_ratio_median``, error of the gains over annealing's on the median seed;
``cpu_over_annealing``. Nine seeds had been looked at before the motion was scored: with noise, two
of them could not tell annealing from the rest, since it came down to the noise as well.

Source: Li et al., "Evaluating real-world robot manipulation policies in simulation" (SIMPLER),
arXiv:2405.05941; EmbodieDreamer, arXiv:2507.05198.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json
from benchmarks.gain_problem import (
    FACTOR_HIGH,
    FACTOR_LOW,
    NAMES,
    NOISE_SD,
    NOMINAL,
    GainProblem,
    RolloutCounter,
    episode_of,
    gain_scene,
    make_problem,
    simulate,
)
from benchmarks.opponents import annealing, plain_trf, surrogate
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds import build
from sameworld.worlds.build import Kind

Array = NDArray[np.float64]
Method = Callable[[GainProblem, RolloutCounter], Array]

SEEDS = 20
#: Seeds that the differentiable world is run on.
DIFFERENTIABLE = 1
#: Rollouts of a round of annealing, rounds, and how much narrower the box of each is.
ROUND, ROUNDS, NARROWER = 2000, 4, 0.5
FIGURES = (
    "motion_rms_mrad",
    "heldout_rms_mrad",
    "chi2",
    "fit_chi2",
    "error_pct",
    "cpu_seconds",
    "rollouts",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on one seed; units in the names of ``FIGURES``."""

    motion_rms_mrad: float
    heldout_rms_mrad: float
    chi2: float
    fit_chi2: float
    error_pct: float
    cpu_seconds: float
    rollouts: float


# ---- methods: factors [14] ---------------------------------------------------------------------


def ours(problem: GainProblem, counter: RolloutCounter, *, kind: Kind = "explicit") -> Array:
    """``sameworld.identify`` with plain squares and noise weights; the noise is stated for all."""
    config = IdentifyConfig(
        free=NAMES, weighting="noise", loss="linear", rounds=1, holdout=0.0, seed=problem.seed
    )
    recorded = [episode_of(problem.fitted, "fitted")]
    _, _, result = identify(build(gain_scene(), kind), recorded, config=config)
    counter.rollouts += result.rollouts
    return np.array([result.verdict(name).value for name in NAMES]) / NOMINAL


def annealed(problem: GainProblem, counter: RolloutCounter) -> Array:
    """Annealing in boxes that shrink around the best point."""
    rng, centre, width = np.random.default_rng(problem.seed), np.full(len(NAMES), 0.5), 1.0
    for _ in range(ROUNDS):
        low = np.clip(centre - width / 2, 0.0, 1.0 - width)

        def error(box: Array, low: Array = low, width: float = width) -> float:
            off = _off(problem, (low + width * box)[None], counter)[0]
            return float(np.mean(np.linalg.norm(off, axis=1)))

        centre = low + width * annealing.anneal(error, len(NAMES), most=ROUND, rng=rng)
        width *= NARROWER
    return _factors(centre)


def trusting(problem: GainProblem, counter: RolloutCounter) -> Array:
    """Plain least squares by forward differences."""

    def residuals(logs: Array) -> Array:
        factors = np.exp(np.atleast_2d(logs))
        off = simulate(problem.fitted.controls, factors, counter) - problem.fitted.positions
        return (off / NOISE_SD).reshape(len(factors), -1)

    return np.exp(plain_trf.descend(residuals, len(NAMES)))


def surrogated(problem: GainProblem, counter: RolloutCounter) -> Array:
    """Descent through a network trained on simulated errors."""

    def errors(points: Array) -> Array:
        return np.sqrt(np.mean(_off(problem, points, counter) ** 2, axis=1))

    return _factors(surrogate.descend(errors, len(NAMES), seed=problem.seed))


METHODS: dict[str, tuple[str, Method, int]] = {
    "ours": ("sameworld identify, explicit", ours, SEEDS),
    "differentiable": (
        "sameworld identify, differentiable",
        partial(ours, kind="differentiable"),
        DIFFERENTIABLE,
    ),
    "annealing": ("annealing, shrinking rounds", annealed, SEEDS),
    "trf": ("plain TRF, differences", trusting, SEEDS),
    "surrogate": ("descent through a surrogate", surrogated, SEEDS),
}


def _factors(box: Array) -> Array:
    """Factors at points of the unit box, logarithmically; 0.5 is nominal."""
    return FACTOR_LOW * (FACTOR_HIGH / FACTOR_LOW) ** box


def _off(problem: GainProblem, box: Array, counter: RolloutCounter) -> Array:
    """Simulated minus measured positions [N, T+1, 7] at points [N, 14] of the box."""
    return simulate(problem.fitted.controls, _factors(box), counter) - problem.fitted.positions


# ---- scores ------------------------------------------------------------------------------------


def scored(problem: GainProblem, method: Method) -> Row:
    """Fit by a method, predict the held-out recording."""
    counter, began = RolloutCounter(), time.process_time()
    factors = method(problem, counter)
    spent = time.process_time() - began
    predicted = simulate(problem.held.controls, factors[None])[0]
    off, apart = predicted - problem.held.positions, predicted - problem.held.motion
    left = simulate(problem.fitted.controls, factors[None])[0] - problem.fitted.positions
    return Row(
        motion_rms_mrad=1e3 * float(np.sqrt(np.mean(apart**2))),
        heldout_rms_mrad=1e3 * float(np.sqrt(np.mean(off**2))),
        chi2=float(np.mean((off / NOISE_SD) ** 2)),
        fit_chi2=float(np.mean((left / NOISE_SD) ** 2)),
        error_pct=100 * float(np.mean(np.abs(factors / problem.true_factors - 1))),
        cpu_seconds=spent,
        rollouts=float(counter.rollouts),
    )


def compare(first: int) -> dict[str, list[Row]]:
    """Every method on every seed from ``first``, seeds outermost."""
    found: dict[str, list[Row]] = {key: [] for key in METHODS}
    for turn in range(SEEDS):
        problem = make_problem(first + turn)
        for key, (_, method, seeds) in METHODS.items():
            if turn < seeds:
                found[key].append(scored(problem, method))
    return found


def ratios(found: dict[str, list[Row]], key: str) -> dict[str, float]:
    """A method against annealing, seed by seed."""
    pairs = list(zip(found[key], found["annealing"], strict=False))
    cpu = [float(np.median([row.cpu_seconds for row in side])) for side in zip(*pairs, strict=True)]
    return {
        "predict_ratio_worst": max(a.motion_rms_mrad / b.motion_rms_mrad for a, b in pairs),
        "heldout_ratio_worst": max(a.heldout_rms_mrad / b.heldout_rms_mrad for a, b in pairs),
        "chi2_ratio_worst": max(a.chi2 / b.chi2 for a, b in pairs),
        "fit_chi2_ratio_worst": max(a.fit_chi2 / b.fit_chi2 for a, b in pairs),
        "error_ratio_median": float(np.median([a.error_pct / b.error_pct for a, b in pairs])),
        "cpu_over_annealing": cpu[0] / cpu[1],
    }


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    found = compare(SEEDS * opts.seed)
    numbers = ratios(found, "ours")
    numbers |= {f"differentiable_{k}": v for k, v in ratios(found, "differentiable").items()}
    numbers["differentiable_first_cpu_seconds"] = found["differentiable"][0].cpu_seconds
    table: list[tuple[object, ...]] = []
    for key, rows in found.items():
        medians = {f: float(np.median([getattr(row, f) for row in rows])) for f in FIGURES}
        numbers |= {f"{key}_{figure}": value for figure, value in medians.items()}
        numbers[f"{key}_chi2_worst"] = max(row.chi2 for row in rows)
        table.append((METHODS[key][0], *medians.values(), numbers[f"{key}_chi2_worst"]))
    show("Fourteen gains, medians over seeds", ("method", *FIGURES, "worst chi2"), table)
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
