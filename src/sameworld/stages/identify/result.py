"""What identification returns: numbers with intervals, verdicts, and what was not learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief

__all__ = [
    "Combination",
    "DelayAudit",
    "HoldoutScore",
    "IdentifyResult",
    "ParameterVerdict",
    "ResidualSummary",
    "SearchStart",
    "SessionSpread",
    "SessionValue",
    "Verdict",
]

Verdict = Literal[
    "determined", "only in combination", "not excited", "at bound", "zero gradient", "no interval"
]


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A product of powers (log parameters) or weighted sum that the data do determine.

    Attributes:
        weights: Parameter name to its weight, largest magnitude 1.
        std: Posterior standard deviation of the combination (relative for log parameters).
        text: The combination in plain words, e.g. ``body:a.mass / joint:j.damping``.
    """

    weights: Mapping[str, float]
    std: float
    text: str


@dataclass(frozen=True, kw_only=True)
class ParameterVerdict:
    """One row of the verdict table.

    Attributes:
        name: Address.
        unit: SI unit.
        before: Value before the fit [unit].
        value: Fitted value [unit].
        low: Lower end of the 90 % interval [unit].
        high: Upper end of the 90 % interval [unit].
        std: Standard deviation by the default covariance [unit].
        naive_std: Standard deviation by J'J with white noise [unit].
        verdict: What may be said about it.
        detail: The reason in one sentence.
        partners: Parameters it cannot be told apart from, with correlations.
    """

    name: str
    unit: str
    before: float
    value: float
    low: float
    high: float
    std: float
    naive_std: float
    verdict: Verdict
    detail: str
    partners: Mapping[str, float]

    @property
    def misfit(self) -> float:
        """How many times wider the honest spread is than the white-noise one."""
        return self.std / self.naive_std if self.naive_std > 0 else float("nan")


@dataclass(frozen=True, kw_only=True)
class HoldoutScore:
    """Prediction on episodes that the fit never saw, before and after.

    Errors are, per episode, the time mean of the error norm over the scored rows.

    Attributes:
        episodes: Ids of the held-out episodes.
        warmup: Rows used to find each start; they are not scored.
        before: Channel name to errors per episode with the world as given.
        after: The same with the fitted world.
        gain: Relative reduction of the error, channels weighted by their typical error before;
            median over episodes.
        gain_low: Lower end of its 90 % paired bootstrap interval.
        gain_high: Upper end.
        passed: Whether the fitted world is accepted, by the rule ``IdentifyConfig.gate``.
    """

    episodes: tuple[str, ...]
    warmup: int
    before: Mapping[str, tuple[float, ...]]
    after: Mapping[str, tuple[float, ...]]
    gain: float
    gain_low: float
    gain_high: float
    passed: bool


@dataclass(frozen=True, kw_only=True)
class ResidualSummary:
    """Residuals of one channel on the episodes that were fitted.

    Attributes:
        channel: Channel name.
        unit: Unit of the residuals (rad for quaternions).
        noise: Measurement noise estimated from the data alone [unit].
        weight_std: Robust standard deviation of the residuals after the fit, whole windows pooled
            [unit].
        rms_before: Root mean square with the world as given [unit].
        rms_after: Root mean square after the fit [unit].
        whiteness: Lag-1 autocorrelation of the residuals after the fit; 0 if white.
        white: Whether whiteness cannot be rejected at 1 %.
    """

    channel: str
    unit: str
    noise: float
    weight_std: float
    rms_before: float
    rms_after: float
    whiteness: float
    white: bool


@dataclass(frozen=True, kw_only=True)
class DelayAudit:
    """Time shift between actions and observations that the fit left unexplained.

    Attributes:
        channel: Channel name.
        delay: Estimated residual delay [s]; positive if the data lag the simulation.
        std: Its standard deviation [s].
        suspicious: Whether it is both significant and large against the sampling period.
        text: What to do.
    """

    channel: str
    delay: float
    std: float
    suspicious: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class SearchStart:
    """One start of the search.

    Attributes:
        values: Parameter values it began from.
        screened: Cost at the screening.
        cost: Final cost, NaN if it was not polished.
        message: The optimiser's closing message.
    """

    values: Mapping[str, float]
    screened: float
    cost: float
    message: str


