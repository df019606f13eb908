"""Cameras of an episode to video files with a frame per row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Stream
from sameworld.store.lerobot.stats import PictureCounts, Stats
from sameworld.store.video_encoding import Codec, encode_video
from sameworld.store.videos import stream_frames

__all__ = ["latest_rows", "write_film"]


def latest_rows(stamps: Array, times: Array) -> NDArray[np.int64]:
    """Rows of the latest picture at each of ``times`` [T] s: what a camera would have shown."""
    rows = np.searchsorted(stamps, times + 1e-9, side="right") - 1
    return np.maximum(rows, 0).astype(np.int64)


def write_film(
    path: Path, source: Path, stream: Stream, times: Array, *, fps: int, codec: Codec
) -> tuple[tuple[int, int], Stats]:
    """Encode the latest picture of every row.

    Args:
        path: New video file.
        source: Folder that ``stream.source`` is relative to.
        stream: Image stream.
        times: Times of the rows on the stream's clock [T] s.
        fps: Rows a second.
        codec: Encoder.

    Returns:
        Height and width [pixel], and statistics of the pictures.

    Raises:
        StoreError: A picture cannot be decoded or encoded.
    """
    counts = PictureCounts.empty()
    size: list[tuple[int, int]] = []

    def counted() -> Iterator[NDArray[np.uint8]]:
        rows = [int(r) for r in latest_rows(stream.time, times)]
        for image in stream_frames(source, stream, rows):
            size[:] = [(int(image.shape[0]), int(image.shape[1]))]
            counts.add(image)
            yield image

    path.parent.mkdir(parents=True, exist_ok=True)
    encode_video(path, counted(), np.arange(len(times)) / fps, codec=codec)
    return size[0], counts.stats()
