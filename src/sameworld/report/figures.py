"""The figures of a report, each as inline SVG with a title and a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from sameworld.core.arrays import Array
from sameworld.core.spec import ChannelSpec
from sameworld.report.curves import (
    HorizonCurve,
    coverage_by_horizon,
    error_by_horizon,
    largest_likely,
    pooled_autocorrelation,
)
from sameworld.report.data import HeldOut, ReportData
from sameworld.report.names import unit_name
from sameworld.report.numbers import percent, quantity, scale
from sameworld.report.svg import INK, drawing, inline_svg, new_axes

__all__ = [
    "Drawn",
    "EpisodePanels",
    "autocorrelation_figures",
    "coverage_figures",
    "horizon_figures",
    "overlays",
    "search_figure",
]

_PANELS = 9
_POINTS = 60
_LAGS = 20
#: Ratio of costs from which a logarithmic axis shows them better.
_LOGARITHMIC = 30
#: Costs below which a curve says nothing.
_FEWEST = 4


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure ready for the page.

    Attributes:
        caption: Short caption.
        svg: Inline SVG.
    """

    caption: str
    svg: str


@dataclass(frozen=True, kw_only=True)
class EpisodePanels:
    """Overlay panels of one held-out episode.

    Attributes:
        episode: Episode id.
        note: Why it was chosen.
        panels: One figure per component.
        left_out: Number of components not shown.
    """

    episode: str
    note: str
    panels: tuple[Drawn, ...]
    left_out: int


def overlays(data: ReportData) -> tuple[EpisodePanels, ...]:
    """Measured points, both predictions and the fitted world's band, for chosen episodes.

    The episodes with the smallest, the median and the largest error of the fitted world are shown,
    so that the choice flatters nobody.
    """
    with drawing():
        return tuple(
            _episode_panels(data, item, note, f"ep{k}")
            for k, (item, note) in enumerate(_chosen(data))
        )


