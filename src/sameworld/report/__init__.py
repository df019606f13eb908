"""Reports for people: one self-contained HTML file in plain words."""

from sameworld.report.data import FilmRow, HeldOut, ReportData
from sameworld.report.render import report_html

__all__ = ["FilmRow", "HeldOut", "ReportData", "report_html"]
