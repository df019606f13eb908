"""``Structure``: what of a compiled model never changes, laid out for array programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["Bools", "Dofs", "Index", "Links", "Structure", "is_disabled", "structure_of"]

Index: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
#: ``body_simple`` of a body with slide joints only.
_SLIDES = 2
_CONSTRAINTS = ("EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT")


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """Chain of virtual links: a body with k joints is k links, a body without joints one.

    Link 0 is the world. The last link of a body is the body's frame.

    Attributes:
        body: Body of every link [L].
        first: Whether the link carries its body's fixed offset from the parent [L].
        joint: Joint of every link, -1 for none [L].
        kind: Type of its joint, -1 for none [L].
        qpos: First position column of its joint, 0 for none [L].
        jumps: Ancestor 1, 2, 4, ... links up, by doubling [rounds, L].
        of_body: Last link of every body [nbody].
    """

    body: Index
    first: Bools
    joint: Index
    kind: Index
    qpos: Index
    jumps: Index
    of_body: Index


@dataclass(frozen=True, kw_only=True, eq=False)
class Dofs:
    """Degrees of freedom.

    Attributes:
        link: Link in whose frame the axis is fixed; 0 for translations of free joints [nv].
        anchor: Link whose joint anchor a rotation turns about [nv].
        joint: Joint [nv].
        body: Body [nv].
        turns: Whether it rotates [nv].
        local: Axis in the frame of ``link`` where no joint axis gives it [nv, 3].
        scalar: Whether the axis is the joint's own (hinge, slide) [nv].
        root: Link of the tree's root body, whose origin is the reference point [nv].
        moves: Whether it moves a body [nbody, nv].
        before: Whether dof j acts before dof i in the chain of i [nv, nv].
        above: Whether dof j is dof i or an ancestor of it [nv, nv].
        coupled: Whether implicit integration couples the two: one moves the other, and their
            inertia is not known to be diagonal [nv, nv].
    """

    link: Index
    anchor: Index
    joint: Index
    body: Index
    turns: Bools
    local: Floats
    scalar: Bools
    root: Index
    moves: Bools
    before: Bools
    above: Bools
    coupled: Bools


@dataclass(frozen=True, kw_only=True, eq=False)
class Structure:
    """What of a compiled model never changes.

    Attributes:
        nq, nv, nu, nbody: Sizes as in ``mjModel``.
        timestep: Engine step [s].
        implicit: Whether the integrator is implicitfast; else Euler.
        elliptic: Whether friction cones are elliptic; else pyramids.
        impratio: Ratio of frictional to normal impedance.
        disabled: ``disableflags``.
        links: Virtual links.
        dofs: Degrees of freedom.
        root: Link of the root body of every body's tree [nbody].
        scalars: Columns of hinge and slide joints: joint, qpos, dof [n each].
        turns: Ball and free joints: first quaternion column, first rotational dof, [n each].
        shifts: Free joints: first position column, first dof [n each].
        alone: First dofs of free bodies without children [n], and their bodies.
        sliders: Bodies that only slide, along axes at right angles, with nothing on them: MuJoCo
            says that they show the world their mass, without armature, in every direction.
    """

    nq: int
    nv: int
    nu: int
    nbody: int
    timestep: float
    implicit: bool
    elliptic: bool
    impratio: float
    disabled: int
    links: Links
    dofs: Dofs
    root: Index
    scalars: tuple[Index, Index, Index]
    turns: tuple[Index, Index]
    shifts: tuple[Index, Index]
    alone: tuple[Index, Index]
    sliders: Index

    def is_disabled(self, flag: str) -> bool:
        """Whether an ``mjtDisableBit``, such as ``CONTACT``, is set, or one that includes it."""
        return is_disabled(self.disabled, flag)


def is_disabled(flags: int, flag: str) -> bool:
    """Whether ``disableflags`` have an ``mjtDisableBit`` set, or one that includes it."""
    every = (flag, "CONSTRAINT") if flag in _CONSTRAINTS else (flag,)
    return any(flags & int(getattr(mj.mjtDisableBit, f"mjDSBL_{name}")) for name in every)


def _kinds() -> dict[str, int]:
    names = ("FREE", "BALL", "SLIDE", "HINGE")
    return {name: int(getattr(mj.mjtJoint, f"mjJNT_{name}")) for name in names}


def structure_of(model: Model) -> Structure:
    """Lay out a compiled model."""
    kinds = _kinds()
    links = _links(model)
    kind, qpos, dof = model.jnt_type, model.jnt_qposadr, model.jnt_dofadr
    scalar = np.flatnonzero((kind == kinds["SLIDE"]) | (kind == kinds["HINGE"]))
    free, ball = np.flatnonzero(kind == kinds["FREE"]), np.flatnonzero(kind == kinds["BALL"])
    alone = [j for j in free.tolist() if _is_alone(model, j)]
    return Structure(
        nq=int(model.nq),
        nv=int(model.nv),
        nu=int(model.nu),
        nbody=int(model.nbody),
        timestep=float(model.opt.timestep),
        implicit=int(model.opt.integrator) == int(mj.mjtIntegrator.mjINT_IMPLICITFAST),
        elliptic=int(model.opt.cone) == int(mj.mjtCone.mjCONE_ELLIPTIC),
        impratio=float(model.opt.impratio),
        disabled=int(model.opt.disableflags),
        links=links,
        dofs=_dofs(model, links),
        root=links.of_body[model.body_rootid],
        scalars=(_ids(scalar), _ids(qpos[scalar]), _ids(dof[scalar])),
        turns=(
            _ids([*(qpos[free] + 3), *qpos[ball]]),
            _ids([*(dof[free] + 3), *dof[ball]]),
        ),
        shifts=(_ids(qpos[free]), _ids(dof[free])),
        alone=(_ids(dof[alone]), _ids(model.jnt_bodyid[alone])),
        sliders=np.flatnonzero(model.body_simple == _SLIDES),
    )


def _ids(values: object) -> Index:
    return np.asarray(values, dtype=np.intp).reshape(-1)


def _is_alone(model: Model, joint: int) -> bool:
    """Whether a free joint moves exactly one body with mass, and nothing hangs on it."""
    body = int(model.jnt_bodyid[joint])
    tree = int(model.dof_treeid[model.jnt_dofadr[joint]])
    massive = model.body_subtreemass[body] == model.body_mass[body]
    return int(model.tree_dofnum[tree]) == 6 and bool(massive)


def _links(model: Model) -> Links:
    body, first, joint, parent = [0], [True], [-1], [0]
    of_body = [0]
    for b in range(1, model.nbody):
        above = of_body[int(model.body_parentid[b])]
        start, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        for k in range(max(count, 1)):
            body.append(b)
            first.append(k == 0)
            joint.append(start + k if count else -1)
            parent.append(above)
            above = len(body) - 1
        of_body.append(above)
    joints = np.array(joint)
    kind = np.where(joints >= 0, model.jnt_type[joints] if model.njnt else -1, -1)
    qpos = np.where(joints >= 0, model.jnt_qposadr[joints] if model.njnt else 0, 0)
    return Links(
        body=_ids(body),
        first=np.array(first),
        joint=_ids(joint),
        kind=_ids(kind),
        qpos=_ids(qpos),
        jumps=_doubled(np.array(parent, dtype=np.intp)),
        of_body=_ids(of_body),
    )


def _doubled(parent: Index) -> Index:
    """Ancestors 1, 2, 4, ... up until all are the world."""
    jumps = [np.zeros((0, len(parent)), dtype=np.intp)]
    ancestor = parent
    while ancestor.any():
        jumps.append(ancestor[None])
        ancestor = ancestor[ancestor]
    return np.concatenate(jumps)


def _dofs(model: Model, links: Links) -> Dofs:
    kinds = _kinds()
    link_of_joint = {int(j): k for k, j in enumerate(links.joint) if j >= 0}
    joint, body = _ids(model.dof_jntid), _ids(model.dof_bodyid)
    kind = _ids(model.jnt_type[joint]) if model.nv else _ids([])
    own = _ids([link_of_joint[int(j)] for j in joint])
    first = _ids(model.jnt_dofadr[joint] if model.nv else [])
    within = np.arange(int(model.nv), dtype=np.intp) - first
    shifts = (kind == kinds["SLIDE"]) | ((kind == kinds["FREE"]) & (within < 3))
    scalar = (kind == kinds["SLIDE"]) | (kind == kinds["HINGE"])
    local = np.zeros((model.nv, 3))
    local[np.arange(model.nv), within % 3] = 1.0
    fixed = (kind == kinds["FREE"]) & (within < 3)
    above = _above(model)
    moves = np.zeros((model.nbody, model.nv), dtype=np.bool_)
    for b in range(1, model.nbody):
        weld = int(model.body_weldid[b])
        if model.body_dofnum[weld]:
            last = int(model.body_dofadr[weld] + model.body_dofnum[weld] - 1)
            moves[b] = above[last]
    earlier = joint[:, None] != joint[None, :]
    shift_first = (kind == kinds["FREE"])[:, None] & ~shifts[:, None] & shifts[None, :]
    before = above & (earlier | shift_first)
    np.fill_diagonal(before, False)
    return Dofs(
        link=_ids(np.where(fixed, 0, np.where(scalar, own, links.of_body[body]))),
        anchor=own,
        joint=joint,
        body=body,
        turns=~shifts,
        local=local,
        scalar=scalar,
        root=_ids(links.of_body[model.body_rootid[body]]),
        moves=moves,
        before=before,
        above=above,
        coupled=_coupled(model),
    )


def _above(model: Model) -> Bools:
    above = np.eye(model.nv, dtype=np.bool_)
    for dof in range(model.nv):
        parent = int(model.dof_parentid[dof])
        if parent >= 0:
            above[dof] |= above[parent]
    return above


def _coupled(model: Model) -> Bools:
    """Where the engine's inertia matrix has room: simple bodies have a diagonal only."""
    coupled = np.zeros((model.nv, model.nv), dtype=np.bool_)
    for dof in range(model.nv):
        first = int(model.M_rowadr[dof])
        columns = model.M_colind[first : first + int(model.M_rownnz[dof])]
        coupled[dof, columns] = coupled[columns, dof] = True
    return coupled
