"""Degrees or percent: what columns of LeRobot datasets leave open.

LeRobot keeps no units. Hobby arms are recorded in degrees, or in percent of the calibrated range:
from -100 to 100, grippers from 0 to 100. Both look alike, and the data cannot tell.

Source: motor normalisation modes of LeRobot, https://huggingface.co/docs/lerobot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sameworld.core.mapping import Alternative, Question, SignalMap
from sameworld.stages.capture.assemble import Desk
from sameworld.stages.capture.targets import Target

__all__ = ["percent_questions"]

_STREAMS = ("observation.state", "action")
_DEGREE = math.pi / 180
_FULL = 101.0


def percent_questions(
    desk: Desk, signals: Sequence[SignalMap], asked: Sequence[Question]
) -> list[Question]:
    """Ask whether angles taken for degrees are percent.

    Args:
        desk: Columns and targets.
        signals: Signals as mapped.
        asked: Questions already asked; their joints are left alone.

    Returns:
        At most two questions: about columns between 0 and 100, and about those between -100 and
        100.
    """
    spoken = {s.place for q in asked for a in q.alternatives for s in a.signals}
    targets = {(t.channel, t.component): t for t in desk.targets}
    halves: list[tuple[SignalMap, Target]] = []
    wholes: list[tuple[SignalMap, Target]] = []
    for signal in signals:
        target = targets.get(signal.place)
        if target is None or signal.place in spoken or not _open(desk, signal, target):
            continue
        (halves if _extremes(desk, target.joint, signals, targets)[0] >= -1 else wholes).append(
            (signal, target)
        )
    return [*_question(halves, one_sided=True), *_question(wholes, one_sided=False)]


def _open(desk: Desk, signal: SignalMap, target: Target) -> bool:
    """Whether a signal is an angle in degrees by nothing but the size of its numbers."""
    column = next(
        k
        for k, c in enumerate(desk.table.columns)
        if (c.stream, c.label) == (signal.stream, signal.column)
    )
    return (
        signal.stream in _STREAMS
        and target.kind in ("position", "command")
        and target.unit == "rad"
        and math.isfinite(target.high - target.low)
        and not desk.hints[column].factor
        and math.isclose(abs(signal.scale), _DEGREE)
        and max(-desk.table.columns[column].low, desk.table.columns[column].high) <= _FULL
    )


def _extremes(
    desk: Desk,
    joint: int,
    signals: Sequence[SignalMap],
    targets: dict[tuple[str, int], Target],
) -> tuple[float, float]:
    """Smallest and largest recorded position of a joint, in the recorded unit."""
    columns = {(c.stream, c.label): c for c in desk.table.columns}
    own = [
        columns[s.stream, s.column]
        for s in signals
        if (t := targets.get(s.place)) is not None and t.joint == joint and t.kind == "position"
    ]
    return min((c.low for c in own), default=-math.inf), max((c.high for c in own), default=0.0)


def _question(found: Sequence[tuple[SignalMap, Target]], *, one_sided: bool) -> list[Question]:
    if not found:
        return []
    names = list(dict.fromkeys(s.column for s, _ in found))
    percent = tuple(_percent(s, t, one_sided=one_sided) for s, t in found)
    answers = (
        Alternative(name="degrees", signals=tuple(s for s, _ in found)),
        Alternative(name="percent", signals=percent),
    )
    verb = "Is" if len(names) == 1 else "Are"
    span = "0 and 100" if one_sided else "-100 and 100"
    return [
        Question(
            about=f"unit of {', '.join(names)}",
            text=f"{verb} {', '.join(names)} in degrees, or in percent of the joint's range? No "
            f"unit is stated, and the numbers stay between {span}.",
            alternatives=answers[::-1] if one_sided else answers,
        )
    ]


def _percent(signal: SignalMap, target: Target, *, one_sided: bool) -> SignalMap:
    width, sign = target.high - target.low, math.copysign(1.0, signal.scale)
    middle = 0.5 * (target.low + target.high)
    return replace(
        signal,
        scale=sign * width / (100 if one_sided else 200),
        offset=(target.low if sign > 0 else target.high) if one_sided else middle,
        evidence=(*signal.evidence, "in percent of the joint's range, as answered"),
    )
