"""Reports for people: one self-contained HTML file in plain words."""

from sameworld.report.archive import pack, unpack
from sameworld.report.data import FilmRow, HeldOut, ReportData
from sameworld.report.render import report_html

__all__ = ["FilmRow", "HeldOut", "ReportData", "pack", "report_html", "unpack"]
