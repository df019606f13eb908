"""What may be said about each parameter, and which combinations are known when parts are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from sameworld.core.arrays import Array, BoolArray
from sameworld.core.parameters import Parameter
from sameworld.maths.projection import pseudo_inverse
from sameworld.stages.identify.covariance import Spread, prior_precision
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import Combination, ParameterVerdict, Verdict

__all__ = ["Judged", "judge", "judge_all"]

_PARTNER = 0.5
_CONFOUNDED = 1e-3
#: Share of a variance that the prior may set before the recordings no longer determine a number.
_BORROWED = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """Verdicts and combinations of one fit."""

    verdicts: tuple[ParameterVerdict, ...]
    combinations: tuple[Combination, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Evidence:
    """Numbers behind one verdict, in the optimiser's coordinates."""

    std: float
    naive: float
    conditional: float
    raw: float
    projected: float
    at_bound: bool
    borrowed: float = 0.0


def judge_all(
    problem: Problem, linear: Linear, found: Spread, *, before: Array, determined: float
) -> Judged:
    """Judge every free parameter at the optimum.

    Args:
        problem: The problem.
        linear: Its linearisation at the optimum.
        found: Covariances there.
        before: Parameter values before the fit [P], in their units.
        determined: Largest standard deviation in coordinates that counts as determined.
    """
    evidence = _evidence(problem, linear, found)
    correlation = _correlation(found.covariance)
    verdicts = tuple(
        _row(
            problem,
            linear.u[: len(problem.names)],
            found,
            evidence,
            correlation,
            i,
            float(before[i]),
            determined,
        )
        for i in range(len(problem.names))
    )
    loose = [i for i, v in enumerate(verdicts) if v.verdict == "only in combination"]
    return Judged(
        verdicts=verdicts, combinations=_combinations(problem, linear, found, loose, determined)
    )


def judge(evidence: _Evidence, determined: float) -> Verdict:
    """One verdict from its evidence."""
    if evidence.raw == 0:
        return "zero gradient"
    if evidence.at_bound:
        return "at bound"
    if not np.isfinite(evidence.std):
        return "no interval"
    if evidence.std <= determined and evidence.borrowed <= _BORROWED:
        return "determined"
    return "only in combination" if evidence.conditional <= determined else "not excited"


def _evidence(problem: Problem, linear: Linear, found: Spread) -> list[_Evidence]:
    raw = np.sqrt(sum(np.sum(b.theta**2, axis=0) for b in linear.blocks))
    data = np.maximum(np.diag(found.information - prior_precision(problem)), 0.0)
    projected = np.sqrt(sum(np.sum(p**2, axis=0) for p in linear.projected))
    projected = np.minimum(projected, np.sqrt(data)) if problem.sessions.extra else projected
    std = np.sqrt(np.maximum(np.diag(found.covariance), 0))
    naive = np.sqrt(np.maximum(np.diag(found.naive), 0))
    finite = np.isfinite(std) & np.isfinite(naive) & (naive > 0)
    misfit = float(np.median(std[finite] / naive[finite])) if finite.any() else 1.0
    unit = float(np.sqrt(found.unit_variance))
    low, high = problem.transform.bounds
    width = np.where(np.isfinite(high - low), high - low, 1.0)
    u = linear.u[: len(problem.names)]
    near = np.minimum(u - low, high - u) <= 1e-3 * width
    near |= _logit_at_bound(problem, u)
    conditional = np.where(
        projected > 0, misfit * unit / np.where(projected > 0, projected, 1), np.inf
    )
    borrowed = _borrowed(problem, found)
    return [
        _Evidence(
            std=float(std[i]),
            naive=float(naive[i]),
            conditional=float(conditional[i]),
            raw=float(raw[i]),
            projected=float(projected[i]),
            at_bound=bool(near[i]),
            borrowed=float(borrowed[i]),
        )
        for i in range(len(std))
    ]


def _borrowed(problem: Problem, found: Spread) -> Array:
    """Share of each variance [P] that the prior sets, not the recordings.

    With A the information, prior included, and P the prior's: diag(A^-1 P A^-1) / diag(A^-1). It is
    one along directions that only the prior fixes.
    """
    inverse = pseudo_inverse(found.information)
    share = np.einsum("ij,jk,ki->i", inverse, prior_precision(problem), inverse)
    diagonal = np.diag(inverse)
    return share / np.where(diagonal > 0, diagonal, 1.0)


def _logit_at_bound(problem: Problem, u: Array) -> BoolArray:
    """Whether logit parameters [P] lie within a thousandth of a bound, which is at infinity."""
    parameters, values = problem.transform.parameters, problem.transform.backward(u)
    low, high = (np.array([getattr(p, end) for p in parameters]) for end in ("low", "high"))
    logit = np.array([p.transform == "logit" for p in parameters])
    with np.errstate(invalid="ignore"):
        return logit & (np.minimum(values - low, high - values) <= 1e-3 * (high - low))


def _correlation(covariance: Array) -> Array:
    std = np.sqrt(np.maximum(np.diag(covariance), 0))
    safe = np.where(np.isfinite(std) & (std > 0), std, 1.0)
    matrix = np.where(np.isfinite(covariance), covariance, 0.0) / np.outer(safe, safe)
    return np.clip(matrix, -1, 1)


