"""Models for parameter values: edited copies of the compiled one, kept for reuse."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.worlds.compiled.edits import Change, Editor
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["Assignment", "Edited", "Edits", "Models"]

#: Bytes that edited models may take, and how many are kept however large they are.
_BUDGET = 512 * 2**20
_FEWEST = 2
#: How parameters reach a model.
Edits: TypeAlias = Literal["fields", "recompile"]
_Key: TypeAlias = tuple[tuple[Change, ...], frozenset[str]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Edited:
    """A model for one set of parameter values.

    Attributes:
        model: The model; the unedited one if the values are impossible.
        reason: Why the values are impossible, else empty.
        general: Whether it has the layout without MuJoCo's shortcut for simple bodies. Models of
            different layout never share an MjData.
    """

    model: Model
    reason: str = ""
    general: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """Which model each element of a batch runs on.

    Attributes:
        models: The distinct models.
        index: Position of each element's model among them [B].
    """

    models: list[Edited]
    index: NDArray[np.intp]

    def __getitem__(self, element: int) -> Edited:
        return self.models[int(self.index[element])]


class Models:
    """Cache of edited models, least recently used go first.

    Args:
        editor: Makes them; its slots are the parameter columns.
        limit: Edited models kept; fewer where meshes make them large.
        edits: ``fields`` edits copies of the compiled model, ``recompile`` compiles again.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        limit: int = 256,
        edits: Edits = "fields",
    ) -> None:
        self.editor = editor
        size = int(mj.mj_sizeModel(editor.compiled.model))
        self.limit = max(_FEWEST, min(limit, _BUDGET // size))
        self._recompiles = edits == "recompile"
        self._base = np.array([slot.value for slot in editor.slots])
        self.plain = Edited(model=editor.compiled.model)
        self._kept: OrderedDict[_Key, Edited] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def assign(self, values: Array, given: frozenset[str]) -> Assignment:
        """Models for values [B, P].

        Args:
            values: Values of the model slots; further columns are ignored.
            given: Moments of inertia that the belief names.
        """
        values = values[:, : len(self._base)]
        columns = np.flatnonzero((values != self._base).any(axis=0))
        if not len(columns):
            return _alone(self.plain, len(values))
        rows = values[:, columns]
        if (rows == rows[0]).all():
            return _alone(self._get(rows[0], columns, given), len(values))
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        models = [self._get(row, columns, given) for row in unique]
        return Assignment(models=models, index=inverse.reshape(-1))

    def _get(self, row: Array, columns: NDArray[np.intp], given: frozenset[str]) -> Edited:
        changes = tuple(
            (column, value)
            for column, value in zip(columns.tolist(), row.tolist(), strict=True)
            if value != self._base[column]
        )
        if not changes:
            return self.plain
        key = (changes, given)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._make(changes, given)
            if len(self._kept) > self.limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found

    def _make(self, changes: tuple[Change, ...], given: frozenset[str]) -> Edited:
        bad = [self.editor.slots[column].name for column, value in changes if not isfinite(value)]
        if bad:
            return Edited(model=self.plain.model, reason=f"{bad[0]} is not finite")
        edit = self.editor.recompile if self._recompiles else self.editor.edit_fields
        model = edit(changes, given)
        if isinstance(model, str):
            return Edited(model=self.plain.model, reason=model)
        return Edited(model=model, general=self.editor.needs_general(changes))


def _alone(model: Edited, batch: int) -> Assignment:
    return Assignment(models=[model], index=np.zeros(batch, dtype=np.intp))
