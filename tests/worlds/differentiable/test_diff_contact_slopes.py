"""Derivatives through every pair of shapes, in both modes and cones: exact, MuJoCo's, and finite.

All pairs are islands of one scene: one program per cone serves all pairs and poses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from contact_islands import LABELS, PAIRS, PLANE, scene, touching_states
from diff_cases import States, case_of, in_c, quick

from sameworld.worlds.differentiable.cache import keep_compiled

POSES = 8
#: Share of poses in which no contact begins, ends or moves to another feature within a difference.
SMOOTH = 0.75
#: Largest error of a slope, relative to the slopes of its pair, against differences of the same
#: program and of C. C's own residual counts, divided by the step of the difference.
BOUNDS = {"pyramidal": (1e-6, 1e-4), "elliptic": (1e-6, 1e-2)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Islands:
    """A scene of islands and its program.

    Attributes:
        model: The scene.
        cone: Its cones.
        owner: 1 where a dof belongs to an island [islands, nv].
        weights: Weights of accelerations [nv].
        run: ``(q, v, dq, dv) -> (values, slopes, gradient)``: weighed accelerations of islands
            [islands], their slopes along a direction in forward mode, and the gradient of their sum
            by positions and velocities in reverse mode.
    """

    model: mujoco.MjModel
    cone: str
    owner: np.ndarray
    weights: np.ndarray
    run: Callable[..., tuple]

    def __call__(self, *arrays: np.ndarray) -> tuple:
        with jax.enable_x64(True):
            return jax.tree.map(np.array, self.run(*(np.array(a) for a in arrays)))

    def moved(self, q: np.ndarray, direction: np.ndarray, amount: float) -> np.ndarray:
        """Positions some way along a direction of velocities [nv]."""
        moved = np.array(q)
        mujoco.mj_integratePos(self.model, moved, direction, amount)
        return moved


@pytest.fixture(scope="module", params=BOUNDS)
def islands(request: pytest.FixtureRequest) -> Islands:
    keep_compiled()
    model = scene(cone=request.param, impratio=2.0, shift=1)
    case, weights = case_of(model), np.random.default_rng(0).normal(size=int(model.nv))
    bodies = [[model.geom(f"{ab}{k}").bodyid[0] for ab in "ab"] for k in range(len(PAIRS))]
    owner = np.array([np.isin(model.dof_bodyid, pair) for pair in bodies])

    def values(q: jax.Array, v: jax.Array) -> jax.Array:
        end = case.step(case.values, q, v, jnp.zeros(0))
        return owner.astype(float) @ (weights * (end.v - v)) / model.opt.timestep

    def run(q: jax.Array, v: jax.Array, dq: jax.Array, dv: jax.Array) -> tuple:
        found, forward = jax.linearize(values, q, v)
        return found, forward(dq, dv), jax.linear_transpose(forward, q, v)(jnp.ones_like(found))

    return Islands(model=model, cone=request.param, owner=owner, weights=weights, run=quick(run))


@dataclass(frozen=True, kw_only=True, eq=False)
class Slopes:
    """Slopes of islands along a random direction per pose [poses, islands]."""

    forward: np.ndarray
    reverse: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray


@pytest.fixture(scope="module")
def slopes(islands: Islands) -> Slopes:
    states = touching_states(islands.model, POSES, 3)
    rng = np.random.default_rng(4)
    rows = [
        slopes_at(islands, q, v, rng.normal(size=(2, len(v))))
        for q, v in zip(states.q, states.v, strict=True)
    ]
    return Slopes(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def slopes_at(islands: Islands, q: np.ndarray, v: np.ndarray, way: np.ndarray) -> dict:
    """Slopes at one pose along a direction [2, nv] of positions and of velocities."""
    step = 1e-6
    dq = (islands.moved(q, way[0], step) - islands.moved(q, way[0], -step)) / (2 * step)
    _, forward, (by_q, by_v) = islands(q, v, dq, way[1])
    ends = [
        (islands.moved(q, way[0], side * h), v + side * h * way[1])
        for h in (1e-5, 1e-7)
        for side in (1, -1)
    ]
    mine = [islands(*end, dq, way[1])[0] for end in ends]
    states = States(
        q=np.array([end[0] for end in ends]),
        v=np.array([end[1] for end in ends]),
        control=np.zeros((4, 0)),
    )
    after = in_c(islands.model, states).v
    other = (after - states.v) / islands.model.opt.timestep * islands.weights @ islands.owner.T
    return {
        "forward": forward,
        "reverse": gradient_along(islands, by_q, by_v, dq, way[1]),
        "ours": nearest(mine, forward),
        "theirs": nearest(other, forward),
    }


def gradient_along(islands: Islands, by_q, by_v, dq, dv) -> np.ndarray:
    """What a gradient says of a direction, island by island."""
    model = islands.model
    spread = np.zeros(int(model.nv))
    for joint in range(int(model.njnt)):
        at, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        width = 7 if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE else 1
        spread[dof] = by_q[at : at + width] @ dq[at : at + width]
    return islands.owner @ (spread + by_v * dv)


def nearest(values, slope: np.ndarray) -> np.ndarray:
    """The central difference of two step sizes that is closer to slopes [islands]."""
    far, near = (values[0] - values[1]) / 2e-5, (values[2] - values[3]) / 2e-7
    return np.where(np.abs(far - slope) < np.abs(near - slope), far, near)


def errors(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Error of slopes [poses, islands], relative to the largest of the island."""
    return np.abs(found - wanted) / np.abs(wanted).max(axis=0)


