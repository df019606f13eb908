"""Parameters that differ between sessions, as rows of finished texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sameworld.report.names import parameter_name
from sameworld.report.numbers import percent, scale, together
from sameworld.report.words import VERDICTS
from sameworld.stages.identify.result import IdentifyResult, SessionSpread

__all__ = ["SessionRow", "SessionTable", "session_tables"]


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """One session, as texts."""

    session: str
    episodes: str
    value: str
    interval: str
    borrowed: str
    verdict: str
    symbol: str
    tone: str


@dataclass(frozen=True, kw_only=True)
class SessionTable:
    """One parameter: its population, in a sentence, and its sessions."""

    name: str
    address: str
    unit: str
    population: str
    rows: tuple[SessionRow, ...]


def session_tables(result: IdentifyResult) -> tuple[SessionTable, ...]:
    """Both levels of every parameter that differs between sessions."""
    return tuple(_table(found) for found in result.sessions)


def _table(found: SessionSpread) -> SessionTable:
    factor, unit = scale([v.value for v in found.values], found.unit)
    numbers = [factor * x for v in found.values for x in (v.value, v.low, v.high)]
    texts = together(numbers, factor * min((v.std for v in found.values), default=0.0))
    rows: list[SessionRow] = []
    for k, value in enumerate(found.values):
        middle, low, high = texts[3 * k : 3 * k + 3]
        symbol, tone, _ = VERDICTS[value.verdict]
        rows.append(
            SessionRow(
                session=value.session,
                episodes=str(value.episodes),
                value=middle,
                interval=f"{low} to {high}" if math.isfinite(value.std) else "any value",
                borrowed=percent(value.shrinkage),
                verdict=value.verdict,
                symbol=symbol,
                tone=tone,
            )
        )
    return SessionTable(
        name=parameter_name(found.name),
        address=found.name,
        unit=unit or "1",
        population=_population(found, factor, unit),
        rows=tuple(rows),
    )


def _population(found: SessionSpread, factor: float, unit: str) -> str:
    """Mean and spread in words."""
    mean, low, high = together(
        [factor * x for x in (found.mean, found.low, found.high)], factor * found.std
    )
    tail = f" {unit}" if unit else ""
    apart = _apart(found, factor, tail)
    return (
        f"Mean of all sessions {mean}{tail} (90\u00a0% interval {low} to {high}); from session to "
        f"session it varies by {apart}. Expect that of a new session too."
    )


def _apart(found: SessionSpread, factor: float, tail: str) -> str:
    ends = (found.spread, found.spread_low, found.spread_high)
    if found.relative:
        texts = [percent(x / found.mean) if math.isfinite(x) else "any amount" for x in ends]
    else:
        finite = [factor * x for x in ends if math.isfinite(x)]
        texts = [f"{t}{tail}" for t in together(finite, max(finite[0], max(finite) / 10))]
        texts += ["any amount"] * (3 - len(texts))
    if found.spread == 0:
        return f"nothing that shows (at most {texts[2]})"
    return f"±{texts[0]} (one standard deviation; {texts[1]} to {texts[2]})"
