"""Audits of what is left over: residual delay and whiteness."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.residuals import Comparison
from sameworld.maths.projection import project_out
from sameworld.maths.robust import autocorrelation, mad_scale
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import DelayAudit, ResidualSummary

__all__ = ["delay_audit", "residual_summaries"]

_SIGNIFICANT = 4.0
_LARGE = 0.2
_VISIBLE = 1e-4


def delay_audit(problem: Problem, linear: Linear) -> tuple[DelayAudit, ...]:
    """Time shift of each channel that the fit left unexplained.

    The derivative of a channel with respect to its delay is minus its rate; regressing the
    residuals on it, after projecting out parameters and starts, gives the shift at no further
    simulation. A shift that starts can absorb (a passive motion) is reported as unknown. Stamps
    that are off by one step make identified parameters wrong by tens of percent.
    """
    names = [c.name for c in problem.world.spec.observations]
    found: list[DelayAudit] = []
    for name in names:
        if any(p.channel.name == name for b in linear.blocks for p in b.parts):
            found.append(_channel_delay(problem, linear, name))
    return tuple(found)


def _channel_delay(problem: Problem, linear: Linear, name: str) -> DelayAudit:
    columns = [_rate_column(problem, linear, w, name) for w in range(len(linear.blocks))]
    swept = [project_out(b.start, column) for b, column in zip(linear.blocks, columns, strict=True)]
    stacked, theta = np.concatenate(swept), linear.jacobian
    moving = theta[:, np.sum(theta**2, axis=0) > 0]
    clean = project_out(moving, stacked)
    raw = float(sum(c @ c for c in columns))
    power = float(clean @ clean)
    period = _sampling(problem, name)
    if power <= _VISIBLE * raw or raw == 0:
        text = "A delay cannot be told from the unknown starts and parameters here."
        return DelayAudit(channel=name, delay=0.0, std=np.inf, suspicious=False, text=text)
    edges = np.cumsum([0, *(len(s) for s in swept)])
    residual = np.concatenate(linear.residual)
    delay = -float(clean @ residual) / power
    left = residual + delay * clean
    scores = _cluster_scores(clean * left, edges, linear)
    std = float(np.sqrt(np.sum(scores**2))) / power
    suspicious = abs(delay) > _SIGNIFICANT * std and abs(delay) > _LARGE * period
    return DelayAudit(
        channel=name, delay=delay, std=std, suspicious=suspicious, text=_advice(delay, suspicious)
    )


def _cluster_scores(products: Array, edges: Array, linear: Linear) -> Array:
    """Sums of scores over windows, or over 20 time blocks where there are few windows."""
    if len(edges) > 8:
        return np.array([products[a:b].sum() for a, b in pairwise(edges.tolist())])
    sums: list[float] = []
    for w, block in enumerate(linear.blocks):
        order = np.argsort(block.time, kind="stable")
        parts = np.array_split(products[edges[w] : edges[w + 1]][order], 20)
        sums.extend(float(p.sum()) for p in parts)
    return np.array(sums)


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
