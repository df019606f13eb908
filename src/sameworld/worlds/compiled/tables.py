"""``Tables``: what of a scene depends neither on an engine nor on what is believed of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.errors import AddressError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.core.spec import Capability, Spec
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
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.edits import Editor
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.inverse import mechanism
from sameworld.worlds.compiled.layout import Layout
from sameworld.worlds.compiled.sensing import Sensing, sensor_slots
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.compiled.start import Home, StartMap, home_of, start_map
from sameworld.worlds.components.law import Clock

__all__ = ["Tables", "make_tables"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """A compiled scene with its parameters, signals, starts and components.

    Attributes:
        compiled: The compiled scene.
        slots: Every parameter; those that edit the model come first.
        edits: How many of them edit the model.
        observed: The observation signals.
        home: Where the default start is.
        starts: Start parameters of the joints and where they go.
        spec: The contract of the world.
        aliases: The other spelling of each contact pair to the one in use.
        groups: The scene's components, by law.
    """

    compiled: Compiled
    slots: tuple[Slot, ...]
    edits: int
    observed: tuple[Signal, ...]
    home: Home
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
    def editor(self) -> Editor:
        """Writes parameter values into models."""
        return Editor(compiled=self.compiled, slots=self.slots[: self.edits])

    @cached_property
    def sensing(self) -> Sensing:
        """Delay, gain and bias of the signals."""
        return Sensing(self.spec.observations, self.slots, self.spec.period)

    @cached_property
    def layout(self) -> Layout:
        """Layout of MuJoCo's integration state."""
        return Layout.of(self.model)

    @cached_property
    def mechanism(self) -> Mechanism:
        """Names behind the columns of inverse dynamics."""
        return mechanism(self.model)

    def signals(
        self, qpos: Array, qvel: Array, sensordata: Array, memory: Array | None = None
    ) -> dict[str, Array]:
        """Signals by name from joint, sensor and component arrays [..., n]."""
        sources = {"qpos": qpos, "qvel": qvel, "sensordata": sensordata}
        if memory is not None:
            sources["memory"] = memory
        return {s.spec.name: s.read(sources[s.source]) for s in self.observed}

    def placed(self, starts: Array) -> Array:
        """Rows ``[qpos, qvel]`` [B, nq + nv] for starts [B, S] of ``spec.start``."""
        still = np.concatenate([self.home.qpos, np.zeros(self.model.nv)])
        rows = np.repeat(still[None], len(starts), axis=0)
        self.starts.write(starts[:, : len(self.starts.belief)], rows)
        return rows

    # ---- names ---------------------------------------------------------------------------

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


def _unknown(name: str, names: list[str]) -> str:
    kind = name.partition(":")[0]
    alike = [n for n in names if n.startswith(f"{kind}:")]
    hint = " (is the pair unable to collide?)" if kind == "pair" else ""
    return (
        f"The scene has no parameter '{name}'{hint}. Of kind '{kind}' it has {listed(alike)}."
        f"{closest(name, names)}"
    )


def make_tables(
    scene: Scene,
    config: CompileConfig | None = None,
    *,
    capabilities: Iterable[Capability] = (),
) -> Tables:
    """Compile a scene and lay out its tables.

    Args:
        scene: The scene.
        config: Control period and contact pairs; the usual ones if not given.
        capabilities: What the kind of world that is being built can do; goes into ``spec``.

    Raises:
        SceneError: The scene cannot be compiled or names signals twice.
    """
    compiled = compile_scene(scene, config)
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
    home = home_of(model)
    starts = start_map(model, home.qpos)
    begun = component_starts(attached, starts.belief.parameters, model)
    spec = Spec(
        period=compiled.period,
        observations=channels,
        actions=actions,
        start=Belief(parameters=begun),
        capabilities=frozenset(capabilities),
    )
    return Tables(
        compiled=compiled,
        slots=slots,
        edits=len(editing),
        observed=observed,
        home=home,
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
