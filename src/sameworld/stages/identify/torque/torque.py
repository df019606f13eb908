"""``identify_torque``: inertia and friction of joints from logged torques, without simulating.

Where torques were logged, they are linear in the inertia of every body and in the friction of every
joint. The fit is then a small least-squares problem: seconds instead of minutes, no start states,
no local minima to speak of.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.values import Values
from sameworld.core.world import InverseWorld, World
from sameworld.maths.robust import autocorrelation
from sameworld.stages.identify.holdout import score_holdout, split
from sameworld.stages.identify.result import (
    HoldoutScore,
    IdentifyResult,
    ParameterVerdict,
    ResidualSummary,
)
from sameworld.stages.identify.torque.base import determined_combinations
from sameworld.stages.identify.torque.config import TorqueConfig
from sameworld.stages.identify.torque.design import Design, make_design
from sameworld.stages.identify.torque.fit import (
    Solution,
    cross_validated,
    pieces_of,
    predicted,
    solve,
)
from sameworld.stages.identify.torque.friction import friction_widths
from sameworld.stages.identify.torque.layout import Layout, make_layout
from sameworld.stages.identify.torque.motion import Motion, read_motion, torque_channels
from sameworld.stages.identify.torque.spread import TorqueSpread, torque_spread
from sameworld.stages.identify.torque.verdicts import (
    SPOKEN,
    advise_torque,
    judge_torque,
    named,
    posterior_of,
)

__all__ = ["TorqueModel", "fit_torque", "identify_torque"]

_WHITE = 2.576


@dataclass(frozen=True, kw_only=True, eq=False)
class TorqueModel:
    """Torques of a mechanism, fitted.

    Attributes:
        world: The world as given.
        layout: What was free.
        solution: The fit.
        spread: Its covariance.
        config: Options.
        pieces: The data it was fitted to.
        validation: Root mean square torque error per joint [V] on pieces left out of the fit.
        width90: Half width per joint [V] of 90 % prediction intervals, in standard deviations that
            residuals and uncertain parameters make together; from the same errors.
    """

    world: InverseWorld
    layout: Layout
    solution: Solution
    spread: TorqueSpread
    config: TorqueConfig
    pieces: tuple[Design, ...]
    validation: Array
    width90: Array

    @cached_property
    def posterior(self) -> Belief:
        """Joint belief over the fitted parameters."""
        rows = named(self.layout, self.solution, self.pieces)
        return posterior_of(rows, self.spread.covariance)

    @cached_property
    def verdicts(self) -> tuple[ParameterVerdict, ...]:
        """What may be said about each fitted parameter."""
        rows = named(self.layout, self.solution, self.pieces)
        limit = self.config.determined
        return judge_torque(rows, self.layout, self.spread, self.solution.x, limit)

    def predict(self, motion: Motion) -> Array:
        """Torques [N, V] for every row of a motion, on its full clock."""
        return predicted(self._design(motion), self.layout, self.solution.x)

    def half_width(self, motion: Motion) -> Array:
        """Half widths [N, V] of 90 % intervals around ``predict``; wider in unfamiliar motion."""
        design = self._design(motion)
        return self.width90 * _deviation(design, self.layout, self.solution, self.spread)

    def _design(self, motion: Motion) -> Design:
        widths = friction_widths(self.config.friction)[self.solution.width]
        shape, cutoff = self.config.friction, self.config.cutoff
        return make_design(self.layout, motion, shape, widths[None], cutoff=cutoff, thin=False)

    def fitted(self) -> World:
        """The world believing the posterior, as far as it has such parameters."""
        known, posterior = set(self.world.parameters.names), self.posterior
        own = posterior.marginal(name for name in posterior.names if name in known)
        return self.world.with_belief(self.world.parameters.updated(own))


def fit_torque(
    world: World, motions: Sequence[Motion], *, channels: Sequence[str], config: TorqueConfig
) -> TorqueModel:
    """Fit inertia and joint terms to motions, without gate or report.

    Args:
        world: World with capability ``inverse``.
        motions: Filtered motions from ``read_motion``.
        channels: Torque channel of each joint, which names the offsets.
        config: Options.

    Raises:
        FitError: The world cannot, nothing is free, or there is too little data.
        AddressError: A pattern matches nothing.
    """
    able = _able(world)
    layout = make_layout(able, channels, config.free, config.pull)
    return _fitted(able, layout, pieces_of(layout, motions, config), config)


def _able(world: World) -> InverseWorld:
    if "inverse" not in world.spec.capabilities:
        raise FitError(
            "This world has no inverse dynamics (capability 'inverse'). Use the explicit world, or "
            "identify(), which simulates."
        )
    return cast(InverseWorld, world)


def _fitted(
    world: InverseWorld, layout: Layout, pieces: Sequence[Design], config: TorqueConfig
) -> TorqueModel:
    found = solve(pieces, layout, config)
    shaped = tuple(piece.shaped(layout, found.width) for piece in pieces)
    spread = torque_spread(shaped, layout, found)
    errors = np.concatenate(cross_validated(shaped, layout, found))
    expected = np.concatenate([_deviation(p, layout, found, spread) for p in shaped])
    count = len(errors) / found.memory
    levels = np.minimum(0.9 * (count + 1) / count, 1.0)
    sizes = np.abs(errors / expected).T
    width = [np.quantile(size, level) for size, level in zip(sizes, levels, strict=True)]
    return TorqueModel(
        world=world,
        layout=layout,
        solution=found,
        spread=spread,
        config=config,
        pieces=shaped,
        validation=np.sqrt(np.mean(errors**2, axis=0)),
        width90=np.array(width),
    )


def _deviation(design: Design, layout: Layout, found: Solution, spread: TorqueSpread) -> Array:
    """Standard deviation [N, V] of measured around predicted torques."""
    rows = design.columns @ layout.coefficients(found.x)[1]
    unsure = np.einsum("nvp,nvp->nv", rows @ spread.covariance, rows)
    return np.sqrt(found.deviation**2 + np.maximum(unsure, 0.0))


def identify_torque(
    world: World, episodes: Sequence[Episode], *, config: TorqueConfig
) -> tuple[World, tuple[Episode, ...], IdentifyResult]:
    """Fit inertia, friction and torque offsets to logged torques.

    The answer is that of ``identify``: posterior, verdicts, combinations, a gate on pieces of
    motion that the fit had not seen, and advice. Offsets (``sensor:CHANNEL.bias``) of channels that
    the world does not observe stay in the posterior only. Start states play no role.

    Args:
        world: World with capability ``inverse`` whose joints are hinges or slides.
        episodes: Recordings with position and torque of every joint.
        config: Options.

    Returns:
        The world with its new belief (the given one if the gate fails), the episodes, the result.

    Raises:
        FitError: The world cannot, nothing is free, or there is too little data.
        EpisodeError: A channel is missing, or an episode too short.
        AddressError: A pattern in ``config.free`` matches nothing.
    """
    began = time.process_time()
    able = _able(world)
    if not episodes:
        raise FitError("No episodes to fit. Record at least one.")
    named_channels = torque_channels(able, episodes[0], config)
    channels = [named_channels[joint][0] for joint in able.mechanism.dofs]
    motions = [read_motion(able, episode, config) for episode in episodes]
    layout = make_layout(able, channels, config.free, config.pull)
    pieces = pieces_of(layout, motions, config)
    score = _gate(able, layout, pieces, config)
    model = _fitted(able, layout, pieces, config)
    accepted = score is None or score.passed
    result = _result(model, score, episodes, time.process_time() - began)
    return model.fitted() if accepted else world, tuple(episodes), result


def _gate(
    world: InverseWorld, layout: Layout, pieces: Sequence[Design], config: TorqueConfig
) -> HoldoutScore | None:
    """Score of pieces that a trial fit has not seen; ``None`` if there are too few."""
    kept, held = split(len(pieces), config.holdout, config.seed)
    if not held:
        return None
    trial = solve([pieces[k] for k in kept], layout, config)
    shaped = [pieces[k].shaped(layout, trial.width) for k in held]
    given = np.clip(layout.given, *layout.bounds)
    before = [_prediction(p, layout, given, k) for p, k in zip(shaped, held, strict=True)]
    after = [_prediction(p, layout, trial.x, k) for p, k in zip(shaped, held, strict=True)]
    return score_holdout(before, after, seed=config.seed)


def _prediction(piece: Design, layout: Layout, x: Array, number: int) -> Prediction:
    """Torques of a piece as a prediction, for scoring."""
    said = predicted(piece, layout, x)
    motion = piece.motion
    channels = {
        channel: ChannelPrediction(
            time=motion.time,
            values=said[:, joint],
            low=said[:, joint],
            high=said[:, joint],
            error=motion.torque[:, joint : joint + 1] - said[:, joint : joint + 1],
        )
        for joint, channel in enumerate(layout.channels)
    }
    return Prediction(
        episode=f"{motion.episode}[{number}]",
        warmup=0,
        channels=channels,
        level=0.9,
        calibrated=False,
        valid=True,
        start=Values.none(),
        trust=np.full(len(motion), np.nan),
        trust_time=motion.time,
    )


def _result(
    model: TorqueModel, score: HoldoutScore | None, episodes: Sequence[Episode], seconds: float
) -> IdentifyResult:
    layout, found, spread = model.layout, model.solution, model.spread
    rows = named(layout, found, model.pieces)
    ratios = [v.misfit for v in model.verdicts if np.isfinite(v.misfit)]
    return IdentifyResult(
        posterior=model.posterior,
        naive_covariance=rows.slope @ spread.naive @ rows.slope.T,
        covariance_kind=spread.kind,
        misfit_factor=float(np.sqrt(np.mean(np.square(ratios)))) if ratios else float("nan"),
        verdicts=model.verdicts,
        combinations=determined_combinations(
            model.pieces, layout, found.x, spread.covariance, SPOKEN
        ),
        holdout=score,
        residuals=_residuals(model),
        delays=(),
        advice=advise_torque(model.verdicts, found.message),
        searches=(),
        cost=found.cost,
        history=found.history,
        episodes=tuple(e.id for e in episodes),
        windows=len(model.pieces),
        rollouts=0,
        cpu_seconds=seconds,
        seed=model.config.seed,
    )


def _residuals(model: TorqueModel) -> tuple[ResidualSummary, ...]:
    """One row per torque channel."""
    layout = model.layout
    given = np.clip(layout.given, *layout.bounds)
    old, new = (
        [p.motion.torque - predicted(p, layout, x) for p in model.pieces]
        for x in (given, model.solution.x)
    )
    noise = np.mean([piece.motion.noise for piece in model.pieces], axis=0)
    before = np.sqrt(np.mean(np.concatenate(old) ** 2, axis=0))
    rows: list[ResidualSummary] = []
    for joint, channel in enumerate(layout.channels):
        series = np.concatenate([r[:, joint] for r in new])
        rho = autocorrelation(series)
        rows.append(
            ResidualSummary(
                channel=channel,
                unit="N m",
                noise=float(noise[joint]),
                weight_std=float(model.solution.deviation[joint]),
                rms_before=float(before[joint]),
                rms_after=float(np.sqrt(np.mean(series**2))),
                whiteness=rho,
                white=bool(abs(rho) * np.sqrt(len(series)) <= _WHITE),
            )
        )
    return tuple(rows)
