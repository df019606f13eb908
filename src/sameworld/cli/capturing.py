"""Raw recordings for the verbs: what is in them, and which column is which signal of a scene."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sameworld.cli.console import Grid, say, say_grid
from sameworld.core.episode import Episode, Recording
from sameworld.core.errors import EpisodeError, listed
from sameworld.core.mapping import SignalMap, SignalMapping
from sameworld.core.scene import Scene
from sameworld.report.numbers import percent, quantity
from sameworld.stages.capture import CaptureResult
from sameworld.store import read_json
from sameworld.store.recordings import RecordingReport, StreamReport, describe_recording

__all__ = [
    "Streams",
    "evidence_grid",
    "is_raw",
    "load_mapping",
    "mapped_episodes",
    "mapping_grid",
    "raw_recordings",
    "say_mapping",
    "stream_table",
]

_HEADER = (
    "stream",
    "kind",
    "columns",
    "unit",
    "samples",
    "rate [Hz]",
    "jitter",
    "gaps",
    "longest gap [s]",
    "repeats",
    "duplicates",
    "backward",
    "lowest",
    "highest",
)
#: Columns left out where no stream has any.
_QUIET = ("gaps", "duplicates", "backward")
#: What differs between doubts of one kind: the stream, quoted names, numbers.
_SPECIAL = re.compile(r"^\S+: |'[^']*'|\d[\d.:e+-]*")


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Streams of a set of recordings.

    Attributes:
        facts: Names and values.
        grid: One row per stream, over all recordings.
        doubts: What looks wrong, one sentence each.
    """

    facts: dict[str, str]
    grid: Grid
    doubts: tuple[str, ...]


def is_raw(source: str) -> bool:
    """Whether a path holds raw recordings, rather than an episode store or a name of the zoo."""
    path = Path(source)
    return path.exists() and not (path / "episodes.jsonl").is_file()


def raw_recordings(source: str) -> tuple[Recording, ...]:
    """All recordings at a path.

    Raises:
        EpisodeError: There is none.
        StoreError: The path is nothing that can be read.
    """
    from sameworld.store.recordings import open_recordings

    recordings = tuple(open_recordings(source))
    if not recordings:
        raise EpisodeError(f"'{source}' holds no recording.")
    return recordings


def stream_table(recordings: Sequence[Recording]) -> Streams:
    """Rates, gaps, jitter, repeats, ranges and doubts of all streams."""
    reports = [describe_recording(r) for r in recordings]
    spans = [r.end - r.begin for r in reports]
    facts = {
        "recordings": str(len(reports)),
        "duration": f"{quantity(min(spans))} to {quantity(max(spans), 's')}",
        "total": quantity(sum(spans), "s"),
    }
    names = list(dict.fromkeys(s.name for r in reports for s in r.streams))
    rows = tuple(_row(name, _named(reports, name)) for name in names)
    grid = _without_quiet(Grid(title="Streams", header=_HEADER, rows=rows, right=_HEADER[4:]))
    if len(grid.header) < len(_HEADER):
        facts["clocks"] = f"no {', no '.join(h for h in _QUIET if h not in grid.header)}"
    said = [*(d for r in reports for d in r.doubts), *(n for r in reports for n in r.notes)]
    return Streams(facts=facts, grid=grid, doubts=_grouped(said))


def _without_quiet(grid: Grid) -> Grid:
    """The table without columns that say nothing of any stream."""
    lists = zip(grid.header, zip(*grid.rows, strict=True), strict=True) if grid.rows else ()
    idle = {h for h, column in lists if h in _QUIET and set(column) <= {"0", "–"}}
    if "gaps" in idle:
        idle.add("longest gap [s]")
    keep = [k for k, h in enumerate(grid.header) if h not in idle]
    return Grid(
        title=grid.title,
        header=tuple(grid.header[k] for k in keep),
        rows=tuple(tuple(row[k] for k in keep) for row in grid.rows),
        right=tuple(h for h in grid.right if h not in idle),
    )


