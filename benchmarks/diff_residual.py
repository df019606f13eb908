"""A small network inside the step, on top of a fitted model: a servo and a double pendulum.

Run: ``python -m benchmarks.diff_residual --data DIR [--out FILE.json]``; ``DIR`` holds the folders
``servo_bam`` and ``pendulum_multiarm``.

Data, splits, warm-up and metrics are those of ``servo_bam`` (friction model M1) and ``pendulum``
(double). The analytic model is fitted to the training runs, a network is trained through the
simulation on top of it. The gate leaves groups of training runs out, one after the other: whole
motions of the servo, because it is to predict another motion, and thirds of the swings. The rule
is that of ``identify`` for trained blocks: unless the 90 % interval of the median gain over the
runs left out lies above zero, the analytic model stays. What passes is trained again on all
training runs. Held-out runs are predicted open loop by both, once,
and compared run by run. The pendulum is integrated by implicitfast at 1 ms here, which has
derivatives, not by RK4.

``*_gain_low_pct`` is the lower end of the paired 90 % bootstrap interval of the mean reduction of
the error, over runs; ``worst_excess_pct`` says how much worse the worse of the two is, 0 if none.

Source: E. Heiden et al., "NeuralSim: Augmenting Differentiable Simulators with Neural Networks",
ICRA 2021.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import pendulum, servo_bam, servo_recipe
from benchmarks.convention import options, show, write_json
from sameworld.core import Episode, Prediction, Scene
from sameworld.core.predict import predict_all
from sameworld.core.progress import Progress, Report
from sameworld.core.world import World
from sameworld.maths.intervals import bootstrap
from sameworld.stages.identify import identify
from sameworld.stages.identify.holdout import score_holdout
from sameworld.worlds import build
from sameworld.worlds.differentiable import differentiable_world
from sameworld.worlds.differentiable.residual import ResidualConfig, residual_world

#: Groups of swings for the gate.
GROUPS = 3
#: Sizes, windows and rates, chosen on training runs.
SERVO = ResidualConfig(
    inputs=("velocity", "control"),
    width=8,
    depth=1,
    bound=0.05,
    batch=24,
    steps=160,
    rate=5e-3,
    decay=1e-2,
)
PENDULUM = ResidualConfig(window=0.5, warmup=25, batch=24, steps=200, check=20, rate=3e-3)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One data set with its analytic fit.

    Attributes:
        name: Prefix of the keys.
        scene: The fitted scene.
        train: Training runs.
        groups: Indices of training runs that the gate leaves out together.
        test: Held-out runs.
        warmup: Rows of held-out runs from which starts are found.
        gate_warmup: The same for training runs.
        config: The residual.
        errors: Error per run.
    """

    name: str
    scene: Scene
    train: list[Episode]
    groups: list[list[int]]
    test: list[Episode]
    warmup: int
    gate_warmup: int
    config: ResidualConfig
    errors: Callable[[Sequence[Prediction]], NDArray[np.float64]]


def servo(folder: Path, threads: int) -> Bench:
    """XL330 with Coulomb and viscous friction."""
    runs = servo_recipe.load(folder / "servo_bam", "xl330")
    train = [run for run in runs if not run.id.startswith(servo_bam.HELD_OUT)]
    test = [run for run in runs if run.id.startswith(servo_bam.HELD_OUT)]
    motions = [run.id.rpartition("_kp")[0] for run in train]
    groups = [[i for i, m in enumerate(motions) if m == motion] for motion in sorted(set(motions))]
    world = servo_bam.begun("m1", {}, threads)
    fitted, _, _ = identify(world, train, config=servo_bam.config())
    return Bench(
        name="servo",
        scene=fitted.scene,
        train=train,
        groups=groups,
        test=test,
        warmup=servo_bam.WARMUP,
        gate_warmup=servo_bam.WARMUP,
        config=SERVO,
        errors=servo_bam.errors,
    )


