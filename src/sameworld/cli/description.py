"""What is in a scene, a belief, an episode store or a run folder, as facts and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sameworld.cli.capturing import load_mapping, mapping_grid, raw_recordings, stream_table
from sameworld.cli.console import Grid
from sameworld.cli.sources import RECORDINGS, episodes_from, scene_from
from sameworld.core.address import match_names
from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode, Recording
from sameworld.core.errors import SameworldError, StoreError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.core.units import suspicion
from sameworld.report.numbers import percent, quantity, scale, together
from sameworld.store import load_belief, read_json

__all__ = [
    "Description",
    "describe",
    "describe_belief",
    "describe_episodes",
    "describe_recordings",
    "describe_scene",
]

#: A step longer than this many median steps is a gap.
_GAP = 2.5
_STREAM_HEADER = (
    "channel",
    "role",
    "shape",
    "unit",
    "episodes",
    "samples",
    "rate [Hz]",
    "jitter",
    "gaps",
    "longest gap [s]",
    "repeats",
    "lowest",
    "highest",
)


@dataclass(frozen=True, kw_only=True)
class Description:
    """What was found.

    Attributes:
        kind: ``scene``, ``belief``, ``episodes``, ``run``, ``recordings`` or ``mapping``.
        facts: Names and values.
        grids: Tables.
        doubts: What looks wrong, one sentence each.
    """

    kind: str
    facts: dict[str, str]
    grids: tuple[Grid, ...] = ()
    doubts: tuple[str, ...] = ()

    def matching(self, patterns: Sequence[str]) -> Description:
        """Keep only parameters whose names match a shell-style pattern; all if there is none.

        Raises:
            AddressError: A pattern matches nothing.
        """
        if not patterns:
            return self
        return replace(self, grids=tuple(_matching(grid, patterns) for grid in self.grids))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        tables = {grid.title: grid.to_json() for grid in self.grids}
        return {"kind": self.kind, "facts": self.facts, "tables": tables, "doubts": [*self.doubts]}


def _matching(grid: Grid, patterns: Sequence[str]) -> Grid:
    if grid.header[0] != "parameter":
        return grid
    kept = set(match_names(patterns, [row[0] for row in grid.rows]))
    return replace(grid, rows=tuple(row for row in grid.rows if row[0] in kept))


def describe(source: str) -> Description:
    """Find out what a path or zoo name is and describe it.

    Raises:
        StoreError: It is nothing this package writes.
    """
    path = Path(source)
    if not path.exists():
        if source.partition(":")[0] in RECORDINGS:
            return describe_episodes(episodes_from(source))
        return describe_scene(_from_zoo(source))
    if (path / "versions.json").is_file():
        return _describe_run(path)
    if (path / "episodes.jsonl").is_file():
        return describe_episodes(episodes_from(source))
    if (path / "scene.xml").is_file() or path.suffix in (".xml", ".urdf", ".xacro"):
        return describe_scene(scene_from(source))
    if path.suffix == ".json" and path.is_file():
        return _describe_json(path)
    return _describe_recordings(source)


def _describe_json(path: Path) -> Description:
    record = read_json(path)
    if not (isinstance(record, dict) and "signals" in record):
        return describe_belief(load_belief(path))
    mapping = load_mapping(path)
    doubts = tuple(f"Open question: {q.text}" for q in mapping.undecided)
    facts = {"signals": str(len(mapping.signals)), "open questions": str(len(doubts))}
    return Description(kind="mapping", facts=facts, grids=(mapping_grid(mapping),), doubts=doubts)


def _describe_recordings(source: str) -> Description:
    try:
        recordings = raw_recordings(source)
    except StoreError as error:
        raise StoreError(
            f"'{source}' is nothing known: expected a scene folder (scene.xml), an MJCF file "
            "(.xml), an episode store (episodes.jsonl), a run folder (versions.json), a belief or "
            f"mapping (.json), or a recording. {error}"
        ) from error
    return describe_recordings(recordings)


def describe_recordings(recordings: Sequence[Recording]) -> Description:
    """Streams of raw recordings: rates, gaps, jitter, repeats, ranges, doubtful units."""
    found = stream_table(recordings)
    return Description(
        kind="recordings", facts=found.facts, grids=(found.grid,), doubts=found.doubts
    )


def _from_zoo(source: str) -> Scene:
    from sameworld.zoo.scenes import scene_names

    if source not in scene_names():
        names = (*scene_names(), *RECORDINGS)
        raise StoreError(
            f"There is no '{source}' here, and the zoo knows no such name. "
            f"Zoo: {listed(names)}.{closest(source, names)}"
        )
    return scene_from(source)


def describe_scene(scene: Scene) -> Description:
    """Scene, its world's channels, its parameters and its history."""
    facts = {
        "scene": scene.name,
        "id": scene.id,
        "assets": str(len(scene.assets)),
        "components": ", ".join(f"{c.name} ({c.type})" for c in scene.components) or "none",
        "cameras": ", ".join(c.name for c in scene.cameras) or "none",
    }
    history = Grid(
        title="History",
        header=("stage", "summary"),
        rows=tuple((line.stage, line.summary) for line in scene.history),
    )
    try:
        grids, more = _world(scene)
    except SameworldError as error:
        return Description(kind="scene", facts=facts, grids=(history,), doubts=(str(error),))
    return Description(kind="scene", facts=facts | more, grids=(*grids, history))


