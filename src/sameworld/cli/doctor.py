"""``sameworld doctor``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sameworld.cli import machine
from sameworld.cli.console import Grid, say, say_facts, say_grid, say_json

__all__ = ["Doctor"]

_BACKENDS = ("egl", "osmesa", "glfw")


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Say what is installed, which renderer really works, and what is missing.

    Attributes:
        json: Print JSON instead of text.
        render: Try to draw a picture with every backend.
    """

    json: bool = False
    render: bool = True

    def run(self) -> int:
        """Examine and return 1 if a required package is missing."""
        versions = machine.package_versions()
        probes = tuple(machine.probe_renderer(b) for b in _BACKENDS) if self.render else ()
        found = {
            "versions": versions,
            "hardware": machine.hardware(),
            "renderers": [asdict(p) for p in probes],
            "renderer": next((p.backend for p in probes if p.works), None),
            "missing_libraries": machine.missing_libraries(),
            "extras": [{**asdict(e), "remedy": e.remedy} for e in machine.extras()],
        }
        if self.json:
            say_json(found)
        else:
            _show(found)
        return 1 if "missing" in versions.values() else 0


def _show(found: dict[str, Any]) -> None:
    say_facts({**found["versions"], **found["hardware"]})
    say_grid(
        Grid(
            title="Offscreen rendering",
            header=("MUJOCO_GL", "works", "what drew, or why not"),
            rows=tuple(
                (r["backend"], "yes" if r["works"] else "no", r["detail"])
                for r in found["renderers"]
            ),
        )
    )
    if found["renderer"]:
        say(f"Use MUJOCO_GL={found['renderer']}.")
    for package, use in found["missing_libraries"].items():
        say(f"Missing library: apt-get install {package}   ({use})")
    rows = tuple(
        (e["name"], "yes" if not e["missing"] else f"lacks {', '.join(e['missing'])}", e["remedy"])
        for e in found["extras"]
    )
    say_grid(Grid(title="Extras", header=("extra", "installed", "to install"), rows=rows))
