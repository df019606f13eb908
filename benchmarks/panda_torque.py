"""Inertia and friction of a real Panda arm from its torque log; a payload from the same call.

Run: ``python -m benchmarks.panda_torque --data DIR --model FILE.xml [--out FILE.json]
[--predictions FILE.npz]``.

Data: exciting trajectory of a Franka Emika Panda (C. Gaz, M. Cognetti, A. Oliva, P. Robuffo
Giordano, A. De Luca, RA-L 4, 2019), 21 s at 1 kHz: positions, velocities, link-side torques. Rows
that repeat the row before are dropped. The log is cut in two at half its time; each half passes a
10 Hz zero-phase low-pass, and 0.5 s are dropped at both of its ends. Everything is fitted to, and
every option chosen by cross-validation within, the first half; the second is predicted from its
positions and velocities.

Baseline: inverse dynamics of the given model (armature, damping and friction of the joints at
zero) plus the sigmoid friction published with the data, on the same rows.

Payload: torques of the model's hand (0.73 kg) on the measured motion of the second half are added
to its measured torques, so that the noise is the real one; the arm stays as fitted to the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TypeAlias
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from defusedxml.ElementTree import fromstring
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.maths.inertia import inertial_vector
from sameworld.stages.identify.torque import (
    Motion,
    TorqueConfig,
    TorqueModel,
    fit_torque,
    identify_torque,
    read_motion,
)
from sameworld.worlds.explicit import ExplicitWorld, explicit_world

#: Mass [kg], centre [m] and principal moments [kg m^2] in the frame of the hand.
Load: TypeAlias = tuple[float, tuple[float, float, float], tuple[float, float, float]]

JOINTS = tuple(f"joint{k}" for k in range(1, 8))
COLUMNS = tuple(f"tau{k}" for k in range(1, 8))
#: Share of the log's time at which the halves meet; filter [Hz]; time dropped at each end [s].
HALF, CUTOFF, TRIM = 0.5, 10.0, 0.5
#: Published sigmoid friction: height [N m], steepness [s/rad], shift [rad/s].
HEIGHT = np.array([0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489])
STEEP = np.array([5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336])
SHIFT = np.array([0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526])
#: What cross-validation within the first half chooses from.
TERMS = (
    ("body:*", "joint:*.damping", "joint:*.frictionloss", "sensor:*.bias"),
    ("body:*", "joint:*.damping", "joint:*.frictionloss", "sensor:*.bias", "joint:*.stiffness"),
)
FRICTION = ("coulomb", "sigmoid", "dahl")
PULLS = (0.05, 0.1, 0.2, 0.4, 0.8)
#: The hand of the model with a hand.
HAND: Load = (0.73, (-0.01, 0.0, 0.03), (0.001, 0.0025, 0.0017))
#: What is assumed of the load before, and how far off it may be.
GUESS: Load = (0.3, (0.0, 0.0, 0.05), (5e-4, 5e-4, 5e-4))
GUESS_PULL = 1.0


def load(folder: Path) -> tuple[Episode, Episode]:
    """Both halves of the log, repeated rows dropped."""
    with np.load(folder / "exciting_traj_1.npz") as log:
        time, q, v, tau = (np.asarray(log[k], dtype=np.float64) for k in ("t", "q", "dq", "tau"))
    fresh = np.r_[True, (np.diff(np.hstack([q, v, tau]), axis=0) != 0).any(axis=1)]
    time, q, v, tau = time[fresh], q[fresh], v[fresh], tau[fresh]
    first = time <= time[0] + HALF * (time[-1] - time[0])
    halves = [
        _episode(f"half{k}", time[r], q[r], v[r], tau[r]) for k, r in ((1, first), (2, ~first))
    ]
    return halves[0], halves[1]


def _episode(
    name: str,
    time: NDArray[np.float64],
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    tau: NDArray[np.float64],
) -> Episode:
    channels: list[Channel] = []
    for k, joint in enumerate(JOINTS):
        channels += [
            Channel(name=f"{joint}.pos", time=time, values=q[:, k], unit="rad"),
            Channel(name=f"{joint}.vel", time=time, values=v[:, k], unit="rad/s"),
            Channel(name=COLUMNS[k], time=time, values=tau[:, k], unit="N m"),
        ]
    return Episode(id=name, channels=tuple(channels))


def arm(model: Path, load: Load | None) -> ExplicitWorld:
    """The model's mechanism: no pictures, no joint losses, torque sensors, perhaps a load."""
    root = fromstring(model.read_text(encoding="utf-8"))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("geom", "mesh", "material", "light", "actuator", "keyframe"):
                parent.remove(child)
        if parent.tag == "joint":
            for loss in ("armature", "damping", "frictionloss"):
                parent.attrib.pop(loss, None)
    sensors = SubElement(root, "sensor")
    for joint, column in zip(JOINTS, COLUMNS, strict=True):
        SubElement(sensors, "jointactuatorfrc", name=column, joint=joint)
    if load is not None:
        _attach(root, load)
    world = explicit_world(Scene(name="panda", mjcf=tostring(root, encoding="unicode")))
    losses = [
        Parameter(name=f"joint:{joint}.{part}", value=0.0, low=0.0, high=high)
        for joint in JOINTS
        for part, high in (("damping", 20.0), ("frictionloss", 20.0), ("stiffness", 20.0))
    ]
    return world.with_belief(Belief(parameters=tuple(losses)))


