"""Which geoms can collide, and with which parameters MuJoCo would let them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["ContactParameters", "colliding_pairs", "contact_parameters", "write_pair"]

_Ids: TypeAlias = NDArray[np.intp]
_Mask: TypeAlias = NDArray[np.bool_]
_MINVAL = 1e-15


@dataclass(frozen=True, kw_only=True, eq=False)
class ContactParameters:
    """Parameters of the contact between two geoms.

    Attributes:
        condim: Dimension of the contact space: 1, 3, 4 or 6.
        friction: Two sliding, one spinning, two rolling coefficients [5].
        solref: Reference of the constraint: time constant [s] and damping ratio [2].
        solimp: Impedance [5].
        margin: Distance at which the contact becomes a constraint [m].
        gap: Distance by which it is detected earlier [m].
        adhesion: Force up to which the contact pulls [N].
    """

    condim: int
    friction: Array
    solref: Array
    solimp: Array
    margin: float
    gap: float
    adhesion: float


def colliding_pairs(model: Model) -> list[tuple[int, int]]:
    """Geom pairs (smaller id first) that MuJoCo checks dynamically for collision.

    Explicit ``<pair>`` elements are not among them, nor are pairs that masks, ``<exclude>``, a
    shared body or the parent filter rule out.
    """
    if model.opt.disableflags & int(mj.mjtDisableBit.mjDSBL_CONTACT):
        return []
    upper = np.triu_indices(int(model.ngeom), k=1)
    first, second = upper[0].astype(np.intp), upper[1].astype(np.intp)
    keep = _masks_meet(model, first, second) & ~_filtered(model, first, second)
    keep &= ~_immovable_shapes(model, first, second)
    explicit = {frozenset(p) for p in zip(*_explicit(model), strict=True)}
    pairs = zip(first[keep].tolist(), second[keep].tolist(), strict=True)
    return [pair for pair in pairs if frozenset(pair) not in explicit]


def _explicit(model: Model) -> tuple[list[int], list[int]]:
    return model.pair_geom1.tolist(), model.pair_geom2.tolist()


def _masks_meet(model: Model, first: _Ids, second: _Ids) -> _Mask:
    kinds, partners = model.geom_contype, model.geom_conaffinity
    return ((kinds[first] & partners[second]) | (kinds[second] & partners[first])) != 0


def _filtered(model: Model, first: _Ids, second: _Ids) -> _Mask:
    """Same body, welded together, parent and child, or excluded by name."""
    weld = model.body_weldid
    parent = weld[model.body_parentid[weld]]
    body1, body2 = model.geom_bodyid[first], model.geom_bodyid[second]
    weld1, weld2 = weld[body1], weld[body2]
    out = weld1 == weld2
    if not model.opt.disableflags & int(mj.mjtDisableBit.mjDSBL_FILTERPARENT):
        both_move = (weld1 != 0) & (weld2 != 0)
        out |= both_move & ((weld1 == parent[weld2]) | (weld2 == parent[weld1]))
    low, high = np.minimum(body1, body2), np.maximum(body1, body2)
    return out | np.isin((low.astype(np.int64) << 16) + high, model.exclude_signature)


def _immovable_shapes(model: Model, first: _Ids, second: _Ids) -> _Mask:
    """Pairs of shapes for which MuJoCo has no collision function."""
    flat = [int(mj.mjtGeom.mjGEOM_PLANE), int(mj.mjtGeom.mjGEOM_HFIELD)]
    kind: _Mask = np.isin(model.geom_type, flat)
    return kind[first] & kind[second]


def contact_parameters(model: Model, first: int, second: int) -> ContactParameters:
    """Mix the parameters of two geoms as MuJoCo does for a contact found dynamically.

    The geom of higher priority decides alone. At equal priority friction and dimension are the
    maximum, and the solver parameters are averaged by ``solmix`` (minimum of ``solref`` if one of
    them is in direct format).

    Source: MuJoCo documentation, chapter Modeling, section "Contact parameters".
    """
    if model.geom_priority[first] != model.geom_priority[second]:
        ranks = (int(model.geom_priority[first]), int(model.geom_priority[second]))
        boss = first if ranks[0] > ranks[1] else second
        condim, friction = int(model.geom_condim[boss]), model.geom_friction[boss]
        solref, solimp = model.geom_solref[boss], model.geom_solimp[boss]
    else:
        weight = _weight(float(model.geom_solmix[first]), float(model.geom_solmix[second]))
        condim = int(max(model.geom_condim[first], model.geom_condim[second]))
        friction = np.maximum(model.geom_friction[first], model.geom_friction[second])
        solref = _mixed_solref(model.geom_solref[first], model.geom_solref[second], weight)
        solimp = weight * model.geom_solimp[first] + (1 - weight) * model.geom_solimp[second]
    return ContactParameters(
        condim=condim,
        friction=np.array([friction[0], friction[0], friction[1], friction[2], friction[2]]),
        solref=np.array(solref),
        solimp=np.array(solimp),
        margin=float(model.geom_margin[first] + model.geom_margin[second]),
        gap=float(model.geom_gap[first] + model.geom_gap[second]),
        adhesion=float(model.geom_adhesion[first] + model.geom_adhesion[second]),
    )


def _weight(first: float, second: float) -> float:
    if first >= _MINVAL and second >= _MINVAL:
        return first / (first + second)
    if first < _MINVAL and second < _MINVAL:
        return 0.5
    return 0.0 if first < _MINVAL else 1.0


def _mixed_solref(first: Array, second: Array, weight: float) -> Array:
    if first[0] > 0 and second[0] > 0:
        return weight * first + (1 - weight) * second
    return np.minimum(first, second)


def write_pair(model: Model, pair: int, mixed: ContactParameters) -> None:
    """Write contact parameters into pair number ``pair`` of a model."""
    model.pair_dim[pair] = mixed.condim
    model.pair_friction[pair] = mixed.friction
    model.pair_solref[pair] = mixed.solref
    model.pair_solimp[pair] = mixed.solimp
    model.pair_margin[pair] = mixed.margin
    model.pair_gap[pair] = mixed.gap
    model.pair_adhesion[pair] = mixed.adhesion
