"""Joint torques in, inertia and friction out: the linear fast path for arms."""

from sameworld.stages.identify.torque.config import TorqueConfig
from sameworld.stages.identify.torque.motion import Motion, read_motion
from sameworld.stages.identify.torque.torque import TorqueModel, fit_torque, identify_torque

__all__ = [
    "Motion",
    "TorqueConfig",
    "TorqueModel",
    "fit_torque",
    "identify_torque",
    "read_motion",
]
