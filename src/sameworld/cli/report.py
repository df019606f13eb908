"""``sameworld report``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from sameworld.cli.console import say
from sameworld.report import load_report, save_page

__all__ = ["Report"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Render report.html of a run folder again.

    Attributes:
        run_folder: Folder that ``sameworld identify`` wrote.
        title: Another title for the page.
    """

    run_folder: Annotated[Positional[Path], arg(metavar="RUN")]
    title: str | None = None

    def run(self) -> int:
        """Render and say where the page is."""
        page = save_page(self.run_folder, load_report(self.run_folder, title=self.title))
        say(f"Report: {page}")
        return 0
