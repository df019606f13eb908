"""Derivatives equal central differences of the same program, and are finite wherever one looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diff_cases import Case, quick, scene_case
from machine import BENCH, PUSH, bench_states

from sameworld.worlds.differentiable.cache import keep_compiled
from sameworld.worlds.differentiable.cost import Layout, Problem, forces

#: Values, positions, velocities, controls.
Point = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
BLOCKS = ("values", "positions", "velocities", "controls")
STEPS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A compiled program with its derivative, and a point to stand on.

    Attributes:
        case: The scene.
        run: ``(*point) -> (value, gradient)``, or ``(*point, *direction) -> (value, slope,
            gradient)``.
        point: Where to differentiate.
    """

    case: Case
    run: Callable[..., Any]
    point: Point

    def __call__(self, *arrays: np.ndarray) -> Any:
        with jax.enable_x64(True):
            return jax.tree.map(np.array, self.run(*(np.array(a) for a in arrays)))

    def q_of(self, joint: str) -> int:
        """First position column of a joint."""
        return int(self.case.model.joint(joint).qposadr[0])


def best_difference(value: Callable[[float], float], slope: float, scale: float) -> float:
    """The central difference of two step sizes that is closer to a slope."""
    steps = (1e-3 * scale, 1e-5 * scale)
    found = [(value(h) - value(-h)) / (2 * h) for h in steps]
    return min(found, key=lambda difference: abs(difference - slope))


# ---- one step, all inputs at once ------------------------------------------------------------


@pytest.fixture(scope="module")
def bench() -> Program:
    """Accelerations of one step, weighed at random, with gradient in reverse mode."""
    keep_compiled()
    _, case = scene_case("bench", BENCH.format(cone="elliptic"))
    weights = np.random.default_rng(0).normal(size=case.model.nv)

    def value(values: jax.Array, q: jax.Array, v: jax.Array, control: jax.Array) -> jax.Array:
        end = case.step(values, q, v, control)
        return weights @ (end.v - v) / case.model.opt.timestep

    states = bench_states(case.model, 1)
    states.v[0, int(case.model.joint("stone").dofadr[0]) + np.arange(2)] = (1.0, 0.3)
    point = (case.values, states.q[0], states.v[0], states.control[0])
    return Program(
        case=case, run=quick(jax.value_and_grad(value, argnums=(0, 1, 2, 3))), point=point
    )


@pytest.fixture(scope="module")
def gradient(bench: Program) -> dict[str, np.ndarray]:
    return dict(zip(BLOCKS, bench(*bench.point)[1], strict=True))


def differences(program: Program, block: int, near: np.ndarray) -> np.ndarray:
    """Best central differences by every entry of a block."""
    found = np.zeros_like(near)
    for k in range(len(near)):

        def value(h: float, k: int = k) -> float:
            moved = [np.array(a) for a in program.point]
            moved[block][k] += h
            return float(program(*moved)[0])

        scale = abs(program.point[block][k]) or 0.1
        found[k] = best_difference(value, near[k], scale)
    return found


@pytest.mark.parametrize("block", range(4), ids=BLOCKS)
def test_the_gradient_of_a_step_equals_differences_of_the_step(bench, gradient, block) -> None:
    ours = gradient[BLOCKS[block]]
    theirs = differences(bench, block, ours)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_addresses_of_every_kind_have_a_derivative_at_the_value_of_the_scene(
    bench, gradient
) -> None:
    names = [slot.name for slot in bench.case.writer.slots]
    moving = {name for name, d in zip(names, gradient["values"], strict=True) if d != 0}
    for name in (
        *("body:stone.mass", "body:stone.inertial.alpha", "body:stone.com.x"),
        *("geom:stone.friction.slide", "pair:floor+stone.friction.slide"),
        *("joint:shoulder.damping", "joint:rail.frictionloss", "tendon:rope.stiffness"),
        *("actuator:shoulder.gear", "option:gravity.z"),
    ):
        assert name in moving, sorted(moving)


# ---- finite everywhere -------------------------------------------------------------------------

UPRIGHT = [1.0, 0.0, 0.0, 0.0]
#: Positions of stone and bead, and velocity of both along x and z.
SITUATIONS = {
    "rest": ((2, 0, 0.049), (2.01, 0.02, 0.147), (0, 0)),
    "touching at exactly 0": ((2, 0, 0.05), (2.01, 0.02, 0.15), (0, 0)),
    "touching at exactly 0, sliding": ((2, 0, 0.05), (2.01, 0.02, 0.15), (1, 0)),
    "separated": ((2, 0, 0.5), (2, 0, 1), (1, 1)),
    "sliding": ((2, 0, 0.049), (2.01, 0.02, 0.147), (1, 0)),
    "lifting off": ((2, 0, 0.049), (2.01, 0.02, 0.147), (0, 3)),
    "falling in": ((2, 0, 0.049), (2.01, 0.02, 0.147), (0, -3)),
    "bead in the centre of the stone": ((2, 0, 0.05), (2.01, 0.02, 0.05), (0, 0)),
    "bead on an axis of the stone": ((2, 0, 0.05), (2.05, 0.02, 0.05), (0, 0)),
    "bead over an edge": ((2, 0, 0.05), (2.11, 0.02, 0.14), (0, 0)),
    "bead over a corner": ((2, 0, 0.05), (2.11, 0.07, 0.13), (0, 0)),
    "bead half in the floor": ((2, 0, 0.5), (2.5, 0, 0), (0, 0)),
}


