"""Speed of the differentiable world beside MuJoCo: simulation, Jacobians, reverse mode, start-up.

Everything is CPU time on one thread, as ratios within one run. ``forward`` is one rollout of the
same scene by the same world.

- Jacobian of all signals of a Panda over 200 steps by 10 parameters, in forward mode, in forwards;
  beside it the same Jacobian by central differences through ``mujoco.rollout``, which is cheaper on
  a CPU for so few parameters.
- Derivative of a sum over a trajectory of 1000 steps by all 7000 actions, in reverse mode.
- 64 elements of 200 steps beside ``mujoco.rollout``: the Panda, and a T that is pushed on a table.
- A Jacobian program in a second process, beside the first one, which traces and compiles it.
- Where it is installed (``pip install mujoco-mjx==3.17.0``), MJX on the same four problems: keys
  ``mjx_`` are its CPU time over ours, and CPU-seconds of its first call. A problem that it does
  not finish in ten minutes has no keys.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.convention import Options, options, show, write_json
from benchmarks.opponents import mjx
from benchmarks.panda_arm import HOME, panda_scene
from sameworld.core.arrays import Array
from sameworld.core.jacobian import jacobian
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.worlds.differentiable import DifferentiableWorld, differentiable_world
from sameworld.worlds.explicit import explicit_world

TICKS, LONG, BATCH, PARAMETERS = 200, 1000, 64, 10
REPETITIONS = 7
BOUNDS = {
    "jacobian_over_forward": 12.0,
    "reverse_over_forward": 8.0,
    "peak_gb": 0.1,
    "warm_over_cold": 0.15,
    "batch_over_mujoco": 0.3,
    "batch_over_mujoco_smooth": 0.45,
}

PUSHT = """
<mujoco><option timestep="0.005" integrator="Euler" cone="pyramidal"/>
<worldbody>
<geom name="table" type="plane" size="1 1 0.1" friction="0.5"/>
<body name="tee" pos="0 0 0.02"><freejoint/>
<geom name="bar" type="box" size="0.1 0.025 0.02" mass="0.2"/>
<geom name="stem" type="box" size="0.025 0.075 0.02" pos="0 -0.1 0" mass="0.15"/></body>
<body name="pusher" pos="0 0.06 0.02">
<joint name="x" type="slide" axis="1 0 0" damping="2"/>
<joint name="y" type="slide" axis="0 1 0" damping="2"/>
<geom name="tip" type="sphere" size="0.015" mass="0.1" friction="0.5"/></body>
</worldbody>
<contact><exclude body1="world" body2="pusher"/></contact>
<actuator><position name="to_x" joint="x" kp="60"/><position name="to_y" joint="y" kp="60"/>
</actuator></mujoco>
"""
_STARTUP = """
import sys, time
import numpy as np
from benchmarks.diff_speed import TICKS, panda, panda_names
from sameworld.core.values import Values
world = panda()
begun = time.process_time()
actions, names = np.zeros((1, TICKS, 7)), panda_names(world)
world.gradient(world.spec.start.mean, actions, Values.none(), names, seed=0)
sys.stdout.write(f"seconds {time.process_time() - begun}")
"""


def panda() -> DifferentiableWorld:
    """A Panda without friction, limits and sensors: smooth dynamics."""
    return differentiable_world(_panda_scene())


def _panda_scene() -> Scene:
    mjcf = panda_scene().mjcf.replace('contact="disable"', 'contact="disable" limit="disable"')
    mjcf = re.sub(r' frictionloss="[^"]*"', "", mjcf)
    mjcf = re.sub(r"<sensor>.*</sensor>", "", mjcf)
    mjcf = re.sub(r'<numeric name="control_period"[^>]*/>', "", mjcf)
    return Scene(name="panda", mjcf=mjcf)


def panda_names(world: DifferentiableWorld) -> tuple[str, ...]:
    """Seven masses and three dampings."""
    names = world.parameters.names
    masses = [n for n in names if re.fullmatch(r"body:link\d\.mass", n)]
    dampings = [n for n in names if re.fullmatch(r"joint:joint\d\.damping", n)]
    return (*masses[:7], *dampings[: PARAMETERS - 7])


def main() -> None:
    """Measure, print the table, write the JSON."""
    given = options(__doc__ or "")
    numbers, rows = measure(given)
    show("Differentiable world", ("what", "measured", "bound", "note"), rows)
    write_json(given.out, numbers)


def measure(given: Options) -> tuple[dict[str, float], list[tuple[object, ...]]]:
    """All numbers, and rows of the table."""
    rng = np.random.default_rng(given.seed)
    numbers = _jacobians(rng) | _reverse(rng) | _batches(rng) | _startup()
    beside = _mjx(numbers, rng) if mjx.available() else {}
    notes = {
        "jacobian_over_forward": f"{numbers['jacobian_ms']:.3g} ms; by differences through "
        f"mujoco.rollout {numbers['differences_ms']:.3g} ms",
        "reverse_over_forward": f"{numbers['reverse_ms']:.3g} ms for {LONG} steps",
        "warm_over_cold": f"{numbers['warm_s']:.3g} against {numbers['cold_s']:.3g} CPU-s",
        "batch_over_mujoco": f"{numbers['contact_steps_per_cpu_s']:.3g} steps per CPU-s",
        "batch_over_mujoco_smooth": f"{numbers['smooth_steps_per_cpu_s']:.3g} steps per CPU-s",
    }
    rows: list[tuple[object, ...]] = [
        (key, numbers[key], bound, notes.get(key, "")) for key, bound in BOUNDS.items()
    ]
    rows += [(key, value, "", "") for key, value in beside.items()]
    return numbers | beside, rows


def _motion(rng: np.random.Generator, batch: int, ticks: int) -> Array:
    """Joint targets [B, T, 7] that swing around the home pose."""
    phase = rng.uniform(0, 2 * np.pi, (batch, 1, 7))
    swing = 0.2 * np.sin(np.linspace(0, 6, ticks)[None, :, None] + phase)
    return np.asarray(HOME) + swing


def _jacobians(rng: np.random.Generator) -> dict[str, float]:
    world, plain = panda(), explicit_world(_panda_scene())
    names, actions = panda_names(world), _motion(rng, 1, TICKS)
    start, none = world.spec.start.mean, Values.none()
    state = world.reset(start)
    forward, exact = _compared(
        lambda: world.rollout(state, actions),
        lambda: world.gradient(start, actions, none, names, seed=0),
    )
    _, differences = _compared(
        lambda: world.rollout(state, actions),
        lambda: jacobian(plain, start, actions, wrt=names, method="differences"),
    )
    return {
        "jacobian_over_forward": exact / forward,
        "jacobian_ms": 1e3 * exact,
        "differences_ms": 1e3 * differences,
    }


def _reverse(rng: np.random.Generator) -> dict[str, float]:
    world = panda()
    actions, start = _motion(rng, 1, LONG), world.spec.start.mean
    weights = {"joint1.pos": np.ones((1, LONG + 1, 1)), "joint4.vel": np.ones((1, LONG + 1, 1))}
    state = world.reset(start)
    forward, backward = _compared(
        lambda: world.rollout(state, actions),
        lambda: world.pullback(start, actions, weights, wrt=()),
    )
    return {
        "reverse_over_forward": backward / forward,
        "reverse_ms": 1e3 * backward,
        "peak_gb": world.kernel.temporary_memory("backward") / 1e9,
    }


def _batches(rng: np.random.Generator) -> dict[str, float]:
    smooth = _batch(_panda_scene(), _motion(rng, BATCH, TICKS))
    contact = _batch(Scene(name="pusht", mjcf=PUSHT), _pushes(rng))
    return {
        "batch_over_mujoco_smooth": smooth[0],
        "smooth_steps_per_cpu_s": smooth[1],
        "batch_over_mujoco": contact[0],
        "contact_steps_per_cpu_s": contact[1],
    }


def _pushes(rng: np.random.Generator) -> Array:
    """Targets [B, T, 2] of the tip that pushes the T, away from where it is."""
    to = np.stack([rng.uniform(-0.05, 0.05, BATCH), rng.uniform(-0.15, -0.05, BATCH)], axis=1)
    return np.linspace(0, 1, TICKS)[None, :, None] * to[:, None, :]


def _batch(scene: Scene, actions: Array) -> tuple[float, float]:
    """Speed over that of ``mujoco.rollout``, and steps per CPU-second."""
    world, plain = differentiable_world(scene), explicit_world(scene)
    start = world.spec.start.mean.broadcast(BATCH)
    state = world.reset(start)
    initial = plain.reset(start).arrays["integration"]
    initial = np.ascontiguousarray(initial[:, plain.kernel.layout.full])
    model = plain.kernel.model
    data = mujoco.MjData(model)  # pyright: ignore[reportAttributeAccessIssue]
    models = [model] * BATCH
    if not world.rollout(state, actions).valid.all():
        raise RuntimeError(f"elements of scene '{scene.name}' failed")
    theirs, ours = _compared(
        lambda: mujoco.rollout.rollout(models, data, initial, actions, nstep=TICKS),
        lambda: world.rollout(state, actions),
    )
    return theirs / ours, BATCH * TICKS / ours


def _mjx(ours: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    """CPU time of MJX over ours per problem, and of its first call [s]."""
    arm = explicit_world(_panda_scene()).kernel.model
    tee = explicit_world(Scene(name="pusht", mjcf=PUSHT)).kernel.model
    parameters = {"bodies": arm.jnt_bodyid[:7], "dofs": np.arange(PARAMETERS - 7)}
    tasks = {
        "smooth": (arm, {"actions": _motion(rng, BATCH, TICKS)}),
        "contact": (tee, {"actions": _pushes(rng)}),
        "jacobian": (arm, {"actions": _motion(rng, 1, TICKS), **parameters}),
        "reverse": (arm, {"actions": _motion(rng, 1, LONG)}),
    }
    seconds = {
        "smooth": BATCH * TICKS / ours["smooth_steps_per_cpu_s"],
        "contact": BATCH * TICKS / ours["contact_steps_per_cpu_s"],
        "jacobian": 1e-3 * ours["jacobian_ms"],
        "reverse": 1e-3 * ours["reverse_ms"],
    }
    with ThreadPoolExecutor(2) as pool:
        runs = {
            name: pool.submit(mjx.measure, model, name, **arrays)
            for name, (model, arrays) in tasks.items()
        }
    found: dict[str, float] = {}
    for name, run in runs.items():
        theirs = run.result()
        if theirs:
            found[f"mjx_{name}_over_ours"] = theirs["seconds"] / seconds[name]
            found[f"mjx_{name}_first_s"] = theirs["first_s"]
    return found


def _startup() -> dict[str, float]:
    """CPU-seconds of the first Jacobian in a first and in a second process."""
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SAMEWORLD_"))}
        env["XDG_CACHE_HOME"] = folder
        for _ in range(2):
            run = [sys.executable, "-c", _STARTUP]
            out = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
            seconds.append(float(out.stdout.split()[-1]))
    cold, warm = seconds
    return {"cold_s": cold, "warm_s": warm, "warm_over_cold": warm / cold}


def _compared(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Median CPU seconds of two calls, taken in turns after one warm-up each."""
    for run in (first, second):
        run()
    pairs = [(_seconds(first), _seconds(second)) for _ in range(REPETITIONS)]
    a, b = np.median(np.array(pairs), axis=0).tolist()
    return a, b


def _seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call, repeated until it fills a twentieth of a second."""
    count, begun = 0, time.process_time()
    while True:
        run()
        count += 1
        spent = time.process_time() - begun
        if spent > 0.05:
            return spent / count


if __name__ == "__main__":
    main()
