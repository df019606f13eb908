"""What ``propose_mapping`` found out beside the mapping itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CaptureResult", "JointEvidence"]


@dataclass(frozen=True, kw_only=True)
class JointEvidence:
    """What the data say about one joint.

    Attributes:
        joint: Joint name.
        margin: Standard errors by which the chosen columns and signs beat the best alternative
            that concerns this joint; NaN where torques were not used.
        rival: That alternative in words.
        zero: Estimated zero offset of its position [rad or m], whether it was corrected or not.
        zero_std: Standard deviation of that; large where the zero cannot be seen.
        explained: Share of the torque's variance explained (R^2), NaN without torque.
    """

    joint: str
    margin: float
    rival: str
    zero: float
    zero_std: float
    explained: float


@dataclass(frozen=True, kw_only=True)
class CaptureResult:
    """Evidence behind a mapping.

    Attributes:
        joints: Per joint, where torques identified it.
        unused: Recorded columns that no signal takes.
        missing: Channels of the world that no column gives.
        corrections: What was changed against taking every column as it is, one sentence each.
        lags: Measured time shift of each column against the positions [s].
        searches: Costs at which the searches for the order ended.
    """

    joints: tuple[JointEvidence, ...] = ()
    unused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    lags: Mapping[str, float]
    searches: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; numbers that do not exist are ``None``."""
        joints = [
            {
                k: None if isinstance(v, float) and not math.isfinite(v) else v
                for k, v in own.items()
            }
            for own in map(vars, self.joints)
        ]
        return {
            "joints": joints,
            "unused": list(self.unused),
            "missing": list(self.missing),
            "corrections": list(self.corrections),
            "lags": dict(self.lags),
            "searches": list(self.searches),
        }
