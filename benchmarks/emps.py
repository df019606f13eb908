"""A machine-tool axis under closed-loop position control: mass and friction of EMPS.

Run: ``python -m benchmarks.emps --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data: A. Janot, M. Gautier, M. Brunot, "Data Set and Reference Models of EMPS", Workshop on
Nonlinear System Identification Benchmarks (2019): 24.8 s at 1 kHz of reference, position and
controller output. The estimation file is fitted, the one with pulses is only predicted. Both are
simulated in closed loop from the first five rows. Metric of the data set's authors:
``100 |y - ys| / |y|`` of the force ``drive gain x controller output``.

The controller's output of a tick is stamped at the tick's end, where the world shows it. The
published parameters run in the same simulator: the error depends on how the controller is copied.
Fitted: mass, viscous and Coulomb friction, constant force; then friction that differs with the
direction instead of the constant force. ``asymmetry_gain_low`` is the lower end of a 95 % interval
of the relative gain in mean square force error on the validation file, resampling blocks of a
second.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from sameworld.core import Channel, Component, Episode, Prediction, Scene
from sameworld.core.predict import predict_all
from sameworld.core.world import World
from sameworld.loops.metrics import coverage
from sameworld.maths.intervals import bootstrap
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig

FILES = {"estimation": "data_emps.npz", "validation": "data_emps_pulses.npz"}
#: Rows from which a start may be found; never scored.
WARMUP = 5
#: Length of the shooting windows of the fit [s].
WINDOW = 2.07
#: Rows of a block that is resampled as a whole.
BLOCK = 1000
PERIOD, STEP = 0.001, 0.0005
#: Force per volt of controller output [N/V], controller gains and saturation, as published.
DRIVE_GAIN, KP, KV, LIMIT = 35.15, 160.18, 243.45, 10.0
PUBLISHED = {"mass": 95.1089, "fv": 203.5034, "fc": 20.3935, "offset": -3.1648}
PUBLISHED_STD = {"mass": 0.1085, "fv": 1.146, "fc": 0.1012}
COLUMNS = ("qm", "vir")
FREE = ("body:carriage.mass", "component:pd.offset", "component:friction.*")
#: Coulomb friction that differs by side and a constant force are the same thing: no offset here.
FREE_SIDED = ("body:carriage.mass", "component:friction.coulomb_*", "component:friction.viscous_*")
MJCF = """<mujoco><custom><numeric name="control_period" data="{period}"/></custom>
<option timestep="{step}" integrator="implicitfast" gravity="0 0 0"/>
<worldbody><body name="carriage"><joint name="axis" type="slide" axis="1 0 0"/>
<geom type="box" size=".2 .1 .05" mass="{mass}"/></body></worldbody>
<actuator><motor name="drive" joint="axis"/></actuator></mujoco>"""


def load(folder: Path | None) -> dict[str, Episode]:
    """Both files as episodes.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit("Give the folder of the data set: --data DIR (data_emps.npz in it).")
    return {name: _episode(name, folder / file) for name, file in FILES.items()}


def _episode(name: str, path: Path) -> Episode:
    with np.load(path, allow_pickle=False) as data:
        arrays = {key: data[key].astype(np.float64) for key in data.files if data[key].ndim == 1}
    clock, ends = arrays["t"], arrays["t"] + PERIOD
    channels = [
        Channel(name="axis.pos", time=clock, values=arrays["qm"], unit="m", noise=2e-6),
        Channel(name="pd.output", time=ends, values=arrays["vir"], unit="V", noise=0.02),
        Channel(name="drive", time=clock, values=arrays["qg"], unit="m", role="action"),
    ]
    if "pulses_N" in arrays:  # volts, whatever the name says
        pulses = arrays["pulses_N"]
        channels.append(
            Channel(name="pd.disturbance", time=clock, values=pulses, unit="V", role="exogenous")
        )
    return Episode(id=name, channels=tuple(channels))


def axis(friction: Component, threads: int, *, offset: float) -> World:
    """The axis with its published controller and mass, and a constant force [N]."""
    controller = Component(
        name="pd",
        type="filtered_pd",
        version=1,
        target="actuator:drive",
        settings={
            "kp": KP,
            "kv": KV,
            "limit": LIMIT,
            "drive_gain": DRIVE_GAIN,
            "offset": -offset,
            "disturbance": "yes",
        },
    )
    text = MJCF.format(period=PERIOD, step=STEP, mass=PUBLISHED["mass"])
    scene = Scene(name="emps", mjcf=text, components=(controller, friction))
    return build(scene, "explicit", config=ExplicitConfig(threads=threads))


def symmetric() -> Component:
    """Coulomb and viscous friction as published."""
    return _friction("gear_friction", {"coulomb": PUBLISHED["fc"], "viscous": PUBLISHED["fv"]})


