"""MJX, the JAX engine that comes from MuJoCo's authors, on the problems of ``diff_speed``.

Needs ``pip install mujoco-mjx==3.17.0``. ``measure`` runs every task in a process of its own, with
an empty compilation cache, and gives up on it after ten minutes, as on a CPU some compile for
longer. MJX is used as its documentation shows: ``put_model``, ``step`` in a ``lax.scan``, ``jit``,
``vmap``, ``jacfwd`` and ``grad``; in double precision, with the solver settings of the scene. As
``vmap`` can slow MJX down on a CPU, elements and tangents are also taken one after the other
(``lax.map``), and the faster way counts.

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
        ``seconds`` and ``first_s`` of the faster way; nothing where none ended in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, str(Path(folder) / "model.mjb"))
        np.savez(Path(folder) / "arrays.npz", **arrays)
        env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        run = [sys.executable, "-m", "benchmarks.opponents.mjx", task, folder]
        try:
            out = subprocess.run(
                run, env=env, capture_output=True, check=True, timeout=LIMIT_S
            ).stdout
        except subprocess.TimeoutExpired as late:
            out = late.stdout or b""
    whole = [line for line in out.split(b"\n")[:-1] if line.startswith(b"{")]
    found: list[dict[str, float]] = [json.loads(line) for line in whole]
    return min(found, key=lambda way: way["seconds"]) if found else {}


def _main(task: str, folder: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_binary_path(str(Path(folder) / "model.mjb"))
    with np.load(Path(folder) / "arrays.npz") as arrays:
        calls = _calls(task, model, dict(arrays))
    for call in calls:
        first, seconds = _spent(call), list[float]()
        while len(seconds) < REPETITIONS and sum(seconds) < ENOUGH_S:
            seconds.append(_spent(call))
        print(json.dumps({"seconds": float(np.median(seconds)), "first_s": first}), flush=True)


def _spent(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def _calls(
    task: str, model: mujoco.MjModel, arrays: dict[str, np.ndarray]
) -> list[Callable[[], object]]:
    """Ways to do the task, as calls that wait for the result."""
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

    def called(function, given):
        run = jax.jit(function)
        return lambda: jax.block_until_ready(run(given))

    def one(steps):
        return trajectory(native, steps)

    if task in ("smooth", "contact"):
        return [called(lambda a: jax.lax.map(one, a), actions), called(jax.vmap(one), actions)]
    if task == "reverse":
        return [called(jax.grad(lambda s: sum(x[:, 0].sum() for x in one(s))), actions[0])]
    bodies, dofs = arrays["bodies"], arrays["dofs"]

    def of(values):
        masses = native.body_mass.at[bodies].set(values[: len(bodies)])
        damping = native.dof_damping.at[dofs].set(values[len(bodies) :])
        return trajectory(native.replace(body_mass=masses, dof_damping=damping), actions[0])

    def in_turn(here):
        return jax.lax.map(lambda to: jax.jvp(of, (here,), (to,))[1], jnp.eye(len(here)))

    here = jnp.concatenate([native.body_mass[bodies], native.dof_damping[dofs]])
    return [called(in_turn, here), called(jax.jacfwd(of), here)]


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
