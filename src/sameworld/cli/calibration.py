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
from sameworld.report.tables import channel_rows, verdict_rows
from sameworld.report.words import judgement, learned, trust

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
    say(f"Report: {page}")
    say(f"Calibrated scene: {calibration.folder / 'scene'}")
    holdout = calibration.result.holdout
    return 0 if holdout is None or holdout.passed else 1


def _summary(data: ReportData) -> None:
    say(learned(data))
    say(trust(data))
    header = ("parameter", "before", "fitted", "90 % interval", "unit", "verdict")
    rows = tuple(
        (r.address, r.before, r.value, r.interval, r.unit or "1", f"{r.symbol} {r.verdict}")
        for r in verdict_rows(data.result)
    )
    say_grid(Grid(title="Parameters", header=header, rows=rows, right=("before", "fitted")))
    errors = tuple((r.name, r.before, r.after, r.change) for r in channel_rows(data))
    header = ("channel", "before", "after", "change")
    say_grid(Grid(title="Median held-out error", header=header, rows=errors, right=header[1:]))
    symbol, _, word = judgement(data.result.holdout)
    say(f"{symbol} The fitted world is {word}.")
