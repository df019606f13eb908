"""Joints by their torques: order, signs, units and zeros of an arm's columns, with margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.world import World
from sameworld.stages.capture.arm import Arm, Assignment, Explanation, Motion, advantage
from sameworld.stages.capture.columns import Table
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.lags import series_lag
from sameworld.stages.capture.pairs import Group
from sameworld.stages.capture.result import JointEvidence
from sameworld.stages.capture.search import far_neighbours, neighbours, polish, search, start_order
from sameworld.stages.capture.targets import Inverse, Joint, inverse_of

__all__ = ["ArmFit", "Rival", "fit_arm"]

#: Rows at which lags of torques are measured.
_LAG_ROWS = 1000
#: Alternatives whose zeros are estimated before they are compared; the others are far off.
_NEAR = 16
#: R^2 below which a torque column without a telling name is not taken for a joint's torque.
_EXPLAINED = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Rival:
    """Another assignment and how clearly it is beaten.

    Attributes:
        assignment: The other assignment.
        margin: Standard errors by which the chosen one is better.
        joints: Numbers of the joints that change.
        text: What it says, in words.
    """

    assignment: Assignment
    margin: float
    joints: tuple[int, ...]
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmFit:
    """Columns of an arm identified by torques.

    Attributes:
        assignment: The chosen assignment.
        torques: Torque column to its joint and sign.
        fits: Torque column to its R^2.
        lags: Torque column to its lag behind the positions and the deviation of that [s].
        rivals: The other assignments, closest first.
        evidence: One record per joint that has a group.
        ends: Costs at which the searches ended.
    """

    assignment: Assignment
    torques: dict[int, tuple[int, int]]
    fits: dict[int, float]
    lags: dict[int, tuple[float, float]]
    rivals: tuple[Rival, ...]
    evidence: tuple[JointEvidence, ...]
    ends: tuple[float, ...]


def fit_arm(
    world: World,
    table: Table,
    joints: tuple[Joint, ...],
    groups: Sequence[Group],
    torques: Sequence[int],
    factors: Sequence[float],
    prior: Array,
    config: CaptureConfig,
) -> ArmFit | None:
    """Find out by torques which group and which torque column belong to which joint.

    Args:
        world: World of the scene.
        table: The columns.
        joints: Joints of the scene.
        groups: Position columns with their velocities.
        torques: Columns that may be torques.
        factors: Their factors to SI.
        prior: Cost of giving a group to a joint, from names [G, n].
        config: Options.

    Returns:
        ``None`` if the world has no inverse dynamics or the columns hold no usable torques.
    """
    inverse = inverse_of(world, joints)
    if inverse is None or not groups or not torques:
        return None
    given = _Setting(
        table=table,
        joints=joints,
        groups=tuple(groups),
        torques=tuple(torques),
        factors=tuple(factors),
        inverse=inverse,
        prior=prior,
        config=config,
    )
    coarse = given.arm(config.poses // 2)
    start = Assignment(
        order=start_order(prior, coarse.places()),
        scales=np.array([g.units[0].position for g in groups]),
        offsets=np.zeros(len(groups)),
    )
    found = search(
        given.arm(config.poses // 4),
        coarse,
        start,
        given.units,
        searches=config.searches,
        seed=config.seed,
    )
    fit = _weighed(given, found.best, found.ends)
    late = _common_lag(given, fit)
    return fit if late == 0 else _on_time(given, fit, late)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Setting:
    """What is to be explained, and how."""

    table: Table
    joints: tuple[Joint, ...]
    groups: tuple[Group, ...]
    torques: tuple[int, ...]
    factors: tuple[float, ...]
    inverse: Inverse
    prior: Array
    config: CaptureConfig

    @property
    def units(self) -> list[tuple[float, ...]]:
        """Per group, factors that turn its first unit into the others."""
        return [tuple(u.position / g.units[0].position for u in g.units[1:]) for g in self.groups]

    def arm(self, count: int) -> Arm:
        """The arm at rows spread over the table."""
        last = len(self.table.values) - 1
        return self.arm_at(np.linspace(0, last, min(max(count, 20), last + 1)).astype(np.intp))

    def arm_at(self, rows: NDArray[np.intp]) -> Arm:
        """The arm at some rows."""
        table, places = self.table, [g.position for g in self.groups]
        motion = Motion(
            positions=table.values[rows][:, places],
            rates=table.rates[rows][:, places],
            bends=table.bends[rows][:, places],
        )
        return Arm(
            joints=self.joints,
            motion=motion,
            torques=table.values[rows][:, list(self.torques)] * np.array(self.factors),
            inverse=self.inverse,
            prior=self.prior,
        )


def _common_lag(given: _Setting, fit: ArmFit) -> float:
    """Lag that the torques share [s], 0 if it is within half a sample."""
    steps = [given.table.columns[k].step for k in fit.lags]
    if not steps:
        return 0.0
    late = float(np.median([lag for lag, _ in fit.lags.values()]))
    return late if abs(late) > 0.5 * float(np.median(steps)) else 0.0


def _on_time(given: _Setting, fit: ArmFit, late: float) -> ArmFit:
    """Weigh once more with the torques moved to where they belong: a shift blurs everything."""
    table = given.table
    values = table.values.copy()
    for piece in np.unique(table.piece):
        rows = np.flatnonzero(table.piece == piece)
        places = np.arange(len(rows), dtype=np.float64)
        for column in given.torques:
            own = values[rows, column]
            values[rows, column] = np.interp(places + late / table.step, places, own)
    moved = replace(given, table=replace(table, values=values))
    _, best = polish(moved.arm(given.config.poses // 2), fit.assignment, given.units)
    again = _weighed(moved, best, fit.ends)
    return replace(again, lags={k: (lag + late, sd) for k, (lag, sd) in again.lags.items()})


def _weighed(given: _Setting, best: Assignment, ends: tuple[float, ...]) -> ArmFit:
    """Keep of the best assignment what the data insist on, and compare it with its rivals."""
    arm, config, torques = given.arm(given.config.poses), given.config, given.torques
    free = np.ones(arm.groups, dtype=np.bool_)
    plain = _with_plain_units(arm, best, given.groups, config)
    zeroed, spread = arm.zeroed(plain, free)
    chosen = _with_clear_zeros(arm, zeroed, spread, config)
    told = arm.explain(chosen)
    rivals = tuple(sorted(_rivals(arm, chosen, given.units), key=lambda r: r.margin))
    kept = {int(k): place for place, k in enumerate(told.torque) if told.fit[place] >= _EXPLAINED}
    return ArmFit(
        assignment=chosen,
        torques={torques[k]: (int(told.joint[p]), int(told.sign[p])) for k, p in kept.items()},
        fits={torques[k]: float(told.fit[p]) for k, p in kept.items()},
        lags=_lags(given, chosen, told, kept),
        rivals=rivals,
        evidence=_evidence(arm, chosen, zeroed, spread, told, rivals),
        ends=ends,
    )


def _with_plain_units(
    arm: Arm, best: Assignment, groups: Sequence[Group], config: CaptureConfig
) -> Assignment:
    """Give every group its likeliest unit and sign back unless the torques clearly object."""
    used: list[int] = best.order[: len(arm.joints)].tolist()
    for group in used:
        if group >= arm.groups:
            continue
        usual = groups[group].units[0].position
        scale = float(best.scales[group])
        for plain in (usual, math.copysign(usual, scale), abs(scale)):
            if plain == scale:
                continue
            tried = best.scaled((group,), plain / scale)
            tried, _ = arm.zeroed(tried, np.ones(arm.groups, dtype=np.bool_), rounds=2)
            gain = advantage(arm.explain(best).loglik, arm.explain(tried).loglik)
            if gain < config.decide:
                best = tried
                break
    return best


def _with_clear_zeros(
    arm: Arm, zeroed: Assignment, spread: Array, config: CaptureConfig
) -> Assignment:
    """Keep zero offsets that are large, visible and needed; estimate them once more alone."""
    size = np.abs(zeroed.offsets)
    visible = (spread < config.offset) & (size > np.maximum(config.offset, 4 * spread))
    needed = visible.copy()
    chosen = _only(arm, zeroed, visible)
    for group in np.flatnonzero(visible).tolist():
        fewer = visible.copy()
        fewer[group] = False
        without = arm.explain(_only(arm, zeroed, fewer)).loglik
        needed[group] = advantage(arm.explain(chosen).loglik, without) >= config.decide
    return _only(arm, zeroed, needed)


def _only(arm: Arm, zeroed: Assignment, kept: NDArray[np.bool_]) -> Assignment:
    reduced = replace(zeroed, offsets=np.where(kept, zeroed.offsets, 0.0))
    return arm.zeroed(reduced, kept)[0] if kept.any() else reduced


def _rivals(arm: Arm, chosen: Assignment, units: Sequence[tuple[float, ...]]) -> list[Rival]:
    """Alternatives against the chosen assignment, the zeros of both as free as they like."""
    free = np.ones(arm.groups, dtype=np.bool_)
    best = arm.explain(arm.zeroed(chosen, free)[0]).loglik
    around = [*neighbours(arm, chosen, units), *far_neighbours(arm, chosen)]
    costs = [arm.cost(other) for other in around]
    near = set(np.argsort(costs, kind="stable")[:_NEAR].tolist())
    found: list[Rival] = []
    for k, other in enumerate(around):
        refined = arm.zeroed(other, free, rounds=2)[0] if k in near else other
        margin = advantage(best, arm.explain(refined).loglik)
        joints, text = _change(arm, chosen, other)
        found.append(Rival(assignment=other, margin=margin, joints=joints, text=text))
    return found


def _change(arm: Arm, one: Assignment, other: Assignment) -> tuple[tuple[int, ...], str]:
    """Joints that differ, and how, in words."""
    count = len(arm.joints)
    before, after = (
        [(int(g), float(a.scales[g])) if g < arm.groups else (-1, 0.0) for g in a.order[:count]]
        for a in (one, other)
    )
    joints = tuple(j for j in range(count) if before[j] != after[j])
    names = " and ".join(arm.joints[j].name for j in joints)
    if any(before[j][0] != after[j][0] for j in joints):
        turned = any(dict(before).get(g) != scale for g, scale in after if g >= 0)
        words = "exchanged and turned" if turned else "exchanged"
        return joints, f"{names} {words if len(joints) > 1 else 'elsewhere'}"
    turned = all(after[j][1] == -before[j][1] for j in joints)
    return joints, f"{names} {'turned round' if turned else 'in another unit'}"


def _evidence(
    arm: Arm,
    chosen: Assignment,
    zeroed: Assignment,
    spread: Array,
    best: Explanation,
    rivals: Sequence[Rival],
) -> tuple[JointEvidence, ...]:
    explained = dict(zip(best.joint.tolist(), best.fit.tolist(), strict=True))
    found: list[JointEvidence] = []
    for joint in arm.joints:
        group = int(chosen.order[joint.number])
        own = [r for r in rivals if joint.number in r.joints]
        if group < arm.groups:
            found.append(
                JointEvidence(
                    joint=joint.name,
                    margin=own[0].margin if own else math.inf,
                    rival=own[0].text if own else "",
                    zero=float(zeroed.offsets[group]),
                    zero_std=float(spread[group]),
                    explained=explained.get(joint.number, math.nan),
                )
            )
    return tuple(found)


def _lags(
    given: _Setting, chosen: Assignment, told: Explanation, kept: dict[int, int]
) -> dict[int, tuple[float, float]]:
    """Lag of every explained torque column behind the torque that the motion asks for."""
    table = given.table
    rows = np.arange(0, len(table.values), max(1, len(table.values) // _LAG_ROWS))
    dense = given.arm_at(rows)
    moved = dense.moved(chosen)
    terms, own = dense.friction(moved), dense.inverse(*moved)
    sparse = table.thinned(rows)
    found: dict[int, tuple[float, float]] = {}
    for k, place in kept.items():
        joint = int(told.joint[place])
        early = np.column_stack([own[:, joint], terms[:, joint]])
        found[given.torques[k]] = series_lag(sparse, early, dense.torques[:, k])
    return found
