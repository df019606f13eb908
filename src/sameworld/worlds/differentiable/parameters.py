"""Parameter values into the arrays of a model, differentiably.

The twin of ``sameworld.worlds.compiled.edits``, which edits a copy of the compiled model. At the
scene's own value every address has its derivative, also where two addresses describe the same thing
(a body's mass and its log-Cholesky coordinates, a pair's friction and that of its geoms): the one
that differs from the scene's value decides, and both contribute to derivatives while neither does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import SceneError
from sameworld.maths.inertia import rotated
from sameworld.maths.rotations import quat_to_matrix
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.inertial import COORDINATES, Inertial
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.differentiable.derived import friction_mixed, mixing_of
from sameworld.worlds.differentiable.structure import Index
from sameworld.worlds.differentiable.touch import Pairs
from sameworld.worlds.differentiable.typed import asarray, eye, zeros_like

__all__ = ["LEAVES", "Writer", "raw_leaves"]

#: Arrays of ``mjModel`` that are differentiable.
LEAVES = (
    "actuator_armature",
    "actuator_biasprm",
    "actuator_ctrlrange",
    "actuator_damping",
    "actuator_forcerange",
    "actuator_gainprm",
    "actuator_gear",
    "body_gravcomp",
    "body_ipos",
    "body_iquat",
    "body_mass",
    "body_pos",
    "body_quat",
    "dof_armature",
    "dof_damping",
    "dof_frictionloss",
    "dof_solimp",
    "dof_solref",
    "eq_data",
    "eq_solimp",
    "eq_solref",
    "geom_friction",
    "geom_pos",
    "geom_quat",
    "geom_size",
    "geom_solimp",
    "geom_solref",
    "jnt_axis",
    "jnt_margin",
    "jnt_pos",
    "jnt_range",
    "jnt_solimp",
    "jnt_solref",
    "jnt_stiffness",
    "pair_friction",
    "pair_margin",
    "pair_solimp",
    "pair_solref",
    "qpos0",
    "qpos_spring",
    "site_pos",
    "site_quat",
    "tendon_armature",
    "tendon_damping",
    "tendon_frictionloss",
    "tendon_lengthspring",
    "tendon_margin",
    "tendon_range",
    "tendon_solimp_fri",
    "tendon_solimp_lim",
    "tendon_solref_fri",
    "tendon_solref_lim",
    "tendon_stiffness",
    "wrap_prm",
)
_AXES = ("x", "y", "z")
_MIXED = ("friction", "solref", "solimp")


def raw_leaves(model: Model) -> dict[str, NDArray[np.float64]]:
    """Arrays of a compiled model by name, with inertia as matrices in body axes."""
    found = {name: np.array(getattr(model, name), dtype=np.float64) for name in LEAVES}
    found["opt.gravity"] = np.array(model.opt.gravity, dtype=np.float64)
    diagonal = np.asarray(model.body_inertia)[:, :, None] * np.eye(3)
    found["inertia"] = rotated(diagonal, np.array(model.body_iquat))
    limits = np.tile([-np.inf, np.inf], (int(model.nv), 1))
    for joint in np.flatnonzero(model.jnt_actfrclimited).tolist():
        limits[int(model.jnt_dofadr[joint])] = model.jnt_actfrcrange[joint]
    return found | {"dof_actfrcrange": limits}


@dataclass(frozen=True, kw_only=True, eq=False)
class Writer:
    """Writes parameter values into leaves.

    Attributes:
        model: The compiled model.
        slots: Slots that edit the model, in the order of the columns.
        mixed: Materialised contact pairs: pair id and the ids of its geoms.
        given: Moments of inertia that the belief names: they do not follow the mass.
        contacts: Candidate pairs of the world.
    """

    model: Model
    slots: tuple[Slot, ...]
    mixed: tuple[tuple[int, int, int], ...]
    given: frozenset[str]
    contacts: Pairs

    @cached_property
    def _base(self) -> dict[str, NDArray[np.float64]]:
        return raw_leaves(self.model)

    def leaves(self, values: jax.Array) -> dict[str, jax.Array]:
        """Arrays of the model for parameter values [P], further columns are ignored.

        Contact parameters of the candidate pairs are among them: ``contact_friction`` [P, 5],
        ``contact_solref``, ``contact_solimp`` and ``contact_margin``.
        """
        plain = [name for name in self._base if not name.startswith("pair_")]
        flat = np.concatenate([self._base[name].reshape(-1) for name in plain])
        ends = np.cumsum([0, *(self._base[name].size for name in plain)])
        first = dict(zip(plain, ends.tolist(), strict=False))
        writes = [(first[name] + w[0], *w[1:]) for name, w in self._writes.items() if name in first]
        places, columns, factors = (np.concatenate(part) for part in zip(*writes, strict=True))
        written = asarray(flat).at[places].set(factors * values[columns])
        found = {
            name: written[start : start + self._base[name].size].reshape(self._base[name].shape)
            for name, start in first.items()
        }
        found |= {n: asarray(a) for n, a in self._base.items() if n.startswith("pair_")}
        found |= self._inertial(values)
        return found | self._contact(values, found)

    @cached_property
    def _writes(self) -> dict[str, tuple[Index, Index, NDArray[np.float64]]]:
        """Flat places, columns and factors by array."""
        by_name: dict[str, list[tuple[int, int, float]]] = {}
        for column, slot in enumerate(self.slots):
            for name, index, factor in slot.fields:
                if name not in self._base:
                    continue
                place = int(np.ravel_multi_index(index, self._base[name].shape))
                by_name.setdefault(name, []).append((place, column, factor))
        return {
            name: (
                np.array([w[0] for w in writes], dtype=np.intp),
                np.array([w[1] for w in writes], dtype=np.intp),
                np.array([w[2] for w in writes]),
            )
            for name, writes in by_name.items()
        }

    # ---- contact -------------------------------------------------------------------------

    def _contact(self, values: jax.Array, leaves: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        pairs = self._pairs(values, leaves)
        chosen, found = self.contacts.explicit, dict[str, jax.Array]()
        dynamic = friction_mixed(mixing_of(self.model, self.contacts.geoms), leaves)
        margin = np.asarray(self.model.geom_margin)[self.contacts.geoms].sum(axis=1)
        dynamic["margin"] = asarray(margin)
        for name, mixed in dynamic.items():
            own = pairs[f"pair_{name}"]
            if not len(own):
                found[f"contact_{name}"] = mixed
                continue
            listed = asarray(chosen >= 0).reshape(-1, *(1,) * (mixed.ndim - 1))
            found[f"contact_{name}"] = jnp.where(listed, own[np.maximum(chosen, 0)], mixed)
        return found

    def _pairs(self, values: jax.Array, leaves: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Parameters of explicit pairs: those of their geoms, unless the pair has its own."""
        found = {name: leaves[name] for name in self._base if name.startswith("pair_")}
        if self.mixed:
            rows = np.array([row for row, _, _ in self.mixed], dtype=np.intp)
            geoms = np.array([pair[1:] for pair in self.mixed], dtype=np.intp)
            blend = friction_mixed(mixing_of(self.model, geoms), leaves)
            for name in _MIXED:
                array = found[f"pair_{name}"]
                found[f"pair_{name}"] = array.at[rows].set(blend[name])
        for name, (places, columns, factors) in self._writes.items():
            if name.startswith("pair_"):
                flat = found[name].reshape(-1)
                base = self._base[name].reshape(-1)[places]
                new = factors * values[columns]
                kept = flat[places] + (new - base)
                flat = flat.at[places].set(jnp.where(new != base, new, kept))
                found[name] = flat.reshape(found[name].shape)
        return found

    # ---- inertia -------------------------------------------------------------------------

    @cached_property
    def _bodies(self) -> tuple[_Body, ...]:
        parts: dict[str, dict[str, int]] = {}
        for column, slot in enumerate(self.slots):
            if slot.group == "body":
                parts.setdefault(slot.owner, {})[slot.part] = column
        return tuple(_body(self.model, name, columns) for name, columns in parts.items())

    def _inertial(self, values: jax.Array) -> dict[str, jax.Array]:
        """Masses, centres of mass and inertias of all bodies."""
        base = self._base
        names = ("body_mass", "body_ipos", "inertia")
        found = {name: asarray(base[name]) for name in names}
        if not self._bodies:
            return found
        rows = np.array([body.body for body in self._bodies], dtype=np.intp)
        own = np.array([_names_moments(self.given, body.name) for body in self._bodies])
        edited = _edited(_stacked(self._bodies), values, own)
        for name, new in zip(names, edited, strict=True):
            found[name] = found[name].at[rows].set(new)
        return found


