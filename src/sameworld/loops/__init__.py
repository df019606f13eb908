"""Stages joined."""

from sameworld.loops.calibrate import CalibrateConfig, Calibration, calibrate
from sameworld.loops.film import FilmStrip

__all__ = ["CalibrateConfig", "Calibration", "FilmStrip", "calibrate"]
