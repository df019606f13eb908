"""Pure functions: rotations, inertia, time series, statistics, least squares."""
