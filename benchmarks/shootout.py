"""Shoot-out: eight parameters of a seven-joint arm from one noisy recording of two seconds.

Run: ``python -m benchmarks.shootout [--out FILE.json]``.

Ten seeds; the data, the simulator and the box are those of ``arm_problem`` for everybody. The
start is unknown in the first table and given in the second. The error is the mean absolute
relative error over the eight parameters; CPU is process time of the whole fit, every start
counted. Opponents are frozen in ``benchmarks/opponents`` with their sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.arm_problem import NOISE_SD, ArmProblem, arm_mjcf, make_problem, mean_error
from benchmarks.convention import options, show, write_json
from benchmarks.opponents import Fit, annealing, cma_es, mujoco_sysid, plain_trf
from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds import build

SEEDS = range(10)
JOINTS = tuple(f"j{k + 1}" for k in range(7))


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of the table: a name for the keys and how to fit."""

    key: str
    fit: Callable[..., Fit]


def scene_of(problem: ArmProblem) -> Scene:
    """The nominal arm with the box as bounds and no opinion inside it."""
    rows = zip(problem.names, problem.nominal, problem.low, problem.high, strict=True)
    belief = Belief(
        parameters=tuple(
            Parameter(name=name, value=value, low=low, high=high, transform="log")
            for name, value, low, high in rows
        )
    )
    return Scene(name="shootout_arm", mjcf=arm_mjcf(), belief=belief)


def episode_of(problem: ArmProblem, spec: Spec, *, start_known: bool) -> Episode:
    """The recording as an episode; a known start is a belief without spread."""
    measured = tuple(
        Channel(
            name=f"{joint}.pos",
            time=problem.times,
            values=problem.positions[:, k],
            unit="rad",
            noise=NOISE_SD,
        )
        for k, joint in enumerate(JOINTS)
    )
    held = tuple(
        Channel(
            name=action.name, time=problem.times[:-1], values=problem.controls[:, k], role="action"
        )
        for k, action in enumerate(spec.actions)
    )
    start = _known(problem, spec) if start_known else Belief()
    return Episode(id=f"seed{problem.seed}", channels=(*measured, *held), start=start)


def _known(problem: ArmProblem, spec: Spec) -> Belief:
    values = {f"start:{j}.pos": problem.true_qpos[k] for k, j in enumerate(JOINTS)}
    values |= {f"start:{j}.vel": problem.true_qvel[k] for k, j in enumerate(JOINTS)}
    return Belief(
        parameters=tuple(
            Parameter(name=n, value=float(v), std=1e-9, unit=spec.start[n].unit, scope="episode")
            for n, v in values.items()
        )
    )


def ours(problem: ArmProblem, *, start_known: bool, seed: int) -> Fit:
    """``sameworld.identify``, default options but noise weights; the noise is stated for all."""
    began = time.process_time()
    world = build(scene_of(problem), "explicit")
    episode = episode_of(problem, world.spec, start_known=start_known)
    config = IdentifyConfig(free=problem.names, weighting="noise", seed=seed)
    _, _, result = identify(world, [episode], config=config)
    values = np.array([result.verdict(name).value for name in problem.names])
    return Fit(
        label="sameworld identify",
        factors=values / problem.nominal,
        rollouts=result.rollouts,
        cpu_seconds=time.process_time() - began,
    )


METHODS = (
    Method(key="ours", fit=ours),
    Method(key="trf", fit=plain_trf.fit),
    Method(key="cma", fit=cma_es.fit),
    Method(key="annealing", fit=annealing.fit),
    Method(key="sysid", fit=partial(mujoco_sysid.fit, shift=False)),
    Method(key="sysid_shifted", fit=partial(mujoco_sysid.fit, shift=True)),
)


def run(*, start_known: bool) -> dict[str, list[tuple[Fit, float]]]:
    """Every method on every seed, seeds outermost so that machine noise hits all alike."""
    found: dict[str, list[tuple[Fit, float]]] = {m.key: [] for m in METHODS}
    for seed in SEEDS:
        problem = make_problem(seed)
        for method in METHODS:
            fit = method.fit(problem, start_known=start_known, seed=seed)
            found[method.key].append((fit, mean_error(problem, fit.factors)))
    return found


def summary(found: dict[str, list[tuple[Fit, float]]], suffix: str) -> dict[str, float]:
    """Flat numbers of one table."""
    numbers: dict[str, float] = {}
    for key, rows in found.items():
        errors = np.array([error for _, error in rows])
        numbers[f"{key}_error_median_pct{suffix}"] = float(np.median(errors))
        numbers[f"{key}_error_worst_pct{suffix}"] = float(errors.max())
        numbers[f"{key}_cpu_seconds{suffix}"] = float(np.median([f.cpu_seconds for f, _ in rows]))
        numbers[f"{key}_rollouts{suffix}"] = float(np.median([f.rollouts for f, _ in rows]))
    ours_cpu = numbers[f"ours_cpu_seconds{suffix}"]
    numbers[f"cpu_over_annealing{suffix}"] = ours_cpu / numbers[f"annealing_cpu_seconds{suffix}"]
    numbers[f"cpu_over_sysid{suffix}"] = ours_cpu / numbers[f"sysid_cpu_seconds{suffix}"]
    return numbers


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    numbers: dict[str, float] = {}
    for start_known, suffix in ((False, ""), (True, "_start_known")):
        found = run(start_known=start_known)
        table = summary(found, suffix)
        show(
            f"Eight arm parameters, ten seeds, start {'known' if start_known else 'unknown'}",
            ("method", "median error %", "worst error %", "optimiser rollouts", "CPU s"),
            [
                (
                    rows[0][0].label,
                    table[f"{key}_error_median_pct{suffix}"],
                    table[f"{key}_error_worst_pct{suffix}"],
                    table[f"{key}_rollouts{suffix}"],
                    table[f"{key}_cpu_seconds{suffix}"],
                )
                for key, rows in found.items()
            ],
        )
        numbers |= table
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
