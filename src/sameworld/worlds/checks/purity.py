"""Checks that a world is a function: of the State, the action and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.worlds.checks.probe import (
    Probe,
    changed_array,
    require,
    saved_and_restored,
    start_rows,
)

__all__ = [
    "batch_equals_singles",
    "clones_continue_exactly",
    "global_randomness_is_untouched",
    "observations_are_copies",
    "restored_states_continue_exactly",
    "same_input_gives_same_output",
    "seeds_act_as_declared",
    "step_leaves_its_input",
    "time_advances_by_the_period",
]


def step_leaves_its_input(probe: Probe) -> str:
    """``step`` and ``observe`` change neither the State nor the action they are given."""
    state = probe.reset()
    action = probe.actions[:, 0].copy()
    before = {name: array.copy() for name, array in state.to_arrays().items()}
    sent = action.copy()
    probe.world.observe(probe.world.step(state, action))
    changed = changed_array(before, state.to_arrays())
    require(not changed, f"step changed '{changed}' of the State it was given.")
    require(np.array_equal(action, sent), "step changed the action it was given.")
    probe.world.observe(state)
    changed = changed_array(before, state.to_arrays())
    require(not changed, f"observe changed '{changed}' of the State it was given.")
    return ""


def same_input_gives_same_output(probe: Probe) -> str:
    """Two resets and two walks agree bit for bit, also when other calls happen in between."""
    first, second = probe.reset(), probe.reset()
    changed = changed_array(first.to_arrays(), second.to_arrays())
    require(not changed, f"Two equal resets differ in '{changed}'.")
    mine = probe.world.step(first, probe.actions[:, 0])
    for _ in probe.walk(mine, 2, begin=1):
        pass
    theirs = probe.world.step(second, probe.actions[:, 0])
    changed = changed_array(mine.to_arrays(), theirs.to_arrays())
    require(not changed, f"The same step taken twice differs in '{changed}'.")
    changed = changed_array(dict(probe.world.observe(mine)), dict(probe.world.observe(theirs)))
    require(not changed, f"Signal '{changed}' of the same state differs.")
    return ""


def global_randomness_is_untouched(probe: Probe) -> str:
    """Results do not depend on Python's or numpy's global generators, nor move them."""
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    runs: list[dict[str, Array]] = []
    try:
        for seed in (1, 2):
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            before = _global_generators()
            runs.append(probe.history(probe.reset()))
            require(
                before == _global_generators(), "The world draws from a global random generator."
            )
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])
    changed = changed_array(*runs)
    require(not changed, f"'{changed}' depends on a global random generator.")
    return ""


def _global_generators() -> tuple[object, ...]:
    words = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return words["key"].tobytes(), words["pos"], random.getstate()


def observations_are_copies(probe: Probe) -> str:
    """Writing into observed arrays does not reach the State."""
    state = probe.reset()
    before = {name: array.copy() for name, array in probe.world.observe(state).items()}
    for array in probe.world.observe(state).values():
        if array.flags.writeable:
            array += 1.0
    changed = changed_array(before, dict(probe.world.observe(state)))
    require(not changed, f"Writing into the observed '{changed}' changed the State.")
    return ""


def time_advances_by_the_period(probe: Probe) -> str:
    """Each step adds one control period to every element's time."""
    period = probe.world.spec.period
    for tick, state in enumerate(probe.walk(probe.reset()), start=1):
        gap = float(np.abs(state.time - tick * period).max())
        require(gap < 1e-9, f"After {tick} ticks time is {state.time.tolist()} s.")
    return f"{period} s"


def batch_equals_singles(probe: Probe) -> str:
    """A batch of n gives what n batches of 1 give."""
    whole = probe.reset()
    together = probe.history(whole)
    words: set[str] = set()
    for row in range(probe.batch):
        alone = probe.world.reset(start_rows(probe.start, [row]), seed=probe.seed)
        alone = replace(alone, key=whole.key[row : row + 1].copy())
        single = probe.history(alone, probe.actions[row : row + 1])
        part = {name: values[row : row + 1] for name, values in together.items()}
        words.add(probe.require_close(single, part, f"Element {row} alone"))
    return max(words, key=len)


def clones_continue_exactly(probe: Probe) -> str:
    """Rows taken from a State continue as the originals do."""
    *_, middle = probe.walk(probe.reset(), 3)
    action = probe.actions[:, 3]
    after = probe.world.step(middle, action)
    clone = probe.world.step(middle.rows(slice(None)), action)
    changed = changed_array(after.to_arrays(), clone.to_arrays())
    require(not changed, f"A clone continues with another '{changed}'.")
    rows = [probe.batch - 1, 0, 0]
    picked = probe.world.step(middle.rows(rows), action[rows])
    seen = probe.world.observe(after)
    return probe.require_close(
        probe.world.observe(picked),
        {name: values[rows] for name, values in seen.items()},
        f"Rows {rows} of a State",
    )


def restored_states_continue_exactly(probe: Probe) -> str:
    """A State saved to npz bytes and read back continues bit for bit."""
    *_, middle = probe.walk(probe.reset(), 3)
    restored = saved_and_restored(middle)
    mine = list(probe.walk(middle, begin=3))
    theirs = list(probe.walk(restored, begin=3))
    for tick, (a, b) in enumerate(zip(mine, theirs, strict=True), start=4):
        changed = changed_array(a.to_arrays(), b.to_arrays())
        require(not changed, f"After a restore '{changed}' differs at tick {tick}.")
    return f"{len(mine)} ticks"


def seeds_act_as_declared(probe: Probe) -> str:
    """The seed decides a stochastic world and does not touch a deterministic one."""
    first = probe.history(probe.reset(seed=probe.seed))
    again = probe.history(probe.reset(seed=probe.seed))
    other = probe.history(probe.reset(seed=probe.seed + 1))
    changed = changed_array(first, again)
    require(not changed, f"'{changed}' differs between two runs of one seed.")
    differs = changed_array(first, other)
    if not probe.world.spec.stochastic:
        require(not differs, f"Declared deterministic, but '{differs}' depends on the seed.")
        return "deterministic"
    require(bool(differs), "Declared stochastic, but another seed changes nothing.")
    keys = probe.reset().key
    require(len(set(keys.tolist())) == len(keys), "Elements of a batch share a random key.")
    return "stochastic"
