"""Real Franka arms following joint commands: fit impedance and delay, leave one episode out.

Run: ``python -m benchmarks.panda_droid --data DIR --model FILE.xml [--out FILE.json]
[--predictions FILE.npz]``.

Data: eleven DROID episodes (A. Khazatsky et al., "DROID: a large-scale in-the-wild robot
manipulation dataset", RSS 2024) as given with Ctrl-World (MIT licence): commanded and measured
joint positions at 15 Hz. Every episode is predicted open loop from its commands and its first
``WARMUP`` rows, by a world that was fitted to the other ten. Metric: root mean square over the
seven joints and all scored rows of an episode, then over episodes.

Baseline: the command itself, late by a constant number of rows, the best number for each episode
chosen on that very episode (an advantage: ours never sees it).

The arm is the given MuJoCo model without its hand; each joint gets an impedance with gravity
compensation, a transport delay, and the joint's own friction.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json, write_predictions
from sameworld.core import Channel, Component, Episode, Prediction, Scene
from sameworld.core.predict import predict_all
from sameworld.core.progress import silent
from sameworld.core.world import World
from sameworld.loops.metrics import coverage
from sameworld.stages.actuate import ActuateConfig, actuate
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.store import load_scene
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig

JOINTS = tuple(f"joint{k}" for k in range(1, 8))
#: Rows from which a start may be found; never scored.
WARMUP = 5
#: Rows by which the baseline's command may be late.
LAGS = range(10)
PERIOD, SUBSTEPS = 1 / 15, 4
#: Default joint impedance of the robot's driver: stiffness [N m/rad], damping [N m s/rad].
STIFFNESS = (40.0, 30.0, 50.0, 25.0, 35.0, 25.0, 10.0)
DAMPING = (4.0, 6.0, 5.0, 5.0, 3.0, 2.0, 1.0)
FREE = (
    "component:*.stiffness",
    "component:*.damping",
    "component:*.delay",
)


def load(folder: Path | None) -> tuple[Episode, ...]:
    """The episodes with commands, named after their files.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit("Give the folder of the data set: --data DIR (subset/annotation in it).")
    files = sorted((folder / "subset" / "annotation").glob("*/*.json"), key=lambda p: int(p.stem))
    return tuple(_episode(file) for file in files)


def _episode(file: Path) -> Episode:
    record = json.loads(file.read_text())
    measured = np.array(record["observation.state.joint_position"], dtype=np.float64)
    sent = np.array(record["action.joint_position"], dtype=np.float64)
    clock = PERIOD * np.arange(len(measured), dtype=np.float64)
    observed = [
        Channel(name=f"{joint}.pos", time=clock, values=measured[:, k], unit="rad", noise=0.001)
        for k, joint in enumerate(JOINTS)
    ]
    commands = [
        Channel(name=joint, time=clock, values=sent[:, k], unit="rad", role="action")
        for k, joint in enumerate(JOINTS)
    ]
    return Episode(id=file.stem, channels=(*observed, *commands))


def nominal(model: Path, threads: int) -> World:
    """The arm with the driver's default impedance on every joint."""
    plain = _without_contact(load_scene(model))
    config = ActuateConfig(preset="torque", joints=JOINTS, replace=True)
    driven, _ = actuate(plain, config=config)
    components = tuple(
        Component(
            name=f"{joint}_impedance",
            type="joint_impedance",
            version=1,
            target=f"actuator:{joint}",
            settings={"stiffness": STIFFNESS[k], "damping": DAMPING[k], "delay": 0.05},
        )
        for k, joint in enumerate(JOINTS)
    )
    scene = Scene(name="panda", mjcf=driven.mjcf, assets=driven.assets, components=components)
    return build(scene, "explicit", config=ExplicitConfig(threads=threads, period=PERIOD))


def _without_contact(scene: Scene) -> Scene:
    """The scene stepped ``SUBSTEPS`` times per command, without contact."""
    option = (
        f'<option timestep="{PERIOD / SUBSTEPS!r}" integrator="implicitfast">'
        '<flag contact="disable"/></option></mujoco>'
    )
    text = scene.mjcf.replace("</mujoco>", option)
    return Scene(name=scene.name, mjcf=text, assets=scene.assets)


def config() -> IdentifyConfig:
    """Whole episodes; the driver's defaults are a start, not a prior."""
    return IdentifyConfig(
        free=FREE,
        warmup=WARMUP,
        window=math.inf,
        starts="warmup",
        weighting="channel",
        candidates=0,
        polished=1,
        evaluations=5,
        difference=0.01,
        holdout=0.0,
        rounds=1,
    )


