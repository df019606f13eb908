"""What acts: small policies for excitation and replay."""

from sameworld.policies.hold import Hold
from sameworld.policies.multisine import MultiSine
from sameworld.policies.replay import Replay

__all__ = ["Hold", "MultiSine", "Replay"]
