"""What is fitted: bodies in relative coordinates, and linear terms of the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sameworld.core.address import Address, match_names
from sameworld.core.arrays import Array
from sameworld.core.errors import FitError, SceneError
from sameworld.core.parameters import Parameter
from sameworld.core.world import InverseWorld
from sameworld.maths.stretch import log_cholesky_of, stretched, upper_root

__all__ = ["COORDINATES", "Carried", "Layout", "Term", "make_layout"]

TermKind = Literal["bias", "damping", "frictionloss", "armature", "stiffness"]
COORDINATES = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
_JOINT_TERMS: tuple[TermKind, ...] = ("damping", "frictionloss", "armature", "stiffness")


@dataclass(frozen=True, kw_only=True)
class Term:
    """A torque of one joint that is linear in one number.

    Attributes:
        parameter: The number.
        joint: Column of the joint.
        kind: Which signal it multiplies: 1, velocity, friction shape, acceleration or deflection.
        free: Whether it is fitted.
    """

    parameter: Parameter
    joint: int
    kind: TermKind
    free: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """Uncertain parameters that are not fitted.

    Attributes:
        bodies: Bodies whose ten log-Cholesky coordinates are uncertain; they come first.
        slopes: Derivative of their inertial vectors by these coordinates [B, 10, 10].
        terms: Indices of uncertain terms that are not free.
        root: Root of the joint covariance [10 B + terms, K].
    """

    bodies: tuple[str, ...]
    slopes: Array
    terms: tuple[int, ...]
    root: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Order of the unknowns: ten relative coordinates per free body, free terms, carried ones.

    What is not free but uncertain in the world's belief is carried along: as many standard normal
    unknowns as its covariance has directions. Intervals then contain that uncertainty.

    Attributes:
        world: The world as given.
        channels: Torque channel of each joint.
        bodies: Free bodies.
        roots: Roots of their pseudo-inertia in the scene [B, 4, 4].
        terms: Every term; those that are not free keep their value.
        pull: Spread of the relative coordinates.
        carried: What is carried along.
    """

    world: InverseWorld
    channels: tuple[str, ...]
    bodies: tuple[str, ...]
    roots: Array
    terms: tuple[Term, ...]
    pull: float
    carried: Carried

    @property
    def inertial(self) -> int:
        """Number of inertial unknowns."""
        return 10 * len(self.bodies)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Indices of free terms."""
        return tuple(k for k, term in enumerate(self.terms) if term.free)

    @property
    def named(self) -> int:
        """Number of unknowns that are not carried; they come first."""
        return self.inertial + len(self.free)

    @property
    def size(self) -> int:
        """Number of unknowns P."""
        return self.named + self.carried.root.shape[1]

    @cached_property
    def given(self) -> Array:
        """Unknowns of the world as given [P]."""
        values = [self.terms[k].parameter.value for k in self.free]
        rest = np.zeros(self.size - self.named)
        return np.concatenate([np.zeros(self.inertial), np.array(values), rest])

    @cached_property
    def spread(self) -> Array:
        """Prior standard deviations [P]; infinite where there is no opinion."""
        known = [self.terms[k].parameter.std for k in self.free]
        rest = np.ones(self.size - self.named)
        return np.concatenate([np.full(self.inertial, self.pull), np.array(known), rest])

    @cached_property
    def precision(self) -> Array:
        """Inverse prior variances [P]; a spread of zero counts as very small."""
        scale = np.maximum(np.abs(self.given), 1.0)
        return 1 / np.maximum(self.spread, 1e-9 * scale) ** 2

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds [P] of the unknowns."""
        chosen = [self.terms[k].parameter for k in self.free]
        first, last = np.full(self.inertial, np.inf), np.full(self.size - self.named, np.inf)
        low = np.concatenate([-first, np.array([p.low for p in chosen]), -last])
        return low, np.concatenate([first, np.array([p.high for p in chosen]), last])

    def coefficients(self, x: Array) -> tuple[Array, Array]:
        """Linear coefficients [P] at unknowns [P], and their derivative [P, P]."""
        slope = np.eye(self.size)
        out = np.array(x, dtype=np.float64)
        if self.bodies:
            vectors, slopes = stretched(self.roots, x[: self.inertial].reshape(-1, 10))
            out[: self.inertial] = vectors.reshape(-1)
            for k in range(len(self.bodies)):
                block = slice(10 * k, 10 * k + 10)
                slope[block, block] = slopes[k]
        return out, slope

    def names(self, kind: TermKind) -> list[tuple[int, int]]:
        """Column of the unknown and of the joint for the free terms of one kind."""
        return [
            (self.inertial + place, self.terms[k].joint)
            for place, k in enumerate(self.free)
            if self.terms[k].kind == kind
        ]


