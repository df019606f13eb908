"""When a simulation broke and why, read from what MuJoCo left behind.

MuJoCo resets a simulation that becomes unstable and goes on as if nothing had happened; a batched
rollout stops it and repeats its last row. Either way time no longer advances as it should.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.engine import Data, Model, captured_warnings, mj
from sameworld.worlds.compiled.layout import HUGE, Layout

__all__ = ["Tracer", "described", "is_bad_action"]

_FULL = int(mj.mjtState.mjSTATE_FULLPHYSICS)
_NAMES = {"QPOS": "position", "QVEL": "velocity", "QACC": "acceleration"}


def is_bad_action(actions: Array) -> BoolArray:
    """Whether actions [..., A] hold something MuJoCo refuses as a control, [...]."""
    fine = np.abs(actions) < HUGE
    return np.asarray(~fine.all(axis=-1), dtype=np.bool_)


def described(model: Model, message: str) -> str:
    """MuJoCo's warning with the name of the joint or actuator instead of a number."""
    control = re.search(r"in CTRL at ACTUATOR (\d+).*Time = ([0-9.]+)", message)
    if control is not None:
        name, time = model.actuator(int(control[1])).name, control[2].rstrip(".")
        return f"control of actuator '{name}' became NaN, infinite or huge at t = {time} s"
    match = re.search(r"in (QPOS|QVEL|QACC) at DOF (\d+).*Time = ([0-9.]+)", message)
    if match is None:
        return message
    quantity, number, time = match.groups()
    if quantity == "QPOS":
        joint = int(np.searchsorted(model.jnt_qposadr, int(number), side="right")) - 1
    else:
        joint = int(model.dof_jntid[min(int(number), model.nv - 1)])
    return (
        f"{_NAMES[quantity]} of joint '{model.joint(joint).name}' became NaN, infinite or huge at "
        f"t = {time.rstrip('.')} s"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Tracer:
    """Finds the failures of one call of the engine that warned.

    Attributes:
        models: Model per element.
        data: Scratch data of the same layout.
        layout: Layout of the integration state.
        substeps: Engine steps per tick.
    """

    models: Sequence[Model]
    data: Data
    layout: Layout
    substeps: int

    def failures(
        self, initial: Array, control: Array, full: Array, ticks: int
    ) -> dict[int, Failure]:
        """Failures by element.

        Args:
            initial: Full physics states at the start [B, n].
            control: Controls per engine step [B, S, A].
            full: Full physics states after each engine step [B, S, n].
            ticks: Control ticks T; what happens after the last one does not count.
        """
        timestep = float(self.models[0].opt.timestep)
        steps = full.shape[1]
        ahead: Array = timestep * np.arange(1, steps + 1, dtype=np.float64)
        expected = initial[:, :1] + ahead
        on_time = np.abs(full[:, :, 0] - expected) < 0.25 * timestep
        late: list[int] = np.argmin(on_time, axis=1).tolist()
        fine = np.asarray(on_time.all(axis=1), dtype=np.bool_)
        found: dict[int, Failure] = {}
        for element in range(len(full)):
            first = steps if fine[element] else late[element]
            failure = self._failure(element, first, initial, control, full)
            if failure is not None and failure.row <= ticks:
                found[element] = failure
        return found

    def _failure(
        self, element: int, first: int, initial: Array, control: Array, full: Array
    ) -> Failure | None:
        """Repeat the suspicious engine steps one by one, without warm start."""
        steps = full.shape[1]
        for step in (first - 1, first):
            if not 0 <= step < steps:
                continue
            before = initial[element] if step == 0 else full[element, step - 1]
            message = self._warning(self.models[element], before, control[element, step])
            if message:
                return Failure(row=step // self.substeps + 1, reason=message)
        if first == steps:
            return None
        time = float(initial[element, 0]) + first * float(self.models[element].opt.timestep)
        return Failure(
            row=first // self.substeps + 1,
            reason=f"the simulation became unstable at t = {time:.4f} s",
        )

    def _warning(self, model: Model, state: Array, control: Array) -> str:
        mj.mj_resetData(model, self.data)
        mj.mj_setState(model, self.data, state, _FULL)
        self.data.ctrl[:] = control
        with captured_warnings() as messages:
            mj.mj_step(model, self.data)
        mj.mj_resetData(model, self.data)
        return described(model, messages[0]) if messages else ""