def test_reverse_mode_gives_the_slopes_of_forward_mode(slopes: Slopes) -> None:
    assert errors(slopes.reverse, slopes.forward).max() < 1e-9


@pytest.mark.parametrize("label", LABELS)
def test_slopes_are_those_of_differences_of_the_program(islands, slopes, label) -> None:
    k = LABELS.index(label)
    found = errors(slopes.reverse, slopes.ours)[:, k]
    assert (found < BOUNDS[islands.cone][0]).mean() >= SMOOTH


@pytest.mark.parametrize("label", LABELS)
def test_slopes_are_those_of_differences_of_c(islands, slopes, label) -> None:
    k = LABELS.index(label)
    found = errors(slopes.reverse, slopes.theirs)[:, k]
    assert (found < BOUNDS[islands.cone][1]).mean() >= SMOOTH


# ---- finite everywhere -------------------------------------------------------------------------


def upright(islands: Islands, gap: float | None, speed: np.ndarray) -> tuple:
    """Every second geom exactly aligned with the first one: above it by a gap, or at its centre."""
    model, data = islands.model, mujoco.MjData(islands.model)
    q, v = np.array(model.qpos0), np.zeros(int(model.nv))
    for k, pair in enumerate(PAIRS):
        body = model.geom_bodyid[model.geom(f"a{k}").id]
        joint = model.body(f"free{k}").jntadr[0]
        at, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        up = np.zeros(3)
        mujoco.mju_rotVecQuat(up, np.array([0.0, 0.0, 1.0]), model.body_quat[body])
        q[at : at + 3] = model.body_pos[body] + (0.0 if gap is None else 1.0) * up
        q[at + 3 : at + 7] = model.body_quat[body]
        v[dof : dof + 3] = speed
        if gap is None and pair[0] != PLANE:
            continue
        for _ in range(4):
            data.qpos[:] = q
            mujoco.mj_kinematics(model, data)
            ids = (model.geom(f"{ab}{k}").id for ab in "ab")
            apart = mujoco.mj_geomDistance(model, data, *ids, 10.0, None)
            q[at : at + 3] -= up * (apart - (gap or 0.0))
    return q, v


SITUATIONS = {
    "resting": (-1e-3, (0, 0, 0)),
    "touching at 0": (0.0, (0, 0, 0)),
    "sliding": (-1e-3, (1, 0.5, 0)),
    "sliding at 0": (0.0, (1, 0, 0)),
    "separating": (-1e-3, (0, 0, 2)),
    "apart": (0.1, (0, 0, 1)),
    "at one place": (None, (0, 0, 0)),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_derivatives_are_finite_in_both_modes(islands: Islands, situation: str) -> None:
    gap, speed = SITUATIONS[situation]
    q, v = upright(islands, gap, np.array(speed))
    for part in jax.tree.leaves(islands(q, v, np.ones_like(q), np.ones_like(v))):
        assert np.isfinite(part).all()
