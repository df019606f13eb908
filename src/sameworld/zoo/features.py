"""Features of a window of observations and actions, and the ridge regression on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array, read_only
from sameworld.core.episode import Episode
from sameworld.core.signals import held_actions
from sameworld.core.spec import Spec

__all__ = ["FeatureKind", "FeatureMap", "regression_pairs"]

FeatureKind = Literal["linear", "quadratic", "random"]

_RANDOM = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMap:
    """Standardised window to features to the change of the signals.

    Attributes:
        kind: Which features.
        weights: Feature weights [F, D].
        centre: Mean of the window entries [I].
        scale: Standard deviation of the window entries [I].
        directions: Directions of random features [I, R]; [I, 0] for other kinds.
        phases: Their phases [R].
    """

    kind: FeatureKind
    weights: Array
    centre: Array
    scale: Array
    directions: Array
    phases: Array

    @classmethod
    def fitted(
        cls, inputs: Array, changes: Array, kind: FeatureKind, ridge: float, seed: int
    ) -> FeatureMap:
        """Regress changes [N, D] on features of inputs [N, I]; the constant is not penalised."""
        rng = np.random.default_rng(seed)
        count = _RANDOM if kind == "random" else 0
        size = inputs.shape[1]
        spread = inputs.std(axis=0)
        blank = cls(
            kind=kind,
            weights=np.zeros((0, changes.shape[1])),
            centre=inputs.mean(axis=0),
            scale=np.where(spread > 0, spread, 1.0),
            directions=rng.standard_normal((size, count)) / np.sqrt(size),
            phases=rng.uniform(0, 2 * np.pi, count),
        )
        features = blank.features(inputs)
        penalty = np.full(features.shape[1], ridge * len(inputs))
        penalty[0] = 0.0
        rooted = np.concatenate([features, np.diag(np.sqrt(penalty))])
        target = np.concatenate([changes, np.zeros((features.shape[1], changes.shape[1]))])
        weights = np.linalg.lstsq(rooted, target, rcond=None)[0]
        return cls(
            kind=kind,
            weights=read_only(weights),
            centre=read_only(blank.centre),
            scale=read_only(blank.scale),
            directions=read_only(blank.directions),
            phases=read_only(blank.phases),
        )

    def change(self, seen: Array, acted: Array) -> Array:
        """Predicted change [B, D] from observations [B, K, D] and actions [B, K, A]."""
        window = np.concatenate([seen.reshape(len(seen), -1), acted.reshape(len(acted), -1)], 1)
        return self.features(window) @ self.weights

    def features(self, window: Array) -> Array:
        """Features [N, F] of windows [N, I], the constant first."""
        x = (window - self.centre) / self.scale
        parts = [np.ones((len(x), 1)), x]
        if self.kind == "quadratic":
            rows, columns = np.triu_indices(x.shape[1])
            parts.append(x[:, rows] * x[:, columns])
        if self.kind == "random":
            parts.append(np.cos(x @ self.directions + self.phases))
        return np.concatenate(parts, axis=1)

    def width(self, inputs: int) -> int:
        """Number of features F over ``inputs`` window entries."""
        extra = {"linear": 0, "quadratic": inputs * (inputs + 1) // 2, "random": len(self.phases)}
        return 1 + inputs + extra[self.kind]


def regression_pairs(spec: Spec, episode: Episode) -> tuple[Array, Array] | None:
    """Windows [N, I] and the changes that followed [N, D]; ``None`` if the episode is too short.

    Signals come to control ticks by linear interpolation within the span that every channel
    covers; actions are held.
    """
    channels = [episode[c.name] for c in spec.observations]
    begin = max(float(c.time[0]) for c in channels)
    end = min(float(c.time[-1]) for c in channels)
    ticks = int(np.floor((end - begin) / spec.period + 1e-6))
    depth = spec.context
    if ticks < depth:
        return None
    at = begin + spec.period * np.arange(ticks + 1)
    columns = [
        np.interp(at, c.time, column) for c in channels for column in c.values.reshape(len(c), -1).T
    ]
    seen = np.stack(columns, axis=1)
    acted = held_actions(spec, episode, begin, ticks)
    last = range(depth - 1, ticks)
    windows = [
        np.concatenate([seen[t - depth + 1 : t + 1].ravel(), acted[t - depth + 1 : t + 1].ravel()])
        for t in last
    ]
    return np.array(windows), np.diff(seen, axis=0)[depth - 1 :]
