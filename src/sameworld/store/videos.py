"""Video files: which frames they hold and when, and single frames in any order.

Decoding goes through FFmpeg (PyAV): H.264, HEVC, AV1, VP9 in MP4, Matroska, WebM or AVI.
A frame has a number, counted in the order of display, and a stamp [s] on the clock of the file.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Stream
from sameworld.core.errors import StoreError
from sameworld.store.pictures import parquet_pictures

if TYPE_CHECKING:
    import av.container

__all__ = [
    "VideoFile",
    "VideoLimits",
    "open_video",
    "stream_frames",
    "video_frames",
]

#: Containers that are opened. Playlists, which name other files, are not among them.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi"
_TICK = Fraction(1, 1_000_000)


@dataclass(frozen=True, kw_only=True)
class VideoLimits:
    """What is refused before memory is taken for it.

    Attributes:
        pixels: Most pixels of a frame.
        frames: Most frames of a file.
    """

    pixels: int = 1 << 26
    frames: int = 1 << 24

    def __post_init__(self) -> None:
        if self.pixels < 1 or self.frames < 1:
            raise StoreError(f"Limits of a video must be positive, got {self}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoFile:
    """What a video file holds, read without decoding it.

    Attributes:
        path: The file.
        codec: Name of the coding, e.g. ``h264``, ``av1``.
        width: Width of a frame [pixel].
        height: Height of a frame [pixel].
        time: Stamps of the frames [N] s on the clock of the file, in the order of display.
    """

    path: Path
    codec: str
    width: int
    height: int
    time: Array
    _ticks: tuple[int, ...] = field(repr=False)
    _keys: tuple[tuple[int, int], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.time)

    def numbers_at(self, times: ArrayLike) -> NDArray[np.int64]:
        """Numbers of the frames nearest to ``times`` [M] s."""
        wanted = np.asarray(times, dtype=np.float64)
        after = np.clip(np.searchsorted(self.time, wanted), 1, max(len(self) - 1, 1))
        before = after - 1
        if len(self) < 2:
            return np.zeros(len(wanted), dtype=np.int64)
        nearer = wanted - self.time[before] <= self.time[after] - wanted
        return np.where(nearer, before, after).astype(np.int64)


def open_video(path: str | Path, *, limits: VideoLimits | None = None) -> VideoFile:
    """Read which frames a video file holds; nothing is decoded.

    Args:
        path: Video file.
        limits: What is refused as absurd.

    Raises:
        StoreError: Missing, damaged, no video, no decoder, sizes or counts beyond the limits.
    """
    path, limits = Path(path), limits or VideoLimits()
    with _Opened(path) as container:
        stream = container.streams.video[0]
        width, height = _sizes(path, stream, limits)
        if stream.frames > limits.frames:
            raise StoreError(
                f"'{path}' claims {stream.frames} frames, more than the limit of {limits.frames}."
            )
        base = stream.time_base or _TICK
        ticks: list[int] = []
        keys: list[tuple[int, int]] = []
        for packet in container.demux(stream):
            if packet.pts is None or packet.is_discard:
                continue
            ticks.append(packet.pts)
            if packet.is_keyframe:
                keys.append((packet.pts, packet.pts if packet.dts is None else packet.dts))
            if len(ticks) > limits.frames:
                raise StoreError(f"'{path}' has more than {limits.frames} frames.")
        codec = stream.codec_context.codec.canonical_name
    if not ticks:
        raise StoreError(f"'{path}' holds no frame.")
    ordered = sorted(ticks)
    return VideoFile(
        path=path,
        codec=codec,
        width=width,
        height=height,
        time=np.array(ordered, dtype=np.float64) * float(base),
        _ticks=tuple(ordered),
        _keys=tuple(sorted(keys)),
    )


def video_frames(
    video: VideoFile | str | Path,
    numbers: Iterable[int] | None = None,
    *,
    limits: VideoLimits | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """Decode frames one after the other; memory holds a frame, not the film.

    Args:
        video: File, or what ``open_video`` said of it.
        numbers: Frames wanted, in any order and with repetition; all if ``None``.
        limits: What is refused as absurd.

    Returns:
        Images [H, W, 3], RGB.

    Raises:
        StoreError: No such frame, no decoder, or damage; names the file and the frame.
    """
    limits = limits or VideoLimits()
    found = video if isinstance(video, VideoFile) else open_video(video, limits=limits)
    wanted = range(len(found)) if numbers is None else [int(n) for n in numbers]
    outside = [n for n in wanted if not 0 <= n < len(found)]
    if outside:
        raise StoreError(f"'{found.path}' has frames 0 to {len(found) - 1}, not {outside[0]}.")
    return _decoded(found, wanted, limits)


def stream_frames(
    folder: str | Path,
    stream: Stream,
    rows: Iterable[int] | None = None,
    *,
    limits: VideoLimits | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """Decode the images of a stream whose values are frame numbers.

    The source is a video, or a Parquet file that holds pictures in a column named like the stream;
    then the values are row numbers.

    Args:
        folder: Folder that ``stream.source`` is relative to.
        stream: Stream of kind ``images``.
        rows: Rows of the stream wanted; all if ``None``.
        limits: What is refused as absurd.

    Returns:
        Images [H, W, 3], RGB, one per row.

    Raises:
        StoreError: The stream holds numbers, or as ``video_frames``.
    """
    if stream.kind != "images":
        raise StoreError(f"Stream '{stream.name}' holds numbers; frames come from image streams.")
    path = Path(folder) / stream.source
    numbers = np.asarray(stream.values).reshape(-1).astype(np.int64)
    chosen = numbers if rows is None else numbers[[int(r) for r in rows]]
    wanted = [int(n) for n in chosen]
    if path.suffix == ".parquet":
        pixels = (limits or VideoLimits()).pixels
        return parquet_pictures(path, stream.name, wanted, pixels=pixels)
    return video_frames(path, wanted, limits=limits)


# ---- reading --------------------------------------------------------------------------------


class _Opened:
    """A container that is closed on the way out and whose errors name the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._container: Any = None

    def __enter__(self) -> av.container.InputContainer:
        import av
        from av.error import FFmpegError

        if not self._path.is_file():
            raise StoreError(f"The video '{self._path}' is missing.")
        options = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}
        try:
            self._container = av.open(str(self._path.absolute()), options=options)
        except (OSError, ValueError, FFmpegError) as cause:
            raise StoreError(
                f"'{self._path}' is damaged or no video file that is read ({_reason(cause)})."
            ) from cause
        if not self._container.streams.video:
            self._container.close()
            raise StoreError(f"'{self._path}' holds no video.")
        return self._container

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        from av.error import FFmpegError

        self._container.close()
        if kind is not None and issubclass(kind, FFmpegError):
            raise StoreError(f"'{self._path}' is damaged ({_reason(error)}).") from None


