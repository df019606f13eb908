"""From unknowns to named parameters: posterior, intervals, verdicts, advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.parameters import Parameter
from sameworld.maths.stretch import log_cholesky_of
from sameworld.stages.identify.result import ParameterVerdict, Verdict
from sameworld.stages.identify.torque.design import Design
from sameworld.stages.identify.torque.fit import Solution
from sameworld.stages.identify.torque.layout import COORDINATES, Layout
from sameworld.stages.identify.torque.spread import TorqueSpread

__all__ = ["SPOKEN", "Named", "advise_torque", "judge_torque", "named", "posterior_of"]

#: Share of the prior spread below which data count as having spoken.
SPOKEN = 0.5
#: Spread, in limits, of what the data say of a parameter alone, from which they say nothing.
_UNHEARD = 1e4
_PARTNER, _PARTNERS = 0.5, 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Named:
    """Named parameters as functions of the unknowns, to first order.

    Attributes:
        parameters: With the world's values, units and bounds.
        value: Fitted values [Y].
        slope: Derivative by the unknowns [Y, P].
        scale: Size against which a spread counts as small [Y].
        owner: Body of each row, empty for joint terms.
    """

    parameters: tuple[Parameter, ...]
    value: Array
    slope: Array
    scale: Array
    owner: tuple[str, ...]


def named(layout: Layout, found: Solution, pieces: Sequence[Design]) -> Named:
    """Every parameter that the fit speaks of: 14 per free body, then joint terms."""
    known = {p.name: p for p in layout.world.parameters.parameters}
    blocks = [_body_rows(layout, found.x, k) for k in range(len(layout.bodies))]
    terms = [layout.terms[k] for k in layout.free]
    columns = np.concatenate([piece.columns for piece in pieces])
    size = np.arange(layout.inertial, layout.named)
    joints = np.array([term.joint for term in terms], dtype=np.intp)
    heard = np.sqrt(np.mean(columns[:, joints, size] ** 2, axis=0))
    noise = found.deviation[joints] / np.maximum(heard, 1e-300)
    names = [f"body:{body}.{part}" for body in layout.bodies for part in _PARTS]
    unit, fitted = np.eye(layout.size)[size], found.x[size]
    return Named(
        parameters=(*(known[name] for name in names), *(term.parameter for term in terms)),
        value=np.concatenate([*(b[0] for b in blocks), fitted]),
        slope=np.concatenate([*(b[1] for b in blocks), unit]),
        scale=np.concatenate([*(b[2] for b in blocks), np.maximum(np.abs(fitted), noise)]),
        owner=(*(body for body in layout.bodies for _ in _PARTS), *("" for _ in terms)),
    )


_PARTS = ("mass", "com.x", "com.y", "com.z", *(f"inertial.{part}" for part in COORDINATES))


def _body_rows(layout: Layout, x: Array, k: int) -> tuple[Array, Array, Array]:
    """Values [14], derivatives [14, P] and scales [14] of one body."""
    block = slice(10 * k, 10 * k + 10)
    coordinates, inner = log_cholesky_of(layout.roots[k], x[block])
    mass = np.exp(2 * coordinates[:1])
    reach = float(np.sqrt(np.sum(np.exp(2 * coordinates[1:4])) + np.sum(coordinates[4:7] ** 2)))
    slope = np.zeros((14, layout.size))
    slope[0, block] = 2 * mass * inner[0]
    slope[1:4, block], slope[4:, block] = inner[7:], inner
    value = np.concatenate([mass, coordinates[7:], coordinates])
    lengths = np.full(3, reach)
    scale = np.concatenate([mass, lengths, np.ones(4), lengths, lengths])
    return value, slope, scale


def posterior_of(rows: Named, covariance: Array) -> Belief:
    """Joint belief over the named parameters; bounds widen where a value lies outside."""
    widened = [
        replace(p, low=min(p.low, float(v)), high=max(p.high, float(v)))
        for p, v in zip(rows.parameters, rows.value, strict=True)
    ]
    joint = rows.slope @ covariance @ rows.slope.T
    return Belief.gaussian(widened, rows.value, joint, source="identified")


def judge_torque(
    rows: Named, layout: Layout, found: TorqueSpread, x: Array, determined: float
) -> tuple[ParameterVerdict, ...]:
    """Verdict of every named parameter.

    Args:
        rows: The named parameters.
        layout: The unknowns.
        found: Their covariance.
        x: The solution.
        determined: Largest spread, relative to the row's scale, that counts as determined.
    """
    joint = rows.slope @ found.covariance @ rows.slope.T
    std = np.sqrt(np.maximum(np.diag(joint), 0.0))
    naive = np.sqrt(np.maximum(np.diag(rows.slope @ found.naive @ rows.slope.T), 0.0))
    spread = np.where(np.isfinite(layout.spread), layout.spread, 0.0)
    prior = np.sqrt(np.sum((rows.slope * spread) ** 2, axis=1))
    open_ended = (rows.slope != 0) @ ~np.isfinite(layout.spread) > 0
    prior = np.where(open_ended, np.inf, prior)
    alone = _alone(rows, layout, found.information)
    correlation = joint / np.outer(np.maximum(std, 1e-300), np.maximum(std, 1e-300))
    factor = float(stats.t.ppf(0.95, found.freedom))
    bounded = _at_bound(rows, layout, x)
    verdicts: list[ParameterVerdict] = []
    for k, parameter in enumerate(rows.parameters):
        limit = determined * rows.scale[k]
        verdict = _verdict(float(std[k]), float(prior[k]), float(alone[k]), limit, bounded[k])
        partners = _partners(rows, correlation, k)
        low, high = _interval(parameter, float(rows.value[k]), factor * float(std[k]))
        verdicts.append(
            ParameterVerdict(
                name=parameter.name,
                unit=parameter.unit,
                before=parameter.value,
                value=float(rows.value[k]),
                low=low,
                high=high,
                std=float(std[k]),
                naive_std=float(naive[k]),
                verdict=verdict,
                detail=_detail(parameter, float(std[k]), verdict, partners, limit),
                partners=partners,
            )
        )
    return tuple(verdicts)


def _alone(rows: Named, layout: Layout, information: Array) -> Array:
    """Spread of each row if everything else were known [Y], by the data alone."""
    out = np.zeros(len(rows.value))
    at = 0
    for k in range(len(layout.bodies)):
        block = slice(10 * k, 10 * k + 10)
        inner = np.linalg.inv(rows.slope[at + 4 : at + 14, block])
        own = np.diag(inner.T @ information[block, block] @ inner)
        single = 1 / np.sqrt(np.maximum(own, 1e-300))
        out[at], out[at + 1 : at + 4] = 2 * rows.value[at] * single[0], single[7:]
        out[at + 4 : at + 14] = single
        at += 14
    rest = np.diag(information)[layout.inertial : layout.named]
    out[at:] = 1 / np.sqrt(np.maximum(rest, 1e-300))
    return out


def _at_bound(rows: Named, layout: Layout, x: Array) -> list[bool]:
    low, high = layout.bounds
    stuck = ((x <= low) | (x >= high))[layout.inertial : layout.named].tolist()
    return [False] * (len(rows.value) - len(stuck)) + stuck


def _verdict(std: float, prior: float, alone: float, limit: float, bounded: bool) -> Verdict:
    if alone > _UNHEARD * limit:
        return "zero gradient"
    if bounded:
        return "at bound"
    if std <= limit and std <= SPOKEN * prior:
        return "determined"
    return "only in combination" if alone <= min(limit, SPOKEN * prior) else "not excited"


def _partners(rows: Named, correlation: Array, k: int) -> dict[str, float]:
    """Strongest correlations with rows of other owners."""
    order: list[int] = np.argsort(-np.abs(correlation[k])).tolist()
    others = [
        j
        for j in order
        if j != k and abs(correlation[k, j]) >= _PARTNER
        if not rows.owner[k] or rows.owner[j] != rows.owner[k]
    ]
    return {
        rows.parameters[j].name: float(np.clip(correlation[k, j], -1, 1))
        for j in others[:_PARTNERS]
    }


def _interval(parameter: Parameter, value: float, half: float) -> tuple[float, float]:
    """Interval around a value; of a mass in its logarithm."""
    if parameter.name.endswith(".mass") and value > 0:
        ratio = float(np.exp(min(half / value, 700.0)))
        return value / ratio, value * ratio
    if parameter.name.startswith("joint:"):
        return max(value - half, min(parameter.low, value)), value + half
    return value - half, value + half


def _detail(
    parameter: Parameter, std: float, verdict: Verdict, partners: dict[str, float], limit: float
) -> str:
    spread = f"±{std:.2g} {parameter.unit}".strip()
    if verdict == "determined":
        return f"Fixed to {spread} (one standard deviation)."
    if verdict == "zero gradient":
        return "Changing it changes no torque of this motion."
    if verdict == "at bound":
        bounds = f"[{parameter.low:.4g}, {parameter.high:.4g}] {parameter.unit}".strip()
        return f"The fit wants to leave {bounds}."
    if verdict == "only in combination":
        names = ", ".join(partners) or "others of its body"
        return f"Known only together with {names}; alone to {spread} only."
    return f"Known to {spread} only, as before; below {limit:.2g} would count as determined."


def advise_torque(verdicts: Sequence[ParameterVerdict], searched: str) -> tuple[str, ...]:
    """Sentences that say what further recordings would settle."""
    lines: list[str] = []
    loose = [v for v in verdicts if v.verdict in ("not excited", "only in combination")]
    bodies = sorted({v.name.split(".")[0] for v in loose if v.name.startswith("body:")})
    together = {v.name.split(".")[0] for v in loose if v.verdict == "only in combination"}
    for body in bodies:
        if body in together:
            lines.append(
                f"{body}: joint torques tell combinations only (see the combinations); weigh it or "
                "measure its centre of mass to settle the rest."
            )
        else:
            lines.append(f"{body}: turn and accelerate it more, about several axes.")
    for verdict in verdicts:
        if verdict.verdict == "at bound":
            lines.append(f"{verdict.name}: widen its bounds, or leave it out.")
        if verdict.verdict == "not excited" and verdict.name.startswith("joint:"):
            lines.append(f"{verdict.name}: move this joint at several speeds and reverse it often.")
        if verdict.verdict == "zero gradient":
            lines.append(f"{verdict.name}: leave it out; this motion says nothing of it.")
    if searched != "converged":
        lines.append("The search stopped at its limit: lower 'pull', or free fewer bodies.")
    return tuple(lines) or ("Everything is determined.",)
