"""``sameworld actuate``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from sameworld.cli.console import Grid, say, say_facts, say_grid, say_json
from sameworld.cli.sources import scene_from
from sameworld.core.errors import StoreError
from sameworld.core.scene import Scene
from sameworld.report.numbers import quantity
from sameworld.stages.actuate import ActuateConfig, ActuateResult, Drive, actuate
from sameworld.store import read_urdf, save_scene
from sameworld.worlds.explicit.urdf import UrdfConfig, UrdfReport, scene_from_urdf

__all__ = ["Actuate"]


@dataclass(frozen=True, kw_only=True)
class Actuate:
    """Give the joints of a robot actuators and write a scene folder.

    A URDF is turned into a scene first; doubtful inertias are refused with their numbers.

    Attributes:
        scene: URDF file, scene folder, MJCF file or zoo scene.
        out: Scene folder to write.
        config: Preset and gains.
        overwrite: Replace a scene folder that is there already.
        root: Folders, besides the URDF's own, that its meshes and packages may be read from.
        drop_visuals: Leave out the visual shapes of a URDF.
        urdf: What to do with a URDF's doubtful inertias.
        json: Print JSON instead of tables.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    config: OmitArgPrefixes[ActuateConfig]
    urdf: OmitArgPrefixes[UrdfConfig] = field(default_factory=UrdfConfig)
    out: Path = Path("scene")
    overwrite: bool = False
    root: tuple[Path, ...] = ()
    drop_visuals: bool = False
    json: bool = False

    def run(self) -> int:
        """Add the actuators, write the scene and say what was assumed."""
        scene, report = self._scene()
        scene, result = actuate(scene, config=self.config)
        save_scene(scene, self.out, overwrite=self.overwrite)
        if self.json:
            notes = [] if report is None else list(report.notes)
            say_json({**result.to_json(), "urdf": notes, "scene": str(self.out)})
            return 0
        say_facts(_facts(scene, result, self.out))
        say_grid(_drives(result))
        for title, texts in _told(report, result):
            say(f"\n{title}")
            for text in texts:
                say(f"  - {text}")
        say(f"\nNext: sameworld inspect RECORDING --scene {self.out} --out mapping.json")
        return 0

    def _scene(self) -> tuple[Scene, UrdfReport | None]:
        if not self.scene.endswith(".urdf"):
            if self.root or self.drop_visuals or self.urdf != UrdfConfig():
                raise StoreError(
                    "--root, --drop-visuals, --base, --repair, --accept, --density, --timestep "
                    "and --integrator are for URDF files (robot.urdf)."
                )
            return scene_from(self.scene), None
        robot = read_urdf(self.scene, roots=self.root, drop_visuals=self.drop_visuals)
        return scene_from_urdf(robot, config=self.urdf)


def _facts(scene: Scene, result: ActuateResult, out: Path) -> dict[str, str]:
    facts = {"scene": scene.name, "preset": result.preset, "actuators": str(len(result.drives))}
    if result.removed:
        facts["removed"] = ", ".join(result.removed)
    if result.kept:
        facts["left alone"] = ", ".join(result.kept) + " (--replace exchanges their actuators)"
    return facts | {"written to": str(out)}


def _drives(result: ActuateResult) -> Grid:
    header = (
        "actuator",
        "joint",
        "kp",
        "kv",
        "largest force",
        "commands",
        "inertia moved",
        "over poses",
        "gravity up to",
    )
    rows = tuple(_row(drive, result) for drive in result.drives)
    return Grid(title="Actuators", header=header, rows=rows, right=("kp", "kv"))


def _row(drive: Drive, result: ActuateResult) -> tuple[str, ...]:
    force, angle = ("N", "m") if drive.linear else ("N m", "rad")
    inertia = "kg" if drive.linear else "kg m^2"
    command = {"torque": force, "velocity": f"{angle}/s"}.get(result.preset, angle)
    limited = math.isfinite(drive.low) and math.isfinite(drive.high)
    return (
        drive.actuator,
        drive.joint,
        quantity(drive.kp, f"{force}/{angle}") if drive.kp else "–",
        quantity(drive.kv, f"{force} s/{angle}") if drive.kv else "–",
        quantity(drive.force, force) if math.isfinite(drive.force) else "unlimited",
        f"{quantity(drive.low)} to {quantity(drive.high, command)}" if limited else command,
        quantity(drive.inertia, inertia),
        f"{quantity(drive.inertia_low)} to {quantity(drive.inertia_high)}",
        quantity(drive.gravity, force),
    )


def _told(
    report: UrdfReport | None, result: ActuateResult
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    notes = () if report is None else report.notes
    parts = (("Read from the URDF:", notes), ("Assumed:", result.assumed))
    return tuple(p for p in (*parts, ("Measure:", result.measure)) if p[1])
