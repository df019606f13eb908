"""Real double and triple pendulum: inertial ratios, and angles predicted open loop.

Run: ``python -m benchmarks.pendulum --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data: free swings recorded by encoders at 1 kHz, cut by the authors into pieces for identification
and for validation (K. Kaheman, U. Fasel, J. J. Bramburger, B. Strom, J. N. Kutz, S. L. Brunton,
arXiv 2205.06231). The fit sees identification pieces only. A validation piece is predicted open
loop from its first 50 ms of angles; scored is the root mean square error of all absolute angles
over the next second, averaged over the pieces. Velocities in the files are not used.

A passive pendulum shows its inertias up to one common scale. With arms of mass m, centre of mass
at a, moment I about it, and length L,

    A = I1 + m1 a1^2 + m2 L1^2,  B = m2 L1 a2,  C = I2 + m2 a2^2,
    G1 = (m1 a1 + m2 L1) g,      G2 = m2 a2 g,

only B/A, C/A, G1/A and G2/A act. So both masses and the centre of the second arm are held at round
numbers. The length L1 acts through L1/g alone: the model keeps a length off a ruler and frees
gravity in its place, and with g given L1 = ``RULER`` g / fitted gravity would follow.

``scatter_ratio`` compares the scatter of fits to five disjoint groups of identification pieces
with the standard deviations these fits report, per ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode
from sameworld.core.parameters import Parameter
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.scene import Scene
from sameworld.core.world import World
from sameworld.loops.metrics import coverage
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig

#: Warm-up and scored time after it [rows at 1 kHz].
WARMUP, SCORED = 50, 1000
#: Every how many rows the fit sees, and the control period [s] that goes with it.
THIN, PERIOD = 2, 0.002
#: Groups of identification pieces for the scatter, and their seed.
GROUPS, GROUP_SEED = 5, 0
#: Length of the first arms in the models, off a ruler [m].
RULER = 0.17
#: Authors' estimates in SI units: masses, centres, lengths, moments, viscous friction, gravity.
PUBLISHED = {
    "double": {
        "m": (0.093844, 0.137596),
        "a": (0.108565, 0.116779),
        "L": (0.172719,),
        "I": (4.37529e-4, 1.26883e-3),
        "g": (9.80858,),
    },
    "triple": {
        "m": (0.258172, 0.279428, 0.118624),
        "a": (0.160000, 0.202939, 0.183709),
        "L": (0.172800, 0.228700),
        "I": (1.00043e-4, 3.14160e-4, 1.68739e-4),
        "g": (9.80834,),
    },
}


@dataclass(frozen=True, kw_only=True)
class Pendulum:
    """One kind of pendulum.

    Attributes:
        name: Name in the files.
        lengths: Lengths of all arms but the last in the model [m].
        masses: Masses of all arms [kg], held.
        last: Centre of mass of the last arm [m], held: the scale.
        centres: First guess of the centres of the other arms [m].
        moments: First guess of all moments about the centres of mass [kg m^2].
    """

    name: str
    lengths: tuple[float, ...]
    masses: tuple[float, ...]
    last: float
    centres: tuple[float, ...]
    moments: tuple[float, ...]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.masses)


DOUBLE = Pendulum(
    name="double",
    lengths=(RULER,),
    masses=(0.1, 0.1),
    last=0.1,
    centres=(0.08,),
    moments=(5e-4, 5e-4),
)
#: The second length is held too: a triple pendulum says two lengths over gravity, one is freed.
#: Upper arms carry the joints of the lower ones: with light ones their moments would be negative.
TRIPLE = Pendulum(
    name="triple",
    lengths=(RULER, RULER * 9.0 / 6.8),
    masses=(0.4, 0.4, 0.15),
    last=0.13,
    centres=(0.05, 0.1),
    moments=(1e-3, 4e-3, 1e-3),
)


def scene(pendulum: Pendulum, *, integrator: str = "RK4", step: float = PERIOD) -> Scene:
    """Arms that hang from each other and turn about the y axis; zero is upright.

    Args:
        pendulum: Which one.
        integrator: MuJoCo's name of the integrator.
        step: Its time step [s]; ``PERIOD`` is a whole multiple.
    """
    centres = (*pendulum.centres, pendulum.last)
    open_, close = "", ""
    for k in range(pendulum.arms):
        at = 0.0 if k == 0 else pendulum.lengths[k - 1]
        open_ += (
            f'<body name="arm{k + 1}" pos="0 0 {at}">'
            f'<joint name="j{k + 1}" type="hinge" axis="0 1 0" damping="1e-4"/>'
            f'<inertial pos="0 0 {centres[k]}" mass="{pendulum.masses[k]}" '
            f'diaginertia="4e-3 {pendulum.moments[k]} 4e-3"/>'
        )
        close += "</body>"
    mjcf = (
        f'<mujoco><option timestep="{step}" integrator="{integrator}" gravity="0 0 -9.81"/>'
        f'<custom><numeric name="control_period" data="{PERIOD}"/></custom>'
        f"<worldbody>{open_}{close}</worldbody></mujoco>"
    )
    return Scene(
        name=f"{pendulum.name}_pendulum", mjcf=mjcf, belief=Belief(parameters=wide(pendulum))
    )


def wide(pendulum: Pendulum) -> tuple[Parameter, ...]:
    """What is fitted, without opinions inside wide bounds."""
    found = [
        Parameter(
            name=f"body:arm{k + 1}.inertia.y",
            value=value,
            low=1e-6,
            high=8e-3,
            unit="kg m^2",
            transform="log",
        )
        for k, value in enumerate(pendulum.moments)
    ]
    found += [
        Parameter(name=f"body:arm{k + 1}.com.z", value=value, low=-0.3, high=0.4, unit="m")
        for k, value in enumerate(pendulum.centres)
    ]
    found += [
        Parameter(
            name=f"joint:j{k + 1}.damping",
            value=1e-4,
            low=1e-8,
            high=1e-1,
            unit="N m s/rad",
            transform="log",
        )
        for k in range(pendulum.arms)
    ]
    found.append(
        Parameter(name="option:gravity.z", value=-9.81, low=-11.5, high=-8.0, unit="m/s^2")
    )
    return tuple(found)


def load(folder: Path | None, name: str, part: str, *, thin: int = 1) -> list[Episode]:
    """Pieces as episodes of joint angles, every ``thin``-th row; the files hold absolute ones.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit("Give the folder of the data set: --data DIR (runs.npz in it).")
    with np.load(folder / "runs.npz") as runs:
        states = runs[f"{name}_{part}_x"].astype(np.float64)
        edges = runs[f"{name}_{part}_start"].tolist()
    arms = states.shape[1] // 2
    joints = np.diff(states[:, :arms], axis=1, prepend=0.0)
    return [
        Episode(
            id=f"{name}_{part}{k}",
            channels=tuple(
                Channel(
                    name=f"j{j + 1}.pos",
                    time=0.001 * np.arange(0, b - a, thin),
                    values=joints[a:b:thin, j],
                    unit="rad",
                )
                for j in range(arms)
            ),
        )
        for k, (a, b) in enumerate(pairwise(edges))
    ]


