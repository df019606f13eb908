"""Accelerations under contact equal those of MuJoCo's C solver at its tightest tolerance.

C's own residual is the floor: 1e-10 for pyramids, up to 1e-6 for elliptic cones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from contact_islands import LABELS, SETTINGS, island_dofs, scene, touching_states
from diff_cases import Steps, case_of, in_c, relative

TOLERANCE = {"pyramidal": 1e-9, "elliptic": 1e-6}
VARIANTS = {
    "pyramidal": {"cone": "pyramidal", "impratio": 2.0, "shift": 0},
    "elliptic": {"cone": "elliptic", "impratio": 3.0, "shift": 4},
}
TILTS = {"any": None, "nearly aligned": 0.01}


class Compared(NamedTuple):
    ours: dict[str, Steps]
    theirs: dict[str, Steps]
    dofs: list[np.ndarray]
    tolerance: float


@pytest.fixture(scope="module", params=VARIANTS)
def compared(request) -> Compared:
    """Steps of 60 states per orientation of the geoms, all islands at once."""
    variant = VARIANTS[request.param]
    model = scene(**variant)
    case = case_of(model)
    states = {k: touching_states(model, 60, 7, tilt=tilt) for k, tilt in TILTS.items()}
    return Compared(
        ours={k: case.stepped(s) for k, s in states.items()},
        theirs={k: in_c(model, s) for k, s in states.items()},
        dofs=[island_dofs(model, k) for k in range(len(LABELS))],
        tolerance=TOLERANCE[variant["cone"]],
    )


@pytest.mark.parametrize("orientation", TILTS)
@pytest.mark.parametrize("label", LABELS)
def test_accelerations_of_touching_bodies_are_those_of_mujoco(compared, label, orientation) -> None:
    dofs = compared.dofs[LABELS.index(label)]
    ours, theirs = compared.ours[orientation], compared.theirs[orientation]
    error = relative(ours.acceleration[:, dofs], theirs.acceleration[:, dofs])
    assert error.max() <= compared.tolerance


@pytest.mark.parametrize("label", LABELS)
def test_most_states_are_in_contact(compared, label) -> None:
    dofs = compared.dofs[LABELS.index(label)]
    pushed = np.abs(compared.theirs["any"].acceleration[:, dofs]).max(axis=1) > 10.5
    assert pushed.sum() >= 12


def test_the_next_state_is_that_of_mujoco(compared) -> None:
    for orientation in TILTS:
        ours, theirs = compared.ours[orientation], compared.theirs[orientation]
        assert relative(ours.v, theirs.v).max() <= compared.tolerance
        assert relative(ours.q, theirs.q).max() <= compared.tolerance


def test_variants_cover_every_setting_with_both_cones() -> None:
    for cone in TOLERANCE:
        shifts = [v["shift"] for v in VARIANTS.values() if v["cone"] == cone]
        seen = {(k + s) % len(SETTINGS) for s in shifts for k in range(len(LABELS))}
        assert seen == set(range(len(SETTINGS)))