@pytest.mark.parametrize("turn", [UPRIGHT, [0.0, 1.0, 0.0, 0.0]], ids=["upright", "half a turn"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_derivative_of_a_step_is_finite(bench: Program, situation: str, turn: list) -> None:
    stone, bead, (along, up) = SITUATIONS[situation]
    q, v = np.array(bench.case.model.qpos0), np.zeros(bench.case.model.nv)
    for joint, place in (("stone", stone), ("bead", bead)):
        at = bench.q_of(joint)
        q[at : at + 7] = [*place, *UPRIGHT]
        v[int(bench.case.model.joint(joint).dofadr[0]) + np.arange(3)] = (along, 0.0, up)
    q[bench.q_of("wrist") + np.arange(4)] = turn
    value, gradient = bench(bench.case.values, q, v, np.zeros(3))
    assert np.isfinite(value)
    for part in gradient:
        assert np.isfinite(part).all()


def test_dry_friction_of_zero_does_not_hold_what_rests() -> None:
    one = jnp.ones(1)

    def force(residual: jax.Array) -> jax.Array:
        problem = Problem(jnp.eye(1), one, jnp.eye(1), one, 5 * one, 0 * one, (), ())
        return forces(Layout(frictions=1), problem, residual)[0]

    assert float(jax.grad(force)(jnp.zeros(1))[0]) == 0.0


# ---- many steps, one direction -----------------------------------------------------------------


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def push(request: pytest.FixtureRequest) -> Program:
    """Displacement after some steps, weighed at random, with its slope and gradient."""
    keep_compiled()
    _, case = scene_case("push", PUSH.format(cone=request.param))
    weights = np.random.default_rng(1).normal(size=case.model.nq)

    def value(values: jax.Array, q: jax.Array, v: jax.Array, controls: jax.Array) -> jax.Array:
        def step(state: Any, control: jax.Array) -> tuple[Any, None]:
            end = case.step(values, *state, control)
            return (end.q, end.v), None

        (end, _), _ = jax.lax.scan(step, (q, v), controls)
        return weights @ (end - q) / (STEPS * case.model.opt.timestep)

    def sloped(*arrays: jax.Array) -> tuple[jax.Array, jax.Array, Any]:
        gradient = jax.grad(value, argnums=(0, 1, 2, 3))(*arrays[:4])
        return *jax.jvp(value, arrays[:4], arrays[4:]), gradient

    rng = np.random.default_rng(2)
    q = case.model.qpos0 + 1e-3 * rng.normal(size=case.model.nq)
    v = 0.1 * rng.normal(size=case.model.nv)
    controls = 0.1 + 0.01 * rng.normal(size=(STEPS, 1))
    return Program(case=case, run=quick(sloped), point=(case.values, q, v, controls))


def decides(name: str) -> bool:
    """Whether an address is among those that describe the scene without saying anything twice.

    Where two addresses describe the same thing, the one that moves decides, so that a sum of both
    derivatives is not the derivative of moving both.
    """
    kind, _, part = name.partition(".")
    mixed = part.startswith(("friction", "solref", "solimp"))
    twice = part.startswith(("inertia.", "inertial."))
    return not twice and not (mixed and kind.startswith("geom:"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("block", range(4), ids=BLOCKS)
def test_slopes_of_many_steps_equal_differences_of_the_program(push, block, seed) -> None:
    rng = np.random.default_rng(seed)
    direction = [np.zeros_like(a) for a in push.point]
    scale = np.abs(push.point[block]) if block == 0 else 1.0
    direction[block] = rng.normal(size=direction[block].shape) * scale
    if block == 0:
        direction[0] *= [decides(slot.name) for slot in push.case.writer.slots]

    def value(h: float) -> float:
        moved = [a + h * d for a, d in zip(push.point, direction, strict=True)]
        return float(push(*moved, *direction)[0])

    _, slope, gradient = push(*push.point, *direction)
    assert slope != 0
    assert slope == pytest.approx(np.vdot(gradient[block], direction[block]), rel=1e-9, abs=1e-11)
    assert slope == pytest.approx(best_difference(value, slope, 0.01), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "place",
    [(0.13, 0, 0.04), (0.13, 0, 0.05), (0.0, 0, 0.05), (0, 0, 0), (1, 0, 1), (0.1, 0, 0.05)],
)
def test_slopes_of_many_steps_are_finite_at_rest_and_where_shapes_coincide(push, place) -> None:
    q, v = np.array(push.case.model.qpos0), np.zeros(push.case.model.nv)
    at = push.q_of("log")
    q[at : at + 3] = place
    direction = [np.ones_like(a) for a in push.point]
    for part in jax.tree.leaves(push(push.case.values, q, v, np.zeros((STEPS, 1)), *direction)):
        assert np.isfinite(part).all()