def make_layout(
    world: InverseWorld, channels: Sequence[str], free: Sequence[str], pull: float
) -> Layout:
    """Match patterns with what torques can tell.

    Raises:
        AddressError: A pattern matches nothing.
        FitError: A body is too flat for coordinates, or nothing is free.
    """
    known = {p.name: p for p in world.parameters.parameters}
    bodies, joints = world.mechanism.bodies, world.mechanism.dofs
    owned = {name: _body_of(name, bodies) for name in known}
    inertial = [name for name in known if owned[name]]
    offered: list[tuple[Parameter, int, TermKind]] = []
    for column, joint in enumerate(joints):
        bias = f"sensor:{channels[column]}.bias"
        offered.append((known.get(bias) or Parameter(name=bias, value=0.0), column, "bias"))
        for kind in _JOINT_TERMS:
            if f"joint:{joint}.{kind}" in known:
                offered.append((known[f"joint:{joint}.{kind}"], column, kind))
    chosen = set(match_names(free, [*inertial, *(p.name for p, _, _ in offered)]))
    moved = tuple(b for b in bodies if any(owned[n] == b for n in chosen if n in owned))
    if not chosen:
        raise FitError("Nothing is free.")
    terms = tuple(
        Term(parameter=p, joint=column, kind=kind, free=p.name in chosen)
        for p, column, kind in offered
    )
    return Layout(
        world=world,
        channels=tuple(channels),
        bodies=moved,
        roots=_roots(world, moved),
        terms=terms,
        pull=pull,
        carried=_carried(world, moved, terms),
    )


def _carried(world: InverseWorld, moved: Sequence[str], terms: Sequence[Term]) -> Carried:
    """What the belief is unsure of and the fit leaves alone."""
    belief = world.parameters

    def unsure(name: str) -> bool:
        return name in belief.names and 0 < belief[name].std < np.inf

    rest = [b for b in world.mechanism.bodies if b not in moved]
    coordinates = {b: [f"body:{b}.inertial.{part}" for part in COORDINATES] for b in rest}
    bodies = tuple(b for b in rest if all(unsure(name) for name in coordinates[b]))
    loose = tuple(k for k, t in enumerate(terms) if not t.free and unsure(t.parameter.name))
    names = [n for b in bodies for n in coordinates[b]]
    joint = belief.marginal([*names, *(terms[k].parameter.name for k in loose)])
    values, vectors = np.linalg.eigh(joint.correlation)
    kept = values > 1e-12
    slopes = np.zeros((len(bodies), 10, 10))
    for k, root in enumerate(_roots(world, bodies)):
        inner = log_cholesky_of(root, np.zeros(10))[1]
        slopes[k] = stretched(root, np.zeros(10))[1] @ np.linalg.inv(inner)
    return Carried(
        bodies=bodies,
        slopes=slopes,
        terms=loose,
        root=joint.std[:, None] * vectors[:, kept] * np.sqrt(values[kept]),
    )


def _body_of(name: str, bodies: Sequence[str]) -> str:
    """Body whose inertia an address speaks of, or empty."""
    if not name.startswith("body:"):
        return ""
    address = Address.parse(name)
    inertial = address.field.split(".")[0] in ("mass", "com", "inertia", "inertial")
    return address.target if inertial and address.target in bodies else ""


def _roots(world: InverseWorld, bodies: Sequence[str]) -> Array:
    roots = np.zeros((len(bodies), 4, 4))
    for k, (body, vector) in enumerate(zip(bodies, world.inertias(bodies), strict=True)):
        try:
            roots[k] = upper_root(vector)
        except SceneError as cause:
            raise FitError(f"The inertia of body '{body}' cannot be fitted. {cause}") from cause
    return roots
