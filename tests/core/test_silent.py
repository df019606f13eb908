"""Derivatives that say nothing, told from values that do nothing."""

import numpy as np
import pytest

from sameworld.core import SpecError, Values, silent_gradients
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, scene

MASS, DAMPING, STIFFNESS = "body:cart.mass", "joint:rail.damping", "joint:rail.stiffness"
START = Values.of({"start:rail.pos": [0.3, -0.2], "start:rail.vel": [0.1, 0.4]})
ACTIONS = np.ones((2, 12, 1))


class Altered:
    """A cart whose gradient or motion leaves something out."""

    def __init__(self, *, forgets=(), ignores=()):
        self.inner, self.forgets, self.ignores = AnalyticCart(substeps=1), forgets, ignores

    @property
    def spec(self):
        return self.inner.spec

    @property
    def scene(self):
        return self.inner.scene

    @property
    def parameters(self):
        return self.inner.parameters

    def with_belief(self, belief):
        raise NotImplementedError

    def reset(self, start, parameters=None, *, seed=0):
        names = [n for n in (parameters or Values.none()).names if n not in self.ignores]
        kept = None if parameters is None else parameters.select(names)
        return self.inner.reset(start, kept, seed=seed)

    def step(self, state, action):
        return self.inner.step(state, action)

    def observe(self, state):
        return self.inner.observe(state)

    def gradient(self, start, actions, parameters, wrt, *, seed):
        exact = self.inner.gradient(start, actions, parameters, wrt, seed=seed)
        kept = np.array([name not in self.forgets for name in wrt])
        return {name: np.where(kept, slope, 0.0) for name, slope in exact.items()}


def found(world, *names):
    rows = silent_gradients(world, START, ACTIONS, wrt=names, reasons={MASS: "it is bolted down"})
    return {row.name: row for row in rows}


def test_nothing_is_silent_in_a_sound_world():
    assert found(Altered(), MASS, DAMPING, STIFFNESS, "start:rail.vel") == {}


def test_a_forgotten_derivative_is_found_with_its_channels():
    rows = found(Altered(forgets=(DAMPING,)), MASS, DAMPING)
    assert set(rows) == {DAMPING}
    assert rows[DAMPING].kind == "exact is zero"
    assert rows[DAMPING].channels == ("rail.pos", "rail.vel")
    assert "exact derivative of zero" in str(rows[DAMPING])


def test_a_derivative_of_what_does_not_act_is_found():
    rows = found(Altered(ignores=(DAMPING,)), MASS, DAMPING)
    assert rows[DAMPING].kind == "differences are zero"


def test_what_has_no_effect_says_so_with_the_known_reason():
    rows = found(Altered(forgets=(MASS,), ignores=(MASS,)), MASS, DAMPING)
    assert set(rows) == {MASS}
    assert rows[MASS].kind == "no effect"
    assert str(rows[MASS]) == f"'{MASS}' changes nothing here: it is bolted down"


def test_a_world_without_gradient_is_refused():
    with pytest.raises(SpecError, match="no 'gradient'"):
        silent_gradients(build(scene("cart")), START, ACTIONS, wrt=(MASS,))
