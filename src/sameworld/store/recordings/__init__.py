"""Recordings as robots, loggers and people leave them: CSV, NPZ, Parquet, MCAP, ROS bags."""

from sameworld.store.recordings.formats import Found, detect_format
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.reading import open_recordings
from sameworld.store.recordings.report import (
    ColumnReport,
    RecordingReport,
    StreamReport,
    describe_recording,
)
from sameworld.store.recordings.unmapped import unmapped_episode

__all__ = [
    "ColumnReport",
    "Found",
    "ReadOptions",
    "RecordingReport",
    "StreamReport",
    "describe_recording",
    "detect_format",
    "open_recordings",
    "unmapped_episode",
]