def baseline(episode: Episode) -> tuple[float, int]:
    """Smallest rms of a command that comes a constant number of rows late, and that number."""
    sent = np.column_stack([episode[j].values for j in JOINTS])
    seen = np.column_stack([episode[f"{j}.pos"].values for j in JOINTS])
    found = [
        (
            float(
                np.sqrt(
                    np.mean(
                        (
                            sent[WARMUP - k if k < WARMUP else 0 : len(sent) - k]
                            - seen[max(WARMUP, k) :]
                        )
                        ** 2
                    )
                )
            ),
            k,
        )
        for k in LAGS
    ]
    return min(found)


def rms(prediction: Prediction) -> float:
    """Error over joints and scored rows [rad]."""
    errors = np.concatenate([prediction.channels[f"{j}.pos"].error for j in JOINTS], axis=1)
    return float(np.sqrt(np.mean(errors**2)))


def leave_one_out(
    world: World, episodes: Sequence[Episode]
) -> tuple[list[Prediction], list[IdentifyResult]]:
    """Predictions of every episode by a world fitted to the others."""
    predictions: list[Prediction] = []
    results: list[IdentifyResult] = []
    for k, episode in enumerate(episodes):
        others = [e for e in episodes if e is not episode]
        fitted, _, result = identify(world, others, config=config(), progress=silent)
        predictions += predict_all(fitted, [episode], WARMUP)
        results.append(result)
        print(f"episode {k + 1}/{len(episodes)}: rms {rms(predictions[-1]):.4f} rad", flush=True)
    return predictions, results


def raw(predictions: Sequence[Prediction]) -> dict[str, NDArray[np.float64]]:
    """Predictions and 90 % bounds of the joints, per episode."""
    arrays: dict[str, NDArray[np.float64]] = {}
    for found in predictions:
        channels = [found.channels[f"{j}.pos"] for j in JOINTS]
        arrays[f"e{found.episode}"] = np.column_stack([c.values for c in channels])
        arrays[f"lo{found.episode}"] = np.column_stack([c.low for c in channels])
        arrays[f"hi{found.episode}"] = np.column_stack([c.high for c in channels])
    return arrays


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--model", type=Path, required=True)
    mine, rest = parser.parse_known_args(argv)
    opts = options(__doc__ or "", rest)
    episodes = load(opts.data)
    world = nominal(mine.model, opts.threads)
    began = time.process_time()
    predictions, results = leave_one_out(world, episodes)
    lags = [baseline(e) for e in episodes]
    given = predict_all(world, episodes, WARMUP)
    ours = np.array([rms(p) for p in predictions])
    late = np.array([error for error, _ in lags])
    verdicts = [v for v in results[0].verdicts if not v.name.endswith("delay")]
    numbers = {
        "rms_over_lag_baseline": float(np.sqrt(np.mean(ours**2) / np.mean(late**2))),
        "rms_rad": float(np.sqrt(np.mean(ours**2))),
        "lag_baseline_rad": float(np.sqrt(np.mean(late**2))),
        "nominal_rad": float(np.sqrt(np.mean([rms(p) ** 2 for p in given]))),
        "episodes_better": float(np.sum(ours < late)),
        "gains_only_in_combination": float(
            sum(v.verdict == "only in combination" for v in verdicts)
        ),
        "gains_determined": float(sum(v.verdict == "determined" for v in verdicts)),
        "coverage90": float(np.mean([coverage(predictions, f"{j}.pos") for j in JOINTS])),
        "cpu_seconds": time.process_time() - began,
    }
    for verdict in results[0].verdicts:
        numbers |= {f"{verdict.name}.value": verdict.value, f"{verdict.name}.std": verdict.std}
    show(
        "Left-out episodes, rms over seven joints [rad]",
        ("episode", "ours", "command late by", "its rms", "ratio"),
        [
            (e.id, float(o), f"{k} rows", float(b), float(o / b))
            for e, o, (b, k) in zip(episodes, ours, lags, strict=True)
        ],
    )
    show(
        f"Parameters without episode {episodes[0].id}",
        ("address", "value", "low", "high", "verdict", "why"),
        [(v.name, v.value, v.low, v.high, v.verdict, v.detail) for v in results[0].verdicts],
    )
    write_json(opts.out, numbers)
    write_predictions(opts.predictions, tuple(f"q{k}" for k in range(1, 8)), raw(predictions))
    return numbers


if __name__ == "__main__":
    main()
