"""Tables of a report as rows of finished texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sameworld.report.curves import median_error
from sameworld.report.data import ReportData
from sameworld.report.numbers import percent, quantity, together
from sameworld.report.words import VERDICTS, half_width, meaning, parameter_name
from sameworld.stages.identify.result import IdentifyResult, ParameterVerdict

__all__ = [
    "Bar",
    "Cell",
    "ChannelRow",
    "ResidualRow",
    "VerdictRow",
    "channel_rows",
    "correlation_cells",
    "residual_rows",
    "search_rows",
    "verdict_rows",
]

_STARTS = 12


@dataclass(frozen=True, kw_only=True)
class Bar:
    """Places on an interval bar, in per cent of its width."""

    low: float
    high: float
    value: float
    before: float


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """One row of the verdict table, as texts."""

    name: str
    address: str
    unit: str
    before: str
    value: str
    interval: str
    verdict: str
    symbol: str
    tone: str
    misfit: str
    meaning: str
    partners: tuple[str, ...]
    bar: Bar | None


@dataclass(frozen=True, kw_only=True)
class ChannelRow:
    """Median held-out error of one channel before and after, as texts."""

    name: str
    before: str
    after: str
    change: str
    better: bool


@dataclass(frozen=True, kw_only=True)
class ResidualRow:
    """Residuals of one channel, as texts."""

    channel: str
    unit: str
    noise: str
    weight: str
    before: str
    after: str
    whiteness: str
    white: bool


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the correlation matrix."""

    text: str
    value: float


def verdict_rows(result: IdentifyResult) -> tuple[VerdictRow, ...]:
    """Rows of the verdict table."""
    return tuple(_verdict_row(v) for v in result.verdicts)


def _verdict_row(row: ParameterVerdict) -> VerdictRow:
    symbol, tone, _ = VERDICTS[row.verdict]
    numbers = [row.before, row.value, row.low, row.high]
    before, value, low, high = together(numbers, half_width(row))
    return VerdictRow(
        name=parameter_name(row.name),
        address=row.name,
        unit=row.unit,
        before=before,
        value=value,
        interval=_interval(row, low, high),
        verdict=row.verdict,
        symbol=symbol,
        tone=tone,
        misfit="–" if not math.isfinite(row.misfit) else f"{quantity(row.misfit, digits=2)} ×",
        meaning=meaning(row),
        partners=tuple(
            f"{parameter_name(name)} ({_signed(value)})" for name, value in row.partners.items()
        ),
        bar=_bar(row),
    )


def _interval(row: ParameterVerdict, low: str, high: str) -> str:
    if not (math.isfinite(row.low) or math.isfinite(row.high)):
        return "unknown"
    (first, times, power), (second, _, other) = (t.partition("\u00a0×\u00a0") for t in (low, high))
    if times and power == other:
        return f"({first} to {second}){times}{power}"
    return f"{low} to {high}"


def _bar(row: ParameterVerdict) -> Bar | None:
    marks = (row.low, row.high, row.value, row.before)
    if not all(math.isfinite(m) for m in marks):
        return None
    left, right = min(marks), max(marks)
    span = right - left
    if span <= 0:
        return None
    low, high, value, before = (100 * (0.06 + 0.88 * (m - left) / span) for m in marks)
    return Bar(low=low, high=high, value=value, before=before)


def channel_rows(data: ReportData) -> tuple[ChannelRow, ...]:
    """Median held-out error per channel, from predictions if there are any, else from the score."""
    rows: list[ChannelRow] = []
    score = data.result.holdout
    for spec in data.channels:
        before, after = median_error(spec, data.held_out)
        if not data.held_out and score is not None and spec.name in score.before:
            before = float(np.median(score.before[spec.name]))
            after = float(np.median(score.after[spec.name]))
        if math.isnan(before) or math.isnan(after):
            continue
        unit = "rad" if spec.manifold == "quaternion" else spec.unit
        change = (after - before) / before if before > 0 else float("nan")
        texts = together([before, after], min(before, after))
        rows.append(
            ChannelRow(
                name=spec.name,
                before=f"{texts[0]}\u00a0{unit}".strip(),
                after=f"{texts[1]}\u00a0{unit}".strip(),
                change=percent(change) if change <= 0 else f"+{percent(change)}",
                better=after <= before,
            )
        )
    return tuple(rows)


def residual_rows(result: IdentifyResult) -> tuple[ResidualRow, ...]:
    """Rows of the residual table."""
    rows: list[ResidualRow] = []
    for r in result.residuals:
        numbers = (r.noise, r.weight_std, r.rms_before, r.rms_after)
        noise, weight, before, after = together(numbers, r.noise)
        rows.append(
            ResidualRow(
                channel=r.channel,
                unit=r.unit,
                noise=noise,
                weight=weight,
                before=before,
                after=after,
                whiteness=_signed(r.whiteness),
                white=r.white,
            )
        )
    return tuple(rows)


def correlation_cells(result: IdentifyResult) -> tuple[tuple[Cell, ...], ...]:
    """Correlation matrix of the posterior."""
    return tuple(
        tuple(Cell(text=_signed(float(v)), value=round(float(v), 3)) for v in row)
        for row in result.posterior.correlation
    )


def search_rows(result: IdentifyResult) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The best starts (number, screened cost, final cost, values, message) and how many are left.

    Polished starts come first, by final cost.
    """
    order = sorted(
        range(len(result.searches)),
        key=lambda k: _rank(result.searches[k].cost, result.searches[k].screened),
    )
    rows: list[tuple[str, ...]] = []
    for k in order[:_STARTS]:
        search = result.searches[k]
        cost = "not polished" if math.isnan(search.cost) else quantity(search.cost, digits=5)
        rows.append(
            (
                str(k + 1),
                quantity(search.screened, digits=4),
                cost,
                _values(search.values),
                search.message,
            )
        )
    return tuple(rows), max(len(order) - _STARTS, 0)


def _signed(value: float) -> str:
    """Two decimals with a sign, none for zero."""
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")


def _rank(cost: float, screened: float) -> tuple[bool, float]:
    return math.isnan(cost), screened if math.isnan(cost) else cost


def _values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{parameter_name(n)} {quantity(v)}" for n, v in values.items())
