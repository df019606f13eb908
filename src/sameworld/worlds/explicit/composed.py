"""MuJoCo with components: laws are evaluated for a whole batch at every engine step.

Rows of a batch are MuJoCo's integration state followed by what components remember: the load and
drive on every joint as of the engine step before, then each law's own memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sameworld.core.arrays import Array
from sameworld.worlds.components.law import Effect, Motion
from sameworld.worlds.explicit.attach import Group, Index
from sameworld.worlds.explicit.compile import Compiled
from sameworld.worlds.explicit.engine import Data, Model, captured_warnings, mj
from sameworld.worlds.explicit.failures import Failure, described, is_bad_action
from sameworld.worlds.explicit.layout import INTEGRATION, Layout
from sameworld.worlds.explicit.models import Assignment, Models
from sameworld.worlds.explicit.simulator import Simulator, Trace

__all__ = ["Composed"]

#: Elements stepped together; each has an MjData of its own.
_TOGETHER = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class _Touched:
    """Which of the engine's arrays the laws of a scene write."""

    friction: bool
    applied: bool
    velocity: bool
    lagging: bool


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class _Views:
    """Arrays inside one MjModel and MjData; looking them up at every step would cost more."""

    friction: Array
    damping: Array
    ctrl: Array
    applied: Array
    qpos: Array
    qvel: Array
    bias: Array
    actuator: Array

    @classmethod
    def of(cls, model: Model, data: Data) -> _Views:
        return cls(
            friction=model.dof_frictionloss,
            damping=model.dof_damping,
            ctrl=data.ctrl,
            applied=data.qfrc_applied,
            qpos=data.qpos,
            qvel=data.qvel,
            bias=data.qfrc_bias,
            actuator=data.qfrc_actuator,
        )


@dataclass(kw_only=True, eq=False)
class _Batch:
    """Elements on their way: views into the engine, and copies of what laws read.

    Attributes:
        models: Model per element.
        data: MjData per element.
        views: Arrays of the engine per element that are read or written at every step.
        values: Parameters [b, P].
        parameters: The same by group and field [b, n].
        position: Joint positions [b, nq].
        velocity: Joint velocities [b, nv].
        load: Lagging load on the joints [b, nv].
        drive: Lagging actuator force on the joints [b, nv].
        memory: Law memories [b, M].
        alive: Which elements still run.
        friction: The models' own Coulomb friction [b, nv].
        damping: The models' own damping [b, nv].
    """

    models: Sequence[Model]
    data: Sequence[Data]
    views: Sequence[_Views]
    values: Array
    parameters: Sequence[Mapping[str, Array]]
    position: Array
    velocity: Array
    load: Array
    drive: Array
    memory: Array
    alive: list[int]
    friction: Array
    damping: Array
    failures: dict[int, Failure] = field(default_factory=dict[int, Failure])


