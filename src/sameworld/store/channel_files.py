"""One channel of many episodes in one Parquet file."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
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
#: Numbers in a row group.
_GROUP = 1 << 18
#: Files a reader keeps open, and bytes of row groups it keeps for the next episode.
_FILES = 128
_KEPT = 1 << 27
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
    """Writes a channel file row group by row group; memory holds one row group.

    The file grows under a temporary name and appears when the block ends well.

    Attributes:
        path: Final place.
        name: Channel name.
        shape: Shape of one sample.
    """

    path: Path
    name: str
    shape: tuple[int, ...]
    _rows: int = 0
    _waiting: int = 0
    _tables: list[pa.Table] = field(default_factory=list["pa.Table"])
    _stack: ExitStack = field(default_factory=ExitStack)
    _writer: pq.ParquetWriter | None = None

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
        self._waiting += rows
        if self._waiting >= self._group_rows:
            self._write(self._waiting - self._waiting % self._group_rows)
        return begin

    def __enter__(self) -> ChannelWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self._write(self._waiting)
            except BaseException as failure:
                self._stack.__exit__(type(failure), failure, failure.__traceback__)
                raise
        self._stack.__exit__(kind, error, trace)

    @property
    def _group_rows(self) -> int:
        return max(_GROUP // max(prod(self.shape), 1), 1024)

    def _write(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._tables)
        if self._writer is None:
            self._writer = self._opened(table.schema)
        self._writer.write_table(table.slice(0, rows), row_group_size=self._group_rows)
        # a copy, so that the rest does not keep alive what was written
        rest = table.slice(rows).take(pa.array(np.arange(table.num_rows - rows)))
        self._tables, self._waiting = [rest], rest.num_rows

    def _opened(self, schema: pa.Schema) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        note = json.dumps({"schema": 1, "channel": self.name, "shape": list(self.shape)})
        file = self._stack.enter_context(replacing(self.path))
        schema = schema.with_metadata({"sameworld": note})
        return self._stack.enter_context(pq.ParquetWriter(file, schema, compression="zstd"))


@dataclass(kw_only=True)
class ChannelReader:
    """Reads ranges of rows from channel files, keeping the latest files and row groups open.

    Attributes:
        folder: The episode store.
        limit: Largest memory for one range [bytes].
    """

    folder: Path
    limit: int
    _open: OrderedDict[str, _OpenFile] = field(default_factory=OrderedDict[str, "_OpenFile"])

    def __enter__(self) -> ChannelReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for opened in self._open.values():
            opened.file.close()

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
        opened = self._file(path, place.file)
        count = opened.file.metadata.num_rows
        if place.begin + place.rows > count:
            raise StoreError(
                f"'{path}' has {count} rows, the index places episode "
                f"'{episode}' at rows {place.begin} to {place.begin + place.rows}."
            )
        if place.rows * (prod(shape) + 1) * 8 > self.limit:
            raise StoreError(
                f"'{path}': episode '{episode}' needs more than the limit of {self.limit} bytes."
            )
        table = self._rows(opened, place)
        labels = set(table.column("episode").unique().to_pylist())
        if labels != {episode}:
            raise StoreError(
                f"'{path}': rows of episode '{episode}' are labelled {listed(map(str, labels))}. "
                "The file does not belong to this index."
            )
        return _arrays(path, table, shape)

    def _file(self, path: Path, name: str) -> _OpenFile:
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        self._open[name] = _OpenFile(name=name, file=self._opened(path))
        while len(self._open) > _FILES:
            self._open.popitem(last=False)[1].file.close()
        return self._open[name]

    def _opened(self, path: Path) -> pq.ParquetFile:
        import pyarrow.parquet as pq

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
        return file

    def _rows(self, opened: _OpenFile, place: Place) -> pa.Table:
        import pyarrow as pa

        parts: list[pa.Table] = []
        first = 0
        for group in range(opened.file.num_row_groups):
            count = opened.file.metadata.row_group(group).num_rows
            low, high = max(place.begin, first), min(place.begin + place.rows, first + count)
            if low < high:
                parts.append(self._group(opened, group).slice(low - first, high - low))
            first += count
        return pa.concat_tables(parts)

    def _group(self, opened: _OpenFile, group: int) -> pa.Table:
        if opened.group != group or opened.table is None:
            size = opened.file.metadata.row_group(group).total_byte_size
            if size > self.limit:
                raise StoreError(
                    f"Row group {group} of '{opened.name}' has {size} bytes, more than "
                    f"{self.limit}."
                )
            opened.table = opened.file.read_row_group(group, columns=list(_COLUMNS))
            opened.group = group
            self._forget()
        return opened.table

    def _forget(self) -> None:
        """Drop the row groups used longest ago beyond what may be kept."""
        kept = 0
        for opened in reversed(self._open.values()):
            kept += opened.table.nbytes if opened.table is not None else 0
            if kept > _KEPT and opened is not next(reversed(self._open.values())):
                opened.table = None


@dataclass(kw_only=True)
class _OpenFile:
    """A file being read, with its latest row group."""

    name: str
    file: pq.ParquetFile
    group: int = -1
    table: pa.Table | None = None


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
