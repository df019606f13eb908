"""The frozen arm problem: eight parameters of a 7-joint arm from one noisy 2 s recording.

A serial arm with position servos follows smooth random multi-sine targets; only its joint
positions are measured, with white noise of 1 mrad. Eight parameters are unknown by factors drawn
log-uniformly from [0.5, 2]: two link masses, two joint dampings, two Coulomb frictions and two
servo gains. So is the start: the arm is caught in motion, away from its nominal posture.

Everything here is fixed and shared by every method, so that `benchmarks/opponents` and sameworld
itself are compared on the same data, with the same simulator and the same rollout count.

Time stamps are those of the states: measurement `k` belongs to the state at time `k * dt`, the
start included, and control `k` acts from `k * dt` to `(k + 1) * dt`.
"""

import copy
import functools
from dataclasses import dataclass

import mujoco
import mujoco.rollout
import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

DT = 0.002
STEPS = 1000
JOINTS = 7
NOISE_SD = 1e-3

LINK_MASSES = (4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 0.8)
LINK_LENGTH = 0.2
JOINT_AXES = ("0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1")
SERVO_GAINS = (400.0, 400.0, 300.0, 300.0, 150.0, 100.0, 60.0)
DAMPING = 1.0
ARMATURE = 0.05
FRICTIONLOSS = 0.3
POSTURE = (0.0, 0.4, 0.0, -0.8, 0.0, 0.6, 0.0)

NAMES = (
    "body:link3.mass",
    "body:link5.mass",
    "joint:j2.damping",
    "joint:j4.damping",
    "joint:j2.frictionloss",
    "joint:j4.frictionloss",
    "actuator:a2.kp",
    "actuator:a4.kp",
)
TRUE_FACTOR_RANGE = (0.5, 2.0)
FACTOR_LOW = 0.25
FACTOR_HIGH = 4.0

SINES = 4
FREQUENCY_RANGE = (0.2, 1.0)
TARGET_AMPLITUDE = 0.4
TARGET_SPEED = 1.0
START_OFFSET = 0.1
START_SPEED = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmProblem:
    """One recording of the arm, with the truth that made it. Arrays are read-only.

    Args:
        seed: Seed that drew truth, start, targets and noise.
        times: Time of each measurement [s], shape [T+1].
        positions: Measured joint positions, noise included [rad], shape [T+1, 7].
        controls: Servo targets [rad], shape [T, 7].
        true_factors: True value over nominal value of each parameter, shape [8].
        true_qpos: True joint positions at time 0 [rad], shape [7].
        true_qvel: True joint velocities at time 0 [rad/s], shape [7].
        names: Address of each parameter.
        nominal: Nominal values [kg | N m s/rad | N m | N m/rad], shape [8].
        low: Lower bounds in the units of `nominal`, shape [8].
        high: Upper bounds in the units of `nominal`, shape [8].
        noise_sd: Standard deviation of the measurement noise [rad].
    """

    seed: int
    times: Array
    positions: Array
    controls: Array
    true_factors: Array
    true_qpos: Array
    true_qvel: Array
    names: tuple[str, ...]
    nominal: Array
    low: Array
    high: Array
    noise_sd: float


@dataclass
class RolloutCounter:
    """Counts simulated trajectories of 2 s, the currency of the shoot-out."""

    rollouts: int = 0


