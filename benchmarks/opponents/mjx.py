"""MJX, the JAX engine that comes from MuJoCo's authors, on the problems of ``diff_speed``.

Needs ``pip install mujoco-mjx==3.17.0``. ``measure`` runs every task in a process of its own, with
an empty compilation cache, and gives up on it after ten minutes, as on a CPU some compile for
longer. MJX is used as its documentation shows: ``put_model``, ``step`` in a ``lax.scan``, ``jit``,
``vmap``, ``jacfwd`` and ``grad``; in double precision, with the solver settings of the scene.

Source: google-deepmind/mujoco, package ``mujoco-mjx`` 3.17.0.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

LIMIT_S = 600
REPETITIONS, ENOUGH_S = 5, 30.0


def available() -> bool:
    """Whether MJX is installed."""
    return importlib.util.find_spec("mujoco.mjx") is not None


def measure(model: mujoco.MjModel, task: str, **arrays: np.ndarray) -> dict[str, float]:
    """CPU-seconds of one task: per call, and of the first call, which compiles.

    Args:
        model: The compiled scene.
        task: ``smooth`` and ``contact`` simulate ``actions`` [B, T, U]; ``jacobian`` differentiates
            all positions and velocities by masses of ``bodies`` and dampings of ``dofs``,
            ``reverse`` the sum of one position and one velocity by all actions.
        arrays: ``actions``, and ``bodies`` and ``dofs`` for the Jacobian.

    Returns:
        ``seconds`` and ``first_s``; nothing where the task did not end in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, str(Path(folder) / "model.mjb"))
        np.savez(Path(folder) / "arrays.npz", **arrays)
        env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        run = [sys.executable, "-m", "benchmarks.opponents.mjx", task, folder]
        try:
            out = subprocess.run(
                run, env=env, capture_output=True, text=True, check=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return {}
    return json.loads(out.stdout.splitlines()[-1])


def _main(task: str, folder: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_binary_path(str(Path(folder) / "model.mjb"))
    with np.load(Path(folder) / "arrays.npz") as arrays:
        call = _call(task, model, dict(arrays))
    begun = time.process_time()
    call()
    first = time.process_time() - begun
    seconds: list[float] = []
    while len(seconds) < REPETITIONS and sum(seconds) < ENOUGH_S:
        begun = time.process_time()
        call()
        seconds.append(time.process_time() - begun)
    print(json.dumps({"seconds": float(np.median(seconds)), "first_s": first}))


def _call(task: str, model: mujoco.MjModel, arrays: dict[str, np.ndarray]) -> Callable[[], object]:
    """The task as a call that waits for its result."""
    import jax
    import jax.numpy as jnp
    from mujoco import mjx

    native, blank = mjx.put_model(model), mjx.make_data(model)
    actions = jnp.asarray(arrays["actions"])

    def trajectory(wrapped, steps):
        def step(data, action):
            data = mjx.step(wrapped, data.replace(ctrl=action))
            return data, (data.qpos, data.qvel)

        return jax.lax.scan(step, blank, steps)[1]

    if task in ("smooth", "contact"):
        run = jax.jit(jax.vmap(lambda steps: trajectory(native, steps)))
        return lambda: jax.block_until_ready(run(actions))
    if task == "reverse":
        run = jax.jit(jax.grad(lambda s: sum(x[:, 0].sum() for x in trajectory(native, s))))
        return lambda: jax.block_until_ready(run(actions[0]))
    bodies, dofs = arrays["bodies"], arrays["dofs"]

    def of(values):
        masses = native.body_mass.at[bodies].set(values[: len(bodies)])
        damping = native.dof_damping.at[dofs].set(values[len(bodies) :])
        return trajectory(native.replace(body_mass=masses, dof_damping=damping), actions[0])

    here = jnp.concatenate([native.body_mass[bodies], native.dof_damping[dofs]])
    run = jax.jit(jax.jacfwd(of))
    return lambda: jax.block_until_ready(run(here))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
