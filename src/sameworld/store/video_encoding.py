"""Images into video files, each frame at its own stamp."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sameworld.core.errors import StoreError, listed

__all__ = ["Codec", "encode_video"]

Codec = Literal["libx264", "libx265", "libsvtav1"]

_TICK = Fraction(1, 1_000_000)
_OPTIONS: dict[str, dict[str, str]] = {
    "libx264": {"crf": "20", "g": "30", "preset": "veryfast"},
    "libx265": {"crf": "22", "g": "30", "preset": "veryfast", "x265-params": "log-level=none"},
    "libsvtav1": {"crf": "30", "g": "30", "preset": "10"},
}


def encode_video(
    path: str | Path,
    images: Iterable[NDArray[np.uint8]],
    time: ArrayLike,
    *,
    codec: Codec = "libx264",
) -> None:
    """Encode images into a new MP4 file, each at its stamp (rounded to a microsecond).

    The coding is lossy. The file is flushed to the disk; it is not moved into place.

    Args:
        path: New file.
        images: Images [H, W, 3] RGB of one size, taken one at a time.
        time: Stamps [N] s, increasing by at least a microsecond; the first becomes 0.
        codec: Encoder.

    Raises:
        StoreError: Images differ in size or number from what is announced, or the codec refuses.
    """
    ticks = _checked_ticks(time, str(path))
    if codec not in get_args(Codec):
        raise StoreError(f"There is no codec '{codec}'. Use one of {listed(get_args(Codec))}.")
    import av
    from av.error import FFmpegError

    try:
        with Path(path).open("xb") as file:
            with av.open(file, "w", format="mp4") as container:
                _encode(container, images, ticks, codec, str(path))
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError, FFmpegError) as cause:
        raise StoreError(f"Cannot encode '{path}' with {codec}: {cause}.") from cause


def _checked_ticks(time: ArrayLike, path: str) -> list[int]:
    stamps = np.asarray(time, dtype=np.float64)
    if stamps.ndim != 1 or not stamps.size or not np.isfinite(stamps).all():
        raise StoreError(f"'{path}': stamps of frames must be finite numbers [N], got {stamps}.")
    ticks = np.round((stamps - stamps[0]) * 1e6)
    if (np.diff(ticks) < 1).any():
        at = int(np.argmax(np.diff(ticks) < 1))
        raise StoreError(
            f"'{path}': frame {at + 1} comes at {stamps[at + 1]:.9g} s, after {stamps[at]:.9g} s. "
            "Stamps must increase by at least a microsecond."
        )
    return [int(t) for t in ticks]


def _encode(
    container: Any, images: Iterable[NDArray[np.uint8]], ticks: list[int], codec: str, path: str
) -> None:
    from av import VideoFrame

    stream: Any = None
    shape: tuple[int, ...] = ()
    count = 0
    for image in images:
        if stream is None:
            shape = _checked_image(image, path)
            stream = _output(container, shape, ticks, codec)
        if image.shape != shape or image.dtype != np.uint8:
            raise StoreError(
                f"'{path}': image {count} has shape {image.shape} ({image.dtype}), the first one "
                f"{shape} (uint8)."
            )
        if count == len(ticks):
            raise StoreError(f"'{path}': there are more images than the {count} stamps.")
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
        frame.pts, frame.time_base = ticks[count], _TICK
        container.mux(stream.encode(frame))
        count += 1
    if count < len(ticks):
        raise StoreError(f"'{path}': there are {len(ticks)} stamps, but only {count} images.")
    container.mux(stream.encode())


def _checked_image(image: NDArray[np.uint8], path: str) -> tuple[int, ...]:
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise StoreError(f"'{path}': images are RGB [H, W, 3], got shape {image.shape}.")
    return image.shape


def _output(container: Any, shape: tuple[int, ...], ticks: list[int], codec: str) -> Any:
    step = float(np.median(np.diff(ticks))) if len(ticks) > 1 else 1e6 / 30
    rate = Fraction(min(max(1e6 / step, 1.0), 1000.0)).limit_denominator(1000)
    stream = container.add_stream(codec, rate=rate, options=_OPTIONS[codec])
    stream.height, stream.width = shape[:2]
    odd = shape[0] % 2 or shape[1] % 2
    stream.pix_fmt = "yuv444p" if odd else "yuv420p"
    stream.codec_context.time_base = stream.time_base = _TICK
    return stream