def arm_mjcf() -> str:
    """Write the nominal arm as MJCF: 7 capsule links, position servos, no contacts.

    The seven `jointpos` sensors `q1` to `q7` are there for methods that read sensors.
    """
    bodies = "".join(_link_mjcf(i) for i in range(JOINTS)) + "</body>" * JOINTS
    servos = "".join(
        f'<position name="a{i + 1}" joint="j{i + 1}" kp="{kp}"/>'
        for i, kp in enumerate(SERVO_GAINS)
    )
    sensors = "".join(f'<jointpos name="q{i + 1}" joint="j{i + 1}"/>' for i in range(JOINTS))
    return (
        '<mujoco model="arm"><compiler angle="radian"/>'
        f'<option timestep="{DT}" integrator="implicitfast"><flag contact="disable"/></option>'
        f'<default><joint type="hinge" damping="{DAMPING}" armature="{ARMATURE}"'
        f' frictionloss="{FRICTIONLOSS}"/></default>'
        f"<worldbody>{bodies}</worldbody>"
        f"<actuator>{servos}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


def make_problem(seed: int) -> ArmProblem:
    """Draw one problem: truth, start, targets and noise all follow from `seed`."""
    truth_rng, start_rng, target_rng, noise_rng = (
        np.random.default_rng([seed, stream]) for stream in range(4)
    )
    factors = _log_uniform(truth_rng, TRUE_FACTOR_RANGE, (len(NAMES),))
    controls = _draw_targets(target_rng)
    qpos = controls[0] + start_rng.uniform(-START_OFFSET, START_OFFSET, JOINTS)
    qvel = start_rng.uniform(-START_SPEED, START_SPEED, JOINTS)
    exact = _rollout([_edited_model(factors)], controls, qpos[None], qvel[None])[0]
    nominal = nominal_values()
    return ArmProblem(
        seed=seed,
        times=_locked(DT * np.arange(STEPS + 1)),
        positions=_locked(exact + NOISE_SD * noise_rng.standard_normal(exact.shape)),
        controls=_locked(controls),
        true_factors=_locked(factors),
        true_qpos=_locked(qpos),
        true_qvel=_locked(qvel),
        names=NAMES,
        nominal=_locked(nominal),
        low=_locked(FACTOR_LOW * nominal),
        high=_locked(FACTOR_HIGH * nominal),
        noise_sd=NOISE_SD,
    )


def simulate(
    problem: ArmProblem,
    factors: Array,
    qpos0: Array,
    qvel0: Array,
    counter: RolloutCounter | None = None,
) -> Array:
    """Simulate the recorded controls for `N` candidates in one single-threaded call.

    Args:
        problem: Gives the controls.
        factors: Factors on the nominal values, shape [N, 8].
        qpos0: Joint positions at time 0 [rad], shape [N, 7].
        qvel0: Joint velocities at time 0 [rad/s], shape [N, 7].
        counter: Receives `N` more rollouts.

    Returns:
        Joint positions at `problem.times` [rad], shape [N, T+1, 7].
    """
    if counter is not None:
        counter.rollouts += len(factors)
    models = [_edited_model(row) for row in factors]
    return _rollout(models, problem.controls, qpos0, qvel0)


def mean_error(problem: ArmProblem, factors: Array) -> float:
    """Mean absolute relative error of the eight parameters [%]; the metric of the shoot-out."""
    return float(100.0 * np.mean(np.abs(factors / problem.true_factors - 1.0)))


def nominal_values() -> Array:
    """Nominal values of the eight parameters, in the order of `NAMES`, shape [8]."""
    model = _nominal_model()
    readers = {
        "mass": lambda name: model.body(name).mass[0],
        "damping": lambda name: model.joint(name).damping[0],
        "frictionloss": lambda name: model.joint(name).frictionloss[0],
        "kp": lambda name: model.actuator(name).gainprm[0],
    }
    return np.array([readers[field](name) for name, field in map(split_address, NAMES)])


def split_address(address: str) -> tuple[str, str]:
    """Split `kind:name.field` into `(name, field)`."""
    name, field = address.split(":")[1].split(".")
    return name, field


@functools.cache
def _nominal_model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(arm_mjcf())


@functools.cache
def _scratch() -> mujoco.MjData:
    return mujoco.MjData(_nominal_model())


def _edited_model(factors: Array) -> mujoco.MjModel:
    """Copy the nominal model and scale its eight fields; constants are refreshed.

    A mass carries its inertia along (uniform density); a servo gain is two fields.
    """
    model = copy.copy(_nominal_model())
    for (name, field), factor in zip(map(split_address, NAMES), factors, strict=True):
        match field:
            case "mass":
                body = model.body(name).id
                model.body_mass[body] *= factor
                model.body_inertia[body] *= factor
            case "damping":
                model.dof_damping[model.joint(name).dofadr] *= factor
            case "frictionloss":
                model.dof_frictionloss[model.joint(name).dofadr] *= factor
            case "kp":
                actuator = model.actuator(name).id
                model.actuator_gainprm[actuator, 0] *= factor
                model.actuator_biasprm[actuator, 1] *= factor
    mujoco.mj_setConst(model, _scratch())
    return model


def _rollout(models: list[mujoco.MjModel], controls: Array, qpos0: Array, qvel0: Array) -> Array:
    """Roll out on the calling thread and keep the positions, start included."""
    start = np.concatenate([np.zeros((len(models), 1)), qpos0, qvel0], axis=1)
    state, _ = mujoco.rollout.rollout(models, _scratch(), start, controls[None])
    return np.concatenate([start[:, None], state], axis=1)[:, :, 1 : 1 + JOINTS]


def _draw_targets(rng: np.random.Generator) -> Array:
    """Draw smooth servo targets around the posture [rad], shape [T, 7].

    Each joint gets a few sines of random phase and log-uniform frequency, scaled to reach the
    amplitude limit or the speed limit, whichever comes first.
    """
    times = DT * np.arange(STEPS)
    frequencies = _log_uniform(rng, FREQUENCY_RANGE, (JOINTS, SINES))
    phases = rng.uniform(0.0, 2.0 * np.pi, (JOINTS, SINES))
    omega = 2.0 * np.pi * frequencies
    waves = np.sin(omega * times[:, None, None] + phases) / omega
    speeds = np.cos(omega * times[:, None, None] + phases)
    shape, speed = waves.sum(axis=2), speeds.sum(axis=2)
    scale = np.minimum(
        TARGET_AMPLITUDE / np.abs(shape).max(axis=0), TARGET_SPEED / np.abs(speed).max(axis=0)
    )
    return np.array(POSTURE) + scale * shape


def _link_mjcf(index: int) -> str:
    offset = LINK_LENGTH if index else 0.0
    return (
        f'<body name="link{index + 1}" pos="0 0 {offset}">'
        f'<joint name="j{index + 1}" axis="{JOINT_AXES[index]}"/>'
        f'<geom type="capsule" size="0.05" fromto="0 0 0 0 0 {LINK_LENGTH}"'
        f' mass="{LINK_MASSES[index]}"/>'
    )


def _log_uniform(
    rng: np.random.Generator, limits: tuple[float, float], shape: tuple[int, ...]
) -> Array:
    low, high = limits
    return np.exp(rng.uniform(np.log(low), np.log(high), shape))


def _locked(array: ArrayLike) -> Array:
    locked = np.array(array, dtype=np.float64)
    locked.setflags(write=False)
    return locked
