"""Silent gradients: derivatives that are zero although the simulation is not deaf, and the reverse.

An exact derivative is that of one branch of a program. Where a value acts through which branch is
taken (the larger of two frictions, whether a contact exists) it is exactly zero, and a fit by
gradients leaves the parameter where it stands without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.core.jacobian import default_step, jacobian
from sameworld.core.values import Values
from sameworld.core.world import World

__all__ = ["SilentGradient", "Silence", "silent_gradients"]

Silence = Literal["no effect", "exact is zero", "differences are zero"]

#: Steps of the differences, in units of the usual one: a value may act only from some size on.
_STEPS = (1.0, 100.0)
#: Rounding errors of signals, relative to their size, that differences cannot see through.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class SilentGradient:
    """A name whose derivative says nothing.

    Attributes:
        name: Start or parameter.
        kind: ``no effect`` if neither way sees any; ``exact is zero`` if finite changes act, but
            the exact derivative of some channel is zero; ``differences are zero`` if it is the
            other way round.
        channels: Channels in which the two disagree; all of them for ``no effect``.
        reason: Why, where that is known; else empty.
    """

    name: str
    kind: Silence
    channels: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        texts = {
            "no effect": "changes nothing here",
            "exact is zero": f"has an exact derivative of zero, but acts on {list(self.channels)}",
            "differences are zero": "has an exact derivative, but finite changes do not act on "
            f"{list(self.channels)}",
        }
        return f"'{self.name}' {texts[self.kind]}" + (f": {self.reason}" if self.reason else ".")


def silent_gradients(
    world: World,
    start: Values,
    actions: Array,
    *,
    wrt: Sequence[str],
    parameters: Values | None = None,
    reasons: Mapping[str, str] | None = None,
    seed: int = 0,
) -> tuple[SilentGradient, ...]:
    """Names whose exact derivative and whose differences disagree about zero, or agree on it.

    Differences are central, of the same world, at the usual step and at a hundred times that.

    Args:
        world: A world that declares ``gradient``.
        start: Starts [B, S].
        actions: Actions [B, T, A].
        wrt: Names of starts and parameters.
        parameters: Parameter values [B or 1, P'].
        reasons: Known reasons by name.
        seed: Seed of stochastic worlds.

    Raises:
        SpecError: An unknown name, or a world without ``gradient``.
    """
    wrt, known = tuple(wrt), dict(reasons or {})
    exact = jacobian(
        world, start, actions, wrt=wrt, parameters=parameters, method="gradient", seed=seed
    )
    channels = {c.name: np.asarray(exact.rollout.signals[c.name]) for c in world.spec.observations}
    acts: dict[str, BoolArray] = {name: np.zeros(len(wrt), dtype=np.bool_) for name in channels}
    for factor in _STEPS:
        steps = {name: factor * _usual(world, name) for name in wrt}
        found = jacobian(
            world,
            start,
            actions,
            wrt=wrt,
            parameters=parameters,
            steps=steps,
            method="differences",
            seed=seed,
        )
        for name, signal in channels.items():
            noise = _ROUNDING * max(float(np.nanmax(np.abs(signal), initial=0.0)), 1.0)
            floor = np.array([noise / steps[n] for n in wrt])
            acts[name] = acts[name] | (_size(found.derivatives[name]) > floor)
    told = {name: _size(slope) > 0 for name, slope in exact.derivatives.items()}
    rows = [_judged(name, k, told, acts, known.get(name, "")) for k, name in enumerate(wrt)]
    return tuple(row for row in rows if row is not None)


def _usual(world: World, name: str) -> float:
    belief = world.spec.start if name in world.spec.start.names else world.parameters
    return default_step(belief[name]) if name in belief.names else 1e-5


def _size(slopes: Array) -> Array:
    """Largest derivative of each name [N]."""
    return np.abs(np.nan_to_num(slopes)).max(axis=(0, 1, 2), initial=0.0)


def _judged(
    name: str,
    column: int,
    told: Mapping[str, BoolArray],
    acts: Mapping[str, BoolArray],
    reason: str,
) -> SilentGradient | None:
    deaf = tuple(c for c in acts if acts[c][column] and not told[c][column])
    vain = tuple(c for c in acts if told[c][column] and not acts[c][column])
    heard = any(told[c][column] for c in told)
    if deaf:
        return SilentGradient(name=name, kind="exact is zero", channels=deaf, reason=reason)
    if not heard:
        return SilentGradient(name=name, kind="no effect", channels=tuple(acts), reason=reason)
    if len(vain) == sum(bool(told[c][column]) for c in told):
        return SilentGradient(name=name, kind="differences are zero", channels=vain, reason=reason)
    return None
