"""Parquet files of others: columns to arrays, with limits before memory is taken."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import StoreError, listed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["RowFiles", "column_names", "read_table", "samples"]

_COLUMN_LIMIT = 100_000


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as cause:
        raise StoreError(f"'{path}' is damaged or no Parquet file: {cause}.") from cause


def _opened(path: Path) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    if not path.is_file():
        raise StoreError(f"'{path}' is missing.")
    with _guarded(path):
        return pq.ParquetFile(path)


def _demand_small(
    file: pq.ParquetFile, path: Path, groups: Iterable[int], columns: Sequence[str], limit: int
) -> None:
    """Refuse row groups whose columns take more memory than the limit, before they are read."""
    held = 0
    for group in groups:
        meta = file.metadata.row_group(group)
        held += meta.num_rows
        _demand_within(path, max(held, 8 * meta.num_rows * bool(columns)), limit)
        # Reading a row checks the columns' part of the footer. Asked for it directly, pyarrow ends
        # the process where that part is damaged.
        next(file.iter_batches(1, [group], columns=columns, use_threads=False), None)
        for leaf in _leaves(file, columns):
            column = meta.column(leaf)
            held += max(8 * column.num_values, column.total_uncompressed_size)
        _demand_within(path, held, limit)


def _leaves(file: pq.ParquetFile, columns: Sequence[str]) -> list[int]:
    """Numbers of the leaf columns that belong to columns of the table."""
    starts = tuple(f"{name}." for name in columns)
    paths = [file.schema.column(n).path for n in range(file.metadata.num_columns)]
    return [n for n, path in enumerate(paths) if f"{path}.".startswith(starts)]


def read_table(path: Path, columns: Sequence[str] | None = None, *, limit: int) -> pa.Table:
    """Some columns of a whole file.

    Args:
        path: Parquet file.
        columns: Columns wanted, of which those that exist are read; all if ``None``.
        limit: Largest memory [bytes].

    Raises:
        StoreError: Missing, damaged, or larger than the limit.
    """
    import pyarrow as pa

    with _opened(path) as file, _guarded(path):
        names = _names(file, path)
        chosen = names if columns is None else [c for c in columns if c in names]
        _demand_small(file, path, range(file.metadata.num_row_groups), chosen, limit)
        parts: list[pa.RecordBatch] = []
        held = 0
        for part in file.iter_batches(1024, columns=chosen, use_threads=False):
            held += part.nbytes
            _demand_within(path, held, limit)
            parts.append(part)
        schema = pa.schema([file.schema_arrow.field(name) for name in chosen])
        return pa.Table.from_batches(parts, parts[0].schema if parts else schema)


def _demand_within(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise StoreError(f"'{path}' declares {size} bytes, more than the limit of {limit}.")


def column_names(path: Path) -> list[str]:
    """Columns of a Parquet file.

    Raises:
        StoreError: Missing or damaged.
    """
    with _opened(path) as file:
        return _names(file, path)


def _names(file: pq.ParquetFile, path: Path) -> list[str]:
    if file.metadata.num_columns > _COLUMN_LIMIT:
        raise StoreError(f"'{path}' declares {file.metadata.num_columns} columns.")
    return file.schema_arrow.names


@dataclass(kw_only=True)
class RowFiles:
    """Reads the rows of single episodes from data files; the latest file stays open.

    Attributes:
        folder: The dataset.
        limit: Largest memory for one row group [bytes].
        skipped: Columns that are not read (pictures, text).
    """

    folder: Path
    limit: int
    skipped: frozenset[str] = frozenset()
    _open: OrderedDict[str, _RowFile] = field(default_factory=OrderedDict[str, "_RowFile"])

    def __enter__(self) -> RowFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for opened in self._open.values():
            opened.file.close()

    def rows(self, name: str, episode: int) -> tuple[pa.Table, NDArray[np.int64]]:
        """Rows of an episode, and the numbers of those rows in the file.

        Raises:
            StoreError: Missing, damaged or too large; or the file has no row of the episode.
        """
        path = self.folder / name
        opened = self._file(path, name)
        with _guarded(path):
            numbers = np.flatnonzero(opened.episodes == episode)
            if not numbers.size:
                held = listed(map(str, np.unique(opened.episodes)[:12].tolist()))
                raise StoreError(f"'{path}' has no row of episode {episode}; it has {held}.")
            return self._taken(opened, numbers), numbers

    def names(self, name: str) -> tuple[str, ...]:
        """Columns of a data file, also those that are skipped.

        Raises:
            StoreError: Missing or damaged.
        """
        return tuple(self._file(self.folder / name, name).file.schema_arrow.names)

    def _file(self, path: Path, name: str) -> _RowFile:
        if name not in self._open:
            while self._open:
                self._open.popitem()[1].file.close()
            file = _opened(path)
            with _guarded(path):
                self._open[name] = _RowFile(path=path, file=file, episodes=self._labels(file, path))
        return self._open[name]

    def _labels(self, file: pq.ParquetFile, path: Path) -> NDArray[Any]:
        if "episode_index" not in _names(file, path):
            file.close()
            raise StoreError(f"'{path}' has no column 'episode_index'.")
        groups = range(file.metadata.num_row_groups)
        _demand_small(file, path, groups, ["episode_index"], self.limit)
        column = file.read(columns=["episode_index"], use_threads=False).column(0)
        return column.combine_chunks().to_numpy(zero_copy_only=False)

    def _taken(self, opened: _RowFile, numbers: NDArray[np.int64]) -> pa.Table:
        import pyarrow as pa

        counts = [
            opened.file.metadata.row_group(g).num_rows for g in range(opened.file.num_row_groups)
        ]
        ends = np.cumsum(counts)
        groups = sorted({int(g) for g in np.searchsorted(ends, numbers, side="right")})
        parts: list[pa.Table] = []
        for group in groups:
            inside = numbers[(numbers >= ends[group] - counts[group]) & (numbers < ends[group])]
            table = self._group(opened, group)
            parts.append(table.take(pa.array(inside - (ends[group] - counts[group]))))
        return pa.concat_tables(parts)

    def _group(self, opened: _RowFile, group: int) -> pa.Table:
        if opened.group != group or opened.table is None:
            names = opened.file.schema_arrow.names
            names = [name for name in names if name not in self.skipped]
            _demand_small(opened.file, opened.path, [group], names, self.limit)
            opened.table = opened.file.read_row_group(group, columns=names, use_threads=False)
            opened.group = group
        return opened.table


@dataclass(kw_only=True)
class _RowFile:
    """An open data file, the episode of each row, and its latest row group."""

    path: Path
    file: pq.ParquetFile
    episodes: NDArray[Any]
    group: int = -1
    table: pa.Table | None = None


def samples(column: pa.ChunkedArray) -> NDArray[Any] | None:
    """Numbers [T, ...] of a column of numbers, booleans or lists of equal length.

    Nulls become NaN. Returns ``None`` if the lists differ in length or hold something else.
    """
    import pyarrow as pa

    array: Any = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    shape = [len(array)]
    while pa.types.is_list(array.type) or _is_other_list(array.type):
        width = _width(array)
        if width is None:
            return None
        array = array.flatten()
        shape.append(width)
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    if array.null_count and not pa.types.is_floating(kind):
        array = array.cast(pa.float64())
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    return values.reshape(shape)


def _is_other_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _width(array: Any) -> int | None:
    import pyarrow as pa

    if array.null_count:
        return None
    if pa.types.is_fixed_size_list(array.type):
        return array.type.list_size
    lengths = np.unique(np.asarray(array.value_lengths()))
    if len(lengths) > 1:
        return None
    return int(lengths[0]) if len(lengths) else 0
