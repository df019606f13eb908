"""Compiled scenes stepped by MuJoCo's C code and by the differentiable core, state by state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from sameworld.core.scene import Scene
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.compiled.tables import Tables, make_tables
from sameworld.worlds.differentiable.parameters import Writer
from sameworld.worlds.differentiable.step import Carry, completed, plant_of, stepped
from sameworld.worlds.differentiable.system import System, system_of
from sameworld.worlds.differentiable.touch import candidates

quick = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""Compile with little optimisation: these programs run once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class States:
    """States to step from: positions [B, nq], velocities [B, nv], controls [B, nu]."""

    q: np.ndarray
    v: np.ndarray
    control: np.ndarray

    def __len__(self) -> int:
        return len(self.q)


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """One step of every state: accelerations [B, nv], next velocities and positions."""

    acceleration: np.ndarray
    v: np.ndarray
    q: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A scene with the differentiable core, compiled once.

    Attributes:
        model: The compiled model, with C's solver as exact as it gets.
        system: Static layout.
        writer: Writes parameter values.
        values: The scene's own parameter values [P].
        step: ``(values [P], q [nq], v [nv], control [nu]) -> Carry``, not compiled.
        batch: The same for leading axes of states, compiled.
    """

    model: mujoco.MjModel
    system: System
    writer: Writer
    values: np.ndarray
    step: Callable[..., Carry]
    batch: Callable[..., Carry]

    def stepped(self, states: States, values: np.ndarray | None = None) -> Steps:
        """One step of every state; raises unless the solver converged in all."""
        values = self.values if values is None else values
        with jax.enable_x64(True):
            end = self.batch(values, states.q.copy(), states.v.copy(), states.control.copy())
            found = jax.tree.map(np.array, end)
        assert found.converged.all()
        return Steps(acceleration=found.warm, v=found.v, q=found.q)


def case_of(model: mujoco.MjModel) -> Case:
    """Compile the core for a model, with every pair that C checks; gravity is a parameter."""
    exact(model)
    system = system_of(model, candidates(model))
    writer = Writer(
        model=model,
        slots=gravity_slots(model),
        mixed=(),
        given=frozenset(),
        contacts=system.pairs,
    )
    return _case(model, system, writer)


def _case(model: mujoco.MjModel, system: System, writer: Writer) -> Case:
    def step(values: jax.Array, q: jax.Array, v: jax.Array, control: jax.Array) -> Carry:
        leaves = completed(system, writer, values)
        zero = jnp.zeros(system.structure.nv)
        carry = Carry(q, v, zero, zero, zero, jnp.zeros(0), control, jnp.asarray(True))
        return stepped(system, leaves, plant_of(system, leaves), values, carry, control, 0)

    def one_by_one(values: jax.Array, *states: jax.Array) -> Carry:
        return jax.lax.map(lambda state: step(values, *state), states)

    own = np.array([slot.value for slot in writer.slots])
    return Case(
        model=model, system=system, writer=writer, values=own, step=step, batch=quick(one_by_one)
    )


def gravity_slots(model: mujoco.MjModel) -> tuple[Slot, ...]:
    """Gravity, component by component."""
    return tuple(
        Slot(
            name=f"opt.gravity.{axis}",
            unit="m/s^2",
            value=float(model.opt.gravity[k]),
            bounds=(-10.0, 10.0),
            fields=(("opt.gravity", (k,), 1.0),),
        )
        for k, axis in enumerate("xyz")
    )


def exact(model: mujoco.MjModel) -> None:
    """Make C's solver as exact as it gets."""
    model.opt.tolerance, model.opt.iterations = 1e-14, 200
    model.opt.ls_tolerance, model.opt.ls_iterations = 1e-5, 100


def scene_case(name: str, mjcf: str, given: frozenset[str] = frozenset()) -> tuple[Tables, Case]:
    """Compile the core for a scene with all of its parameters, dry friction everywhere."""
    tables = make_tables(Scene(name=name, mjcf=mjcf), CompileConfig())
    model = tables.model
    exact(model)
    system = system_of(
        model,
        candidates(model),
        rubbing=range(int(model.nv)),
        rubbing_tendons=range(int(model.ntendon)),
    )
    writer = Writer(
        model=model,
        slots=tables.slots[: tables.edits],
        mixed=tables.compiled.pairs,
        given=frozenset(),
        contacts=system.pairs,
    )
    return tables, _case(model, system, writer)


def in_c(model: mujoco.MjModel, states: States) -> Steps:
    """One step of every state by MuJoCo."""
    data, ends = mujoco.MjData(model), []
    for q, v, control in zip(states.q, states.v, states.control, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, control
        mujoco.mj_step(model, data)
        ends.append([data.qacc.copy(), data.qvel.copy(), data.qpos.copy()])
    acceleration, v, q = (np.array(column) for column in zip(*ends, strict=True))
    return Steps(acceleration=acceleration, v=v, q=q)


def relative(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Largest difference of every state [B], relative to the largest entry if that is above 1."""
    largest = np.maximum(1.0, np.abs(theirs).max(axis=1))
    return np.abs(ours - theirs).max(axis=1) / largest


def random_states(
    model: mujoco.MjModel, count: int = 60, seed: int = 0, spread: float = 0.6
) -> States:
    """States around the reference configuration."""
    rng = np.random.default_rng(seed)
    q = np.repeat(model.qpos0[None], count, axis=0)
    for row in q:
        mujoco.mj_integratePos(model, row, spread * rng.normal(size=model.nv), 1.0)
    return States(
        q=q, v=rng.normal(size=(count, model.nv)), control=rng.normal(size=(count, model.nu))
    )
