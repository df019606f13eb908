"""``Kernel``: the programs of one scene, shared by worlds that differ in belief only."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import jax

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.scene import Scene
from sameworld.core.spec import Capability
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.render import Painter
from sameworld.worlds.compiled.tables import Tables, make_tables
from sameworld.worlds.differentiable.cache import keep_compiled
from sameworld.worlds.differentiable.config import DifferentiableConfig
from sameworld.worlds.differentiable.element import Element, Residual
from sameworld.worlds.differentiable.parameters import Writer
from sameworld.worlds.differentiable.programs import Programs
from sameworld.worlds.differentiable.sensors import Sensors, sensors_of
from sameworld.worlds.differentiable.shelf import Shelf, fingerprint
from sameworld.worlds.differentiable.support import refuse_unsupported
from sameworld.worlds.differentiable.system import system_of
from sameworld.worlds.differentiable.touch import candidates

__all__ = ["Kernel", "make_kernel"]

_CAPABILITIES: tuple[Capability, ...] = ("rollout", "gradient", "pullback", "render")
_FRICTIONS = ("dof_frictionloss", "tendon_frictionloss")
#: Dofs and tendons with dry friction.
_Rubbing = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """Tables and programs of a scene.

    Attributes:
        config: How it was built.
        tables: The compiled scene with its parameters, signals and starts.
        pairs: Pairs of geoms that may touch, and their ``<pair>`` element.
        sensors: Its sensors.
        folder: Where programs are kept between processes, ``None`` for nowhere.
        residual: Forces that the analytic model lacks.
    """

    config: DifferentiableConfig
    tables: Tables
    pairs: list[tuple[int, int, int]]
    sensors: Sensors
    folder: Path | None
    residual: Residual | None = None
    _programs: dict[tuple[_Rubbing, frozenset[str]], Programs] = field(
        default_factory=dict[tuple[_Rubbing, frozenset[str]], Programs]
    )

    @property
    def model(self) -> Model:
        """The compiled model, unedited."""
        return self.tables.model

    @cached_property
    def painter(self) -> Painter:
        """The renderer; opens OpenGL on first use."""
        return Painter(self.tables.editor, self.tables.layout)

    @property
    def compiles(self) -> int:
        """Programs compiled so far."""
        return sum(programs.compiles for programs in self._programs.values())

    def with_residual(self, residual: Residual) -> Kernel:
        """The same scene with forces that the analytic model lacks, and programs of its own."""
        return replace(self, residual=residual, _programs={})

    def temporary_memory(self, name: str) -> int:
        """Most bytes that a compiled program (``simulated``, ``forward``, ``backward``) needs."""
        return max((p.temporary_memory(name) for p in self._programs.values()), default=0)

    def programs(
        self, values: Array, given: frozenset[str], wanted: Iterable[str] = ()
    ) -> Programs:
        """Programs that fit parameters [B, P].

        Args:
            values: Parameter values: where one gives a joint dry friction that the scene lacks,
                other programs are needed.
            given: Moments of inertia that the belief names.
            wanted: Parameters by which derivatives are taken.
        """
        key = (self._rubbing(values, frozenset(wanted)), given)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._made(*key)
        return found

    def _made(self, rubbing: _Rubbing, given: frozenset[str]) -> Programs:
        tables = self.tables
        system = system_of(
            self.model,
            self.pairs,
            groups=tables.groups,
            rubbing=rubbing[0],
            rubbing_tendons=rubbing[1],
            effort=self.config.effort(),
        )
        writer = Writer(
            model=self.model,
            slots=tables.slots[: tables.edits],
            mixed=tables.compiled.pairs,
            given=given,
            contacts=system.pairs,
        )
        element = Element(
            tables=tables,
            system=system,
            writer=writer,
            sensors=self.sensors,
            substeps=tables.compiled.substeps,
            residual=self.residual,
        )
        shelf = Shelf(self.folder, fingerprint(self.model, self._parts(rubbing, given)))
        vector = self._is_vector
        return Programs(element, shelf, vector=vector, threads=self.config.threads)

    def _parts(self, rubbing: _Rubbing, given: frozenset[str]) -> tuple[object, ...]:
        """What programs depend on besides the compiled model."""
        tables = self.tables
        laws = [(g.law.kind, g.law.version, g.law.settings, g.names) for g in tables.groups]
        places = [
            (g.qpos.tolist(), g.dof.tolist(), g.actuators.tolist(), g.bodies.tolist(), g.memory)
            for g in tables.groups
        ]
        return (
            self.config.effort(),
            tables.spec.period,
            tables.slots,
            tables.spec.start.names,
            [c.name for c in (*tables.spec.observations, *tables.spec.actions)],
            self.pairs,
            laws,
            places,
            rubbing,
            sorted(given),
            self.residual,
        )

    @property
    def _is_vector(self) -> bool:
        if self.config.batching == "auto":
            return jax.default_backend() != "cpu"
        return self.config.batching == "vector"

    # ---- dry friction --------------------------------------------------------------------

    @cached_property
    def _friction_slots(self) -> tuple[tuple[int, str, int], ...]:
        """Parameter columns that set dry friction, with the array and place they set."""
        return tuple(
            (column, name, index[0])
            for column, slot in enumerate(self.tables.slots)
            for name, index, _ in slot.fields
            if name in _FRICTIONS
        )

    @cached_property
    def _rubbed_by_laws(self) -> frozenset[int]:
        groups = [group for group in self.tables.groups if group.law.target == "joint"]
        return frozenset(int(dof) for group in groups for dof in group.dof.reshape(-1))

    def _rubbing(self, values: Array, wanted: frozenset[str]) -> _Rubbing:
        """Dofs and tendons with dry friction that is positive, or differentiated."""
        found = [set(self._rubbed_by_laws), set[int]()]
        for column, name, place in self._friction_slots:
            if (values[:, column] > 0).any() or self.tables.slots[column].name in wanted:
                found[_FRICTIONS.index(name)].add(place)
        return tuple(sorted(found[0])), tuple(sorted(found[1]))


def make_kernel(scene: Scene, config: DifferentiableConfig) -> Kernel:
    """Compile a scene and lay out its tables.

    Raises:
        SceneError: The scene cannot be compiled, or holds what cannot be differentiated, or a
            pattern of pairs to ignore matches none.
    """
    folder = keep_compiled()
    tables = make_tables(scene, config.compiling(), capabilities=_CAPABILITIES)
    model = tables.model
    every = candidates(model)
    _refuse_idle(model, every, config.ignore)
    pairs = [p for p in every if not _ignored(model, p, config.ignore)]
    refuse_unsupported(model, pairs, tables.groups)
    return Kernel(
        config=config, tables=tables, pairs=pairs, sensors=sensors_of(model), folder=folder
    )


def _refuse_idle(
    model: Model, pairs: list[tuple[int, int, int]], patterns: tuple[str, ...]
) -> None:
    """Refuse patterns that match no pair, where there are pairs."""
    for pattern in patterns:
        if pairs and not any(_ignored(model, pair, (pattern,)) for pair in pairs):
            names = ["+".join(model.geom(geom).name for geom in pair[:2]) for pair in pairs]
            raise SceneError(
                f"ignore: '{pattern}' matches no pair of geoms that may touch. There are "
                f"{listed(names)}.{closest(pattern, names)}"
            )


def _ignored(model: Model, pair: tuple[int, int, int], patterns: tuple[str, ...]) -> bool:
    a, b = (model.geom(geom).name for geom in pair[:2])
    names = (f"{a}+{b}", f"{b}+{a}")
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)
