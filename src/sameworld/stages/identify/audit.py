"""Audits of what is left over: residual delay and whiteness."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import stats

from sameworld.core.arrays import Array
from sameworld.core.residuals import Comparison
from sameworld.maths.projection import project_out, pseudo_inverse
from sameworld.maths.robust import autocorrelation, mad_scale
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Block, Problem
from sameworld.stages.identify.result import DelayAudit, ResidualSummary

__all__ = ["delay_audit", "residual_summaries"]

#: One-sided probability of a false alarm per channel: four Gaussian standard deviations.
_FALSE = float(stats.norm.sf(4.0))
#: Windows from which whole windows are clusters; below, blocks of rows, this many in all.
_CLUSTERS = 8
_LARGE = 0.2
_VISIBLE = 1e-4
_LOOSE = 0.5
_UNKNOWN = "A delay cannot be told from the unknown starts and parameters here."


def delay_audit(problem: Problem, linear: Linear) -> tuple[DelayAudit, ...]:
    """Time shift of each channel that the fit left unexplained, all channels at once.

    The derivative of a channel with respect to its delay is minus its rate; regressing the
    residuals on the rates, after projecting out parameters and starts, gives the shifts at no
    further simulation. A shift that starts or other shifts can absorb (a passive motion) is
    reported as unknown. Stamps that are off by one step make parameters wrong by tens of percent.
    """
    names = [
        c.name
        for c in problem.world.spec.observations
        if any(p.channel.name == c.name for b in linear.blocks for p in b.parts)
    ]
    raw = [
        np.stack([_rate_column(problem, linear, w, name) for name in names], axis=1)
        for w in range(len(linear.blocks))
    ]
    swept = [project_out(b.start, c) for b, c in zip(linear.blocks, raw, strict=True)]
    theta = linear.jacobian
    clean = project_out(theta[:, np.sum(theta**2, axis=0) > 0], np.concatenate(swept))
    power = np.sum(np.concatenate(raw) ** 2, axis=0)
    seen = _visible(clean, power)
    delays, stds, freedom = _regressed(clean[:, seen], linear)
    needed = float(stats.t.isf(_FALSE, max(freedom, 1)))
    found: list[DelayAudit] = []
    for k, name in enumerate(names):
        if k in seen:
            place = seen.index(k)
            found.append(_judged(problem, name, float(delays[place]), float(stds[place]), needed))
        else:
            found.append(
                DelayAudit(channel=name, delay=0.0, std=np.inf, suspicious=False, text=_UNKNOWN)
            )
    return tuple(found)


def _visible(clean: Array, power: Array) -> list[int]:
    """Channels whose delay shows in the residuals, most visible ones first to be kept."""
    kept: list[int] = []
    order: list[int] = np.argsort(-np.sum(clean**2, axis=0)).tolist()
    for k in order:
        left = project_out(clean[:, kept], clean[:, k])
        if power[k] > 0 and float(left @ left) > _VISIBLE * power[k]:
            kept.append(k)
    return kept


def _regressed(columns: Array, linear: Linear) -> tuple[Array, Array, int]:
    """Delays [C], their clustered standard deviations [C], and degrees of freedom."""
    if columns.shape[1] == 0:
        return np.zeros(0), np.zeros(0), 1
    residual = np.concatenate(linear.residual)
    inverse = pseudo_inverse(columns.T @ columns)
    delays = -inverse @ (columns.T @ residual)
    left = residual + columns @ delays
    edges = np.cumsum([0, *(len(r) for r in linear.residual)]).tolist()
    scores = np.concatenate(
        [
            _cluster_scores(columns[a:b], left[a:b], block, len(linear.blocks))
            for (a, b), block in zip(pairwise(edges), linear.blocks, strict=True)
        ]
    )
    few = len(scores) / max(len(scores) - 1, 1)
    stds = np.sqrt(few * np.sum((scores @ inverse) ** 2, axis=0))
    return delays, stds, len(scores) - 1


def _judged(problem: Problem, name: str, delay: float, std: float, needed: float) -> DelayAudit:
    period = _sampling(problem, name)
    suspicious = abs(delay) > needed * std and abs(delay) > _LARGE * period
    text = _advice(delay, suspicious) if suspicious or std < _LOOSE * period else _UNKNOWN
    return DelayAudit(channel=name, delay=delay, std=std, suspicious=suspicious, text=text)


def _cluster_scores(columns: Array, left: Array, block: Block, windows: int) -> Array:
    """Scores [G, C] of a window as one cluster; of blocks of its rows where windows are few."""
    if windows >= _CLUSTERS:
        return (left @ columns)[None]
    order = np.argsort(block.time, kind="stable")
    fewest = -(-_CLUSTERS // windows)
    rows = len(order) / _correlated(left, block)
    count = min(max(int(rows), fewest), max(len(order), 1))
    return np.stack([left[k] @ columns[k] for k in np.array_split(order, count)])


def _correlated(left: Array, block: Block) -> int:
    """Rows over which what is left stays correlated, a few correlation times of each channel."""
    rho, at = 0.0, 0
    for part in block.parts:
        series = left[at : at + part.error.size].reshape(part.error.shape)
        rho, at = max(rho, abs(autocorrelation(series))), at + part.error.size
    rho = min(rho, 0.99)
    return int(np.ceil(3 * (1 + rho) / (1 - rho))) * len(block.parts)


def _rate_column(problem: Problem, linear: Linear, w: int, name: str) -> Array:
    block = linear.blocks[w]
    pieces: list[Array] = []
    for part in block.parts:
        rate = part.rate if part.channel.name == name else np.zeros_like(part.error)
        pieces.append((rate / problem.scales.at(w, part)).reshape(-1))
    prior = np.zeros(len(block.residual) - sum(len(p) for p in pieces))
    return np.nan_to_num(np.concatenate([*pieces, prior]))


def _sampling(problem: Problem, name: str) -> float:
    steps = [np.diff(w.piece[name].time) for w in problem.windows if name in w.piece]
    return float(np.median(np.concatenate(steps)))


def _advice(delay: float, suspicious: bool) -> str:
    if not suspicious:
        return "No delay is left."
    word = "late" if delay > 0 else "early"
    return (
        f"The data come {1e3 * abs(delay):.2f} ms too {word}. Mend the time stamps (readings taken "
        "before a step but stamped after it are one step off), or fit the sensor's delay."
    )


def residual_summaries(
    problem: Problem, before: list[tuple[Comparison, ...]], linear: Linear
) -> tuple[ResidualSummary, ...]:
    """Residual size before and after, and whether anything structured is left, per channel."""
    found: list[ResidualSummary] = []
    for channel in problem.world.spec.observations:
        after = [p for b in linear.blocks for p in b.parts if p.channel.name == channel.name]
        if not after:
            continue
        old = [p for parts in before for p in parts if p.channel.name == channel.name]
        lag = float(np.mean([autocorrelation(p.error) for p in after]))
        count = sum(p.error.size for p in after)
        found.append(
            ResidualSummary(
                channel=channel.name,
                unit="rad" if channel.manifold == "quaternion" else channel.unit,
                noise=problem.scales.noise[channel.name],
                weight_std=mad_scale(np.concatenate([p.error.reshape(-1) for p in after])),
                rms_before=_rms(old),
                rms_after=_rms(after),
                whiteness=lag,
                white=abs(lag) < 2.5758 / np.sqrt(max(count, 1)),
            )
        )
    return tuple(found)


def _rms(parts: list[Comparison]) -> float:
    errors = np.concatenate([p.error.reshape(-1) for p in parts])
    fine = errors[np.isfinite(errors)]
    return float(np.sqrt(np.mean(fine**2))) if fine.size else float("nan")
