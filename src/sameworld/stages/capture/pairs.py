"""Columns that belong together: velocities of positions, commands that positions follow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.stages.capture.columns import Table
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.names import Hint
from sameworld.stages.capture.targets import Joint

__all__ = ["Follower", "Group", "Units", "followers", "groups_of", "lagged_fit"]

#: Factors to SI in which positions and velocities of joints come, the usual first.
_POSITION_UNITS = {
    "rad": (1.0, math.pi / 180, 2 * math.pi, 2 * math.pi / 4096),
    "m": (1.0, 1e-3, 1e-2),
}
_VELOCITY_UNITS = {"rad": (1.0, math.pi / 180, 2 * math.pi / 60), "m": (1.0, 1e-3, 1e-2)}
#: Relative error of a command's gain: servos fall short of what they are told.
_COMMAND_GAIN = 0.3
#: R^2 asked of nameless columns that are off by more than a sample: commands look like that too.
_SURE = 0.98
#: Motion [rad or m] below which a unit is not believed if another one makes it larger.
_LIVELY = 0.1
#: Relative error of a gain up to which it counts as one of the known ratios: a velocity that is
#: sampled between the steps of a stiff servo is several percent off the mean velocity.
_GAIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Units:
    """Factors of a group to SI.

    Attributes:
        position: Factor of the position column.
        velocity: Factor of the velocity column, without sign.
    """

    position: float
    velocity: float


@dataclass(frozen=True, kw_only=True)
class Group:
    """A position column and, if there is one, the velocity column of the same joint.

    Attributes:
        position: Number of the position column.
        velocity: Number of the velocity column, -1 if none.
        sign: Sign of the velocity column against the derivative of the position column.
        lag: Time by which the velocity column is late [s].
        fit: R^2 of the velocity column against that derivative.
        units: Factors that are possible, the likeliest first.
    """

    position: int
    velocity: int = -1
    sign: int = 1
    lag: float = 0.0
    fit: float = 0.0
    units: tuple[Units, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Follower:
    """A column that a group's position or velocity follows: a command.

    Attributes:
        column: Number of the command column.
        group: Number of the group.
        of: What follows it, ``position`` or ``velocity``.
        gain: Command per unit of what follows it, both as recorded.
        lag: Time by which the motion follows [s].
        fit: Correlation at that lag.
    """

    column: int
    group: int
    of: str
    gain: float
    lag: float
    fit: float


def lagged_fit(table: Table, signal: Array, slope: Array, late: Array) -> tuple[float, float]:
    """Gain and lag [s] of ``late(t) = gain * signal(t - lag)``, to first order in the lag.

    Args:
        table: Where the rows come from.
        signal: Samples [N].
        slope: Their time derivative [N].
        late: The other samples [N].
    """
    keep = np.isfinite(signal) & np.isfinite(slope) & np.isfinite(late)
    design = np.stack([signal[keep], slope[keep], np.ones(int(keep.sum()))], axis=1)
    gain, shift, _ = np.linalg.lstsq(design, late[keep], rcond=None)[0].tolist()
    return gain, -shift / gain if gain else 0.0


def _unit_rows(values: Array) -> Array:
    """Columns centred and scaled to unit length; still ones become zero."""
    centred = values - values.mean(axis=0)
    norm = np.linalg.norm(centred, axis=0)
    return centred / np.where(norm > 0, norm, 1.0)


def _correlations(table: Table, early: Array, late: Array, lags: Sequence[int]) -> Array:
    """Correlation of columns [C] with columns [D] that come ``lags`` rows later, [L, C, D]."""
    first, second = _unit_rows(early), _unit_rows(late)
    found = np.empty((len(lags), early.shape[1], late.shape[1]))
    for k, lag in enumerate(lags):
        moved = np.nan_to_num(table.shifted(first, lag))
        scale = np.linalg.norm(moved, axis=0)
        found[k] = (moved / np.where(scale > 0, scale, 1.0)).T @ second
    return found


def groups_of(
    table: Table, hints: Sequence[Hint], config: CaptureConfig, joints: Sequence[Joint]
) -> tuple[Group, ...]:
    """Pair position with velocity columns: one is the derivative of the other.

    Args:
        table: The columns.
        hints: What their names say.
        config: Options.
        joints: Joints of the scene; positions that go far beyond the widest limits cannot be in
            that unit.
    """
    candidates = _pairs(table, hints, config)
    used: set[int] = set()
    found: list[Group] = []
    for position, velocity, lag in candidates:
        if position in used or velocity in used:
            continue
        group = _group(table, position, velocity, lag, hints, joints)
        late = abs(group.lag) > 1.5 * table.columns[velocity].step + 0.01
        named = hints[position].kind is not None and hints[velocity].kind is not None
        least = config.pair if named or not late else max(config.pair, _SURE)
        if group.units and group.fit >= least:
            used |= {position, velocity}
            found.append(group)
    for column, hint in enumerate(hints):
        if column not in used and hint.kind == "position" and not table.columns[column].still:
            units = _lonely_units(table.columns[column].span, hint, joints)
            found.append(Group(position=column, units=units))
    return tuple(sorted(found, key=lambda g: g.position))


def _pairs(
    table: Table, hints: Sequence[Hint], config: CaptureConfig
) -> list[tuple[int, int, int]]:
    """Position and velocity columns with the lag [rows] of the best correlation, best first."""
    reach = max(3, round(0.05 / table.step))
    lags = sorted(range(-reach, reach + 1), key=abs)
    found = np.abs(_correlations(table, table.rates, table.values, lags))
    best = found.argmax(axis=0)
    value = found.max(axis=0)
    still = [c.still for c in table.columns]
    pairs = [
        (float(value[i, j]), i, j, lags[int(best[i, j])])
        for i, j in itertools.permutations(range(len(table.columns)), 2)
        if value[i, j] ** 2 >= config.pair
        and not still[i]
        and not still[j]
        and hints[i].kind in (None, "position")
        and hints[j].kind in (None, "velocity")
    ]
    return [(i, j, lag) for _, i, j, lag in sorted(pairs, reverse=True)]


def _group(
    table: Table,
    position: int,
    velocity: int,
    lag: int,
    hints: Sequence[Hint],
    joints: Sequence[Joint],
) -> Group:
    rate = table.shifted(table.rates[:, position], lag)
    bend = table.shifted(table.bends[:, position], lag)
    late = table.values[:, velocity]
    gain, rest = lagged_fit(table, rate, bend, late)
    total = lag * table.step + rest
    keep = np.isfinite(rate)
    fit = float(np.corrcoef(rate[keep] - rest * bend[keep], late[keep])[0, 1]) ** 2
    stated = (hints[position].factor, hints[velocity].factor)
    return Group(
        position=position,
        velocity=velocity,
        sign=1 if gain > 0 else -1,
        lag=total,
        fit=fit,
        units=_units(abs(gain), stated, table.columns[position].span, joints),
    )


def _units(
    gain: float, stated: tuple[float, float], moved: float, joints: Sequence[Joint]
) -> tuple[Units, ...]:
    """Units whose ratio explains the gain; those that are stated or usual come first."""
    fitting: dict[Units, int] = {}
    for joint in joints:
        positions = (stated[0],) if stated[0] else _POSITION_UNITS[joint.unit]
        velocities = (stated[1],) if stated[1] else _VELOCITY_UNITS[joint.unit]
        for (i, p), (j, v) in itertools.product(enumerate(positions), enumerate(velocities)):
            if abs(gain * v / p - 1) < _GAIN and _plausible(moved * p, joint):
                units = Units(position=p, velocity=v)
                fitting[units] = min(i + j, fitting.get(units, i + j))
    if not fitting and stated != (0.0, 0.0):
        return _units(gain, (0.0, 0.0), moved, joints)
    lively = {u: rank for u, rank in fitting.items() if moved * u.position >= _LIVELY}
    return tuple(sorted(lively or fitting, key=lambda u: fitting[u]))


def _plausible(moved: float, joint: Joint) -> bool:
    """Whether a joint can have moved that far [rad or m]."""
    return 1e-4 < moved <= 1.25 * (joint.high - joint.low)


def _lonely_units(moved: float, hint: Hint, joints: Sequence[Joint]) -> tuple[Units, ...]:
    found: dict[Units, None] = {}
    for joint in joints:
        factors = (hint.factor,) if hint.factor else _POSITION_UNITS[joint.unit][:2]
        for factor in factors:
            if _plausible(moved * factor, joint):
                found[Units(position=factor, velocity=1.0)] = None
    return tuple(sorted(found, key=lambda u: -u.position))


def followers(
    table: Table,
    groups: Sequence[Group],
    hints: Sequence[Hint],
    config: CaptureConfig,
) -> tuple[Follower, ...]:
    """Columns that motion follows after a short time: commands, each with its group."""
    taken = {c for g in groups for c in (g.position, g.velocity)}
    free: list[int] = [
        k
        for k, column in enumerate(table.columns)
        if k not in taken and not column.still and hints[k].kind in (None, "command")
    ]
    if not free or not groups:
        return ()
    reach = round(config.lag / table.step)
    lags = range(0, max(reach, 1) + 1, max(1, reach // 40))
    found: list[Follower] = []
    for of in ("position", "velocity"):
        columns = [g.position if of == "position" else g.velocity for g in groups]
        own = [k for k, c in enumerate(columns) if c >= 0]
        if not own:
            continue
        moves = table.values[:, [columns[k] for k in own]]
        match = _correlations(table, table.values[:, free], moves, list(lags))
        for place, column in enumerate(free):
            same = [
                hints[column].joint in (-1, hints[groups[k].position].joint)
                or hints[groups[k].position].joint == -1
                for k in own
            ]
            match[:, place, ~np.array(same)] = 0.0
        found += _best(table, free, own, moves, match, list(lags), of)
    best: dict[int, Follower] = {}
    for follower in sorted(found, key=lambda f: -f.fit):
        named = hints[follower.column].kind == "command"
        clear = follower.fit >= 0.95 and _in_units(follower, groups[follower.group])
        if clear or (named and follower.fit >= 0.5):
            best.setdefault(follower.column, follower)
    return tuple(best.values())


def _in_units(follower: Follower, group: Group) -> bool:
    """Whether a command's gain is that of a usual unit; a torque's would be any number."""
    factors = [f for units in _POSITION_UNITS.values() for f in units]
    own = group.units[0].position if follower.of == "position" else group.units[0].velocity
    return any(abs(own / abs(follower.gain) / f - 1) < _COMMAND_GAIN for f in factors)


def _best(
    table: Table,
    free: Sequence[int],
    own: Sequence[int],
    moves: Array,
    match: Array,
    lags: Sequence[int],
    of: str,
) -> list[Follower]:
    found: list[Follower] = []
    for place, column in enumerate(free):
        strength: NDArray[np.float64] = np.abs(match[:, place])
        lag, group = np.unravel_index(int(strength.argmax()), strength.shape)
        command = table.values[:, column]
        gain = float(match[lag, place, group] * command.std() / moves[:, group].std())
        found.append(
            Follower(
                column=column,
                group=own[int(group)],
                of=of,
                gain=gain,
                lag=lags[int(lag)] * table.step,
                fit=float(strength.max()),
            )
        )
    return found
