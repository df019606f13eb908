"""Components of a scene attached to its compiled model: where each law reads and acts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sameworld.core.address import Address
from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Component, Scene
from sameworld.core.spec import ChannelSpec
from sameworld.worlds.compiled.actuators import is_direct_drive
from sameworld.worlds.compiled.channels import Signal
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.components.law import Clock, Field, Law
from sameworld.worlds.components.law import Signal as LawSignal
from sameworld.worlds.components.registry import law_of

__all__ = [
    "Attached",
    "Group",
    "Index",
    "attach",
    "component_actions",
    "component_channels",
    "component_slots",
    "component_starts",
    "grouped",
]

Index = NDArray[np.intp]
_PLANAR = 3
_LINEAR_UNITS = {
    "J": "m", "F": "N", "V": "m/s", "volt": "V", "F/V": "N s/m", "F/J": "N/m", "1/J": "1/m",
    "F/A": "N/A", "1/F": "1/N", "volt/V": "V s/m", "F/volt": "N/V",
}  # fmt: skip
_ANGULAR_UNITS = {
    "J": "rad", "F": "N m", "V": "rad/s", "volt": "V", "F/V": "N m s/rad", "F/J": "N m/rad",
    "1/J": "1/rad", "F/A": "N m/A", "1/F": "1/(N m)", "volt/V": "V s/rad", "F/volt": "N m/V",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Attached:
    """A component with its law and place.

    Attributes:
        component: The component.
        law: Its law.
        qpos: Columns of joint positions, one or three.
        dof: Columns of joint velocities, one or three.
        actuator: Index of its actuator, -1 for none.
        body: Index of its body, -1 for none.
        slides: Whether its (first) joint slides.
    """

    component: Component
    law: Law
    qpos: tuple[int, ...]
    dof: tuple[int, ...]
    actuator: int
    body: int
    slides: bool

    @property
    def name(self) -> str:
        """Name of the component."""
        return self.component.name

    @property
    def key(self) -> tuple[object, ...]:
        """What components that are computed together share."""
        return (self.component.type, *sorted(self.law.settings.items()))

    def unit(self, unit: str) -> str:
        """A unit with the joint's own in place of the law's placeholders."""
        if len(self.dof) == _PLANAR:
            return unit
        return (_LINEAR_UNITS if self.slides else _ANGULAR_UNITS).get(unit, unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Components computed together, n of them.

    Attributes:
        law: Their law.
        names: Their names.
        qpos: Columns of joint positions [n] or [n, 3].
        dof: Columns of joint velocities [n] or [n, 3].
        actuators: Their actuators [n]; -1 for none.
        bodies: Their bodies [n]; -1 for none.
        fields: Parameter columns by field [n].
        starts: Start columns by field [n].
        commands: Columns of the action vector [n, A].
        inputs: Columns of the action vector by exogenous input [n].
        memory: Columns of the component memory.
    """

    law: Law
    names: tuple[str, ...]
    qpos: Index
    dof: Index
    actuators: Index
    bodies: Index
    memory: slice
    fields: Mapping[str, Index] = field(default_factory=dict[str, Index])
    starts: Mapping[str, Index] = field(default_factory=dict[str, Index])
    commands: Index = field(default_factory=lambda: np.zeros((0, 0), dtype=np.intp))
    inputs: Mapping[str, Index] = field(default_factory=dict[str, Index])


# ---- from records to laws ----------------------------------------------------------------------


def attach(scene: Scene, model: Model, clock: Clock) -> tuple[Attached, ...]:
    """Find the law and the place of every component.

    Raises:
        SceneError: A type, setting or target does not exist or does not fit, or two components
            control one actuator.
    """
    twice = [
        c.name for c in scene.components if sum(o.name == c.name for o in scene.components) > 1
    ]
    if twice:
        raise SceneError(
            f"Scene '{scene.name}' has component(s) {listed(sorted(set(twice)))} twice."
        )
    found = tuple(_attached(component, model, clock) for component in scene.components)
    driven = [a.actuator for a in found if a.actuator >= 0]
    for actuator in driven:
        if driven.count(actuator) > 1:
            names = [a.name for a in found if a.actuator == actuator]
            raise SceneError(
                f"Components {listed(names)} both drive actuator '{model.actuator(actuator).name}'."
            )
    return found


def _attached(component: Component, model: Model, clock: Clock) -> Attached:
    kind = law_of(component)
    words = {k: v for k, v in component.settings.items() if k in kind.options}
    law = kind(words, clock)
    fields = [f.name for f in law.fields()]
    for name, value in component.settings.items():
        if name in words:
            continue
        if name not in fields:
            raise SceneError(
                f"Component '{component.name}' has the setting '{name}', which "
                f"'{component.type}' does not know. It knows {listed([*kind.options, *fields])}."
                f"{closest(name, [*kind.options, *fields])}"
            )
        if isinstance(value, str) or not math.isfinite(value):
            raise SceneError(f"Component '{component.name}': '{name}' is a number, got {value!r}.")
    prefix, _, target = component.target.partition(":")
    if prefix != kind.target or not target:
        raise SceneError(
            f"Component '{component.name}' of type '{component.type}' acts on {kind.target}s: "
            f"its target must read '{kind.target}:NAME', got '{component.target}'."
        )
    place = {"joint": _on_joint, "actuator": _on_actuator, "body": _on_body}[kind.target]
    return place(component, law, model, target)


