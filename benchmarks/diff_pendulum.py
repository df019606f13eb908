"""The real pendulums of ``pendulum``, fitted by exact derivatives of the differentiable world.

Run: ``python -m benchmarks.diff_pendulum --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data, split, model, options of the fit, metrics and their keys are those of ``pendulum``. What
differs is the engine: equations in JAX with derivatives of every signal instead of MuJoCo with
finite differences, and implicitfast at ``STEP`` instead of RK4 at 2 ms, which it does not offer.

Fits are repeated to tell what costs what. ``*_first_cpu_seconds`` is the first fit of a process
with whatever compiling or loading of programs it needs; ``*_again_cpu_seconds`` is the same fit
once programs are in memory, and ``*_cpu_over_explicit`` that over the explicit world's fit of the
very same scene, integrator and step, by finite differences. ``*_cpu_over_rk4`` is over the explicit
fit of the scene of ``pendulum``. ``SAMEWORLD_JAX_CACHE=off`` makes the first fit a cold one.

``*_ratios_apart_pct`` is the largest difference between ratios of the exact fit and of the explicit
one of the same scene; ``*_step_bias_pct`` that between the exact fit and the explicit RK4 fit.

Source: E. Heiden, D. Millard, G. S. Sukhatme, "Real2Sim transfer using differentiable physics",
RSS workshop on closing the reality gap, 2019.
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
    both,
    config,
    fitted_values,
    load,
    matrices,
    raw,
    scene,
)
from sameworld.core.scene import Scene
from sameworld.core.world import World
from sameworld.stages.identify import IdentifyResult, identify
from sameworld.worlds import build
from sameworld.worlds.differentiable import DifferentiableConfig
from sameworld.worlds.explicit import ExplicitConfig

#: Time step of implicitfast [s], chosen on identification pieces.
STEP = 0.001


def smooth(pendulum: Pendulum) -> Scene:
    """The scene with an integrator that the differentiable world has."""
    return scene(pendulum, integrator="implicitfast", step=STEP)


def apart(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Largest difference of ratios [%]."""
    return max(abs(100 * (one[name] / other[name] - 1)) for name in other)


def fit(
    world: World, folder: Path | None, pendulum: Pendulum
) -> tuple[IdentifyResult, dict[str, float], float]:
    """Result of one fit, its ratios, and CPU seconds."""
    pieces = load(folder, pendulum.name, "id", thin=THIN)
    began = time.process_time()
    result = identify(world, pieces, config=config(pendulum))[2]
    seconds = time.process_time() - began
    return result, matrices(fitted_values(result), pendulum), seconds


def compared(
    world: World, folder: Path | None, pendulum: Pendulum, threads: int
) -> dict[str, float]:
    """The fit once more, beside the explicit world's of the same scene and of the RK4 scene."""
    engine = ExplicitConfig(threads=threads)
    result, ratios, seconds = fit(world, folder, pendulum)
    same = fit(build(smooth(pendulum), "explicit", config=engine), folder, pendulum)
    accurate = fit(build(scene(pendulum), "explicit", config=engine), folder, pendulum)
    found = {
        "exact": float(result.derivatives == "exact"),
        "again_cpu_seconds": seconds,
        "rollouts": float(result.rollouts),
        "explicit_cpu_seconds": same[2],
        "explicit_rollouts": float(same[0].rollouts),
        "rk4_cpu_seconds": accurate[2],
        "cpu_over_explicit": seconds / same[2],
        "cpu_over_rk4": seconds / accurate[2],
        "cost_over_explicit": result.cost / same[0].cost,
        "ratios_apart_pct": apart(ratios, same[1]),
        "step_bias_pct": apart(ratios, accurate[1]),
    }
    return {f"{pendulum.name}_{key}": value for key, value in found.items()}


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    settings = DifferentiableConfig(threads=opts.threads)
    worlds = {
        pendulum.name: build(smooth(pendulum), "differentiable", config=settings)
        for pendulum in (DOUBLE, TRIPLE)
    }
    numbers, predictions = both(lambda pendulum: worlds[pendulum.name], opts.data)
    for pendulum in (DOUBLE, TRIPLE):
        name = pendulum.name
        numbers[f"{name}_first_cpu_seconds"] = numbers.pop(f"{name}_fit_cpu_seconds")
        numbers |= compared(worlds[name], opts.data, pendulum, opts.threads)
        spent = numbers[f"{name}_first_cpu_seconds"] - numbers[f"{name}_again_cpu_seconds"]
        numbers[f"{name}_programs_cpu_seconds"] = spent
    numbers["cpu_over_explicit"] = numbers.pop("double_cpu_over_explicit")
    numbers["cpu_over_rk4"] = numbers.pop("double_cpu_over_rk4")
    show("Pendulums by exact derivatives", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, ("theta1", "theta2"), raw(predictions))
    return numbers


if __name__ == "__main__":
    main()
