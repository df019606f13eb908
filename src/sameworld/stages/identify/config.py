"""Options of ``identify``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import FitError

__all__ = [
    "Derivatives",
    "Gate",
    "IdentifyConfig",
    "Loss",
    "Optimiser",
    "Search",
    "Starts",
    "Weighting",
]

Weighting = Literal["noise", "channel", "horizon"]
Search = Literal["sobol", "cma", "none"]
Loss = Literal["linear", "huber", "cauchy"]
Starts = Literal["auto", "joint", "warmup"]
Derivatives = Literal["auto", "exact", "differences"]
Optimiser = Literal["auto", "least_squares", "lbfgs", "adam"]
Gate = Literal["auto", "not_worse", "better"]


@dataclass(frozen=True, kw_only=True)
class IdentifyConfig:
    """Options of ``identify``.

    Attributes:
        free: Patterns of the parameter addresses to fit, e.g. ``joint:*.damping``. May be empty
            for worlds that train their own blocks.
        per_session: Patterns of free parameters that have one value per session (a battery
            voltage, a payload): each session's value, the population's mean and the spread between
            sessions are estimated together. Episodes say their session by ``session_id``.
        warmup: Rows of each channel from which starts are found wherever a prediction is scored.
        window: Length of the shooting windows [s]; 0 chooses it from how fast start errors grow;
            ``inf`` takes whole episodes.
        most_windows: Most windows cut from one episode.
        weighting: Standard deviation that residuals are divided by: measurement ``noise``; the
            residual scale of each ``channel``; or that scale as a function of the time since the
            window began (``horizon``), which also says how far the model may be trusted.
        starts: ``joint`` estimates every window's start together with the parameters (they are
            eliminated); ``warmup`` finds it from the window's first rows at each trial of the
            parameters, exactly as predictions do; ``auto`` takes ``warmup`` where windows had to be
            cut or end because starts are forgotten (contact), else ``joint``.
        loss: Shape of the loss beyond the threshold: none, ``huber`` or ``cauchy``.
        threshold: Standard deviations beyond which residuals lose weight.
        rounds: Most rounds of re-estimating residual scales, robust weights and spreads between
            sessions; they end when scales change by less than 2 %.
        search: How other starts of the search are proposed.
        optimiser: ``least_squares`` needs a Jacobian, a column per parameter; ``lbfgs``, ``adam``
            descend by reverse-mode slopes, which cost the same however many parameters there are
            (the world must declare ``gradient`` and ``pullback``); ``auto`` takes least squares up
            to 200 parameters.
        slopes: Most slopes per descent by ``lbfgs`` or ``adam``.
        candidates: Parameter points screened besides the given values.
        polished: How many of the best screened points are optimised.
        evaluations: Most function evaluations per optimisation.
        tolerance: Relative cost change at which an optimisation stops.
        difference: Central-difference step in the optimiser's coordinates (relative for log
            parameters); 0 chooses it per parameter. Contact makes trajectories rough: too small a
            step sees only the roughness.
        derivatives: ``exact`` takes the world's own (it must declare ``gradient``), ``differences``
            batched rollouts; ``auto`` takes exact ones where they are declared and the cost is not
            rough, so that the local slope is the trend.
        prior: Whether finite standard deviations of the free parameters act as a Gaussian prior.
        determined: Largest posterior standard deviation, in the optimiser's coordinates, at which
            a parameter counts as determined.
        holdout: Share of episodes kept out for the gate; 0 switches it off.
        gate: ``not_worse`` refuses what predicts held-out episodes worse beyond doubt, ``better``
            also what does not predict them better beyond doubt; ``auto`` takes ``not_worse`` for
            named parameters, which have verdicts of their own, and ``better`` for blocks.
        bootstrap: Draws of the block bootstrap used below eight episodes.
        seed: Seed of everything random.
    """

    free: tuple[str, ...] = ()
    per_session: tuple[str, ...] = ()
    warmup: int = 5
    window: float = 0.0
    most_windows: int = 8
    weighting: Weighting = "horizon"
    starts: Starts = "auto"
    loss: Loss = "cauchy"
    threshold: float = 2.385
    rounds: int = 8
    search: Search = "sobol"
    optimiser: Optimiser = "auto"
    slopes: int = 200
    candidates: int = 16
    polished: int = 2
    evaluations: int = 20
    tolerance: float = 1e-5
    difference: float = 0.0
    derivatives: Derivatives = "auto"
    prior: bool = True
    determined: float = 0.3
    holdout: float = 0.2
    gate: Gate = "auto"
    bootstrap: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("free", "per_session"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        words = {
            "weighting": Weighting,
            "search": Search,
            "loss": Loss,
            "starts": Starts,
            "derivatives": Derivatives,
            "optimiser": Optimiser,
            "gate": Gate,
        }
        for name, literal in words.items():
            if getattr(self, name) not in get_args(literal):
                raise FitError(
                    f"{name} = {getattr(self, name)!r} must be one of {get_args(literal)}."
                )
        for name, low in {
            "warmup": 1,
            "rounds": 1,
            "polished": 1,
            "evaluations": 1,
            "slopes": 1,
        }.items():
            if getattr(self, name) < low:
                raise FitError(f"{name} = {getattr(self, name)} must be at least {low}.")
        if not 0 <= self.holdout < 1:
            raise FitError(f"holdout = {self.holdout} must be a share in [0, 1).")
        if self.tolerance <= 0 or self.threshold <= 0:
            raise FitError("tolerance and threshold must be positive.")
        if self.difference < 0 or self.window < 0 or self.candidates < 0:
            raise FitError("difference, window and candidates must not be negative.")
