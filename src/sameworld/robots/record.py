"""``record``: drive a robot for a while and keep what it was sent and what it showed."""

from __future__ import annotations

import numpy as np

from sameworld.core.agents import Policy, Robot
from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.episode import Channel, Episode, EpisodeSource
from sameworld.core.errors import SpecError
from sameworld.core.spec import Spec

__all__ = ["record"]


def record(
    robot: Robot,
    driver: Policy | Array,
    ticks: int | None = None,
    *,
    id: str = "episode",
    source: EpisodeSource = "real",
    start: Belief | None = None,
    session_id: str = "",
) -> Episode:
    """Record one episode from a connected robot.

    Signals are stamped with whole control periods since the first observation; a robot's
    ``command`` is taken to last one. Actions are those really sent. A policy's declared latency is
    not simulated here: a robot brings its own.

    Args:
        robot: A connected robot.
        driver: A policy, or actions [T, A].
        ticks: Number of commands T; needed with a policy, at most the rows of given actions.
        id: Episode id.
        source: Who produces the signals.
        start: What is known of the start.
        session_id: Session the episode belongs to.

    Returns:
        An episode with T + 1 samples per signal and T per action.

    Raises:
        SpecError: Ticks are missing or do not fit.
    """
    count = _ticks(driver, ticks)
    seen, sent = [robot.observe()], list[Array]()
    carry = None if isinstance(driver, np.ndarray) else driver.init(1)
    for tick in range(count):
        if isinstance(driver, np.ndarray):
            action = np.asarray(driver[tick], dtype=np.float64)
        else:
            batch = {name: np.asarray(values)[None] for name, values in seen[-1].items()}
            carry, actions = driver.act(carry, batch)
            action = np.asarray(actions, dtype=np.float64)[0]
        sent.append(robot.command(action))
        seen.append(robot.observe())
    return Episode(
        id=id,
        channels=(*_observed(robot.spec, seen), *_acted(robot.spec, np.array(sent))),
        start=Belief() if start is None else start,
        source=source,
        session_id=session_id,
    )


def _ticks(driver: Policy | Array, ticks: int | None) -> int:
    available = len(driver) if isinstance(driver, np.ndarray) else ticks
    if available is None:
        raise SpecError("Say for how many ticks the policy shall drive.")
    count = available if ticks is None else ticks
    if not 1 <= count <= available:
        raise SpecError(f"Cannot record {count} ticks; {available} actions were given.")
    return count


def _observed(spec: Spec, seen: list[Signals]) -> list[Channel]:
    time = spec.period * np.arange(len(seen), dtype=np.float64)
    return [
        Channel(name=c.name, time=time, values=np.stack([s[c.name] for s in seen]), unit=c.unit)
        for c in spec.observations
    ]


def _acted(spec: Spec, sent: Array) -> list[Channel]:
    time = spec.period * np.arange(len(sent), dtype=np.float64)
    channels: list[Channel] = []
    column = 0
    for action in spec.actions:
        part = sent[:, column : column + action.size].reshape(len(sent), *action.shape)
        channels.append(
            Channel(name=action.name, time=time, values=part, unit=action.unit, role="action")
        )
        column += action.size
    return channels
