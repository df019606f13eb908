"""From a robot description to a scene, with every doubtful inertia named.

MuJoCo reads URDF too; it merges fixed links, forgets names, and lets some inertias pass that no
body has. Here links stay bodies and nothing doubtful passes in silence. MuJoCo's reader is the
reference that the dynamics are compared with in the tests.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.belief import Belief
from sameworld.core.errors import AddressError, SceneError
from sameworld.core.parameters import Parameter
from sameworld.core.scene import HistoryLine, Scene
from sameworld.store.urdf_mjcf import robot_mjcf, static_links, welded_groups
from sameworld.store.urdf_robot import UrdfInertial, UrdfLink, UrdfRobot
from sameworld.worlds.compiled.engine import Model, captured_warnings, mj
from sameworld.worlds.compiled.inertial import Inertial
from sameworld.worlds.explicit.urdf_doubts import UNACCEPTABLE, Doubt, doubts_of, is_frame, softened
from sameworld.worlds.explicit.urdf_geometry import LinkGeometry, link_geometries

__all__ = ["UrdfConfig", "UrdfReport", "scene_from_urdf"]

Base = Literal["fixed", "floating"]
Integrator = Literal["implicitfast", "RK4"]
_AXES = ("x", "y", "z")
#: Share of the mass and of the moments below which a fixed link hardly counts.
_NEGLIGIBLE = 0.01
#: Stands in where a link moves, has no mass and no shape: halves of a joint of several degrees.
_SPECK = UrdfInertial(mass=1e-3, com=np.zeros(3), inertia=4e-8 * np.eye(3))


@dataclass(frozen=True, kw_only=True)
class UrdfConfig:
    """Options of ``scene_from_urdf``.

    Attributes:
        base: Whether the root link is fixed to the world or floats.
        repair: Replace doubtful inertias by those of the shapes filled evenly with the given mass.
        accept: Patterns of links whose implausible but possible inertia is taken as it is.
        density: Density assumed where a mass is missing and ``repair`` is on [kg/m^3].
        timestep: Engine step [s].
        integrator: How the engine integrates. ``implicitfast`` is stable, and moves as if every
            joint had half a step's worth of its damping [N m s/rad * s] as further inertia; ``RK4``
            is four times as slow, and exact enough for long steps as long as nothing touches.
    """

    base: Base = "fixed"
    repair: bool = False
    accept: tuple[str, ...] = ()
    density: float = 1000.0
    timestep: float = 0.002
    integrator: Integrator = "implicitfast"

    def __post_init__(self) -> None:
        accept = (self.accept,) if isinstance(self.accept, str) else tuple(self.accept)
        object.__setattr__(self, "accept", accept)
        if self.base not in get_args(Base):
            raise SceneError(f"base = {self.base!r} must be one of {get_args(Base)}.")
        if self.integrator not in get_args(Integrator):
            raise SceneError(
                f"integrator = {self.integrator!r} must be one of {get_args(Integrator)}."
            )
        if not (self.density > 0 and self.timestep > 0):
            raise SceneError("density and timestep must be positive.")


@dataclass(frozen=True, kw_only=True)
class UrdfReport:
    """What was found on the way.

    Attributes:
        notes: What was left out, changed or assumed, one sentence each.
        doubts: Doubtful inertias: repaired, accepted, or merely odd.
        repaired: Links whose inertia was replaced.
        overlapping: Pairs of links that overlap at the home pose; their contact is switched off.
    """

    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    repaired: tuple[str, ...] = ()
    overlapping: tuple[tuple[str, str], ...] = ()


def scene_from_urdf(
    robot: UrdfRobot, *, config: UrdfConfig | None = None
) -> tuple[Scene, UrdfReport]:
    """Make a scene of a robot description.

    Args:
        robot: The description, as ``sameworld.store.read_urdf`` returns it.
        config: What to do with doubtful inertias, and how the robot stands.

    Raises:
        SceneError: Doubtful inertias (all of them are listed), or shapes that cannot be used.
        AddressError: A pattern of ``accept`` matches no link.
    """
    geometries = link_geometries(robot)
    robot = _without_flat_contact(robot, geometries)
    return _Conversion(robot=robot, config=config or UrdfConfig()).run(geometries)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Conversion:
    robot: UrdfRobot
    config: UrdfConfig

    @property
    def _floating(self) -> bool:
        return self.config.base == "floating"

    def run(self, geometries: dict[str, LinkGeometry]) -> tuple[Scene, UrdfReport]:
        doubts = self._doubts(geometries)
        replaced, remarks = self._judged(doubts, geometries)
        repaired = tuple(name for name, inertial in replaced.items() if inertial is not None)
        overlapping = self._overlapping(replaced)
        mjcf = self._mjcf(replaced, overlapping)
        notes = [*self.robot.notes, *remarks, *self._mimic_notes()]
        notes += [
            f"links '{a}' and '{b}' overlap at the home pose; their contact is switched off."
            for a, b in overlapping
        ]
        report = UrdfReport(
            notes=tuple(notes), doubts=tuple(doubts), repaired=repaired, overlapping=overlapping
        )
        return self._scene(mjcf, repaired, geometries, report), report

    # ---- doubts -----------------------------------------------------------------------------

    def _doubts(self, geometries: dict[str, LinkGeometry]) -> list[Doubt]:
        static, *groups = welded_groups(self.robot, floating=self._floating)
        links = {link.name: link for link in self.robot.links}
        found: list[Doubt] = []
        for name in static:  # only what spoils the picture matters where nothing moves
            plain = replace(links[name], inertial=None)
            found += doubts_of(plain, geometries.get(name), needs_mass=False)
        for group in groups:
            found += self._doubts_of_group([links[name] for name in group], geometries)
        return found

    def _doubts_of_group(
        self, group: Sequence[UrdfLink], geometries: dict[str, LinkGeometry]
    ) -> list[Doubt]:
        """Doubts about links that move as one: what is negligible among them is merely odd."""
        bare = all(is_frame(link.inertial) for link in group)
        heavy = _fullest([link.name for link in group], geometries)
        found: list[Doubt] = []
        for link in group:
            needs = bare and link.name == heavy
            doubts = doubts_of(link, geometries.get(link.name), needs_mass=needs)
            if link.incomplete:
                doubts = softened(doubts, "(Visual shapes were left out.)")
            if _negligible(link, group):
                doubts = softened(doubts, "(Negligible beside what it is fixed to.)")
            found += doubts
        return found

    def _judged(
        self, doubts: Sequence[Doubt], geometries: dict[str, LinkGeometry]
    ) -> tuple[dict[str, UrdfInertial | None], list[str]]:
        """Inertias that replace those written, and remarks; refuses what stays doubtful."""
        accepted = self._accepted()
        replaced: dict[str, UrdfInertial | None] = {}
        remarks: list[str] = []
        refused: list[str] = []
        for doubt in doubts:
            if doubt.kind == "odd" or (doubt.link in accepted and doubt.kind not in UNACCEPTABLE):
                remarks.append(str(doubt))
                continue
            repaired = self._repaired(doubt, geometries.get(doubt.link))
            if repaired is None:
                refused.append(str(doubt) + self._no_repair(doubt, geometries))
            else:
                replaced[doubt.link], remark = repaired
                remarks.append(f"{doubt} {remark}")
        if refused:
            raise SceneError(_refusal(self.robot.name, refused))
        self._drop_frames(replaced, remarks)
        return replaced, remarks

    def _accepted(self) -> set[str]:
        if not self.config.accept:
            return set()
        names = [link.name for link in self.robot.links]
        try:
            return set(match_names(self.config.accept, names))
        except AddressError as cause:
            raise AddressError(f"accept: {str(cause).replace('parameter', 'link')}") from cause

    def _repaired(
        self, doubt: Doubt, geometry: LinkGeometry | None
    ) -> tuple[UrdfInertial, str] | None:
        if not self.config.repair or doubt.kind == "scale":
            return None
        if doubt.kind == "missing" and geometry is None:
            return _SPECK, "It has no shapes; replaced by a sphere of 1 g and 1 cm radius."
        if geometry is None:
            return None
        if geometry.volume <= 0:
            return None
        written = next(link for link in self.robot.links if link.name == doubt.link).inertial
        weighed = written is not None and not is_frame(written) and written.mass > 0
        if written is not None and weighed and doubt.kind != "density":
            told = f"Replaced by its shapes filled evenly with the given {written.mass:g} kg."
            return geometry.filled(written.mass), told
        mass = self.config.density * geometry.volume
        told = (
            f"Replaced by its shapes filled with {self.config.density:g} kg/m^3: {mass:.4g} kg. "
            "Weigh it."
        )
        return geometry.filled(mass), told

    def _no_repair(self, doubt: Doubt, geometries: dict[str, LinkGeometry]) -> str:
        if self.config.repair and doubt.kind != "scale" and doubt.link not in geometries:
            return " (It has no shapes to be repaired from.)"
        return ""

    def _drop_frames(self, replaced: dict[str, UrdfInertial | None], remarks: list[str]) -> None:
        """Leave out inertias that mark a place only, and impossible ones of what never moves."""
        static = static_links(self.robot, floating=self._floating)
        for link in self.robot.links:
            if link.inertial is None or link.name in replaced:
                continue
            if is_frame(link.inertial):
                replaced[link.name] = None
            elif link.name in static:
                doubts = doubts_of(replace(link, shapes=()), None, needs_mass=False)
                for doubt in (d for d in doubts if d.kind in UNACCEPTABLE):
                    replaced[link.name] = None
                    remarks.append(f"{doubt} It never moves; its inertia is left out.")

    def _mimic_notes(self) -> list[str]:
        return [
            f"joint '{j.name}' follows '{j.mimic.joint}' by a soft equality constraint."
            for j in self.robot.joints
            if j.mimic is not None
        ]

    # ---- contact at home --------------------------------------------------------------------

    def _overlapping(self, replaced: dict[str, UrdfInertial | None]) -> tuple[tuple[str, str], ...]:
        model = _compile(self._mjcf(replaced, ()), self.robot)
        data = mj.MjData(model)
        with captured_warnings():
            mj.mj_forward(model, data)
        found: dict[tuple[str, str], None] = {}
        for contact in data.contact[: data.ncon]:
            ends = [int(model.geom_bodyid[geom]) for geom in contact.geom]
            if float(contact.dist) < 0 and 0 not in ends:
                first, second = sorted(ends)
                found[model.body(first).name, model.body(second).name] = None
        return tuple(found)

    def _mjcf(
        self,
        replaced: dict[str, UrdfInertial | None],
        overlapping: Sequence[tuple[str, str]],
    ) -> str:
        return robot_mjcf(
            self.robot,
            floating=self._floating,
            timestep=self.config.timestep,
            integrator=self.config.integrator,
            inertials=replaced,
            excluded=overlapping,
        )

    # ---- scene ------------------------------------------------------------------------------

    def _scene(
        self,
        mjcf: str,
        repaired: Sequence[str],
        geometries: dict[str, LinkGeometry],
        report: UrdfReport,
    ) -> Scene:
        parameters: list[Parameter] = []
        model = _compile(mjcf, self.robot) if repaired else None
        for name in repaired:
            if model is not None and model.body_weldid[model.body(name).id] != 0:
                weighed = self._mass_assumed(name)
                parameters += _wide(model, name, weighed, geometries.get(name))
        inputs = {
            name: hashlib.sha256(data).hexdigest() for name, data in self.robot.assets.items()
        }
        lines = [
            HistoryLine(
                stage="urdf",
                summary=f"Made of the URDF of '{self.robot.name}': {len(self.robot.links)} links, "
                f"{len(self.robot.joints)} joints, base {self.config.base}.",
                inputs=inputs,
            )
        ]
        lines += [HistoryLine(stage="urdf", summary=_sentence(note)) for note in report.notes]
        return Scene(
            name=self.robot.name,
            mjcf=mjcf,
            assets=dict(self.robot.assets),
            belief=Belief(parameters=tuple(parameters)),
            history=tuple(lines),
        )

    def _mass_assumed(self, name: str) -> bool:
        written = next(link for link in self.robot.links if link.name == name).inertial
        model_mass = 0.0 if written is None else written.mass
        return model_mass <= 0 or is_frame(written)


def _without_flat_contact(robot: UrdfRobot, geometries: dict[str, LinkGeometry]) -> UrdfRobot:
    """Let flat meshes be seen only: nothing can touch what has no inside."""
    links: list[UrdfLink] = []
    notes: list[str] = []
    for link in robot.links:
        shapes = list(link.shapes)
        for k in geometries[link.name].flat if link.name in geometries else ():
            if not shapes[k].visual:
                shapes[k] = replace(shapes[k], visual=True)
                told = f"link '{link.name}': the mesh '{shapes[k].mesh}' is flat"
                notes.append(f"{told}; it is seen, but touches nothing.")
        links.append(replace(link, shapes=tuple(shapes)))
    return replace(robot, links=tuple(links), notes=(*robot.notes, *notes))


def _compile(mjcf: str, robot: UrdfRobot) -> Model:
    with captured_warnings(), warnings.catch_warnings():
        warnings.simplefilter("error")  # a singular mass matrix, for one
        try:
            return mj.MjSpec.from_string(mjcf, assets=dict(robot.assets)).compile()
        except (ValueError, UserWarning) as cause:
            told = " ".join(str(cause).split())
            raise SceneError(f"Robot '{robot.name}' does not compile. MuJoCo says: {told}") from (
                cause
            )


def _wide(model: Model, name: str, weighed: bool, geometry: LinkGeometry | None) -> list[Parameter]:
    """Wide opinions on what a repair only guessed."""
    inertial = Inertial.of(model, model.body(name).id)
    out: list[Parameter] = []
    if weighed:
        out.append(Parameter(name=f"body:{name}.mass", value=inertial.mass, std=inertial.mass))
    size = 0.02 if geometry is None else geometry.size
    com = zip(_AXES, inertial.com.tolist(), strict=True)
    moments = zip(_AXES, inertial.moments.tolist(), strict=True)
    out += [Parameter(name=f"body:{name}.com.{a}", value=v, std=0.25 * size) for a, v in com]
    out += [Parameter(name=f"body:{name}.inertia.{a}", value=v, std=v) for a, v in moments]
    return out


def _negligible(link: UrdfLink, group: Sequence[UrdfLink]) -> bool:
    """Whether mass and moments of a link hardly count among those it moves with."""
    others = [other.inertial for other in group if other is not link and other.inertial is not None]
    if link.inertial is None or not others:
        return False
    mass = sum(other.mass for other in others)
    moment = sum(float(np.trace(other.inertia)) for other in others)
    own = float(np.trace(link.inertial.inertia))
    return link.inertial.mass < _NEGLIGIBLE * mass and own < _NEGLIGIBLE * moment


def _fullest(group: Sequence[str], geometries: dict[str, LinkGeometry]) -> str:
    """The link of a group with the largest volume; the first if none has shapes."""
    return max(group, key=lambda name: geometries[name].volume if name in geometries else 0.0)


def _refusal(robot: str, refused: Sequence[str]) -> str:
    lines = "\n".join(f"  - {line}" for line in refused)
    return (
        f"Robot '{robot}' says things of its masses that cannot be right:\n{lines}\n"
        "Mend them in the URDF (a CAD export, or a scale and a ruler), or let them be repaired "
        "from the shapes (--repair, UrdfConfig(repair=True)); what is unusual but true is taken "
        "with --accept LINK."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
