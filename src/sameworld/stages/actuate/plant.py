"""What the joints of a scene move: inertia, gravity, limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError
from sameworld.core.scene import Scene
from sameworld.worlds.compiled.compile import compile_scene
from sameworld.worlds.compiled.engine import Model, captured_warnings, mj
from sameworld.worlds.explicit.build import explicit_world

__all__ = ["JointPlant", "Plant", "plant_of"]

_IMPLICIT = (int(mj.mjtIntegrator.mjINT_IMPLICIT), int(mj.mjtIntegrator.mjINT_IMPLICITFAST))


@dataclass(frozen=True, kw_only=True)
class JointPlant:
    """One hinge or slide.

    Attributes:
        name: Name.
        linear: Whether it is a slide.
        low: Lower end of its range, ``-inf`` without one.
        high: Upper end of its range, ``inf`` without one.
        effort: Largest actuator force that the scene allows, ``inf`` without a limit.
        speed: Largest speed that the robot description allows, ``inf`` without a limit.
        damping: Damping in the scene.
        inertia: Inertia it moves at the home pose, with what follows it.
        inertia_low: Least of it over the poses.
        inertia_high: Most of it over the poses.
        gravity: Largest force that gravity asks for over the poses.
        leader: Joint it follows by an equality constraint, empty if it is free.
        actuators: Names of the actuators that act on it already.
        described: Actuator and interface that the robot description gives it, or empty.
    """

    name: str
    linear: bool
    low: float
    high: float
    effort: float
    speed: float
    damping: float
    inertia: float
    inertia_low: float
    inertia_high: float
    gravity: float
    leader: str
    actuators: tuple[str, ...]
    described: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Plant:
    """Joints of a scene.

    Attributes:
        joints: Hinges and slides, in the scene's order.
        others: Free and ball joints.
        timestep: Engine step [s].
        implicit: Whether the integrator takes the damping of actuators implicitly.
        bodies: Bodies that move with each joint: its own and all below.
    """

    joints: tuple[JointPlant, ...]
    others: tuple[str, ...]
    timestep: float
    implicit: bool
    bodies: dict[str, tuple[str, ...]]


def plant_of(scene: Scene, *, poses: int, seed: int) -> Plant:
    """Look at the joints of a scene at the home pose and at random poses within their ranges.

    The home pose is the keyframe ``home`` if there is one, else that of the XML. The scene's belief
    counts: masses are its means. Components do not.

    Raises:
        SceneError: The scene does not compile.
    """
    return _Look(model=_model(scene), poses=poses, seed=seed).plant()


def _model(scene: Scene) -> Model:
    names = [n for n in scene.belief.names if n.startswith("component:")]
    bare = replace(scene, components=(), belief=scene.belief.without(names))
    if not len(bare.belief):
        return compile_scene(bare).model
    text = explicit_world(bare).mjcf()
    try:
        return mj.MjSpec.from_string(text, assets=dict(bare.assets)).compile()
    except ValueError as cause:
        raise SceneError(f"Scene '{scene.name}' does not compile: {cause}") from cause


@dataclass(frozen=True, kw_only=True, eq=False)
class _Look:
    """Looks at one model."""

    model: Model
    poses: int
    seed: int

    def plant(self) -> Plant:
        model = self.model
        scalar = (int(mj.mjtJoint.mjJNT_HINGE), int(mj.mjtJoint.mjJNT_SLIDE))
        chosen = [j for j in range(model.njnt) if int(model.jnt_type[j]) in scalar]
        others = [model.joint(j).name for j in range(model.njnt) if j not in chosen]
        arms = {j: self._motion(j) for j in chosen}
        inertia, gravity = self._loads(list(arms.values()))
        joints = [self._joint(j, inertia[:, k], gravity[:, k]) for k, j in enumerate(chosen)]
        return Plant(
            joints=tuple(joints),
            others=tuple(others),
            timestep=float(model.opt.timestep),
            implicit=int(model.opt.integrator) in _IMPLICIT,
            bodies={model.joint(j).name: self._below(j) for j in chosen},
        )

    def _joint(self, joint: int, inertia: Array, gravity: Array) -> JointPlant:
        model = self.model
        name = model.joint(joint).name
        limited = bool(model.jnt_limited[joint])
        low, high = (float(v) if limited else math.inf for v in model.jnt_range[joint])
        capped = bool(model.jnt_actfrclimited[joint])
        effort = float(np.abs(model.jnt_actfrcrange[joint]).max()) if capped else math.inf
        damping = np.ravel(model.dof_damping[int(model.jnt_dofadr[joint])])
        return JointPlant(
            name=name,
            linear=int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_SLIDE),
            low=low if limited else -math.inf,
            high=high,
            effort=effort,
            speed=self._numeric(f"velocity_limit:{name}"),
            damping=float(damping[0]),
            inertia=float(inertia[0]),
            inertia_low=float(inertia.min()),
            inertia_high=float(inertia.max()),
            gravity=float(np.abs(gravity).max()),
            leader=self._leader(joint),
            actuators=self._actuators(joint),
            described=self._described(name),
        )

    # ---- who moves with whom ----------------------------------------------------------------

    def _followers(self) -> dict[int, tuple[int, float]]:
        """Joints bound to another by an active equality, with the slope."""
        model, found = self.model, dict[int, tuple[int, float]]()
        for k in np.flatnonzero(model.eq_type == int(mj.mjtEq.mjEQ_JOINT)).tolist():
            leader = int(model.eq_obj2id[k])
            if leader >= 0 and bool(model.eq_active0[k]):
                found[int(model.eq_obj1id[k])] = (leader, float(model.eq_data[k, 1]))
        return found

    def _leader(self, joint: int) -> str:
        found = self._followers().get(joint)
        return "" if found is None else str(self.model.joint(found[0]).name)

    def _motion(self, joint: int) -> Array:
        """Joint velocities [nv] when this joint moves at unit speed and others follow."""
        motion = np.zeros(self.model.nv)
        motion[int(self.model.jnt_dofadr[joint])] = 1.0
        followers = self._followers()
        for follower in followers:
            slope, at, seen = 1.0, follower, {follower}
            while at in followers and at != joint:
                at, factor = followers[at]
                slope *= factor
                if at in seen:
                    break
                seen.add(at)
            if at == joint and follower != joint:
                motion[int(self.model.jnt_dofadr[follower])] = slope
        return motion

    def _below(self, joint: int) -> tuple[str, ...]:
        model, top = self.model, int(self.model.jnt_bodyid[joint])
        moving = {top}
        for body in range(top + 1, model.nbody):
            if int(model.body_parentid[body]) in moving:
                moving.add(body)
        return tuple(str(model.body(body).name) for body in sorted(moving))

    # ---- loads ------------------------------------------------------------------------------

    def _loads(self, motions: Sequence[Array]) -> tuple[Array, Array]:
        """Inertia and gravity force [poses + 1, joints], the home pose first."""
        data = mj.MjData(self.model)
        inertia = np.zeros((self.poses + 1, len(motions)))
        gravity, product = np.zeros_like(inertia), np.zeros(self.model.nv)
        with captured_warnings():
            for row, pose in enumerate(self._positions()):
                data.qpos[:], data.qvel[:] = pose, 0.0
                mj.mj_forward(self.model, data)
                for k, motion in enumerate(motions):
                    mj.mj_mulM(self.model, data, product, motion)
                    inertia[row, k] = motion @ product
                    gravity[row, k] = motion @ data.qfrc_bias
        return inertia, gravity

    def _positions(self) -> Array:
        model = self.model
        key = mj.mj_name2id(model, mj.mjtObj.mjOBJ_KEY, "home")
        home = np.array(model.qpos0 if key < 0 else model.key_qpos[key], dtype=np.float64)
        rng = np.random.default_rng(self.seed)
        poses = np.tile(home, (self.poses + 1, 1))
        for joint in range(model.njnt):
            if int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_HINGE):
                low, high = -math.pi, math.pi
            elif int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_SLIDE):
                low = high = float(home[int(model.jnt_qposadr[joint])])
            else:
                continue
            if bool(model.jnt_limited[joint]):
                low, high = (float(v) for v in model.jnt_range[joint])
            poses[1:, int(model.jnt_qposadr[joint])] = rng.uniform(low, high, self.poses)
        return poses

    # ---- what the scene says ------------------------------------------------------------------

    def _actuators(self, joint: int) -> tuple[str, ...]:
        model = self.model
        kinds = (int(mj.mjtTrn.mjTRN_JOINT), int(mj.mjtTrn.mjTRN_JOINTINPARENT))
        return tuple(
            str(model.actuator(k).name)
            for k in range(model.nu)
            if int(model.actuator_trntype[k]) in kinds and int(model.actuator_trnid[k, 0]) == joint
        )

    def _numeric(self, name: str) -> float:
        index = mj.mj_name2id(self.model, mj.mjtObj.mjOBJ_NUMERIC, name)
        if index < 0:
            return math.inf
        return float(self.model.numeric_data[int(self.model.numeric_adr[index])])

    def _described(self, joint: str) -> tuple[str, str]:
        index = mj.mj_name2id(self.model, mj.mjtObj.mjOBJ_TEXT, f"driven:{joint}")
        if index < 0:
            return ("", "")
        first, size = int(self.model.text_adr[index]), int(self.model.text_size[index])
        words = bytes(self.model.text_data[first : first + size]).rstrip(b"\0").decode().split()
        return (words[0] if words else "", words[1] if len(words) > 1 else "")