def _world(scene: Scene) -> tuple[tuple[Grid, ...], dict[str, str]]:
    """Channels and parameters of the world that the scene makes."""
    from sameworld.worlds import build

    world = build(scene)
    channels = [
        (c.name, role, "x".join(map(str, c.shape)) or "1", c.unit, c.manifold)
        for role, specs in (("observed", world.spec.observations), ("action", world.spec.actions))
        for c in specs
    ]
    grid = Grid(
        title="Channels",
        header=("channel", "role", "shape", "unit", "manifold"),
        rows=tuple(channels),
    )
    facts = {
        "control period": quantity(world.spec.period, "s"),
        "capabilities": ", ".join(sorted(world.spec.capabilities)) or "none",
    }
    return (grid, _parameters(world.parameters)), facts


def describe_belief(belief: Belief) -> Description:
    """Parameters, and how strongly they hang together."""
    strongest = np.abs(np.tril(belief.correlation, -1)).max(initial=0.0)
    facts = {
        "parameters": str(len(belief)),
        "blocks": ", ".join(f"{b.name} ({b.representation})" for b in belief.blocks) or "none",
        "strongest correlation": f"{strongest:.2f}",
        "calibrated intervals": "no" if belief.discrepancy is None else "yes",
    }
    return Description(kind="belief", facts=facts, grids=(_parameters(belief),))


def _parameters(belief: Belief) -> Grid:
    header = ("parameter", "value", "± 1 sd", "unit", "low", "high", "source", "scope")
    return Grid(
        title="Parameters",
        header=header,
        rows=tuple(_parameter_row(p) for p in belief.parameters),
        right=("value", "± 1 sd", "low", "high"),
    )


def _parameter_row(p: Parameter) -> tuple[str, ...]:
    factor, unit = scale([p.value, p.std], p.unit)
    value, std = together([factor * p.value, factor * p.std], factor * p.std)
    low, high = quantity(factor * p.low), quantity(factor * p.high)
    spread = "unknown" if math.isinf(p.std) else std
    return (p.name, value, spread, unit or "1", low, high, p.source, p.scope)


def describe_episodes(episodes: Sequence[Episode]) -> Description:
    """Streams of a set of episodes: rates, gaps, jitter, repeats, ranges, doubtful units."""
    lengths = [e.end - e.begin for e in episodes]
    facts = {
        "episodes": str(len(episodes)),
        "source": ", ".join(sorted({e.source for e in episodes})),
        "duration": f"{quantity(min(lengths))} to {quantity(max(lengths), 's')}",
        "total": quantity(sum(lengths), "s"),
        "sessions": str(len({e.session_id for e in episodes})),
    }
    names = list(dict.fromkeys(c.name for e in episodes for c in e.channels))
    gathered = {n: [e[n] for e in episodes if n in e] for n in names}
    grid = Grid(
        title="Channels",
        header=_STREAM_HEADER,
        rows=tuple(_channel_row(name, found) for name, found in gathered.items()),
        right=_STREAM_HEADER[4:],
    )
    doubts = tuple(d for name, found in gathered.items() for d in _doubts(name, found))
    return Description(kind="episodes", facts=facts, grids=(grid,), doubts=doubts)


