"""Layout of sensors: what each one looks at. ``readings`` says what they read.

Source: MuJoCo documentation, chapter XML reference, section "sensor".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import SceneError, listed
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.structure import Index

__all__ = ["OFFERED", "Frames", "Group", "Sensors", "sensors_of"]

#: Types that are offered, as in ``mjtSensor`` without its prefix.
OFFERED = (
    *("ACCELEROMETER", "ACTUATORFRC", "ACTUATORPOS", "ACTUATORVEL", "BALLANGVEL", "BALLQUAT"),
    *("CLOCK", "FRAMEANGACC", "FRAMEANGVEL", "FRAMELINACC", "FRAMELINVEL", "FRAMEPOS"),
    *("FRAMEQUAT", "FRAMEXAXIS", "FRAMEYAXIS", "FRAMEZAXIS", "GYRO", "JOINTACTFRC", "JOINTPOS"),
    *("JOINTVEL", "MAGNETOMETER", "SUBTREECOM", "SUBTREELINVEL", "TENDONPOS", "TENDONVEL"),
    "VELOCIMETER",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Sensors of one type.

    Attributes:
        kind: Type, as in ``mjtSensor`` without its prefix.
        object: What is sensed [n]: a joint, tendon, actuator, body, or entry of ``Frames``.
        reference: Entry of ``Frames`` relative to which it is sensed [n].
        qpos: First position column of a joint [n], 0 for others.
        dof: First dof of a joint [n], 0 for others.
    """

    kind: str
    object: Index
    reference: Index
    qpos: Index
    dof: Index


@dataclass(frozen=True, kw_only=True, eq=False)
class Frames:
    """Frames that sensors mention: the world, then bodies, inertial frames, geoms, sites.

    Attributes:
        body: Body that carries each [n].
        bodies: How many are frames of bodies.
        inertial: Bodies whose inertial frames follow.
        geoms: Geoms that follow.
        sites: Sites that follow.
    """

    body: Index
    bodies: int
    inertial: Index
    geoms: Index
    sites: Index


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensors:
    """What of sensors never changes.

    Attributes:
        size: Number of values.
        groups: Sensors by type.
        frames: Frames they mention.
        order: Place in the groups' values of every value [size].
        low, high: Bounds of values by cutoff [size].
        magnetic: Magnetic field in the world frame [3] T.
        under: Whether a body belongs to the subtree of a body [nbody, nbody].
        gravity: Whether gravity acts.
    """

    size: int
    groups: tuple[Group, ...]
    frames: Frames
    order: Index
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    magnetic: NDArray[np.float64]
    under: NDArray[np.float64]
    gravity: bool


_INSTEAD = {
    "CAMPROJECTION": "a framepos of the site relative to the camera's body",
    "FORCE": "an accelerometer, or actuatorfrc of the joints",
    "GEOMDIST": "a framepos of one geom relative to the other",
    "GEOMFROMTO": "a framepos of one geom relative to the other",
    "GEOMNORMAL": "a framepos of one geom relative to the other",
    "JOINTLIMITPOS": "jointpos",
    "JOINTLIMITVEL": "jointvel",
    "RANGEFINDER": "a framepos of a site on what is measured",
    "SUBTREEANGMOM": "subtreelinvel and frameangvel",
    "TENDONACTFRC": "actuatorfrc of its actuators",
    "TENDONLIMITPOS": "tendonpos",
    "TENDONLIMITVEL": "tendonvel",
    "TORQUE": "a gyro, or actuatorfrc of the joints",
    "TOUCH": "a framepos of the body that touches",
}


def sensors_of(model: Model) -> Sensors:
    """Lay out the sensors of a compiled model.

    Raises:
        SceneError: A sensor is of a type, or on an object, that is not offered.
    """
    kinds = [_kind(model, k) for k in range(model.nsensor)]
    frames, places = _frames(model)
    groups: list[Group] = []
    order, filled = np.zeros(int(model.nsensordata), dtype=np.intp), 0
    for kind in sorted(set(kinds)):
        which = np.array([k for k, other in enumerate(kinds) if other == kind], dtype=np.intp)
        groups.append(_group(model, kind, which, places))
        for k in which.tolist():
            first, size = int(model.sensor_adr[k]), int(model.sensor_dim[k])
            order[first : first + size] = np.arange(filled, filled + size)
            filled += size
    low, high = _bounds(model)
    disabled = int(model.opt.disableflags)
    return Sensors(
        size=int(model.nsensordata),
        groups=() if disabled & int(mj.mjtDisableBit.mjDSBL_SENSOR) else tuple(groups),
        frames=frames,
        order=order,
        low=low,
        high=high,
        magnetic=np.array(model.opt.magnetic),
        under=_under(model),
        gravity=not disabled & int(mj.mjtDisableBit.mjDSBL_GRAVITY),
    )


