"""Dynamics that MJCF lacks."""
