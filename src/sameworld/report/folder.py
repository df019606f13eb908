"""A report in a run folder: the page, and what it takes to render it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sameworld.report.archive import pack, unpack
from sameworld.report.data import ReportData
from sameworld.report.render import report_html
from sameworld.store import load_scene, read_json, read_npz, write_json, write_npz, write_text

__all__ = ["PAGE", "load_report", "save_page", "save_report"]

PAGE = "report.html"
_RECORD = "report.json"
_ARRAYS = "report.npz"


def save_report(folder: str | Path, data: ReportData) -> Path:
    """Write ``report.html`` and, beside it, ``report.json`` and ``report.npz``.

    Args:
        folder: The run folder.
        data: What to show; its ``files`` name the scene folder relative to ``folder``.

    Returns:
        Path of the page.
    """
    folder = Path(folder)
    record, arrays = pack(data)
    write_npz(folder / _ARRAYS, arrays)
    write_json(folder / _RECORD, record)
    return save_page(folder, data)


def save_page(folder: str | Path, data: ReportData) -> Path:
    """Write only ``report.html``."""
    page = Path(folder) / PAGE
    write_text(page, report_html(data))
    return page


def load_report(folder: str | Path, *, title: str | None = None) -> ReportData:
    """Read what ``save_report`` wrote.

    Args:
        folder: The run folder.
        title: Another title for the page.

    Raises:
        StoreError: A file is missing or damaged.
    """
    folder = Path(folder)
    record = read_json(folder / _RECORD)
    arrays = read_npz(folder / _ARRAYS)
    files = record.get("files", {}) if isinstance(record, dict) else {}
    scene = load_scene(folder / str(files.get("scene", "scene")))
    data = unpack(record, arrays, scene)
    return data if title is None else replace(data, title=title)