def config(pendulum: Pendulum, *, holdout: float = 0.2, seed: int = 0) -> IdentifyConfig:
    """How the pieces are fitted; chosen on identification pieces."""
    return IdentifyConfig(
        free=tuple(p.name for p in wide(pendulum)),
        warmup=WARMUP // THIN,
        window=0.8,
        starts="joint",
        search="none",
        holdout=holdout,
        seed=seed,
    )


def matrices(values: Mapping[str, float], pendulum: Pendulum) -> dict[str, float]:
    """Ratios that a passive pendulum shows, of a fit."""
    arms = pendulum.arms
    centres = [values.get(f"body:arm{k + 1}.com.z", pendulum.last) for k in range(arms)]
    moments = [values[f"body:arm{k + 1}.inertia.y"] for k in range(arms)]
    return ratios(pendulum.masses, centres, pendulum.lengths, moments, -values["option:gravity.z"])


def ratios(
    m: Sequence[float], a: Sequence[float], length: Sequence[float], i: Sequence[float], g: float
) -> dict[str, float]:
    """Entries of the mass matrix and gravity torques over the first entry."""
    arms = len(m)
    beyond = [sum(m[k + 1 :]) for k in range(arms)]
    reach = [m[k] * a[k] + (beyond[k] * length[k] if k < arms - 1 else 0.0) for k in range(arms)]
    inertia = [
        i[k] + m[k] * a[k] ** 2 + (beyond[k] * length[k] ** 2 if k < arms - 1 else 0.0)
        for k in range(arms)
    ]
    found = {f"M{k + 1}{k + 1}/M11": inertia[k] / inertia[0] for k in range(1, arms)}
    for j in range(arms):
        for k in range(j + 1, arms):
            found[f"M{j + 1}{k + 1}/M11"] = length[j] * reach[k] / inertia[0]
    return found | {f"G{k + 1}/M11": g * reach[k] / inertia[0] for k in range(arms)}