def _chosen(data: ReportData) -> list[tuple[HeldOut, str]]:
    if not data.held_out or not data.shown:
        return []
    order = np.argsort([_size(data, item) for item in data.held_out], kind="stable")
    places = {
        "typical: median error": order[len(order) // 2],
        "best: smallest error": order[0],
        "worst: largest error": order[-1],
    }
    chosen: dict[int, str] = {}
    for note, place in places.items():
        chosen.setdefault(int(place), note)
    return [(data.held_out[place], note) for place, note in chosen.items()]


def _size(data: ReportData, item: HeldOut) -> float:
    """Error of the fitted world relative to the typical one, summed over channels."""
    total = 0.0
    for spec in data.shown:
        pair = item.channels(spec.name)
        if pair is not None:
            scale = [
                float(np.abs(p[0].error).mean())
                for h in data.held_out
                if (p := h.channels(spec.name)) is not None
            ]
            total += float(np.abs(pair[1].error).mean()) / max(float(np.median(scale)), 1e-300)
    return total if np.isfinite(total) else np.inf


def _episode_panels(data: ReportData, item: HeldOut, note: str, slug: str) -> EpisodePanels:
    wanted = [
        (spec, d)
        for spec in data.shown
        if item.channels(spec.name) is not None
        for d in range(1 if spec.manifold == "quaternion" else spec.size)
    ]
    panels = tuple(
        _panel(data, item, spec, d, f"{slug}p{k}") for k, (spec, d) in enumerate(wanted[:_PANELS])
    )
    left_out = max(len(wanted) - _PANELS, 0)
    return EpisodePanels(episode=item.episode.id, note=note, panels=panels, left_out=left_out)


def _panel(data: ReportData, item: HeldOut, spec: ChannelSpec, d: int, slug: str) -> Drawn:
    quaternion = spec.manifold == "quaternion"
    caption = f"{spec.name}, rotation error" if quaternion else _component(spec, d)
    figure, axes = new_axes(width=2.75, height=2.0)
    if quaternion:
        _angles(axes, item, spec, _upper(data, item, spec))
    else:
        _lines(axes, item, spec, d, data.calibrated)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(f"[{'rad' if quaternion else unit_name(spec.unit) or '1'}]")
    what = (
        "Angle between prediction and measurement over time, before and after the fit."
        if quaternion
        else "Measured points, prediction before the fit and prediction after it over time."
    )
    title = f"{caption}, episode {item.episode.id}"
    return Drawn(caption=caption, svg=inline_svg(figure, slug, title, what))


def _component(spec: ChannelSpec, d: int) -> str:
    if spec.size == 1:
        return spec.name
    return f"{spec.name} {'xyz'[d]}" if spec.shape == (3,) else f"{spec.name} [{d}]"


def _lines(axes: Axes, item: HeldOut, spec: ChannelSpec, d: int, band: bool) -> None:
    pair = item.channels(spec.name)
    assert pair is not None
    before, after = pair
    rows = len(after.time)
    if band:
        low, high = (a.reshape(rows, -1)[:, d] for a in (after.low, after.high))
        axes.fill_between(after.time, low, high, color=INK["after"], alpha=0.16, linewidth=0)
    channel = item.episode[spec.name]
    thin = slice(None, None, max(len(channel) // _POINTS, 1))
    measured = channel.values.reshape(len(channel), -1)[thin, d]
    axes.plot(
        channel.time[thin], measured, linestyle="none", marker="o", ms=2.2, color=INK["measured"]
    )
    axes.plot(before.time, before.values.reshape(len(before.time), -1)[:, d], **_BEFORE)
    axes.plot(after.time, after.values.reshape(rows, -1)[:, d], **_AFTER)


def _upper(data: ReportData, item: HeldOut, spec: ChannelSpec) -> Array | None:
    """Angle [rad] that the fitted world's error stays below with the level of the bands."""
    known = data.result.posterior.discrepancy
    if not data.calibrated or known is None or spec.name not in known.channels:
        return None
    channel = item.after.channels[spec.name]
    horizon = item.horizon(spec.name, channel)
    return largest_likely(known.channels[spec.name], horizon, item.after.level)


def _angles(axes: Axes, item: HeldOut, spec: ChannelSpec, upper: Array | None) -> None:
    pair = item.channels(spec.name)
    assert pair is not None
    before, after = pair
    if upper is not None:
        axes.fill_between(after.time, 0, upper, color=INK["after"], alpha=0.16, linewidth=0)
        axes.plot(after.time, upper, color=INK["after"], alpha=0.45, linewidth=0.9)
    axes.plot(before.time, np.linalg.norm(before.error, axis=1), **_BEFORE)
    axes.plot(after.time, np.linalg.norm(after.error, axis=1), **_AFTER)
    axes.set_ylim(bottom=0)


_BEFORE = {"color": INK["before"], "linewidth": 1.4, "linestyle": (0, (4, 2))}
_AFTER = {"color": INK["after"], "linewidth": 1.8}


def horizon_figures(data: ReportData) -> tuple[Drawn, ...]:
    """Median and quartiles of the error norm against the horizon, one figure per channel."""
    with drawing():
        return tuple(_horizon(spec, data, f"hor{k}") for k, spec in enumerate(data.shown))


def _horizon(spec: ChannelSpec, data: ReportData, slug: str) -> Drawn:
    before, after = error_by_horizon(spec, data.held_out)
    top = float(max(before.high.max(initial=0.0), after.high.max(initial=0.0)))
    factor, unit = scale([top], "rad" if spec.manifold == "quaternion" else spec.unit)
    figure, axes = new_axes(width=5.0, height=2.9)
    _with_quartiles(axes, before, factor, _BEFORE, "before", 0.12)
    _with_quartiles(axes, after, factor, _AFTER, "after", 0.18)
    if len(after.middle) and spec.tolerance <= 1.3 * top:
        axes.axhline(factor * spec.tolerance, color=INK["muted"], linewidth=1, linestyle=":")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds since the last warm-up row")
    axes.set_ylabel(f"error [{unit or '1'}]")
    description = "Error against prediction horizon, median and quartiles, before and after."
    if len(after.middle) and len(before.middle):
        ends = [quantity(factor * float(c.middle[-1]), unit) for c in (before, after)]
        description += f" At the longest horizon the median is {ends[0]} before, {ends[1]} after."
    return Drawn(
        caption=spec.name, svg=inline_svg(figure, slug, f"{spec.name}: error", description)
    )


def _with_quartiles(
    axes: Axes,
    curve: HorizonCurve,
    factor: float,
    line: dict[str, object],
    name: str,
    alpha: float,
) -> None:
    low, middle, high = (factor * part for part in (curve.low, curve.middle, curve.high))
    axes.fill_between(curve.horizon, low, high, color=INK[name], alpha=alpha, linewidth=0)
    axes.plot(curve.horizon, middle, **line)  # type: ignore[arg-type]


def coverage_figures(data: ReportData) -> tuple[Drawn, ...]:
    """Share of measurements inside their intervals against the horizon, per channel."""
    if not data.calibrated:
        return ()
    with drawing():
        return tuple(_coverage(spec, data, f"cov{k}") for k, spec in enumerate(data.shown))


def _coverage(spec: ChannelSpec, data: ReportData, slug: str) -> Drawn:
    curve = coverage_by_horizon(spec, data.held_out)
    level = data.held_out[0].after.level
    figure, axes = new_axes(width=5.0, height=2.3)
    axes.axhline(level, color=INK["ink"], linewidth=1, linestyle=":")
    axes.plot(curve.horizon, curve.middle, marker="o", ms=3, color=INK["after"], linewidth=1.4)
    floor = 0.5 if level > 0.6 and curve.middle.min(initial=1.0) > 0.55 else 0.0
    axes.set_ylim(floor, 1.02)
    axes.set_xlim(left=0)
    ticks = [t for t in (0.0, 0.25, 0.5, 0.75, 1.0) if t >= floor and abs(t - level) > 0.06]
    axes.set_yticks([*ticks, level], [percent(t) for t in (*ticks, level)])
    axes.set_xlabel("seconds since the last warm-up row")
    description = f"Share of measurements inside the {percent(level)} band by horizon."
    if len(curve.middle):
        low, high = percent(float(curve.middle.min())), percent(float(curve.middle.max()))
        description += f" It lies between {low} and {high}."
    return Drawn(
        caption=spec.name, svg=inline_svg(figure, slug, f"{spec.name}: coverage", description)
    )


def autocorrelation_figures(data: ReportData) -> tuple[Drawn, ...]:
    """Autocorrelation of the fitted world's held-out errors, one figure per channel."""
    with drawing():
        return tuple(_autocorrelation(spec, data, f"acf{k}") for k, spec in enumerate(data.shown))


def _autocorrelation(spec: ChannelSpec, data: ReportData, slug: str) -> Drawn:
    values, rows = pooled_autocorrelation(spec, data.held_out, _LAGS)
    lags = np.arange(len(values))[np.isfinite(values)]
    figure, axes = new_axes(width=5.0, height=2.1)
    if len(lags):
        limit = 2.58 / np.sqrt(max(rows, 1))
        axes.axhspan(-limit, limit, color=INK["muted"], alpha=0.2, linewidth=0)
        axes.vlines(lags, 0, values[lags], color=INK["after"], linewidth=2.2)
    axes.axhline(0, color=INK["muted"], linewidth=0.8)
    axes.set_ylim(-1.05 if values[lags].min(initial=0.0) < -0.25 else -0.3, 1.05)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("lag [rows]")
    first = percent(float(values[1])) if len(lags) > 1 else "unknown"
    description = f"Autocorrelation of the errors over the lag; {first} at lag 1."
    return Drawn(
        caption=spec.name,
        svg=inline_svg(figure, slug, f"{spec.name}: error autocorrelation", description),
    )


def search_figure(history: Sequence[float]) -> Drawn | None:
    """Cost over the iterations of the best search, on a logarithmic scale if they fall far."""
    costs: Array = np.asarray(history, dtype=np.float64)
    if len(costs) < _FEWEST or not (np.isfinite(costs) & (costs > 0)).all():
        return None
    with drawing():
        figure, axes = new_axes(width=5.0, height=2.1)
        axes.plot(np.arange(len(costs)), costs, marker="o", ms=3, color=INK["after"])
        if costs.max() > _LOGARITHMIC * costs.min():
            axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: quantity(cost)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("iteration")
        axes.set_ylabel("cost")
        description = f"The cost went from {costs[0]:.4g} to {costs[-1]:.4g}."
        svg = inline_svg(figure, "search", "Cost over iterations", description)
    return Drawn(caption="Cost over the iterations of the best search", svg=svg)
