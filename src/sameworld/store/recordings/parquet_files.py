"""Parquet tables: columns of numbers, times and fixed lists of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.clocks import split_unit
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.tables import Column, Table, unique_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_parquet_table"]


def read_parquet_table(path: Path, options: ReadOptions) -> Table:
    """Read the columns of numbers of a Parquet file.

    Raises:
        StoreError: Truncated or damaged, too large, or no column of numbers.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            meta = file.metadata
            if meta.num_rows * max(meta.num_columns, 1) * 8 > options.limit:
                raise StoreError(
                    f"'{path}' declares {meta.num_rows} rows of {meta.num_columns} columns, more "
                    f"than the limit of {options.limit} bytes."
                )
            return _table(path, file.read(), options)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as cause:
        raise StoreError(
            f"'{path}' is truncated or no usable Parquet file (its index stands at the end): "
            f"{str(cause)[:300]}."
        ) from cause


def _table(path: Path, table: pa.Table, options: ReadOptions) -> Table:
    named: list[tuple[str, Array]] = []
    left: list[str] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        found = _numbers(column, options.columns)
        if found is None:
            left.append(name)
        elif found.ndim == 1:
            named.append((name, found))
        else:
            named.extend((f"{name}_{i}", found[:, i]) for i in range(found.shape[1]))
    if not named:
        raise StoreError(f"'{path}' has no column of numbers among {listed(left)}.")
    parted = [split_unit(name) for name, _ in named]
    names, notes = unique_names([name for name, _ in parted])
    if left:
        notes.append(f"Column(s) {listed(left)} hold no numbers and were left out.")
    columns = [
        Column(name=name, unit=unit, values=values)
        for name, (_, unit), (_, values) in zip(names, parted, named, strict=True)
    ]
    return Table(
        id=path.stem,
        file=path.name,
        where=f"'{path}'",
        columns=tuple(columns),
        notes=tuple(notes),
    )


def _numbers(column: pa.ChunkedArray, most: int) -> Array | None:
    """Numbers [T] or [T, D]; ``None`` for anything else."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.float64) * scale
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).to_numpy(), dtype=np.float64)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return _listed(column, most)
    return None


def _listed(column: pa.ChunkedArray, most: int) -> Array | None:
    """Lists of numbers, all of one length."""
    import pyarrow as pa

    inner = column.type.value_type
    if not (pa.types.is_floating(inner) or pa.types.is_integer(inner)) or column.null_count:
        return None
    flat = np.concatenate(
        [np.asarray(c.flatten(), dtype=np.float64) for c in column.chunks] or [[]]
    )
    rows = len(column)
    if not rows or len(flat) % rows or not 0 < len(flat) // rows <= most:
        return None
    lengths = {len(c) for c in column.slice(0, 1000)}
    return flat.reshape(rows, -1) if lengths == {len(flat) // rows} else None
