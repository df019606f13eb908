"""Checks of what a world declares about itself."""

from __future__ import annotations

import numpy as np

from sameworld.core.belief import Belief
from sameworld.core.scene import Scene
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import (
    FitWorld,
    GradientWorld,
    InverseWorld,
    PullbackWorld,
    RenderWorld,
    RolloutWorld,
    World,
)
from sameworld.worlds.checks.probe import (
    CheckSkipped,
    Probe,
    default_start,
    expect_spec_error,
    require,
)

__all__ = [
    "capabilities_are_implemented",
    "declared_starts_are_shown",
    "observations_match_the_spec",
    "reset_gives_a_whole_state",
    "spec_is_consistent",
    "start_kind_is_enforced",
]

_PROTOCOLS: dict[str, type] = {
    "rollout": RolloutWorld,
    "gradient": GradientWorld,
    "pullback": PullbackWorld,
    "fit": FitWorld,
    "render": RenderWorld,
    "inverse": InverseWorld,
}


def spec_is_consistent(probe: Probe) -> str:
    """Nouns have their types, names are unique and refer to what exists."""
    world, spec = probe.world, probe.world.spec
    _check_type("world", world, World)
    _check_type("world.spec", spec, Spec)
    _check_type("world.scene", world.scene, Scene)
    _check_type("world.parameters", world.parameters, Belief)
    require(len(spec.observations) > 0, "The spec declares no observation.")
    require(world.spec.agrees_with(spec), "The spec changes between two readings.")
    both = sorted(set(spec.start.names) & set(world.parameters.names))
    require(not both, f"Names are both start and parameter: {both}.")
    foreign = [p.name for p in spec.start.parameters if p.scope != "episode"]
    require(not foreign, f"Start parameters {foreign} are not of scope 'episode'.")
    stray = [p.name for p in world.parameters.parameters if p.scope == "episode"]
    require(not stray, f"Parameters {stray} are of scope 'episode'.")
    for channel in spec.observations:
        _check_start_names(spec, channel)
    return f"{len(spec.observations)} observations, {spec.action_size} action components"


def _check_type(what: str, value: object, kind: type) -> None:
    require(isinstance(value, kind), f"{what} is a {type(value).__name__}, not a {kind.__name__}.")


def _check_start_names(spec: Spec, channel: ChannelSpec) -> None:
    for what, names in (("start", channel.start), ("rate", channel.rate)):
        unknown = [n for n in names if n not in spec.start.names]
        require(not unknown, f"'{channel.name}' declares {what} {unknown} not in spec.start.")
        require(
            len(names) in (0, channel.tangent),
            f"'{channel.name}' declares {len(names)} {what} names, it has {channel.tangent} "
            "components.",
        )


def capabilities_are_implemented(probe: Probe) -> str:
    """Every declared capability has its method."""
    declared = sorted(probe.world.spec.capabilities)
    for name in declared:
        protocol = _PROTOCOLS.get(name)
        if protocol is not None:
            require(
                isinstance(probe.world, protocol),
                f"Capability '{name}' is declared, but {type(probe.world).__name__} does not "
                f"implement {protocol.__name__}.",
            )
    return ", ".join(declared) or "none declared"


def reset_gives_a_whole_state(probe: Probe) -> str:
    """Time, key, parameters and arrays all have the batch as leading axis."""
    state, batch = probe.reset(), probe.batch
    require(state.batch == batch, f"Reset of {batch} elements gave {state.batch}.")
    require(bool((state.time == 0).all()), "Time does not start at 0.")
    require(
        state.key.shape == (batch,) and state.key.dtype == np.uint64,
        f"Key is {state.key.dtype} {state.key.shape}, not uint64 ({batch},).",
    )
    require(
        state.parameters.batch == batch
        and set(probe.world.parameters.names) <= set(state.parameters.names),
        "State.parameters does not hold every parameter for every element.",
    )
    for name, array in state.arrays.items():
        require(len(array) == batch, f"State array '{name}' has shape {array.shape}.")
        require(array.dtype.kind != "O", f"State array '{name}' holds Python objects.")
    return f"{len(state.arrays)} arrays"


def observations_match_the_spec(probe: Probe) -> str:
    """Observed names and shapes are the declared ones; numbers are finite."""
    spec = probe.world.spec
    declared = [c.name for c in spec.observations]
    for state in (probe.reset(), *probe.walk(probe.reset(), 2)):
        signals = probe.world.observe(state)
        require(
            sorted(signals) == sorted(declared),
            f"Observed {sorted(signals)}, declared {sorted(declared)}.",
        )
        for channel in spec.observations:
            _check_signal(channel, np.asarray(signals[channel.name]), probe.batch)
    return f"{len(declared)} signals"


def _check_signal(channel: ChannelSpec, values: np.ndarray, batch: int) -> None:
    wanted = (batch, *channel.shape)
    require(
        values.shape == wanted, f"'{channel.name}' has shape {values.shape}, declared {wanted}."
    )
    require(values.dtype == np.float64, f"'{channel.name}' is {values.dtype}, not float64.")
    require(bool(np.isfinite(values).all()), f"'{channel.name}' is not finite near the start.")
    if channel.manifold == "quaternion":
        lengths = np.linalg.norm(values, axis=-1)
        require(float(np.abs(lengths - 1).max()) < 1e-6, f"'{channel.name}' is not of unit length.")


def declared_starts_are_shown(probe: Probe) -> str:
    """A linear channel that declares ``start`` shows exactly those values at time 0."""
    spec = probe.world.spec
    channels = [c for c in spec.observations if c.start and c.manifold == "linear"]
    if not channels or not isinstance(probe.start, Values):
        raise CheckSkipped("no linear channel declares its start")
    given = spec.start.mean.updated(probe.start)
    seen = probe.world.observe(probe.reset())
    for channel in channels:
        shown = seen[channel.name].reshape(probe.batch, -1)
        wanted = given.select(channel.start).array
        gap = float(np.abs(shown - wanted).max())
        require(gap < 1e-9, f"'{channel.name}' starts {gap:.3g} away from {channel.start}.")
    return f"{len(channels)} channels"


def start_kind_is_enforced(probe: Probe) -> str:
    """A world refuses the kind of start that it does not take, and shows the one it takes."""
    world, spec = probe.world, probe.world.spec
    if spec.starts_from == "start":
        wrong = default_start(_as_context(spec), probe.batch, probe.seed)
        expect_spec_error(lambda: world.reset(wrong), "A context where values are needed")
        return "starts from values"
    expect_spec_error(
        lambda: world.reset(Values.none(probe.batch)), "Values where a context is needed"
    )
    assert not isinstance(probe.start, Values)
    seen = world.observe(probe.reset())
    newest = {name: probe.start.observations[name][:, -1] for name in seen}
    probe.require_close(seen, newest, "Start against the newest observation of the context")
    return f"starts from {spec.context} observations"


def _as_context(spec: Spec) -> Spec:
    return Spec(
        period=spec.period,
        observations=spec.observations,
        actions=spec.actions,
        starts_from="context",
        context=2,
    )