def _attach(root: Element, load: Load) -> None:
    flange = next(body for body in root.iter("body") if body.get("name") == "link7")
    hand = SubElement(flange, "body", name="hand", pos="0 0 0.107", quat="0.9238795 0 0 -0.3826834")
    mass, com, moments = load
    SubElement(
        hand,
        "inertial",
        mass=str(mass),
        pos=" ".join(map(str, com)),
        diaginertia=" ".join(map(str, moments)),
    )


def baseline(world: ExplicitWorld, motion: Motion) -> NDArray[np.float64]:
    """Torques of the given model plus published friction [N, 7]."""
    friction = HEIGHT / (1 + np.exp(-STEEP * (motion.v + SHIFT)))
    return (
        world.inverse(motion.q, motion.v, motion.a)
        + friction
        - HEIGHT / (1 + np.exp(-STEEP * SHIFT))
    )


def choose(world: ExplicitWorld, motion: Motion) -> tuple[TorqueConfig, TorqueModel]:
    """Options with the smallest cross-validated errors, geometric mean over joints."""
    trials: list[tuple[float, TorqueConfig, TorqueModel]] = []
    for terms, friction, pull in product(TERMS, FRICTION, PULLS):
        config = TorqueConfig(free=terms, friction=friction, pull=pull, cutoff=CUTOFF, trim=TRIM)
        model = fit_torque(world, [motion], channels=COLUMNS, config=config)
        trials.append((float(np.mean(np.log(model.validation))), config, model))
    best = min(trials, key=lambda trial: trial[0])
    return best[1], best[2]


