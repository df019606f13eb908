"""What of a compiled model the differentiable world does not offer, with what to use instead.

The core computes what is listed in ``docs/worlds/differentiable.md`` exactly as MuJoCo does.
Everything else that would change the motion is refused here by name; nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from sameworld.core.errors import SceneError, listed
from sameworld.worlds.compiled.attach import Group
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.collide import FUNCTIONS
from sameworld.worlds.differentiable.equality import equalities_of
from sameworld.worlds.differentiable.tendons import tendons_of

__all__ = ["refuse_unsupported"]

#: Two geoms and the ``<pair>`` element, -1 for none.
_Pair: TypeAlias = tuple[int, int, int]

_SHOWN = 8


def refuse_unsupported(model: Model, chosen: list[_Pair], groups: Iterable[Group] = ()) -> None:
    """Refuse a model that would not move as it does in MuJoCo.

    Args:
        model: The compiled model.
        chosen: Pairs of geoms that may touch, and their ``<pair>`` element.
        groups: Components, by law.

    Raises:
        SceneError: Says what is not offered, where it stands, and what to use instead.
    """
    reasons = [
        *_options(model),
        *_bodies(model),
        *_joints(model),
        *_actuators(model),
        *_shapes(model, chosen),
        *_contacts(model, chosen),
        *_references(model, chosen),
        *_components(model, groups),
    ]
    if reasons:
        more = [f"... and {len(reasons) - _SHOWN} more."] if len(reasons) > _SHOWN else []
        lines = "\n".join(f"  {reason}" for reason in [*reasons[:_SHOWN], *more])
        raise SceneError(
            f"The differentiable world does not offer everything in this scene:\n{lines}\n"
            "The explicit world does."
        )
    tendons_of(model)
    equalities_of(model)


# ---- options -----------------------------------------------------------------------------------

_FLAGS = {
    "OVERRIDE": "give the contact parameters to geoms or pairs",
    "SLEEP": "leave it out; bodies at rest are computed like all others",
    "DIAGEXACT": "leave it out",
    "IPC": "leave it out",
    "SPECULATIVE": "leave it out, and use a smaller timestep or a margin",
}


def _options(model: Model) -> Iterator[str]:
    option, kinds = model.opt, mj.mjtIntegrator
    if int(option.integrator) not in (int(kinds.mjINT_EULER), int(kinds.mjINT_IMPLICITFAST)):
        name = kinds(int(option.integrator)).name.removeprefix("mjINT_")
        yield f"Integrator '{name}': use Euler or implicitfast."
    for flag, instead in _FLAGS.items():
        if int(option.enableflags) & int(getattr(mj.mjtEnableBit, f"mjENBL_{flag}")):
            yield f"Flag '{flag.lower()}' is enabled: {instead}."
    if int(option.noslip_iterations) > 0:
        yield "Option 'noslip_iterations': set it to 0, and raise impratio with elliptic cones."
    for name in ("density", "viscosity"):
        if float(getattr(option, name)) > 0:
            yield f"Option '{name}', forces of a fluid: set it to 0, and give joints damping."
    if int(model.nflex):
        yield "Flexible objects (flex): use bodies with joints that have stiffness and damping."
    if int(model.nplugin):
        yield "Plugins: use joints, actuators and sensors of MuJoCo itself, or components."


# ---- bodies and joints -------------------------------------------------------------------------


def _bodies(model: Model) -> Iterator[str]:
    ball = int(mj.mjtJoint.mjJNT_BALL)
    for joint in np.flatnonzero(model.jnt_type == ball).tolist():
        body = int(model.jnt_bodyid[joint])
        last = int(model.body_jntadr[body] + model.body_jntnum[body] - 1)
        if joint != last:
            yield (
                f"Ball joint '{_name(model, 'joint', joint)}' is followed by another joint in body "
                f"'{_name(model, 'body', body)}': put that joint into a child body."
            )


def _joints(model: Model) -> Iterator[str]:
    for joint in range(int(model.njnt)):
        name = f"Joint '{_name(model, 'joint', joint)}'"
        if np.any(model.jnt_stiffnesspoly[joint]):
            yield f"{name} has a polynomial stiffness: give one number."
        dofs = np.flatnonzero(model.dof_jntid == joint)
        if np.any(model.dof_dampingpoly[dofs]) and not _only_actuators(model, joint):
            yield f"{name} has a polynomial damping: give one number."
        if model.jnt_springyield[joint] or model.jnt_plasticadr[joint] >= 0:
            yield f"{name} has a spring that yields: leave the yield out."
        if model.jnt_actgravcomp[joint]:
            yield (
                f"{name} lets actuators compensate gravity (actuatorgravcomp): leave it out; "
                "gravcomp of bodies acts as a force of its own."
            )


def _only_actuators(model: Model, joint: int) -> bool:
    """Whether polynomial damping of a joint comes from actuators, which are told so themselves."""
    on = model.actuator_trnid[:, 0] == joint
    return bool(np.any(model.actuator_dampingpoly[on]))


# ---- actuators ---------------------------------------------------------------------------------

_JOINTS = (int(mj.mjtTrn.mjTRN_JOINT), int(mj.mjtTrn.mjTRN_JOINTINPARENT))
_TENDON = int(mj.mjtTrn.mjTRN_TENDON)
_SCALAR = (int(mj.mjtJoint.mjJNT_HINGE), int(mj.mjtJoint.mjJNT_SLIDE))


def _actuators(model: Model) -> Iterator[str]:
    for actuator in range(int(model.nactuator)):
        name = f"Actuator '{_name(model, 'actuator', actuator)}'"
        for reason in (*_transmission(model, actuator), *_law(model, actuator)):
            yield f"{name} {reason}"


def _transmission(model: Model, actuator: int) -> Iterator[str]:
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    single = int(model.actuator_ctrlnum[actuator]) == int(model.actuator_outnum[actuator]) == 1
    if kind not in (*_JOINTS, _TENDON) or not single:
        what = mj.mjtTrn(kind).name.removeprefix("mjTRN_").lower()
        yield f"acts on a {what}: let it act on hinges, slides or tendons."
    elif kind in _JOINTS and int(model.jnt_type[target]) not in _SCALAR:
        joint = _name(model, "joint", target)
        yield f"acts on ball or free joint '{joint}': use hinges or slides, one actuator each."
    group = int(model.actuator_group[actuator])
    if 0 <= group < 31 and int(model.opt.disableactuator) >> group & 1:
        yield f"is in disabled group {group}: remove it, or enable the group."


def _law(model: Model, actuator: int) -> Iterator[str]:
    parts = (
        ("dynamics", mj.mjtDyn, model.actuator_dyntype, ("NONE",)),
        ("gain", mj.mjtGain, model.actuator_gaintype, ("FIXED", "AFFINE")),
        ("bias", mj.mjtBias, model.actuator_biastype, ("NONE", "AFFINE")),
    )
    for part, kinds, array, offered in parts:
        kind = kinds(int(array[actuator])).name.partition("_")[2]
        if kind not in offered:
            yield (
                f"has {part} of type '{kind.lower()}': use a motor, position or velocity actuator, "
                "or a component."
            )
    if np.any(model.actuator_dampingpoly[actuator]):
        yield "has a polynomial damping: give one number."
    if int(model.actuator_history[actuator, 0]) > 0:
        yield "is delayed by the engine: remove 'nsample'; a component such as a servo may delay."


# ---- contacts ----------------------------------------------------------------------------------


def _shapes(model: Model, chosen: list[_Pair]) -> Iterator[str]:
    by_shape: dict[tuple[int, int], list[_Pair]] = {}
    for pair in chosen:
        low, high = sorted((int(model.geom_type[pair[0]]), int(model.geom_type[pair[1]])))
        if (low, high) not in FUNCTIONS:
            by_shape.setdefault((low, high), []).append(pair)
    for shapes, pairs in sorted(by_shape.items()):
        a, b = (mj.mjtGeom(kind).name.removeprefix("mjGEOM_").lower() for kind in shapes)
        labels = [_label(model, pair) for pair in pairs]
        yield (
            f"Contact of {a} and {b}, of {listed(labels, 4)}: use a sphere, capsule or box "
            "instead. If these never meet, leave the pair out by <exclude> or "
            f"DifferentiableConfig(ignore=('{labels[0]}', ...))."
        )


def _contacts(model: Model, chosen: list[_Pair]) -> Iterator[str]:
    elliptic = int(model.opt.cone) == int(mj.mjtCone.mjCONE_ELLIPTIC)
    for pair in chosen:
        name, element, geoms = f"Contact '{_label(model, pair)}'", pair[2], list(pair[:2])
        listed_one = element >= 0
        gap = model.pair_gap[element] if listed_one else model.geom_gap[geoms].sum()
        if gap < 0:
            yield f"{name} has a negative gap: set it to 0, or lower the margin."
        pull = model.pair_adhesion[element] if listed_one else model.geom_adhesion[geoms].sum()
        if pull:
            yield f"{name} has adhesion: set it to 0."
        if elliptic and listed_one and np.any(model.pair_solreffriction[element]):
            yield f"{name} has solreffriction: leave it out, or use pyramidal cones."
        if np.any(model.geom_surfacevel[geoms]):
            yield f"{name} has a moving surface (surfacevel): move the body by a joint."


def _references(model: Model, chosen: list[_Pair]) -> Iterator[str]:
    """Constraints whose solref is neither a time constant nor a stiffness."""
    geoms = sorted({geom for pair in chosen if pair[2] < 0 for geom in pair[:2]})
    elements = sorted({pair[2] for pair in chosen if pair[2] >= 0})
    joints = np.arange(int(model.njnt))
    for kind, attribute, solref, owner in (
        ("joint", "solreflimit", model.jnt_solref, joints),
        ("joint", "solreffriction", model.dof_solref, model.dof_jntid),
        ("tendon", "solreflimit", model.tendon_solref_lim, np.arange(int(model.ntendon))),
        ("tendon", "solreffriction", model.tendon_solref_fri, np.arange(int(model.ntendon))),
        ("equality", "solref", model.eq_solref, np.arange(int(model.neq))),
        ("geom", "solref", model.geom_solref[geoms], np.array(geoms)),
        ("pair", "solref", model.pair_solref[elements], np.array(elements)),
    ):
        mixed = (solref[:, 0] > 0) != (solref[:, 1] > 0)
        for index in sorted(set(owner[mixed].tolist())):
            yield (
                f"{kind.capitalize()} '{_name(model, kind, index)}' has a {attribute} with one "
                "positive number, which MuJoCo replaces by its default: give two positive numbers "
                "or two negative ones."
            )


def _components(model: Model, groups: Iterable[Group]) -> Iterator[str]:
    bits = (mj.mjtDisableBit.mjDSBL_FRICTIONLOSS, mj.mjtDisableBit.mjDSBL_CONSTRAINT)
    if not int(model.opt.disableflags) & (int(bits[0]) | int(bits[1])):
        return
    for group in groups:
        if group.law.target == "joint":
            yield (
                f"Components {listed(group.names)} compute friction, which a flag disables: enable "
                "'frictionloss' and 'constraint', or remove them."
            )


def _label(model: Model, pair: _Pair) -> str:
    return "+".join(_name(model, "geom", geom) for geom in pair[:2])


def _name(model: Model, kind: str, index: int) -> str:
    return str(getattr(model, kind)(index).name or index)
