"""MuJoCo, the one place where it is imported.

MuJoCo ships no type stubs; its objects are ``Any`` here, named by what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

import mujoco as _mujoco  # pyright: ignore[reportMissingTypeStubs]
from mujoco import rollout as _rollout  # pyright: ignore[reportMissingTypeStubs]

__all__ = ["Data", "Model", "SpecTree", "captured_warnings", "mj", "mj_rollout"]

Model: TypeAlias = Any
Data: TypeAlias = Any
SpecTree: TypeAlias = Any

mj: Any = _mujoco
mj_rollout: Any = _rollout


@contextmanager
def captured_warnings() -> Generator[list[str], None, None]:
    """Collect MuJoCo's warnings instead of letting it print and write a log file.

    An empty list afterwards means that no simulation inside ran into a bad state.
    """
    messages: list[str] = []
    previous: Callable[[str], None] | None = mj.get_mju_user_warning()
    mj.set_mju_user_warning(messages.append)
    try:
        yield messages
    finally:
        mj.set_mju_user_warning(previous)
