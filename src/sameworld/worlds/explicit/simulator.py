"""Batches of integration states through MuJoCo: one tick at a time, or a whole rollout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.compile import Compiled
from sameworld.worlds.compiled.delays import fill_delay_buffers
from sameworld.worlds.compiled.engine import Data, captured_warnings, mj, mj_rollout
from sameworld.worlds.compiled.layout import INTEGRATION, Layout
from sameworld.worlds.compiled.models import Assignment, Models
from sameworld.worlds.explicit.config import ExplicitConfig
from sameworld.worlds.explicit.failures import Tracer, is_bad_action

__all__ = ["Simulator", "Trace"]

_CTRL = int(mj.mjtState.mjSTATE_CTRL)
_ACC_STAGE = int(mj.mjtStage.mjSTAGE_ACC)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """What a rollout leaves behind, at control ticks.

    Attributes:
        qpos: Joint positions [B, T+1, nq].
        qvel: Joint velocities [B, T+1, nv].
        sensordata: Sensor values of the same rows [B, T+1, ns].
        memory: What components remember at the same rows [B, T+1, M].
        failures: Element to where and why it failed.
    """

    qpos: Array
    qvel: Array
    sensordata: Array
    memory: Array
    failures: dict[int, Failure] = field(default_factory=dict[int, Failure])

    @classmethod
    def empty(cls, batch: int, rows: int, sizes: tuple[int, int, int], *, memory: int = 0) -> Trace:
        """Room for a batch, filled with NaN."""
        qpos, qvel, sensordata, kept = (
            np.full((batch, rows, size), np.nan) for size in (*sizes, memory)
        )
        return cls(qpos=qpos, qvel=qvel, sensordata=sensordata, memory=kept)


class Simulator:
    """Owns the MjData of one scene. Not for use from several threads at once.

    Args:
        compiled: The scene.
        models: Its edited models.
        layout: Layout of the integration state.
        config: Threads and memory.
    """

    def __init__(
        self, compiled: Compiled, models: Models, layout: Layout, config: ExplicitConfig
    ) -> None:
        self._models, self._layout = models, layout
        self._substeps = compiled.substeps
        self._timestep = float(compiled.model.opt.timestep)
        self._sizes = (compiled.model.nq, compiled.model.nv, compiled.model.nsensordata)
        self._late_sensors = bool((compiled.model.sensor_needstage == _ACC_STAGE).any())
        self._threads = config.threads or os.cpu_count() or 1
        self._memory = config.memory
        self._pools: dict[bool, list[Data]] = {}
        self._runner = mj_rollout.Rollout(nthread=self._threads if self._threads > 1 else 0)

    def pool(self, *, general: bool) -> list[Data]:
        """Data for models of one layout, one per thread."""
        if general not in self._pools:
            editor = self._models.editor
            model = editor.general if general else editor.compiled.model
            self._pools[general] = [mj.MjData(model) for _ in range(self._threads)]
        return self._pools[general]

    # ---- one tick ------------------------------------------------------------------------

    def step(
        self, rows: Array, models: Assignment, actions: Array
    ) -> tuple[Array, dict[int, Failure]]:
        """Advance rows [B, size] by one control period under actions [B, A].

        Returns:
            New rows, NaN where the simulation failed, and why.
        """
        out = np.full_like(rows, np.nan)
        failures: dict[int, Failure] = {}
        runnable = self._layout.runnable(rows) & ~is_bad_action(actions)
        with captured_warnings() as messages:
            for element in np.flatnonzero(runnable).tolist():
                edited = models[element]
                data = self.pool(general=edited.general)[0]
                mj.mj_setState(edited.model, data, rows[element], INTEGRATION)
                data.ctrl[:] = actions[element]
                mj.mj_step(edited.model, data, self._substeps)
                if not messages:
                    mj.mj_getState(edited.model, data, out[element], INTEGRATION)
                    continue
                failures[element] = Failure(row=1, reason=messages[0])
                messages.clear()
                mj.mj_resetData(edited.model, data)
        return out, failures

    @property
    def late_sensors(self) -> bool:
        """Whether the scene has sensors of accelerations or forces."""
        return self._late_sensors

    def sensordata(
        self, rows: Array, models: Assignment, *, joints: tuple[Array, Array] | None = None
    ) -> Array:
        """Sensor values [B, ns] of rows [B, size], with the control applied last.

        Sensors of accelerations and forces need the constraint solver, which starts from zero
        here, so that what they say depends on the state alone.

        Args:
            rows: Integration states.
            models: Their models.
            joints: Coulomb friction and damping [B, nv] that are written into the models, and left
                there; by default the models' own.
        """
        out = np.full((len(rows), self._sizes[2]), np.nan)
        if not self._sizes[2]:
            return out
        with captured_warnings():
            for element in np.flatnonzero(self._layout.runnable(rows)).tolist():
                edited = models[element]
                data = self.pool(general=edited.general)[0]
                mj.mj_setState(edited.model, data, rows[element], INTEGRATION)
                if joints is not None:
                    edited.model.dof_frictionloss[:] = joints[0][element]
                    edited.model.dof_damping[:] = joints[1][element]
                if self._late_sensors:
                    data.qacc_warmstart[:] = 0
                    mj.mj_forward(edited.model, data)
                else:
                    mj.mj_step1(edited.model, data)
                out[element] = data.sensordata
        return out

    def fill_history(self, rows: Array, models: Assignment) -> None:
        """Let MuJoCo's delay buffers hold the control and sensor values of the start, in place."""
        for element in np.flatnonzero(self._layout.runnable(rows)).tolist():
            edited = models[element]
            data = self.pool(general=edited.general)[0]
            mj.mj_setState(edited.model, data, rows[element], INTEGRATION)
            fill_delay_buffers(edited.model, data)
            mj.mj_getState(edited.model, data, rows[element], INTEGRATION)

    # ---- many ticks ----------------------------------------------------------------------

    def rollout(
        self, rows: Array, parameters: Array, given: frozenset[str], actions: Array
    ) -> Trace:
        """Simulate actions [B, T, A] from rows [B, size] with parameters [B, P]."""
        batch, ticks = actions.shape[:2]
        trace = Trace.empty(batch, ticks + 1, self._sizes)
        trace.qpos[:, 0] = rows[:, self._layout.qpos]
        trace.qvel[:, 0] = rows[:, self._layout.qvel]
        for part in self._chunks(batch, ticks, actions.shape[2]):
            models = self._models.assign(parameters[part], given)
            runnable = self._layout.runnable(rows[part])
            for element in np.flatnonzero(~runnable).tolist():
                reason = models[element].reason or "its start is not finite"
                trace.failures[part.start + element] = Failure(row=0, reason=reason)
            for general in {edited.general for edited in models.models}:
                wanted = np.array([edited.general == general for edited in models.models])
                chosen = np.flatnonzero(runnable & wanted[models.index])
                if len(chosen):
                    run = _Run(
                        elements=chosen + part.start,
                        models=[models[k].model for k in chosen.tolist()],
                        data=self.pool(general=general),
                    )
                    self._run(run, rows, actions, trace)
        self._forget_failed(trace)
        return trace

    def _chunks(self, batch: int, ticks: int, controls: int) -> Iterator[slice]:
        """Parts of a batch whose buffers fit the memory and whose models fit the cache."""
        steps = ticks * self._substeps + 1
        width = len(self._layout.full) + self._sizes[2] + controls
        size = max(1, min(self._memory // (8 * steps * width), self._models.limit))
        for first in range(0, batch, size):
            yield slice(first, min(first + size, batch))

    def _run(self, run: _Run, rows: Array, actions: Array, trace: Trace) -> None:
        layout, n, ticks = self._layout, self._substeps, actions.shape[1]
        extra = int(self._sizes[2] > 0 and not self._late_sensors)
        steps = ticks * n + extra
        start = rows[run.elements]
        if not steps:
            if self._late_sensors:
                self._late(run, start[:, None, layout.full], start[:, None, layout.ctrl], trace)
            return
        initial = np.ascontiguousarray(start[:, layout.full])
        warm = np.ascontiguousarray(start[:, layout.warmstart])
        control = _held(actions[run.elements], n, extra, start[:, layout.ctrl])
        full = np.empty((len(start), steps, initial.shape[1]))
        sensed = np.empty((len(start), steps, self._sizes[2])) if extra else None
        with captured_warnings() as messages:
            self._call(run, steps, initial, warm, control, full, sensed)
        at_ticks = full[:, n - 1 :: n][:, :ticks]
        trace.qpos[run.elements, 1:] = at_ticks[:, :, layout.full_qpos]
        trace.qvel[run.elements, 1:] = at_ticks[:, :, layout.full_qvel]
        if sensed is not None:
            trace.sensordata[run.elements] = sensed[:, ::n]
        if self._late_sensors:
            states = np.concatenate([initial[:, None], at_ticks], axis=1)
            last = np.concatenate([start[:, None, layout.ctrl], actions[run.elements]], axis=1)
            self._late(run, states, last, trace)
        if messages:
            tracer = Tracer(models=run.models, data=run.data[0], layout=layout, substeps=n)
            for element, failure in tracer.failures(initial, control, full, ticks).items():
                trace.failures[int(run.elements[element])] = failure
        bad = is_bad_action(actions[run.elements])
        for element, tick in zip(*np.nonzero(bad), strict=True):
            failure = Failure(row=int(tick) + 1, reason="an action is NaN, infinite or huge")
            known = trace.failures.get(int(run.elements[element]))
            if known is None or known.row >= failure.row:
                trace.failures[int(run.elements[element])] = failure

    def _late(self, run: _Run, states: Array, controls: Array, trace: Trace) -> None:
        """Sensors that need accelerations: one throw-away step from every row."""
        count, rows = states.shape[:2]
        initial = np.ascontiguousarray(states.reshape(count * rows, -1))
        control = np.ascontiguousarray(controls.reshape(count * rows, 1, -1))
        out = np.empty((count * rows, 1, initial.shape[1]))
        sensed = np.empty((count * rows, 1, self._sizes[2]))
        models = [model for model in run.models for _ in range(rows)]
        every = _Run(elements=run.elements, models=models, data=run.data)
        with captured_warnings():
            self._call(every, 1, initial, None, control, out, sensed)
        trace.sensordata[run.elements] = sensed.reshape(count, rows, -1)

    def _call(
        self,
        run: _Run,
        steps: int,
        initial: Array,
        warm: Array | None,
        control: Array,
        full: Array,
        sensed: Array | None,
    ) -> None:
        self._runner.rollout(
            run.models,
            run.data,
            initial,
            control if control.shape[2] else None,
            control_spec=_CTRL,
            skip_checks=True,
            nstep=steps,
            initial_warmstart=warm,
            state=full,
            sensordata=sensed,
        )

    def _forget_failed(self, trace: Trace) -> None:
        """NaN from the failure on, as looping ``step`` gives."""
        for element, failure in trace.failures.items():
            for array in (trace.qpos, trace.qvel, trace.sensordata):
                array[element, failure.row :] = np.nan


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """Elements that go into one call of the engine."""

    elements: NDArray[np.intp]
    models: list[object]
    data: list[Data]


def _held(actions: Array, substeps: int, extra: int, last: Array) -> Array:
    """Controls [B, T n + extra, A]: every action held for a period, the last one a bit longer."""
    if not actions.shape[1]:
        return np.ascontiguousarray(last[:, None])
    held = np.repeat(actions, substeps, axis=1) if substeps > 1 else actions
    if extra:
        held = np.concatenate([held, held[:, -1:]], axis=1)
    return np.ascontiguousarray(held)
