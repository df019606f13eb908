"""Measurements: one command each, a table on the screen, flat numbers in a file."""
