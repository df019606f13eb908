"""Parameter values into models: by fields of a copy, or by the MjSpec and a new compilation.

The two ways are twins. Editing fields is the fast one; ``mj_setConst`` then refreshes what MuJoCo
derives from them (inverse weights, bounding volumes, frame shortcuts). Recompiling is the slow
reference. Neither changes the mass of a body when a geometry changes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError
from sameworld.core.manifolds import compose, inverse, normalised
from sameworld.maths.rotations import rotate
from sameworld.worlds.compiled.compile import Compiled, compile_spec
from sameworld.worlds.compiled.contacts import ContactParameters, contact_parameters, write_pair
from sameworld.worlds.compiled.engine import Data, Model, SpecTree, mj
from sameworld.worlds.compiled.inertial import Inertial, edited_inertial
from sameworld.worlds.compiled.slots import Slot, SpecWrite

__all__ = ["Change", "Editor"]

#: Column of a slot and its new value.
Change: TypeAlias = tuple[int, float]
_PAIR_FIELDS = ("condim", "friction", "solref", "solimp", "margin", "gap", "adhesion")


@dataclass(frozen=True, kw_only=True, eq=False)
class Editor:
    """Edits models of one scene.

    Attributes:
        compiled: The scene.
        slots: Its model slots; columns of changes count in this order.
    """

    compiled: Compiled
    slots: tuple[Slot, ...]

    @cached_property
    def general(self) -> Model:
        """The unedited model without the shortcut for simple bodies."""
        return self.compiled.general()

    @cached_property
    def _simple_data(self) -> Data:
        return mj.MjData(self.compiled.model)

    @cached_property
    def _general_data(self) -> Data:
        return mj.MjData(self.general)

    @cached_property
    def _mean_inertia_is_derived(self) -> bool:
        model = self.compiled.model
        return model.nv > 0 and bool(np.isclose(model.stat.meaninertia, _mean(model.dof_M0)))

    def needs_general(self, changes: Iterable[Change]) -> bool:
        """Whether a centre of mass or principal axis moves in a body compiled as simple."""
        model = self.compiled.model
        for column, _ in changes:
            slot = self.slots[column]
            moves = slot.part.startswith(("com.", "inertial."))
            if slot.group == "body" and moves and model.body_simple[model.body(slot.owner).id]:
                return True
        return False

    def problem(self, row: Array, given: frozenset[str]) -> str:
        """Why values [P] of the slots are impossible; empty if they are not."""
        bad = np.flatnonzero(~np.isfinite(row))
        if len(bad):
            return f"{self.slots[int(bad[0])].name} is not finite"
        base = np.array([slot.value for slot in self.slots])
        changes = tuple((int(k), float(row[k])) for k in np.flatnonzero(row != base))
        found = self._inertials(changes, given)
        return found if isinstance(found, str) else self._crossed(changes)

    # ---- fields of a copy ----------------------------------------------------------------

    def edit_fields(self, changes: Iterable[Change], given: frozenset[str]) -> Model | str:
        """Return an edited copy, or the reason why the values are impossible."""
        changes = tuple(changes)
        general = self.needs_general(changes)
        model = copy.copy(self.general if general else self.compiled.model)
        inertials = self._inertials(changes, given)
        if isinstance(inertials, str):
            return inertials
        for name, inertial in inertials.items():
            _write_inertial(model, model.body(name).id, inertial)
        self._write_fields(model, changes, "geom")
        for pair, mixed in self._remixed(model, changes):
            write_pair(model, pair, mixed)
        self._write_fields(model, changes, "")
        self._refresh(model, general)
        return self._crossed(changes) or model

    def _write_fields(self, model: Model, changes: Iterable[Change], kind: str) -> None:
        """Write plain fields; geoms first, because pairs follow them."""
        for column, value in changes:
            slot = self.slots[column]
            if slot.name.startswith("geom:") != (kind == "geom"):
                continue
            for field, index, factor in slot.fields:
                array = model.opt.gravity if field == "opt.gravity" else getattr(model, field)
                array[index] = factor * value

    def _refresh(self, model: Model, general: bool) -> None:
        mj.mj_setConst(model, self._general_data if general else self._simple_data)
        if self._mean_inertia_is_derived:
            model.stat.meaninertia = _mean(model.dof_M0)

    # ---- MjSpec and a new compilation -----------------------------------------------------

    def recompile(self, changes: Iterable[Change], given: frozenset[str]) -> Model | str:
        """Return a newly compiled model, or the reason why the values are impossible."""
        spec = self.edited_spec(changes, given)
        if isinstance(spec, str):
            return spec
        try:
            return compile_spec(spec, "edited scene")
        except SceneError as cause:
            return str(cause)

    def mjcf(self, row: Array, given: frozenset[str]) -> str:
        """MJCF text of the scene with values [P] of the slots written into it.

        Args:
            row: Values of the slots; further ones are ignored.
            given: Moments of inertia that the belief names.

        Raises:
            SceneError: The values are physically impossible.
        """
        values = row[: len(self.slots)].tolist()
        pairs = enumerate(zip(self.slots, values, strict=True))
        changes = [(k, value) for k, (slot, value) in pairs if value != slot.value]
        spec = self.edited_spec(changes, given)
        if isinstance(spec, str):
            raise SceneError(f"The values cannot be written into the scene: {spec}.")
        compile_spec(spec, "edited scene")
        return str(spec.to_xml())

    def edited_spec(self, changes: Iterable[Change], given: frozenset[str]) -> SpecTree | str:
        """Return an edited copy of the spec, or the reason why the values are impossible."""
        changes = tuple(changes)
        spec = self.compiled.spec.copy()
        if self.needs_general(changes):
            for body in spec.bodies[1:]:
                body.simple = False
        inertials = self._inertials(changes, given)
        if isinstance(inertials, str):
            return inertials
        if crossed := self._crossed(changes):
            return crossed
        for name, inertial in inertials.items():
            body = spec.body(name)
            body.mass, body.ipos = inertial.mass, inertial.com
            body.iquat, body.inertia = inertial.quaternion, inertial.moments
        self._write_attributes(spec, changes, "geom")
        geometry = copy.copy(self.compiled.model)
        self._write_fields(geometry, changes, "geom")
        for pair, mixed in self._remixed(geometry, changes):
            element = spec.pair(geometry.pair(pair).name)
            for field in _PAIR_FIELDS:
                setattr(element, field, getattr(mixed, field))
        self._write_attributes(spec, changes, "")
        return spec

    def _write_attributes(self, spec: SpecTree, changes: Iterable[Change], kind: str) -> None:
        for column, value in changes:
            slot = self.slots[column]
            if slot.name.startswith("geom:") != (kind == "geom"):
                continue
            for write in slot.attrs:
                self._write_attribute(spec, slot, write, value)

    def _write_attribute(self, spec: SpecTree, slot: Slot, write: SpecWrite, value: float) -> None:
        kind, name, attribute, index, factor = write
        element = spec.option if kind == "option" else getattr(spec, kind)(name)
        if kind == "geom":
            _resolve_fromto(element, self.compiled.model)
            if attribute == "pos":
                step = np.zeros(3)
                step[index] = value - slot.value
                turn = _frame_turn(spec, element)
                element.pos = np.array(element.pos) + rotate(inverse(turn), step)
                return
        if index < 0:
            setattr(element, attribute, factor * value)
            return
        array = np.array(getattr(element, attribute), dtype=np.float64)
        array[index] = factor * value
        setattr(element, attribute, array)

    # ---- shared -------------------------------------------------------------------------

    def _crossed(self, changes: tuple[Change, ...]) -> str:
        """Say which tendon would have a lower end above its upper one; empty if none has."""
        values = dict(changes)
        ends = {
            slot.name: values.get(column, slot.value)
            for column, slot in enumerate(self.slots)
            if slot.name.startswith("tendon:")
        }
        for name, low in ends.items():
            stem, _, end = name.rpartition(".")
            if end == "low" and low > ends[f"{stem}.high"]:
                return f"'{name}' {low:.4g} is above '{stem}.high' {ends[f'{stem}.high']:.4g}"
        return ""

    def _inertials(
        self, changes: Iterable[Change], given: frozenset[str]
    ) -> dict[str, Inertial] | str:
        """New inertia by body, or the reason why one is impossible."""
        parts: dict[str, dict[str, float]] = {}
        for column, value in changes:
            slot = self.slots[column]
            if slot.group == "body":
                parts.setdefault(slot.owner, {})[slot.part] = value
        out: dict[str, Inertial] = {}
        for name, changed in parts.items():
            model = self.compiled.model
            base = Inertial.of(model, model.body(name).id)
            prefix = f"body:{name}."
            named = {n.removeprefix(prefix) for n in given if n.startswith(prefix)}
            edited = edited_inertial(base, changed, named)
            if isinstance(edited, str):
                return f"body '{name}': {edited}"
            out[name] = edited
        return out

    def _remixed(
        self, model: Model, changes: Iterable[Change]
    ) -> list[tuple[int, ContactParameters]]:
        """Materialised pairs of geoms whose contact parameters changed, mixed anew."""
        touched: set[int] = set()
        for column, _ in changes:
            for field, index, _ in self.slots[column].fields:
                if field in ("geom_friction", "geom_solref", "geom_solimp"):
                    touched.add(index[0])
        return [
            (pair, contact_parameters(model, first, second))
            for pair, first, second in self.compiled.pairs
            if first in touched or second in touched
        ]


def _mean(values: Array) -> float:
    return float(np.mean(values))


def _write_inertial(model: Model, body: int, inertial: Inertial) -> None:
    model.body_mass[body] = inertial.mass
    model.body_ipos[body] = inertial.com
    model.body_iquat[body] = inertial.quaternion
    model.body_inertia[body] = inertial.moments


def _resolve_fromto(geom: Any, model: Model) -> None:
    """Replace ``fromto`` by the position, orientation and size it compiled to."""
    if np.isfinite(np.array(geom.fromto)).all():
        index = model.geom(geom.name).id
        geom.fromto = np.full(6, np.nan)
        geom.pos, geom.quat = model.geom_pos[index], model.geom_quat[index]
        geom.size = model.geom_size[index]


def _frame_turn(spec: SpecTree, geom: Any) -> Array:
    """Rotation from a geom's ``<frame>`` elements to its body, wxyz [4]."""
    turn = np.array([1.0, 0.0, 0.0, 0.0])
    frame = geom.frame
    while frame is not None:
        own = frame.quat
        if frame.alt.type != mj.mjtOrientation.mjORIENTATION_QUAT:
            options = spec.compiler
            own = spec.resolve_orientation(options.degree, options.eulerseq, frame.alt)
        turn = compose(normalised(np.array(own, dtype=np.float64)), turn)
        frame = frame.frame
    return turn
