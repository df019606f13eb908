"""``excite``: the next recordings, chosen by what they would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sameworld.core.episode import Episode
from sameworld.core.progress import Report, silent
from sameworld.core.world import World
from sameworld.stages.excite.appraise import appraised
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.information import Experiment, experiment, score
from sameworld.stages.excite.limits import Box, boxes, margins
from sameworld.stages.excite.paths import Paths, paths_of
from sameworld.stages.excite.result import Appraisal, ExciteResult, Margin, Motion, Step
from sameworld.stages.excite.search import Search, random_coefficients
from sameworld.stages.excite.shrink import Keeper, Kept, parameter_draws

__all__ = ["excite", "random_motions"]

#: Share of its spread that a parameter keeps if a design hardly helps it.
_LITTLE = 0.8
#: Share of its range below which a bound holds a motion back.
_TIGHT = 0.02


def excite(
    world: World,
    *,
    config: ExciteConfig,
    episodes: Sequence[Episode] = (),
    progress: Report | None = None,
) -> tuple[tuple[Motion, ...], ExciteResult]:
    """Propose the motions whose recordings would narrow a belief most.

    Each motion is designed given the belief, the earlier episodes and the motions before it. The
    start of every recording counts as unknown, as in ``identify``.

    Args:
        world: A world that starts from named values; its belief is the prior and the point at
            which derivatives are taken.
        config: What is wanted, how it is measured, and what motions keep to.
        episodes: Recordings that the belief does not hold yet; what they say is not asked again.
        progress: Receives progress.

    Returns:
        The motions, and what they are predicted to say.

    Raises:
        SpecError: Commands move no joint, a limit or noise names no signal, or no room is left.
        FitError: A parameter is known already, or no motion keeps to the limits.
        AddressError: A pattern matches no parameter.
        MissingExtraError: ``search="cma"`` without ``cma``.

    Source: J. Swevers, C. Ganseman, D. B. Tukel, J. De Schutter, H. Van Brussel, "Optimal robot
    excitation and identification", IEEE Transactions on Robotics and Automation 13 (1997);
    M. Gautier, W. Khalil, "Exciting trajectories for the identification of base inertial
    parameters of robots", International Journal of Robotics Research 11 (1992).
    """
    bounds = boxes(world.spec, config.limits)
    asked = experiment(world, episodes, config)
    paths = paths_of(world, bounds, config)
    keeper = _keeper(asked, paths, bounds, config)
    held, spent = asked.prior, paths.rollouts
    chosen: list[Kept] = []
    steps: list[Step] = []
    for k in range(config.motions):
        search = Search(
            asked=replace(asked, prior=held),
            paths=paths,
            keeper=keeper,
            config=config,
            seed=config.seed + 1000 * k,
            report=progress or silent,
        )
        found = search.run()
        safe = keeper.kept(found.coefficients, f"motion{k + 1}")
        _, added, _, more = asked.information(paths.start, safe.motion.actions[None])
        held, spent = held + added[0], spent + search.rollouts + safe.rollouts + more
        after = float(score(held[None], asked.wanted, config.criterion)[0])
        steps.append(
            Step(
                motion=safe.motion.name,
                screened=found.screened,
                trace=found.trace,
                criterion=after,
                scale=safe.scale,
            )
        )
        chosen.append(safe)
    motions = tuple(k.motion for k in chosen)
    judged = appraised(asked, motions, bounds)
    room = _least(world, bounds, chosen)
    result = ExciteResult(
        appraisal=judged.appraisal,
        margins=room,
        steps=tuple(steps),
        noise=asked.noise,
        rollouts=spent + judged.rollouts,
        method=judged.method,
        advice=_advice(judged.appraisal, room),
    )
    return motions, result


def random_motions(
    world: World, count: int, *, config: ExciteConfig, seed: int
) -> tuple[Motion, ...]:
    """Random motions of the same family under the same limits: what a design has to beat.

    Args:
        world: The world.
        count: How many.
        config: As for ``excite``.
        seed: Seed of the coefficients.

    Raises:
        SpecError, FitError, AddressError: As ``excite``.
    """
    bounds = boxes(world.spec, config.limits)
    paths = paths_of(world, bounds, config)
    keeper = _keeper(experiment(world, (), config), paths, bounds, config)
    drawn, _ = keeper.eased(random_coefficients(paths, count, seed))
    return tuple(keeper.kept(row, f"random{k + 1}").motion for k, row in enumerate(drawn))


def _keeper(asked: Experiment, paths: Paths, bounds: Sequence[Box], config: ExciteConfig) -> Keeper:
    draws = parameter_draws(asked, config.draws)
    return Keeper(paths=paths, bounds=bounds, draws=draws, seed=config.seed)


def _least(world: World, bounds: Sequence[Box], chosen: Sequence[Kept]) -> tuple[Margin, ...]:
    """The least room of every bound over all motions and draws."""
    rows = zip(*(margins(world.spec, bounds, k.simulated) for k in chosen), strict=True)
    return tuple(min(row, key=lambda margin: margin.share) for row in rows)


def _advice(appraisal: Appraisal, room: Sequence[Margin]) -> tuple[str, ...]:
    """What stays unknown, and which bounds hold the motions back."""
    said: list[str] = []
    for gain in appraisal.gains:
        if gain.wanted and gain.after > _LITTLE * gain.before:
            said.append(
                f"'{gain.name}' keeps {gain.after / gain.before:.0%} of its spread: no motion "
                "found within these limits excites it. Measure it another way, observe another "
                "signal, or let more joints move."
            )
    if said:
        tight = [m for m in room if m.share < _TIGHT]
        said += [
            f"The {m.bound} bound {m.limit:.4g} of '{m.signal}' is nearly reached; a wider one "
            "would let the motions say more."
            for m in tight
        ]
    return tuple(said)
