"""Files of a LeRobot dataset but its videos: rows, episodes, tasks, statistics, info."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sameworld.store.files import write_json
from sameworld.store.lerobot.plan import FEATURES, ExportPlan
from sameworld.store.lerobot.stats import Stats

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["DataFiles", "episode_row", "info_record", "write_tables"]

_CHUNK = 1000
_DATA_MB, _VIDEO_MB = 100, 200
_PATH = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_CODECS = {"libx264": "h264", "libx265": "hevc", "libsvtav1": "av1"}


@dataclass(kw_only=True)
class DataFiles:
    """Writes rows, one row group per episode, into files of about 100 MB.

    Attributes:
        folder: The dataset.
        plan: What is exported.
        rows: Rows written so far.
    """

    folder: Path
    plan: ExportPlan
    rows: int = 0
    _files: int = 0
    _bytes: int = 0
    _writer: pq.ParquetWriter | None = field(default=None)

    def __enter__(self) -> DataFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def append(self, columns: Mapping[str, NDArray[np.generic]]) -> dict[str, int]:
        """Write an episode; returns where it stands (``data/...`` and ``dataset_...`` columns)."""
        import pyarrow.parquet as pq

        table = _table(columns)
        if self._writer is not None and self._bytes + table.nbytes > _DATA_MB << 20:
            self._writer.close()
            self._writer, self._bytes, self._files = None, 0, self._files + 1
        chunk, file = divmod(self._files, _CHUNK)
        if self._writer is None:
            path = self.folder / "data" / f"chunk-{chunk:03d}" / f"file-{file:03d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(path, table.schema, compression="snappy")
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._bytes += table.nbytes
        begin, self.rows = self.rows, self.rows + table.num_rows
        return {
            "data/chunk_index": chunk,
            "data/file_index": file,
            "dataset_from_index": begin,
            "dataset_to_index": self.rows,
        }


def _table(columns: Mapping[str, NDArray[np.generic]]) -> pa.Table:
    """Vectors as lists of one length; a vector of one number is a plain number (LeRobot's rule)."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, values in columns.items():
        flat = pa.array(values.reshape(-1))
        width = values.shape[1] if values.ndim > 1 else 1
        found[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    return pa.table(found)


def episode_row(
    number: int,
    task: str,
    rows: int,
    place: Mapping[str, int],
    stats: Mapping[str, Stats],
    plan: ExportPlan,
    fps: int,
) -> dict[str, object]:
    """Line of an episode in ``meta/episodes``."""
    row: dict[str, object] = {"episode_index": number, "tasks": [task], "length": rows, **place}
    for camera in plan.cameras.values():
        row[f"videos/{camera}/chunk_index"] = number // _CHUNK
        row[f"videos/{camera}/file_index"] = number % _CHUNK
        row[f"videos/{camera}/from_timestamp"] = 0.0
        row[f"videos/{camera}/to_timestamp"] = rows / fps
    for name, found in stats.items():
        for what, value in found.items():
            row[f"stats/{name}/{what}"] = _plain(what, value)
    return row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def _plain(what: str, value: NDArray[np.float64]) -> list[Any]:
    return value.astype(np.int64).tolist() if what == "count" else value.tolist()


def info_record(
    plan: ExportPlan,
    fps: int,
    robot: str,
    sizes: Mapping[str, tuple[int, int]],
    codec: str,
    episodes: int,
    rows: int,
    tasks: Mapping[str, int],
) -> dict[str, Any]:
    """Content of ``meta/info.json``."""
    return {
        "codebase_version": "v3.0",
        "robot_type": robot or None,
        "total_episodes": episodes,
        "total_frames": rows,
        "total_tasks": len(tasks),
        "chunks_size": _CHUNK,
        "data_files_size_in_mb": _DATA_MB,
        "video_files_size_in_mb": _VIDEO_MB,
        "fps": fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{_PATH}.parquet",
        "video_path": f"videos/{{video_key}}/{_PATH}.mp4" if sizes else None,
        "features": _features(plan, fps, sizes, codec),
    }


def _features(
    plan: ExportPlan, fps: int, sizes: Mapping[str, tuple[int, int]], codec: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for role, feature in FEATURES.items():
        labels = [label for c in plan.of(role) for label in c.labels]
        if labels:
            found[feature] = {"dtype": "float32", "shape": [len(labels)], "names": labels}
    for camera, (height, width) in sizes.items():
        found[camera] = {
            "dtype": "video",
            "shape": [height, width, 3],
            "names": ["height", "width", "channels"],
            "info": {
                "video.height": height,
                "video.width": width,
                "video.codec": _CODECS[codec],
                "video.pix_fmt": "yuv444p" if height % 2 or width % 2 else "yuv420p",
                "video.is_depth_map": False,
                "video.fps": fps,
                "video.channels": 3,
                "has_audio": False,
            },
        }
    found["timestamp"] = {"dtype": "float32", "shape": [1], "names": None}
    for name in ("frame_index", "episode_index", "index", "task_index"):
        found[name] = {"dtype": "int64", "shape": [1], "names": None}
    return found


def write_tables(
    folder: Path,
    info: Mapping[str, Any],
    rows: Sequence[Mapping[str, object]],
    stats: Mapping[str, Stats],
    tasks: Mapping[str, int],
) -> None:
    """Write ``meta/``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    meta = folder / "meta"
    write_json(meta / "info.json", info)
    plain = {n: {w: _plain(w, v) for w, v in found.items()} for n, found in stats.items()}
    write_json(meta / "stats.json", plain)
    path = meta / "episodes" / "chunk-000" / "file-000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    pq.write_table(_tasks_table(tasks), meta / "tasks.parquet")


def _tasks_table(tasks: Mapping[str, int]) -> pa.Table:
    """Task texts as the index of a data frame, which is how LeRobot reads them."""
    import pyarrow as pa

    columns = {
        "task_index": pa.array(list(tasks.values()), pa.int64()),
        "task": pa.array(list(tasks), pa.string()),
    }
    numbers = {"pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    texts = {"pandas_type": "unicode", "numpy_type": "object", "metadata": None}
    note = {
        "index_columns": ["task"],
        "column_indexes": [
            {"name": None, "field_name": None, **texts, "metadata": {"encoding": "UTF-8"}}
        ],
        "columns": [
            {"name": "task_index", "field_name": "task_index", **numbers},
            {"name": "task", "field_name": "task", **texts},
        ],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    return pa.table(columns).replace_schema_metadata({"pandas": json.dumps(note)})
