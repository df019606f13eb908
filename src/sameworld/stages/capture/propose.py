"""``propose_mapping``: recorded columns of any name, unit, sign and order to a world's signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sameworld.core.episode import Recording
from sameworld.core.errors import EpisodeError
from sameworld.core.mapping import Alternative, Question, SignalMap, SignalMapping
from sameworld.core.world import World
from sameworld.stages.capture.assemble import (
    Desk,
    command_signals,
    joint_signals,
    named_signals,
    question,
)
from sameworld.stages.capture.choose import Choice, Doubt, by_names, by_torques, name_costs
from sameworld.stages.capture.columns import Table, tabulate
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.lags import Lag, delays
from sameworld.stages.capture.names import Hint, hints
from sameworld.stages.capture.pairs import Follower, Group, followers, groups_of
from sameworld.stages.capture.percent import percent_questions
from sameworld.stages.capture.physics import ArmFit, fit_arm
from sameworld.stages.capture.result import CaptureResult
from sameworld.stages.capture.targets import Joint, forces_of, joints_of, targets_of

__all__ = ["propose_mapping"]


def propose_mapping(
    world: World, recordings: Sequence[Recording], *, config: CaptureConfig | None = None
) -> tuple[SignalMapping, CaptureResult]:
    """Find out which recorded column is which signal of a world, in what unit, sign and zero.

    Velocities are found as derivatives of positions, commands as what positions follow, and the
    joints of an arm by its torques: only the right order, signs, units and zeros make the scene's
    inverse dynamics agree with what was measured. Names and stated units help where they say
    something, and are overruled where the torques clearly disagree.

    Args:
        world: World of the scene; with capability ``inverse`` torques count as evidence.
        recordings: Recordings of one layout.
        config: Options.

    Returns:
        The mapping, with a question for everything that the data could not decide, and the
        evidence behind it.

    Raises:
        EpisodeError: There is nothing to compare.
    """
    config = config or CaptureConfig()
    if not recordings:
        raise EpisodeError("There is no recording to map. Give at least one.")
    table = tabulate(recordings[: config.recordings], config)
    joints = joints_of(world.spec)
    said = hints(table.columns, joints)
    groups = groups_of(table, said, config, joints)
    follow = followers(table, groups, said, config)
    fit = _torque_fit(world, table, joints, groups, follow, said, config)
    costs = name_costs(groups, said, joints)
    choices, doubts = (
        by_torques(fit, groups, said, joints, config)
        if fit is not None
        else by_names(table, groups, said, joints, costs)
    )
    lags = _lags(table, groups, fit)
    desk = Desk(
        table=table,
        hints=said,
        targets=targets_of(world),
        forces=forces_of(world),
        delays=delays(lags),
    )
    mapping = _assembled(desk, choices, doubts, follow, groups)
    mapping = replace(mapping, notes=(*mapping.notes, *_zero_notes(choices, fit, config)))
    return mapping, _result(desk, mapping, choices, fit, lags)


def _torque_fit(
    world: World,
    table: Table,
    joints: tuple[Joint, ...],
    groups: Sequence[Group],
    follow: Sequence[Follower],
    said: Sequence[Hint],
    config: CaptureConfig,
) -> ArmFit | None:
    """Identify the arm by torques, where there are columns that may be torques."""
    taken = {c for g in groups for c in (g.position, g.velocity)} | {f.column for f in follow}
    torques = [
        k
        for k, column in enumerate(table.columns)
        if k not in taken and not column.still and said[k].kind in (None, "torque")
    ]
    if not config.torques or any(not g.units for g in groups):
        return None
    factors = [said[k].factor or 1.0 for k in torques]
    prior = name_costs(groups, said, joints)
    fit = fit_arm(world, table, joints, groups, torques, factors, prior, config)
    return fit if fit is not None and fit.torques else None


def _lags(table: Table, groups: Sequence[Group], fit: ArmFit | None) -> list[Lag]:
    """Time shifts of all columns against the positions."""
    found: list[Lag] = []
    for group in groups:
        column = table.columns[group.position]
        family = f"position {column.stream}"
        found.append(
            Lag(column=group.position, family=family, lag=0.0, spread=0.0, step=column.step)
        )
        if group.velocity >= 0:
            column = table.columns[group.velocity]
            family = f"velocity {column.stream}"
            spread = 0.05 * column.step
            found.append(
                Lag(
                    column=group.velocity,
                    family=family,
                    lag=group.lag,
                    spread=spread,
                    step=column.step,
                )
            )
    for k, (lag, spread) in (fit.lags if fit else {}).items():
        column = table.columns[k]
        family = f"torque {column.stream}"
        found.append(Lag(column=k, family=family, lag=lag, spread=spread, step=column.step))
    return found


def _assembled(
    desk: Desk,
    choices: Sequence[Choice],
    doubts: Sequence[Doubt],
    follow: Sequence[Follower],
    groups: Sequence[Group],
) -> SignalMapping:
    signals = [s for choice in choices for s in joint_signals(desk, choice)]
    commands, notes = command_signals(desk, choices, follow, groups)
    signals += commands
    taken = _taken(desk, signals)
    signals += named_signals(desk, taken, {s.place for s in signals})
    kept, dropped = _one_each(doubts)
    asked = [question(desk, doubt) for doubt in kept]
    asked += percent_questions(desk, signals, asked)
    return SignalMapping(
        signals=tuple(signals),
        undecided=(*asked, *_missing_positions(desk, signals)),
        notes=(*notes, *(f"Also open: {doubt.text}" for doubt in dropped)),
    )


def _missing_positions(desk: Desk, signals: Sequence[SignalMap]) -> list[Question]:
    """A question if joints have no column although nameless columns are left over."""
    mapped, taken = {s.place for s in signals}, _taken(desk, signals)
    wanted = [t for t in desk.targets if t.kind == "position"]
    missing = [t for t in wanted if (t.channel, t.component) not in mapped]
    left = [
        column
        for k, column in enumerate(desk.table.columns)
        if k not in taken and desk.hints[k].kind in (None, "position")
    ]
    if not missing or not left:
        return []
    joints = ", ".join(t.channel for t in missing)
    columns = ", ".join(f"{c.name}{' (never moves)' if c.still else ''}" for c in left[:12])
    return [
        Question(
            about="joints without a column",
            text=f"Which columns are {joints}? Left over: {columns}. Add them to 'signals' and "
            "remove this question; remove it as well if they were not recorded.",
            alternatives=(Alternative(name="not recorded"),),
        )
    ]


def _taken(desk: Desk, signals: Sequence[SignalMap]) -> set[int]:
    names = {(c.stream, c.label): k for k, c in enumerate(desk.table.columns)}
    return {names[s.stream, s.column] for s in signals}


def _one_each(doubts: Sequence[Doubt]) -> tuple[list[Doubt], list[Doubt]]:
    """The first doubt about every joint; answers to two would overwrite each other."""
    kept, dropped, asked = list[Doubt](), list[Doubt](), set[str]()
    for doubt in doubts:
        about = {c.joint.name for _, choices in doubt.answers for c in choices}
        (dropped if about & asked else kept).append(doubt)
        asked |= about
    return kept, dropped


def _zero_notes(choices: Sequence[Choice], fit: ArmFit | None, config: CaptureConfig) -> list[str]:
    """Joints whose zero no torque shows."""
    if fit is None:
        return []
    blind = [e.joint for e in fit.evidence if e.zero_std >= config.offset]
    known = {c.joint.name for c in choices}
    return [
        f"The zero of {name} leaves no trace in the torques (it turns about the vertical, or "
        "little hangs on it); it is taken as recorded."
        for name in blind
        if name in known
    ]


def _result(
    desk: Desk,
    mapping: SignalMapping,
    choices: Sequence[Choice],
    fit: ArmFit | None,
    lags: Sequence[Lag],
) -> CaptureResult:
    columns = desk.table.columns
    taken = _taken(desk, mapping.signals)
    mapped = {s.place for s in mapping.signals}
    wanted = [t for t in desk.targets if t.kind in ("position", "command") or t.role == "action"]
    missing = [t.channel for t in wanted if (t.channel, t.component) not in mapped]
    return CaptureResult(
        joints=fit.evidence if fit else (),
        unused=tuple(c.name for k, c in enumerate(columns) if k not in taken),
        missing=tuple(dict.fromkeys(missing)),
        corrections=tuple(_corrections(desk, mapping, choices)),
        lags={columns[lag.column].name: float(np.round(lag.lag, 9)) for lag in lags},
        searches=fit.ends if fit else (),
    )


def _corrections(desk: Desk, mapping: SignalMapping, choices: Sequence[Choice]) -> list[str]:
    """What differs from taking the columns in their order, as they are."""
    found: list[str] = []
    for kind in ("position", "velocity", "torque"):
        own = [s for s in mapping.signals if _kind(desk, s) == kind]
        order = [desk.table.columns[k].index for k in _places(desk, own)]
        streams = [s.stream for s in own]
        pairs = list(zip(streams, order, strict=True))
        if len(set(streams)) == 1 and order != sorted(order):
            found.append(f"the {kind} columns are in another order than the joints: {pairs}")
    for signal in mapping.signals:
        what = f"{signal.channel} from {signal.stream}.{signal.column}"
        stated = desk.hints[next(iter(_places(desk, [signal])))].factor
        if signal.scale < 0:
            found.append(f"{what}: sign flipped")
        if abs(signal.scale) != (stated or 1.0):
            found.append(f"{what}: unit factor {abs(signal.scale):.6g}")
        if signal.offset:
            found.append(f"{what}: zero moved by {signal.offset:.4g} {signal.unit}")
        if signal.delay:
            found.append(f"{what}: delay of {signal.delay:.4g} s removed")
    del choices
    return found


def _kind(desk: Desk, signal: SignalMap) -> str:
    places = {(t.channel, t.component): t.kind for t in desk.targets}
    return places[signal.place]


def _places(desk: Desk, signals: Sequence[SignalMap]) -> list[int]:
    names = {(c.stream, c.label): k for k, c in enumerate(desk.table.columns)}
    return [names[s.stream, s.column] for s in signals]
