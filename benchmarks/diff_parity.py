"""Agreement of the differentiable world with MuJoCo's C engine, and of its derivatives.

C runs at its tightest tolerance: at the usual one, differences would measure C's own residual.

- smooth: largest joint position error after 1000 steps, of a double pendulum, a Panda, and, with
  ``--data DIR`` (a folder of MJCF models), of every model in it without its contacts; a tensegrity
  in the air for 1000 steps.
- contact: error of the accelerations of one step relative to max(1, acceleration), over random
  touching poses of every pair of shapes, for pyramids and elliptic cones.
- push: position error of a T pushed for 500 steps; toss: of a cube up to its second impact.
- gradients: exact derivatives against central differences of the same program (the best of two
  steps), relative to the largest derivative by the same parameter, in forward mode; reverse mode
  against forward mode. In contact: bodies that slide, roll and pull on each other.
- nan_count: derivatives that are not finite, in both modes, at degenerate contacts.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.convention import Options, options, show, write_json
from benchmarks.diff_speed import PUSHT, panda, panda_names
from benchmarks.panda_arm import HOME
from sameworld.core.arrays import Array
from sameworld.core.jacobian import jacobian
from sameworld.core.rollout import rollout
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.worlds.differentiable import (
    DifferentiableConfig,
    DifferentiableWorld,
    differentiable_world,
)
from sameworld.worlds.explicit import explicit_world
from sameworld.zoo import scene as zoo_scene

SMOOTH_STEPS, PUSH_STEPS, TOSS_STEPS, POSES = 1000, 500, 300, 60
STEP = 1e-3
TIGHT = 'tolerance="1e-14" iterations="200" ls_iterations="100" ls_tolerance="1e-5"'
BOUNDS = {
    "smooth_err_rad": 1e-12,
    "tensegrity_err": 1e-9,
    "contact_acc_err_pyramidal": 1e-9,
    "contact_acc_err_elliptic": 1e-6,
    "push_err_m": 1e-9,
    "toss_err_m": 1e-6,
    "grad_rel_err_smooth": 1e-6,
    "grad_rel_err_contact": 1e-6,
    "reverse_rel_err": 1e-6,
    "nan_count": 0.0,
}
PENDULUM = """
<mujoco><option timestep="0.001"/><worldbody>
<body><joint name="first" axis="0 1 0"/>
<geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.3" contype="0" conaffinity="0"/>
<body pos="0 0 -0.3"><joint name="second" axis="0 1 0"/>
<geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.2" contype="0" conaffinity="0"/></body></body>
</worldbody></mujoco>
"""
CUBE = """
<mujoco><option timestep="0.002" {tight}/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="cube" pos="0 0 0.2"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.37"/>
</body></worldbody></mujoco>
"""
_HULL = "0 0 0  .09 0 0  0 .08 0  0 0 .07  .06 .06 .02  .05 .01 .06"
SHAPES = {
    "plane": 'type="plane" size="1 1 0.1"',
    "sphere": 'type="sphere" size="0.05"',
    "capsule": 'type="capsule" size="0.03 0.06"',
    "cylinder": 'type="cylinder" size="0.04 0.05"',
    "box": 'type="box" size="0.05 0.03 0.04"',
    "mesh": 'type="mesh" mesh="hull"',
}
PAIRS = (
    *(("plane", b) for b in ("sphere", "capsule", "box", "cylinder", "mesh")),
    *(("sphere", b) for b in ("sphere", "capsule", "box")),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
)
DIMENSIONS = (3, 4, 6, 1)


def main() -> None:
    """Measure, print the table, write the JSON."""
    given = options(__doc__ or "")
    numbers = measure(given)
    rows = [(key, numbers[key], bound) for key, bound in BOUNDS.items()]
    rows += [(key, value, "") for key, value in numbers.items() if key not in BOUNDS]
    show("Parity with MuJoCo C", ("what", "measured", "bound"), rows)
    write_json(given.out, numbers)


def measure(given: Options) -> dict[str, float]:
    """All numbers."""
    rng = np.random.default_rng(given.seed)
    numbers = smooth(rng, given.data)
    for cone in ("pyramidal", "elliptic"):
        numbers[f"contact_acc_err_{cone}"] = _contacts(cone, rng)
    numbers["push_err_m"] = push()
    numbers["toss_err_m"] = toss(rng)
    return numbers | _gradients(rng) | {"nan_count": float(_not_finite())}


# ---- simulation --------------------------------------------------------------------------------


def smooth(rng: np.random.Generator, data: Path | None) -> dict[str, float]:
    """Errors over ``SMOOTH_STEPS`` steps without contact [rad, m], models of a folder included."""
    errors = {"pendulum": _free_motion(Scene(name="pendulum", mjcf=PENDULUM), rng)}
    world = panda()
    actions = np.asarray(HOME) + 0.2 * np.sin(np.linspace(0, 9, SMOOTH_STEPS))[None, :, None]
    errors["panda"] = _error(world, Values.none(), actions, ".pos")
    for file in sorted(data.rglob("*.xml")) if data else ():
        scene = _model_scene(file)
        if scene is not None:
            errors[file.stem] = _free_motion(scene, rng)
    found = {f"smooth_err_{name}": value for name, value in errors.items()}
    found["smooth_err_rad"] = max(errors.values())
    return found | {"tensegrity_err": _tensegrity(rng)}


def _tensegrity(rng: np.random.Generator) -> float:
    """Position error [m] of a tensegrity that turns and shakes high above the floor."""
    world = differentiable_world(zoo_scene("tensegrity"), DifferentiableConfig(ignore=("*",)))
    spec = world.spec.start
    start = dict(zip(spec.names, spec.mean.array[0].tolist(), strict=True))
    for name in start:
        start[name] += 50.0 if name.endswith(".pos.z") else 0.0
        start[name] += rng.normal() if ".vel." in name or ".omega." in name else 0.0
    ticks = SMOOTH_STEPS // world.kernel.tables.compiled.substeps
    actions = np.zeros((1, ticks, world.spec.action_size))
    return _error(world, Values.of(start), actions, ".pos")


def _model_scene(file: Path) -> Scene | None:
    """A model file as a scene that does not collide; nothing where it holds no joint."""
    try:
        spec = mujoco.MjSpec.from_file(str(file))  # pyright: ignore[reportAttributeAccessIssue]
        joints = spec.compile().njnt
    except ValueError:
        return None
    if not joints:
        return None
    spec.option.disableflags |= 1 << 4  # contacts
    spec.option.tolerance, spec.option.ls_tolerance = 1e-14, 1e-5
    spec.option.iterations, spec.option.ls_iterations = 200, 100
    assets = {
        str(p.relative_to(file.parent)): p.read_bytes()
        for p in file.parent.rglob("*")
        if p.is_file()
    }
    return Scene(name=file.stem, mjcf=spec.to_xml(), assets=assets)


def _free_motion(scene: Scene, rng: np.random.Generator) -> float:
    world = differentiable_world(scene, DifferentiableConfig(ignore=("*",)))
    names = [n for n in world.spec.start.names if n.endswith(".vel")]
    start = Values.of(dict(zip(names, rng.normal(size=len(names)).tolist(), strict=True)))
    actions = np.zeros((1, SMOOTH_STEPS, world.spec.action_size))
    return _error(world, start, actions, ".pos")


def _error(world: DifferentiableWorld, start: Values, actions: Array, suffix: str) -> float:
    """Largest error of signals with a suffix, against the explicit world."""
    ours, theirs = rollout(world, start, actions), rollout(_twin(world), start, actions)
    return max(
        float(np.abs(signal - theirs.signals[name]).max())
        for name, signal in ours.signals.items()
        if name.endswith(suffix)
    )


def _twin(world: DifferentiableWorld):
    return explicit_world(world.scene)


def _pair_scene(cone: str) -> Scene:
    """Every pair of shapes as an island: the first one fixed, the second one free."""
    islands: list[str] = []
    for k, (a, b) in enumerate(PAIRS):
        bit, dim = 1 << k, DIMENSIONS[k % len(DIMENSIONS)]
        common = f'contype="{bit}" conaffinity="{bit}" condim="{dim}" friction="0.7 0.02 0.01"'
        islands.append(
            f'<body pos="{3 * k} 0 0"><geom name="a{k}" {SHAPES[a]} {common}/></body>'
            f'<body name="b{k}" pos="{3 * k} 0 0.2"><freejoint/>'
            f'<geom name="b{k}" {SHAPES[b]} {common}/></body>'
        )
    return Scene(
        name="pairs",
        mjcf=f'<mujoco><option timestep="{STEP}" integrator="Euler" cone="{cone}" {TIGHT} '
        f'impratio="2"/><asset><mesh name="hull" vertex="{_HULL}"/></asset>'
        f"<worldbody>{''.join(islands)}</worldbody></mujoco>",
    )


def _contacts(cone: str, rng: np.random.Generator) -> float:
    scene = _pair_scene(cone)
    world = differentiable_world(scene)
    start = _touching(scene, world.spec.start.names, rng)
    actions = np.zeros((POSES, 1, 0))
    ours = rollout(world, start, actions).signals
    theirs = rollout(explicit_world(scene), start, actions).signals
    worst = 0.0
    for k in range(len(PAIRS)):
        speeds = [
            np.concatenate([s[f"b{k}.vel"], s[f"b{k}.omega"]], axis=2) for s in (ours, theirs)
        ]
        mine, other = ((v[:, 1] - v[:, 0]) / STEP for v in speeds)
        size = np.maximum(1.0, np.abs(other).max(axis=1))
        worst = max(worst, float((np.abs(mine - other).max(axis=1) / size).max()))
    return worst


def _touching(scene: Scene, names: tuple[str, ...], rng: np.random.Generator) -> Values:
    """Random poses in which every pair is a little in, or just out of, contact."""
    model = explicit_world(scene).kernel.model
    data = mujoco.MjData(model)  # pyright: ignore[reportAttributeAccessIssue]
    rows = np.zeros((POSES, len(names)))
    column = {n: k for k, n in enumerate(names)}
    for pose, k in itertools.product(range(POSES), range(len(PAIRS))):
        turn = rng.normal(size=3)
        away = rng.normal(size=3)
        away = np.array([0.0, 0.0, 1.0]) if PAIRS[k][0] == "plane" else away / np.linalg.norm(away)
        place, depth = np.array([3.0 * k, 0.0, 0.0]) + 0.3 * away, rng.uniform(-0.002, 0.0005)
        ids = model.geom(f"a{k}").id, model.geom(f"b{k}").id
        at = int(model.jnt_qposadr[model.body_jntadr[model.geom_bodyid[ids[1]]]])
        for _ in range(40):
            data.qpos[at : at + 3] = place
            mujoco.mju_axisAngle2Quat(  # pyright: ignore[reportAttributeAccessIssue]
                data.qpos[at + 3 : at + 7], turn / np.linalg.norm(turn), np.linalg.norm(turn)
            )
            mujoco.mj_kinematics(model, data)  # pyright: ignore[reportAttributeAccessIssue]
            gap = mujoco.mj_geomDistance(  # pyright: ignore[reportAttributeAccessIssue]
                model, data, *ids, 10.0, None
            )
            place = place + 0.9 * (depth - gap) * away
        speeds = 0.3 * rng.normal(size=6)
        for part, values in (
            ("pos", place),
            ("rot", turn),
            ("vel", speeds[:3]),
            ("omega", speeds[3:]),
        ):
            for axis, value in zip("xyz", values, strict=True):
                rows[pose, column[f"start:b{k}.{part}.{axis}"]] = value
    return Values(names=names, array=rows)


def _tight(mjcf: str) -> str:
    return mjcf.replace("<option ", f"<option {TIGHT} ", 1)


def push() -> float:
    """Position error of a T that is pushed for ``PUSH_STEPS`` steps [m]."""
    share = np.linspace(0, 1, PUSH_STEPS)[None, :, None]
    actions = share * np.array([0.03, -0.25])
    world = differentiable_world(Scene(name="push", mjcf=_tight(PUSHT)))
    return _error(world, Values.none(), actions, ".pos")


def toss(rng: np.random.Generator) -> float:
    """Position error of a tossed cube up to its second impact [m]."""
    scene = Scene(name="toss", mjcf=CUBE.format(tight=TIGHT))
    world, plain = differentiable_world(scene), explicit_world(scene)
    names = [f"start:cube.{part}.{axis}" for part in ("vel", "omega") for axis in "xyz"]
    speeds = np.concatenate([[0.4, 0.1, 0.5], 3 * rng.normal(size=3)])
    start = Values.of(dict(zip(names, speeds.tolist(), strict=True)))
    actions = np.zeros((1, TOSS_STEPS, 0))
    ours, theirs = rollout(world, start, actions), rollout(plain, start, actions)
    end = _second_impact(theirs.signals["cube.vel"][0])
    gap = ours.signals["cube.pos"][0, :end] - theirs.signals["cube.pos"][0, :end]
    return float(np.abs(gap).max())


def _second_impact(velocity: Array) -> int:
    """Row at which contact begins for the second time: free fall, contact, free fall, contact."""
    falls = np.abs(np.diff(velocity[:, 2]) / 0.002 + 9.81) < 1e-6
    changes = np.flatnonzero(np.diff(falls.astype(int)) == -1)
    return int(changes[1]) if len(changes) > 1 else len(velocity)


# ---- derivatives -------------------------------------------------------------------------------

SLIDING = """
<mujoco><option timestep="0.002" cone="{cone}" impratio="2"/><worldbody>
<geom name="floor" type="plane" size="2 2 1" friction="0.4 0.01 0.002"/>
<body name="box" pos="0 0 0.0298"><freejoint/><geom name="box" type="box" size="0.05 0.04 0.03"
  friction="0.3" condim="4"/><site name="on_box"/></body>
