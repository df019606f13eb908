"""Speed of the explicit world against hand-written `mujoco.rollout` on the same models.

Four pure-MJCF scenes, 64 elements x 200 ticks, with one set of parameters and with 16 of them.
Both sides simulate the same starts, actions and parameters in one process and one thread; they
take turns, CPU time is compared, and the ratio is the median over the repetitions. The raw side is
given its edited models for free, and skips what a world adds: named signals, validity, reasons.

Six scenes with components follow, 128 elements x 100 ticks: raw is `mujoco.rollout` of the plain
MJCF twin, with Coulomb friction and damping on its joints and MuJoCo's own servos. Laws run in
numpy between engine steps, so a ratio of 1 is out of reach there.

Run: `python -m benchmarks.throughput [--out FILE.json]`. A ratio of 1 means no overhead; the
keys are `ratio_to_raw` (the smallest), `ratio_to_raw_SCENE[_batched]`, `component_ratio` (the
smallest with components), `component_ratio_SCENE`, and `ticks_per_second_...`.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
from numpy.typing import NDArray

from benchmarks.component_scenes import ComponentScene, component_scenes
from sameworld.core import Scene, Values, rollout
from sameworld.worlds.explicit import ExplicitWorld, explicit_world

Array = NDArray[np.float64]

BATCH = 64
TICKS = 200
REPETITIONS = 15
SETS = 16
COMPONENT_BATCH = 128
COMPONENT_TICKS = 100
COMPONENT_REPETITIONS = 5

CUBE = """
<mujoco model="cube"><option timestep="0.005"/><worldbody>
  <geom name="floor" type="plane" size="2 2 .1"/>
  <body name="cube" pos="0 0 .3"><freejoint/>
    <geom name="box" type="box" size=".05 .05 .05" mass=".37" friction=".3 .005 .0001"/></body>
</worldbody></mujoco>
"""
PENDULUM = """
<mujoco model="pendulum"><option timestep="0.005"/><worldbody>
  <body name="rod" pos="0 0 1"><joint name="pivot" axis="0 1 0" damping=".01"/>
    <geom name="bob" type="capsule" fromto="0 0 0 0 0 -.5" size=".02" mass=".5"/></body>
</worldbody><actuator><motor name="torque" joint="pivot"/></actuator></mujoco>
"""
CART = """
<mujoco model="cart"><option timestep="0.005"/>
<custom><numeric name="control_period" data="0.02"/></custom><worldbody>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0" damping=".5"/>
    <geom name="block" type="box" size=".1 .1 .05" mass="1" contype="0" conaffinity="0"/>
    <body name="pole"><joint name="hinge" axis="0 1 0" damping=".01"/>
      <geom name="stick" type="capsule" fromto="0 0 0 0 0 .6" size=".02" mass=".2"
        contype="0" conaffinity="0"/></body></body>
