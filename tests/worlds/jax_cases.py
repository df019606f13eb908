"""Compiled scenes, random states, and what MuJoCo's C code says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import mujoco
import numpy as np

LEAVES = (
    *("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia"),
    *("body_invweight0", "dof_armature", "dof_invweight0", "jnt_pos", "jnt_axis", "qpos0"),
    *("site_pos", "site_quat", "geom_pos", "geom_quat", "eq_data", "eq_solref", "eq_solimp"),
    *("wrap_prm", "tendon_stiffness", "tendon_damping", "tendon_frictionloss"),
    *("tendon_lengthspring", "tendon_margin", "tendon_range", "tendon_invweight0"),
    *("tendon_length0", "tendon_solref_lim", "tendon_solimp_lim", "tendon_solref_fri"),
    "tendon_solimp_fri",
)

BODIES = """
<worldbody>
  <site name="wall" pos=".3 .2 1.1" euler="10 20 30"/>
  <body name="arm" pos="0 0 1" euler="10 0 20">
    <joint name="shoulder" axis="0 1 .3" pos=".1 0 0"/>
    <geom name="arm" pos=".02 0 .01" euler="30 0 10"/>
    <site name="arm" pos=".1 .05 0" euler="20 30 10"/>
    <site name="wrist" pos=".3 0 0"/>
    <body name="hand" pos=".3 0 0" euler="20 10 0">
      <joint name="elbow" axis="1 0 .2"/>
      <joint name="slide" type="slide" axis="0 1 1"/>
      <geom/>
      <site name="hand" pos=".1 0 .04" euler="50 30 10"/>
      <site name="palm"/>
      <body name="ball" pos=".3 .1 0">
        <joint name="ball" type="ball" pos=".05 0 .02"/>
        <geom name="ball"/>
        <site name="tip" pos=".02 .05 .04"/>
        <body name="badge" pos=".1 0 .1" euler="0 40 0"><geom/></body>
      </body>
    </body>
  </body>
  <body name="drone" pos="1 0 1">
    <freejoint name="drone"/>
    <geom/>
    <site name="drone" pos=".1 .02 .04" euler="50 30 10"/>
    <body name="rotor" pos="0 .1 .1"><joint name="rotor" axis="0 0 1"/><geom/>
      <site name="rotor" pos=".05 .02 0" euler="0 40 20"/></body>
  </body>
</worldbody>
"""


def compiled(
    inside: str = "", bodies: str = BODIES, option: str = "", flag: str = ""
) -> mujoco.MjModel:
    """A model of the bodies above with more inside it."""
    return mujoco.MjModel.from_xml_string(f"""
        <mujoco><compiler angle="degree"/>
        <option timestep=".002" jacobian="dense" {option}><flag {flag}/></option>
        <default><geom type="box" size=".1 .05 .03" contype="0" conaffinity="0"/></default>
        {bodies}{inside}</mujoco>""")


def leaves_of(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Copies of the arrays that the functions under test read."""
    return {name: np.array(getattr(model, name), dtype=float) for name in LEAVES}


@dataclass(frozen=True, kw_only=True)
class States:
    """Positions [B, nq], velocities [B, nv] and accelerations [B, nv]."""

    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray

    def __len__(self) -> int:
        return len(self.q)


def states_of(model: mujoco.MjModel, count: int = 12, seed: int = 0, spread: float = 0.6) -> States:
    """Random states around the reference configuration."""
    rng = np.random.default_rng(seed)
    q = np.repeat(model.qpos0[None], count, axis=0)
    for row in q:
        mujoco.mj_integratePos(model, row, spread * rng.normal(size=model.nv), 1.0)
    v, acceleration = rng.normal(size=(2, count, model.nv))
    return States(q=q, v=v, acceleration=acceleration)


def forwarded(model: mujoco.MjModel, states: States) -> Iterator[mujoco.MjData]:
    """What C computes in every state, one after the other in the same memory."""
    data = mujoco.MjData(model)
    for q, v in zip(states.q, states.v, strict=True):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        yield data


def moment_arms(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Derivatives of tendon lengths by velocity [nt, nv]."""
    dense = np.zeros((model.ntendon, model.nv))
    for row in range(model.ntendon):
        first, count = model.ten_J_rowadr[row], model.ten_J_rownnz[row]
        entries = slice(first, first + count)
        dense[row, model.ten_J_colind[entries]] = data.ten_J[entries]
    return dense


@contextmanager
def double() -> Iterator[None]:
    """Numbers of 64 bit."""
    with jax.enable_x64(True):
        yield


Run = Callable[..., Any]

quick = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""Compile with little optimisation: these programs run once."""


def over_states(function: Callable[..., object]) -> Run:
    """Compile ``function(leaves, ...)`` for leading axes of all but the arrays of the model.

    Arguments are copied in and results brought home, so that nothing runs behind memory of C.
    """
    compiled = quick(lambda leaves, *rest: jax.vmap(partial(function, leaves))(*rest))

    def run(leaves: dict[str, np.ndarray], *rest: Any) -> Any:
        with double():
            return jax.tree.map(np.array, compiled(leaves, *jax.tree.map(np.array, rest)))

    return run


def central(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-6):
    """Central differences [..., *x.shape] of a function of an array."""
    columns = []
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = h
        columns.append((function(x + step) - function(x - step)) / (2 * h))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*np.shape(columns[0]), *x.shape)
