"""Raw recordings in, episodes with a world's own signals out."""

from sameworld.stages.capture.apply import apply_mapping
from sameworld.stages.capture.check import MappingCheck, check_mapping
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.propose import propose_mapping
from sameworld.stages.capture.result import CaptureResult, JointEvidence

__all__ = [
    "CaptureConfig",
    "CaptureResult",
    "JointEvidence",
    "MappingCheck",
    "apply_mapping",
    "check_mapping",
    "propose_mapping",
]
