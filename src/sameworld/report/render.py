"""``report_html``: one self-contained page from ``ReportData``."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.image import imsave
from numpy.typing import NDArray

from sameworld.report import figures, tables, words
from sameworld.report.data import ReportData
from sameworld.report.names import parameter_name, spoken
from sameworld.report.numbers import percent, quantity, together
from sameworld.report.scores import scores
from sameworld.report.sessions import session_tables

__all__ = ["report_html"]


@dataclass(frozen=True, kw_only=True)
class _Image:
    """An image of the film strip: data address and alternative text."""

    source: str
    alt: str
    caption: str


def report_html(data: ReportData) -> str:
    """Render one HTML file that needs no network and no other file.

    The same data give the same bytes: ids are derived from content, and nothing depends on the
    clock; times belong into ``data.provenance``.

    Args:
        data: What to show.

    Returns:
        The page.
    """
    environment = Environment(
        loader=PackageLoader("sameworld.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["svg"] = Markup
    environment.globals["columns"] = _columns
    searches, searches_left = tables.search_rows(data.result)
    return environment.get_template("report.html").render(
        data=data,
        result=data.result,
        headline=words.headline(data),
        learned=words.learned(data),
        moves=words.moves(data.result),
        trust=words.trust(data),
        chance=words.chance(data),
        gate=words.gate(data),
        judgement=words.judgement(data),
        advice=words.advice(data.result),
        channel_rows=tables.channel_rows(data),
        scored=scores(data),
        targets=tables.verdict_targets(data.result),
        combinations=_combinations(data),
        sessions=session_tables(data.result),
        residual_rows=tables.residual_rows(data.result),
        correlation=tables.correlation_cells(data.result),
        names=[parameter_name(n) for n in data.result.posterior.names],
        searches=searches,
        searches_left=searches_left,
        delays=tables.delay_rows(data.result),
        overlays=figures.overlays(data),
        horizon=figures.horizon_figures(data),
        coverage=figures.coverage_figures(data),
        autocorrelation=figures.autocorrelation_figures(data),
        search_figure=figures.search_figure(data.result.history),
        film=[(row.label, _film(row.label, row.images, row.time)) for row in data.film],
        band=_band(data),
        budget=_budget(data),
        tolerances=[c for c in data.shown if np.isfinite(c.tolerance)],
    )


def _columns(panels: int) -> str:
    """Class of a grid that leaves no lonely last panel."""
    return (
        "threes" if panels == 3 or (panels > 4 and panels % 4 == 1) or panels % 3 == 0 else "fours"
    )


def _band(data: ReportData) -> str:
    return f"{percent(data.held_out[0].after.level)} band after the fit" if data.calibrated else ""


def _combinations(data: ReportData) -> list[tuple[str, str]]:
    names = data.result.posterior.names
    return [(spoken(c.text, names), quantity(c.std, digits=2)) for c in data.result.combinations]


def _budget(data: ReportData) -> list[tuple[str, str]]:
    """What the fit was made of and what it cost."""
    result = data.result
    facts = [
        ("scene", f"{data.scene.name} ({data.scene.id})"),
        ("recordings fitted", str(len(result.episodes))),
        ("shooting windows", str(result.windows)),
        ("simulated trajectories", str(result.rollouts)),
        ("derivatives", result.derivatives),
        ("processor time", quantity(result.cpu_seconds, "s")),
        ("final cost", quantity(result.cost, digits=5)),
        ("covariance", result.covariance_kind),
        ("misfit factor", quantity(result.misfit_factor, digits=2)),
        ("seed", str(result.seed)),
    ]
    return [(name, value) for name, value in facts if name not in data.provenance]


def _film(label: str, images: NDArray[np.uint8], time: NDArray[np.float64]) -> list[_Image]:
    texts = [f"{text}\u00a0s" for text in together([float(t) for t in time], 0.1)]
    return [
        _Image(source=_png(image), alt=f"{label}, {text} after the start", caption=text)
        for image, text in zip(images, texts, strict=True)
    ]


def _png(image: NDArray[np.uint8]) -> str:
    """An image [H, W, 3] as a PNG data address."""
    buffer = io.BytesIO()
    imsave(buffer, np.ascontiguousarray(image), format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