class Composed:
    """Steps batches of a scene with components. Not for use from several threads at once.

    Args:
        compiled: The scene.
        models: Its edited models.
        layout: Layout of the integration state.
        simulator: The engine without components, for sensors.
        groups: The components, by law.
    """

    def __init__(
        self,
        compiled: Compiled,
        models: Models,
        layout: Layout,
        simulator: Simulator,
        groups: Sequence[Group],
    ) -> None:
        self._models, self._layout, self._simulator = models, layout, simulator
        self._substeps = compiled.substeps
        self._model, self._groups = compiled.model, tuple(groups)
        self._nv, self._nu = int(compiled.model.nv), int(compiled.model.nu)
        self._laws = max((g.memory.stop for g in groups), default=0)
        self._pools: dict[bool, list[Data]] = {}
        reads = set[str]().union(*(g.law.reads() for g in groups))
        self._touched = _Touched(
            friction=any(g.law.target == "joint" for g in groups),
            applied=any(g.law.target != "actuator" for g in groups),
            velocity=any(g.law.target == "body" for g in groups),
            lagging=bool(reads),
        )
        self._gear = np.zeros(self._nu)
        self._range = np.full((self._nu, 2), np.inf)
        for actuator in range(self._nu):
            self._gear[actuator] = compiled.model.actuator_gear[actuator, 0]
            limited = bool(compiled.model.actuator_forcelimited[actuator])
            span = compiled.model.actuator_forcerange[actuator] if limited else (-np.inf, np.inf)
            self._range[actuator] = span

    @property
    def size(self) -> int:
        """Numbers that components add to a row."""
        return 2 * self._nv + self._laws

    def memory_of(self, rows: Array) -> Array:
        """Law memories [..., M] of rows [..., size]."""
        return rows[..., self._layout.size + 2 * self._nv :]

    # ---- start ---------------------------------------------------------------------------

    def begun(self, rows: Array, starts: Array, values: Array, models: Assignment) -> Array:
        """Rows [B, size] with component memory appended, for starts [B, S], parameters [B, P]."""
        tail = np.full((len(rows), self.size), np.nan)
        fine = self._layout.runnable(rows)
        position, velocity = rows[:, self._layout.qpos], rows[:, self._layout.qvel]
        chosen = np.flatnonzero(fine)
        if len(chosen):
            load = self._loads(rows, models, chosen.tolist())
            memory = np.zeros((len(chosen), self._laws))
            seen = (position[chosen], velocity[chosen], load, np.zeros_like(load))
            for group in self._groups:
                motion = self._motion(group, values[chosen], seen, np.zeros((len(chosen), 0)), 0)
                begin = {f: starts[chosen][:, k] for f, k in group.starts.items()}
                found = group.law.begin(_parameters(group, values[chosen]), begin, motion)
                memory[:, group.memory] = found.reshape(len(chosen), -1)
            tail[chosen] = np.concatenate([load, np.zeros_like(load), memory], axis=1)
        return np.concatenate([rows, tail], axis=1)

    def _loads(self, rows: Array, models: Assignment, elements: list[int]) -> Array:
        """Load on the joints at the rows themselves."""
        load = np.zeros((len(elements), self._nv))
        if not self._touched.lagging:
            return load
        with captured_warnings():
            for k, element in enumerate(elements):
                edited = models[element]
                data = self._simulator.pool(general=edited.general)[0]
                mj.mj_setState(edited.model, data, rows[element, : self._layout.size], INTEGRATION)
                mj.mj_forward(edited.model, data)
                load[k] = -data.qfrc_bias
        return load

    # ---- time ----------------------------------------------------------------------------

    def step(
        self, rows: Array, values: Array, models: Assignment, actions: Array
    ) -> tuple[Array, dict[int, Failure]]:
        """Advance rows [B, size] by one control tick under actions [B, A].

        Returns:
            New rows, NaN where the simulation failed, and why.
        """
        out = np.full_like(rows, np.nan)
        failures: dict[int, Failure] = {}
        for part in self._parts(len(rows)):
            elements = list(range(part.start, part.stop))
            chosen = [models[e] for e in elements]
            batch = self._batch(
                rows[part], values[part], [c.model for c in chosen], general=chosen[0].general
            )
            batch.alive = [k for k in batch.alive if not is_bad_action(actions[part][k])]
            with captured_warnings() as messages:
                self._tick(batch, actions[part], 0, messages)
            self._close(batch)
            out[part] = self._rows(batch)
            failures |= {part.start + k: f for k, f in batch.failures.items()}
        return out, failures

    def rollout(self, rows: Array, values: Array, given: frozenset[str], actions: Array) -> Trace:
        """Simulate actions [B, T, A] from rows [B, size] with parameters [B, P]."""
        count, ticks = actions.shape[:2]
        sizes = (int(self._model.nq), self._nv, int(self._model.nsensordata))
        trace = Trace.empty(count, ticks + 1, sizes, memory=self._laws)
        for part in self._parts(count):
            models = self._models.assign(values[part], given)
            self._run(part, rows[part], values[part], models, actions[part], trace)
        for element, failure in trace.failures.items():
            for array in (trace.qpos, trace.qvel, trace.sensordata, trace.memory):
                array[element, failure.row :] = np.nan
        return trace

    def _parts(self, count: int) -> list[slice]:
        size = max(1, min(_TOGETHER, self._models.limit))
        return [slice(at, min(at + size, count)) for at in range(0, count, size)]

    def _run(
        self,
        part: slice,
        rows: Array,
        values: Array,
        models: Assignment,
        actions: Array,
        trace: Trace,
    ) -> None:
        general = {models[k].general for k in range(len(rows))}
        for kind in general:
            chosen = np.array([k for k in range(len(rows)) if models[k].general == kind])
            batch = self._batch(
                rows[chosen],
                values[chosen],
                [models[k].model for k in chosen.tolist()],
                general=kind,
            )
            at = chosen + part.start
            for k in set(range(len(chosen))) - set(batch.alive):
                reason = models[int(chosen[k])].reason or "its start is not finite"
                trace.failures[int(at[k])] = Failure(row=0, reason=reason)
            own = Assignment(models=models.models, index=models.index[chosen])
            self._note(batch, own, at, 0, trace)
            with captured_warnings() as messages:
                for tick in range(actions.shape[1]):
                    self._refuse(batch, actions[chosen, tick], tick)
                    self._tick(batch, actions[chosen, tick], tick, messages)
                    self._note(batch, own, at, tick + 1, trace)
            self._close(batch)
            trace.failures.update({int(at[k]): f for k, f in batch.failures.items()})

    def _refuse(self, batch: _Batch, actions: Array, tick: int) -> None:
        """Stop elements whose action the engine would refuse."""
        bad = is_bad_action(actions)
        for k in [k for k in batch.alive if bad[k]]:
            batch.alive.remove(k)
            reason = "an action is NaN, infinite or huge"
            batch.failures[k] = Failure(row=tick + 1, reason=reason)

    # ---- a batch ---------------------------------------------------------------------------

    def _batch(
        self, rows: Array, values: Array, models: Sequence[Model], *, general: bool
    ) -> _Batch:
        layout, nv = self._layout, self._nv
        data = self._pool(len(rows), general=general)
        alive = np.flatnonzero(layout.runnable(rows)).tolist()
        for k in alive:
            mj.mj_setState(models[k], data[k], rows[k, : layout.size], INTEGRATION)
        tail = rows[:, layout.size :]
        return _Batch(
            models=models,
            data=data,
            views=[_Views.of(model, own) for model, own in zip(models, data, strict=True)],
            values=values,
            parameters=[_parameters(group, values) for group in self._groups],
            position=rows[:, layout.qpos].copy(),
            velocity=rows[:, layout.qvel].copy(),
            load=tail[:, :nv].copy(),
            drive=tail[:, nv : 2 * nv].copy(),
            memory=tail[:, 2 * nv :].copy(),
            alive=alive,
            friction=np.array([m.dof_frictionloss for m in models]).reshape(len(models), nv),
            damping=np.array([m.dof_damping for m in models]).reshape(len(models), nv),
        )

    def _pool(self, count: int, *, general: bool) -> list[Data]:
        pool = self._pools.setdefault(general, [])
        editor = self._models.editor
        model = editor.general if general else editor.compiled.model
        while len(pool) < count:
            pool.append(mj.MjData(model))
        return pool[:count]

    def _close(self, batch: _Batch) -> None:
        """Give shared models their own friction and damping back."""
        if self._touched.friction:
            for k, model in enumerate(batch.models):
                model.dof_frictionloss[:] = batch.friction[k]
                model.dof_damping[:] = batch.damping[k]

    def _rows(self, batch: _Batch) -> Array:
        rows = np.full((len(batch.models), self._layout.size + self.size), np.nan)
        tail = np.concatenate([batch.load, batch.drive, batch.memory], axis=1)
        for k in batch.alive:
            mj.mj_getState(
                batch.models[k], batch.data[k], rows[k, : self._layout.size], INTEGRATION
            )
            rows[k, self._layout.size :] = tail[k]
        return rows

    def _note(self, batch: _Batch, models: Assignment, at: Index, row: int, trace: Trace) -> None:
        """Write the present row of every element into the trace."""
        trace.qpos[at, row], trace.qvel[at, row] = batch.position, batch.velocity
        trace.memory[at, row] = batch.memory
        if self._model.nsensordata:
            rows = self._rows(batch)[:, : self._layout.size]
            trace.sensordata[at, row] = self._simulator.sensordata(rows, models)

    # ---- one tick --------------------------------------------------------------------------

    def _tick(self, batch: _Batch, actions: Array, tick: int, messages: list[str]) -> None:
        for substep in range(self._substeps):
            if batch.alive:
                writes = self._laws_act(batch, actions, substep)
                self._engine_step(batch, writes, tick, messages)

    def _laws_act(self, batch: _Batch, actions: Array, substep: int) -> dict[str, Array]:
        """Evaluate every law; what is to be written into the engine, by name."""
        count = len(batch.models)
        control = actions[:, : self._nu].copy()
        drive = batch.drive.copy()
        writes: dict[str, Array] = {"ctrl": control}
        if self._touched.friction:
            writes |= {"friction": batch.friction.copy(), "damping": batch.damping.copy()}
        if self._touched.applied:
            writes["applied"] = np.zeros((count, self._nv))
        if self._touched.velocity:
            writes["velocity"] = batch.velocity.copy()
        memory = batch.memory.copy()
        for group, parameters in zip(self._groups, batch.parameters, strict=True):
            seen = (batch.position, batch.velocity, batch.load, drive)
            motion = self._motion(group, batch.values, seen, actions, substep, batch.models)
            kept = memory[:, group.memory].reshape(count, len(group.names), -1)
            effect = group.law.act(parameters, kept, motion)
            memory[:, group.memory] = effect.memory.reshape(count, -1)
            self._apply(group, effect, writes, drive)
        batch.memory = memory
        return writes

    def _apply(
        self, group: Group, effect: Effect, writes: Mapping[str, Array], drive: Array
    ) -> None:
        if effect.force is not None and group.law.target == "actuator":
            writes["ctrl"][:, group.actuators] = effect.force
            low, high = self._range[group.actuators].T
            drive[:, group.dof] = self._gear[group.actuators] * np.clip(effect.force, low, high)
        elif effect.force is not None:
            writes["applied"][:, group.dof] += effect.force
        if effect.friction is not None:
            writes["friction"][:, group.dof] += effect.friction
        if effect.damping is not None:
            writes["damping"][:, group.dof] += effect.damping
        if effect.velocity is not None:
            writes["velocity"][:, group.dof] = effect.velocity

    def _motion(
        self,
        group: Group,
        values: Array,
        seen: tuple[Array, Array, Array, Array],
        actions: Array,
        substep: int,
        models: Sequence[Model] = (),
    ) -> Motion:
        position, velocity, load, drive = seen
        joint = group.dof if group.dof.ndim == 1 else group.dof[:, 0]
        started = actions.shape[1] > 0
        commands = actions[:, group.commands] if started else np.zeros((len(values), 0, 0))
        mass = np.zeros((0, 0, 2))
        if group.law.target == "body" and models:
            mass = np.array(
                [
                    [(m.body_mass[b], m.body_inertia[b, 2]) for b in group.bodies.tolist()]
                    for m in models
                ]
            )
        return Motion(
            position=position[:, group.qpos],
            velocity=velocity[:, group.dof],
            load=load[:, joint],
            drive=drive[:, joint],
            command=commands,
            inputs={n: actions[:, k] for n, k in group.inputs.items()} if started else {},
            substep=substep,
            mass=mass,
        )

    def _engine_step(
        self, batch: _Batch, writes: Mapping[str, Array], tick: int, messages: list[str]
    ) -> None:
        touched, broken, step = self._touched, list[int](), mj.mj_step
        control = writes["ctrl"]
        friction, damping = writes.get("friction", control), writes.get("damping", control)
        for k in batch.alive:
            view = batch.views[k]
            view.ctrl[:] = control[k]
            if touched.friction:
                view.friction[:], view.damping[:] = friction[k], damping[k]
            if touched.applied:
                view.applied[:] = writes["applied"][k]
            if touched.velocity:
                view.qvel[:] = writes["velocity"][k]
            step(batch.models[k], batch.data[k])
            if messages:
                reason = described(batch.models[k], messages[0])
                batch.failures[k] = Failure(row=tick + 1, reason=reason)
                messages.clear()
                mj.mj_resetData(batch.models[k], batch.data[k])
                broken.append(k)
                continue
            batch.position[k], batch.velocity[k] = view.qpos, view.qvel
            if touched.lagging:
                np.negative(view.bias, out=batch.load[k])
                batch.drive[k] = view.actuator
        if broken:
            batch.alive = [k for k in batch.alive if k not in broken]


def _parameters(group: Group, values: Array) -> dict[str, Array]:
    """Parameter values of a group by field, each [B, n]."""
    return {name: values[:, columns] for name, columns in group.fields.items()}
