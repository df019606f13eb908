"""One channel of many episodes in one Parquet file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel
from sameworld.core.errors import StoreError, listed
from sameworld.store.files import replacing

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["ChannelReader", "ChannelWriter", "Place"]

_COLUMNS = ("episode", "time", "value")
_GROUP = 1 << 20
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the samples of one channel of one episode stand.

    Attributes:
        file: Parquet file relative to the store.
        begin: First row.
        rows: Number of rows.
    """

    file: str
    begin: int
    rows: int


@dataclass(kw_only=True)
class ChannelWriter:
    """Writes a channel file atomically: it appears when the block ends well.

    Attributes:
        path: Final place.
        name: Channel name.
        shape: Shape of one sample.
    """

    path: Path
    name: str
    shape: tuple[int, ...]
    _rows: int = 0
    _tables: list[pa.Table] = field(default_factory=list["pa.Table"])

    def __enter__(self) -> ChannelWriter:
        return self

    def append(self, episode: str, channel: Channel) -> int:
        """Add samples; returns the row they begin at."""
        import pyarrow as pa

        begin, rows, width = self._rows, len(channel), prod(self.shape)
        try:
            label = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([episode]))
        except (pa.ArrowException, UnicodeError) as cause:
            raise StoreError(f"Episode id {episode!r} cannot be stored: {cause}.") from cause
        flat = pa.array(channel.values.reshape(-1))
        value = pa.FixedSizeListArray.from_arrays(flat, width) if width else pa.nulls(rows)
        columns = [label.cast(pa.string()), pa.array(channel.time), value]
        self._tables.append(pa.Table.from_arrays(columns, names=list(_COLUMNS)))
        self._rows += rows
        return begin

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        note = json.dumps({"schema": 1, "channel": self.name, "shape": list(self.shape)})
        table = pa.concat_tables(self._tables).replace_schema_metadata({"sameworld": note})
        rows = max(_GROUP // max(prod(self.shape), 1), 1024)
        with replacing(self.path) as file:
            pq.write_table(table, file, row_group_size=rows, compression="zstd")


@dataclass(kw_only=True)
class ChannelReader:
    """Reads ranges of rows from channel files, keeping files and the last row group open.

    Attributes:
        folder: The episode store.
        limit: Largest memory for one range [bytes].
    """

    folder: Path
    limit: int
    _open: dict[str, pq.ParquetFile] = field(default_factory=dict[str, "pq.ParquetFile"])
    _last: dict[str, tuple[int, pa.Table]] = field(
        default_factory=dict[str, "tuple[int, pa.Table]"]
    )

    def __enter__(self) -> ChannelReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._open.values():
            file.close()

    def read(self, place: Place, episode: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Time [T] and samples [T, *shape] of one episode.

        Raises:
            StoreError: Missing or damaged file, other columns, or rows of another episode.
        """
        path = self.folder / place.file
        return _guarded(path, lambda: self._read(path, place, episode, shape))

    def _read(
        self, path: Path, place: Place, episode: str, shape: tuple[int, ...]
    ) -> tuple[Array, Array]:
        file = self._file(path, place.file)
        if place.begin + place.rows > file.metadata.num_rows:
            raise StoreError(
                f"'{path}' has {file.metadata.num_rows} rows, the index places episode "
                f"'{episode}' at rows {place.begin} to {place.begin + place.rows}."
            )
        if place.rows * (prod(shape) + 1) * 8 > self.limit:
            raise StoreError(
                f"'{path}': episode '{episode}' needs more than the limit of {self.limit} bytes."
            )
        table = self._rows(file, place)
        labels = set(table.column("episode").unique().to_pylist())
        if labels != {episode}:
            raise StoreError(
                f"'{path}': rows of episode '{episode}' are labelled {listed(map(str, labels))}. "
                "The file does not belong to this index."
            )
        return _arrays(path, table, shape)

    def _file(self, path: Path, name: str) -> pq.ParquetFile:
        import pyarrow.parquet as pq

        if name not in self._open:
            if not path.is_file():
                raise StoreError(f"'{path}' is missing, although the index names it.")
            if not path.resolve().is_relative_to(self.folder.resolve()):
                raise StoreError(f"'{path}' is a link that leaves the store. Copy the file.")
            file = pq.ParquetFile(path)
            columns = tuple(file.schema_arrow.names)
            if columns != _COLUMNS:
                file.close()
                raise StoreError(
                    f"'{path}' has the columns {listed(columns)}; a channel has {listed(_COLUMNS)}."
                )
            self._open[name] = file
        return self._open[name]

    def _rows(self, file: pq.ParquetFile, place: Place) -> pa.Table:
        import pyarrow as pa

        parts: list[pa.Table] = []
        first = 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            low, high = max(place.begin, first), min(place.begin + place.rows, first + count)
            if low < high:
                parts.append(self._group(file, place.file, group).slice(low - first, high - low))
            first += count
        return pa.concat_tables(parts)

    def _group(self, file: pq.ParquetFile, name: str, group: int) -> pa.Table:
        if name not in self._last or self._last[name][0] != group:
            size = file.metadata.row_group(group).total_byte_size
            if size > self.limit:
                raise StoreError(
                    f"Row group {group} of '{name}' has {size} bytes, more than {self.limit}."
                )
            self._last[name] = (group, file.read_row_group(group, columns=list(_COLUMNS)))
        return self._last[name][1]


def _arrays(path: Path, table: pa.Table, shape: tuple[int, ...]) -> tuple[Array, Array]:
    import pyarrow as pa

    width, rows = prod(shape), table.num_rows
    time, value = table.column("time").combine_chunks(), table.column("value").combine_chunks()
    if time.type != pa.float64() or time.null_count:
        raise StoreError(f"'{path}': column 'time' is {time.type} with {time.null_count} null(s).")
    if not width:
        return time.to_numpy(), np.zeros((rows, *shape))
    if value.type != pa.list_(pa.float64(), width):
        raise StoreError(
            f"'{path}': column 'value' is {value.type}; samples of shape {shape} need a list of "
            f"{width} doubles."
        )
    flat = value.flatten()
    if value.null_count or flat.null_count:
        raise StoreError(f"'{path}': column 'value' has nulls.")
    return time.to_numpy(), flat.to_numpy().reshape(rows, *shape)


def _guarded(path: Path, work: Callable[[], _T]) -> _T:
    import pyarrow as pa

    try:
        return work()
    except (pa.ArrowException, OSError, ValueError, TypeError) as cause:
        raise StoreError(
            f"'{path}' is damaged or no Parquet file: {cause}. Restore it from the recording."
        ) from cause