def _kind(model: Model, sensor: int) -> str:
    """Type of a sensor, if it is offered."""
    kind = mj.mjtSensor(int(model.sensor_type[sensor])).name.removeprefix("mjSENS_")
    name = model.sensor(sensor).name or sensor
    if kind not in OFFERED:
        instead = f"Use {_INSTEAD[kind]}, or the" if kind in _INSTEAD else "Use the"
        raise SceneError(
            f"Sensor '{name}' is a {kind.lower()}. The differentiable world offers "
            f"{listed([k.lower() for k in OFFERED], 40)}. {instead} explicit world."
        )
    if model.sensor_history[sensor, 0] > 0 or model.sensor_delay[sensor] > 0:
        raise SceneError(
            f"Sensor '{name}' is delayed by the engine. The differentiable world delays channels "
            f"itself: remove the delay from the sensor and set 'sensor:{name}.delay'."
        )
    return kind


def _objects(model: Model, sensor: int) -> list[tuple[int, int]]:
    """Frames (type, id) of a sensor: of its object, then of its reference."""
    pairs = [(model.sensor_objtype[sensor], model.sensor_objid[sensor])]
    if model.sensor_refid[sensor] >= 0:
        pairs.append((model.sensor_reftype[sensor], model.sensor_refid[sensor]))
    return [(int(kind), int(item)) for kind, item in pairs]


def _frames(model: Model) -> tuple[Frames, dict[tuple[int, int], int]]:
    """Frames that sensors mention, and the place of each (type, id) among them."""
    types = mj.mjtObj
    xbody, body, geom, site = (
        int(getattr(types, f"mjOBJ_{name}")) for name in ("XBODY", "BODY", "GEOM", "SITE")
    )
    mentioned: set[tuple[int, int]] = set()
    for sensor in range(model.nsensor):
        kind = _kind(model, sensor)
        if kind.startswith("FRAME") or kind in _ON_SITES:
            mentioned.update(_objects(model, sensor))
            _refuse_cameras(model, sensor, (xbody, body, geom, site))
    mentioned.discard((xbody, 0))
    ids = {t: sorted(i for kind, i in mentioned if kind == t) for t in (xbody, body, geom, site)}
    order = [(xbody, 0), *((t, i) for t in (xbody, body, geom, site) for i in ids[t])]
    owners = {geom: model.geom_bodyid, site: model.site_bodyid}
    frames = Frames(
        body=_ids([owners[t][i] if t in owners else i for t, i in order]),
        bodies=1 + len(ids[xbody]),
        inertial=_ids(ids[body]),
        geoms=_ids(ids[geom]),
        sites=_ids(ids[site]),
    )
    return frames, {key: place for place, key in enumerate(order)}


def _refuse_cameras(model: Model, sensor: int, offered: tuple[int, ...]) -> None:
    for kind, _ in _objects(model, sensor):
        if kind not in offered:
            raise SceneError(
                f"Sensor '{model.sensor(sensor).name or sensor}' is on a "
                f"{mj.mjtObj(kind).name.removeprefix('mjOBJ_').lower()}. The differentiable world "
                "offers bodies, geoms and sites: attach a site there."
            )


_ON_SITES = ("ACCELEROMETER", "GYRO", "MAGNETOMETER", "VELOCIMETER")
_ON_JOINTS = ("BALLANGVEL", "BALLQUAT", "JOINTACTFRC", "JOINTPOS", "JOINTVEL")


def _group(model: Model, kind: str, which: Index, places: dict[tuple[int, int], int]) -> Group:
    thing = _ids(model.sensor_objid[which])
    zero = np.zeros_like(thing)
    if kind in _ON_JOINTS:
        qpos, dof = _ids(model.jnt_qposadr[thing]), _ids(model.jnt_dofadr[thing])
        return Group(kind=kind, object=thing, reference=zero, qpos=qpos, dof=dof)
    if not (kind.startswith("FRAME") or kind in _ON_SITES):
        return Group(kind=kind, object=thing, reference=zero, qpos=zero, dof=zero)
    pairs = [_objects(model, k) for k in which.tolist()]
    return Group(
        kind=kind,
        object=_ids([places[pair[0]] for pair in pairs]),
        reference=_ids([places[pair[1]] if len(pair) > 1 else 0 for pair in pairs]),
        qpos=zero,
        dof=zero,
    )


def _ids(values: object) -> Index:
    return np.asarray(values, dtype=np.intp)


def _bounds(model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest values [nsensordata]."""
    high = np.full(int(model.nsensordata), np.inf)
    low = -high
    kinds = mj.mjtDataType
    for k in np.flatnonzero(model.sensor_cutoff > 0).tolist():
        columns = slice(model.sensor_adr[k], model.sensor_adr[k] + model.sensor_dim[k])
        kind = int(model.sensor_datatype[k])
        if kind in (int(kinds.mjDATATYPE_REAL), int(kinds.mjDATATYPE_POSITIVE)):
            high[columns] = model.sensor_cutoff[k]
        if kind == int(kinds.mjDATATYPE_REAL):
            low[columns] = -model.sensor_cutoff[k]
    return low, high


def _under(model: Model) -> NDArray[np.float64]:
    under = np.eye(int(model.nbody))
    for body in range(int(model.nbody) - 1, 0, -1):
        under[int(model.body_parentid[body])] += under[body]
    return under
