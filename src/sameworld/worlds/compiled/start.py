"""Start parameters: names for the initial state of every joint."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.manifolds import normalised, quat_exp, quat_log
from sameworld.core.parameters import Parameter
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["Home", "StartMap", "home_of", "start_map"]

_AXES = ("x", "y", "z")


@dataclass(frozen=True, kw_only=True, eq=False)
class Home:
    """What a simulation holds before starts are written into it.

    Attributes:
        qpos: Configuration [nq] (m, rad, quaternions wxyz).
        act: Activations [na].
        ctrl: Controls [nu].
    """

    qpos: Array
    act: Array
    ctrl: Array


def home_of(model: Model) -> Home:
    """The keyframe ``home``, else the first, else the reference pose without activation."""
    if not model.nkey:
        act, ctrl = np.zeros(int(model.na)), np.zeros(int(model.nu))
        return Home(qpos=model.qpos0.copy(), act=act, ctrl=ctrl)
    key = max(int(mj.mj_name2id(model, mj.mjtObj.mjOBJ_KEY, "home")), 0)
    return Home(
        qpos=model.key_qpos[key].copy(),
        act=model.key_act[key].copy(),
        ctrl=model.key_ctrl[key].copy(),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class StartMap:
    """Start parameters and where they go.

    Attributes:
        belief: Start parameters with defaults, scope ``episode``.
        linear_columns: Start columns copied straight into the state.
        linear_places: Their columns in ``[qpos, qvel]``.
        rotations: Pairs of (first of three start columns, first of four ``qpos`` columns).
    """

    belief: Belief
    linear_columns: tuple[int, ...]
    linear_places: tuple[int, ...]
    rotations: tuple[tuple[int, int], ...]

    def write(self, starts: Array, state: Array) -> None:
        """Write starts [B, S] into ``[qpos, qvel]`` rows [B, nq + nv]."""
        state[:, list(self.linear_places)] = starts[:, list(self.linear_columns)]
        for column, place in self.rotations:
            state[:, place : place + 4] = quat_exp(starts[:, column : column + 3])


class _Collector:
    """Gathers parameters while walking over the joints."""

    def __init__(self, model: Model, qpos: Array) -> None:
        self.model, self.qpos = model, qpos
        self.parameters: list[Parameter] = []
        self.columns: list[int] = []
        self.places: list[int] = []
        self.rotations: list[tuple[int, int]] = []

    def add(self, name: str, value: float, unit: str, low: float, high: float) -> None:
        self.parameters.append(
            Parameter(
                name=name,
                value=value,
                unit=unit,
                low=min(low, value),
                high=max(high, value),
                scope="episode",
            )
        )

    def linear(
        self, name: str, place: int, unit: str, low: float = -math.inf, high: float = math.inf
    ) -> None:
        value = float(self.qpos[place]) if place < self.model.nq else 0.0
        self.columns.append(len(self.parameters))
        self.places.append(place)
        self.add(name, value, unit, low, high)

    def vector(self, prefix: str, place: int, unit: str) -> None:
        for k, axis in enumerate(_AXES):
            self.linear(f"{prefix}.{axis}", place + k, unit)

    def rotation(self, prefix: str, place: int) -> None:
        self.rotations.append((len(self.parameters), place))
        turn = quat_log(normalised(self.qpos[place : place + 4]))
        for axis, value in zip(_AXES, turn.tolist(), strict=True):
            self.add(f"{prefix}.{axis}", value, "rad", -2 * math.pi, 2 * math.pi)


def start_map(model: Model, qpos: Array) -> StartMap:
    """Start parameters of a model.

    Args:
        model: The compiled model.
        qpos: Default configuration [nq] (m, rad, quaternions wxyz); velocities default to zero.
    """
    collector = _Collector(model, np.asarray(qpos, dtype=np.float64))
    walkers: dict[str, Callable[[_Collector, int], None]] = {"FREE": _free, "BALL": _ball}
    for joint in range(model.njnt):
        kind = mj.mjtJoint(int(model.jnt_type[joint])).name.removeprefix("mjJNT_")
        walkers.get(kind, _scalar)(collector, joint)
    return StartMap(
        belief=Belief(parameters=tuple(collector.parameters)),
        linear_columns=tuple(collector.columns),
        linear_places=tuple(collector.places),
        rotations=tuple(collector.rotations),
    )


def _free(collector: _Collector, joint: int) -> None:
    model = collector.model
    body = model.body(int(model.jnt_bodyid[joint])).name
    qpos, dof = int(model.jnt_qposadr[joint]), model.nq + int(model.jnt_dofadr[joint])
    collector.vector(f"start:{body}.pos", qpos, "m")
    collector.rotation(f"start:{body}.rot", qpos + 3)
    collector.vector(f"start:{body}.vel", dof, "m/s")
    collector.vector(f"start:{body}.omega", dof + 3, "rad/s")


def _ball(collector: _Collector, joint: int) -> None:
    model = collector.model
    name = model.joint(joint).name
    collector.rotation(f"start:{name}.rot", int(model.jnt_qposadr[joint]))
    dof = model.nq + int(model.jnt_dofadr[joint])
    collector.vector(f"start:{name}.omega", dof, "rad/s")


def _widened(low: float, high: float) -> tuple[float, float]:
    """A joint's range and a tenth more: soft limits give way, and measurements are noisy."""
    margin = 0.1 * (high - low)
    return low - margin, high + margin


def _scalar(collector: _Collector, joint: int) -> None:
    model = collector.model
    name = model.joint(joint).name
    slides = int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_SLIDE)
    low, high = (-math.inf, math.inf)
    if model.jnt_limited[joint]:
        low, high = _widened(*model.jnt_range[joint].tolist())
    unit = "m" if slides else "rad"
    collector.linear(f"start:{name}.pos", int(model.jnt_qposadr[joint]), unit, low, high)
    collector.linear(f"start:{name}.vel", model.nq + int(model.jnt_dofadr[joint]), f"{unit}/s")
