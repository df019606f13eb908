"""What every benchmark shares: options, the table on the screen, files written whole."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

__all__ = ["Options", "options", "show", "write_json", "write_predictions"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Command line of a benchmark.

    Attributes:
        data: Folder of the data set, ``None`` for the bundled excerpt.
        out: Where the flat JSON goes.
        predictions: Where the raw predictions go.
        threads: Threads for simulations.
        seed: Which draw of the problems.
    """

    data: Path | None
    out: Path | None
    predictions: Path | None
    threads: int
    seed: int


def options(description: str, argv: Sequence[str] | None = None) -> Options:
    """Parse ``--data DIR --out FILE.json --predictions FILE.npz --threads N --seed N``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder of the full data set")
    parser.add_argument("--out", type=Path, help="write the numbers as flat JSON")
    parser.add_argument("--predictions", type=Path, help="write raw held-out predictions (npz)")
    parser.add_argument("--threads", type=int, default=1, help="simulation threads")
    parser.add_argument("--seed", type=int, default=0, help="another draw of synthetic problems")
    found = parser.parse_args(argv)
    return Options(
        data=found.data,
        out=found.out,
        predictions=found.predictions,
        threads=found.threads,
        seed=found.seed,
    )


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; floats get four significant digits."""
    table = Table(title=title)
    for name in columns:
        table.add_column(name, justify="left" if name == columns[0] else "right")
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
    Console(width=140).print(table)


def write_json(path: Path | None, numbers: Mapping[str, float]) -> None:
    """Write flat numbers; NaN becomes null."""
    if path is None:
        return
    plain = {k: float(v) if np.isfinite(v) else None for k, v in numbers.items()}
    _replace(path, json.dumps(plain, indent=1).encode())


def write_predictions(
    path: Path | None, columns: Sequence[str], arrays: Mapping[str, NDArray[np.float64]]
) -> None:
    """Write ``columns`` and per episode ``e{id}``, ``lo{id}``, ``hi{id}`` [rows, columns]."""
    if path is None:
        return
    with tempfile.NamedTemporaryFile(suffix=".npz", delete=False) as handle:
        np.savez_compressed(
            handle, allow_pickle=False, columns=np.array(columns, dtype=np.str_), **dict(arrays)
        )
        temporary = Path(handle.name)
    _replace(path, temporary.read_bytes())
    temporary.unlink()


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    partial.replace(path)
