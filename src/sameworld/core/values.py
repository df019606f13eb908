"""``Values``: a batch of named numbers, the form in which worlds take starts and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sameworld.core.arrays import Array, read_only
from sameworld.core.errors import SpecError, closest, listed

__all__ = ["Values"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """Named values with a leading batch axis.

    Attributes:
        names: Parameter addresses, length N, unique.
        array: Values in the parameters' own units, shape [B, N].
    """

    names: tuple[str, ...]
    array: Array

    def __post_init__(self) -> None:
        array = np.atleast_2d(np.asarray(self.array, dtype=np.float64))
        if array.ndim != 2 or array.shape[1] != len(self.names):
            raise SpecError(
                f"Values for {len(self.names)} names {listed(self.names)} need shape "
                f"[B, {len(self.names)}], got {np.shape(self.array)}."
            )
        if len(set(self.names)) != len(self.names):
            raise SpecError(f"Values name something twice: {listed(self.names)}.")
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "array", read_only(array))

    @classmethod
    def of(cls, values: Mapping[str, ArrayLike]) -> Values:
        """Build from ``{name: scalar or [B]}``; scalars are repeated."""
        names = tuple(values)
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v)) for v in values.values()))
        array = np.stack(columns, axis=1) if columns else np.zeros((1, 0))
        return cls(names=names, array=array)

    @classmethod
    def none(cls, batch: int = 1) -> Values:
        """Values that name nothing, for ``batch`` elements."""
        return cls(names=(), array=np.zeros((batch, 0)))

    @property
    def batch(self) -> int:
        """Number of elements B."""
        return self.array.shape[0]

    def __len__(self) -> int:
        return self.batch

    def index(self, name: str) -> int:
        """Position of a name.

        Raises:
            SpecError: The name is not there.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise SpecError(
                f"'{name}' is not among {listed(self.names)}.{closest(name, self.names)}"
            ) from None

    def column(self, name: str) -> Array:
        """Values of one name, shape [B]."""
        return self.array[:, self.index(name)]

    def select(self, names: Iterable[str]) -> Values:
        """Keep (and reorder to) ``names``."""
        names = tuple(names)
        columns = [self.index(name) for name in names]
        return Values(names=names, array=self.array[:, columns])

    def rows(self, rows: Sequence[int] | slice | np.ndarray) -> Values:
        """Keep some batch elements, with repetition allowed."""
        return Values(names=self.names, array=self.array[rows])

    def broadcast(self, batch: int) -> Values:
        """Repeat a single element to ``batch`` elements.

        Raises:
            SpecError: The batch is neither 1 nor ``batch``.
        """
        if self.batch == batch:
            return self
        if self.batch != 1:
            raise SpecError(f"Values hold {self.batch} elements, {batch} are needed.")
        return Values(names=self.names, array=np.repeat(self.array, batch, axis=0))

    def updated(self, other: Values) -> Values:
        """Overwrite shared names by ``other`` and append the rest; batches broadcast."""
        batch = max(self.batch, other.batch)
        mine, theirs = self.broadcast(batch), other.broadcast(batch)
        names = self.names + tuple(n for n in other.names if n not in self.names)
        array = np.empty((batch, len(names)))
        array[:, : len(self.names)] = mine.array
        for column, name in enumerate(names):
            if name in theirs.names:
                array[:, column] = theirs.column(name)
        return Values(names=names, array=array)

    @staticmethod
    def stack(parts: Sequence[Values]) -> Values:
        """Concatenate along the batch axis; all parts must name the same things."""
        names = parts[0].names
        return Values(names=names, array=np.concatenate([p.select(names).array for p in parts]))
