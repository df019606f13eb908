"""Real cube tosses: fit on 50, predict the other 520.

Run: ``python -m benchmarks.cube_toss --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data: ContactNets cube tosses (S. Pfrommer, M. Halm, M. Posa, CoRL 2020, arXiv 2009.11193).
Split, warm-up and metric are the constants below. A toss is predicted open loop from a start that
is estimated from its first five rows of positions and rotations; those rows are not scored. Errors
at k rows are read k rows after the last warm-up row; ``position_row20`` is read at recorded row
20, which is 20 rows after the simulation starts. The nominal simulator predicts the same tosses
from the same rows.

Fitted: friction, torsional friction, solref, floor height, every start, and where the mass sits
(centre of mass, inertia). ``contact_*`` numbers come from a second fit without the last two.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from benchmarks.cube_recipe import (
    WARMUP,
    WIDTH,
    load,
    nominal,
    position_errors,
    predictions,
    turn_errors,
)
from sameworld.core.episode import Episode
from sameworld.core.manifolds import compose, continuous
from sameworld.core.prediction import Prediction
from sameworld.core.world import World
from sameworld.loops.metrics import coverage
from sameworld.maths.intervals import bootstrap
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.zoo import cube_config

#: Indices of the tosses to fit and to predict.
ORDER = np.random.default_rng(0).permutation(570)
TRAIN, TEST = ORDER[:50], ORDER[50:]
#: Rows after the last warm-up row at which errors are read.
HORIZONS = (10, 20, 40)
COLUMNS = ("px", "py", "pz", "qw", "qx", "qy", "qz")


def parts(folder: Path | None) -> tuple[tuple[Episode, ...], tuple[Episode, ...]]:
    """Tosses to fit and to predict."""
    tosses = load(folder)
    return tuple(tosses[i] for i in TRAIN), tuple(tosses[i] for i in TEST)


def at(errors: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Errors ``rows`` rows after the last warm-up row, per toss that is long enough."""
    return np.array([e[rows - 1] for e in errors if len(e) >= rows])


