"""Pictures kept as PNG or JPEG inside Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import StoreError

__all__ = ["parquet_pictures"]

_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "mjpeg", b"RIFF": "webp"}
_BYTES = 1 << 30


def parquet_pictures(
    path: Path, column: str, rows: Sequence[int], *, pixels: int
) -> Iterator[NDArray[np.uint8]]:
    """Decode pictures of a column, one row after the other.

    Args:
        path: Parquet file.
        column: Column of ``bytes``, or of structs with the fields ``bytes`` and ``path``.
        rows: Row numbers in the file, in any order.
        pixels: Most pixels of a picture.

    Returns:
        Images [H, W, 3], RGB.

    Raises:
        StoreError: Missing, damaged, or no pictures; names the file and the row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise StoreError(f"'{path}' is missing.")
    try:
        with pq.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                raise StoreError(f"'{path}' has no column '{column}'.")
            source = _Cells(file, path, column)
            for row in rows:
                yield _decoded(source.cell(int(row)), f"'{path}', row {row} of '{column}'", pixels)
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise StoreError(f"'{path}' is damaged or no Parquet file: {cause}.") from cause


class _Cells:
    """Cells of one column, one row group in memory."""

    def __init__(self, file: Any, path: Path, column: str) -> None:
        self._file, self._path, self._column = file, path, column
        counts = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._group, self._cells = -1, None

    def cell(self, row: int) -> Any:
        if not 0 <= row < (self._ends[-1] if len(self._ends) else 0):
            raise StoreError(f"'{self._path}' has no row {row}.")
        group = int(np.searchsorted(self._ends, row, side="right"))
        if group != self._group or self._cells is None:
            size = self._file.metadata.row_group(group).total_byte_size
            if size > _BYTES:
                raise StoreError(f"Row group {group} of '{self._path}' has {size} bytes.")
            table = self._file.read_row_group(group, columns=[self._column], use_threads=False)
            self._group, self._cells = group, table.column(0)
        first = int(self._ends[group - 1]) if group else 0
        value: Any = self._cells[row - first].as_py()
        return value.get("bytes") if isinstance(value, dict) else value


def _decoded(content: Any, where: str, pixels: int) -> NDArray[np.uint8]:
    from av import CodecContext, Packet
    from av.error import FFmpegError

    kind = None
    if isinstance(content, bytes):
        kind = next((k for magic, k in _KINDS.items() if content.startswith(magic)), None)
    if kind is None:
        raise StoreError(f"{where} holds no PNG, JPEG or WebP picture.")
    try:
        decoder: Any = CodecContext.create(kind, "r")
        decoder.options = {"max_pixels": str(pixels)}
        found = [*decoder.decode(Packet(content)), *decoder.decode(None)]
    except (FFmpegError, ValueError) as cause:
        raise StoreError(
            f"{where} is damaged or has more than {pixels} pixels ({cause})."
        ) from cause
    if not found:
        raise StoreError(f"{where} is a damaged picture.")
    return found[0].to_ndarray(format="rgb24")
