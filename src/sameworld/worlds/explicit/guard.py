"""The NaN guard: the first failure of a scene as files from which it can be repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.store.files import write_npz, write_text
from sameworld.worlds.compiled.batches import Failure
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["dump_failure"]


def dump_failure(
    folder: Path,
    *,
    scene: Scene,
    model: Model,
    row: Array,
    actions: Array,
    substeps: int,
    parameters: Values,
    failure: Failure,
) -> Path:
    """Write state, model and actions of a failed element, once per scene.

    Args:
        folder: Folder for dumps; made if it does not exist.
        scene: The scene, whose MJCF is stored as text beside the binary model.
        model: The model with the element's parameters.
        row: Integration state it started from [n].
        actions: Actions [T, A].
        substeps: Engine steps per action.
        parameters: Its parameter values.
        failure: What happened.

    Returns:
        The dump, ``failure_<scene id>.npz``.
    """
    path = folder / f"failure_{scene.id}.npz"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    buffer = np.empty(mj.mj_sizeModel(model), dtype=np.uint8)
    mj.mj_saveModel(model, None, buffer)
    write_text(path.with_suffix(".xml"), scene.mjcf)
    write_text(
        path.with_suffix(".txt"),
        f"{failure.reason}\nRepeat it with:\n"
        f"    python -m sameworld.worlds.explicit.replay {path.name}\n",
    )
    write_npz(
        path,
        {
            "model": buffer,
            "state": row,
            "actions": actions,
            "substeps": np.array(substeps),
            "row": np.array(failure.row),
            "reason": np.array(failure.reason, dtype=np.str_),
            "names": np.array(parameters.names, dtype=np.str_),
            "parameters": parameters.array[0],
        },
    )
    return path
