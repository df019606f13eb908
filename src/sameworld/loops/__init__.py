"""Stages joined."""
