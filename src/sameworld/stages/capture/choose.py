"""Which columns are which joint: from torques where the scene can compute them, else from names.

What neither can tell becomes a question.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr

from sameworld.core.arrays import Array
from sameworld.stages.capture.columns import Table
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.names import Hint
from sameworld.stages.capture.pairs import Group
from sameworld.stages.capture.physics import ArmFit, Rival
from sameworld.stages.capture.targets import Joint

__all__ = ["Choice", "Doubt", "by_names", "by_torques", "name_costs"]

_SURE = 0.99
#: Confidence in a joint whose name says what it is and where nothing has to be corrected.
_NAMED = 0.9
#: Margin below which the data speak so much against a name that a person is asked.
_AGAINST = -1.0


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Columns of one joint.

    Attributes:
        joint: The joint.
        group: Its position and velocity columns.
        position: Factor of the position column, with sign.
        velocity: Factor of the velocity column, with sign; 0 without one.
        offset: Position at a recorded zero [rad or m].
        torque: Number of the torque column, -1 if none.
        torque_sign: Its sign.
        confidence: Probability that this is right.
        evidence: What speaks for it.
    """

    joint: Joint
    group: Group
    position: float
    velocity: float
    offset: float = 0.0
    torque: int = -1
    torque_sign: int = 1
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()

    @property
    def flips(self) -> int:
        """Columns whose sign is turned."""
        signs = [self.position, self.velocity, self.torque_sign if self.torque >= 0 else 0]
        return sum(s < 0 for s in signs)

    def turned(self) -> Choice:
        """All signs turned: the joint counted the other way round."""
        return replace(
            self,
            position=-self.position,
            velocity=-self.velocity,
            torque_sign=-self.torque_sign,
        )


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A question with the joints as they are under each answer.

    Attributes:
        about: Short name.
        text: The question.
        answers: Name of each answer and the choices it replaces, the likeliest first.
    """

    about: str
    text: str
    answers: tuple[tuple[str, tuple[Choice, ...]], ...]


def name_costs(groups: Sequence[Group], hints: Sequence[Hint], joints: Sequence[Joint]) -> Array:
    """Cost of giving a group to a joint: against its name, and a little against its order."""
    costs = np.empty((len(groups), len(joints)))
    for rank, group in enumerate(groups):
        hint = hints[group.position].joint
        for joint in joints:
            named = 0.0 if hint in (-1, joint.number) else 0.5
            costs[rank, joint.number] = named + 0.02 * (rank != joint.number)
    return costs


# ---- by torques ------------------------------------------------------------------------------


def by_torques(
    fit: ArmFit,
    groups: Sequence[Group],
    hints: Sequence[Hint],
    joints: Sequence[Joint],
    config: CaptureConfig,
) -> tuple[list[Choice], list[Doubt]]:
    """Choices as the torques identify them, and doubts about rivals that they do not beat.

    Half of ``config.decide`` is enough where nothing has to be corrected.
    """
    choices: dict[int, Choice] = {}
    named: dict[int, bool] = {}
    for joint in joints:
        place = int(fit.assignment.order[joint.number])
        if place < len(groups):
            choice = _torque_choice(fit, joint, groups[place], place)
            named[joint.number] = hints[groups[place].position].joint == joint.number
            turned = _turned_margin(fit, joint.number)
            if turned < config.decide and choice.turned().flips < choice.flips:
                choice = choice.turned()
            if named[joint.number] and choice.flips == 0:
                choice = replace(choice, confidence=max(choice.confidence, _NAMED))
            choices[joint.number] = choice
    doubts: list[Doubt] = []
    for rival in fit.rivals:
        own = [choices[j] for j in rival.joints if j in choices]
        if not own or "unit" in rival.text or rival.margin >= _least(rival, own, groups, config):
            continue
        if all(named.get(j, False) for j in rival.joints) and rival.margin > _AGAINST:
            continue
        doubt = _rival_doubt(rival, choices)
        if doubt is not None:
            doubts.append(doubt)
    return list(choices.values()), doubts


def _least(
    rival: Rival, own: Sequence[Choice], groups: Sequence[Group], config: CaptureConfig
) -> float:
    """Margin that a rival must be beaten by: half where the winner corrects nothing."""
    if "round" in rival.text:
        usual = all(c.flips == 0 for c in own)
    else:
        usual = all(c.joint.number == groups.index(c.group) for c in own)
    return config.decide * (0.5 if usual else 1.0)


def _turned_margin(fit: ArmFit, joint: int) -> float:
    own = [r.margin for r in fit.rivals if r.joints == (joint,) and "round" in r.text]
    return min(own, default=math.inf)


def _torque_choice(fit: ArmFit, joint: Joint, group: Group, place: int) -> Choice:
    scale = float(fit.assignment.scales[place])
    evidence = next(e for e in fit.evidence if e.joint == joint.name)
    torque, sign = next(
        ((column, s) for column, (j, s) in fit.torques.items() if j == joint.number), (-1, 1)
    )
    texts = [f"torques of the scene beat '{evidence.rival}' by {evidence.margin:.1f} sd"]
    if torque >= 0:
        texts.append(f"{100 * fit.fits[torque]:.1f} % of its torque explained")
    return Choice(
        joint=joint,
        group=group,
        position=scale,
        velocity=_velocity_factor(group, scale),
        offset=float(fit.assignment.offsets[place]),
        torque=torque,
        torque_sign=sign,
        confidence=min(max(float(ndtr(evidence.margin)), 0.5), _SURE),
        evidence=tuple(texts),
    )


def _velocity_factor(group: Group, position: float) -> float:
    if group.velocity < 0:
        return 0.0
    units = min(group.units, key=lambda u: abs(math.log(u.position / abs(position))))
    return group.sign * units.velocity * math.copysign(1.0, position)


def _rival_doubt(rival: Rival, choices: dict[int, Choice]) -> Doubt | None:
    old = [choices[j] for j in rival.joints if j in choices]
    if not old:
        return None
    if "round" in rival.text:
        new = [choice.turned() for choice in old]
        return Doubt(
            about=f"sign of {' and '.join(c.joint.name for c in old)}",
            text=f"Which way does {' and '.join(c.joint.name for c in old)} turn? The torques "
            f"hardly tell ({rival.margin:.1f} sd).",
            answers=(("as mapped", tuple(old)), ("all signs flipped", tuple(new))),
        )
    if len(old) != 2 or not rival.text.endswith("exchanged"):
        return None
    first, second = old
    new = [replace(second, joint=first.joint), replace(first, joint=second.joint)]
    return Doubt(
        about=f"order of {first.joint.name} and {second.joint.name}",
        text=f"Which columns are {first.joint.name}, which {second.joint.name}? The torques "
        f"hardly tell ({rival.margin:.1f} sd).",
        answers=(("as mapped", tuple(old)), ("exchanged", tuple(new))),
    )


# ---- by names --------------------------------------------------------------------------------


def by_names(
    table: Table,
    groups: Sequence[Group],
    hints: Sequence[Hint],
    joints: Sequence[Joint],
    costs: Array,
) -> tuple[list[Choice], list[Doubt]]:
    """Choices by names, order and ranges, and doubts about what they leave open."""
    if not groups or not joints:
        return [], []
    total = costs + _range_costs(table, groups, joints)
    rows, columns = linear_sum_assignment(total)
    choices = [
        _named_choice(groups[g], joints[j], hints, len(groups) == len(joints) == 1)
        for g, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    doubts = [d for c in choices for d in (_sign_doubt(c), _limit_doubt(c, table)) if d]
    open_ = [
        c
        for c, g in zip(choices, rows.tolist(), strict=True)
        if hints[c.group.position].joint != c.joint.number and not _alone(total, g, c.joint)
    ]
    if open_:
        doubts.insert(0, _order_doubt(open_, table))
    return choices, doubts


def _alone(costs: Array, group: int, joint: Joint) -> bool:
    """Whether no other joint fits the group and no other group the joint."""
    others = [*np.delete(costs[group], joint.number), *np.delete(costs[:, joint.number], group)]
    return min(others, default=math.inf) > costs[group, joint.number] + 0.4


def _range_costs(table: Table, groups: Sequence[Group], joints: Sequence[Joint]) -> Array:
    costs = np.zeros((len(groups), len(joints)))
    for (row, group), joint in itertools.product(enumerate(groups), joints):
        column, factor = table.columns[group.position], group.units[0].position
        beyond = max(joint.low - factor * column.low, factor * column.high - joint.high, 0.0)
        costs[row, joint.number] = 5 * min(beyond, 1.0)
    return costs


def _named_choice(group: Group, joint: Joint, hints: Sequence[Hint], only: bool) -> Choice:
    hint = hints[group.position]
    named, stated = hint.joint == joint.number, bool(hint.factor)
    texts = [f"its name says {joint.name}"] if named else []
    texts += ["the only moving position for the only joint"] if only and not named else []
    texts += ["its unit is stated"] if stated else ["its range fits the unit"]
    if group.velocity >= 0:
        texts.append(f"its derivative is the velocity column (R² {group.fit:.3f})")
    trust = (0.95 if named else 0.9 if only else 0.6) - (0.0 if stated else 0.05)
    scale = group.units[0].position
    return Choice(
        joint=joint,
        group=group,
        position=scale,
        velocity=_velocity_factor(group, scale),
        confidence=trust,
        evidence=tuple(texts),
    )


def _sign_doubt(choice: Choice) -> Doubt | None:
    if choice.velocity >= 0:
        return None
    return Doubt(
        about=f"sign of {choice.joint.name}",
        text=f"Position and velocity of {choice.joint.name} have opposite signs. Which is flipped?",
        answers=(
            ("the velocity", (choice,)),
            ("the position", (replace(choice.turned(), offset=choice.offset),)),
        ),
    )


def _limit_doubt(choice: Choice, table: Table) -> Doubt | None:
    """A question where a position leaves the joint's limits but would not with another zero."""
    column, joint = table.columns[choice.group.position], choice.joint
    low, high = sorted((choice.position * column.low, choice.position * column.high))
    slack = 0.05 * (joint.high - joint.low) if math.isfinite(joint.high - joint.low) else 0.1
    if low >= joint.low - slack and high <= joint.high + slack:
        return None
    quarter = math.pi / 2
    shifts = [k * quarter for k in (-1, 1, -2, 2)] if joint.unit == "rad" else []
    fits = [s for s in shifts if low + s >= joint.low - slack and high + s <= joint.high + slack]
    return Doubt(
        about=f"zero of {joint.name}",
        text=f"{column.name} reaches {low:.3g} to {high:.3g} {joint.unit}, {joint.name} only "
        f"{joint.low:.3g} to {joint.high:.3g}. Where is its zero?",
        answers=(
            *((f"offset {s:.4f}", (replace(choice, offset=s),)) for s in fits),
            ("as recorded", (choice,)),
        ),
    )


def _order_doubt(choices: Sequence[Choice], table: Table) -> Doubt:
    names = [table.columns[c.group.position].name for c in choices]
    joints = [c.joint.name for c in choices]
    return Doubt(
        about="order of the joints",
        text=f"Which of {', '.join(names)} is the position of {', '.join(joints)}? Names, ranges "
        "and torques do not tell.",
        answers=(("in this order", tuple(choices)),),
    )