def _id(model: Model, kind: str, name: str, component: Component) -> int:
    types = {"joint": "mjOBJ_JOINT", "actuator": "mjOBJ_ACTUATOR", "body": "mjOBJ_BODY"}
    count = {"joint": model.njnt, "actuator": model.nactuator, "body": model.nbody}[kind]
    index = int(mj.mj_name2id(model, getattr(mj.mjtObj, types[kind]), name))
    if index < 0:
        names = [getattr(model, kind)(k).name for k in range(count)]
        raise SceneError(
            f"Component '{component.name}' acts on {kind} '{name}', which the scene lacks. It has "
            f"{listed(names)}.{closest(name, names)}"
        )
    return index


def _is_slide(model: Model, joint: int) -> bool:
    return int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_SLIDE)


def _place(component: Component, law: Law, model: Model, joint: int, actuator: int) -> Attached:
    scalar = (int(mj.mjtJoint.mjJNT_SLIDE), int(mj.mjtJoint.mjJNT_HINGE))
    if int(model.jnt_type[joint]) not in scalar:
        raise SceneError(
            f"Component '{component.name}' needs a hinge or slide joint; "
            f"'{model.joint(joint).name}' is neither."
        )
    return Attached(
        component=component,
        law=law,
        qpos=(int(model.jnt_qposadr[joint]),),
        dof=(int(model.jnt_dofadr[joint]),),
        actuator=actuator,
        body=-1,
        slides=_is_slide(model, joint),
    )


def _on_joint(component: Component, law: Law, model: Model, name: str) -> Attached:
    return _place(component, law, model, _id(model, "joint", name, component), -1)


def _on_actuator(component: Component, law: Law, model: Model, name: str) -> Attached:
    actuator = _id(model, "actuator", name, component)
    if not is_direct_drive(model, actuator):
        raise SceneError(
            f"Component '{component.name}' computes the force of actuator '{name}', which must "
            "pass it on unchanged: make it a <motor> on a joint without ctrlrange."
        )
    return _place(component, law, model, int(model.actuator_trnid[actuator, 0]), actuator)


def _on_body(component: Component, law: Law, model: Model, name: str) -> Attached:
    body = _id(model, "body", name, component)
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    joints = range(first, first + count)
    slide, hinge = int(mj.mjtJoint.mjJNT_SLIDE), int(mj.mjtJoint.mjJNT_HINGE)
    axes = np.array(model.jnt_axis[first : first + count], dtype=np.float64).reshape(-1, 3)
    kinds = [int(model.jnt_type[j]) for j in joints]
    if kinds != [slide, slide, hinge] or not np.allclose(axes, np.eye(3)):
        raise SceneError(
            f"Component '{component.name}' needs body '{name}' to have three joints in this order: "
            "slide along x, slide along y, hinge about z."
        )
    dofs = tuple(int(model.jnt_dofadr[j]) for j in joints)
    qpos = tuple(int(model.jnt_qposadr[j]) for j in joints)
    return Attached(
        component=component, law=law, qpos=qpos, dof=dofs, actuator=-1, body=body, slides=True
    )


# ---- parameters, signals -----------------------------------------------------------------------


def component_slots(attached: Sequence[Attached], believed: Mapping[str, Parameter]) -> list[Slot]:
    """Slots of all component parameters.

    Raises:
        SceneError: A parameter without a default is given neither by settings nor by the belief.
    """
    return [_slot(a, f, believed) for a in attached for f in a.law.fields()]


def _slot(attached: Attached, part: Field, believed: Mapping[str, Parameter]) -> Slot:
    name = f"component:{attached.name}.{part.name}"
    Address.parse(name)
    value = float(attached.component.settings.get(part.name, part.default))
    if math.isnan(value):
        if name not in believed:
            raise SceneError(
                f"'{name}' has no usual value: give it in the component's settings or in the "
                "scene's belief."
            )
        value = believed[name].value
    if not part.low <= value <= part.high:
        raise SceneError(f"'{name}' = {value} lies outside [{part.low}, {part.high}].")
    return Slot(
        name=name,
        unit=attached.unit(part.unit),
        value=value,
        bounds=part.bounds(value),
        group="component",
        owner=attached.name,
        part=part.name,
    )


