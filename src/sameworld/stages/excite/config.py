"""Options of ``excite``, and what a motion must keep to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from sameworld.core.errors import FitError, SpecError, closest, listed

__all__ = ["Criterion", "Drive", "ExciteConfig", "Limit", "Search", "Shape"]

Criterion = Literal["D", "A", "E"]
Drive = Literal["auto", "position", "torque", "command"]
Search = Literal["cobyqa", "cma", "none"]
Shape = Literal["fourier", "spline"]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Bounds of a signal over a whole motion, commands and simulated observations alike.

    Attributes:
        signal: Name or pattern of actions and observations, e.g. ``joint*.pos`` or ``hand``.
        low: Lower bound [unit], one number or one per component (a corner of a workspace box).
        high: Upper bound [unit] likewise.
        speed: Largest magnitude of the rate of change [unit/s].
        acceleration: Largest magnitude of the second derivative [unit/s^2].
    """

    signal: str
    low: float | tuple[float, ...] = -math.inf
    high: float | tuple[float, ...] = math.inf
    speed: float = math.inf
    acceleration: float = math.inf

    def __post_init__(self) -> None:
        try:
            low, high = np.broadcast_arrays(np.asarray(self.low), np.asarray(self.high))
        except ValueError:
            raise SpecError(
                f"Limit of '{self.signal}' has bounds of different length: low {self.low}, high "
                f"{self.high}."
            ) from None
        if not (low <= high).all():
            raise SpecError(f"Limit of '{self.signal}' is empty: low {self.low}, high {self.high}.")
        if not (self.speed > 0 and self.acceleration > 0):
            raise SpecError(f"Limit of '{self.signal}' needs a positive speed and acceleration.")


@dataclass(frozen=True, kw_only=True)
class ExciteConfig:
    """Options of ``excite``.

    Attributes:
        free: Patterns of the parameter addresses that the coming fit will estimate.
        wanted: Patterns among them that the motions shall determine; the others are nuisances.
            Empty wants all.
        noise: Pattern of observations to the standard deviation of their measurement noise
            [unit; rad for quaternions]. Channels without an entry take that of the earlier
            episodes; without any they are not measured.
        motions: How many motions, each designed given those before it.
        duration: Length of each motion [s].
        limits: What motions keep to, besides the bounds that the world's spec declares.
        shape: ``fourier`` is a finite Fourier series that begins and ends at rest, ``spline``
            a cubic B-spline that does.
        terms: Highest harmonic of the series (at least 2), or inner control points of the spline.
        drive: What commands mean: joint positions that something follows, or torques, for which a
            joint path is turned into commands by the world's inverse dynamics; ``command`` shapes
            the commands as they are, whatever follows. ``auto`` reads their unit.
        actions: Patterns of the commands that move; empty takes all that can. Others rest.
        home: Command to the position of its joint (for ``command``: to its value) at which motions
            begin and end; absent ones take the world's default start (zero).
        settle: Time the arm rests at home before a motion begins [s]; its state then is the start.
        criterion: What is made small of the posterior covariance of the wanted parameters: ``D``
            its determinant, ``A`` its trace, ``E`` its largest eigenvalue.
        search: How coefficients are improved: ``cobyqa`` (quadratic models in a trust region),
            ``cma`` (extra ``global``), or ``none``, which keeps the best random motion.
        candidates: Random motions screened per motion.
        polished: How many of the best are improved.
        evaluations: Motions simulated to improve, per motion, over all that are improved.
        draws: Draws of the free parameters for which the final motions must keep to the limits,
            besides the mean.
        warmup: Rows of earlier episodes from which their starts are found.
        seed: Seed of everything random.
    """

    free: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    motions: int = 1
    duration: float = 5.0
    limits: tuple[Limit, ...] = ()
    shape: Shape = "fourier"
    terms: int = 5
    drive: Drive = "auto"
    actions: tuple[str, ...] = ()
    home: Mapping[str, float] = field(default_factory=dict[str, float])
    settle: float = 2.0
    criterion: Criterion = "D"
    search: Search = "cobyqa"
    candidates: int = 32
    polished: int = 1
    evaluations: int = 300
    draws: int = 0
    warmup: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("free", "wanted", "actions"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "limits", tuple(self.limits))
        words = {"shape": Shape, "drive": Drive, "criterion": Criterion, "search": Search}
        for name, literal in words.items():
            value = getattr(self, name)
            if value not in get_args(literal):
                raise FitError(
                    f"{name} = {value!r} must be one of {listed(get_args(literal))}."
                    f"{closest(str(value), get_args(literal))}"
                )
        if not self.free:
            raise FitError("free is empty: name the parameters to design for, 'body:*.mass' say.")
        least = {"motions": 1, "candidates": 1, "polished": 1, "evaluations": 0, "draws": 0}
        least |= {"terms": 2 if self.shape == "fourier" else 1, "warmup": 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise FitError(f"{name} = {getattr(self, name)} must be at least {low}.")
        if not (math.isfinite(self.duration) and self.duration > 0 and self.settle >= 0):
            raise FitError("duration must be positive and settle must not be negative.")
        bad = [name for name, sd in self.noise.items() if not (math.isfinite(sd) and sd > 0)]
        if bad:
            raise FitError(f"The noise of {listed(bad)} must be positive.")