def asymmetric() -> Component:
    """The same to both sides, told apart."""
    sides = ("positive", "negative")
    coulomb = {f"coulomb_{side}": PUBLISHED["fc"] for side in sides}
    return _friction(
        "asymmetric_friction", coulomb | {f"viscous_{side}": PUBLISHED["fv"] for side in sides}
    )


def _friction(kind: str, values: Mapping[str, float]) -> Component:
    return Component(
        name="friction", type=kind, version=1, target="joint:axis", settings=dict(values)
    )


def config(free: tuple[str, ...]) -> IdentifyConfig:
    """Windows of the one estimation record, with free starts."""
    return IdentifyConfig(
        free=free,
        warmup=WARMUP,
        window=WINDOW,
        most_windows=12,
        starts="joint",
        weighting="channel",
        loss="linear",
        rounds=2,
        candidates=0,
        polished=1,
        evaluations=12,
        difference=0.01,
        tolerance=1e-4,
        holdout=0.0,
    )


def force_errors(world: World, episodes: Mapping[str, Episode]) -> dict[str, Prediction]:
    """Closed-loop predictions of both files."""
    found = predict_all(world, list(episodes.values()), WARMUP)
    return dict(zip(episodes, found, strict=True))


def relative(prediction: Prediction, episode: Episode, channel: str) -> float:
    """``100 |y - ys| / |y|`` over the scored rows."""
    measured = episode[channel].values[WARMUP:]
    error = prediction.channels[channel].error
    return 100 * float(np.linalg.norm(error) / np.linalg.norm(measured))


def blocks(prediction: Prediction) -> NDArray[np.float64]:
    """Mean square force error of blocks of rows [V^2]."""
    square = prediction.channels["pd.output"].error[:, 0] ** 2
    count = len(square) // BLOCK
    return square[: count * BLOCK].reshape(count, BLOCK).mean(axis=1)


def raw(predictions: Mapping[str, Prediction]) -> dict[str, NDArray[np.float64]]:
    """Predictions and 90 % bounds of the validation file."""
    found = predictions["validation"]
    channels = [found.channels[n] for n in ("axis.pos", "pd.output")]
    return {
        "evalidation": np.column_stack([c.values for c in channels]),
        "lovalidation": np.column_stack([c.low for c in channels]),
        "hivalidation": np.column_stack([c.high for c in channels]),
    }


def parameters(result: IdentifyResult) -> dict[str, float]:
    """Estimates, their intervals, and how far they are from the published ones."""
    names = {
        "mass": "body:carriage.mass",
        "fv": "component:friction.viscous",
        "fc": "component:friction.coulomb",
    }
    numbers: dict[str, float] = {}
    for key, address in names.items():
        verdict = result.verdict(address)
        numbers |= {key: verdict.value, f"{key}_low": verdict.low, f"{key}_high": verdict.high}
        numbers[f"{key}_off_pct"] = 100 * (verdict.value / PUBLISHED[key] - 1)
    return numbers


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    files = load(opts.data)
    began = time.process_time()
    given = axis(symmetric(), opts.threads, offset=PUBLISHED["offset"])
    sided = axis(asymmetric(), opts.threads, offset=0.0)
    fitted, _, result = identify(given, [files["estimation"]], config=config(FREE))
    apart, _, other = identify(sided, [files["estimation"]], config=config(FREE_SIDED))
    found = {
        name: force_errors(world, files)
        for name, world in (("published", given), ("fitted", fitted), ("asymmetric", apart))
    }
    force = {
        (name, file): relative(found[name][file], files[file], "pd.output")
        for name in found
        for file in files
    }
    before, after = (blocks(found[name]["validation"]) for name in ("fitted", "asymmetric"))
    gain = bootstrap((before - after) / before.mean(), seed=0, level=0.95)
    numbers = parameters(result) | {
        "force_ratio_est": force["fitted", "estimation"] / force["published", "estimation"],
        "force_ratio_val": force["fitted", "validation"] / force["published", "validation"],
        "asymmetry_gain": gain.estimate,
        "asymmetry_gain_low": gain.low,
        "asymmetry_gain_high": gain.high,
        "coverage90_force": coverage([found["fitted"]["validation"]], "pd.output"),
    }
    for (name, file), error in force.items():
        numbers[f"{name}_{file}_force_pct"] = error
        position = relative(found[name][file], files[file], "axis.pos")
        numbers[f"{name}_{file}_position_pct"] = position
    numbers["cpu_seconds"] = time.process_time() - began
    show(
        "Closed-loop simulation, relative error of the force [%]",
        ("parameters", *FILES),
        [(name, *(force[name, file] for file in FILES)) for name in found],
    )
    show(
        "Parameters",
        ("address", "value", "low", "high", "verdict"),
        [(v.name, v.value, v.low, v.high, v.verdict) for v in (*result.verdicts, *other.verdicts)],
    )
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, COLUMNS, raw(found["fitted"]))
    return numbers


if __name__ == "__main__":
    main()
