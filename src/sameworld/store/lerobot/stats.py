"""Statistics that a LeRobot dataset keeps of each feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array

__all__ = ["PictureCounts", "Stats", "merged_stats", "row_stats"]

Stats = dict[str, Array]

_QUANTILES = (0.01, 0.10, 0.50, 0.90, 0.99)
_SIDE = 128


def _quantile_name(share: float) -> str:
    return f"q{round(100 * share):02d}"


def row_stats(values: NDArray[Any]) -> Stats:
    """Statistics over rows [T] or [T, N]: extremes, mean, spread, quantiles, count.

    Each has shape [N] ([1] for scalars), ``count`` has shape [1].
    """
    rows: Array = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    found = {
        "min": rows.min(axis=0),
        "max": rows.max(axis=0),
        "mean": rows.mean(axis=0),
        "std": rows.std(axis=0),
        "count": np.array([float(len(rows))]),
    }
    levels: Array = np.quantile(rows, _QUANTILES, axis=0)
    return found | {_quantile_name(q): levels[i] for i, q in enumerate(_QUANTILES)}


def merged_stats(parts: Sequence[Mapping[str, Array]]) -> Stats:
    """Statistics of several episodes together.

    All are exact but the quantiles: those are means of the episodes' quantiles, weighted by rows.
    """
    counts = np.array([p["count"][0] for p in parts])
    weight = counts / counts.sum()

    def mean(name: str) -> Array:
        return np.sum([w * p[name] for w, p in zip(weight, parts, strict=True)], axis=0)

    average = mean("mean")
    spread = [
        w * (p["std"] ** 2 + (p["mean"] - average) ** 2) for w, p in zip(weight, parts, strict=True)
    ]
    found = {
        "min": np.min(np.stack([p["min"] for p in parts]), axis=0),
        "max": np.max(np.stack([p["max"] for p in parts]), axis=0),
        "mean": average,
        "std": np.sqrt(np.sum(spread, axis=0)),
        "count": np.array([counts.sum()]),
    }
    return found | {_quantile_name(q): mean(_quantile_name(q)) for q in _QUANTILES}


@dataclass(kw_only=True)
class PictureCounts:
    """Counts of the 256 levels of each colour, from every picture, thinned to about 128 a side."""

    levels: Array
    pictures: int = 0

    @classmethod
    def empty(cls) -> PictureCounts:
        """Nothing counted."""
        return cls(levels=np.zeros((3, 256)))

    def add(self, image: NDArray[np.uint8]) -> None:
        """Count a picture [H, W, 3]."""
        step = max(max(image.shape[:2]) // _SIDE, 1)
        thin = image[::step, ::step]
        for colour in range(3):
            self.levels[colour] += np.bincount(thin[..., colour].reshape(-1), minlength=256)
        self.pictures += 1

    def stats(self) -> Stats:
        """Statistics of colours in [0, 1], each [3, 1, 1]; ``count`` is the number of pictures."""
        grey = np.arange(256) / 255
        weight = self.levels / self.levels.sum(axis=1, keepdims=True)
        mean = weight @ grey
        seen = self.levels > 0
        found = {
            "min": grey[seen.argmax(axis=1)],
            "max": grey[255 - seen[:, ::-1].argmax(axis=1)],
            "mean": mean,
            "std": np.sqrt(np.maximum(weight @ grey**2 - mean**2, 0)),
        }
        below = np.cumsum(weight, axis=1)
        for share in _QUANTILES:
            found[_quantile_name(share)] = grey[np.argmax(below >= share - 1e-12, axis=1)]
        shaped = {name: value.reshape(3, 1, 1) for name, value in found.items()}
        return shaped | {"count": np.array([float(self.pictures)])}