def _channel_row(name: str, found: Sequence[Channel]) -> tuple[str, ...]:
    steps = np.concatenate([np.diff(c.time) for c in found])
    step = float(np.median(steps)) if len(steps) else math.nan
    gaps = steps[steps > _GAP * step]
    lowest = min(float(c.values.min(initial=math.inf)) for c in found)
    highest = max(float(c.values.max(initial=-math.inf)) for c in found)
    shapes = {c.values.shape[1:] for c in found}
    return (
        name,
        ", ".join(sorted({c.role for c in found})),
        " or ".join("x".join(map(str, s)) or "1" for s in sorted(shapes)),
        ", ".join(sorted({c.unit or "?" for c in found})),
        str(len(found)),
        str(sum(len(c) for c in found)),
        quantity(1 / step) if step > 0 else "–",
        _jitter(steps, step),
        str(len(gaps)),
        quantity(float(gaps.max())) if len(gaps) else "–",
        percent(_repeats(found)),
        quantity(lowest),
        quantity(highest),
    )


def _jitter(steps: np.ndarray, step: float) -> str:
    """Spread of the steps that are no gaps, relative to the median step."""
    usual = steps[steps <= _GAP * step]
    return percent(float(usual.std() / step)) if len(usual) > 1 else "–"


def _repeats(found: Sequence[Channel]) -> float:
    """Share of samples equal to the one before in every component."""
    same = [(np.diff(c.values.reshape(len(c), -1), axis=0) == 0).all(axis=1) for c in found]
    joined = np.concatenate(same)
    return float(joined.mean()) if len(joined) else math.nan


def _doubts(name: str, found: Sequence[Channel]) -> list[str]:
    doubts: list[str] = []
    units = {c.unit for c in found}
    shapes = {c.values.shape[1:] for c in found}
    if len(units) > 1 or len(shapes) > 1:
        doubts.append(f"Channel '{name}' changes its unit or shape between episodes.")
        return doubts
    values = np.concatenate([c.values.ravel() for c in found])
    doubt = suspicion(values, next(iter(units)))
    if doubt:
        doubts.append(f"Channel '{name}': {doubt}.")
    repeats = _repeats(found)
    if found[0].role == "observation" and repeats > 0.2:
        doubts.append(
            f"Channel '{name}' repeats its last sample {percent(repeats)} of the time: it was "
            "stored faster than it was measured. Keep only fresh samples."
        )
    return doubts


def _describe_run(folder: Path) -> Description:
    facts = {"run": str(folder)}
    facts |= {f"{name} version": str(v) for name, v in _mapping(folder / "versions.json").items()}
    files = sorted(p.name + ("/" if p.is_dir() else "") for p in folder.iterdir())
    grids = [Grid(title="Files", header=("file",), rows=tuple((name,) for name in files))]
    metrics = _mapping(folder / "metrics.json") if (folder / "metrics.json").is_file() else {}
    if metrics:
        rows = tuple((name, "–" if v is None else _text(v)) for name, v in metrics.items())
        grids.append(Grid(title="Metrics", header=("metric", "value"), rows=rows, right=("value",)))
    if (folder / "scene").is_dir():
        grids.append(_parameters(scene_from(str(folder / "scene")).belief))
    doubts = () if metrics else ("The run did not finish: there is no metrics.json.",)
    return Description(kind="run", facts=facts, grids=tuple(grids), doubts=doubts)


def _text(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return quantity(value, digits=4)
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _mapping(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict):
        raise StoreError(f"'{path}' must hold a JSON object.")
    return record
