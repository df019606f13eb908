"""Reality, or what plays it."""

from sameworld.robots.errors import RobotError
from sameworld.robots.record import record
from sameworld.robots.standin import StandIn

__all__ = ["RobotError", "StandIn", "record"]