def rms(error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean square of each column."""
    return np.sqrt(np.mean(error**2, axis=0))


def payload(
    model_file: Path, fitted: ExplicitWorld, motion: Motion, config: TorqueConfig
) -> dict[str, float]:
    """Mass of a synthetic load on real motion and noise, with its interval."""
    guessed = arm(model_file, GUESS)
    carrying = guessed.with_belief(fitted.parameters)
    factor = carrying.regressor(motion.q, motion.v, motion.a, ["hand"])[:, :, 0]
    true = inertial_vector(HAND[0], np.array(HAND[1]), np.diag(HAND[2]))
    loaded = replace(motion, torque=motion.torque + factor @ true)
    search = replace(config, free=("body:hand.*",), pull=GUESS_PULL)
    model = fit_torque(carrying, [loaded], channels=COLUMNS, config=search)
    rows = {v.name: v for v in model.verdicts}
    mass = rows["body:hand.mass"]
    com = np.array([rows[f"body:hand.com.{axis}"].value for axis in "xyz"])
    return {
        "payload_mass": mass.value,
        "payload_low": mass.low,
        "payload_high": mass.high,
        "payload_err_pct": 100 * abs(mass.value / HAND[0] - 1),
        "payload_inside": float(mass.low <= HAND[0] <= mass.high),
        "payload_com_err_mm": 1e3 * float(np.linalg.norm(com - np.array(HAND[1]))),
    }


def two_parts(world: ExplicitWorld, motion: Motion, config: TorqueConfig) -> dict[str, float]:
    """Do intervals of two parts of the first half cover each other? z of what both determine."""
    middle = len(motion) // 2
    parts = (motion.rows(slice(0, middle)), motion.rows(slice(middle, None)))
    models = [fit_torque(world, [m], channels=COLUMNS, config=config) for m in parts]
    z = [
        (one.value - two.value) / np.hypot(one.std, two.std)
        for one, two in zip(models[0].verdicts, models[1].verdicts, strict=True)
        if one.verdict == two.verdict == "determined"
    ]
    return {"parts_z_rms": float(np.sqrt(np.mean(np.square(z)))), "parts_compared": float(len(z))}


def at_rows(motion: Motion, episode: Episode, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values on the motion's clock brought to the recorded times inside it."""
    time = recorded(motion, episode)
    return np.stack([np.interp(time, motion.time, column) for column in values.T], axis=1)


def recorded(motion: Motion, episode: Episode) -> NDArray[np.float64]:
    """Recorded times inside a motion."""
    time = episode[COLUMNS[0]].time
    return time[(time >= motion.time[0]) & (time <= motion.time[-1])]


def scores(
    measured: NDArray[np.float64],
    said: NDArray[np.float64],
    base: NDArray[np.float64],
    half: NDArray[np.float64],
) -> dict[str, float]:
    """Residuals per joint against the baseline's, and coverage of 90 % intervals."""
    mine, theirs = rms(measured - said), rms(measured - base)
    numbers: dict[str, float] = {}
    for k, column in enumerate(COLUMNS):
        numbers[f"{column}_rms"], numbers[f"{column}_baseline_rms"] = (
            float(mine[k]),
            float(theirs[k]),
        )
        numbers[f"{column}_ratio"] = float(mine[k] / theirs[k])
    inside = np.abs(measured - said) <= half
    return numbers | {
        "worst_joint_ratio": float((mine / theirs).max()),
        "better_joints": float((mine < theirs).sum()),
        "coverage90": float(inside.mean()),
        "coverage90_lowest_joint": float(inside.mean(axis=0).min()),
    }


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    extra = argparse.ArgumentParser(add_help=False)
    extra.add_argument("--model", type=Path, help="panda_nohand.xml")
    own, rest = extra.parse_known_args(argv)
    opts = options(__doc__ or "", rest)
    if opts.data is None or own.model is None:
        raise SystemExit("Give the log and the model: --data DIR --model panda_nohand.xml.")
    world, (first, second) = arm(own.model, None), load(opts.data)
    plain = TorqueConfig(cutoff=CUTOFF, trim=TRIM)
    train, test = read_motion(world, first, plain), read_motion(world, second, plain)
    began = time.process_time()
    config, model = choose(world, train)
    chosen = time.process_time() - began
    fitted, _, result = identify_torque(world, [first], config=config)
    said = model.predict(test)
    half = model.half_width(test)
    numbers = scores(
        at_rows(test, second, test.torque),
        at_rows(test, second, said),
        at_rows(test, second, baseline(world, test)),
        at_rows(test, second, half),
    )
    assert isinstance(fitted, ExplicitWorld)
    numbers |= payload(own.model, fitted, test, config) | two_parts(world, train, config)
    numbers |= {"choose_cpu_seconds": chosen, "fit_cpu_seconds": result.cpu_seconds}
    numbers |= {"pull": config.pull, "stiffness": float("joint:*.stiffness" in config.free)}
    numbers |= {f"friction_{shape}": float(config.friction == shape) for shape in FRICTION}
    numbers |= {f"{c}_cv_rms": float(v) for c, v in zip(COLUMNS, model.validation, strict=True)}
    show("Second half of the Panda log", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    tables = {"e2": said, "lo2": said - half, "hi2": said + half}
    arrays = {name: at_rows(test, second, table) for name, table in tables.items()}
    write_predictions(opts.predictions, COLUMNS, arrays | {"t2": recorded(test, second)})
    return numbers


if __name__ == "__main__":
    main()
