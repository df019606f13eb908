"""What goes wrong with a robot."""

from __future__ import annotations

from sameworld.core.errors import SameworldError

__all__ = ["RobotError"]


class RobotError(SameworldError):
    """A robot was used in a way that its connection does not allow."""
