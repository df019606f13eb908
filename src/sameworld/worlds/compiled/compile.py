"""From a scene's MJCF to a compiled model whose every element has a name and its own inertia."""

from __future__ import annotations

import fnmatch
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sameworld.core.errors import SameworldWarning, SceneError
from sameworld.core.scene import Scene
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.contacts import colliding_pairs, contact_parameters
from sameworld.worlds.compiled.engine import Model, SpecTree, captured_warnings, mj
from sameworld.worlds.compiled.mjcf import nested_files
from sameworld.worlds.compiled.sanity import (
    check_inertials,
    warn_implausible,
    warn_leaky_meshes,
)

__all__ = ["Compiled", "compile_scene", "compile_spec"]

#: What must not change when inertias are written out explicitly.
_FROZEN = (
    *("body_mass", "body_inertia", "body_ipos", "body_pos", "body_quat", "geom_pos", "qpos0"),
    "tendon_lengthspring",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Compiled:
    """A scene after compilation.

    Attributes:
        spec: The normalised MjSpec: all elements named, inertias explicit, pairs materialised.
        model: Its compiled model.
        pairs: Materialised contact pairs: pair id and the ids of its geoms.
        period: Control period [s].
        substeps: Engine steps per control period.
    """

    spec: SpecTree
    model: Model
    pairs: tuple[tuple[int, int, int], ...]
    period: float
    substeps: int

    def general(self) -> Model:
        """The model without MuJoCo's shortcut for bodies whose inertia is diagonal.

        Needed where a centre of mass moves: the shortcut is decided when compiling.
        """
        spec = self.spec.copy()
        for body in spec.bodies[1:]:
            body.simple = False
        return compile_spec(spec, "scene")


def compile_scene(scene: Scene, config: CompileConfig | None = None) -> Compiled:
    """Compile a scene after all checks.

    Args:
        scene: The scene.
        config: Control period and contact pairs; the usual ones if not given.

    Raises:
        SceneError: Unsafe or malformed MJCF, unphysical inertia, or a period that does not fit.
    """
    config = config or CompileConfig()
    spec = _parsed(scene)
    check_inertials(spec)
    spec.compiler.fusestatic = False
    raw = compile_spec(spec, scene.name)
    _name_everything(spec)
    _stiffen(spec, scene)
    weighed = [body.name for body in spec.bodies[1:] if not body.explicitinertial]
    _freeze_inertias(spec, raw)
    _freeze_springs(spec, raw)
    named = compile_spec(spec, scene.name)
    _check_unchanged(raw, named, scene.name)
    chosen = _chosen_pairs(named, config, scene.belief.names)
    labels = [_add_pair(spec, named, pair) for pair in chosen]
    model = compile_spec(spec, scene.name) if chosen else named
    warn_implausible(model)
    warn_leaky_meshes(model, weighed)
    period, substeps = _period(model, config)
    pairs = tuple((model.pair(n).id, *pair) for n, pair in zip(labels, chosen, strict=True))
    return Compiled(spec=spec, model=model, pairs=pairs, period=period, substeps=substeps)


def compile_spec(spec: SpecTree, name: str) -> Model:
    """Compile, turning MuJoCo's complaint into a ``SceneError``."""
    with captured_warnings() as messages:
        try:
            model = spec.compile()
        except ValueError as cause:
            raise SceneError(f"Scene '{name}' does not compile. MuJoCo says: {_flat(cause)}") from (
                cause
            )
    for message in messages:
        warnings.warn(f"Scene '{name}': {message}", SameworldWarning, stacklevel=2)
    return model


def _flat(cause: Exception) -> str:
    return " ".join(str(cause).split())


def _parsed(scene: Scene) -> SpecTree:
    nested = nested_files(scene.mjcf, scene.assets)
    includes = {name: scene.assets[name] for name in nested}
    others = {name: data for name, data in scene.assets.items() if name not in nested}
    try:
        return mj.MjSpec.from_string(scene.mjcf, include=includes, assets=others)
    except ValueError as cause:
        raise SceneError(
            f"Scene '{scene.name}' is not valid MJCF. MuJoCo says: {_flat(cause)}"
        ) from cause


# ---- inertia -----------------------------------------------------------------------------------


def _freeze_inertias(spec: SpecTree, model: Model) -> None:
    """Write compiled inertias out, so that geometry may be edited without changing them."""
    compiler = spec.compiler
    for body in spec.bodies[1:]:
        index = body.id
        if model.body_mass[index] <= 0:
            continue
        body.explicitinertial = True
        body.mass = float(model.body_mass[index])
        body.ipos = model.body_ipos[index]
        body.iquat = model.body_iquat[index]
        body.ialt.type = mj.mjtOrientation.mjORIENTATION_QUAT
        body.inertia = model.body_inertia[index]
        body.fullinertia = np.full(6, np.nan)
    compiler.inertiafromgeom = int(mj.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE)
    compiler.settotalmass, compiler.boundmass, compiler.boundinertia = -1.0, 0.0, 0.0
    compiler.balanceinertia = False


def _freeze_springs(spec: SpecTree, model: Model) -> None:
    """Write computed rest lengths out, so that they are numbers like others."""
    for tendon in spec.tendons:
        tendon.springlength = model.tendon_lengthspring[tendon.id]


def _check_unchanged(raw: Model, named: Model, name: str) -> None:
    for field in _FROZEN:
        before, after = getattr(raw, field), getattr(named, field)
        if before.shape != after.shape or not np.allclose(before, after, rtol=1e-9, atol=1e-12):
            raise SceneError(
                f"Scene '{name}': '{field}' changes when inertias are written out explicitly. "
                "Remove compiler options such as alignfree and write <inertial> elements."
            )


# ---- friction of components --------------------------------------------------------------------


def _stiffen(spec: SpecTree, scene: Scene) -> None:
    """Let joints whose friction components compute stick: MuJoCo's usual softness makes them creep.

    Joints for which the MJCF says otherwise are left alone.
    """
    usual = (np.array([0.02, 1.0]), np.array([0.9, 0.95, 0.001]))
    for component in scene.components:
        kind, _, name = component.target.partition(":")
        joint = spec.joint(name) if kind == "joint" else None
        if joint is None:
            continue
        if not np.allclose(joint.solref_friction[:2], usual[0]):
            continue
        if np.allclose(joint.solimp_friction[:3], usual[1]):
            joint.solref_friction = [2 * float(spec.option.timestep), 1.0]
            joint.solimp_friction = [0.9999, 0.9999, 0.001, 0.5, 2.0]


# ---- names -------------------------------------------------------------------------------------


def _name_everything(spec: SpecTree) -> None:
    kinds: Mapping[str, Any] = {
        "body": spec.bodies[1:],
        "geom": spec.geoms,
        "joint": spec.joints,
        "tendon": spec.tendons,
        "actuator": spec.actuators,
        "sensor": spec.sensors,
    }
    for kind, elements in kinds.items():
        taken = {element.name for element in elements}
        for element in elements:
            if not element.name:
                element.name = _fresh(f"{kind}{element.id}", taken)
    pairs = spec.pairs
    taken = {pair.name for pair in pairs}
    for pair in pairs:
        if not pair.name:
            pair.name = _fresh(f"{pair.geomname1}+{pair.geomname2}", taken)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


# ---- contact pairs -----------------------------------------------------------------------------


def _chosen_pairs(
    model: Model, config: CompileConfig, believed: Iterable[str]
) -> tuple[tuple[int, int], ...]:
    """Pairs that get parameters of their own."""
    candidates = colliding_pairs(model)
    if isinstance(config.pairs, int) and len(candidates) <= config.pairs:
        return tuple(candidates)
    patterns = () if isinstance(config.pairs, int) else config.pairs
    names = [name.removeprefix("pair:").split(".")[0] for name in believed if name[:5] == "pair:"]
    chosen: list[tuple[int, int]] = []
    for first, second in candidates:
        a, b = model.geom(first).name, model.geom(second).name
        both = (f"{a}+{b}", f"{b}+{a}")
        if any(name in names for name in both) or any(
            fnmatch.fnmatchcase(name, pattern) for name in both for pattern in patterns
        ):
            chosen.append((first, second))
    return tuple(chosen)


def _add_pair(spec: SpecTree, model: Model, pair: tuple[int, int]) -> str:
    """Write a pair with exactly the parameters that MuJoCo would have mixed; return its name."""
    first, second = (model.geom(geom).name for geom in pair)
    mixed = contact_parameters(model, *pair)
    name = _fresh(f"{first}+{second}", {existing.name for existing in spec.pairs})
    spec.add_pair(
        name=name,
        geomname1=first,
        geomname2=second,
        condim=mixed.condim,
        friction=mixed.friction,
        solref=mixed.solref,
        solimp=mixed.solimp,
        margin=mixed.margin,
        gap=mixed.gap,
        adhesion=mixed.adhesion,
    )
    return name


# ---- time ----------------------------------------------------------------------------------


def _period(model: Model, config: CompileConfig) -> tuple[float, int]:
    """Control period and engine steps in it."""
    timestep = float(model.opt.timestep)
    period, where = config.period, "the option 'period'"
    if period is None:
        index = mj.mj_name2id(model, mj.mjtObj.mjOBJ_NUMERIC, "control_period")
        if index < 0:
            return timestep, 1
        period = float(model.numeric_data[model.numeric_adr[index]])
        where = "the numeric 'control_period'"
    substeps = round(period / timestep) if math.isfinite(period) else 0
    if substeps < 1 or not math.isclose(substeps * timestep, period, rel_tol=1e-9):
        nearest = max(1, round(period / timestep)) * timestep if math.isfinite(period) else timestep
        raise SceneError(
            f"Control period {period:.9g} s ({where}) is no whole multiple of the timestep "
            f"{timestep:.9g} s. The nearest that is: {nearest:.9g} s."
        )
    return period, substeps
