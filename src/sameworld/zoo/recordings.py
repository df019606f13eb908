"""Real recordings: a bundled excerpt of cube tosses, and a reader for the whole data set.

Source: S. Pfrommer, M. Halm, M. Posa, "ContactNets: Learning discontinuous contact dynamics with
smooth, implicit representations", CoRL 2020, arXiv 2009.11193; data under the BSD 3-clause licence
(``data/cube_toss.LICENSE``).
"""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import StoreError, listed
from sameworld.core.manifolds import normalised

__all__ = ["TOSS_RATE", "cube_tosses", "read_cube_tosses"]

#: Frames per second of the tracked poses.
TOSS_RATE = 148.0


def cube_tosses(count: int | None = None) -> tuple[Episode, ...]:
    """Load bundled real cube tosses: 100 of 570, in a fixed random order.

    Args:
        count: How many, from the front; all if not given.

    Returns:
        Episodes ``toss_0123`` (index in the full data set) with channels ``cube.pos`` [T, 3] m and
        ``cube.quat`` [T, 4], body to world, in the frame of the board (z up, board near z = 0).

    Raises:
        StoreError: ``count`` is not between 1 and 100.
    """
    packed = files("sameworld.zoo").joinpath("data", "cube_toss.npz").read_bytes()
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        pose, start, index = arrays["pose"], arrays["start"], arrays["index"]
    wanted = len(index) if count is None else count
    if not 1 <= wanted <= len(index):
        raise StoreError(
            f"{count} tosses were asked for; the package holds 1 to {len(index)}. All 570 can be "
            "read with read_cube_tosses(folder)."
        )
    return tuple(
        _toss(int(index[k]), pose[int(start[k]) : int(start[k + 1])]) for k in range(wanted)
    )


def read_cube_tosses(folder: Path) -> tuple[Episode, ...]:
    """Read all tosses of a data folder, in the order of the data set.

    Args:
        folder: Folder with ``tosses.npz``: ``state`` [N, >= 7] starting with position [m] and
            quaternion wxyz, and ``start`` [tosses + 1], the first row of each toss.

    Raises:
        StoreError: The file is missing or does not hold tosses.
    """
    path = Path(folder) / "tosses.npz"
    state, start = _read_arrays(path)
    return tuple(
        _toss(index, state[begin:end, :7]) for index, (begin, end) in enumerate(pairwise(start))
    )


def _read_arrays(path: Path) -> tuple[NDArray[np.float32], list[int]]:
    if not path.is_file():
        raise StoreError(f"There is no '{path}'. Give the folder that holds 'tosses.npz'.")
    try:
        with path.open("rb") as file, _opened(file) as arrays:
            missing = sorted({"state", "start"} - set(arrays.files))
            if missing:
                raise StoreError(
                    f"'{path}' lacks {listed(missing)}; it holds {listed(arrays.files)}."
                )
            state, start = arrays["state"], arrays["start"]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as cause:
        raise StoreError(f"'{path}' is not a readable npz file: {cause}.") from cause
    _check_arrays(path, state, start)
    return state, [int(row) for row in start]


def _opened(file: BinaryIO) -> NpzFile:
    arrays = np.load(file, allow_pickle=False)
    if not isinstance(arrays, NpzFile):
        raise ValueError("it holds a single array")
    return arrays


def _check_arrays(path: Path, state: NDArray[np.generic], start: NDArray[np.generic]) -> None:
    if state.ndim != 2 or state.shape[1] < 7 or not np.issubdtype(state.dtype, np.floating):
        raise StoreError(
            f"'state' in '{path}' must be floats [rows, >= 7], got {state.dtype} {state.shape}."
        )
    rows = np.asarray(start)
    if rows.ndim != 1 or len(rows) < 2 or not np.issubdtype(rows.dtype, np.integer):
        raise StoreError(
            f"'start' in '{path}' must be integers [tosses + 1], got {rows.dtype} {rows.shape}."
        )
    if int(rows[0]) < 0 or int(rows[-1]) > len(state) or (np.diff(rows.astype(int)) < 2).any():
        raise StoreError(
            f"'start' in '{path}' must increase by at least 2 rows within the {len(state)} rows "
            "of 'state'."
        )


def _toss(index: int, pose: NDArray[np.float32]) -> Episode:
    rows: Array = np.asarray(pose, dtype=np.float64)
    lengths = np.linalg.norm(rows[:, 3:7], axis=1)
    if not (np.abs(lengths - 1) < 1e-2).all():
        raise StoreError(
            f"Toss {index} holds quaternions of length {lengths.min():.3g} to {lengths.max():.3g}."
        )
    time = np.arange(len(rows)) / TOSS_RATE
    return Episode(
        id=f"toss_{index:04d}",
        channels=(
            Channel(name="cube.pos", time=time, values=rows[:, :3], unit="m"),
            Channel(name="cube.quat", time=time, values=normalised(rows[:, 3:7])),
        ),
        source="real",
        session_id="cube_toss",
    )
