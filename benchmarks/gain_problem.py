"""The frozen gain problem: fourteen servo gains of a Panda from one noisy recording of two seconds.

The mesh-free Panda of ``panda_arm`` begins at rest at home and follows smooth multi-sine targets by
position servos. Stiffness and damping of all seven are unknown by factors drawn log-uniformly from
[0.5, 2]; the box is [0.25, 4]. Joint positions are measured at 100 Hz with white noise of 1 mrad.
A second recording with other targets and noise is held out. Everybody knows the start.

Targets: ``MultiSine`` around home with amplitudes of 0.3 rad and frequencies from 0.1 to 2 Hz, five
sines to a joint. Truth, targets and noise are functions of the seed and were settled before any
fit was looked at.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, replace

import mujoco
import mujoco.rollout
import numpy as np
from numpy.typing import NDArray

from benchmarks.panda_arm import HOME, PERIOD, SERVO_DAMPING, STIFFNESS, TIMESTEP, panda_scene
from sameworld.core import Belief, Channel, Episode, Parameter, Scene
from sameworld.policies import MultiSine

Array = NDArray[np.float64]

JOINTS = 7
SECONDS = 2.0
NOISE_SD = 1e-3
AMPLITUDE = 0.3
TRUE_FACTOR_RANGE = (0.5, 2.0)
FACTOR_LOW, FACTOR_HIGH = 0.25, 4.0
NAMES = (
    *(f"actuator:servo{k + 1}.kp" for k in range(JOINTS)),
    *(f"actuator:servo{k + 1}.kv" for k in range(JOINTS)),
)
NOMINAL = np.array([*STIFFNESS, *SERVO_DAMPING])
_TICKS = round(SECONDS / PERIOD)
_STEPS = round(PERIOD / TIMESTEP)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """Targets and noisy joint positions.

    Attributes:
        controls: Targets of the servos per control period [T, 7] rad.
        positions: Measured joint positions [T+1, 7] rad, start included.
        motion: The same without noise [T+1, 7] rad; for scores alone.
    """

    controls: Array
    positions: Array
    motion: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class GainProblem:
    """One truth with a recording to fit and one to predict.

    Attributes:
        seed: Seed of everything.
        true_factors: True over nominal gains [14].
        fitted: The recording that is fitted.
        held: The recording that is predicted.
    """

    seed: int
    true_factors: Array
    fitted: Recorded
    held: Recorded


@dataclass
class RolloutCounter:
    """Counts simulated recordings of 2 s."""

    rollouts: int = 0


def make_problem(seed: int) -> GainProblem:
    """Draw one problem."""
    rng = np.random.default_rng([seed, 0])
    low, high = np.log(TRUE_FACTOR_RANGE)
    factors = np.exp(rng.uniform(low, high, len(NAMES)))
    return GainProblem(
        seed=seed,
        true_factors=factors,
        fitted=_recorded(factors, 2 * seed, rng),
        held=_recorded(factors, 2 * seed + 1, rng),
    )


def simulate(controls: Array, factors: Array, counter: RolloutCounter | None = None) -> Array:
    """Simulate candidates on the calling thread.

    Args:
        controls: Targets per control period [T, 7] rad.
        factors: Factors on the nominal gains [N, 14].
        counter: Receives ``N`` more rollouts.

    Returns:
        Joint positions [N, T+1, 7] rad.
    """
    if counter is not None:
        counter.rollouts += len(factors)
    models = [_edited(row) for row in factors]
    start = np.zeros((len(factors), 1 + 2 * JOINTS))
    start[:, 1 : 1 + JOINTS] = HOME
    fine = np.repeat(controls, _STEPS, axis=0)[None]
    state, _ = mujoco.rollout.rollout(models, _scratch(), start, fine)
    rows = state[:, _STEPS - 1 :: _STEPS]
    return np.concatenate([start[:, None], rows], axis=1)[:, :, 1 : 1 + JOINTS]


def gain_scene() -> Scene:
    """The nominal arm, with the box as bounds and no opinion inside it."""
    belief = Belief(
        parameters=tuple(
            Parameter(
                name=name,
                value=value,
                low=FACTOR_LOW * value,
                high=FACTOR_HIGH * value,
                transform="log",
            )
            for name, value in zip(NAMES, NOMINAL.tolist(), strict=True)
        )
    )
    return replace(panda_scene(), belief=belief)


def episode_of(recorded: Recorded, name: str) -> Episode:
    """The recording as an episode with a known start: at rest at home."""
    time = PERIOD * np.arange(len(recorded.positions))
    measured = [
        Channel(
            name=f"joint{k + 1}.pos",
            time=time,
            values=recorded.positions[:, k],
            unit="rad",
            noise=NOISE_SD,
        )
        for k in range(JOINTS)
    ]
    held = [
        Channel(
            name=f"servo{k + 1}",
            time=time[:-1],
            values=recorded.controls[:, k],
            unit="rad",
            role="action",
        )
        for k in range(JOINTS)
    ]
    return Episode(id=name, channels=(*measured, *held), start=_home())


def _home() -> Belief:
    places = {f"start:joint{k + 1}.pos": (value, "rad") for k, value in enumerate(HOME)}
    places |= {f"start:joint{k + 1}.vel": (0.0, "rad/s") for k in range(JOINTS)}
    return Belief(
        parameters=tuple(
            Parameter(name=name, value=value, std=1e-9, unit=unit, scope="episode")
            for name, (value, unit) in places.items()
        )
    )


def _recorded(factors: Array, motion: int, rng: np.random.Generator) -> Recorded:
    driver = MultiSine(
        amplitude=np.full(JOINTS, AMPLITUDE), period=PERIOD, centre=np.array(HOME), seed=motion
    )
    carry, rows = driver.init(1), list[Array]()
    for _ in range(_TICKS):
        carry, action = driver.act(carry, {})
        rows.append(action[0])
    controls = np.array(rows)
    exact = simulate(controls, factors[None])[0]
    noise = NOISE_SD * rng.standard_normal(exact.shape)
    return Recorded(controls=controls, positions=exact + noise, motion=exact)


@functools.cache
def _model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(panda_scene().mjcf)


@functools.cache
def _scratch() -> mujoco.MjData:
    return mujoco.MjData(_model())


def _edited(factors: Array) -> mujoco.MjModel:
    """A copy of the nominal model with other gains; nothing is derived from them."""
    model = copy.copy(_model())
    stiffness, damping = NOMINAL[:JOINTS] * factors[:JOINTS], NOMINAL[JOINTS:] * factors[JOINTS:]
    model.actuator_gainprm[:, 0] = stiffness
    model.actuator_biasprm[:, 1] = -stiffness
    model.actuator_biasprm[:, 2] = -damping
    return model
