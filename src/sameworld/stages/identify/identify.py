"""``identify``: the one call that fits any kind of world to recordings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.checkpoint import Checkpoint
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError, SameworldWarning, listed
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.progress import Progress, Report, silent
from sameworld.core.signals import check_episode
from sameworld.core.world import FitWorld, World
from sameworld.maths.projection import pseudo_inverse, solve_columns
from sameworld.stages.identify.advice import advise
from sameworld.stages.identify.audit import delay_audit, residual_summaries
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.covariance import Spread, influence, spread
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.fit import Fitted, fit_parameters
from sameworld.stages.identify.holdout import learn_discrepancy, score_holdout, split
from sameworld.stages.identify.population import Population, population, session_spread
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import HoldoutScore, IdentifyResult
from sameworld.stages.identify.roughness import roughness
from sameworld.stages.identify.sessions import own_names, session_names, without_own
from sameworld.stages.identify.silence import warn_of_silence
from sameworld.stages.identify.solve import chosen_optimiser
from sameworld.stages.identify.torque.config import TorqueConfig
from sameworld.stages.identify.unjudged import unjudged, unknown_spread
from sameworld.stages.identify.verdicts import Judged, judge_all

__all__ = ["check_inputs", "identify"]

_FOLDS = 5
_UNJUDGED = (
    "Parameters are too many for intervals and verdicts: trust the held-out errors. Prediction "
    "intervals come from episodes that were fitted, and may be too narrow.",
)


def identify(
    world: World,
    episodes: Sequence[Episode],
    *,
    config: IdentifyConfig | TorqueConfig,
    progress: Report | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[World, tuple[Episode, ...], IdentifyResult]:
    """Fit a world to recorded episodes and say what the recordings could tell.

    Named parameters are fitted by noise-weighted least squares with every start state unknown;
    a world that declares ``fit`` and is given no free parameters trains its own blocks. Splits,
    warm-up, gate, scores and prediction intervals are the same for both. With a ``TorqueConfig``
    it is ``identify_torque``: logged torques, compared with inverse dynamics, nothing simulated.

    Args:
        world: Any world.
        episodes: Recordings; some are held out for the gate (``config.holdout``) and join the
            final fit once it has passed.
        config: Options.
        progress: Receives progress.
        checkpoint: Where finished phases are kept, so that a killed run resumes.

    Returns:
        The world with its new belief (the given values are kept if the gate fails), the episodes
        with their start beliefs, and the result.

    Raises:
        FitError: Nothing to fit, or too little data.
        EpisodeError: An episode does not fit the world.
        AddressError: A pattern in ``config.free`` matches nothing.
    """
    if isinstance(config, TorqueConfig):
        from sameworld.stages.identify.torque import identify_torque

        return identify_torque(world, episodes, config=config)
    began = time.process_time()
    report = progress or silent
    check_inputs(world, episodes, config=config)
    if not config.free:
        return _identify_blocks(cast(FitWorld, world), episodes, config, report, began)
    return _identify_parameters(world, episodes, config, report, checkpoint, began)


def check_inputs(world: World, episodes: Sequence[Episode], *, config: IdentifyConfig) -> None:
    """Refuse what ``identify`` cannot work with, before anything is simulated.

    Raises:
        FitError: Nothing to fit, too little data, or the wrong kind of world.
        EpisodeError: An episode does not fit the world.
        AddressError: A pattern in ``config.free`` or ``config.per_session`` matches nothing.
    """
    if not episodes:
        raise FitError("No episodes to fit. Record at least one.")
    twice = {e.id for e in episodes if sum(o.id == e.id for o in episodes) > 1}
    if twice:
        raise FitError(f"Episode ids must be unique; these repeat: {sorted(twice)}.")
    for episode in episodes:
        check_episode(world.spec, episode)
    if not config.free:
        if "fit" not in world.spec.capabilities:
            raise FitError(
                "config.free is empty and this world trains nothing by itself. Name parameters, "
                f"for example free={world.parameters.names[:2]}."
            )
        return
    if world.spec.starts_from != "start":
        raise FitError(
            "Named parameters are fitted by least squares over named starts, and this world "
            "starts from a context. Leave config.free empty to train its blocks."
        )
    if config.derivatives == "exact" and "gradient" not in world.spec.capabilities:
        raise FitError(
            "derivatives='exact' needs a world that declares 'gradient', and this one declares "
            f"{listed(sorted(world.spec.capabilities)) or 'nothing'}. Build the scene as "
            "'differentiable', or use 'auto'."
        )
    lacking = {"gradient", "pullback"} - set(world.spec.capabilities)
    if config.optimiser in ("lbfgs", "adam") and lacking:
        raise FitError(
            f"optimiser='{config.optimiser}' descends by reverse-mode derivatives, and this world "
            f"does not declare {listed(sorted(lacking))}. Build the scene as 'differentiable', or "
            "use 'least_squares'."
        )
    own = own_names(config.per_session, match_names(config.free, world.parameters.names))
    if own:
        session_names(episodes)


# ---- named parameters ----------------------------------------------------------------------


def _identify_parameters(
    world: World,
    episodes: Sequence[Episode],
    config: IdentifyConfig,
    report: Report,
    checkpoint: Checkpoint | None,
    began: float,
) -> tuple[World, tuple[Episode, ...], IdentifyResult]:
    episodes = [without_own(e, _own(world, config)) for e in episodes]
    units = _units(episodes, config)
    kept, held = (
        sorted(i for unit in chosen for i in units[unit])
        for chosen in split(len(units), config.holdout, config.seed)
    )
    score: HoldoutScore | None = None
    given: Array | None = None
    trial: Fitted | None = None
    if held:
        chosen = [episodes[i] for i in kept]
        trial = fit_parameters(
            world, chosen, config, report=report, checkpoint=checkpoint, label="fit"
        )
        given = trial.u
        score = _score(world, _moved(world, trial, given), [episodes[i] for i in held], config)
    final = fit_parameters(
        world,
        episodes,
        config,
        report=report,
        checkpoint=checkpoint,
        label="refit" if held else "fit",
        given=given,
    )
    report(Progress(stage="judging", done=0, total=1, message=""))
    found = _spread(final, config)
    found = found.widened(
        roughness(final.problem, final.optimum.u, final.optimum.starts, found.covariance, config)
    )
    judged = _judged(world, final, found, config)
    levels = _levels(final, found, config)
    posterior = _posterior(final, found, levels)
    predictions = _cross_fitted(world, final, episodes, units, config)
    posterior = replace(posterior, discrepancy=learn_discrepancy(world.spec, episodes, predictions))
    result = _result(final, trial, found, judged, posterior, score, config, began, episodes)
    result = result if levels is None else replace(result, sessions=levels.table)
    accepted = score is None or score.passed
    belief = world.parameters.updated(posterior) if accepted else world.parameters
    _warn_of_delays(result)
    warn_of_silence(final.problem, final.linear)
    placed = tuple(_with_start(e, final, i) for i, e in enumerate(episodes))
    if levels is not None and accepted:
        placed = tuple(levels.placed(e) for e in placed)
    return world.with_belief(belief), placed, result


def _judged(world: World, final: Fitted, found: Spread, config: IdentifyConfig) -> Judged:
    before = np.array([world.parameters[n].value for n in final.problem.names])
    if final.problem.bare:
        return unjudged(final.problem, final.u, before)
    return judge_all(
        final.problem, final.linear, found, before=before, determined=config.determined
    )


def _own(world: World, config: IdentifyConfig) -> tuple[str, ...]:
    return own_names(config.per_session, match_names(config.free, world.parameters.names))


def _units(episodes: Sequence[Episode], config: IdentifyConfig) -> list[list[int]]:
    """Episodes that are held out together: whole sessions where sessions differ."""
    if not config.per_session:
        return [[i] for i in range(len(episodes))]
    names = session_names(episodes)
    return [[i for i, e in enumerate(episodes) if e.session_id == name] for name in names]


def _spread(fitted: Fitted, config: IdentifyConfig) -> Spread:
    options = {"bootstrap": config.bootstrap, "seed": config.seed}
    if fitted.problem.bare:
        return unknown_spread(fitted.problem, fitted.linear)
    if fitted.hierarchy is None:
        return spread(fitted.problem, fitted.linear, **options)
    return session_spread(fitted.problem, fitted.linear, fitted.hierarchy, **options)


def _levels(fitted: Fitted, found: Spread, config: IdentifyConfig) -> Population | None:
    if fitted.hierarchy is None:
        return None
    return population(
        fitted.problem, fitted.linear, fitted.hierarchy, found, determined=config.determined
    )


def _warn_of_delays(result: IdentifyResult) -> None:
    for audit in result.delays:
        if audit.suspicious:
            warnings.warn(f"{audit.channel}: {audit.text}", SameworldWarning, stacklevel=4)


def _moved(world: World, fitted: Fitted, u: Array) -> World:
    """The world with free parameters at coordinates ``u``."""
    values = fitted.problem.transform.backward(u)
    named = {n: float(v) for n, v in zip(fitted.problem.names, values, strict=True)}
    return world.with_belief(world.parameters.with_values(named))


def _score(
    before: World, after: World, held: Sequence[Episode], config: IdentifyConfig
) -> HoldoutScore:
    old = predict_all(before, held, config.warmup, seed=config.seed)
    new = predict_all(after, held, config.warmup, seed=config.seed)
    rule = config.gate if config.gate != "auto" else "not_worse" if config.free else "better"
    return score_holdout(old, new, seed=config.seed, better=rule == "better")


def _cross_fitted(
    world: World,
    fitted: Fitted,
    episodes: Sequence[Episode],
    units: Sequence[Sequence[int]],
    config: IdentifyConfig,
) -> list[Prediction]:
    """Predict every episode by parameters that had not seen it, nor its session if these differ.

    Leaving a fold out moves the estimate by one Gauss-Newton step, whose pieces are at hand: no
    fit is repeated. Where parameters are too many for that, all of them are predicted as fitted.
    """
    if fitted.problem.bare:
        known = _moved(world, fitted, fitted.u)
        return predict_all(known, episodes, config.warmup, seed=config.seed)
    scores, pieces, prior = influence(fitted.problem, fitted.linear)
    if fitted.hierarchy is not None:
        pieces = fitted.hierarchy.marginal(fitted.problem.sessions.scale)[0]
    total = pieces.sum(axis=0) + prior
    low, high = fitted.problem.transform.bounds
    folds = np.random.default_rng(config.seed).permutation(len(units)) % _FOLDS
    found: dict[int, Prediction] = {}
    for fold in range(_FOLDS):
        out = np.flatnonzero(folds == fold).tolist()
        members = [i for unit in out for i in units[unit]]
        if not members:
            continue
        rest = total - pieces[out].sum(axis=0)
        step = solve_columns(rest, scores[out].sum(axis=0))
        alone = len(members) == len(episodes)  # a lone episode cannot be left out
        u = np.clip(fitted.u + (0.0 if alone else step), low, high)
        chosen = [episodes[i] for i in members]
        predicted = predict_all(_moved(world, fitted, u), chosen, config.warmup, seed=config.seed)
        found.update(zip(members, predicted, strict=True))
    return [found[i] for i in range(len(episodes))]


def _posterior(fitted: Fitted, found: Spread, levels: Population | None) -> Belief:
    """Belief over the parameters; where sessions differ, over those of a new session."""
    transform, u = fitted.problem.transform, fitted.u
    slope = transform.derivative(u)
    finite = np.isfinite(np.diag(found.covariance))
    covariance = np.where(np.isfinite(found.covariance), found.covariance, 0.0)
    covariance = covariance + (0.0 if levels is None else levels.between)
    covariance = covariance * np.outer(slope, slope)
    covariance[~finite, ~finite] = np.inf
    return Belief.gaussian(
        transform.parameters, transform.backward(u), covariance, source="identified"
    )


def _with_start(episode: Episode, fitted: Fitted, index: int) -> Episode:
    """The episode with the posterior of its start, given the parameters."""
    windows = fitted.problem.windows
    w = next((k for k, x in enumerate(windows) if x.episode == index and x.first), None)
    if w is None:
        return episode
    spec, names = fitted.problem.world.spec.start, fitted.problem.start_names
    block = fitted.linear.blocks[w]
    source = block.head if fitted.problem.warmup else block
    rows = max(len(source.residual) - source.start.shape[1], 1)
    variance = max(float(source.residual @ source.residual) / rows, 1.0)
    covariance = pseudo_inverse(source.start.T @ source.start) * variance
    mean = fitted.optimum.starts[w][[spec.index(n) for n in names]]
    start = Belief.gaussian(spec.marginal(names).parameters, mean, covariance, source="identified")
    return replace(episode, start=start)


def _search_advice(final: Fitted, trial: Fitted | None) -> tuple[str, ...]:
    """What the search itself says about the answer."""
    lines: list[str] = []
    if "maximum number" in final.optimum.message:
        lines.append(
            "The optimiser stopped at its evaluation limit: raise 'evaluations' and fit again."
        )
    costs = [row.cost for row in (trial or final).searches if np.isfinite(row.cost)]
    if len(costs) > 1 and min(costs) < 0.9 * float(np.median(costs)):
        lines.append(
            "Starts of the search ended at different costs: raise 'polished' and 'candidates', or "
            "begin from better values."
        )
    return tuple(lines)


def _audited(final: Fitted) -> tuple[Problem, Linear]:
    """Problem and linearisation with joint starts and rates, computed again only if need be."""
    if final.problem.rates:
        return final.problem, final.linear
    problem = final.problem.for_audit()
    return problem, Linear.at(problem, final.optimum.u, final.optimum.starts)


def _result(
    final: Fitted,
    trial: Fitted | None,
    found: Spread,
    judged: Judged,
    posterior: Belief,
    score: HoldoutScore | None,
    config: IdentifyConfig,
    began: float,
    episodes: Sequence[Episode],
) -> IdentifyResult:
    slope = final.problem.transform.derivative(final.u)
    delays = delay_audit(*_audited(final))
    relative = np.sqrt(np.maximum(np.diag(found.covariance), 0)).tolist()
    ratios = [v.misfit for v in judged.verdicts if np.isfinite(v.misfit)]
    advice = advise(
        judged.verdicts,
        delays,
        episodes=len(episodes),
        determined=config.determined,
        relative=relative,
    )
    return IdentifyResult(
        posterior=posterior,
        naive_covariance=found.naive * np.outer(slope, slope),
        covariance_kind=found.kind,
        misfit_factor=float(np.sqrt(np.mean(np.square(ratios)))) if ratios else float("nan"),
        verdicts=judged.verdicts,
        combinations=judged.combinations,
        holdout=score,
        residuals=residual_summaries(final.problem, final.before, final.linear),
        delays=delays,
        advice=_search_advice(final, trial) + (_UNJUDGED if final.problem.bare else advice),
        searches=(trial or final).searches,
        cost=final.optimum.cost,
        history=(trial or final).optimum.history,
        episodes=tuple(e.id for e in episodes),
        windows=len(final.problem.windows),
        rollouts=final.simulations + (0 if trial is None else trial.simulations),
        cpu_seconds=time.process_time() - began,
        seed=config.seed,
        derivatives="exact" if final.problem.exact else "differences",
        optimiser=chosen_optimiser(final.problem, config),
    )


# ---- blocks --------------------------------------------------------------------------------


def _identify_blocks(
    world: FitWorld,
    episodes: Sequence[Episode],
    config: IdentifyConfig,
    report: Report,
    began: float,
) -> tuple[World, tuple[Episode, ...], IdentifyResult]:
    """Train a world's own blocks, with the same split, gate and intervals."""
    kept, held = split(len(episodes), config.holdout, config.seed)
    score: HoldoutScore | None = None
    if held:
        report(Progress(stage="training", done=0, total=2 + _FOLDS, message="gate"))
        trial = world.fit([episodes[i] for i in kept], seed=config.seed)
        score = _score(world, trial, [episodes[i] for i in held], config)
    report(Progress(stage="training", done=1, total=2 + _FOLDS, message="all episodes"))
    trained = world.fit(episodes, seed=config.seed)
    predictions = _refitted(world, episodes, config, report)
    discrepancy = learn_discrepancy(world.spec, episodes, predictions)
    belief = replace(trained.parameters, discrepancy=discrepancy)
    accepted = score is None or score.passed
    result = IdentifyResult(
        posterior=belief,
        naive_covariance=np.zeros((0, 0)),
        covariance_kind="blocks",
        misfit_factor=float("nan"),
        verdicts=(),
        combinations=(),
        holdout=score,
        residuals=(),
        delays=(),
        advice=("Weights have no intervals of their own; trust the held-out errors.",),
        searches=(),
        cost=float("nan"),
        history=(),
        episodes=tuple(e.id for e in episodes),
        windows=len(episodes),
        rollouts=0,
        cpu_seconds=time.process_time() - began,
        seed=config.seed,
        blocks_only=True,
    )
    return (trained.with_belief(belief) if accepted else world), tuple(episodes), result


def _refitted(
    world: FitWorld, episodes: Sequence[Episode], config: IdentifyConfig, report: Report
) -> list[Prediction]:
    """Predict every episode by weights trained without its fold."""
    folds = np.random.default_rng(config.seed).permutation(len(episodes)) % min(
        _FOLDS, len(episodes)
    )
    found: dict[int, Prediction] = {}
    for fold in np.unique(folds).tolist():
        report(Progress(stage="training", done=2 + fold, total=2 + _FOLDS, message="fold"))
        members = np.flatnonzero(folds == fold).tolist()
        rest = [e for i, e in enumerate(episodes) if i not in members] or list(episodes)
        trained = world.fit(rest, seed=config.seed)
        chosen = [episodes[i] for i in members]
        predicted = predict_all(trained, chosen, config.warmup, seed=config.seed)
        found.update(zip(members, predicted, strict=True))
    return [found[i] for i in range(len(episodes))]