def _row(
    problem: Problem,
    u: Array,
    found: Spread,
    evidence: list[_Evidence],
    correlation: Array,
    i: int,
    before: float,
    determined: float,
) -> ParameterVerdict:
    facts, parameter = evidence[i], problem.transform.parameters[i]
    verdict = judge(facts, determined)
    order: list[int] = np.argsort(-np.abs(correlation[i])).tolist()
    partners = {
        problem.names[j]: float(correlation[i, j])
        for j in order
        if j != i and abs(correlation[i, j]) >= _PARTNER
    }
    value, low, high = _interval(problem, u, i, facts.std, found.freedom)
    slope = float(problem.transform.derivative(u)[i])
    return ParameterVerdict(
        name=parameter.name,
        unit=parameter.unit,
        before=before,
        value=value,
        low=low,
        high=high,
        std=abs(slope) * facts.std,
        naive_std=abs(slope) * facts.naive,
        verdict=verdict,
        detail=_detail(parameter, facts, verdict, partners, determined, abs(slope)),
        partners=partners,
    )


def _interval(
    problem: Problem, u: Array, i: int, std: float, freedom: float
) -> tuple[float, float, float]:
    """Value and 90 % interval in the parameter's unit, computed in coordinates."""
    factor = float(stats.t.ppf(0.95, freedom)) if np.isfinite(freedom) else 1.6448536
    ends = np.stack([u, u, u])
    if np.isfinite(std):
        ends[1, i], ends[2, i] = u[i] - factor * std, u[i] + factor * std
        value, low, high = problem.transform.backward(ends)[:, i]
        return float(value), float(low), float(high)
    parameter = problem.transform.parameters[i]
    return float(problem.transform.backward(u)[i]), parameter.low, parameter.high


def _detail(
    parameter: Parameter,
    facts: _Evidence,
    verdict: Verdict,
    partners: dict[str, float],
    determined: float,
    slope: float,
) -> str:
    spread = _spread(parameter, facts.std, slope)
    if verdict == "determined":
        return f"Fixed to {spread} (one standard deviation)."
    if verdict == "zero gradient":
        return "Changing it changes nothing that was measured."
    if verdict == "at bound":
        bounds = f"[{parameter.low:.4g}, {parameter.high:.4g}] {parameter.unit}".strip()
        return f"The fit wants to leave {bounds}."
    if verdict == "no interval":
        return "There were too few episodes for an interval."
    if facts.std <= determined:
        share = f"{100 * facts.borrowed:.0f} %"
        names = f" It can only be told together with {', '.join(partners)}." if partners else ""
        return f"Fixed to {spread} by its prior: {share} of that comes from it.{names}"
    if verdict == "only in combination":
        names = ", ".join(partners) or "several others at once"
        return f"Known only together with {names}; alone to {spread} only."
    if facts.projected <= _CONFOUNDED * facts.raw:
        return "Any change of it is absorbed by the unknown start states."
    limit = _spread(parameter, determined, slope)
    return f"Known to {spread} only; below {limit} would count as determined."


def _spread(parameter: Parameter, std: float, slope: float) -> str:
    """A standard deviation in coordinates, in words: per cent, a factor, or units."""
    if not np.isfinite(std):
        return "any value"
    if parameter.transform != "log":
        return f"±{slope * std:.2g} {parameter.unit}".strip()
    return f"{100 * std:.2g} %" if std < 1 else f"a factor of {np.exp(min(std, 700.0)):.2g}"


def _combinations(
    problem: Problem, linear: Linear, found: Spread, loose: list[int], determined: float
) -> tuple[Combination, ...]:
    """Determined directions among the loose parameters, by SVD of the projected Jacobian."""
    if len(loose) < 2:
        return ()
    jacobian = linear.jacobian[:, loose]
    _, _, directions = np.linalg.svd(jacobian, full_matrices=False)
    block = found.covariance[np.ix_(loose, loose)]
    kept: list[Combination] = []
    for direction in directions:
        weights = direction / direction[np.argmax(np.abs(direction))]
        std = float(np.sqrt(max(weights @ block @ weights, 0.0)))
        if np.sum(np.abs(weights) > 0.1) < 2 or not std <= determined:
            continue
        if _share_along(problem, found, loose, weights) > _BORROWED:
            continue
        named = {problem.names[loose[k]]: float(w) for k, w in enumerate(weights) if abs(w) > 0.05}
        kept.append(Combination(weights=named, std=std, text=_text(problem, named)))
    return tuple(kept)


def _share_along(problem: Problem, found: Spread, loose: list[int], weights: Array) -> float:
    """Share of a combination's variance that the prior sets."""
    along = pseudo_inverse(found.information)[:, loose] @ weights
    total = float(weights @ along[loose])
    return float(along @ prior_precision(problem) @ along) / total if total > 0 else 1.0


def _text(problem: Problem, weights: dict[str, float]) -> str:
    kinds = {p.name: p.transform for p in problem.transform.parameters}
    if all(kinds[name] == "log" for name in weights):
        return " x ".join(f"{name}^{weight:.2g}" for name, weight in weights.items())
    return " + ".join(f"{weight:.2g} {name}" for name, weight in weights.items())
