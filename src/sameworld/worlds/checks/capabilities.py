"""Checks of optional methods, each skipped where the world does not declare it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import SpecError
from sameworld.core.jacobian import jacobian
from sameworld.core.records import Camera
from sameworld.core.rollout import loop, rollout
from sameworld.core.signals import difference
from sameworld.core.spec import Capability
from sameworld.core.values import Values
from sameworld.core.world import (
    FitWorld,
    GradientWorld,
    InverseWorld,
    Pullback,
    PullbackWorld,
    RenderWorld,
    RolloutWorld,
)
from sameworld.worlds.checks.probe import (
    CheckSkipped,
    Probe,
    changed_array,
    default_actions,
    require,
    smooth_samples,
)

__all__ = [
    "fit_returns_a_new_world",
    "gradient_agrees_with_differences",
    "inverse_is_linear_in_inertia",
    "pullback_transposes_the_gradient",
    "render_gives_images",
    "rollout_equals_looping_step",
    "trial_episodes",
]

_GRADIENT_TOLERANCE = 1e-4
_PULLBACK_TOLERANCE = 1e-6


def _needs(probe: Probe, capability: Capability) -> None:
    if capability not in probe.world.spec.capabilities:
        raise CheckSkipped("not declared")


def rollout_equals_looping_step(probe: Probe) -> str:
    """The fast path gives what looping ``step`` gives, also from a State in mid-course."""
    _needs(probe, "rollout")
    world = cast(RolloutWorld, probe.world)
    words = ""
    values = probe.varied(probe.batch) if probe.names else None
    *_, middle = probe.walk(probe.reset(), 3)
    for what, state in (("fresh", probe.reset(values)), ("mid-course", middle)):
        before = {name: array.copy() for name, array in state.to_arrays().items()}
        fast, slow = world.rollout(state, probe.actions), loop(world, state, probe.actions)
        changed = changed_array(before, state.to_arrays())
        require(not changed, f"rollout changed '{changed}' of the State it was given.")
        require(
            fast.signals.keys() == slow.signals.keys(), f"rollout gives {sorted(fast.signals)}."
        )
        words = probe.require_close(fast.signals, slow.signals, f"rollout of a {what} state")
        require(bool(np.array_equal(fast.valid, slow.valid)), "rollout marks other rows valid.")
        require(bool(np.allclose(fast.time, slow.time)), "rollout gives another time axis.")
    return words


def gradient_agrees_with_differences(probe: Probe) -> str:
    """Exact derivatives by every start and parameter agree with central differences."""
    _needs(probe, "gradient")
    world, start = cast(GradientWorld, probe.world), probe.start
    require(isinstance(start, Values), "A gradient world must start from named values.")
    start = cast(Values, start)
    wrt = (*world.spec.start.names, *probe.names)
    # Off the means: on a bound, differences would be one-sided and too rough to compare with.
    values = probe.varied(probe.batch + 1).rows(slice(1, None))
    exact = world.gradient(start, probe.actions, values, wrt, seed=probe.seed)
    numeric = jacobian(
        world,
        start,
        probe.actions,
        wrt=wrt,
        parameters=values,
        method="differences",
        seed=probe.seed,
    ).derivatives
    worst = 0.0
    for channel in world.spec.observations:
        require(channel.name in exact, f"gradient lacks '{channel.name}'.")
        mine, theirs = exact[channel.name], numeric[channel.name]
        require(mine.shape == theirs.shape, f"'{channel.name}' has gradient {mine.shape}.")
        error = np.abs(mine - theirs).max(axis=(0, 1, 2))
        size = np.maximum(np.abs(theirs).max(axis=(0, 1, 2)), 1e-4)
        column = int(np.argmax(error / size))
        share = float((error / size)[column])
        require(
            share < _GRADIENT_TOLERANCE,
            f"d '{channel.name}' / d '{wrt[column]}' is off by {share:.2g} of its size.",
        )
        worst = max(worst, share)
    return f"{len(wrt)} names, within {worst:.1e}"


def pullback_transposes_the_gradient(probe: Probe) -> str:
    """Reverse-mode derivatives of a weighted sum are the weighted sum of the exact derivatives."""
    _needs(probe, "pullback")
    _needs(probe, "gradient")
    world, start = cast(PullbackWorld, probe.world), probe.start
    require(isinstance(start, Values), "A pullback world must start from named values.")
    start = cast(Values, start)
    wrt = (*world.spec.start.names, *probe.names)
    values = probe.varied(probe.batch + 1).rows(slice(1, None))
    exact = cast(GradientWorld, world).gradient(start, probe.actions, values, wrt, seed=probe.seed)
    rng = np.random.default_rng([probe.seed, 11])
    weights = {name: rng.normal(size=slope.shape[:3]) for name, slope in exact.items()}
    back = world.pullback(start, probe.actions, weights, values, wrt=wrt, seed=probe.seed)
    terms = [weights[name][..., None] * slope for name, slope in exact.items()]
    summed = sum(term.sum(axis=(1, 2)) for term in terms)
    size = sum(np.abs(term).sum(axis=(1, 2)) for term in terms)
    require(
        back.actions.shape == probe.actions.shape,
        f"pullback has derivatives {back.actions.shape} by actions {probe.actions.shape}.",
    )
    wanted = (probe.batch, len(world.parameters))
    require(back.parameters.shape == wanted, f"pullback gives {back.parameters.shape} derivatives.")
    columns = [world.parameters.index(name) for name in probe.names]
    mine = np.concatenate([back.starts, back.parameters[:, columns]], axis=1)
    require(mine.shape == (probe.batch, len(wrt)), f"pullback gives {mine.shape} derivatives.")
    error = np.abs(mine - summed).max(axis=0)
    share = error / np.maximum(np.max(size, axis=0), 1e-6)
    worst = int(np.argmax(share))
    require(
        bool(share[worst] < _PULLBACK_TOLERANCE),
        f"the derivative by '{wrt[worst]}' is off by {float(share[worst]):.2g} of its size.",
    )
    _along_actions(probe, back, weights, values)
    return f"{len(wrt)} names, within {float(share[worst]):.1e}"


def _along_actions(
    probe: Probe, back: Pullback, weights: Mapping[str, Array], values: Values
) -> None:
    """Derivatives by actions agree with a difference along a random direction."""
    direction = np.random.default_rng([probe.seed, 13]).normal(size=probe.actions.shape)
    step = 1e-5 * max(float(np.abs(probe.actions).max(initial=0.0)), 1e-2)
    ends = [
        rollout(
            probe.world,
            probe.start,
            probe.actions + sign * step * direction,
            parameters=values,
            seed=probe.seed,
        )
        for sign in (-1, 1)
    ]
    slopes = {
        c.name: difference(c, *(np.asarray(end.signals[c.name]) for end in ends)) / (2 * step)
        for c in probe.world.spec.observations
    }
    terms = [weights[name] * slope for name, slope in slopes.items()]
    numeric = np.sum([term.sum(axis=(1, 2)) for term in terms], axis=0)
    size = float(np.max(np.sum([np.abs(term).sum(axis=(1, 2)) for term in terms], axis=0)))
    error = float(np.abs(np.sum(back.actions * direction, axis=(1, 2)) - numeric).max())
    require(
        error < _GRADIENT_TOLERANCE * max(size, 1e-6),
        f"the derivative by actions is off by {error / max(size, 1e-6):.2g} of its size.",
    )


def fit_returns_a_new_world(probe: Probe) -> str:
    """``fit`` is reproducible, keeps the contract and leaves the old world as it was."""
    _needs(probe, "fit")
    world = cast(FitWorld, probe.world)
    before, blocks = probe.history(probe.reset()), world.parameters.blocks
    episodes = trial_episodes(probe)
    first, second = world.fit(episodes, seed=0), world.fit(episodes, seed=0)
    require(first is not world, "fit returned the same object.")
    require(first.spec.agrees_with(world.spec), "fit changed the spec.")
    require(
        first.parameters.blocks == second.parameters.blocks, "fit is not reproducible by its seed."
    )
    runs = [replace(probe, world=w).history(first.reset(probe.start)) for w in (first, second)]
    changed = changed_array(*runs)
    require(not changed, f"Two equal fits predict another '{changed}'.")
    require(world.parameters.blocks == blocks, "fit changed the blocks of the old world.")
    changed = changed_array(before, probe.history(probe.reset()))
    require(not changed, f"fit changed '{changed}' of the old world.")
    return f"{len(first.parameters.blocks)} block(s)"


def trial_episodes(probe: Probe) -> Sequence[Episode]:
    """Episodes of plausible, slowly changing signals under fresh actions; no physics behind."""
    spec = probe.world.spec
    actions = default_actions(spec, probe.batch, 8 * probe.ticks, probe.seed + 1)
    rows = actions.shape[1] + 1
    rng = np.random.default_rng([probe.seed, 3])
    signals = {c.name: smooth_samples(c, probe.batch, rows, rng) for c in spec.observations}
    time: Array = spec.period * np.arange(rows, dtype=np.float64)
    ends = np.cumsum([c.size for c in spec.actions])
    episodes: list[Episode] = []
    for row in range(probe.batch):
        seen = [
            Channel(name=c.name, time=time, values=signals[c.name][row], unit=c.unit)
            for c in spec.observations
        ]
        acted = [
            Channel(
                name=c.name,
                time=time[:-1],
                values=actions[row, :, end - c.size : end].reshape(rows - 1, *c.shape),
                unit=c.unit,
                role="action",
            )
            for c, end in zip(spec.actions, ends, strict=True)
        ]
        episodes.append(Episode(id=f"probe_{row}", channels=(*seen, *acted), source="learned"))
    return episodes


def render_gives_images(probe: Probe) -> str:
    """Images are uint8 [B, H, W, 3] and repeatable; skipped without a camera or OpenGL."""
    _needs(probe, "render")
    world, camera = cast(RenderWorld, probe.world), _some_camera(probe)
    state = probe.reset()
    draw: Callable[[], np.ndarray] = lambda: world.render(state, camera)  # noqa: E731
    try:
        image = draw()
    except Exception as error:
        if re.search(r"GL\b|EGL|OSMesa|display|context", str(error), flags=re.IGNORECASE):
            raise CheckSkipped(f"no OpenGL: {error}") from error
        raise
    require(
        image.dtype == np.uint8 and image.ndim == 4 and image.shape[0] == probe.batch,
        f"Images are {image.dtype} {image.shape}, not uint8 [{probe.batch}, H, W, 3].",
    )
    require(image.shape[3] == 3, f"Images have {image.shape[3]} colour channels.")
    require(bool(np.array_equal(image, draw())), "The same state gives another image.")
    return f"{image.shape[2]} x {image.shape[1]} px"


def inverse_is_linear_in_inertia(probe: Probe) -> str:
    """Inverse dynamics is the sum of regressor times inertias, and leaves its input alone."""
    _needs(probe, "inverse")
    world = cast(InverseWorld, probe.world)
    names, rng = world.mechanism, np.random.default_rng([probe.seed, 5])
    shape = (probe.batch, len(names.dofs))
    q, v, a = rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape)
    before = [array.copy() for array in (q, v, a)]
    try:
        torques = world.inverse(q, v, a)
    except SpecError as cause:
        raise CheckSkipped("joints are not all hinges or slides") from cause
    factors = world.regressor(q, v, a, names.bodies)
    require(
        factors.shape == (*torques.shape, len(names.bodies), 10),
        f"regressor has shape {factors.shape}.",
    )
    summed = np.einsum("nvbk,bk->nv", factors, world.inertias(names.bodies))
    error = float(np.abs(summed - torques).max(initial=0.0))
    size = max(float(np.abs(torques).max(initial=0.0)), 1.0)
    require(error < 1e-8 * size, f"regressor times inertias is off by {error:.2g}.")
    unchanged = all(np.array_equal(x, y) for x, y in zip(before, (q, v, a), strict=True))
    require(unchanged, "inverse or regressor changed its input.")
    return f"{len(names.dofs)} velocities, {len(names.bodies)} bodies"


def _some_camera(probe: Probe) -> Camera | str:
    scene = probe.world.scene
    if scene.cameras:
        return scene.cameras[0]
    named = re.search(r"<camera\b[^>]*\bname=\"([^\"]+)\"", scene.mjcf)
    if named is None:
        raise CheckSkipped("the scene has no named camera")
    return named.group(1)
