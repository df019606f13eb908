"""Elements of a batch on their way through the engine, one MjData each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.rotations import quat_to_matrix
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.engine import Data, Model, mj
from sameworld.worlds.compiled.layout import INTEGRATION, Layout
from sameworld.worlds.compiled.models import Assignment

__all__ = ["Batch", "Pipe", "Touched", "filled"]

#: Where numbers go and where they come from. Copying between buffers of which one lies inside the
#: engine is the price of every step; memoryviews pay a third of what arrays do.
Pipe: TypeAlias = tuple[memoryview, memoryview]


@dataclass(frozen=True, kw_only=True, eq=False)
class Touched:
    """Which of the engine's arrays the laws of a scene read and write.

    Attributes:
        control: They compute controls.
        friction: They compute Coulomb friction and damping of joints.
        applied: They push joints directly.
        velocity: They move joints.
        lagging: They read loads and actuator forces of the step before.
    """

    control: bool
    friction: bool
    applied: bool
    velocity: bool
    lagging: bool


@dataclass(kw_only=True, eq=False)
class Batch:
    """What laws read and write for b elements, and the pipes between that and the engine.

    Attributes:
        models: Model per element; elements may share one.
        data: MjData per element.
        parameters: Parameter values by group and field [b, n].
        masses: Mass and moment of inertia about z of every body [b, nbody, 2].
        transmission: Gain, gear, smallest and largest force of every actuator, each [b, na].
        memory: Law memories [b, M].
        position: Joint positions [b, nq].
        velocity: Joint velocities [b, nv].
        load: Load on the joints as of the engine step before [b, nv].
        bias: Its negative, as the engine has it [b, nv].
        drive: Actuator force on the joints as of the engine step before [b, nv].
        control: Controls [b, nu].
        friction: Coulomb friction of the joints [b, nv].
        damping: Damping of the joints [b, nv].
        applied: Forces on the joints [b, nv].
        imposed: Velocities that the joints are made to have [b, nv].
        own_friction: The models' own Coulomb friction [b, nv].
        own_damping: The models' own damping [b, nv].
        alive: Which elements still run.
        writes: Pipes into the engine per element, before a step.
        reads: Pipes out of the engine per element, after a step.
        failures: What became of the others.
    """

    models: Sequence[Model]
    data: Sequence[Data]
    parameters: Sequence[Mapping[str, Array]]
    masses: Array
    transmission: tuple[Array, Array, Array, Array]
    memory: Array
    position: Array
    velocity: Array
    load: Array
    bias: Array
    drive: Array
    control: Array
    friction: Array
    damping: Array
    applied: Array
    imposed: Array
    own_friction: Array
    own_damping: Array
    alive: list[int]
    writes: Sequence[tuple[Pipe, ...]] = ()
    reads: Sequence[tuple[Pipe, ...]] = ()
    failures: dict[int, Failure] = field(default_factory=dict[int, Failure])

    @property
    def size(self) -> int:
        """Number of elements b."""
        return len(self.models)

    def fail(self, element: int, failure: Failure) -> None:
        """Take an element out."""
        self.failures[element] = failure
        self.alive = [k for k in self.alive if k != element]

    def restore(self) -> None:
        """Give models, which others use too, their own friction and damping back."""
        for k, model in enumerate(self.models):
            model.dof_frictionloss[:] = self.own_friction[k]
            model.dof_damping[:] = self.own_damping[k]

    def rows(self, layout: Layout) -> Array:
        """Integration state, load, drive and memory of every element; NaN where it failed."""
        tail = np.concatenate([self.load, self.drive, self.memory], axis=1)
        rows = np.full((self.size, layout.size + tail.shape[1]), np.nan)
        for k in self.alive:
            mj.mj_getState(self.models[k], self.data[k], rows[k, : layout.size], INTEGRATION)
        rows[self.alive, layout.size :] = tail[self.alive]
        return rows


def filled(
    rows: Array,
    layout: Layout,
    models: Assignment,
    data: Sequence[Data],
    parameters: Sequence[Mapping[str, Array]],
    touched: Touched,
) -> Batch:
    """Set the engine to rows [b, n] and lay the pipes."""
    edited: list[Model] = [models[k].model for k in range(len(models.index))]
    alive = np.flatnonzero(layout.runnable(rows)).tolist()
    for k in alive:
        mj.mj_setState(edited[k], data[k], rows[k, : layout.size], INTEGRATION)
    velocity, tail = rows[:, layout.qvel].copy(), rows[:, layout.size :]
    nv = velocity.shape[1]
    friction = _each(models, "dof_frictionloss")
    damping = _each(models, "dof_damping")
    batch = Batch(
        models=edited,
        data=data,
        parameters=parameters,
        masses=np.stack([_each(models, "body_mass"), _about_z(models)], axis=-1),
        transmission=(
            _each(models, "actuator_gainprm")[..., 0],
            _each(models, "actuator_gear")[..., 0],
            *_limits(models),
        ),
        memory=tail[:, 2 * nv :].copy(),
        position=rows[:, layout.qpos].copy(),
        velocity=velocity,
        load=tail[:, :nv].copy(),
        bias=-tail[:, :nv],
        drive=tail[:, nv : 2 * nv].copy(),
        control=rows[:, layout.ctrl].copy(),
        friction=friction.copy(),
        damping=damping.copy(),
        applied=np.zeros_like(velocity),
        imposed=velocity.copy(),
        own_friction=friction,
        own_damping=damping,
        alive=alive,
    )
    _lay_pipes(batch, touched)
    return batch


def _each(models: Assignment, name: str) -> Array:
    """A model array of every element [b, ...]."""
    return np.array([getattr(edited.model, name) for edited in models.models])[models.index]


def _about_z(models: Assignment) -> Array:
    """Moments of inertia about the bodies' own z axes through their centres of mass [b, nbody]."""
    principal = quat_to_matrix(_each(models, "body_iquat"))
    return np.sum(principal[..., 2, :] ** 2 * _each(models, "body_inertia"), axis=-1)


def _limits(models: Assignment) -> tuple[Array, Array]:
    limited = _each(models, "actuator_forcelimited").astype(bool)
    span = _each(models, "actuator_forcerange")
    return np.where(limited, span[..., 0], -np.inf), np.where(limited, span[..., 1], np.inf)


def _lay_pipes(batch: Batch, touched: Touched) -> None:
    writes: list[list[Pipe]] = [[] for _ in batch.models]
    reads: list[list[Pipe]] = [[] for _ in batch.models]
    for k, (model, data) in enumerate(zip(batch.models, batch.data, strict=True)):
        into, out = writes[k], reads[k]
        if touched.control:
            into.append((memoryview(data.ctrl), memoryview(batch.control[k])))
        if touched.friction:
            into.append((memoryview(model.dof_frictionloss), memoryview(batch.friction[k])))
            into.append((memoryview(model.dof_damping), memoryview(batch.damping[k])))
        if touched.applied:
            into.append((memoryview(data.qfrc_applied), memoryview(batch.applied[k])))
        velocity = memoryview(data.qvel)
        if touched.velocity:
            into.append((velocity, memoryview(batch.imposed[k])))
        out.append((memoryview(batch.position[k]), memoryview(data.qpos)))
        out.append((memoryview(batch.velocity[k]), velocity))
        if touched.lagging:
            out.append((memoryview(batch.bias[k]), memoryview(data.qfrc_bias)))
            out.append((memoryview(batch.drive[k]), memoryview(data.qfrc_actuator)))
    batch.writes = [tuple(pipes) for pipes in writes]
    batch.reads = [tuple(pipes) for pipes in reads]
