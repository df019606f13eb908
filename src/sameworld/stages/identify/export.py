"""The posterior as a plain table for domain randomisation."""

from __future__ import annotations

import math
from typing import Any

from sameworld.core.address import Address
from sameworld.core.belief import Belief

__all__ = ["mujoco_field", "posterior_table"]

#: (kind, field prefix) -> MuJoCo model array; ``{}`` takes the element name.
_FIELDS: dict[tuple[str, str], str] = {
    ("body", "mass"): "body_mass[{}] (scale body_inertia along)",
    ("body", "com.x"): "body_ipos[{}, 0]",
    ("body", "com.y"): "body_ipos[{}, 1]",
    ("body", "com.z"): "body_ipos[{}, 2]",
    ("body", "inertia.x"): "body_inertia[{}, 0]",
    ("body", "inertia.y"): "body_inertia[{}, 1]",
    ("body", "inertia.z"): "body_inertia[{}, 2]",
    ("geom", "pos.x"): "geom_pos[{}, 0]",
    ("geom", "pos.y"): "geom_pos[{}, 1]",
    ("geom", "pos.z"): "geom_pos[{}, 2]",
    ("geom", "friction.slide"): "geom_friction[{}, 0]",
    ("geom", "friction.spin"): "geom_friction[{}, 1]",
    ("geom", "friction.roll"): "geom_friction[{}, 2]",
    ("geom", "solref.timeconst"): "geom_solref[{}, 0]",
    ("geom", "solref.dampratio"): "geom_solref[{}, 1]",
    ("pair", "friction.slide"): "pair_friction[{}, 0:2]",
    ("pair", "friction.spin"): "pair_friction[{}, 2]",
    ("pair", "friction.roll"): "pair_friction[{}, 3:5]",
    ("pair", "solref.timeconst"): "pair_solref[{}, 0]",
    ("pair", "solref.dampratio"): "pair_solref[{}, 1]",
    ("joint", "damping"): "dof_damping[{}]",
    ("joint", "frictionloss"): "dof_frictionloss[{}]",
    ("joint", "armature"): "dof_armature[{}]",
    ("joint", "stiffness"): "jnt_stiffness[{}]",
    ("joint", "springref"): "qpos_spring[{}]",
    ("tendon", "stiffness"): "tendon_stiffness[{}]",
    ("tendon", "damping"): "tendon_damping[{}]",
    ("tendon", "frictionloss"): "tendon_frictionloss[{}]",
    ("tendon", "springlength"): "tendon_lengthspring[{}, 0:2]",
    ("tendon", "springlength.low"): "tendon_lengthspring[{}, 0]",
    ("tendon", "springlength.high"): "tendon_lengthspring[{}, 1]",
    ("tendon", "range.low"): "tendon_range[{}, 0]",
    ("tendon", "range.high"): "tendon_range[{}, 1]",
    ("actuator", "kp"): "actuator_gainprm[{}, 0] and -actuator_biasprm[{}, 1]",
    ("actuator", "kv"): "-actuator_biasprm[{}, 2]",
    ("actuator", "gear"): "actuator_gear[{}, 0]",
    ("option", "x"): "opt.gravity[0]",
    ("option", "y"): "opt.gravity[1]",
    ("option", "z"): "opt.gravity[2]",
}


def mujoco_field(name: str) -> str:
    """MuJoCo model array behind an address; empty if it has none."""
    address = Address.parse(name)
    template = _FIELDS.get((address.kind, address.field), "")
    return template.replace("{}", repr(address.target))


def posterior_table(posterior: Belief) -> dict[str, Any]:
    """JSON-ready table: mean, std, bounds, unit, MuJoCo field per parameter, and correlations.

    ``distribution`` is ``lognormal`` where the parameter was fitted in log coordinates: draw
    ``exp(normal(log_mean, log_std))`` and clip to the bounds, else ``normal``.
    """
    rows: list[dict[str, Any]] = []
    for p in posterior.parameters:
        row: dict[str, Any] = {
            "name": p.name,
            "mujoco_field": mujoco_field(p.name),
            "unit": p.unit,
            "mean": p.value,
            "std": p.std if math.isfinite(p.std) else None,
            "low": p.low if math.isfinite(p.low) else None,
            "high": p.high if math.isfinite(p.high) else None,
            "distribution": "lognormal" if p.transform == "log" else "normal",
        }
        if p.transform == "log" and math.isfinite(p.std):
            row |= {"log_mean": math.log(p.value), "log_std": p.std / p.value}
        rows.append(row)
    return {
        "schema": 1,
        "parameters": rows,
        "correlation": {
            "names": list(posterior.names),
            "matrix": posterior.correlation.tolist(),
        },
    }
