"""What ``identify`` and ``demo`` share: calibrate under a progress bar, write the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sameworld.cli.console import Grid, progress_bar, say, say_grid
from sameworld.core.episode import Episode
from sameworld.core.scene import Scene
from sameworld.loops.calibrate import CalibrateConfig, calibrate
from sameworld.report import report_of, save_report
from sameworld.report.data import ReportData
from sameworld.report.sessions import session_tables
from sameworld.report.tables import channel_rows, verdict_rows
from sameworld.report.words import gate, headline, judgement, learned, moves, trust

__all__ = ["calibrate_and_report"]


def calibrate_and_report(
    scene: Scene,
    episodes: Sequence[Episode],
    *,
    test: Sequence[Episode] = (),
    config: CalibrateConfig,
    out: Path,
    title: str,
    command: str,
) -> int:
    """Run, write ``report.html``, print the summary; 1 if the fitted world is not accepted."""
    with progress_bar() as progress:
        calibration = calibrate(
            scene, episodes, test=test, config=config, out=out, progress=progress
        )
        data = report_of(calibration, title=title, command=command)
        page = save_report(calibration.folder, data)
    _summary(data)
    say(f"Calibrated scene: {calibration.folder / 'scene'}")
    say(f"Report: {page}")
    say(headline(data))
    holdout = calibration.result.holdout
    return 0 if holdout is None or holdout.passed else 1


def _summary(data: ReportData) -> None:
    """Verdicts, errors, and what both mean in words; the most important numbers come last."""
    header = ("parameter", "given", "fitted", "90 % interval", "unit", "verdict")
    rows = tuple(
        (r.address, r.before, r.value, r.interval, r.unit or "1", f"{r.symbol} {r.verdict}")
        for r in verdict_rows(data.result)
    )
    say_grid(Grid(title="Parameters", header=header, rows=rows, right=("given", "fitted")))
    for table in session_tables(data.result):
        header = ("session", "recordings", f"value [{table.unit}]", "90 % interval", "borrowed")
        rows = tuple((r.session, r.episodes, r.value, r.interval, r.borrowed) for r in table.rows)
        say_grid(Grid(title=f"Sessions: {table.address}", header=header, rows=rows))
        say(table.population)
    errors = tuple(
        (r.name, r.before, r.after, r.unit or "1", r.change, r.interval) for r in channel_rows(data)
    )
    header = ("channel", "as given", "fitted", "unit", "change", "90 % interval")
    title = "Typical error on unseen recordings"
    say_grid(Grid(title=title, header=header, rows=errors, right=("as given", "fitted", "change")))
    say(learned(data))
    for name, given, found in moves(data.result):
        say(f"  {name}: {found} (given {given})")
    symbol, _, word = judgement(data)
    for text in (trust(data), gate(data), f"{symbol} The fitted world is {word}."):
        say(text)
