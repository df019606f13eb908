"""The real pendulums of ``pendulum``, fitted by exact derivatives of the differentiable world.

Run: ``python -m benchmarks.diff_pendulum --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data, split, model, options of the fit and metrics are those of ``pendulum``. What differs is the
engine: equations in JAX with exact derivatives instead of MuJoCo with finite differences, and
implicitfast instead of RK4, which it does not offer. Its error is of first order in the step: fits
answer it by other parameters. So pendulums are fitted at two ``STEPS``, and parameters are
extrapolated to step zero; validation pieces are predicted from these at ``FINE``.
``*_step1_*`` and ``*_step2_*`` are ratios of the single fits.

Where CPU time goes is asked of the double pendulum at the first of the steps:
``first_cpu_seconds`` is the first fit of the process, with whatever compiling or loading of
programs it needs, ``again_cpu_seconds`` the same fit once they are in memory, and
``programs_cpu_seconds`` the difference. ``cpu_over_explicit`` is the second over the explicit
world's fit of the very same scene, integrator and step, by finite differences; ``cpu_over_rk4`` is
over the explicit fit of the scene of ``pendulum``. ``SAMEWORLD_JAX_CACHE=off`` makes the first fit
a cold one. ``ratios_apart_pct`` is the largest difference between ratios of the exact and the
explicit fit of that scene, ``step_bias_pct`` that from the RK4 fit, and ``extrapolated_bias_pct``
what extrapolation leaves of it.

Source: E. Heiden, D. Millard, G. S. Sukhatme, "Real2Sim transfer using differentiable physics",
RSS workshop on closing the reality gap, 2019. Extrapolation: L. F. Richardson, Phil. Trans. R.
Soc. A 210, 1911.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.convention import options, show, write_json, write_predictions
from benchmarks.pendulum import (
    DOUBLE,
    THIN,
    TRIPLE,
    Pendulum,
    config,
    fitted_values,
    judged,
    load,
    matrices,
    off_published,
    raw,
    scene,
    wide,
)
from sameworld.core.prediction import Prediction
from sameworld.core.world import World
from sameworld.stages.identify import IdentifyResult, identify
from sameworld.worlds import build
from sameworld.worlds.differentiable import DifferentiableConfig
from sameworld.worlds.explicit import ExplicitConfig

#: Steps of implicitfast in fits and in predictions [s], chosen on identification pieces.
STEPS, FINE = (0.001, 0.0005), 0.00002


def made(pendulum: Pendulum, step: float, threads: int) -> World:
    """The differentiable world at a step [s]."""
    stepped = scene(pendulum, integrator="implicitfast", step=step)
    return build(stepped, "differentiable", config=DifferentiableConfig(threads=threads))


def fit(world: World, folder: Path | None, pendulum: Pendulum) -> tuple[IdentifyResult, float]:
    """Result of one fit, and its CPU seconds."""
    pieces = load(folder, pendulum.name, "id", thin=THIN)
    began = time.process_time()
    result = identify(world, pieces, config=config(pendulum))[2]
    return result, time.process_time() - began


def extrapolated(
    coarse: Mapping[str, float], half: Mapping[str, float], pendulum: Pendulum
) -> dict[str, float]:
    """Parameters at step zero within their bounds, from those at a step and at half of it."""
    return {
        p.name: min(max(2 * half[p.name] - coarse[p.name], p.low), p.high) for p in wide(pendulum)
    }


def apart(one: Mapping[str, float], other: Mapping[str, float], pendulum: Pendulum) -> float:
    """Largest difference of ratios of two fits [%]."""
    found, reference = matrices(one, pendulum), matrices(other, pendulum)
    return max(abs(100 * (found[name] / reference[name] - 1)) for name in reference)


def run(
    folder: Path | None, pendulum: Pendulum, threads: int
) -> tuple[dict[str, float], list[Prediction], World, list[tuple[IdentifyResult, float]]]:
    """Numbers and predictions of one pendulum, its first world, and its fits."""
    name = pendulum.name
    worlds = [made(pendulum, step, threads) for step in STEPS]
    fits = [fit(world, folder, pendulum) for world in worlds]
    results = [result for result, _ in fits]
    coarse, half = (fitted_values(result) for result in results)
    values = extrapolated(coarse, half, pendulum)
    belief = results[1].posterior.with_values(values)
    fine = made(pendulum, FINE, threads).with_belief(belief)
    numbers, predictions = judged(fine, values, folder, pendulum)
    numbers |= {
        f"{name}_exact": float(all(r.derivatives == "exact" for r in results)),
        f"{name}_fit_cpu_seconds": sum(seconds for _, seconds in fits),
        f"{name}_misfit_factor": results[1].misfit_factor,
    }
    for k, result in enumerate(results, start=1):
        off = off_published(fitted_values(result), pendulum)
        numbers |= {f"{name}_step{k}_off_pct.{n}": v for n, v in off.items()}
    return numbers, predictions, worlds[0], fits


def compared(
    folder: Path | None, world: World, fits: Sequence[tuple[IdentifyResult, float]], threads: int
) -> dict[str, float]:
    """Fits of the double pendulum beside those of the explicit world."""
    coarse, half = (fitted_values(result) for result, _ in fits)
    values = extrapolated(coarse, half, DOUBLE)
    engine = ExplicitConfig(threads=threads)
    _, again = fit(world, folder, DOUBLE)
    same, seconds = fit(build(world.scene, "explicit", config=engine), folder, DOUBLE)
    accurate, longer = fit(build(scene(DOUBLE), "explicit", config=engine), folder, DOUBLE)
    best = fitted_values(accurate)
    return {
        "first_cpu_seconds": fits[0][1],
        "again_cpu_seconds": again,
        "programs_cpu_seconds": fits[0][1] - again,
        "explicit_cpu_seconds": seconds,
        "rk4_cpu_seconds": longer,
        "cpu_over_explicit": again / seconds,
        "cpu_over_rk4": again / longer,
        "rollouts": float(fits[0][0].rollouts),
        "explicit_rollouts": float(same.rollouts),
        "ratios_apart_pct": apart(coarse, fitted_values(same), DOUBLE),
        "step_bias_pct": apart(coarse, best, DOUBLE),
        "extrapolated_bias_pct": apart(values, best, DOUBLE),
    }


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    numbers, predictions, world, fits = run(opts.data, DOUBLE, opts.threads)
    numbers["worst_ratio_pct"] = numbers.pop("double_worst_ratio_pct")
    numbers |= compared(opts.data, world, fits, opts.threads)
    write_json(opts.out, numbers)
    numbers |= run(opts.data, TRIPLE, opts.threads)[0]
    show("Pendulums by exact derivatives", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, ("theta1", "theta2"), raw(predictions))
    return numbers


if __name__ == "__main__":
    main()
