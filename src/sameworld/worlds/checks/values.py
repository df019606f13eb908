"""Checks of starts, parameters and actions: what is filled in, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sameworld.core.errors import SpecError
from sameworld.core.rollout import finite_so_far
from sameworld.core.values import Values
from sameworld.worlds.checks.probe import (
    CheckSkipped,
    Probe,
    changed_array,
    expect_spec_error,
    require,
    start_rows,
    varied,
)

__all__ = [
    "belief_changes_make_new_worlds",
    "missing_values_take_means",
    "nan_actions_are_not_swallowed",
    "parameters_act_per_element",
    "parameters_have_an_effect",
    "unequal_batches_are_refused",
    "unknown_names_are_refused",
    "wrong_actions_are_refused",
]


def parameters_act_per_element(probe: Probe) -> str:
    """Rows with different parameters give what single runs with those parameters give."""
    values = _some_parameters(probe)
    whole = probe.reset(values)
    together = probe.history(whole)
    for row in range(probe.batch):
        alone = probe.world.reset(
            start_rows(probe.start, [row]), values.rows([row]), seed=probe.seed
        )
        alone = replace(alone, key=whole.key[row : row + 1].copy())
        single = probe.history(alone, probe.actions[row : row + 1])
        part = {name: signal[row : row + 1] for name, signal in together.items()}
        probe.require_close(single, part, f"Parameters of element {row} alone")
    return f"{len(values.names)} parameters"


def parameters_have_an_effect(probe: Probe) -> str:
    """Other parameters give other signals (skipped if a short run shows none)."""
    values = _some_parameters(probe)
    nominal = probe.history(probe.reset())
    moved = probe.history(probe.reset(values))
    rows = slice(1, None)
    gap, name = probe.gap(
        {n: v[rows] for n, v in moved.items()}, {n: v[rows] for n, v in nominal.items()}
    )
    if gap == 0:
        raise CheckSkipped(f"no effect seen within {probe.ticks} ticks")
    return f"seen in '{name}'"


def missing_values_take_means(probe: Probe) -> str:
    """Leaving values out equals giving the means."""
    world, belief = probe.world, probe.world.parameters
    bare = world.reset(probe.start, seed=probe.seed).to_arrays()
    if len(belief):
        given = world.reset(probe.start, belief.mean, seed=probe.seed).to_arrays()
        changed = changed_array(bare, given)
        require(not changed, f"Parameters left out do not take their means: '{changed}' differs.")
        one = belief.names[:1]
        part = world.reset(probe.start, belief.mean.select(one), seed=probe.seed).to_arrays()
        changed = changed_array(bare, part)
        require(not changed, f"With only {one} given, '{changed}' differs.")
    if isinstance(probe.start, Values):
        defaults = world.spec.start.mean.broadcast(probe.batch)
        empty = world.reset(Values.none(probe.batch), seed=probe.seed).to_arrays()
        full = world.reset(defaults, seed=probe.seed).to_arrays()
        changed = changed_array(empty, full)
        require(not changed, f"Starts left out do not take their defaults: '{changed}' differs.")
    return ""


def unknown_names_are_refused(probe: Probe) -> str:
    """A name that does not exist raises ``SpecError`` that names it."""
    world = probe.world
    stray = Values.of({"body:no_such_body.mass": 1.0})
    expect_spec_error(
        lambda: world.reset(probe.start, stray), "An unknown parameter", "body:no_such_body.mass"
    )
    if world.spec.starts_from == "start":
        start = Values.of({"start:no_such_joint.pos": 0.0})
        expect_spec_error(lambda: world.reset(start), "An unknown start", "start:no_such_joint.pos")
    return ""


def unequal_batches_are_refused(probe: Probe) -> str:
    """Starts and parameters of different batch sizes raise ``SpecError``."""
    values = probe.varied(probe.batch + 1)
    if not values.names:
        raise CheckSkipped("no named parameters")
    expect_spec_error(
        lambda: probe.world.reset(probe.start, values),
        f"{probe.batch} starts with {values.batch} parameter rows",
    )
    return ""


def wrong_actions_are_refused(probe: Probe) -> str:
    """Actions of a wrong shape raise ``SpecError`` instead of being broadcast."""
    state, size = probe.reset(), probe.world.spec.action_size
    for shape in ((probe.batch, size + 1), (probe.batch + 1, size), (probe.batch, size, 1)):
        action = np.zeros(shape)
        expect_spec_error(
            lambda action=action: probe.world.step(state, action), f"An action of shape {shape}"
        )
    return ""


def nan_actions_are_not_swallowed(probe: Probe) -> str:
    """A NaN action raises ``SpecError`` or makes its own element, and only it, invalid."""
    if probe.world.spec.action_size == 0:
        raise CheckSkipped("no actions")
    actions = probe.actions.copy()
    actions[0, 0, 0] = np.nan
    try:
        signals = probe.history(probe.reset(), actions)
    except SpecError:
        return "refused"
    valid = finite_so_far(signals)[:, -1]
    require(not valid[0], "A NaN action was accepted and gave finite signals.")
    require(bool(valid[1:].all()), "A NaN action in one element made others invalid.")
    clean = probe.history(probe.reset())
    rest = {name: values[1:] for name, values in signals.items()}
    probe.require_close(rest, {n: v[1:] for n, v in clean.items()}, "Neighbours of a NaN action")
    return "its element is invalid"


def belief_changes_make_new_worlds(probe: Probe) -> str:
    """``with_belief`` gives a world that starts from the new means and leaves the old one."""
    world, belief = probe.world, probe.world.parameters
    before = probe.history(probe.reset())
    if not len(belief):
        same = world.with_belief(belief)
        changed = changed_array(before, _history_of(probe, same))
        require(not changed, f"A world with the same belief predicts another '{changed}'.")
        return "blocks only"
    target = varied(belief, 2).rows([1])
    moved = belief.with_values({n: float(target.column(n)[0]) for n in belief.names})
    other = world.with_belief(moved)
    require(
        bool(np.array_equal(other.parameters.mean.array, moved.mean.array)),
        "The new world does not hold the belief it was given.",
    )
    require(
        bool(np.array_equal(world.parameters.mean.array, belief.mean.array)),
        "with_belief changed the belief of the old world.",
    )
    given = probe.history(probe.reset(moved.mean))
    probe.require_close(_history_of(probe, other), given, "New means against the same values given")
    changed = changed_array(before, probe.history(probe.reset()))
    require(not changed, f"with_belief changed '{changed}' of the old world.")
    return ""


def _history_of(probe: Probe, world: object) -> dict[str, np.ndarray]:
    other = replace(probe, world=world)  # type: ignore[arg-type]
    return other.history(other.reset())


def _some_parameters(probe: Probe) -> Values:
    if not probe.names:
        raise CheckSkipped("no named parameters")
    return probe.varied(probe.batch)