def published(pendulum: Pendulum) -> dict[str, float]:
    """The authors' ratios."""
    p = PUBLISHED[pendulum.name]
    return ratios(p["m"], p["a"], p["L"], p["I"], p["g"][0])


def fitted_values(result: IdentifyResult) -> dict[str, float]:
    """Fitted value per address."""
    return {v.name: v.value for v in result.verdicts}


def ratio_deviations(result: IdentifyResult, pendulum: Pendulum) -> dict[str, float]:
    """Relative standard deviation of every ratio, by the reported covariance (first order)."""
    values, covariance = fitted_values(result), result.posterior.covariance
    centre = matrices(values, pendulum)
    slopes: dict[str, list[float]] = {name: [] for name in centre}
    for parameter in result.posterior.parameters:
        step = 1e-5 * abs(values[parameter.name])
        ends = [
            matrices(values | {parameter.name: values[parameter.name] + sign * step}, pendulum)
            for sign in (-1, 1)
        ]
        for name, row in slopes.items():
            row.append((np.log(ends[1][name]) - np.log(ends[0][name])) / (2 * step))
    return {n: float(np.sqrt(np.array(s) @ covariance @ np.array(s))) for n, s in slopes.items()}


def absolute(prediction: Prediction, part: str) -> NDArray[np.float64]:
    """Absolute angles or their errors [N, arms] from those of the joints."""
    columns = [np.asarray(getattr(c, part)).reshape(-1) for c in prediction.channels.values()]
    return np.cumsum(np.stack(columns, axis=1), axis=1)


def rmse_deg(predictions: Sequence[Prediction]) -> float:
    """Error of all absolute angles over the scored time, mean over the pieces [deg]."""
    errors = [np.rad2deg(absolute(p, "error")[:SCORED]) for p in predictions]
    return float(np.mean([np.sqrt(np.mean(e**2)) for e in errors]))


def scattered(
    world: World, pieces: Sequence[Episode], pendulum: Pendulum
) -> dict[str, tuple[float, float]]:
    """Per ratio: relative scatter of the fits to disjoint groups, and what they report."""
    order = np.random.default_rng(GROUP_SEED).permutation(len(pieces))
    logs: list[list[float]] = []
    reported: list[list[float]] = []
    for group in np.array_split(order, GROUPS):
        chosen = [pieces[i] for i in sorted(group.tolist())]
        result = identify(world, chosen, config=config(pendulum, holdout=0.0))[2]
        logs.append([float(np.log(v)) for v in matrices(fitted_values(result), pendulum).values()])
        reported.append(list(ratio_deviations(result, pendulum).values()))
    spread = np.std(np.array(logs), axis=0, ddof=1).tolist()
    said = np.sqrt(np.mean(np.array(reported) ** 2, axis=0)).tolist()
    return dict(zip(published(pendulum), zip(spread, said, strict=True), strict=True))


