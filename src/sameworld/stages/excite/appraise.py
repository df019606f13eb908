"""What given motions are predicted to say, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.world import World
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.information import Experiment, experiment
from sameworld.stages.excite.limits import Box, boxes, violations
from sameworld.stages.excite.result import Appraisal, Motion, ParameterGain

__all__ = ["Appraised", "appraise", "appraised"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Appraised:
    """An appraisal, how its derivatives were computed, and trajectories it took."""

    appraisal: Appraisal
    method: Literal["gradient", "differences"]
    rollouts: int


def appraise(
    world: World,
    motions: Sequence[Motion],
    *,
    config: ExciteConfig,
    episodes: Sequence[Episode] = (),
) -> Appraisal:
    """Predict what recordings of given motions would say about the free parameters.

    Args:
        world: The world; its belief is the prior.
        motions: Motions, each of its own length.
        config: What is wanted, how it is measured, and what motions keep to.
        episodes: Recordings that the belief does not hold yet.

    Raises:
        SpecError: A motion, a limit or a noise does not fit the world.
        AddressError: A pattern matches no parameter.
    """
    bounds = boxes(world.spec, config.limits)
    return appraised(experiment(world, episodes, config), motions, bounds).appraisal


def appraised(asked: Experiment, motions: Sequence[Motion], bounds: Sequence[Box]) -> Appraised:
    """The appraisal of an experiment that was read already; differences are central."""
    size, spent = len(asked.names), 0
    method: Literal["gradient", "differences"] = "differences"
    added = np.zeros((len(motions), size, size))
    passed = np.zeros(len(motions))
    for k, motion in enumerate(motions):
        result, information, method, more = asked.information(
            motion.start, motion.actions[None], central=True
        )
        added[k] = information[0]
        passed[k] = violations(asked.world.spec, bounds, result)[0]
        spent += more
    appraisal = Appraisal(
        names=asked.names,
        wanted=tuple(asked.names[i] for i in asked.wanted),
        prior=asked.prior,
        information=added,
        violations=passed,
        gains=_gains(asked, asked.prior + added.sum(axis=0)),
    )
    return Appraised(appraisal=appraisal, method=method, rollouts=spent)


def _gains(asked: Experiment, after: Array) -> tuple[ParameterGain, ...]:
    slopes = np.abs(asked.slopes)
    std = [slopes * np.sqrt(np.diag(np.linalg.inv(m))) for m in (asked.prior, after)]
    return tuple(
        ParameterGain(
            name=p.name,
            unit=p.unit,
            value=p.value,
            before=float(std[0][i]),
            after=float(std[1][i]),
            wanted=i in asked.wanted,
        )
        for i, p in enumerate(asked.transform.parameters)
    )
