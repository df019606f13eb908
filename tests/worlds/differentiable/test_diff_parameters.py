"""Parameter values enter the core as they enter an edited model of MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from diff_cases import Case, States, in_c, quick, relative, scene_case
from machine import BENCH, bench_states

from sameworld.maths.inertia import rotated
from sameworld.worlds.compiled.contacts import contact_parameters
from sameworld.worlds.compiled.edits import Editor
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.compiled.tables import Tables
from sameworld.worlds.differentiable.parameters import LEAVES
from sameworld.worlds.differentiable.step import completed

#: Sets of addresses that are moved together.
KINDS = {
    "mass": lambda n: n.endswith(".mass"),
    "centre of mass": lambda n: ".com." in n,
    "moments": lambda n: ".inertia." in n,
    "mass, centre, moments": lambda n: n.endswith(".mass") or ".com." in n or ".inertia." in n,
    "log-Cholesky": lambda n: ".inertial." in n,
    "geoms": lambda n: n.startswith("geom:"),
    "pairs": lambda n: n.startswith("pair:"),
    "geoms and pairs": lambda n: n.startswith(("geom:", "pair:")),
    "joints": lambda n: n.startswith("joint:"),
    "actuators": lambda n: n.startswith("actuator:"),
    "tendons": lambda n: n.startswith("tendon:"),
    "gravity": lambda n: "gravity" in n,
    "nothing": lambda n: False,
    "all but log-Cholesky": lambda n: ".inertial." not in n,
    "all but plain inertia": lambda n: not n.startswith("body:") or ".inertial." in n,
}
#: Actuators of tendons may not have armature and damping in the differentiable world.
REFUSED = ("actuator:belt.armature", "actuator:belt.damping")
#: What the core computes from a model besides arrays that keep their name.
DERIVED = ("body_invweight0", "dof_invweight0", "tendon_invweight0", "tendon_length0")


class Edited(NamedTuple):
    """One set of addresses moved at random."""

    ours: dict[str, np.ndarray]
    theirs: Any
    error: float


class Bench(NamedTuple):
    tables: Tables
    case: Case
    slots: tuple[Slot, ...]
    edited: dict[str, Edited]


def moved(slot: Slot, rng: np.random.Generator) -> float:
    """A value near the scene's, inside the bounds and physical."""
    step = rng.uniform(0.005, 0.02)
    if slot.value == 0 or slot.unit == "m" or ".inertial." in slot.name:
        return min(slot.value + 0.2 * step, slot.bounds[1])
    return slot.value * (1 + step)


def edits(slots: tuple[Slot, ...], own: np.ndarray) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(3)
    for chosen in KINDS.values():
        row = own.copy()
        for column, slot in enumerate(slots):
            if chosen(slot.name) and slot.name not in REFUSED:
                row[column] = moved(slot, rng)
        yield row


@pytest.fixture(scope="module")
def bench() -> Bench:
    tables, case = scene_case("bench", BENCH.format(cone="pyramidal"))
    slots = case.writer.slots
    editor = Editor(compiled=tables.compiled, slots=slots)
    states = bench_states(case.model, len(KINDS))
    rows = np.array(list(edits(slots, case.values)))

    def both(values: jax.Array, *state: jax.Array) -> Any:
        return completed(case.system, case.writer, values), case.step(values, *state)

    with jax.enable_x64(True):
        run = quick(lambda *rows: jax.lax.map(lambda row: both(*row), rows))
        leaves, ends = jax.tree.map(np.array, run(rows, *vars(states).values()))
    assert ends.converged.all()
    found = {}
    for k, kind in enumerate(KINDS):
        changes = [(c, x) for c, x in enumerate(rows[k]) if x != case.values[c]]
        model = editor.edit_fields(changes, frozenset())
        assert not isinstance(model, str), model
        state = States(**{name: x[k : k + 1] for name, x in vars(states).items()})
        error = relative(ends.v[k : k + 1], in_c(model, state).v)
        own = {name: array[k] for name, array in leaves.items()}
        found[kind] = Edited(own, model, float(error.max()))
    return Bench(tables, case, slots, found)


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return np.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_of_an_edited_model(bench: Bench, kind: str) -> None:
    ours, model, _ = bench.edited[kind]
    summed = ("dof_armature", "dof_damping")  # with what actuators add: compared below
    names = [n for n in LEAVES if n not in ("body_iquat", *summed) and not n.startswith("pair_")]
    wrong = [n for n in (*names, *DERIVED) if not close(ours[n], getattr(model, n))]
    assert not wrong
    diagonal = model.body_inertia[:, :, None] * np.eye(3)
    assert close(ours["inertia"], rotated(diagonal, model.body_iquat))
    assert close(ours["opt.gravity"], model.opt.gravity)


@pytest.mark.parametrize("kind", KINDS)
def test_contact_parameters_are_those_of_an_edited_model(bench: Bench, kind: str) -> None:
    ours, model, _ = bench.edited[kind]
    pairs = bench.case.system.pairs
    for row, (pair, geoms) in enumerate(zip(pairs.explicit, pairs.geoms, strict=True)):
        for name in ("friction", "solref", "solimp", "margin"):
            if pair >= 0:
                theirs = getattr(model, f"pair_{name}")[pair]
            else:
                theirs = getattr(contact_parameters(model, *geoms), name)
            assert close(ours[f"contact_{name}"][row], theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_that_of_an_edited_model(bench: Bench, kind: str) -> None:
    assert bench.edited[kind].error <= 1e-9


def test_every_address_of_the_model_is_moved_by_some_set(bench: Bench) -> None:
    names = [slot.name for slot in bench.slots]
    assert all(any(chosen(name) for chosen in KINDS.values()) for name in names)
    groups = {name.partition(":")[0] for name in names}
    assert {"body", "geom", "pair", "joint", "actuator", "tendon"} <= groups


def test_given_moments_do_not_follow_the_mass(bench: Bench) -> None:
    names = frozenset(s.name for s in bench.slots if ".inertia." in s.name)
    writer = replace(bench.case.writer, given=names)
    editor = Editor(compiled=bench.tables.compiled, slots=bench.slots)
    inertia = quick(lambda values: writer.leaves(values)["inertia"])
    for kind, row in zip(KINDS, edits(bench.slots, bench.case.values), strict=True):
        changes = [(c, x) for c, x in enumerate(row) if x != bench.case.values[c]]
        model = editor.edit_fields(changes, names)
        with jax.enable_x64(True):
            ours = np.array(inertia(row))
        diagonal = model.body_inertia[:, :, None] * np.eye(3)
        assert close(ours, rotated(diagonal, model.body_iquat)), kind
