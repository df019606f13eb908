"""Where things stand in MuJoCo's integration state, its complete description of a moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["HUGE", "INTEGRATION", "Layout"]

#: Magnitude from which MuJoCo itself calls a state bad.
HUGE = 1e10
INTEGRATION = int(mj.mjtState.mjSTATE_INTEGRATION)
_FULL = int(mj.mjtState.mjSTATE_FULLPHYSICS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Columns of the integration state.

    Attributes:
        size: Length of the integration state.
        time: Column of the time [s].
        qpos: Joint positions.
        qvel: Joint velocities.
        moving: Positions and velocities together (they are neighbours).
        history: Buffers of delayed controls and sensors.
        warmstart: Last accelerations, where the constraint solver starts.
        ctrl: Last control.
        full: Columns that make up MuJoCo's full physics state, in its order.
        full_qpos: Positions within the full physics state.
        full_qvel: Velocities within the full physics state.
    """

    size: int
    time: int
    qpos: slice
    qvel: slice
    moving: slice
    history: slice
    warmstart: slice
    ctrl: slice
    full: NDArray[np.intp]
    full_qpos: slice
    full_qvel: slice

    @classmethod
    def of(cls, model: Model) -> Layout:
        """Read the layout from a compiled model."""
        places: dict[int, slice] = {}
        offset, bit = 0, 1
        while bit <= INTEGRATION:
            if bit & INTEGRATION:
                size = int(mj.mj_stateSize(model, bit))
                places[bit] = slice(offset, offset + size)
                offset += size
            bit <<= 1
        kinds = mj.mjtState
        full = [k for b, s in places.items() if b & _FULL for k in range(s.start, s.stop)]
        qpos, qvel = places[int(kinds.mjSTATE_QPOS)], places[int(kinds.mjSTATE_QVEL)]
        return cls(
            size=offset,
            time=places[int(kinds.mjSTATE_TIME)].start,
            qpos=qpos,
            qvel=qvel,
            moving=slice(qpos.start, qvel.stop),
            history=places[int(kinds.mjSTATE_HISTORY)],
            warmstart=places[int(kinds.mjSTATE_WARMSTART)],
            ctrl=places[int(kinds.mjSTATE_CTRL)],
            full=np.array(full, dtype=np.intp),
            full_qpos=slice(1, 1 + model.nq),
            full_qvel=slice(1 + model.nq, 1 + model.nq + model.nv),
        )

    def runnable(self, rows: Array) -> BoolArray:
        """Which rows [B, size] MuJoCo would not call bad."""
        with np.errstate(invalid="ignore"):
            moving = rows[:, self.moving]
            return (np.abs(moving) < HUGE).all(axis=1) & np.isfinite(rows[:, self.time])