def _names_moments(given: Collection[str], body: str) -> bool:
    return any(name.startswith(f"body:{body}.inertia.") for name in given)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Body:
    """Inertia of one body, or of n stacked ones, in the scene, and its columns.

    Attributes:
        name: Name of the body.
        body: Its index.
        columns: Columns of mass, centre (3), moments (3), log-Cholesky coordinates (10).
        values: The scene's values of them.
        axes: Principal axes as columns, in the body [3, 3].
        coordinates: Whether there are log-Cholesky coordinates.
    """

    name: str
    body: int
    columns: Index
    values: NDArray[np.float64]
    axes: NDArray[np.float64]
    coordinates: bool


def _body(model: Model, name: str, columns: Mapping[str, int]) -> _Body:
    body = int(model.body(name).id)
    inertial = Inertial.of(model, body)
    plain = ["mass", *(f"com.{a}" for a in _AXES), *(f"inertia.{a}" for a in _AXES)]
    own = [f"inertial.{part}" for part in COORDINATES]
    has = own[0] in columns
    places = [columns[part] for part in plain]
    places += [columns[part] for part in own] if has else places[:1] * len(own)
    try:
        coordinates = inertial.coordinates() if has else np.zeros(len(own))
    except SceneError:
        has, coordinates = False, np.zeros(len(own))
    return _Body(
        name=name,
        body=body,
        columns=np.array(places, dtype=np.intp),
        values=np.concatenate([[inertial.mass], inertial.com, inertial.moments, coordinates]),
        axes=np.asarray(quat_to_matrix(inertial.quaternion), dtype=np.float64),
        coordinates=has,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bodies:
    columns: Index
    values: NDArray[np.float64]
    axes: NDArray[np.float64]
    coordinates: NDArray[np.bool_]


def _stacked(bodies: tuple[_Body, ...]) -> _Bodies:
    return _Bodies(
        columns=np.stack([body.columns for body in bodies]),
        values=np.stack([body.values for body in bodies]),
        axes=np.stack([body.axes for body in bodies]),
        coordinates=np.array([body.coordinates for body in bodies]),
    )


def _edited(
    bodies: _Bodies, values: jax.Array, own: NDArray[np.bool_]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mass [n], centre of mass [n, 3] and inertia about it in body axes [n, 3, 3]."""
    new = values[bodies.columns]
    mass, com, moments = new[:, 0], new[:, 1:4], new[:, 4:7]
    usual = bodies.values[:, 4:7]
    differs = jnp.any(moments != usual, axis=1, keepdims=True) | own[:, None]
    scaled = usual * (mass / bodies.values[:, 0])[:, None] + (moments - usual)
    moments = jnp.where(differs, moments, scaled)
    spread = bodies.axes * moments[:, None, :]
    plain = (mass, com, jnp.sum(spread[:, :, None, :] * bodies.axes[:, None, :, :], axis=-1))
    if not bodies.coordinates.any():
        return plain
    coordinates, scene = new[:, 7:], bodies.values[:, 7:]
    told = bodies.coordinates & jnp.any(coordinates != scene, axis=1)
    whole = _from_log_cholesky(jnp.where(bodies.coordinates[:, None], coordinates, scene))
    before: tuple[jax.Array, ...] = jax.lax.stop_gradient(whole)
    out: list[jax.Array] = []
    for one, other, fixed in zip(plain, whole, before, strict=True):
        chosen = told.reshape(-1, *(1,) * (one.ndim - 1))
        out.append(jnp.where(chosen, other, one + (other - fixed)))
    return out[0], out[1], out[2]


def _from_log_cholesky(theta: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As ``sameworld.maths.inertia.from_log_cholesky``, for coordinates [n, 10]."""
    d1, d2, d3 = (jnp.exp(theta[:, k]) for k in (1, 2, 3))
    s12, s23, s13 = (theta[:, k] for k in (4, 5, 6))
    zero = zeros_like(d1)
    upper = jnp.stack([d1, s12, s13, zero, d2, s23, zero, zero, d3], axis=1).reshape(-1, 3, 3)
    mass = jnp.exp(2 * theta[:, 0])
    second = mass[:, None, None] * jnp.sum(upper[:, :, None, :] * upper[:, None, :, :], axis=-1)
    trace = jnp.trace(second, axis1=1, axis2=2)[:, None, None]
    return mass, theta[:, 7:10], trace * eye(3) - second
