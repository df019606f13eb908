"""Are the intervals honest where the truth is known and the simulator is not quite right?

Run: ``python -m benchmarks.honesty_synthetic [--seed 1] [--out FILE.json]``.

Fifty problems from five scenes, with parameters drawn from the prior that the fit is given. The
recordings come from plain MuJoCo with another integrator (fourth-order Runge-Kutta) and a ten times
finer time step than the fitted world (Euler or implicit, 0.5 or 1 ms), from random starts that the
fit is not told, with white measurement noise. Over all problems and parameters the errors should be
as large as the reported standard deviations say (``z_rms`` about 1) and the 90 % intervals should
hold the truth 90 times in a hundred.

No interval can cover a bias that all episodes share. First-order integrators delay forces by half a
time step: at 2 ms masses come out wrong by a few tenths of a percent, several times what the noise
of twelve episodes explains, and a stiff servo's damping by some percent. Time steps were therefore
refined until the gap between the simulations stayed within the noise, as a user would. A box that
slides on a table depends on the step so much that refining was too dear; it is reported apart.

What this does and does not show: noise, duration, time steps, damping and the choice of scenes were
settled over about eight rounds in which the z-scores of seed 0 were looked at, and the fits use
whole episodes with joint starts, six rounds of scales and no held-out share, not the defaults. The
published numbers are those of seed 1, drawn once after everything was settled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from benchmarks.convention import options, show, write_json
from sameworld.core import Belief, Channel, Episode, Parameter, Scene
from sameworld.maths.intervals import wilson
from sameworld.stages.identify import IdentifyConfig, IdentifyResult, identify
from sameworld.worlds import build

#: Problems per scene, and episodes per problem.
PROBLEMS, EPISODES = 10, 12
#: Distance between the problems of one seed and those of the next.
SEEDS = 1000
#: Problems of the scene with contact, which is reported apart.
CONTACTS = 3
#: Rounds of re-estimating residual scales: enough for them to settle.
ROUNDS = 6
#: How many times finer the data are stepped than the fitted world.
FINER = 10
DURATION = 1.5
#: Spread of the logarithm of every parameter: the prior of the fit and the draw of the truth.
SPREAD = math.log(1.5)
_NORMAL90 = 1.6448536

_HEAD = """<mujoco><compiler angle="radian"/>
<custom><numeric name="control_period" data="{period}"/></custom>
<option timestep="{step}" integrator="{integrator}" {options}/>"""

_PENDULUM = """<worldbody><body name="bob" pos="0 0 1">
  <joint name="pivot" axis="0 1 0" damping="{damping}" frictionloss="{friction}"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".01" mass="0" contype="0" conaffinity="0"/>
  <geom type="sphere" pos="0 0 -.5" size=".05" mass="{mass}" contype="0" conaffinity="0"/>
</body></worldbody><actuator><motor name="torque" joint="pivot"/></actuator></mujoco>"""

_CART = """<worldbody><body name="cart">
  <joint name="rail" type="slide" axis="1 0 0" damping="{damping}" stiffness="{stiffness}"/>
  <geom type="box" size=".1 .06 .05" mass="{mass}"/>
</body></worldbody><actuator><motor name="force" joint="rail"/></actuator></mujoco>"""

_ARM = """<worldbody><body name="upper" pos="0 0 1">
  <joint name="shoulder" axis="0 1 0" damping="{damping1}" {joint1}/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03" mass="{mass1}" contype="0"
    conaffinity="0"/>
  <body name="lower" pos="0 0 -.4">
    <joint name="elbow" axis="0 1 0" damping="{damping2}" {joint2}/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".025" mass="{mass2}" contype="0"
      conaffinity="0"/>
</body></body></worldbody><actuator>{actuators}</actuator></mujoco>"""

_TORQUES = '<motor name="m1" joint="shoulder"/><motor name="m2" joint="elbow"/>'
_SERVOS = """<position name="m1" joint="shoulder" kp="{kp1}"/>
  <position name="m2" joint="elbow" kp="{kp2}"/>"""

_STAGE = """<worldbody><body name="table">
  <joint name="screw" type="slide" axis="1 0 0" damping="{damping}" frictionloss="{friction}"/>
  <geom type="box" size=".1 .1 .05" mass="{mass}"/>
</body></worldbody><actuator><position name="drive" joint="screw" kp="200"/></actuator></mujoco>"""

_BOX = """<worldbody>
  <geom name="table" type="plane" size="9 9 .05" friction="{slide} .005 .0001"/>
  <body name="box" pos="0 0 .05"><joint name="slide" type="slide" axis="1 0 0"/>
    <joint name="lift" type="slide" axis="0 0 1"/>
    <geom name="block" type="box" size=".08 .05 .05" mass="{mass}"
      friction=".05 .005 .0001"/></body>
