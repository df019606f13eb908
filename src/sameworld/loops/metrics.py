"""Flat numbers of a calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.episode import Episode
from sameworld.core.prediction import Prediction
from sameworld.stages.identify import IdentifyResult

__all__ = ["coverage", "held_out_metrics"]


def held_out_metrics(
    episodes: Sequence[Episode],
    before: Sequence[Prediction],
    after: Sequence[Prediction],
    result: IdentifyResult,
) -> dict[str, float]:
    """Errors of predictions of episodes that were never fitted, before and after, and coverage.

    Keys: ``test_episodes``; per channel ``CHANNEL.before``, ``CHANNEL.after`` (median over episodes
    of the time mean of the error norm, in the channel's unit) and ``CHANNEL.coverage``;
    ``gain_median``; ``misfit_factor``; ``cpu_seconds``; ``rollouts``.
    """
    numbers: dict[str, float] = {"test_episodes": float(len(episodes))}
    if episodes:
        gains: list[np.ndarray] = []
        for name in after[0].channels:
            old, new = _errors(before, name), _errors(after, name)
            numbers[f"{name}.before"] = float(np.median(old))
            numbers[f"{name}.after"] = float(np.median(new))
            numbers[f"{name}.coverage"] = coverage(after, name)
            gains.append(1 - new / np.maximum(old, 1e-300))
        numbers["gain_median"] = float(np.median(np.mean(gains, axis=0)))
    numbers["misfit_factor"] = result.misfit_factor
    numbers["cpu_seconds"] = result.cpu_seconds
    numbers["rollouts"] = float(result.rollouts)
    return numbers


def _errors(predictions: Sequence[Prediction], name: str) -> np.ndarray:
    return np.array([np.mean(np.linalg.norm(p.channels[name].error, axis=1)) for p in predictions])


def coverage(predictions: Sequence[Prediction], name: str) -> float:
    """Share of measured components inside the intervals, over all rows and episodes."""
    inside: list[np.ndarray] = []
    for prediction in predictions:
        channel = prediction.channels[name]
        half = 0.5 * (channel.high - channel.low).reshape(len(channel.time), -1)
        inside.append((np.abs(channel.error) <= half).ravel())
    return float(np.mean(np.concatenate(inside))) if inside else float("nan")
