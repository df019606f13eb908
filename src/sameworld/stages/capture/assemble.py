"""From chosen joints to signals: factors, zeros, delays, commands, and what remains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sameworld.core.mapping import Alternative, Question, SignalMap
from sameworld.stages.capture.choose import Choice, Doubt
from sameworld.stages.capture.columns import Column, Table
from sameworld.stages.capture.names import Hint, similarity
from sameworld.stages.capture.pairs import Follower
from sameworld.stages.capture.targets import Kind, Target

__all__ = ["Desk", "command_signals", "joint_signals", "named_signals", "question"]

_ALIKE = 0.8
#: Relative error up to which a command's gain counts as 1 in some unit.
_GAIN = 0.3
_FACTORS = (1.0, math.pi / 180, 2 * math.pi, 2 * math.pi / 4096, 1e-3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Desk:
    """What assembling needs.

    Attributes:
        table: The columns.
        hints: What their names say.
        targets: What the world wants.
        forces: Joint name to its force channel and the factor from channel to force.
        delays: Column to its delay [s].
    """

    table: Table
    hints: Sequence[Hint]
    targets: Sequence[Target]
    forces: Mapping[str, tuple[str, float]]
    delays: Mapping[int, float]

    def target(self, kind: Kind, joint: int, unit: str | None = None) -> Target | None:
        """First target of a kind at a joint."""
        for target in self.targets:
            if (target.kind, target.joint) == (kind, joint) and unit in (None, target.unit):
                return target
        return None

    def signal(
        self,
        target: Target,
        column: int,
        scale: float,
        *,
        offset: float = 0.0,
        confidence: float,
        evidence: Iterable[str],
    ) -> SignalMap:
        """A column as a target."""
        source = self.table.columns[column]
        delay = self.delays.get(column, 0.0)
        texts = list(evidence)
        if delay:
            texts.append(f"stamped {delay / source.step:+.0f} sample(s) late against the others")
        return SignalMap(
            channel=target.channel,
            stream=source.stream,
            column=source.label,
            component=target.component,
            role=target.role,
            scale=scale,
            offset=offset,
            delay=delay,
            unit=target.unit,
            confidence=round(confidence, 3),
            evidence=tuple(texts),
        )


def joint_signals(desk: Desk, choice: Choice) -> list[SignalMap]:
    """Position, velocity and torque of a chosen joint."""
    joint, found = choice.joint, list[SignalMap]()
    target = desk.target("position", joint.number)
    if target is not None:
        found.append(
            desk.signal(
                target,
                choice.group.position,
                choice.position,
                offset=choice.offset,
                confidence=choice.confidence,
                evidence=choice.evidence,
            )
        )
    target = desk.target("velocity", joint.number)
    if target is not None and choice.group.velocity >= 0:
        found.append(
            desk.signal(
                target,
                choice.group.velocity,
                choice.velocity,
                confidence=choice.confidence,
                evidence=(f"derivative of {joint.name}'s position (R² {choice.group.fit:.4f})",),
            )
        )
    target = desk.target("torque", joint.number)
    if target is not None and choice.torque >= 0:
        found.append(
            desk.signal(
                target,
                choice.torque,
                _torque_factor(desk, choice, target),
                confidence=choice.confidence,
                evidence=choice.evidence[1:],
            )
        )
    return found


def _torque_factor(desk: Desk, choice: Choice, target: Target) -> float:
    channel, factor = desk.forces.get(choice.joint.name, (target.channel, 1.0))
    stated = desk.hints[choice.torque].factor or 1.0
    return choice.torque_sign * stated / (factor if channel == target.channel else 1.0)


def question(desk: Desk, doubt: Doubt) -> Question:
    """A doubt with its answers as signals."""
    return Question(
        about=doubt.about,
        text=doubt.text,
        alternatives=tuple(
            Alternative(
                name=name,
                signals=tuple(s for choice in choices for s in joint_signals(desk, choice)),
            )
            for name, choices in doubt.answers
        ),
    )


def command_signals(
    desk: Desk, choices: Sequence[Choice], followers: Sequence[Follower], groups: Sequence[object]
) -> tuple[list[SignalMap], list[str]]:
    """Commands of the joints that follow them, and notes on how late they follow."""
    by_group = {id(c.group): c for c in choices}
    found: dict[tuple[str, int], SignalMap] = {}
    late: dict[str, float] = {}
    for follower in sorted(followers, key=lambda f: -f.fit):
        choice = by_group.get(id(groups[follower.group]))
        if choice is None:
            continue
        unit = choice.joint.unit + ("/s" if follower.of == "velocity" else "")
        target = desk.target("command", choice.joint.number, unit)
        if target is None or (target.channel, target.component) in found:
            continue
        signal = _command(desk, choice, follower, target)
        found[signal.place] = signal
        if follower.lag > 0:
            late[choice.joint.name] = follower.lag
    return list(found.values()), _late_notes(late)


def _late_notes(late: Mapping[str, float]) -> list[str]:
    if not late:
        return []
    each = ", ".join(f"{joint} {lag:.3g} s" for joint, lag in late.items())
    return [
        f"Joints come later than their commands: {each}. That is left in: a servo lags, and "
        "identification fits it."
    ]


def _command(desk: Desk, choice: Choice, follower: Follower, target: Target) -> SignalMap:
    own = choice.position if follower.of == "position" else choice.velocity
    wanted = own / follower.gain
    factor = desk.hints[follower.column].factor or _nearest(abs(wanted))
    scale = math.copysign(factor, wanted)
    offset = 0.0
    if follower.of == "position":
        command = desk.table.values[:, follower.column].mean()
        moved = desk.table.values[:, choice.group.position].mean()
        gap = float(choice.position * moved + choice.offset - scale * command)
        offset = gap if abs(gap) > 0.2 else 0.0
    named = desk.hints[follower.column].kind == "command"
    return desk.signal(
        target,
        follower.column,
        scale,
        offset=offset,
        confidence=min(choice.confidence, 0.95 if named else 0.9),
        evidence=(
            f"the {follower.of} of {choice.joint.name} follows it (correlation "
            f"{follower.fit:.3f} at {follower.lag:.3g} s)",
        ),
    )


def _nearest(factor: float) -> float:
    best = min(_FACTORS, key=lambda f: abs(math.log(f / factor)))
    return best if abs(best / factor - 1) < _GAIN else factor


def named_signals(desk: Desk, taken: set[int], mapped: set[tuple[str, int]]) -> list[SignalMap]:
    """Columns and targets that are left, matched by what their names say."""
    columns = [k for k in range(len(desk.table.columns)) if k not in taken]
    targets = [t for t in desk.targets if (t.channel, t.component) not in mapped]
    if not columns or not targets:
        return []
    score = np.array([[_name_score(desk, k, t) for t in targets] for k in columns])
    rows, places = linear_sum_assignment(-score)
    found: list[SignalMap] = []
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        if score[row, place] < _ALIKE or _tied(score, row, place):
            continue
        column, target = columns[row], targets[place]
        factor = desk.hints[column].factor or 1.0
        found.append(
            desk.signal(
                target,
                column,
                factor,
                confidence=min(float(score[row, place]), 0.95),
                evidence=(f"its name is like '{target.channel}'",),
            )
        )
    return found


def _name_score(desk: Desk, column: int, target: Target) -> float:
    """How well a name fits a target: joint and kind by words, else likeness of the text."""
    hint, source = desk.hints[column], desk.table.columns[column]
    if hint.unit and target.unit and hint.unit != target.unit:
        return 0.0
    if hint.kind == target.kind and hint.joint == target.joint >= 0:
        return 0.85 if target.kind != "command" or _command_fits(source, target) else 0.5
    if target.kind != "other" and hint.kind not in (None, target.kind):
        return 0.0
    alike = similarity(source, target)
    exact = {source.name, source.label, source.stream} & {target.channel}
    return 0.99 if exact and target.size == 1 else 0.95 * alike


def _command_fits(source: Column, target: Target) -> bool:
    """A velocity command is no position command, whatever else the names share."""
    speaks = "vel" in source.name.lower()
    return speaks == target.unit.endswith("/s")


def _tied(score: np.ndarray, row: int, place: int) -> bool:
    others = [*np.delete(score[row], place), *np.delete(score[:, place], row)]
    return max(others, default=0.0) > score[row, place] - 0.03
