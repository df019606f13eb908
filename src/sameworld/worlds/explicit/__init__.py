"""MuJoCo as a world."""
