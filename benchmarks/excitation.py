"""Designed excitation of a Panda against random excitation under the same limits.

Run: ``python -m benchmarks.excitation [--seed N] [--out FILE.json]``.

Eight parameters of the arm (two masses, damping, friction and stiffness of two joints) are known to
about a factor of two; joint positions are measured with 1 mrad of white noise. Three motions of
four seconds are designed, and 20 sets of three random Fourier motions are drawn. Both keep to half
of the manufacturer's speeds and accelerations, the joint ranges and a box for the flange; random
motions too are as large as these allow.

``logdet_gain`` is how much lower the predicted log-determinant of the covariance is than for the
median random set. Then every random set and the designed one are recorded in simulation, set k
with the k-th truth (factors log-uniform in ``FACTORS``), start and noise, and fitted by
``identify`` from the nominal values. ``realised_ratio`` is the mean error of the designed fits
over the median error of the random fits; the error is the root mean square over parameters of the
log of estimate over truth. Its 90 % interval resamples the truths.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json
from benchmarks.panda_arm import FREE, panda_limits, panda_scene
from sameworld.core.episode import Channel, Episode
from sameworld.core.rollout import rollout
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.stages.excite import ExciteConfig, Motion, appraise, excite, random_motions
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds import build

Array = NDArray[np.float64]

NOISE_SD = 1e-3
MOTIONS = 3
DURATION = 4.0
TERMS = 5
RANDOM_SETS = 20
EVALUATIONS = 200
FACTORS = (0.7, 1.4)
#: Spread of the true start around the one a motion was designed from [rad, rad/s].
START_SD = 0.01
BOOTSTRAP = 2000


def design_config(seed: int) -> ExciteConfig:
    """What is asked and what motions keep to."""
    return ExciteConfig(
        free=tuple(FREE),
        noise={"joint*.pos": NOISE_SD},
        motions=MOTIONS,
        duration=DURATION,
        limits=panda_limits(),
        terms=TERMS,
        search="cobyqa",
        candidates=32,
        polished=1,
        evaluations=EVALUATIONS,
        seed=seed,
    )


def truth_of(draw: int, seed: int) -> dict[str, float]:
    """True values of one draw."""
    rng = np.random.default_rng([seed, draw, 0])
    low, high = np.log(FACTORS)
    factors = np.exp(rng.uniform(low, high, len(FREE))).tolist()
    return {name: value * f for (name, (value, _)), f in zip(FREE.items(), factors, strict=True)}


def record(world: World, motions: Sequence[Motion], draw: int, seed: int) -> list[Episode]:
    """Recordings of motions in the world of one draw: noisy joint positions, unknown starts."""
    rng = np.random.default_rng([seed, draw, 1])
    truth = Values.of(truth_of(draw, seed))
    episodes: list[Episode] = []
    for motion in motions:
        moved = motion.start.array + START_SD * rng.standard_normal(motion.start.array.shape)
        start = Values(names=motion.start.names, array=moved)
        result = rollout(world, start, motion.actions[None], parameters=truth)
        seen = tuple(
            Channel(
                name=c.name,
                time=result.time,
                values=values[0] + NOISE_SD * rng.standard_normal(len(result.time)),
                unit=c.unit,
                noise=NOISE_SD,
            )
            for c in world.spec.observations
            if c.name.endswith(".pos")
            for values in [result.signals[c.name]]
        )
        channels = (*seen, *motion.channels(world.spec))
        episodes.append(Episode(id=motion.name, channels=channels))
    return episodes


def realised(world: World, motions: Sequence[Motion], draw: int, seed: int) -> float:
    """Error of the fit to recordings of motions, root mean square of log ratios."""
    config = IdentifyConfig(
        free=tuple(FREE),
        window=np.inf,
        weighting="noise",
        starts="joint",
        loss="linear",
        search="none",
        tolerance=1e-4,
        holdout=0.0,
        seed=seed,
    )
    _, _, result = identify(world, record(world, motions, draw, seed), config=config)
    truth = truth_of(draw, seed)
    errors = [np.log(result.verdict(name).value / truth[name]) for name in FREE]
    return float(np.sqrt(np.mean(np.square(errors))))


def ratio_interval(designed: Array, random: Array, seed: int) -> tuple[float, float]:
    """90 % bootstrap interval of the ratio over truths."""
    rng = np.random.default_rng([seed, 2])
    rows = rng.integers(0, len(designed), (BOOTSTRAP, len(designed)))
    ratios = designed[rows].mean(axis=1) / np.median(random[rows], axis=1)
    low, high = np.quantile(ratios, (0.05, 0.95)).tolist()
    return low, high


def main() -> None:
    """Design, draw, predict, record, fit, compare."""
    opts = options("Designed excitation against random excitation")
    config = design_config(opts.seed)
    world = build(panda_scene())
    began = time.process_time()
    motions, result = excite(world, config=config)
    design_cpu = time.process_time() - began
    drawn = random_motions(world, MOTIONS * RANDOM_SETS, config=config, seed=opts.seed + 7)
    sets = [drawn[MOTIONS * k : MOTIONS * (k + 1)] for k in range(RANDOM_SETS)]
    predicted = np.array([appraise(world, chosen, config=config).logdet for chosen in sets])
    random = np.array([realised(world, s, k, opts.seed) for k, s in enumerate(sets)])
    designed = np.array([realised(world, motions, k, opts.seed) for k in range(RANDOM_SETS)])
    low, high = ratio_interval(designed, random, opts.seed)
    numbers = {
        "logdet_gain": float(np.median(predicted)) - result.appraisal.logdet,
        "logdet_gain_over_best_random": float(predicted.min()) - result.appraisal.logdet,
        "realised_ratio": float(designed.mean() / np.median(random)),
        "realised_ratio_low": low,
        "realised_ratio_high": high,
        "realised_error_designed": float(designed.mean()),
        "realised_error_random_median": float(np.median(random)),
        "least_margin": min(m.share for m in result.margins),
        "design_cpu_seconds": design_cpu,
        "design_rollouts": float(result.rollouts),
        "cpu_seconds": time.process_time() - began,
    }
    rows = [(g.name, g.value, g.before, g.after) for g in result.appraisal.gains]
    show("Predicted spreads", ("parameter", "value", "before", "after"), rows)
    show("Excitation", ("key", "value"), list(numbers.items()))
    write_json(opts.out, numbers)


if __name__ == "__main__":
    main()