</worldbody><actuator><motor name="push" joint="rail" gear="10"/></actuator></mujoco>
"""


def arm_mjcf() -> str:
    """A serial arm of seven joints with position servos and a joint sensor each."""
    axes = ("0 0 1", "0 1 0") * 4
    bodies = "".join(
        f'<body name="link{i}" pos="0 0 {0.2 if i else 0.0}"><joint name="j{i}" axis="{axes[i]}" '
        f'damping="1" armature=".05" frictionloss=".3"/><geom name="tube{i}" type="capsule" '
        f'fromto="0 0 0 0 0 .2" size=".05" mass="{4 - 0.5 * i}" contype="0" conaffinity="0"/>'
        for i in range(7)
    )
    servos = "".join(f'<position name="a{i}" joint="j{i}" kp="200" kv="5"/>' for i in range(7))
    sensors = "".join(f'<jointpos name="encoder{i}" joint="j{i}"/>' for i in range(7))
    return (
        '<mujoco model="arm"><option timestep="0.002" integrator="implicitfast"/>'
        f"<worldbody>{bodies}{'</body>' * 7}</worldbody>"
        f"<actuator>{servos}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


SCENES = {
    "cube": (CUBE, ("body:cube.mass", "pair:box+floor.friction.slide")),
    "arm": (arm_mjcf(), ("body:link3.mass", "joint:j2.damping", "actuator:a4.kp")),
    "pendulum": (PENDULUM, ("body:rod.mass", "joint:pivot.damping")),
    "cart": (CART, ("body:cart.mass", "joint:rail.damping")),
}


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description="Explicit world against raw mujoco.rollout.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    options = parser.parse_args()
    numbers = measure(options.repetitions)
    numbers |= measure_components(min(options.repetitions, COMPONENT_REPETITIONS))
    if options.out is not None:
        options.out.write_text(json.dumps(numbers, indent=2) + "\n")


def measure(repetitions: int = REPETITIONS) -> dict[str, float]:
    """Measure every scene; prints one line each.

    Args:
        repetitions: Turns per scene and side.
    """
    numbers: dict[str, float] = {}
    print(f"{'scene':<18}{'ratio':>8}{'ticks/CPU-s':>14}{'raw':>12}")
    for name, (mjcf, names) in SCENES.items():
        for suffix in ("", "_batched"):
            world = explicit_world(Scene(name=name, mjcf=mjcf))
            ours, raw = _sides(world, names if suffix else ())
            ratio, seconds, raw_seconds = _compare(ours, raw, repetitions)
            key, ticks = f"{name}{suffix}", BATCH * TICKS
            numbers[f"ratio_to_raw_{key}"] = ratio
            numbers[f"ticks_per_second_{key}"] = ticks / seconds
            print(f"{key:<18}{ratio:>8.3f}{ticks / seconds:>14.0f}{ticks / raw_seconds:>12.0f}")
    ratios = [value for key, value in numbers.items() if key.startswith("ratio_to_raw_")]
    numbers["ratio_to_raw"] = min(ratios)
    print(f"{'smallest':<18}{min(ratios):>8.3f}")
    return numbers


def measure_components(repetitions: int = COMPONENT_REPETITIONS) -> dict[str, float]:
    """Measure every scene with components; prints one line each.

    Args:
        repetitions: Turns per scene and side.
    """
    numbers: dict[str, float] = {}
    for name, pair in component_scenes().items():
        ratio, seconds, raw_seconds = _compare(*_component_sides(pair), repetitions)
        ticks = COMPONENT_BATCH * COMPONENT_TICKS
        numbers[f"component_ratio_{name}"] = ratio
        numbers[f"ticks_per_second_{name}"] = ticks / seconds
        print(f"{name:<18}{ratio:>8.3f}{ticks / seconds:>14.0f}{ticks / raw_seconds:>12.0f}")
    ratios = [value for key, value in numbers.items() if key.startswith("component_ratio_")]
    numbers["component_ratio"] = min(ratios)
    print(f"{'smallest':<18}{min(ratios):>8.3f}")
    return numbers


def _component_sides(pair: ComponentScene) -> tuple[Callable[[], object], Callable[[], object]]:
    """A scene with components, and by hand its plain twin under actions of the same size."""
    rng = np.random.default_rng(0)
    world = explicit_world(pair.scene)
    twin = explicit_world(Scene(name="plain", mjcf=pair.plain))
    names = tuple(n for n in twin.spec.start.names if n.endswith(".vel"))
    start = Values(names=names, array=rng.normal(size=(COMPONENT_BATCH, len(names))))
    shape = (COMPONENT_BATCH, COMPONENT_TICKS)
    actions = rng.uniform(-0.4, 0.4, (*shape, world.spec.action_size))
    control = rng.uniform(-0.4, 0.4, (*shape, twin.spec.action_size))
    substeps = twin.kernel.tables.compiled.substeps
    control = np.repeat(control, substeps, axis=1)
    state = world.reset(start)
    rows = twin.reset(start).arrays["integration"]
    initial = np.ascontiguousarray(rows[:, twin.kernel.layout.full])
    models = [twin.kernel.model] * COMPONENT_BATCH
    data = mujoco.MjData(models[0])  # pyright: ignore[reportAttributeAccessIssue]
    steps = COMPONENT_TICKS * substeps

    def ours() -> object:
        return world.rollout(state, actions)

    def raw() -> object:
        return mujoco.rollout.rollout(models, data, initial, control, nstep=steps)

    if not world.rollout(state, actions).valid.all():
        raise RuntimeError(f"elements of scene '{pair.scene.name}' failed")
    return ours, raw


def _compare(
    ours: Callable[[], object], raw: Callable[[], object], repetitions: int
) -> tuple[float, float, float]:
    """Median ratio raw / ours, and the median CPU seconds of both."""
    ours(), raw()
    pairs = [(_seconds(ours), _seconds(raw)) for _ in range(repetitions)]
    mine, theirs = np.array(pairs).T
    return float(np.median(theirs / mine)), float(np.median(mine)), float(np.median(theirs))


def _seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def _sides(
    world: ExplicitWorld, names: tuple[str, ...]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The same simulation by the world and by hand."""
    rng = np.random.default_rng(0)
    speeds = [n for n in world.spec.start.names if n.endswith(".vel") or ".omega." in n]
    start = Values(names=tuple(speeds), array=rng.normal(size=(BATCH, len(speeds))))
    actions = rng.uniform(-0.5, 0.5, (BATCH, TICKS, world.spec.action_size))
    factors = np.repeat(rng.uniform(0.7, 1.4, (SETS, len(names))), BATCH // SETS, axis=0)
    means = np.array([world.parameters[name].value for name in names])
    parameters = Values(names=names, array=means * factors) if names else Values.none(BATCH)
    state = world.reset(start, parameters)
    assigned = world.kernel.models.assign(state.parameters.array, frozenset())
    models = [assigned[element].model for element in range(BATCH)]
    data = mujoco.MjData(models[0])  # pyright: ignore[reportAttributeAccessIssue]
    integration, layout = state.arrays["integration"], world.kernel.layout
    initial = np.ascontiguousarray(integration[:, layout.full])
    substeps = world.kernel.tables.compiled.substeps

    def ours() -> object:
        return world.rollout(state, actions)

    def raw() -> object:
        control = np.repeat(actions, substeps, axis=1) if actions.shape[2] else None
        steps = TICKS * substeps
        return mujoco.rollout.rollout(models, data, initial, control, nstep=steps)

    _check_same(world, start, parameters, actions, raw)
    return ours, raw


def _check_same(
    world: ExplicitWorld,
    start: Values,
    parameters: Values,
    actions: Array,
    raw: Callable[[], object],
) -> None:
    """Both sides must have simulated the same."""
    result = rollout(world, start, actions, parameters=parameters)
    full = raw()[0]  # type: ignore[index]
    layout, substeps = world.kernel.layout, world.kernel.tables.compiled.substeps
    ours = world.kernel.tables.observed[0].read(full[:, substeps - 1 :: substeps, layout.full_qpos])
    seen = result.signals[world.spec.observations[0].name][:, 1:]
    if not (result.valid.all() and np.allclose(ours, seen, rtol=0, atol=1e-12)):
        raise RuntimeError("the two sides of the benchmark do not simulate the same")


if __name__ == "__main__":
    main()
