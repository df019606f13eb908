"""From a finished calibration to its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sameworld.report.data import FilmRow, HeldOut, ReportData

if TYPE_CHECKING:
    from sameworld.loops.calibrate import Calibration
    from sameworld.loops.film import FilmStrip

__all__ = ["report_of"]

#: Film strips are shown small; taller images [px] only make the page heavy.
_TALLEST = 240
#: A pixel that changes by more than this between images shows something that moves.
_MOVES = 24
#: Room around what moves, and the smallest part of the picture that is shown.
_ROOM = 1.2
_CLOSEST = 0.3
#: Share of the recorded picture in the simulated ones.
_FAINT = 0.3

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
        film=_film(calibration.film),
        provenance={**ran, **calibration.provenance},
        files=present,
    )


def _film(strips: Sequence[FilmStrip]) -> tuple[FilmRow, ...]:
    """Rows for the page: one window, small images, the first row faintly behind the others."""
    images = [_shrunk(i) for i in _framed([s.images for s in strips])]
    return tuple(
        FilmRow(label=s.label, time=s.time, images=i if k == 0 else _over(i, images[0]))
        for k, (s, i) in enumerate(zip(strips, images, strict=True))
    )


def _over(images: NDArray[np.uint8], ghost: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images with another course of events showing through; equal pixels stay as they are."""
    return np.round((1 - _FAINT) * images + _FAINT * ghost).astype(np.uint8)


def _framed(strips: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Cut all strips [N, H, W, 3] to the one window, of their own shape, in which things move."""
    if not strips:
        return []
    frames = np.concatenate(strips)
    spread = frames.max(axis=0).astype(np.int16) - frames.min(axis=0)
    rows, columns = np.nonzero(spread.max(axis=2) > _MOVES)
    height, width = frames.shape[1:3]
    if not len(rows):
        return list(strips)
    ends = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
    share = max((ends[1] - ends[0]) / height, (ends[3] - ends[2]) / width)
    share = min(max(_ROOM * share, _CLOSEST), 1.0)
    tall, wide = round(share * height), round(share * width)
    top = int(np.clip((ends[0] + ends[1] - tall) // 2, 0, height - tall))
    left = int(np.clip((ends[2] + ends[3] - wide) // 2, 0, width - wide))
    return [strip[:, top : top + tall, left : left + wide] for strip in strips]


def _shrunk(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [N, H, W, 3] averaged over whole blocks until they are at most 240 px tall."""
    factor = -(-images.shape[1] // _TALLEST)
    height, width = images.shape[1] // factor, images.shape[2] // factor
    cut = images[:, : height * factor, : width * factor]
    blocks = cut.reshape(len(images), height, factor, width, factor, 3)
    return np.round(blocks.mean(axis=(2, 4))).astype(np.uint8)
