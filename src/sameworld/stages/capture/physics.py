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
from sameworld.stages.capture.search import Search, far_neighbours, neighbours, search, start_order
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
    rough, coarse, arm = (
        _arm(table, _spread(table, n), joints, groups, torques, factors, inverse, prior)
        for n in (max(config.poses // 4, 20), max(config.poses // 2, 20), config.poses)
    )
    start = Assignment(
        order=start_order(prior, arm.places()),
        scales=np.array([g.units[0].position for g in groups]),
        offsets=np.zeros(len(groups)),
    )
    units = [tuple(u.position / g.units[0].position for u in g.units[1:]) for g in groups]
    found = search(rough, coarse, start, units, searches=config.searches, seed=config.seed)
    return _weighed(arm, found, groups, units, table, torques, factors, config)


def _spread(table: Table, count: int) -> NDArray[np.intp]:
    """Rows spread over the table."""
    last = len(table.values) - 1
    return np.linspace(0, last, min(count, last + 1)).astype(np.intp)


def _arm(
    table: Table,
    rows: NDArray[np.intp],
    joints: tuple[Joint, ...],
    groups: Sequence[Group],
    torques: Sequence[int],
    factors: Sequence[float],
    inverse: Inverse,
    prior: Array,
) -> Arm:
    places = [g.position for g in groups]
    motion = Motion(
        positions=table.values[rows][:, places],
        rates=table.rates[rows][:, places],
        bends=table.bends[rows][:, places],
    )
    measured = table.values[rows][:, list(torques)] * np.array(factors)
    return Arm(joints=joints, motion=motion, torques=measured, inverse=inverse, prior=prior)


def _weighed(
    arm: Arm,
    found: Search,
    groups: Sequence[Group],
    units: Sequence[tuple[float, ...]],
    table: Table,
    torques: Sequence[int],
    factors: Sequence[float],
    config: CaptureConfig,
) -> ArmFit:
    """Keep of the best assignment what the data insist on, and compare it with its rivals."""
    free = np.ones(arm.groups, dtype=np.bool_)
    plain = _with_plain_units(arm, found.best, groups, config)
    zeroed, spread = arm.zeroed(plain, free)
    chosen = _with_clear_zeros(arm, zeroed, spread, config)
    best = arm.explain(chosen)
    rivals = tuple(sorted(_rivals(arm, chosen, units), key=lambda r: r.margin))
    kept = {int(k): place for place, k in enumerate(best.torque) if best.fit[place] >= _EXPLAINED}
    lags = _lags(arm, chosen, best, kept, table, groups, torques, factors)
    return ArmFit(
        assignment=chosen,
        torques={torques[k]: (int(best.joint[p]), int(best.sign[p])) for k, p in kept.items()},
        fits={torques[k]: float(best.fit[p]) for k, p in kept.items()},
        lags=lags,
        rivals=rivals,
        evidence=_evidence(arm, chosen, zeroed, spread, best, rivals),
        ends=found.ends,
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
    arm: Arm,
    chosen: Assignment,
    best: Explanation,
    kept: dict[int, int],
    table: Table,
    groups: Sequence[Group],
    torques: Sequence[int],
    factors: Sequence[float],
) -> dict[int, tuple[float, float]]:
    """Lag of every explained torque column behind the torque that the motion asks for."""
    thin = max(1, len(table.values) // _LAG_ROWS)
    rows = np.arange(0, len(table.values), thin)
    dense = _arm(table, rows, arm.joints, groups, torques, factors, arm.inverse, arm.prior)
    moved = dense.moved(chosen)
    terms, own = dense.friction(moved), dense.inverse(*moved)
    sparse = table.thinned(rows)
    found: dict[int, tuple[float, float]] = {}
    for k, place in kept.items():
        joint = int(best.joint[place])
        early = np.column_stack([own[:, joint], terms[:, joint]])
        found[torques[k]] = series_lag(sparse, early, dense.torques[:, k])
    return found
