"""MuJoCo with components: laws are evaluated for a whole batch at every engine step.

Rows of a batch are MuJoCo's integration state followed by what components remember: the load and
drive on every joint as of the engine step before, then each law's own memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.compiled.attach import Group, Index
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.compile import Compiled
from sameworld.worlds.compiled.engine import Data, captured_warnings, mj
from sameworld.worlds.compiled.layout import INTEGRATION, Layout
from sameworld.worlds.compiled.models import Assignment, Models
from sameworld.worlds.components.law import Effect, Motion
from sameworld.worlds.explicit.batch import Batch, Touched, filled
from sameworld.worlds.explicit.failures import described, is_bad_action
from sameworld.worlds.explicit.simulator import Simulator, Trace

__all__ = ["Composed"]

#: Most elements stepped together; each has an MjData of its own, whose arenas [bytes] are limited.
_TOGETHER = 256
_ARENAS = 4 * 2**30


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
        self._together = max(1, min(_TOGETHER, _ARENAS // int(compiled.model.narena)))
        self._pools: dict[bool, list[Data]] = {}
        self._touched = Touched(
            control=self._nu > 0,
            friction=any(g.law.target == "joint" for g in groups),
            applied=any(g.law.target != "actuator" for g in groups),
            velocity=any(g.law.target == "body" for g in groups),
            lagging=any(g.law.reads() for g in groups),
        )

    @property
    def size(self) -> int:
        """Numbers that components add to a row."""
        return 2 * self._nv + self._laws

    def memory_of(self, rows: Array) -> Array:
        """Law memories [..., M] of rows [..., size]."""
        return rows[..., self._layout.size + 2 * self._nv :]

    # ---- start ---------------------------------------------------------------------------

    def begun(self, rows: Array, starts: Array, values: Array, models: Assignment) -> Array:
        """Rows [B, size] with component memory appended, for starts [B, S], parameters [B, P].

        NaN where a component's parameter or start is not finite.
        """
        fine = self._layout.runnable(rows) & self._finite(starts, values)
        whole = np.full((len(rows), rows.shape[1] + self.size), np.nan)
        chosen = np.flatnonzero(fine)
        if not len(chosen):
            return whole
        load = self._loads(rows, models, chosen.tolist())
        memory = np.zeros((len(chosen), self._laws))
        position, velocity = rows[chosen, self._layout.qpos], rows[chosen, self._layout.qvel]
        for group in self._groups:
            motion = _motion(group, (position, velocity, load, np.zeros_like(load)))
            begin = {f: starts[chosen][:, k] for f, k in group.starts.items()}
            found = group.law.begin(_parameters(group, values[chosen]), begin, motion)
            memory[:, group.memory] = found.reshape(len(chosen), -1)
        tail = np.concatenate([load, np.zeros_like(load), memory], axis=1)
        whole[chosen] = np.concatenate([rows[chosen], tail], axis=1)
        return whole

    def _finite(self, starts: Array, values: Array) -> BoolArray:
        used = [k for g in self._groups for columns in g.fields.values() for k in columns.tolist()]
        begun = [k for g in self._groups for columns in g.starts.values() for k in columns.tolist()]
        fine = np.isfinite(values[:, used]).all(axis=1) & np.isfinite(starts[:, begun]).all(axis=1)
        return np.asarray(fine, dtype=np.bool_)

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
        for at in self._parts(len(rows), models):
            batch = self._batch(rows[at], values[at], _chosen(models, at))
            with self._running(batch) as messages:
                self._tick(batch, actions[at], 0, messages)
            out[at] = batch.rows(self._layout)
            failures |= {int(at[k]): f for k, f in batch.failures.items()}
        return out, failures

    def rollout(self, rows: Array, values: Array, given: frozenset[str], actions: Array) -> Trace:
        """Simulate actions [B, T, A] from rows [B, size] with parameters [B, P]."""
        count, ticks = actions.shape[:2]
        sizes = (int(self._model.nq), self._nv, int(self._model.nsensordata))
        trace = Trace.empty(count, ticks + 1, sizes, memory=self._laws)
        size = max(1, min(self._together, self._models.limit))
        for first in range(0, count, size):
            part = np.arange(first, min(first + size, count))
            models = self._models.assign(values[part], given)
            for at in self._parts(len(part), models):
                self._run(part[at], rows, values, _chosen(models, at), actions, trace)
        for element, failure in trace.failures.items():
            for array in (trace.qpos, trace.qvel, trace.sensordata, trace.memory):
                array[element, failure.row :] = np.nan
        return trace

    def _parts(self, count: int, models: Assignment) -> list[Index]:
        """Elements that can be stepped together: of one layout, and not too many."""
        general = np.array([edited.general for edited in models.models])[models.index]
        parts = [np.flatnonzero(general[:count] == kind) for kind in (False, True)]
        size = self._together
        return [p[k : k + size] for p in parts for k in range(0, len(p), size)]

    def _run(
        self,
        at: Index,
        rows: Array,
        values: Array,
        models: Assignment,
        actions: Array,
        trace: Trace,
    ) -> None:
        batch = self._batch(rows[at], values[at], models)
        for k in set(range(len(at))) - set(batch.alive):
            reason = models[k].reason or self._unfit(values[at[k]]) or "its start is not finite"
            trace.failures[int(at[k])] = Failure(row=0, reason=reason)
        with self._running(batch) as messages:
            self._note(batch, values[at], models, at, 0, trace)
            for tick in range(actions.shape[1]):
                self._tick(batch, actions[at, tick], tick, messages)
                self._note(batch, values[at], models, at, tick + 1, trace)
        trace.failures.update({int(at[k]): f for k, f in batch.failures.items()})

    def _unfit(self, values: Array) -> str:
        """Why the parameters [P] of an element cannot be used; empty if they can."""
        for group in self._groups:
            for part, columns in group.fields.items():
                for name, value in zip(group.names, values[columns].tolist(), strict=True):
                    if not np.isfinite(value):
                        return f"component:{name}.{part} is not finite"
        return ""

    def sensordata(self, rows: Array, values: Array, models: Assignment) -> Array:
        """Sensor values [B, ns] of rows: friction as in the row, controls as in the last step."""
        out = np.full((len(rows), int(self._model.nsensordata)), np.nan)
        for at in self._parts(len(rows), models):
            chosen = _chosen(models, at)
            batch = self._batch(rows[at], values[at], chosen)
            with self._running(batch):
                out[at] = self._sensed(batch, rows[at], chosen)
        return out

    # ---- a batch ---------------------------------------------------------------------------

    def _batch(self, rows: Array, values: Array, models: Assignment) -> Batch:
        general = models[0].general
        pool = self._pools.setdefault(general, [])
        editor = self._models.editor
        model = editor.general if general else editor.compiled.model
        while len(pool) < len(rows):
            pool.append(mj.MjData(model))
        parameters = [_parameters(group, values) for group in self._groups]
        data = pool[: len(rows)]
        return filled(rows, self._layout, models, data, parameters, self._touched)

    @contextmanager
    def _running(self, batch: Batch) -> Generator[list[str], None, None]:
        """Warnings of the engine; afterwards models are as they were.

        Laws may divide by zero where parameters are absurd: that element fails, nothing else.
        """
        try:
            with captured_warnings() as messages, np.errstate(all="ignore"):
                yield messages
        finally:
            if self._touched.friction:
                batch.restore()

    def _note(
        self,
        batch: Batch,
        values: Array,
        models: Assignment,
        at: Index,
        row: int,
        trace: Trace,
    ) -> None:
        """Write the present row of every element into the trace."""
        trace.qpos[at, row], trace.qvel[at, row] = batch.position, batch.velocity
        trace.memory[at, row] = batch.memory
        if self._model.nsensordata:
            trace.sensordata[at, row] = self._sensed(batch, batch.rows(self._layout), models)

    def _sensed(self, batch: Batch, rows: Array, models: Assignment) -> Array:
        """Sensor values [b, ns]; shared models take every element's friction in turn."""
        rows = rows[:, : self._layout.size]
        if not (self._touched.friction and self._simulator.late_sensors):
            return self._simulator.sensordata(rows, models)
        self._limit(batch)
        joints = batch.friction, batch.damping
        return self._simulator.sensordata(rows, models, joints=joints)

    def _limit(self, batch: Batch) -> None:
        """Friction and damping of the joints in the present row."""
        batch.friction[:], batch.damping[:] = batch.own_friction, batch.own_damping
        seen = (batch.position, batch.velocity, batch.load, batch.drive)
        for group, parameters in zip(self._groups, batch.parameters, strict=True):
            if group.law.target == "joint":
                kept = batch.memory[:, group.memory].reshape(batch.size, len(group.names), -1)
                _apply(group, group.law.act(parameters, kept, _motion(group, seen)), batch, seen[3])

    # ---- one tick --------------------------------------------------------------------------

    def _tick(self, batch: Batch, actions: Array, tick: int, messages: list[str]) -> None:
        bad = is_bad_action(actions)
        for k in [k for k in batch.alive if bad[k]]:
            batch.fail(k, Failure(row=tick + 1, reason="an action is NaN, infinite or huge"))
        for substep in range(self._substeps):
            if batch.alive:
                self._laws_act(batch, actions, substep)
                self._refuse_friction(batch, tick)
                self._engine_step(batch, tick, messages)

    def _laws_act(self, batch: Batch, actions: Array, substep: int) -> None:
        """Evaluate every law; leaves in the batch what the pipes bring into the engine."""
        touched, count = self._touched, batch.size
        batch.control[:] = actions[:, : self._nu]
        if touched.friction:
            batch.friction[:], batch.damping[:] = batch.own_friction, batch.own_damping
        if touched.applied:
            batch.applied[:] = 0
        if touched.velocity:
            batch.imposed[:] = batch.velocity
        memory, drive = batch.memory.copy(), batch.drive.copy()
        seen = (batch.position, batch.velocity, batch.load, drive)
        for group, parameters in zip(self._groups, batch.parameters, strict=True):
            motion = _motion(group, seen, actions, substep, batch.masses)
            kept = memory[:, group.memory].reshape(count, len(group.names), -1)
            effect = group.law.act(parameters, kept, motion)
            memory[:, group.memory] = effect.memory.reshape(count, -1)
            _apply(group, effect, batch, drive)
        batch.memory = memory

    def _refuse_friction(self, batch: Batch, tick: int) -> None:
        """Stop elements whose friction is NaN: the engine would go on without friction."""
        if not self._touched.friction or np.isfinite(batch.friction).all():
            return
        bad = ~np.isfinite(batch.friction)
        for k in [k for k in batch.alive if bad[k].any()]:
            joint = self._model.joint(int(self._model.dof_jntid[int(np.argmax(bad[k]))])).name
            reason = f"friction of joint '{joint}' became NaN or infinite"
            batch.fail(k, Failure(row=tick + 1, reason=reason))

    def _engine_step(self, batch: Batch, tick: int, messages: list[str]) -> None:
        step, models, every = mj.mj_step, batch.models, batch.data
        for k in batch.alive:
            for engine, ours in batch.writes[k]:
                engine[:] = ours
            data = every[k]
            step(models[k], data)
            if messages:
                batch.fail(k, Failure(row=tick + 1, reason=described(models[k], messages[0])))
                messages.clear()
                mj.mj_resetData(models[k], data)
                continue
            for ours, engine in batch.reads[k]:
                ours[:] = engine
        if self._touched.lagging:
            np.negative(batch.bias, out=batch.load)