def _grouped(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts that differ in more than quoted names and numbers; the first of each, and how many."""
    kinds: dict[str, list[str]] = {}
    for text in texts:
        kinds.setdefault(_SPECIAL.sub("#", text), []).append(text)
    return tuple(
        own[0] if len(own) == 1 else f"{own[0]} ({len(own) - 1} more like this)"
        for own in kinds.values()
    )


def _named(reports: Sequence[RecordingReport], name: str) -> list[StreamReport]:
    return [s for r in reports for s in r.streams if s.name == name]


def _row(name: str, found: Sequence[StreamReport]) -> tuple[str, ...]:
    steps = [s.steps for s in found]
    first, columns = found[0], [c for s in found for c in s.columns]
    longest = max(s.longest for s in steps)
    labels = [c.label for c in first.columns if c.label]
    gaps = sum(s.gaps for s in steps)
    return (
        name,
        first.kind,
        f"{len(first.columns)}: {', '.join(labels[:8])}{', ...' if len(labels) > 8 else ''}"
        if labels
        else str(len(first.columns) or 1),
        first.unit or "?",
        str(sum(s.samples for s in steps)),
        quantity(first.steps.rate),
        percent(first.steps.jitter_sd / first.steps.step),
        str(gaps),
        quantity(longest) if gaps else "–",
        percent(max(s.repeated for s in found)),
        str(sum(s.duplicates for s in steps)),
        str(sum(s.backward for s in steps)),
        quantity(min((c.low for c in columns), default=float("nan"))),
        quantity(max((c.high for c in columns), default=float("nan"))),
    )


def mapping_grid(mapping: SignalMapping) -> Grid:
    """Signals and where they come from."""
    header = ("signal", "column", "formula", "late [ms]", "unit", "role", "sure", "because")
    rows = tuple(
        (
            _place(s),
            f"{s.stream}.{s.column}" if s.column else s.stream,
            _formula(s),
            quantity(1e3 * s.delay) if s.delay else "0",
            s.unit or "?",
            s.role,
            percent(s.confidence),
            "; ".join(s.evidence),
        )
        for s in mapping.signals
    )
    return Grid(title="Mapping", header=header, rows=rows, right=("late [ms]", "sure"))


def _place(signal: SignalMap) -> str:
    return f"{signal.channel}[{signal.component}]" if signal.component else signal.channel


def _formula(signal: SignalMap) -> str:
    degrees = signal.scale * 180 / math.pi
    if math.isclose(abs(degrees), 1):
        scale = "π/180 x" if degrees > 0 else "-π/180 x"
    else:
        scale = {1.0: "x", -1.0: "-x"}.get(signal.scale, f"{signal.scale:.6g} x")
    return f"{scale} {signal.offset:+.4g}" if signal.offset else scale


def evidence_grid(result: CaptureResult) -> Grid | None:
    """What the torques say about every joint, if they were used."""
    if not result.joints:
        return None
    rows = tuple(
        (
            j.joint,
            quantity(j.margin),
            j.rival or "–",
            f"{quantity(j.zero)} ± {quantity(j.zero_std)}",
            percent(j.explained),
        )
        for j in result.joints
    )
    header = ("joint", "margin [sd]", "closest alternative", "zero offset", "torque explained")
    return Grid(title="Evidence of the torques", header=header, rows=rows, right=header[1:2])


def say_mapping(mapping: SignalMapping, result: CaptureResult | None = None) -> None:
    """Print a mapping with its evidence, what is open and what is missing."""
    say_grid(mapping_grid(mapping))
    grid = evidence_grid(result) if result is not None else None
    if grid is not None:
        say_grid(grid)
    if result is not None:
        for text in _grouped_by_ending(result.corrections):
            say(f"Corrected: {text}.")
        if result.missing:
            say(f"No column was found for {listed(result.missing)}.")
        if result.unused:
            say(f"Not used: {listed(result.unused)}.")
    for note in mapping.notes:
        say(f"Note: {note}")
    for question in mapping.undecided:
        say(f"Open: {question.text} Answers: {listed(a.name for a in question.alternatives)}.")


def _grouped_by_ending(texts: Sequence[str]) -> list[str]:
    """Corrections ``WHAT: HOW`` with the same ending in one text each."""
    endings: dict[str, list[str]] = {}
    for text in texts:
        what, _, how = text.rpartition(": ")
        endings.setdefault(how, []).append(what)
    return [f"{'; '.join(whats)}: {how}" if whats[0] else how for how, whats in endings.items()]


def load_mapping(path: Path) -> SignalMapping:
    """Read a mapping file, with the answers that stand in it."""
    return SignalMapping.from_json(read_json(path))


def mapped_episodes(
    scene: Scene, source: str, mapping: Path | None
) -> tuple[tuple[Episode, ...], SignalMapping]:
    """Episodes of raw recordings by a mapping file, or by a proposed mapping that is clear.

    Says in one line per signal what is taken.

    Raises:
        EpisodeError: The mapping has open questions, or a proposed signal is not sure enough.
    """
    from sameworld.stages.capture import CaptureConfig, apply_mapping, propose_mapping
    from sameworld.worlds import build

    world, recordings = build(scene), raw_recordings(source)
    if mapping is not None:
        chosen = load_mapping(mapping)
    else:
        chosen, _ = propose_mapping(world, recordings)
        _require_clear(
            chosen,
            source,
            {c.name for c in (*world.spec.observations, *world.spec.actions)},
            CaptureConfig().confidence,
        )
    episodes = tuple(apply_mapping(world, r, chosen) for r in recordings)
    for signal in chosen.signals:
        column = f"{signal.stream}.{signal.column}" if signal.column else signal.stream
        late = f", stamped {1e3 * signal.delay:.4g} ms late" if signal.delay else ""
        say(f"{_place(signal)} [{signal.unit or '?'}] = {_formula(signal)}, x = {column}{late}")
    return episodes, chosen


def _require_clear(mapping: SignalMapping, source: str, needed: set[str], least: float) -> None:
    hint = (
        f" See 'sameworld inspect {source} --scene SCENE --out mapping.json', answer there, and "
        "give --mapping mapping.json."
    )
    try:
        mapping.require_decided()
    except EpisodeError as error:
        raise EpisodeError(f"{error}{hint}") from error
    doubtful = [s for s in mapping.signals if s.confidence < least and s.channel in needed]
    if doubtful:
        said = "; ".join(
            f"{_place(s)} from {s.stream}.{s.column} ({s.confidence:.0%})" for s in doubtful
        )
        raise EpisodeError(f"The proposed mapping is not sure enough: {said}.{hint}")