</worldbody><actuator><motor name="pull" joint="slide"/></actuator></mujoco>"""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One scene of the benchmark.

    Attributes:
        text: MJCF with places for parameter values.
        nominal: Place in the text to value.
        addresses: Place in the text to parameter address.
        fixed: Values of places that are not fitted.
        integrator: Integrator of the fitted world.
        step: Time step of the fitted world [s].
        period: Control period [s].
        every: Control periods per measurement.
        drive: Largest action per actuator.
        wave: Whether actions are smooth waves instead of steps.
        noise: Noise per joint of the measured positions [rad or m].
        speed: Noise of the measured speeds [rad/s or m/s], ``None`` if they are not measured.
        start: Spread of the start positions and speeds.
        resting: Joints that are known to rest at zero when an episode begins, with the spreads
            of their position and speed; they are not measured.
        options: Further MuJoCo options.
    """

    text: str
    nominal: Mapping[str, float]
    addresses: Mapping[str, str]
    fixed: Mapping[str, str]
    integrator: str
    step: float
    period: float
    every: int
    drive: tuple[float, ...]
    wave: bool
    noise: float
    speed: float | None
    start: tuple[float, float]
    resting: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    options: str = ""

    def mjcf(self, values: Mapping[str, float], integrator: str, step: float) -> str:
        """The scene with parameter values, an integrator and a time step."""
        head = _HEAD.format(
            period=self.period, step=step, integrator=integrator, options=self.options
        )
        places = {**self.fixed, **{k: repr(float(v)) for k, v in values.items()}}
        return head + self.text.format(**places)


_ARM_MASSES = {"mass1": 1.5, "mass2": 0.8}
_ARM_ADDRESSES = {
    "mass1": "body:upper.mass",
    "mass2": "body:lower.mass",
    "damping1": "joint:shoulder.damping",
    "damping2": "joint:elbow.damping",
    "kp1": "actuator:m1.kp",
    "kp2": "actuator:m2.kp",
    "friction1": "joint:shoulder.frictionloss",
    "friction2": "joint:elbow.frictionloss",
}


def _chosen(*places: str) -> dict[str, str]:
    return {place: _ARM_ADDRESSES[place] for place in places}


SETUPS: dict[str, Setup] = {
    "pendulum": Setup(
        text=_PENDULUM,
        nominal={"mass": 0.5, "damping": 0.03, "friction": 0.02},
        addresses={
            "mass": "body:bob.mass",
            "damping": "joint:pivot.damping",
            "friction": "joint:pivot.frictionloss",
        },
        fixed={},
        integrator="Euler",
        step=0.001,
        period=0.02,
        every=1,
        drive=(1.5,),
        wave=False,
        noise=0.005,
        speed=None,
        start=(0.8, 1.5),
    ),
    "cart": Setup(
        text=_CART,
        nominal={"mass": 1.5, "damping": 1.0, "stiffness": 8.0},
        addresses={
            "mass": "body:cart.mass",
            "damping": "joint:rail.damping",
            "stiffness": "joint:rail.stiffness",
        },
        fixed={},
        integrator="Euler",
        step=0.0005,
        period=0.02,
        every=1,
        drive=(10.0,),
        wave=False,
        noise=0.003,
        speed=0.05,
        start=(0.3, 0.5),
    ),
    "torque_arm": Setup(
        text=_ARM.replace("{actuators}", _TORQUES),
        nominal=_ARM_MASSES | {"damping1": 0.5, "damping2": 0.25},
        addresses=_chosen("mass1", "mass2", "damping1", "damping2"),
        fixed={"joint1": "", "joint2": ""},
        integrator="implicitfast",
        step=0.001,
        period=0.01,
        every=2,
        drive=(3.0, 1.0),
        wave=False,
        noise=0.005,
        speed=None,
        start=(0.5, 0.5),
    ),
    "servo_arm": Setup(
        text=_ARM.replace("{actuators}", _SERVOS)
        .replace("{joint1}", 'armature=".02" frictionloss="{friction1}"')
        .replace("{joint2}", 'armature=".01" frictionloss="{friction2}"'),
        nominal={
            "mass2": 0.8,
            "damping2": 1.0,
            "kp1": 20.0,
            "kp2": 10.0,
            "friction1": 0.3,
            "friction2": 0.15,
        },
        addresses=_chosen("mass2", "damping2", "kp1", "kp2", "friction1", "friction2"),
        fixed={"mass1": "1.5", "damping1": "2"},
        integrator="implicitfast",
        step=0.001,
        period=0.01,
        every=2,
        drive=(0.7, 0.9),
        wave=True,
        noise=0.005,
        speed=None,
        start=(0.3, 0.3),
    ),
    "stage": Setup(
        text=_STAGE,
        nominal={"mass": 4.0, "damping": 40.0, "friction": 6.0},
        addresses={
            "mass": "body:table.mass",
            "damping": "joint:screw.damping",
            "friction": "joint:screw.frictionloss",
        },
        fixed={},
        integrator="Euler",
        step=0.0005,
        period=0.02,
        every=1,
        drive=(0.3,),
        wave=True,
        noise=0.001,
        speed=None,
        start=(0.1, 0.2),
    ),
}

