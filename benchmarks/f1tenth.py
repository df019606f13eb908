"""A 1:10 race car on the plane: fit a bicycle on the even runs, predict the odd ones for 3 s.

Run: ``python -m benchmarks.f1tenth --data DIR [--out FILE.json] [--predictions FILE.npz]``.

Data: F1tenth runs of N. Kochdumper and S. Bak, "Conformant synthesis for Koopman operator
linearized control systems" (2022), CC0. Forty-one runs of 3 s at 40 Hz: position, heading, speed;
desired steering angle and speed. A run is predicted open loop from its first row; that row is not
scored. Metrics: root mean square over all scored rows of the distance to the recorded position, and
of the heading error.

Fitted: gain, offset and lag of steering and speed, a transport delay, where on the car the recorded
point lies (``rear``, ahead of the rear axle), the heading's zero, gain and delay of the speed
sensor. Only the ratio of steering gain and wheelbase is determined, so the wheelbase keeps its
nominal 0.33 m.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from sameworld.core import Belief, Channel, Component, Episode, Parameter, Prediction, Scene
from sameworld.core.predict import predict_all
from sameworld.core.world import World
from sameworld.loops.metrics import coverage
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig

#: Runs to fit and to predict.
RUNS = 41
TRAIN, TEST = range(0, RUNS, 2), range(1, RUNS, 2)
#: Rows from which a start may be found; never scored.
WARMUP = 1
COLUMNS = ("x", "y", "heading", "speed")
CHANNELS = ("x.pos", "y.pos", "yaw.pos", "car.speed")
UNITS = ("m", "m", "rad", "m/s")
#: Measurement noise: half the spread of second differences of slow stretches [unit].
NOISE = (0.004, 0.006, 0.003, 0.003)
MJCF = """<mujoco><compiler angle="radian"/>
<custom><numeric name="control_period" data="0.025"/></custom>
<option timestep="0.0125" gravity="0 0 0"/>
<worldbody><body name="chassis">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
  <joint name="yaw" axis="0 0 1"/>
  <geom type="box" size=".2 .1 .05" mass="3.5" contype="0" conaffinity="0"/>
</body></worldbody></mujoco>"""
FREE = (
    "component:car.rear",
    "component:car.steer_*",
    "component:car.speed_*",
    "component:car.delay",
    "sensor:car.speed.gain",
    "sensor:car.speed.delay",
    "sensor:yaw.pos.bias",
)


def load(folder: Path | None) -> tuple[Episode, ...]:
    """All runs as episodes.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit("Give the folder of the data set: --data DIR (runs.npz in it).")
    with np.load(folder / "runs.npz", allow_pickle=False) as data:
        states, commands = data["x"].astype(np.float64), data["u"].astype(np.float64)
        clock, begins = data["t"].astype(np.float64), data["start"].tolist()
    return tuple(
        _episode(k, clock[a:b] - clock[a], states[a:b], commands[a:b])
        for k, (a, b) in enumerate(pairwise(begins))
    )


def _episode(
    number: int,
    clock: NDArray[np.float64],
    states: NDArray[np.float64],
    commands: NDArray[np.float64],
) -> Episode:
    observed = [
        Channel(name=name, time=clock, values=states[:, k], unit=UNITS[k], noise=NOISE[k])
        for k, name in enumerate(CHANNELS)
    ]
    sent = [
        Channel(name=name, time=clock, values=commands[:, k], unit=unit, role="action")
        for k, (name, unit) in enumerate((("car.steering", "rad"), ("car.throttle", "m/s")))
    ]
    # Wheels are taken to stand as the first command says; nothing measures them.
    wheels = Parameter(
        name="start:car.steer", value=float(commands[0, 0]), std=0.02, unit="rad", scope="episode"
    )
    start = Belief(parameters=(wheels,))
    return Episode(id=str(number), channels=(*observed, *sent), start=start)


def nominal(threads: int) -> World:
    """The bicycle as a user would set it up from a ruler, nothing fitted."""
    car = Component(name="car", type="kinematic_car", version=1, target="body:chassis")
    scene = Scene(name="f1tenth", mjcf=MJCF, components=(car,))
    return build(scene, "explicit", config=ExplicitConfig(threads=threads))


def config() -> IdentifyConfig:
    """Whole runs, starts from their first row as in predictions."""
    return IdentifyConfig(
        free=FREE,
        warmup=WARMUP,
        window=math.inf,
        starts="joint",
        weighting="channel",
        candidates=16,
    )


def rms(predictions: Sequence[Prediction]) -> dict[str, float]:
    """Position [cm], heading [deg] and speed [cm/s] over all scored rows."""
    errors = {n: np.concatenate([p.channels[n].error[:, 0] for p in predictions]) for n in CHANNELS}
    square = {n: float(np.mean(e**2)) for n, e in errors.items()}
    return {
        "position_cm": 100 * math.sqrt(square["x.pos"] + square["y.pos"]),
        "heading_deg": math.degrees(math.sqrt(square["yaw.pos"])),
        "speed_cm_s": 100 * math.sqrt(square["car.speed"]),
    }


def raw(predictions: Sequence[Prediction]) -> dict[str, NDArray[np.float64]]:
    """Predictions and 90 % bounds in the data's columns, per test run."""
    arrays: dict[str, NDArray[np.float64]] = {}
    for index, found in zip(TEST, predictions, strict=True):
        channels = [found.channels[n] for n in CHANNELS]
        arrays[f"e{index}"] = np.column_stack([c.values for c in channels])
        arrays[f"lo{index}"] = np.column_stack([c.low for c in channels])
        arrays[f"hi{index}"] = np.column_stack([c.high for c in channels])
    return arrays


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    runs = load(opts.data)
    train, test = [runs[k] for k in TRAIN], [runs[k] for k in TEST]
    world = nominal(opts.threads)
    began = time.process_time()
    fitted, _, result = identify(world, train, config=config())
    seconds = time.process_time() - began
    before, after = predict_all(world, test, WARMUP), predict_all(fitted, test, WARMUP)
    numbers = rms(after)
    numbers |= {f"nominal_{key}": value for key, value in rms(before).items()}
    numbers |= {f"train_{k}": v for k, v in rms(predict_all(fitted, train, WARMUP)).items()}
    numbers |= {
        f"coverage90_{c}": coverage(after, n) for c, n in zip(COLUMNS, CHANNELS, strict=True)
    }
    for verdict in result.verdicts:
        numbers |= {f"{verdict.name}.value": verdict.value, f"{verdict.name}.std": verdict.std}
    numbers |= {"misfit_factor": result.misfit_factor, "cpu_seconds": seconds}
    show(
        "Held-out runs, 3 s open loop (rms)",
        ("", "position cm", "heading deg", "speed cm/s"),
        [
            (label, *(numbers[f"{p}{k}"] for k in ("position_cm", "heading_deg", "speed_cm_s")))
            for label, p in (("nominal", "nominal_"), ("fitted", ""), ("fitted, train", "train_"))
        ],
    )
    show(
        "Parameters",
        ("address", "value", "low", "high", "verdict"),
        [(v.name, v.value, v.low, v.high, v.verdict) for v in result.verdicts],
    )
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, COLUMNS, raw(after))
    return numbers


if __name__ == "__main__":
    main()
