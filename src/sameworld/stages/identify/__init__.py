"""Trajectories in, narrower belief out."""
