"""From a finished calibration to its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sameworld.report.data import FilmRow, HeldOut, ReportData

if TYPE_CHECKING:
    from sameworld.loops.calibrate import Calibration

__all__ = ["report_of"]

#: What a run folder holds, relative to it.
_FILES = {
    "scene": "scene",
    "belief": "scene/belief.json",
    "posterior table": "posterior.json",
    "full result": "result.json",
    "numbers": "metrics.json",
    "predictions": "predictions.npz",
    "episodes": "episodes",
}


def report_of(calibration: Calibration, *, title: str = "", command: str = "") -> ReportData:
    """Gather what a report shows.

    Args:
        calibration: What ``calibrate`` left.
        title: Title of the page; made from the scene's name if empty.
        command: The command that was run, for the provenance.
    """
    ran = {"command": command} if command else {}
    present = {n: p for n, p in _FILES.items() if (calibration.folder / p).exists()}
    return ReportData(
        title=title or f"Calibration of '{calibration.scene.name}'",
        scene=calibration.scene,
        result=calibration.result,
        channels=calibration.after.spec.observations,
        held_out=tuple(
            HeldOut(episode=episode, before=before, after=after)
            for episode, before, after in zip(
                calibration.test,
                calibration.predicted_before,
                calibration.predicted_after,
                strict=True,
            )
        ),
        film=tuple(
            FilmRow(label=strip.label, time=strip.time, images=strip.images)
            for strip in calibration.film
        ),
        provenance={**ran, **calibration.provenance},
        files=present,
    )