def _decoded(
    video: VideoFile, numbers: Iterable[int], limits: VideoLimits
) -> Iterator[NDArray[np.uint8]]:
    with _Opened(video.path) as container:
        stream = container.streams.video[0]
        _sizes(video.path, stream, limits)
        stream.codec_context.options = {"max_pixels": str(limits.pixels)}
        cursor = _Cursor(video, container)
        for number in numbers:
            yield cursor.image(number)


class _Cursor:
    """Goes forward while it can; seeks to the key frame before a frame that is elsewhere."""

    def __init__(self, video: VideoFile, container: av.container.InputContainer) -> None:
        self._video, self._container = video, container
        self._frames: Iterator[Any] = container.decode(video=0)
        self._at = -math.inf
        self._image: NDArray[np.uint8] | None = None

    def image(self, number: int) -> NDArray[np.uint8]:
        target = self._video._ticks[number]
        if self._at == target and self._image is not None:
            return self._image.copy()
        key = bisect_right(self._video._keys, (target, math.inf)) - 1
        if key >= 0 and (target <= self._at or self._video._keys[key][0] > self._at):
            self._seek(self._video._keys[key][1])
        frame = self._next(target)
        if frame is None or frame.pts != target:
            self._seek(self._video._ticks[0])
            frame = self._next(target)
        if frame is None or frame.pts != target or frame.is_corrupt:
            raise StoreError(
                f"'{self._video.path}': frame {number} cannot be decoded. The file is damaged; "
                "restore it from the recording."
            )
        self._image = self._converted(frame)
        return self._image.copy()

    def _seek(self, tick: int) -> None:
        self._container.seek(tick, stream=self._container.streams.video[0])
        self._frames = self._container.decode(video=0)

    def _next(self, target: int) -> Any:
        """First frame not shown before ``target``."""
        for frame in self._frames:
            if frame.pts is not None and frame.pts >= target:
                self._at = frame.pts
                return frame
        return None

    def _converted(self, frame: Any) -> NDArray[np.uint8]:
        video = self._video
        if (frame.width, frame.height) != (video.width, video.height):
            raise StoreError(
                f"'{video.path}' changes its frame size from {video.width}x{video.height} to "
                f"{frame.width}x{frame.height}."
            )
        return frame.to_ndarray(format="rgb24")


def _sizes(path: Path, stream: Any, limits: VideoLimits) -> tuple[int, int]:
    if stream.codec_context is None:
        raise StoreError(f"'{path}' is coded in a way that no decoder here reads.")
    width, height = int(stream.width or 0), int(stream.height or 0)
    if width < 1 or height < 1:
        raise StoreError(f"'{path}' does not say how large its frames are.")
    if width * height > limits.pixels:
        raise StoreError(
            f"'{path}' has frames of {width}x{height} pixels, more than the limit of "
            f"{limits.pixels}. Raise VideoLimits.pixels if they are real."
        )
    return width, height


def _reason(cause: object) -> str:
    return str(getattr(cause, "strerror", None) or cause)
