"""Runs one small calibration again and again, killing it at random moments.

Usage: ``python resume_child.py FOLDER KILLS SEED``. Each attempt is a fork of a process that has
imported everything, so that kills fall into the work and not into imports. The last attempt is left
to finish.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from sameworld.core import Channel, Episode, Values, rollout
from sameworld.loops import CalibrateConfig, calibrate
from sameworld.stages.identify import IdentifyConfig
from sameworld.worlds import build
from sameworld.zoo import scene

FREE = ("body:bob.mass", "joint:pivot.damping")


def episodes():
    world = build(scene("pendulum"))
    rng = np.random.default_rng(5)
    start = Values(names=world.spec.start.names, array=rng.normal(0, [0.6, 0.8], (8, 2)))
    truth = Values(names=FREE, array=np.array([[0.62, 0.03]]))
    actions = np.cumsum(rng.normal(0, 0.2, (8, 60, 1)), axis=1)
    run = rollout(world, start, actions, parameters=truth)
    motor = world.spec.actions[0].name
    return [
        Episode(
            id=f"run{k}",
            channels=(
                Channel(
                    name="pivot.pos",
                    time=run.time,
                    values=run.signals["pivot.pos"][k] + rng.normal(0, 2e-3, 61),
                    unit="rad",
                ),
                Channel(name=motor, time=run.time[:-1], values=actions[k, :, 0], role="action"),
            ),
        )
        for k in range(8)
    ]


def work(folder):
    fit = IdentifyConfig(free=FREE, candidates=4, polished=1)
    config = CalibrateConfig(identify=fit, film=0)
    calibrate(scene("pendulum"), episodes(), config=config, out=Path(folder))


def attempt(folder, seconds):
    """Fork, work, and kill after ``seconds``; ``None`` lets it finish. Returns the time taken."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            work(folder)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if seconds is None and status != 0:
        raise SystemExit(f"the undisturbed attempt failed with status {status}")
    return time.monotonic() - began


def main():
    folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(seed)
    whole = attempt(f"{folder}-whole", None)
    for _ in range(kills):
        attempt(folder, float(rng.uniform(0, 0.6 * whole)))
    attempt(folder, None)


if __name__ == "__main__":
    main()
