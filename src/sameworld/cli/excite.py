"""``sameworld excite``."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from tyro.conf import Positional, arg

from sameworld.cli.console import Grid, progress_bar, say, say_grid, say_json
from sameworld.cli.sources import episodes_from, scene_from
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.spec import Spec
from sameworld.report.numbers import quantity
from sameworld.stages.excite import ExciteConfig, ExciteResult, Limit, Motion, excite
from sameworld.store.files import write_bytes, write_json
from sameworld.worlds import build

__all__ = ["Excite"]

_BOUNDS = ("low", "high", "speed", "acceleration")


@dataclass(frozen=True, kw_only=True)
class Excite:
    """Design the motions whose recordings would say most about a scene's parameters.

    Attributes:
        scene: Scene folder, MJCF or URDF file, run folder or zoo scene.
        free: Patterns of the parameters that the coming fit will estimate.
        noise: Pattern of observations and their noise in SI units, e.g. ``'*.pos' 0.001``.
        limit: Limits by signal, e.g. ``'j*.pos:speed=2,acceleration=10'`` or
            ``hand:low=0/-0.5/0.1,high=0.7/0.5/1`` with one number per component.
        out: Folder for ``motion1.csv`` and so on and ``result.json``.
        wanted: Patterns among the free ones to design for; all by default.
        earlier: Episode store that the scene's belief does not hold yet.
        motions: How many motions.
        duration: Length of each in seconds.
        terms: Highest harmonic of the motions.
        criterion: D (determinant), A (trace) or E (largest eigenvalue).
        drive: What commands mean; their unit says it by default.
        evaluations: Simulated motions spent on improving each.
        draws: Draws of the belief for which limits must hold too.
        seed: Seed of everything random.
        json: Print JSON instead of tables.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    free: tuple[str, ...]
    noise: dict[str, float] = field(default_factory=dict[str, float])
    limit: tuple[str, ...] = ()
    out: Path = Path("motions")
    wanted: tuple[str, ...] = ()
    earlier: str = ""
    motions: int = 1
    duration: float = 5.0
    terms: int = 5
    criterion: Literal["D", "A", "E"] = "D"
    drive: Literal["auto", "position", "torque", "command"] = "auto"
    evaluations: int = 300
    draws: int = 0
    seed: int = 0
    json: bool = False

    def run(self) -> int:
        """Design, write the commands, and say what they are predicted to teach."""
        world = build(scene_from(self.scene))
        episodes = episodes_from(self.earlier) if self.earlier else ()
        with progress_bar() as progress:
            motions, result = excite(
                world, config=self._config(), episodes=episodes, progress=progress
            )
        for motion in motions:
            write_bytes(self.out / f"{motion.name}.csv", _csv(motion, world.spec))
        write_json(self.out / "result.json", result.to_json(), nan="null")
        if self.json:
            say_json(result.to_json())
            return 0
        for grid in (_gains(result), _margins(result)):
            say_grid(grid)
        for sentence in result.advice:
            say(f"  - {sentence}")
        say(f"Motions: {self.out}")
        return 0

    def _config(self) -> ExciteConfig:
        return ExciteConfig(
            free=self.free,
            noise=self.noise,
            limits=tuple(_limit(text) for text in self.limit),
            wanted=self.wanted,
            motions=self.motions,
            duration=self.duration,
            terms=self.terms,
            criterion=self.criterion,
            drive=self.drive,
            evaluations=self.evaluations,
            draws=self.draws,
            seed=self.seed,
        )


def _limit(text: str) -> Limit:
    """Read ``SIGNAL:bound=value,...``; components are separated by slashes."""
    signal, colon, rest = text.rpartition(":")
    found: dict[str, tuple[float, ...]] = {}
    for part in rest.split(","):
        bound, equals, value = part.partition("=")
        if not (colon and equals and bound in _BOUNDS):
            raise SpecError(
                f"'{part}' in the limit '{text}' is not BOUND=VALUE; bounds are "
                f"{listed(_BOUNDS)}.{closest(bound, _BOUNDS)} Example: 'j*.pos:speed=2,low=-1'."
            )
        try:
            found[bound] = tuple(float(v) for v in value.split("/"))
        except ValueError:
            raise SpecError(f"'{value}' in the limit '{text}' is not a number.") from None
    return Limit(
        signal=signal,
        low=found.get("low", -math.inf),
        high=found.get("high", math.inf),
        speed=found.get("speed", (math.inf,))[0],
        acceleration=found.get("acceleration", (math.inf,))[0],
    )


def _csv(motion: Motion, spec: Spec) -> bytes:
    names = [
        c.name if c.shape == () else f"{c.name}[{k}]" for c in spec.actions for k in range(c.size)
    ]
    buffer = io.BytesIO()
    table = np.column_stack([motion.time, motion.actions])
    header = ",".join(["time", *names])
    np.savetxt(buffer, table, delimiter=",", fmt="%.9g", header=header, comments="")
    return buffer.getvalue()


def _gains(result: ExciteResult) -> Grid:
    rows = tuple(
        (g.name, quantity(g.value, g.unit), quantity(g.before), quantity(g.after))
        for g in result.appraisal.gains
    )
    header = ("parameter", "value", "spread before", "predicted after")
    return Grid(title="What the motions are predicted to teach", header=header, rows=rows)


def _margins(result: ExciteResult) -> Grid:
    tightest = sorted(result.margins, key=lambda m: m.share)[:8]
    rows = tuple(
        (m.signal, m.bound, quantity(m.limit), quantity(m.left), f"{m.share:.0%}") for m in tightest
    )
    header = ("signal", "bound", "limit", "left", "of range")
    return Grid(title="Tightest limits", header=header, rows=rows)