@dataclass(frozen=True, kw_only=True)
class SessionValue:
    """One parameter in one session.

    Attributes:
        session: Name of the session.
        episodes: Number of its fitted episodes.
        value: Estimate, drawn towards the population's mean as far as the session is uncertain
            [unit].
        low: Lower end of the 90 % interval [unit].
        high: Upper end [unit].
        std: Standard deviation [unit].
        shrinkage: Share of the estimate that comes from the other sessions: 0 if the session
            speaks for itself, 1 if sessions do not differ or the session shows nothing.
        verdict: What may be said about it.
    """

    session: str
    episodes: int
    value: float
    low: float
    high: float
    std: float
    shrinkage: float
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class SessionSpread:
    """A parameter that differs between sessions: population and sessions.

    Attributes:
        name: Address.
        unit: SI unit.
        mean: Mean of the population (of the logarithms for log parameters) [unit].
        low: Lower end of the mean's 90 % interval [unit].
        high: Upper end [unit].
        std: Standard deviation of the mean [unit].
        spread: Standard deviation between sessions [unit]; 0 if they do not differ visibly.
        spread_low: Lower end of the spread's 90 % profile interval [unit].
        spread_high: Upper end [unit]; infinite if the sessions are too few to say.
        relative: Whether sessions vary by factors, so that spreads over the mean are the natural
            numbers.
        values: One row per session.
    """

    name: str
    unit: str
    mean: float
    low: float
    high: float
    std: float
    spread: float
    spread_low: float
    spread_high: float
    relative: bool
    values: tuple[SessionValue, ...]

    def session(self, name: str) -> SessionValue:
        """Row of one session; raises KeyError with the sessions that exist."""
        for row in self.values:
            if row.session == name:
                return row
        raise KeyError(f"no session {name!r}; sessions: {[r.session for r in self.values]}")


@dataclass(frozen=True, kw_only=True, eq=False)
class IdentifyResult:
    """Everything identification found out.

    Attributes:
        posterior: Belief over the fitted parameters, default covariance; where sessions differ,
            what to expect of a new session (the spread between sessions included).
        naive_covariance: J'J covariance in the parameters' units [P, P].
        covariance_kind: ``episode sandwich``, ``window sandwich``, ``block bootstrap``,
            ``session sandwich`` or ``session model``; ``left out`` if parameters are too many.
        misfit_factor: Root mean square ratio of default over J'J spread, over parameters.
        verdicts: One row per fitted parameter.
        combinations: Combinations that are determined although their parts are not.
        holdout: Score on held-out episodes; ``None`` if there were too few episodes.
        residuals: One row per channel.
        delays: Delay audit per channel.
        advice: What to record next, in plain words.
        searches: The multi-start table.
        cost: Final cost, half the sum of squared weighted residuals.
        history: Cost per outer iteration of the best start.
        episodes: Ids of the fitted episodes.
        windows: Number of shooting windows.
        rollouts: Trajectories that the optimiser simulated; screening, step choice, warm starts,
            audits and cross-fitting come on top (``cpu_seconds`` counts everything).
        cpu_seconds: Process time spent.
        seed: Seed of everything random.
        blocks_only: Whether a world with ``fit`` trained blocks instead of named parameters.
        derivatives: How residuals were differentiated: ``exact`` by the world's own gradient,
            ``differences`` by batched rollouts; ``none`` for blocks.
        optimiser: What minimised the cost; ``none`` for blocks.
        sessions: Population and sessions of each parameter that differs between sessions.
    """

    posterior: Belief
    naive_covariance: Array
    covariance_kind: str
    misfit_factor: float
    verdicts: tuple[ParameterVerdict, ...]
    combinations: tuple[Combination, ...]
    holdout: HoldoutScore | None
    residuals: tuple[ResidualSummary, ...]
    delays: tuple[DelayAudit, ...]
    advice: tuple[str, ...]
    searches: tuple[SearchStart, ...]
    cost: float
    history: tuple[float, ...]
    episodes: tuple[str, ...]
    windows: int
    rollouts: int
    cpu_seconds: float
    seed: int
    blocks_only: bool = False
    derivatives: Literal["exact", "differences", "none"] = "none"
    optimiser: Literal["least_squares", "lbfgs", "adam", "none"] = "none"
    sessions: tuple[SessionSpread, ...] = ()

    def verdict(self, name: str) -> ParameterVerdict:
        """Row of one parameter; raises KeyError with the names that exist."""
        for row in self.verdicts:
            if row.name == name:
                return row
        raise KeyError(f"{name!r} was not fitted; fitted: {[r.name for r in self.verdicts]}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping (NaN and infinities become ``None``)."""
        record = _plain(self)
        record["posterior"] = self.posterior.to_json()
        return record


def _plain(value: Any) -> Any:
    if isinstance(value, Belief):
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):  # numpy's float64 is one
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    raise TypeError(f"cannot serialise {type(value).__name__}")
