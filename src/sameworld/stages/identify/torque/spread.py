"""Covariance of what was fitted, for residuals that are correlated in time.

Filtered torques hold far fewer independent samples than rows, and the model is never quite right.
So the scatter of the scores of stretches of time is taken, each several correlation times long,
joint by joint; from eight episodes on, that of whole episodes. Each stretch is left out in turn,
which keeps few stretches from looking too certain.

Source: A. C. Cameron, D. L. Miller, "A practitioner's guide to cluster-robust inference", J. Human
Resources 50 (2015), section VI.B, for the leave-one-out form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.identify.torque.design import Design
from sameworld.stages.identify.torque.fit import Solution, predicted
from sameworld.stages.identify.torque.layout import Layout

__all__ = ["TorqueSpread", "torque_spread"]

#: Episodes from which whole episodes are left out, and stretches per joint that are aimed at.
_CLUSTERS, _STRETCHES = 8, 8
_LENGTH = 2.0
_EXACT = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class TorqueSpread:
    """Covariances of the unknowns.

    Attributes:
        covariance: Default covariance [P, P].
        naive: Covariance if every row were independent [P, P].
        information: Normal matrix of the data, correlation times counted, without prior [P, P].
        kind: How the default was computed.
        freedom: Degrees of freedom for intervals.
    """

    covariance: Array
    naive: Array
    information: Array
    kind: str
    freedom: float


def torque_spread(pieces: Sequence[Design], layout: Layout, found: Solution) -> TorqueSpread:
    """Default and naive covariance at a solution; ``pieces`` have its friction widths."""
    slope = layout.coefficients(found.x)[1]
    rows = [piece.columns @ slope for piece in pieces]
    errors = [p.motion.torque - predicted(p, layout, found.x) for p in pieces]
    episodes = [piece.motion.episode for piece in pieces]
    many = len(set(episodes)) >= _CLUSTERS
    scores, informations = (
        _by_episode(episodes, rows, errors, found)
        if many
        else _by_stretch(rows, errors, found, layout)
    )
    information = informations.sum(axis=0)
    prior = np.diag(layout.precision)
    inverse = _inverse(information + prior)
    shifts = np.array(
        [
            _inverse(information - piece + prior) @ score
            for score, piece in zip(scores, informations, strict=True)
        ]
    )
    centred = shifts - shifts.mean(axis=0)
    count = len(shifts)
    scatter = (count - 1) / count * centred.T @ centred
    white = [(r / found.deviation[:, None]).reshape(-1, layout.size) for r in rows]
    plain = sum(part.T @ part for part in white)
    return TorqueSpread(
        covariance=scatter + inverse @ prior @ inverse,
        naive=_inverse(np.asarray(plain) + prior),
        information=information,
        kind="episode sandwich" if many else "block jackknife",
        freedom=float(max((count if many else count / len(layout.channels)) - 1, 2)),
    )


def _inverse(matrix: Array) -> Array:
    """Inverse of a scaled normal matrix; directions without information get a huge variance."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    values = np.maximum(values, _EXACT * max(float(values[-1]), _EXACT))
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


def _by_episode(
    episodes: Sequence[str], rows: Sequence[Array], errors: Sequence[Array], found: Solution
) -> tuple[Array, Array]:
    names = list(dict.fromkeys(episodes))
    size = rows[0].shape[-1]
    scores, pieces = np.zeros((len(names), size)), np.zeros((len(names), size, size))
    for episode, row, error in zip(episodes, rows, errors, strict=True):
        k = names.index(episode)
        flat = (row * found.weight[:, None]).reshape(-1, size)
        scores[k] += flat.T @ (error * found.weight).reshape(-1)
        pieces[k] += flat.T @ flat
    return scores, pieces


def _by_stretch(
    rows: Sequence[Array], errors: Sequence[Array], found: Solution, layout: Layout
) -> tuple[Array, Array]:
    """Scores and information per joint and stretch of a few correlation times."""
    total = sum(len(e) for e in errors)
    scores: list[Array] = []
    pieces: list[Array] = []
    for joint in range(len(layout.channels)):
        weight = found.weight[joint] ** 2
        length = int(
            np.clip(np.ceil(_LENGTH * found.memory[joint]), 1, max(total // _STRETCHES, 1))
        )
        for row, error in zip(rows, errors, strict=True):
            parts = max(1, round(len(error) / length))
            for at in np.array_split(np.arange(len(error)), parts):
                block = row[at, joint]
                scores.append(weight * block.T @ error[at, joint])
                pieces.append(weight * block.T @ block)
    return np.array(scores), np.array(pieces)
