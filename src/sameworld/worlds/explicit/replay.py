"""Repeat a failure that the NaN guard dumped.

``python -m sameworld.worlds.explicit.replay FILE``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameworld.core.errors import SameworldError
from sameworld.store.files import read_npz
from sameworld.worlds.compiled.engine import captured_warnings, mj
from sameworld.worlds.compiled.layout import INTEGRATION
from sameworld.worlds.explicit.failures import described

__all__ = ["Replay", "main", "replay"]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Result of repeating a dumped failure.

    Attributes:
        failed: Whether it failed again.
        tick: Control tick in which it failed (the number of ticks if it did not).
        reason: Why, in words.
        recorded: The reason in the dump.
    """

    failed: bool
    tick: int
    reason: str
    recorded: str


def replay(path: str | Path) -> Replay:
    """Repeat a dump step by step.

    Raises:
        StoreError: The file is no dump.
    """
    dump = read_npz(path)
    model = mj.MjModel.from_binary_path("model.mjb", {"model.mjb": dump["model"].tobytes()})
    data = mj.MjData(model)
    recorded = str(dump["reason"])
    mj.mj_setState(model, data, dump["state"], INTEGRATION)
    with captured_warnings() as messages:
        for tick, action in enumerate(dump["actions"]):
            data.ctrl[:] = action
            mj.mj_step(model, data, int(dump["substeps"]))
            if messages or not np.isfinite(data.qpos).all():
                reason = described(model, messages[0]) if messages else "positions became NaN"
                return Replay(failed=True, tick=tick, reason=reason, recorded=recorded)
    return Replay(failed=False, tick=len(dump["actions"]), reason="", recorded=recorded)


def main(arguments: Sequence[str]) -> int:
    """Command line: one dump file; exit code 1 if the failure repeats."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m sameworld.worlds.explicit.replay FILE.npz\n")
        return 2
    try:
        result = replay(arguments[0])
    except SameworldError as cause:
        sys.stderr.write(f"{cause}\n")
        return 2
    sys.stdout.write(f"recorded: {result.recorded}\n")
    told = f"fails in tick {result.tick}: {result.reason}" if result.failed else "does not fail"
    sys.stdout.write(f"replayed: {told}\n")
    return int(result.failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
