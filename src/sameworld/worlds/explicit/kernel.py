"""``Kernel``: MuJoCo for one scene, shared by worlds that differ in belief only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.scene import Scene
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.layout import INTEGRATION, Layout
from sameworld.worlds.compiled.models import Models
from sameworld.worlds.compiled.render import Painter
from sameworld.worlds.compiled.tables import Tables, make_tables
from sameworld.worlds.explicit.composed import Composed
from sameworld.worlds.explicit.config import ExplicitConfig
from sameworld.worlds.explicit.simulator import Simulator, Trace

__all__ = ["Kernel", "make_kernel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """The tables of a scene with the engine and its caches.

    Attributes:
        config: How it was built.
        tables: The compiled scene with its parameters, signals and starts.
    """

    config: ExplicitConfig
    tables: Tables

    @property
    def model(self) -> Model:
        """The compiled model, unedited."""
        return self.tables.model

    @property
    def layout(self) -> Layout:
        """Layout of the integration state."""
        return self.tables.layout

    @cached_property
    def models(self) -> Models:
        """Edited models by parameter values."""
        config = self.config
        return Models(self.tables.editor, limit=config.models, edits=config.edits)

    @cached_property
    def simulator(self) -> Simulator:
        """The engine."""
        return Simulator(self.tables.compiled, self.models, self.layout, self.config)

    @cached_property
    def composed(self) -> Composed | None:
        """The engine with components; ``None`` for a scene without."""
        tables = self.tables
        if not tables.groups:
            return None
        return Composed(tables.compiled, self.models, self.layout, self.simulator, tables.groups)

    @cached_property
    def painter(self) -> Painter:
        """The renderer; opens OpenGL on first use."""
        return Painter(self.tables.editor, self.layout)

    def placed(self, starts: Array, values: Array, given: frozenset[str]) -> Array:
        """Integration states [B, size] for starts [B, S] and parameters [B, P].

        NaN where a start is not finite or the parameters are impossible.
        """
        rows = np.repeat(self._initial[None], len(starts), axis=0)
        rows[:, self.layout.moving] = self.tables.placed(starts)
        models = self.models.assign(values, given)
        impossible = np.array([bool(edited.reason) for edited in models.models])[models.index]
        rows[impossible | ~self.layout.runnable(rows)] = np.nan
        if self.model.nhistory:
            self.simulator.fill_history(rows, models)
        if self.composed is not None:
            return self.composed.begun(rows, starts, values, models)
        return rows

    def stepped(
        self, rows: Array, values: Array, given: frozenset[str], actions: Array
    ) -> tuple[Array, dict[int, Failure]]:
        """Rows [B, size] one control period later under actions [B, A], and what failed."""
        models = self.models.assign(values, given)
        if self.composed is None:
            return self.simulator.step(rows, models, actions)
        return self.composed.step(rows, values, models, actions)

    def simulated(self, rows: Array, values: Array, given: frozenset[str], actions: Array) -> Trace:
        """Rows [B, size] simulated under actions [B, T, A]."""
        if self.composed is None:
            return self.simulator.rollout(rows, values, given, actions)
        return self.composed.rollout(rows, values, given, actions)

    def sensed(self, rows: Array, values: Array, given: frozenset[str]) -> Array:
        """Sensor values [B, ns] of rows [B, size]."""
        models = self.models.assign(values, given)
        if self.composed is None:
            return self.simulator.sensordata(rows[:, : self.layout.size], models)
        return self.composed.sensordata(rows, values, models)

    @cached_property
    def _initial(self) -> Array:
        """Integration state before starts are written."""
        data, home = mj.MjData(self.model), self.tables.home
        data.qpos[:], data.act[:], data.ctrl[:] = home.qpos, home.act, home.ctrl
        row = np.empty(self.layout.size)
        mj.mj_getState(self.model, data, row, INTEGRATION)
        return row


def make_kernel(scene: Scene, config: ExplicitConfig) -> Kernel:
    """Compile a scene and lay out its tables.

    Raises:
        SceneError: The scene cannot be compiled or names signals twice.
    """
    tables = make_tables(scene, config.compiling(), capabilities=("rollout", "render", "inverse"))
    return Kernel(config=config, tables=tables)
