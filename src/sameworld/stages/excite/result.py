"""What ``excite`` proposes and predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel
from sameworld.core.spec import Spec
from sameworld.core.values import Values

__all__ = ["Appraisal", "Bound", "ExciteResult", "Margin", "Motion", "ParameterGain", "Step"]

Bound = Literal["low", "high", "speed", "acceleration"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """Commands to send, and what the world expects to be seen.

    Attributes:
        name: Name of the motion.
        time: Times at which the commands are sent [T] s; each is held until the next.
        actions: Commands [T, A].
        start: The start it was designed from, at rest [1, S].
        signals: Simulated observations at control ticks {name: [T+1, ...]}.
        coefficients: Coefficients of the shape per moving command [J, M], in the path's unit.
    """

    name: str
    time: Array
    actions: Array
    start: Values
    signals: Mapping[str, Array]
    coefficients: Array

    def channels(self, spec: Spec) -> tuple[Channel, ...]:
        """The commands as action channels of an episode."""
        found: list[Channel] = []
        at = 0
        for c in spec.actions:
            values = self.actions[:, at : at + c.size].reshape(len(self.time), *c.shape)
            found.append(
                Channel(name=c.name, time=self.time, values=values, unit=c.unit, role="action")
            )
            at += c.size
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Room left to a bound.

    Attributes:
        signal: Action or observation.
        bound: Which bound.
        limit: Its value [unit, unit/s or unit/s^2].
        left: What is left to it in the same unit; negative where it is passed.
        share: The same relative to the range of the signal, or to the bound of a rate.
    """

    signal: str
    bound: Bound
    limit: float
    left: float
    share: float


@dataclass(frozen=True, kw_only=True)
class ParameterGain:
    """What the motions are predicted to say about one parameter.

    Attributes:
        name: Address.
        unit: SI unit.
        value: Believed value, at which the prediction is made [unit].
        before: Standard deviation before [unit]; without an opinion that of a uniform
            distribution over finite bounds, else a very wide one.
        after: Standard deviation predicted after all motions [unit].
        wanted: Whether the design was for it.
    """

    name: str
    unit: str
    value: float
    before: float
    after: float
    wanted: bool


@dataclass(frozen=True, kw_only=True)
class Step:
    """The search of one motion.

    Attributes:
        motion: Name of the motion.
        screened: Criterion after the motion, for each random candidate that keeps to the limits.
        trace: Best criterion so far, after each simulated motion of the improvement.
        criterion: Criterion of the motion that was chosen, all before it included.
        scale: Factor by which the chosen path was shrunk to keep to the limits.
    """

    motion: str
    screened: tuple[float, ...]
    trace: tuple[float, ...]
    criterion: float
    scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Appraisal:
    """What motions are predicted to say about the free parameters.

    Everything is in the coordinates in which ``identify`` sees parameters: natural logarithm for
    ``transform="log"``, units of the prior's spread for ``identity``.

    Attributes:
        names: Free parameters P.
        wanted: Names among them that are wanted.
        prior: Information before the motions [P, P].
        information: Information each motion adds, starts eliminated [K, P, P].
        violations: How far each motion passes its limits [K], 0 where it keeps to them.
        gains: Predicted spreads per parameter.
    """

    names: tuple[str, ...]
    wanted: tuple[str, ...]
    prior: Array
    information: Array
    violations: Array
    gains: tuple[ParameterGain, ...]

    @property
    def covariance(self) -> Array:
        """Predicted posterior covariance of all free parameters [P, P], coordinates."""
        return cast("Array", np.linalg.inv(self.prior + self.information.sum(axis=0)))

    @property
    def logdet_before(self) -> float:
        """Log-determinant of the wanted parameters' covariance before."""
        return self._logdet(cast("Array", np.linalg.inv(self.prior)))

    @property
    def logdet(self) -> float:
        """Log-determinant of the wanted parameters' predicted covariance."""
        return self._logdet(self.covariance)

    def _logdet(self, covariance: Array) -> float:
        rows = [self.names.index(name) for name in self.wanted]
        return float(np.linalg.slogdet(covariance[np.ix_(rows, rows)])[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class ExciteResult:
    """What was designed.

    Attributes:
        appraisal: Predicted information and spreads, by central differences where derivatives are
            not exact.
        margins: Room left to every bound, the least over motions and draws.
        steps: The search, motion by motion.
        noise: Noise assumed per measured channel [unit].
        rollouts: Simulated trajectories.
        method: How derivatives were computed.
        advice: What no motion within these limits will tell, and which bound to widen.
    """

    appraisal: Appraisal
    margins: tuple[Margin, ...]
    steps: tuple[Step, ...]
    noise: Mapping[str, float]
    rollouts: int
    method: Literal["gradient", "differences"]
    advice: tuple[str, ...]

    def gain(self, name: str) -> ParameterGain:
        """The prediction for one parameter.

        Raises:
            KeyError: It is not among the free ones.
        """
        return {g.name: g for g in self.appraisal.gains}[name]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; infinities become ``None``."""
        return {
            "logdet_before": self.appraisal.logdet_before,
            "logdet": self.appraisal.logdet,
            "names": list(self.appraisal.names),
            "wanted": list(self.appraisal.wanted),
            "covariance": self.appraisal.covariance.tolist(),
            "gains": [_plain(asdict(g)) for g in self.appraisal.gains],
            "margins": [_plain(asdict(m)) for m in self.margins],
            "steps": [asdict(s) for s in self.steps],
            "noise": dict(self.noise),
            "rollouts": self.rollouts,
            "method": self.method,
            "advice": list(self.advice),
        }


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()
    }
