"""``Believed``: a scene with what is believed of it, the part of a world that no engine enters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.errors import SameworldWarning, SpecError, closest, listed
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.core.world import Context, State
from sameworld.worlds.compiled.ineffective import ineffective
from sameworld.worlds.compiled.tables import Tables

__all__ = ["Believed"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Believed:
    """A scene, its tables and a belief over all of its parameters.

    Attributes:
        tables: The compiled scene with its parameters, signals and starts.
        scene: The scene; its belief holds what somebody has an opinion on.
        parameters: Belief over every parameter of the scene.
    """

    tables: Tables
    scene: Scene
    parameters: Belief

    @classmethod
    def of(cls, tables: Tables, scene: Scene) -> Believed:
        """Start from the scene's own belief; the rest is as in the MJCF.

        Raises:
            AddressError: The scene's belief names a parameter that does not exist.

        Warns:
            SameworldWarning: A parameter in the scene's belief has no effect; the warning points
                at whoever called the builder that called this.
        """
        everything = Belief(parameters=tuple(slot.parameter() for slot in tables.slots))
        belief = tables.canonical(scene.belief)
        idle = ineffective(tables.compiled, belief.names, tables.groups, tables.slots)
        for name, reason in idle.items():
            warnings.warn(f"'{name}' has no effect: {reason}", SameworldWarning, stacklevel=3)
        return cls(
            tables=tables, scene=scene.with_belief(belief), parameters=everything.updated(belief)
        )

    def updated(self, belief: Belief) -> Believed:
        """Believe something else of any subset of the parameters.

        What it changes also enters the scene's belief.

        Raises:
            AddressError: A name is no parameter of the scene.
        """
        belief = self.tables.canonical(belief)
        current = {p.name: p for p in self.parameters.parameters}
        news = [p for p in belief.parameters if p != current[p.name] and p.scope == "scene"]
        own = belief.marginal(p.name for p in news)
        scene = self.scene.with_belief(self.scene.belief.updated(own))
        return replace(self, scene=scene, parameters=self.parameters.updated(belief))

    # ---- numbers -------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Addresses of all parameters: the order of the columns of values [B, P]."""
        return self.parameters.names

    @cached_property
    def mean(self) -> Array:
        """Means of all parameters [1, P]."""
        return self.parameters.mean.array

    @cached_property
    def given(self) -> frozenset[str]:
        """Moments of inertia that the scene's belief speaks of: they do not follow the mass."""
        return frozenset(
            n for n in self.scene.belief.names if n[:5] == "body:" and ".inertia." in n
        )

    def values(self, parameters: Values | None = None) -> Array:
        """Values [B, P] of all parameters: the given ones, and means for the rest.

        Raises:
            SpecError: A name is no parameter.
        """
        given = Values.none() if parameters is None else parameters
        return self._filled(self.names, self.mean, given, given.batch)

    def asked(self, start: Values | Context, parameters: Values | None) -> tuple[Array, Array]:
        """Starts [B, S] and parameters [B, P] that a ``reset`` asks for, completed.

        Raises:
            SpecError: A context, an unknown name, or batches that disagree.
        """
        if isinstance(start, Context):
            raise SpecError(
                "This world starts from named values (spec.start), not from a context. Give "
                "Values, or find them from the context's first rows."
            )
        given = Values.none() if parameters is None else parameters
        batch = max(start.batch, given.batch)
        usual = self.tables.spec.start
        starts = self._filled(usual.names, usual.mean.array, start, batch)
        return starts, self._filled(self.names, self.mean, given, batch)

    def _filled(self, names: tuple[str, ...], mean: Array, given: Values, batch: int) -> Array:
        """Values [B, N] of all names, from the given ones and the means."""
        given = given.broadcast(batch)
        array = np.repeat(mean, batch, axis=0)
        if given.names == names:
            return given.array
        places = {name: k for k, name in enumerate(names)}
        for column, name in enumerate(given.names):
            place = places.get(self.tables.aliases.get(name, name))
            if place is None:
                raise SpecError(
                    f"'{name}' is neither a start nor a parameter this call takes. Known: "
                    f"{listed(names)}.{closest(name, names)}"
                )
            array[:, place] = given.array[:, column]
        return array

    def state(self, arrays: Mapping[str, NDArray[Any]], values: Array, *, seed: int) -> State:
        """A State at time 0 that holds arrays [B, ...] and runs with parameters [B, P]."""
        batch = len(values)
        keys = np.random.SeedSequence(seed).generate_state(batch, np.uint64).astype(np.uint64)
        return State(
            arrays=arrays,
            time=np.zeros(batch),
            key=keys,
            parameters=Values(names=self.names, array=values),
        )

    # ---- files ---------------------------------------------------------------------------

    def mjcf(self) -> str:
        """MJCF text with the means written into it; a comment names the components it lacks.

        Raises:
            SceneError: The means are physically impossible.
        """
        return _unseen(self.scene) + self.tables.editor.mjcf(self.mean[0], self.given)


def _unseen(scene: Scene) -> str:
    """XML comment on what a MuJoCo program does not run; empty if there is nothing."""
    if not scene.components:
        return ""
    lines = [f"  {c.type} '{c.name}' on {c.target}" for c in scene.components]
    told = "\n".join(["MuJoCo alone does not run these components:", *lines]).replace("--", "- -")
    return f"<!-- {told}\n-->\n"
