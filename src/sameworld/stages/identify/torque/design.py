"""Signals that torques are linear in, along a motion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.maths.filtering import low_passed
from sameworld.stages.identify.torque.config import Friction
from sameworld.stages.identify.torque.friction import friction_signals
from sameworld.stages.identify.torque.layout import Layout, Term
from sameworld.stages.identify.torque.motion import Motion

__all__ = ["Design", "make_design"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Everything a fit needs of one stretch of motion.

    Attributes:
        motion: The motion, thinned out.
        columns: Derivative of the torques by the coefficients [N, V, P].
        rest: Torques of what is not free, friction apart [N, V].
        friction: Friction signals for every width tried [N, S, V].
        carried: Derivative of the torques by what is carried along [N, V, C], friction apart.
        heights: Height of friction that is not free, per joint [V].
        width: Which width each joint has [V].
    """

    motion: Motion
    columns: Array
    rest: Array
    friction: Array
    carried: Array
    heights: Array
    width: NDArray[np.intp]

    def shaped(self, layout: Layout, width: NDArray[np.intp]) -> Design:
        """The design with other friction widths."""
        joints = np.arange(len(width))
        signal = self.friction[:, width, joints]
        columns = self.columns.copy()
        for place, joint in layout.names("frictionloss"):
            columns[:, joint, place] = signal[:, joint]
        carried, first = self.carried.copy(), 10 * len(layout.carried.bodies)
        for place, k in enumerate(layout.carried.terms, start=first):
            if layout.terms[k].kind == "frictionloss":
                joint = layout.terms[k].joint
                carried[:, joint, place] = signal[:, joint]
        columns[:, :, layout.named :] = carried @ layout.carried.root
        return replace(self, columns=columns, width=width)

    @property
    def target(self) -> Array:
        """Measured torques less what is not free [N, V]."""
        joints = np.arange(len(self.width))
        fixed = self.rest + self.heights * self.friction[:, self.width, joints]
        return self.motion.torque - fixed

    def cut(self, rows: slice) -> Design:
        """A range of rows."""
        return replace(
            self,
            motion=self.motion.rows(rows),
            columns=self.columns[rows],
            rest=self.rest[rows],
            friction=self.friction[rows],
            carried=self.carried[rows],
        )


def make_design(
    layout: Layout,
    motion: Motion,
    shape: Friction,
    widths: Array,
    *,
    cutoff: float,
    thin: bool = True,
) -> Design:
    """Evaluate all signals.

    Friction jumps, and the torque it is compared with was low-passed: it is followed on every row
    and passes the same filter before rows are left out.

    Args:
        layout: The unknowns.
        motion: The motion on its full clock.
        shape: Shape of dry friction.
        widths: Widths to try [S] or [S, V].
        cutoff: Cut-off of the low-pass that the motion passed [Hz].
        thin: Whether to leave out rows that say nothing new below the cut-off.
    """
    sparse = motion.sparse(cutoff) if thin else motion
    step = round(sparse.period / motion.period)
    sharp = friction_signals(shape, motion.v, motion.period, widths)
    friction = low_passed(sharp, motion.period, cutoff)[::step]
    world, free = layout.world, layout.bodies
    columns = np.zeros((len(sparse), len(layout.channels), layout.size))
    rest = world.inverse(sparse.q, sparse.v, sparse.a)
    if free:
        regressor = world.regressor(sparse.q, sparse.v, sparse.a, free)
        columns[:, :, : layout.inertial] = regressor.reshape(*rest.shape, layout.inertial)
        rest = rest - np.einsum("nvbk,bk->nv", regressor, world.inertias(free))
    places = {k: layout.inertial + place for place, k in enumerate(layout.free)}
    heights = np.zeros(len(layout.channels))
    for k, term in enumerate(layout.terms):
        if term.kind == "frictionloss":
            heights[term.joint] = 0.0 if term.free else term.parameter.value
            continue
        signal = _signal(layout, term, sparse)
        if term.free:
            columns[:, term.joint, places[k]] = signal
        else:
            rest[:, term.joint] += term.parameter.value * signal
    design = Design(
        motion=sparse,
        columns=columns,
        rest=rest,
        friction=friction,
        carried=_carried(layout, sparse),
        heights=heights,
        width=np.zeros(len(layout.channels), dtype=np.intp),
    )
    middle = np.full(len(layout.channels), friction.shape[1] // 2, dtype=np.intp)
    return design.shaped(layout, middle)


def _carried(layout: Layout, motion: Motion) -> Array:
    """Derivative of the torques by uncertain parameters that are not fitted [N, V, C]."""
    carried, joints = layout.carried, len(layout.channels)
    out = np.zeros((len(motion), joints, len(carried.root)))
    inertial = 10 * len(carried.bodies)
    if inertial:
        regressor = layout.world.regressor(motion.q, motion.v, motion.a, carried.bodies)
        turned = np.einsum("nvbk,bkl->nvbl", regressor, carried.slopes)
        out[:, :, :inertial] = turned.reshape(len(motion), joints, inertial)
    for place, k in enumerate(carried.terms, start=inertial):
        term = layout.terms[k]
        if term.kind != "frictionloss":
            out[:, term.joint, place] = _signal(layout, term, motion)
    return out


def _signal(layout: Layout, term: Term, motion: Motion) -> Array:
    if term.kind == "bias":
        return np.ones(len(motion))
    if term.kind == "damping":
        return motion.v[:, term.joint]
    if term.kind == "armature":
        return motion.a[:, term.joint]
    joint = layout.world.mechanism.dofs[term.joint]
    rest = layout.world.parameters[f"joint:{joint}.springref"].value
    return motion.q[:, term.joint] - rest
