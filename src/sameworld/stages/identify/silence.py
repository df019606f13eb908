"""Warnings of parameters that a fit by exact derivatives cannot hear."""

from __future__ import annotations

import warnings

import numpy as np

from sameworld.core.address import Address
from sameworld.core.errors import SameworldWarning
from sameworld.core.silent import SilentGradient, silent_gradients
from sameworld.core.values import Values
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem

__all__ = ["silent_parameters", "warn_of_silence"]

#: Windows looked at.
_PROBED = 4
_LARGER = "the larger friction of two geoms acts; name the pair"


def silent_parameters(problem: Problem, linear: Linear) -> tuple[SilentGradient, ...]:
    """Free parameters whose exact derivative is zero everywhere, compared with differences."""
    if not problem.exact or problem.bare:
        return ()
    power = sum(np.sum(b.theta**2, axis=0) for b in linear.blocks)
    quiet = [n for n, p in zip(problem.names, np.atleast_1d(power), strict=True) if p == 0]
    if not quiet:
        return ()
    few = slice(0, _PROBED)
    values = problem.values(linear.u)
    return silent_gradients(
        problem.world,
        Values(names=problem.world.spec.start.names, array=linear.starts[few]),
        problem.actions[few],
        wrt=quiet,
        parameters=values.rows(few) if values.batch > 1 else values,
        reasons={name: _LARGER for name in quiet if _is_friction(name)},
        seed=problem.seed,
    )


def warn_of_silence(problem: Problem, linear: Linear) -> None:
    """Warn of every one of them; called from two functions below the stage's verb.

    Warns:
        SameworldWarning: A parameter stays where it stood, and why.
    """
    for row in silent_parameters(problem, linear):
        message = f"The fit cannot move a parameter that it was given: {row}"
        warnings.warn(message, SameworldWarning, stacklevel=4)


def _is_friction(name: str) -> bool:
    address = Address.parse(name)
    return address.kind == "geom" and address.field.startswith("friction.")
