"""``Kernel``: everything about a scene that does not depend on what is believed of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.errors import AddressError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.core.world import Mechanism
from sameworld.worlds.compiled.addresses import model_slots
from sameworld.worlds.compiled.attach import (
    Group,
    attach,
    component_actions,
    component_channels,
    component_slots,
    component_starts,
    grouped,
)
from sameworld.worlds.compiled.channels import (
    Signal,
    action_channels,
    joint_signals,
    sensor_signals,
    unique_names,
)
from sameworld.worlds.compiled.compile import Compiled, compile_scene
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.models import Models
from sameworld.worlds.compiled.sensing import Sensing, sensor_slots
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.compiled.start import StartMap, start_map
from sameworld.worlds.components.law import Clock
from sameworld.worlds.explicit.composed import Composed
from sameworld.worlds.explicit.config import ExplicitConfig
from sameworld.worlds.explicit.failures import Failure
from sameworld.worlds.explicit.inverse import mechanism
from sameworld.worlds.explicit.layout import INTEGRATION, Layout
from sameworld.worlds.explicit.render import Painter
from sameworld.worlds.explicit.simulator import Simulator, Trace

__all__ = ["Kernel", "make_kernel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """A compiled scene with its tables and caches.

    Attributes:
        config: How it was built.
        compiled: The compiled scene.
        slots: Every parameter; those that edit the model come first.
        edits: How many of them edit the model.
        observed: The observation signals.
        starts: Start parameters and where they go.
        spec: The contract of the world.
        aliases: The other spelling of each contact pair to the one in use.
        groups: The scene's components, by law.
    """

    config: ExplicitConfig
    compiled: Compiled
    slots: tuple[Slot, ...]
    edits: int
    observed: tuple[Signal, ...]
    starts: StartMap
    spec: Spec
    aliases: dict[str, str]
    groups: tuple[Group, ...] = ()

    @property
    def model(self) -> Model:
        """The compiled model, unedited."""
        return self.compiled.model

    @property
    def has_sensors(self) -> bool:
        """Whether the scene has MJCF sensors."""
        return self.model.nsensordata > 0

    @cached_property
    def layout(self) -> Layout:
        """Layout of the integration state."""
        return Layout.of(self.model)

    @cached_property
    def models(self) -> Models:
        """Edited models by parameter values."""
        return Models(
            self.compiled,
            self.slots[: self.edits],
            limit=self.config.models,
            edits=self.config.edits,
        )

    @cached_property
    def simulator(self) -> Simulator:
        """The engine."""
        return Simulator(self.compiled, self.models, self.layout, self.config)

    @cached_property
    def composed(self) -> Composed | None:
        """The engine with components; ``None`` for a scene without."""
        if not self.groups:
            return None
        return Composed(self.compiled, self.models, self.layout, self.simulator, self.groups)

    @cached_property
    def mechanism(self) -> Mechanism:
        """Names behind the columns of inverse dynamics."""
        return mechanism(self.model)

    @cached_property
    def sensing(self) -> Sensing:
        """Delay, gain and bias of the signals."""
        return Sensing(self.spec.observations, self.slots, self.spec.period)

    @cached_property
    def painter(self) -> Painter:
        """The renderer; opens OpenGL on first use."""
        return Painter(self.model, self.simulator, self.layout)

    def signals(
        self, qpos: Array, qvel: Array, sensordata: Array, memory: Array | None = None
    ) -> dict[str, Array]:
        """Signals by name from joint, sensor and component arrays [..., n]."""
        sources = {"qpos": qpos, "qvel": qvel, "sensordata": sensordata}
        if memory is not None:
            sources["memory"] = memory
        return {s.spec.name: s.read(sources[s.source]) for s in self.observed}

    def canonical(self, belief: Belief) -> Belief:
        """Spell contact pairs as the world does, fill in units and bounds, refuse unknown names.

        Raises:
            AddressError: A name is no parameter of the scene.
        """
        renamed = tuple(
            replace(p, name=self.aliases[p.name]) if p.name in self.aliases else p
            for p in belief.parameters
        )
        for parameter in renamed:
            if parameter.name not in self._known:
                raise AddressError(_unknown(parameter.name, sorted(self._known)))
        return replace(belief, parameters=tuple(self._completed(p) for p in renamed))

    @cached_property
    def _known(self) -> dict[str, Parameter]:
        return {slot.name: slot.parameter() for slot in self.slots}

    def _completed(self, parameter: Parameter) -> Parameter:
        """Fill in unit, bounds and transform where the belief leaves all of them open."""
        known = self._known[parameter.name]
        if parameter.unit or math.isfinite(parameter.low) or math.isfinite(parameter.high):
            return parameter
        parameter = replace(parameter, unit=known.unit)
        if parameter.transform != "identity" or not known.low < parameter.value < known.high:
            return parameter
        return replace(parameter, low=known.low, high=known.high, transform=known.transform)

    def placed(self, starts: Array, values: Array, given: frozenset[str]) -> Array:
        """Integration states [B, size] for starts [B, S] and parameters [B, P].

        NaN where a start is not finite or the parameters are impossible.
        """
        rows = np.repeat(self._initial[None], len(starts), axis=0)
        self.starts.write(starts[:, : len(self.starts.belief)], rows[:, self.layout.moving])
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
        """Integration state before starts are written: defaults, or those of a keyframe."""
        data = mj.MjData(self.model)
        key = _home_keyframe(self.model)
        if key is not None:
            data.qpos[:] = self.model.key_qpos[key]
            data.act[:] = self.model.key_act[key]
            data.ctrl[:] = self.model.key_ctrl[key]
        row = np.empty(self.layout.size)
        mj.mj_getState(self.model, data, row, INTEGRATION)
        return row


def _unknown(name: str, names: list[str]) -> str:
    kind = name.partition(":")[0]
    alike = [n for n in names if n.startswith(f"{kind}:")]
    hint = " (is the pair unable to collide?)" if kind == "pair" else ""
    return (
        f"The scene has no parameter '{name}'{hint}. Of kind '{kind}' it has {listed(alike)}."
        f"{closest(name, names)}"
    )


def _home_keyframe(model: Model) -> int | None:
    """Keyframe that gives the default start: ``home``, else the first, else none."""
    if not model.nkey:
        return None
    home = int(mj.mj_name2id(model, mj.mjtObj.mjOBJ_KEY, "home"))
    return max(home, 0)


def make_kernel(scene: Scene, config: ExplicitConfig) -> Kernel:
    """Compile a scene and lay out its tables.

    Raises:
        SceneError: The scene cannot be compiled or names signals twice.
    """
    compiled = compile_scene(scene, config.compiling())
    model = compiled.model
    clock = Clock(timestep=float(model.opt.timestep), substeps=compiled.substeps)
    attached = attach(scene, model, clock)
    shown = component_channels(attached)
    observed = (*joint_signals(model), *sensor_signals(model), *shown)
    actions = component_actions(attached, action_channels(model))
    channels = tuple(signal.spec for signal in observed)
    unique_names((*channels, *actions), scene.name)
    sensors = sensor_slots(model, observed)
    editing = [*model_slots(compiled, scene.belief.names)]
    editing += [slot for slot in sensors if slot.group != "sensor"]
    believed = {p.name: p for p in scene.belief.parameters}
    laws = component_slots(attached, believed)
    slots = (*editing, *(slot for slot in sensors if slot.group == "sensor"), *laws)
    key = _home_keyframe(model)
    starts = start_map(model, model.qpos0 if key is None else model.key_qpos[key])
    begun = component_starts(attached, starts.belief.parameters, model)
    spec = Spec(
        period=compiled.period,
        observations=channels,
        actions=actions,
        start=Belief(parameters=begun),
        capabilities=frozenset({"rollout", "render", "inverse"}),
    )
    return Kernel(
        config=config,
        compiled=compiled,
        slots=slots,
        edits=len(editing),
        observed=observed,
        starts=starts,
        spec=spec,
        aliases=_aliases(slots),
        groups=grouped(attached, slots, spec.start.names, actions),
    )


def _aliases(slots: tuple[Slot, ...]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for slot in slots:
        if slot.name.startswith("pair:"):
            target, _, part = slot.name.removeprefix("pair:").partition(".")
            first, _, second = target.partition("+")
            aliases[f"pair:{second}+{first}.{part}"] = slot.name
    return aliases
