"""Values of their own per session: which windows share one, and the coordinates they add.

A parameter of scope ``session`` (a battery voltage, a payload) has one value per session. In the
optimiser's coordinates the value of session s is ``u + scale * z_s``: the population's ``u`` stays
where the parameter stood, and each session adds one standard coordinate ``z_s`` with a unit prior.
Written this way a spread of zero is nothing special: the columns of z vanish.

Source: the non-centred form of a hierarchical model, O. Papaspiliopoulos, G. O. Roberts,
M. Skold, "A general framework for the parametrization of hierarchical models", Statistical Science
22 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError

__all__ = ["Sessions", "session_names", "without_own", "own_names"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sessions:
    """Sessions of a problem; without any, coordinates are those of the parameters alone.

    Attributes:
        size: Number of free parameters P.
        names: Session names [S].
        member: Session of each window [W].
        columns: Which of the P parameters have a value per session [K].
        scale: Spread of the session values per unit of z, in coordinates [K].
    """

    size: int
    names: tuple[str, ...]
    member: NDArray[np.intp]
    columns: tuple[int, ...]
    scale: Array

    @classmethod
    def none(cls, size: int, windows: int) -> Sessions:
        """No parameter differs between sessions."""
        return cls(
            size=size,
            names=(),
            member=np.zeros(windows, dtype=np.intp),
            columns=(),
            scale=np.zeros(0),
        )

    @property
    def extra(self) -> int:
        """Coordinates beyond the parameters: sessions times parameters that differ."""
        return len(self.names) * len(self.columns)

    def offsets(self, u: Array) -> Array:
        """Deviation of every session from the population at coordinates [P + extra], [S, K]."""
        given = u[self.size :]
        z = given if len(given) else np.zeros(self.extra)
        return z.reshape(len(self.names), len(self.columns)) * self.scale

    def local(self, u: Array) -> Array:
        """Parameter coordinates per window [W, P] at [P + extra]; [P] where all windows agree."""
        if u.ndim == 2 or len(u) == self.size:
            return u
        spread = np.repeat(u[None, : self.size], len(self.member), axis=0)
        spread[:, list(self.columns)] += self.offsets(u)[self.member]
        return spread

    def lifted(self, columns: Array, window: int) -> Array:
        """Derivatives by a window's own parameters [R, P] as those by everything [R, P + extra]."""
        if not self.extra:
            return columns
        wide = np.zeros((len(columns), self.size + self.extra))
        wide[:, : self.size] = columns
        first = self.size + int(self.member[window]) * len(self.columns)
        last = first + len(self.columns)
        wide[:, first:last] = columns[:, list(self.columns)] * self.scale
        return wide

    def rescaled(self, u: Array, scale: Array) -> tuple[Sessions, Array]:
        """Another spread [K], and the coordinates that give the same session values.

        Where the new spread is zero, sessions fall back to the population.
        """
        safe = np.where(scale > 0, scale, 1.0)
        z = np.where(scale > 0, self.offsets(u) / safe, 0.0)
        moved = np.concatenate([u[: self.size], z.reshape(-1)])
        return replace(self, scale=scale), moved

    def rows(self, windows: NDArray[np.intp]) -> Sessions:
        """Keep some windows."""
        return replace(self, member=self.member[windows])


def own_names(patterns: Sequence[str], free: Sequence[str]) -> tuple[str, ...]:
    """Free parameters that get a value per session.

    Raises:
        AddressError: A pattern matches none of the free parameters.
    """
    return match_names(patterns, free) if patterns else ()


def session_names(episodes: Sequence[Episode]) -> tuple[str, ...]:
    """Names of the sessions in order of appearance.

    Raises:
        FitError: An episode names no session, or there is only one session.
    """
    unnamed = [e.id for e in episodes if not e.session_id]
    if unnamed:
        raise FitError(
            f"'per_session' needs to know which session each episode belongs to, and {unnamed[:3]} "
            "name none. Set 'session_id' on every episode."
        )
    names: tuple[str, ...] = tuple(dict.fromkeys(e.session_id for e in episodes))
    if len(names) < 2:
        raise FitError(
            f"All episodes to fit belong to session '{episodes[0].session_id}': how sessions "
            "differ cannot be told from one. Leave 'per_session' empty, or add episodes of another "
            "session."
        )
    return names


def without_own(episode: Episode, names: Sequence[str]) -> Episode:
    """The episode without what an earlier fit believed of the session's parameters."""
    own = [
        p.name for p in episode.session.parameters if p.name in names and p.source == "identified"
    ]
    return replace(episode, session=episode.session.without(own)) if own else episode