def off_published(values: Mapping[str, float], pendulum: Pendulum) -> dict[str, float]:
    """How far the ratios of a fit are from the authors' [%]."""
    found, theirs = matrices(values, pendulum), published(pendulum)
    return {name: 100 * (found[name] / theirs[name] - 1) for name in theirs}


def judged(
    fitted: World, values: Mapping[str, float], folder: Path | None, pendulum: Pendulum
) -> tuple[dict[str, float], list[Prediction]]:
    """Ratios and held-out errors of a fit, and its predictions of the validation pieces."""
    name, off = pendulum.name, off_published(values, pendulum)
    predictions = predict_all(fitted, load(folder, name, "vad"), WARMUP)
    covered = [coverage(predictions, channel) for channel in predictions[0].channels]
    numbers = {
        f"{name}_1s_rmse_deg": rmse_deg(predictions),
        f"{name}_worst_ratio_pct": max(abs(v) for v in off.values()),
        f"{name}_coverage90": float(np.mean(covered)),
    }
    return numbers | {f"{name}_off_pct.{n}": v for n, v in off.items()}, predictions


def run(
    folder: Path | None, pendulum: Pendulum, threads: int
) -> tuple[dict[str, float], list[Prediction]]:
    """Every number of one pendulum, and the predictions of its validation pieces."""
    world = build(scene(pendulum), "explicit", config=ExplicitConfig(threads=threads))
    pieces = load(folder, pendulum.name, "id", thin=THIN)
    fitted, _, result = identify(world, pieces, config=config(pendulum))
    values, name = fitted_values(result), pendulum.name
    found, theirs = matrices(values, pendulum), published(pendulum)
    reported, off = ratio_deviations(result, pendulum), off_published(values, pendulum)
    table = scattered(world, pieces, pendulum)
    show(
        f"{name} pendulum: what its free motion shows",
        (
            "ratio",
            "fitted",
            "published",
            "off %",
            "reported sd %",
            "group scatter %",
            "groups say %",
        ),
        [
            (n, found[n], theirs[n], off[n], 100 * reported[n], *(100 * v for v in table[n]))
            for n in theirs
        ],
    )
    numbers, predictions = judged(fitted, values, folder, pendulum)
    numbers |= {
        f"{name}_scatter_ratio_min": min(a / b for a, b in table.values()),
        f"{name}_scatter_ratio_max": max(a / b for a, b in table.values()),
        f"{name}_misfit_factor": result.misfit_factor,
        f"{name}_fit_cpu_seconds": result.cpu_seconds,
    }
    numbers |= {f"{name}_scatter_ratio.{n}": a / b for n, (a, b) in table.items()}
    return numbers, predictions


def raw(predictions: Sequence[Prediction]) -> dict[str, NDArray[np.float64]]:
    """Absolute angles and 90 % bounds per validation piece; joints' half widths in quadrature."""
    arrays: dict[str, NDArray[np.float64]] = {}
    for k, prediction in enumerate(predictions):
        angles = absolute(prediction, "values")
        halves = [0.5 * (c.high - c.low).reshape(-1) for c in prediction.channels.values()]
        half = np.sqrt(np.cumsum(np.stack(halves, axis=1) ** 2, axis=1))
        arrays |= {f"e{k}": angles, f"lo{k}": angles - half, f"hi{k}": angles + half}
    return arrays


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    numbers, predictions = run(opts.data, DOUBLE, opts.threads)
    for key in ("worst_ratio_pct", "scatter_ratio_min", "scatter_ratio_max"):
        numbers[key] = numbers.pop(f"double_{key}")
    numbers |= run(opts.data, TRIPLE, opts.threads)[0]
    show("Pendulums", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, ("theta1", "theta2"), raw(predictions))
    return numbers


if __name__ == "__main__":
    main()