def paired(gain: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % bootstrap interval of paired differences."""
    found = bootstrap(gain, seed=0, level=0.95)
    return found.estimate, found.low, found.high


def errors_at_horizons(
    before: Sequence[Prediction], after: Sequence[Prediction]
) -> dict[str, float]:
    """Position and rotation errors, nominal and fitted, and their paired differences."""
    old, new = [position_errors(p) for p in before], [position_errors(p) for p in after]
    turned, turns = [turn_errors(p) for p in before], [turn_errors(p) for p in after]
    numbers: dict[str, float] = {}
    for rows in HORIZONS:
        numbers[f"position{rows}_median_pct"] = float(np.median(at(new, rows)))
        numbers[f"position{rows}_nominal_pct"] = float(np.median(at(old, rows)))
        numbers[f"rotation{rows}_median_deg"] = float(np.median(at(turns, rows)))
        numbers[f"rotation{rows}_nominal_deg"] = float(np.median(at(turned, rows)))
    early = 20 - WARMUP + 1  # recorded row 20 is this many rows after the last warm-up row
    numbers["position_row20_median_pct"] = float(np.median(at(new, early)))
    numbers["position_row20_nominal_pct"] = float(np.median(at(old, early)))
    whole = [np.array([e.mean() for e in errors]) for errors in (old, new, turned, turns)]
    numbers["position_nominal_mean_pct"] = float(whole[0].mean())
    numbers["position_mean_pct"] = float(whole[1].mean())
    numbers["rotation_nominal_mean_deg"] = float(whole[2].mean())
    numbers["rotation_mean_deg"] = float(whole[3].mean())
    for name, unit, gain in (
        ("position", "pct", whole[0] - whole[1]),
        ("rotation", "deg", whole[2] - whole[3]),
    ):
        mean, low, high = paired(gain)
        numbers[f"{name}_gain_{unit}"] = mean
        numbers[f"{name}_gain_low_{unit}"], numbers[f"{name}_gain_high_{unit}"] = low, high
    return numbers


def scores(
    before: Sequence[Prediction], after: Sequence[Prediction], result: IdentifyResult
) -> dict[str, float]:
    """Every number of one fit."""
    numbers = errors_at_horizons(before, after)
    friction = result.verdict("pair:cube_box+floor.friction.slide")
    numbers |= {
        "friction": friction.value,
        "friction_low": friction.low,
        "friction_high": friction.high,
    }
    for verdict in result.verdicts:
        numbers[f"{verdict.name}.value"] = verdict.value
        numbers[f"{verdict.name}.std"] = verdict.std
    numbers["coverage90_position"] = coverage(after, "cube.pos")
    numbers["coverage90_rotation"] = coverage(after, "cube.quat")
    numbers["misfit_factor"] = result.misfit_factor
    return numbers


def fit_and_score(
    world: World,
    train: tuple[Episode, ...],
    before: Sequence[Prediction],
    test: tuple[Episode, ...],
    config: IdentifyConfig,
) -> tuple[dict[str, float], list[Prediction], IdentifyResult]:
    """Every number of one fit with what it cost, its predictions of the tests, and the result.

    Args:
        world: Nominal simulator.
        train: Tosses to fit.
        before: Predictions of ``test`` by the nominal simulator.
        test: Held-out tosses.
        config: The fit.
    """
    began = time.process_time()
    fitted, _, result = identify(world, train, config=config)
    seconds = time.process_time() - began
    after = predictions(fitted, test)
    numbers = scores(before, after, result)
    numbers |= {"fit_cpu_seconds": seconds, "rollouts": float(result.rollouts)}
    return numbers, after, result


def prefixed(name: str, numbers: Mapping[str, float]) -> dict[str, float]:
    """Numbers of another fit beside the main one, without those of each parameter."""
    return {f"{name}_{k}": v for k, v in numbers.items() if "nominal" not in k and ":" not in k}


def raw(episodes: Sequence[Episode], after: Sequence[Prediction]) -> dict[str, NDArray[np.float64]]:
    """Predictions and 90 % bounds in the data's columns, per toss.

    A quaternion and its negative are the same rotation; predictions take the sign that continues
    the last warm-up row.
    """
    arrays: dict[str, NDArray[np.float64]] = {}
    for index, episode, prediction in zip(TEST, episodes, after, strict=True):
        position, turn = prediction.channels["cube.pos"], prediction.channels["cube.quat"]
        last = episode["cube.quat"].values[WARMUP - 1]
        quaternion = continuous(np.vstack([last, turn.values]))[1:]
        half = quaternion_half_width(quaternion, 0.5 * (turn.high - turn.low))
        arrays[f"e{index}"] = np.hstack([position.values, quaternion])
        arrays[f"lo{index}"] = np.hstack([position.low, quaternion - half])
        arrays[f"hi{index}"] = np.hstack([position.high, quaternion + half])
    return arrays


def quaternion_half_width(quaternion: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Half widths of quaternion components [N, 4] from those of body-frame rotation [N, 3].

    First order: each rotation axis moves the components along ``q * (0, axis) / 2``; axes add in
    quadrature.
    """
    axes = np.hstack([np.zeros((3, 1)), np.eye(3)])
    moves = [compose(quaternion, np.broadcast_to(axis, quaternion.shape)) for axis in axes]
    return np.sqrt(sum((0.5 * m * half[:, [k]]) ** 2 for k, m in enumerate(moves)))


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    train, test = parts(opts.data)
    world = nominal(opts.threads)
    before = predictions(world, test)
    numbers, after, _ = fit_and_score(world, train, before, test, cube_config())
    alone, _, _ = fit_and_score(world, train, before, test, cube_config(inertial=False))
    numbers |= prefixed("contact", alone)
    numbers |= {"train": float(len(train)), "test": float(len(test)), "warmup": float(WARMUP)}
    show(
        f"520 held-out cube tosses ({WARMUP} warm-up rows, width {WIDTH} m)",
        ("number", "value"),
        sorted(numbers.items()),
    )
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, COLUMNS, raw(test, after))
    return numbers


if __name__ == "__main__":
    main()