#: Contact depends on the time step far beyond the noise: reported apart, not in the totals.
APART: dict[str, Setup] = {
    "sliding_box": Setup(
        text=_BOX,
        nominal={"mass": 0.8, "slide": 0.3},
        addresses={"mass": "body:box.mass", "slide": "pair:block+table.friction.slide"},
        fixed={},
        integrator="implicitfast",
        step=0.002,
        period=0.01,
        every=4,
        drive=(8.0,),
        wave=False,
        noise=0.004,
        speed=None,
        start=(0.0, 0.5),
        resting={"lift": (2e-4, 2e-3)},
        options='cone="elliptic"',
    ),
}


def draw_truth(setup: Setup, rng: np.random.Generator) -> dict[str, float]:
    """Values from the prior, cut at two and a half deviations; unfitted places stay nominal."""
    factors = np.exp(SPREAD * np.clip(rng.standard_normal(len(setup.nominal)), -2.5, 2.5))
    return {
        place: value * float(factor) if place in setup.addresses else value
        for (place, value), factor in zip(setup.nominal.items(), factors, strict=True)
    }


def draw_actions(setup: Setup, ticks: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Actions [T, A]: steps held for a fifth of a second, or sums of three waves."""
    drive = np.array(setup.drive)
    if not setup.wave:
        hold = round(0.2 / setup.period)
        knots = rng.uniform(-1, 1, (ticks // hold + 1, len(drive)))
        return drive * np.repeat(knots, hold, axis=0)[:ticks]
    clock = setup.period * np.arange(ticks)[:, None, None]
    frequency = rng.uniform(0.3, 1.5, (len(drive), 3))
    phase = rng.uniform(0, 2 * math.pi, (len(drive), 3))
    return drive * np.sin(2 * math.pi * frequency * clock + phase).mean(axis=2)


def record(
    setup: Setup, truth: Mapping[str, float], rng: np.random.Generator
) -> tuple[Episode, ...]:
    """Episodes of the true system, stepped finely by plain MuJoCo."""
    model = mujoco.MjModel.from_xml_string(setup.mjcf(truth, "RK4", setup.step / FINER))
    data = mujoco.MjData(model)
    inner, ticks = round(setup.period / setup.step * FINER), round(DURATION / setup.period)
    clock = setup.period * np.arange(ticks + 1)
    joints = [model.joint(j).name for j in range(model.njnt)]
    found: list[Episode] = []
    for number in range(EPISODES):
        mujoco.mj_resetData(model, data)
        moving = [j for j, name in enumerate(joints) if name not in setup.resting]
        data.qpos[moving] = setup.start[0] * rng.standard_normal(len(moving))
        data.qvel[moving] = setup.start[1] * rng.standard_normal(len(moving))
        actions = draw_actions(setup, ticks, rng)
        states = np.empty((ticks + 1, 2, model.nv))
        states[0] = data.qpos, data.qvel
        for tick in range(ticks):
            data.ctrl[:] = actions[tick]
            mujoco.mj_step(model, data, nstep=inner)
            states[tick + 1] = data.qpos, data.qvel
        found.append(_episode(setup, number, model, joints, clock, states, actions, rng))
    return tuple(found)


def _episode(
    setup: Setup,
    number: int,
    model: mujoco.MjModel,
    joints: Sequence[str],
    clock: NDArray[np.float64],
    states: NDArray[np.float64],
    actions: NDArray[np.float64],
    rng: np.random.Generator,
) -> Episode:
    channels: list[Channel] = []
    for part, noise in (("pos", setup.noise), ("vel", setup.speed)):
        for j, joint in enumerate(joints):
            if noise is not None and joint not in setup.resting:
                exact = states[:: setup.every, 0 if part == "pos" else 1, j]
                values = exact + noise * rng.standard_normal(len(exact))
                time = clock[:: setup.every]
                channels.append(Channel(name=f"{joint}.{part}", time=time, values=values))
    for a in range(model.nu):
        name = model.actuator(a).name
        channels.append(Channel(name=name, time=clock[:-1], values=actions[:, a], role="action"))
    rest = tuple(
        Parameter(name=f"start:{joint}.{part}", value=0.0, std=std, scope="episode")
        for joint, spreads in setup.resting.items()
        for part, std in zip(("pos", "vel"), spreads, strict=True)
    )
    start = Belief(parameters=rest)
    return Episode(id=f"e{number}", channels=tuple(channels), start=start, source="mujoco")


def fit(setup: Setup, episodes: Sequence[Episode], seed: int) -> IdentifyResult:
    """Fit the coarse world with the prior that the truth was drawn from."""
    parameters = tuple(
        Parameter(
            name=address,
            value=setup.nominal[place],
            low=setup.nominal[place] / 20,
            high=setup.nominal[place] * 20,
            std=SPREAD * setup.nominal[place],
            transform="log",
        )
        for place, address in setup.addresses.items()
    )
    scene = Scene(
        name="truth known",
        mjcf=setup.mjcf(setup.nominal, setup.integrator, setup.step),
        belief=Belief(parameters=parameters),
    )
    config = IdentifyConfig(
        free=tuple(setup.addresses.values()),
        window=math.inf,  # no scene here forgets its start
        starts="joint",
        rounds=ROUNDS,
        holdout=0.0,
        seed=seed,
    )
    return identify(build(scene), episodes, config=config)[2]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Errors of one problem, in logarithms [P].

    Attributes:
        z: Errors over reported deviations.
        naive: Errors over those of J'J.
        inside: Whether the 90 % intervals held the truth.
        spread: Reported relative deviations.
    """

    z: NDArray[np.float64]
    naive: NDArray[np.float64]
    inside: NDArray[np.bool_]
    spread: NDArray[np.float64]


def judge(setup: Setup, truth: Mapping[str, float], result: IdentifyResult) -> Outcome:
    """Compare estimates with the truth."""
    rows = [(truth[place], result.verdict(a)) for place, a in setup.addresses.items()]
    error = np.array([math.log(row.value / value) for value, row in rows])
    std = np.array([row.std / row.value for _, row in rows])
    naive = np.array([row.naive_std / row.value for _, row in rows])
    inside = np.array([row.low <= value <= row.high for value, row in rows])
    return Outcome(z=error / std, naive=error / naive, inside=inside, spread=std)


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Numbers over problems and parameters."""
    z = np.concatenate([o.z for o in outcomes])
    naive = np.concatenate([o.naive for o in outcomes])
    inside = np.concatenate([o.inside for o in outcomes])
    low, high = wilson(int(inside.sum()), len(inside))
    return {
        "z_rms": float(np.sqrt(np.mean(z**2))),
        "z_mean": float(np.mean(z)),
        "z_worst": float(np.max(np.abs(z))),
        "coverage90": float(np.mean(inside)),
        "coverage90_low": float(low),
        "coverage90_high": float(high),
        "z_rms_naive": float(np.sqrt(np.mean(naive**2))),
        "coverage90_naive": float(np.mean(np.abs(naive) <= _NORMAL90)),
        "spread_median": float(np.median(np.concatenate([o.spread for o in outcomes]))),
        "numbers": float(len(z)),
    }


def run(name: str, setup: Setup, problems: int, seed: int) -> list[Outcome]:
    """Generate and fit the problems of one scene."""
    found: list[Outcome] = []
    for problem in range(seed * SEEDS, seed * SEEDS + problems):
        rng = np.random.default_rng([*name.encode(), problem])
        truth = draw_truth(setup, rng)
        found.append(judge(setup, truth, fit(setup, record(setup, truth, rng), problem)))
        z = " ".join(f"{v:+.2f}" for v in found[-1].z)
        print(f"{name} {len(found)}/{problems}: z = {z}", flush=True)
    return found


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    began = time.process_time()
    found = {name: run(name, SETUPS[name], PROBLEMS, opts.seed) for name in SETUPS}
    apart = {name: run(name, APART[name], CONTACTS, opts.seed) for name in APART}
    numbers = summary([o for outcomes in found.values() for o in outcomes])
    per_scene = {name: summary(outcomes) for name, outcomes in (found | apart).items()}
    for name, each in per_scene.items():
        numbers |= {f"{name}.{key}": value for key, value in each.items()}
    numbers |= {
        "problems": float(PROBLEMS * len(SETUPS)),
        "cpu_seconds": time.process_time() - began,
    }
    keys = ("z_rms", "z_mean", "coverage90", "z_rms_naive", "coverage90_naive", "spread_median")
    rows = [(n, *(per_scene[n][k] for k in keys)) for n in found]
    show(
        "Known truth, finer integrator (errors over reported deviations)",
        ("scene", *keys),
        [
            *rows,
            ("all", *(numbers[k] for k in keys)),
            *((f"{n} (apart)", *(per_scene[n][k] for k in keys)) for n in apart),
        ],
    )
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