def arms(folder: Path, threads: int) -> Bench:
    """The double pendulum."""
    data = folder / "pendulum_multiarm"
    scene = pendulum.scene(pendulum.DOUBLE, integrator="implicitfast", step=0.001)
    world = build(scene, "explicit")
    train = pendulum.load(data, "double", "id", thin=pendulum.THIN)
    groups = [list(range(k, len(train), GROUPS)) for k in range(GROUPS)]
    fitted, _, _ = identify(world, train, config=pendulum.config(pendulum.DOUBLE))

    def errors(predictions: Sequence[Prediction]) -> NDArray[np.float64]:
        return np.array([pendulum.rmse_deg([p]) for p in predictions])

    return Bench(
        name="pendulum",
        scene=fitted.scene,
        train=train,
        groups=groups,
        test=pendulum.load(data, "double", "vad"),
        warmup=pendulum.WARMUP,
        gate_warmup=pendulum.WARMUP // pendulum.THIN,
        config=PENDULUM,
        errors=errors,
    )


def trained(bench: Bench, *, seed: int) -> tuple[World, World, dict[str, float]]:
    """The analytic world, the one that passed the gate, and numbers of the training."""
    analytic = differentiable_world(bench.scene)
    began = time.process_time()
    world = residual_world(analytic, bench.config)
    old, new = list[Prediction](), list[Prediction]()
    for out in bench.groups:
        kept = [run for i, run in enumerate(bench.train) if i not in out]
        left = [bench.train[i] for i in out]
        trial = world.fit(kept, seed=seed, progress=reporter(bench.name))
        old += predict_all(analytic, left, bench.gate_warmup)
        new += predict_all(trial, left, bench.gate_warmup)
    score = score_holdout(old, new, seed=seed, better=True)
    print(f"{bench.name}: gate {score.gain:.3f} [{score.gain_low:.3f}, {score.gain_high:.3f}]")
    final = analytic
    if score.passed:
        final = world.fit(bench.train, seed=seed, progress=reporter(bench.name))
    numbers = {
        f"{bench.name}_gate_gain_pct": 100 * score.gain,
        f"{bench.name}_gate_low_pct": 100 * score.gain_low,
        f"{bench.name}_gate_passed": float(score.passed),
        f"{bench.name}_weights": float(world.network.trained),
        f"{bench.name}_train_cpu_seconds": time.process_time() - began,
    }
    return analytic, final, numbers


def reporter(name: str) -> Report:
    """Prints progress of a training."""

    def report(progress: Progress) -> None:
        print(f"{name}: {progress.done}/{progress.total} {progress.message}", flush=True)

    return report


def compared(bench: Bench, before: World, after: World) -> dict[str, float]:
    """Held-out errors of both worlds, and the paired interval of the gain."""
    old, new = (bench.errors(predict_all(w, bench.test, bench.warmup)) for w in (before, after))
    gains = 100 * (old - new) / float(old.mean())
    interval = bootstrap(gains, seed=0, level=0.9)
    return {
        f"{bench.name}_analytic_error": float(old.mean()),
        f"{bench.name}_residual_error": float(new.mean()),
        f"{bench.name}_gain_pct": float(gains.mean()),
        f"{bench.name}_gain_low_pct": interval.low,
        f"{bench.name}_gain_high_pct": interval.high,
    }


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark.

    Raises:
        SystemExit: No folder was given.
    """
    opts = options(__doc__ or "", argv)
    if opts.data is None:
        raise SystemExit("Give the folder of the data sets: --data DIR (servo_bam/ in it).")
    numbers: dict[str, float] = {}
    for make in (arms, servo):
        bench = make(opts.data, opts.threads)
        before, after, found = trained(bench, seed=opts.seed)
        numbers |= found | compared(bench, before, after)
    gains = [numbers[f"{name}_gain_pct"] for name in ("servo", "pendulum")]
    numbers["worst_excess_pct"] = max(0.0, *(-gain for gain in gains))
    show("Residual on top of the analytic fit", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