<body name="ball" pos="0 0.5 0.0298"><freejoint/><geom name="ball" size="0.03" friction="0.3"
  condim="6"/><site name="on_ball"/></body>
<body name="rod" pos="0 1 0.0198"><freejoint/><geom name="rod" type="capsule" size="0.02 0.08"
  quat="0.7071067811865476 0 0.7071067811865476 0" friction="0.3"/><site name="on_rod"/></body>
</worldbody>
<tendon>
<spatial name="near" stiffness="20" springlength="0.4"><site site="on_box"/><site site="on_ball"/>
</spatial>
<spatial name="far" stiffness="20" springlength="0.4"><site site="on_ball"/><site site="on_rod"/>
</spatial></tendon></mujoco>
"""


def _gradients(rng: np.random.Generator) -> dict[str, float]:
    world = panda()
    actions = np.asarray(HOME) + 0.2 * rng.normal(size=(1, 200, 7)).cumsum(axis=1) * 0.02
    wrt = (*panda_names(world), "start:joint2.pos", "start:joint4.vel")
    numbers = {"grad_rel_err_smooth": _derivative_error(world, Values.none(), actions, wrt)}
    reverse = _reverse_error(world, Values.none(), actions, wrt)
    numbers["grad_rel_err_contact"] = 0.0
    for cone in ("pyramidal", "elliptic"):
        world = differentiable_world(Scene(name="sliding", mjcf=SLIDING.format(cone=cone)))
        start = {f"start:{b}.vel.x": 1.5 for b in ("box", "ball", "rod")}
        start |= {f"start:{b}.vel.y": 0.4 for b in ("box", "ball", "rod")}
        wrt = (
            *(f"body:{b}.mass" for b in ("box", "ball", "rod")),
            *(f"pair:{b}+floor.friction.slide" for b in ("box", "ball")),
            "start:box.vel.x",
            "start:rod.vel.y",
        )
        wrt = tuple(world.kernel.tables.aliases.get(n, n) for n in wrt)
        settled = Values.of(start)
        actions = np.zeros((1, 60, 0))
        error = _derivative_error(world, settled, actions, wrt)
        numbers["grad_rel_err_contact"] = max(numbers["grad_rel_err_contact"], error)
        reverse = max(reverse, _reverse_error(world, settled, actions, wrt))
    return numbers | {"reverse_rel_err": reverse}


def _derivative_error(
    world: DifferentiableWorld, start: Values, actions: Array, wrt: tuple[str, ...]
) -> float:
    """Largest error of a derivative, relative to the largest one by the same name."""
    exact = world.gradient(start, actions, Values.none(), wrt, seed=0)
    errors: list[Array] = []
    for factor in (1e-4, 1e-5):
        steps = {n: factor * max(_size(world, n), 0.1) for n in wrt}
        found = jacobian(world, start, actions, wrt=wrt, steps=steps, method="differences")
        gaps = [np.abs(exact[n] - d).max(axis=(0, 1, 2)) for n, d in found.derivatives.items()]
        sizes = [np.abs(d).max(axis=(0, 1, 2)) for d in found.derivatives.values()]
        errors.append(np.max(gaps, axis=0) / np.maximum(np.max(sizes, axis=0), 1e-12))
    return float(np.min(errors, axis=0).max())


def _size(world: DifferentiableWorld, name: str) -> float:
    if name in world.parameters.names:
        return abs(world.parameters[name].value)
    return 1.0


def _reverse_error(
    world: DifferentiableWorld, start: Values, actions: Array, wrt: tuple[str, ...]
) -> float:
    """Reverse mode against forward mode, for one weighted sum of all signals."""
    exact = world.gradient(start, actions, Values.none(), wrt, seed=0)
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=d.shape[:3]) for name, d in exact.items()}
    wanted = sum(np.einsum("btd,btdn->n", weights[n], exact[n]) for n in exact)
    back = world.pullback(start, actions, weights)
    places = {n: ("parameters", k) for k, n in enumerate(world.parameters.names)}
    places |= {n: ("starts", k) for k, n in enumerate(world.spec.start.names)}
    found = np.array([getattr(back, places[n][0])[0, places[n][1]] for n in wrt])
    return float((np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-9)).max())


DEGENERATE = """
<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
<geom name="floor" type="plane" size="9 9 1"/>
<body pos="0 0 1"><geom name="anvil" type="box" size="0.1 0.1 0.1"/></body>
<body pos="1 0 1"><geom name="ball0" size="0.1"/></body>
<body pos="2 0 1"><geom name="bar0" type="capsule" size="0.05 0.1" quat="1 0 1 0"/></body>
<body name="box" pos="0 0 2"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
<body name="ball" pos="1 0 2"><freejoint/><geom size="0.1" condim="6"/></body>
<body name="bar" pos="2 0 2"><freejoint/>
<geom type="capsule" size="0.05 0.1" quat="1 0 1 0" condim="4"/></body>
</worldbody></mujoco>
"""


def _not_finite() -> int:
    """Derivatives that are not finite at rest: touching at 0, inside, apart, at one place."""
    shifts = np.array([[0.2, 0.2, 0.1]] * 3 + [[0.0] * 3])
    heights = 1 + shifts + np.array([0.0, -0.01, 0.05, 0.0])[:, None]
    names = tuple(f"start:{body}.pos.z" for body in ("box", "ball", "bar"))
    start, actions = Values(names=names, array=heights), np.zeros((len(heights), 2, 0))
    wrt = ("body:box.mass", "start:ball.pos.x", "start:bar.rot.z", "start:box.vel.x")
    count = 0
    for cone in ("pyramidal", "elliptic"):
        world = differentiable_world(Scene(name="degenerate", mjcf=DEGENERATE.format(cone=cone)))
        found = world.gradient(start, actions, Values.none(len(heights)), wrt, seed=0)
        count += sum(int((~np.isfinite(d)).sum()) for d in found.values())
        weights = {n: np.ones(d.shape[:3]) for n, d in found.items()}
        back = world.pullback(start, actions, weights)
        count += sum(int((~np.isfinite(part)).sum()) for part in back[:3])
    return count


if __name__ == "__main__":
    main()
