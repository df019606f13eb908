"""matplotlib figures as themed inline SVG: same data, same bytes; colours are CSS variables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["INK", "THEME", "drawing", "inline_svg", "new_axes"]

#: Placeholder colours drawn by matplotlib, and the CSS variable each one becomes.
THEME = {
    "#010101": "var(--ink)",
    "#020202": "var(--muted)",
    "#030303": "var(--grid)",
    "#040404": "var(--before)",
    "#050505": "var(--after)",
    "#060606": "var(--measured)",
    "#070707": "var(--surface)",
}
INK = {value[6:-1]: key for key, value in THEME.items()}

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sameworld",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.edgecolor": INK["muted"],
    "axes.labelcolor": INK["muted"],
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.formatter.use_mathtext": False,
    "axes.formatter.limits": (-3, 4),
    "grid.color": INK["grid"],
    "grid.linewidth": 0.7,
    "xtick.color": INK["muted"],
    "ytick.color": INK["muted"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 5,
    "text.color": INK["ink"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}


@contextmanager
def drawing() -> Iterator[None]:
    """The house style, for everything drawn and saved inside."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]
        yield


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of ``width`` x ``height`` inches with one pair of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def inline_svg(figure: Figure, slug: str, title: str, description: str) -> str:
    """Save a figure as SVG text to paste into HTML.

    Args:
        figure: The figure.
        slug: Prefix of all ids inside, unique in the page.
        title: Short name, for screen readers.
        description: What is to be seen, for screen readers.

    Returns:
        An ``<svg>`` element with colours from CSS variables and the size of its container.
    """
    buffer = io.StringIO()
    blank = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=blank)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    return _labelled(_themed(_prefixed(text, slug)), slug, title, description)


def _prefixed(text: str, slug: str) -> str:
    text = re.sub(r'\bid="([^"]+)"', rf'id="{slug}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{slug}-\1)", text)
    return re.sub(r'(xlink:)?href="#([^"]+)"', rf'href="#{slug}-\2"', text)


def _themed(text: str) -> str:
    for placeholder, variable in THEME.items():
        text = text.replace(placeholder, variable)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    return re.sub(r"font-family: [^;\"]*;?\s*", "", text)


def _labelled(text: str, slug: str, title: str, description: str) -> str:
    viewbox = re.search(r'viewBox="[^"]+"', text)
    body = text[text.index(">", text.index("<svg")) + 1 :].strip()
    box = viewbox.group(0) if viewbox else ""
    return (
        f'<svg {box} role="img" aria-labelledby="{slug}-title {slug}-desc" class="figure">'
        f'<title id="{slug}-title">{_escaped(title)}</title>'
        f'<desc id="{slug}-desc">{_escaped(description)}</desc>{body}'
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