# ---- one law -----------------------------------------------------------------------------------

_NOTHING = np.zeros((0, 0))


def _chosen(models: Assignment, at: Index) -> Assignment:
    return Assignment(models=models.models, index=models.index[at])


def _parameters(group: Group, values: Array) -> dict[str, Array]:
    """Parameter values of a group by field, each [B, n]."""
    return {name: values[:, columns] for name, columns in group.fields.items()}


def _motion(
    group: Group,
    seen: tuple[Array, Array, Array, Array],
    actions: Array = _NOTHING,
    substep: int = 0,
    masses: Array = _NOTHING,
) -> Motion:
    """What a group sees: position, velocity, load and drive of its joints, and its actions."""
    position, velocity, load, drive = seen
    joint = group.dof if group.dof.ndim == 1 else group.dof[:, 0]
    started = actions.shape[1] > 0
    moved = group.law.target == "body" and masses.ndim > 2
    return Motion(
        position=position[:, group.qpos],
        velocity=velocity[:, group.dof],
        load=load[:, joint],
        drive=drive[:, joint],
        command=actions[:, group.commands] if started else np.zeros((len(position), 0, 0)),
        inputs={n: actions[:, k] for n, k in group.inputs.items()} if started else {},
        substep=substep,
        mass=masses[:, group.bodies] if moved else np.zeros((0, 0, 2)),
    )


def _apply(group: Group, effect: Effect, batch: Batch, drive: Array) -> None:
    """Add what a group does to what the engine gets; ``drive`` follows at once."""
    if effect.force is not None and group.law.target == "actuator":
        batch.control[:, group.commands[:, 0]] = effect.force
        gain, gear, low, high = (each[:, group.actuators] for each in batch.transmission)
        drive[:, group.dof] = gear * np.clip(gain * effect.force, low, high)
    elif effect.force is not None:
        batch.applied[:, group.dof] += effect.force
    if effect.friction is not None:
        batch.friction[:, group.dof] += effect.friction
    if effect.damping is not None:
        batch.damping[:, group.dof] += effect.damping
    if effect.velocity is not None:
        batch.imposed[:, group.dof] = effect.velocity
