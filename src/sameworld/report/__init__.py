"""Reports for people: one self-contained HTML file in plain words."""

from sameworld.report.archive import pack, unpack
from sameworld.report.calibration import report_of
from sameworld.report.data import FilmRow, HeldOut, ReportData
from sameworld.report.folder import load_report, save_page, save_report
from sameworld.report.render import report_html

__all__ = [
    "FilmRow",
    "HeldOut",
    "ReportData",
    "load_report",
    "pack",
    "report_html",
    "report_of",
    "save_page",
    "save_report",
    "unpack",
]
