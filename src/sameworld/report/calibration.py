"""From a finished calibration to its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sameworld.report.data import FilmRow, HeldOut, ReportData

if TYPE_CHECKING:
    from sameworld.loops.calibrate import Calibration

__all__ = ["report_of"]

#: Film strips are shown small; taller images [px] only make the page heavy.
_TALLEST = 240

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
            FilmRow(label=strip.label, time=strip.time, images=_shrunk(strip.images))
            for strip in calibration.film
        ),
        provenance={**ran, **calibration.provenance},
        files=present,
    )


def _shrunk(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [N, H, W, 3] averaged over whole blocks until they are at most 240 px tall."""
    factor = -(-images.shape[1] // _TALLEST)
    height, width = images.shape[1] // factor, images.shape[2] // factor
    cut = images[:, : height * factor, : width * factor]
    blocks = cut.reshape(len(images), height, factor, width, factor, 3)
    return np.round(blocks.mean(axis=(2, 4))).astype(np.uint8)