def component_channels(attached: Sequence[Attached]) -> list[Signal]:
    """Signals that components show, read from their memory."""
    signals: list[Signal] = []
    offset = 0
    for a in _ordered(attached):
        for output in a.law.outputs():
            start = (f"start:{a.name}.{output.start}",) if output.start else ()
            channel = ChannelSpec(
                name=f"{a.name}.{output.name}", unit=a.unit(output.unit), start=start
            )
            signals.append(Signal(spec=channel, source="memory", first=offset + output.column))
        offset += a.law.memory()
    return signals


def _ordered(attached: Sequence[Attached]) -> list[Attached]:
    """In the order of the memory: groups one after the other, as they first appear."""
    return [a for members in _members(attached) for a in members]


def _members(attached: Sequence[Attached]) -> list[list[Attached]]:
    """Components that are computed together; no two of them on one joint, where they add up."""
    found: dict[tuple[object, ...], list[Attached]] = {}
    for a in attached:
        same = [o for o in attached[: attached.index(a)] if (o.key, o.dof) == (a.key, a.dof)]
        found.setdefault((*a.key, len(same)), []).append(a)
    return list(found.values())


def component_starts(
    attached: Sequence[Attached], joints: Sequence[Parameter], model: Model
) -> tuple[Parameter, ...]:
    """Start parameters of joints and components; prescribed velocities are known to be none."""
    told = {
        f"start:{model.joint(int(model.dof_jntid[dof])).name}.vel"
        for a in attached
        for dof in a.dof
        if a.law.prescribes
    }
    found = [replace(p, std=0.0) if p.name in told else p for p in joints]
    for a in attached:
        for part in a.law.starts():
            found.append(
                Parameter(
                    name=f"start:{a.name}.{part.name}",
                    value=part.default,
                    low=part.low,
                    high=part.high,
                    unit=a.unit(part.unit),
                    scope="episode",
                )
            )
    return tuple(found)


def component_actions(
    attached: Sequence[Attached], actions: Sequence[ChannelSpec]
) -> tuple[ChannelSpec, ...]:
    """The scene's actions as they are with components: other units, further inputs."""
    changed = list(actions)
    for a in attached:
        if a.actuator >= 0:
            name = changed[a.actuator].name
            changed[a.actuator] = ChannelSpec(name=name, unit=a.unit(a.law.unit()))
        changed += [_input(a, signal, None) for signal in a.law.actions()]
        changed += [_input(a, signal, signal.default) for signal in a.law.inputs()]
    return tuple(changed)


def _input(a: Attached, signal: LawSignal, default: float | None) -> ChannelSpec:
    if default is not None and math.isnan(default):
        default = None
    return ChannelSpec(name=f"{a.name}.{signal.name}", unit=a.unit(signal.unit), default=default)


# ---- groups ------------------------------------------------------------------------------------


def grouped(
    attached: Sequence[Attached],
    slots: Sequence[Slot],
    starts: Sequence[str],
    actions: Sequence[ChannelSpec],
) -> tuple[Group, ...]:
    """Components that are computed together, with the columns they use."""
    columns = {s.name: k for k, s in enumerate(slots)}
    begun = {name: k for k, name in enumerate(starts)}
    given = {c.name: k for k, c in enumerate(actions)}
    groups: list[Group] = []
    offset = 0
    for members in _members(attached):
        size = len(members) * members[0].law.memory()
        groups.append(_group(members, slice(offset, offset + size), columns, begun, given, actions))
        offset += size
    order = {"actuator": 0, "body": 1, "joint": 2}
    return tuple(sorted(groups, key=lambda g: order[g.law.target]))


def _group(
    members: list[Attached],
    memory: slice,
    columns: Mapping[str, int],
    begun: Mapping[str, int],
    given: Mapping[str, int],
    actions: Sequence[ChannelSpec],
) -> Group:
    law = members[0].law

    def index(table: Mapping[str, int], kind: str, part: str) -> Index:
        return np.array([table[f"{kind}{a.name}.{part}"] for a in members], dtype=np.intp)

    planar = law.target == "body"
    commands = [
        [a.actuator] if a.actuator >= 0 else [given[f"{a.name}.{s.name}"] for s in law.actions()]
        for a in members
    ]
    return Group(
        law=law,
        names=tuple(a.name for a in members),
        qpos=np.array([a.qpos if planar else a.qpos[0] for a in members], dtype=np.intp),
        dof=np.array([a.dof if planar else a.dof[0] for a in members], dtype=np.intp),
        actuators=np.array([a.actuator for a in members], dtype=np.intp),
        bodies=np.array([a.body for a in members], dtype=np.intp),
        fields={f.name: index(columns, "component:", f.name) for f in law.fields()},
        starts={f.name: index(begun, "start:", f.name) for f in law.starts()},
        commands=np.array(commands, dtype=np.intp).reshape(len(members), -1),
        inputs={s.name: index(given, "", s.name) for s in law.inputs()},
        memory=memory,
    )
