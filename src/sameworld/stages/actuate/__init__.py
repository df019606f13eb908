"""Joints in, driven joints out."""

from sameworld.stages.actuate.actuate import actuate
from sameworld.stages.actuate.config import ActuateConfig
from sameworld.stages.actuate.result import ActuateResult, Drive
from sameworld.stages.actuate.servos import SERVOS, Servo

__all__ = ["SERVOS", "ActuateConfig", "ActuateResult", "Drive", "Servo", "actuate"]
