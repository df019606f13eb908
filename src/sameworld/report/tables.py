"""Tables of a report as rows of finished texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sameworld.core.address import Address
from sameworld.report.data import ReportData
from sameworld.report.groups import Group, grouped, moved
from sameworld.report.names import field_name, parameter_name, target_name
from sameworld.report.numbers import quantity, scale, signed_percent, together
from sameworld.report.scores import ChannelScore, scores
from sameworld.report.words import VERDICTS, errors_text, meaning
from sameworld.stages.identify.result import IdentifyResult, ParameterVerdict

__all__ = [
    "Bar",
    "Cell",
    "ChannelRow",
    "ResidualRow",
    "TargetRows",
    "VerdictRow",
    "channel_rows",
    "correlation_cells",
    "delay_rows",
    "residual_rows",
    "search_rows",
    "verdict_rows",
    "verdict_targets",
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
    field: str
    address: str
    unit: str
    before: str
    value: str
    interval: str
    moved: bool
    verdict: str
    symbol: str
    tone: str
    misfit: str
    meaning: str
    partners: tuple[str, ...]
    bar: Bar | None


@dataclass(frozen=True, kw_only=True)
class TargetRows:
    """Rows of the verdict table that belong to one thing."""

    target: str
    address: str
    rows: tuple[VerdictRow, ...]


@dataclass(frozen=True, kw_only=True)
class ChannelRow:
    """Typical error of one channel on unseen recordings before and after, as texts."""

    name: str
    before: str
    after: str
    unit: str
    change: str
    interval: str
    tone: str


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
    """Rows of the verdict table; components of a vector share unit and decimals."""
    names = [v.name for v in result.verdicts]
    return tuple(row for group in grouped(result.verdicts) for row in _verdict_rows(group, names))


def verdict_targets(result: IdentifyResult) -> tuple[TargetRows, ...]:
    """The rows of ``verdict_rows`` under the thing they belong to."""
    found: dict[str, list[VerdictRow]] = {}
    for row in verdict_rows(result):
        address = Address.parse(row.address)
        found.setdefault(f"{address.kind}:{address.target}", []).append(row)
    return tuple(
        TargetRows(target=target_name(key.partition(":")[2]), address=key, rows=tuple(rows))
        for key, rows in found.items()
    )


def _verdict_rows(group: Group, names: list[str]) -> list[VerdictRow]:
    factor, unit = group.scaled
    numbers = [factor * v for r in group.rows for v in (r.before, r.value, r.low, r.high)]
    texts = iter(together(numbers, factor * group.spread))
    return [
        _verdict_row(row, unit, (next(texts), next(texts), next(texts), next(texts)), names)
        for row in group.rows
    ]


def _verdict_row(
    row: ParameterVerdict, unit: str, texts: tuple[str, str, str, str], names: list[str]
) -> VerdictRow:
    symbol, tone, _ = VERDICTS[row.verdict]
    before, value, low, high = texts
    return VerdictRow(
        name=parameter_name(row.name),
        field=field_name(Address.parse(row.name).field),
        address=row.name,
        unit=unit,
        before=before,
        value=value,
        interval=_interval(row, low, high),
        moved=moved(row),
        verdict=row.verdict,
        symbol=symbol,
        tone=tone,
        misfit="–" if not math.isfinite(row.misfit) else f"{quantity(row.misfit, digits=2)} ×",
        meaning=meaning(row, names),
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
    """Typical error per channel on recordings that were not fitted."""
    return tuple(_channel_row(score) for score in scores(data).channels)


def _channel_row(score: ChannelScore) -> ChannelRow:
    before, after, unit = errors_text(score)
    change = score.change
    return ChannelRow(
        name=score.name,
        before=before,
        after=after,
        unit=unit,
        change="–" if change is None else signed_percent(change.estimate),
        interval="unknown"
        if change is None
        else f"{signed_percent(change.low)} to {signed_percent(change.high)}",
        tone={-1: "good", 0: "fair", 1: "poor"}[score.direction],
    )


def residual_rows(result: IdentifyResult) -> tuple[ResidualRow, ...]:
    """Rows of the residual table."""
    rows: list[ResidualRow] = []
    for r in result.residuals:
        numbers = (r.noise, r.weight_std, r.rms_before, r.rms_after)
        factor, unit = scale(numbers, r.unit)
        noise, weight, before, after = together([factor * n for n in numbers], factor * r.noise)
        rows.append(
            ResidualRow(
                channel=r.channel,
                unit=unit,
                noise=noise,
                weight=weight,
                before=before,
                after=after,
                whiteness=_signed(r.whiteness),
                white=r.white,
            )
        )
    return tuple(rows)


def delay_rows(result: IdentifyResult) -> tuple[tuple[str, str, str, bool, str], ...]:
    """Channel, delay and its standard deviation [ms], whether it is suspicious, what to do."""
    numbers = [1e3 * v for d in result.delays for v in (d.delay, d.std)]
    spreads = [1e3 * d.std for d in result.delays if math.isfinite(d.std) and d.std > 0]
    texts = iter(together(numbers, min(spreads, default=math.nan)))
    return tuple((d.channel, next(texts), next(texts), d.suspicious, d.text) for d in result.delays)


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
                search.message.replace("`", ""),
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
