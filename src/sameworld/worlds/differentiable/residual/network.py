"""A network from the motion of some joints to forces on them.

Its weights travel as one flat array, so that programs take them as numbers. Behind the weights
stand the centre and the scale of the inputs, which are set from data and not trained.

Source: E. Heiden, D. Millard, E. Coumans, Y. Sheng, G. S. Sukhatme, "NeuralSim: Augmenting
Differentiable Simulators with Neural Networks", ICRA 2021.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, closest, listed
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.residual.config import Input, ResidualConfig
from sameworld.worlds.differentiable.step import Carry
from sameworld.worlds.differentiable.typed import asarray, zeros

__all__ = ["Network", "network_of"]

_eqx, _jax, _tree = cast("Any", eqx), cast("Any", jax), cast("Any", jax.tree)
#: Speed, in units of its usual size, below which the direction of motion is blurred.
_KNEE = 0.1


@dataclass(frozen=True, kw_only=True)
class Network:
    """A multilayer perceptron inside the step.

    Besides its inputs it sees the direction of every velocity, on which dry friction depends.

    Attributes:
        joints: Names of the joints.
        qpos: Their places among positions.
        dof: Their places among velocities.
        turning: Which are hinges without limits.
        bound: Largest force on each [N or N m].
        inputs: What it sees.
        width: Units per hidden layer.
        depth: Hidden layers.
        controls: Controls of the model.
        velocities: Velocities of the model.
    """

    joints: tuple[str, ...]
    qpos: tuple[int, ...]
    dof: tuple[int, ...]
    turning: tuple[bool, ...]
    bound: tuple[float, ...]
    inputs: tuple[Input, ...]
    width: int
    depth: int
    controls: int
    velocities: int

    # ---- sizes ---------------------------------------------------------------------------

    @property
    def seen(self) -> int:
        """Inputs that are brought to a common scale."""
        sizes = {
            "position": len(self.joints) + sum(self.turning),
            "velocity": len(self.joints),
            "control": self.controls,
        }
        return sum(sizes[name] for name in self.inputs)

    @property
    def trained(self) -> int:
        """Weights that are trained; they come first."""
        return sum(math.prod(shape) for shape in self._shapes)

    @property
    def size(self) -> int:
        """Length of the flat array."""
        return self.trained + 2 * self.seen

    @cached_property
    def _blueprint(self) -> tuple[tuple[tuple[int, ...], ...], Callable[[list[jax.Array]], Any]]:
        """Shapes of the arrays of the perceptron, and what makes one of arrays."""
        with jax.enable_x64(True):
            drawn = _eqx.filter_eval_shape(self._drawn, _jax.eval_shape(jax.random.key, 0))
        arrays, rest = _eqx.partition(drawn, _is_shape)
        leaves, form = _tree.flatten(arrays)
        shapes = tuple(tuple(leaf.shape) for leaf in leaves)

        def assembled(parts: list[jax.Array]) -> Any:
            return _eqx.combine(_tree.unflatten(form, parts), rest)

        return shapes, assembled

    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return self._blueprint[0]

    def _drawn(self, key: jax.Array) -> Any:
        signs = len(self.joints) if "velocity" in self.inputs else 0
        return _eqx.nn.MLP(
            self.seen + signs,
            len(self.joints),
            self.width,
            self.depth,
            activation=jnp.tanh,
            dtype=jnp.float64,
            key=key,
        )

    # ---- numbers -------------------------------------------------------------------------

    def initial(self, seed: int) -> Array:
        """Weights [size] to begin with; the last layer is zero, so no force acts."""
        with jax.enable_x64(True):
            perceptron = self._drawn(jax.random.key(seed))
            leaves = _tree.leaves(_eqx.filter(perceptron, _eqx.is_array))
            parts = [np.asarray(leaf, dtype=np.float64).reshape(-1) for leaf in leaves]
        parts[-2:] = [np.zeros_like(part) for part in parts[-2:]]
        return np.concatenate([*parts, np.zeros(self.seen), np.ones(self.seen)])

    def scaled(self, weights: Array, q: Array, v: Array, control: Array) -> Array:
        """Weights with the centre and scale of inputs set from motion.

        Args:
            weights: Weights [size].
            q: Positions [N, nq].
            v: Velocities [N, nv].
            control: Controls [N, nu].
        """
        with jax.enable_x64(True):
            rows = np.asarray(jax.vmap(self._raw)(asarray(q), asarray(v), asarray(control)))
        centre = np.where(self._centred, rows.mean(axis=0), 0.0)
        scale = np.sqrt(np.mean((rows - centre) ** 2, axis=0))
        scale = np.where(scale > 1e-9, scale, 1.0)
        return np.concatenate([weights[: self.trained], centre, scale])

    @property
    def _centred(self) -> np.ndarray:
        """Inputs that have a centre: those without a natural zero."""
        sizes = {"position": len(self.joints) + sum(self.turning), "velocity": len(self.joints)}
        marks = [
            np.full(sizes.get(name, self.controls), name == "position") for name in self.inputs
        ]
        return np.concatenate(marks)

    # ---- in the step ---------------------------------------------------------------------

    def force(self, weights: jax.Array, carry: Carry) -> jax.Array:
        """Forces on the joints [nv] for weights [size]."""
        centre, scale = jnp.split(weights[self.trained :], 2)
        seen = (self._raw(carry.q, carry.v, carry.control) - centre) / scale
        if "velocity" in self.inputs:
            first = self._first("velocity")
            speed = seen[first : first + len(self.joints)]
            seen = jnp.concatenate([seen, speed / jnp.sqrt(speed**2 + _KNEE**2)])
        pushed = np.array(self.bound) * jnp.tanh(self._perceptron(weights)(seen))
        return zeros(self.velocities).at[np.array(self.dof)].set(pushed)

    def _raw(self, q: jax.Array, v: jax.Array, control: jax.Array) -> jax.Array:
        """Inputs in SI units [seen]."""
        place, turning = np.array(self.qpos), np.array(self.turning)
        parts: dict[Input, list[jax.Array]] = {
            "position": [
                q[place[~turning]],
                jnp.sin(q[place[turning]]),
                jnp.cos(q[place[turning]]),
            ],
            "velocity": [v[np.array(self.dof)]],
            "control": [control],
        }
        return jnp.concatenate([part for name in self.inputs for part in parts[name]])

    def _first(self, name: Input) -> int:
        before = self.inputs[: self.inputs.index(name)]
        sizes = {"position": len(self.joints) + sum(self.turning), "control": self.controls}
        return sum(sizes[other] for other in before)

    def _perceptron(self, weights: jax.Array) -> Callable[[jax.Array], jax.Array]:
        shapes, assembled = self._blueprint
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = jnp.split(weights[: self.trained], ends[:-1].tolist())
        return assembled([p.reshape(s) for p, s in zip(parts, shapes, strict=True)])


def _is_shape(leaf: object) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def network_of(model: Model, config: ResidualConfig) -> Network:
    """Lay out the network for a compiled model.

    Raises:
        SpecError: A pattern matches no hinge or slide, or nothing is left to see.
    """
    kinds = (int(mj.mjtJoint.mjJNT_HINGE), int(mj.mjtJoint.mjJNT_SLIDE))
    usable = [k for k in range(model.njnt) if int(model.jnt_type[k]) in kinds]
    names = {k: str(model.joint(k).name) for k in usable}
    chosen = [k for k in usable if any(fnmatch.fnmatchcase(names[k], p) for p in config.joints)]
    for pattern in config.joints:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names.values()):
            raise SpecError(
                f"'{pattern}' matches no hinge or slide. There are {listed(names.values())}."
                f"{closest(pattern, names.values())}"
            )
    dofs = [int(model.jnt_dofadr[k]) for k in chosen]
    usual = [config.reach * float(model.dof_M0[dof]) for dof in dofs]
    inputs: tuple[Input, ...] = tuple(n for n in config.inputs if n != "control" or model.nu)
    if not inputs:
        raise SpecError("The scene has no controls. Let the residual see positions or velocities.")
    return Network(
        joints=tuple(names[k] for k in chosen),
        qpos=tuple(int(model.jnt_qposadr[k]) for k in chosen),
        dof=tuple(dofs),
        turning=tuple(
            int(model.jnt_type[k]) == kinds[0] and not bool(model.jnt_limited[k]) for k in chosen
        ),
        bound=tuple(usual if config.bound is None else [config.bound] * len(chosen)),
        inputs=inputs,
        width=config.width,
        depth=config.depth,
        controls=int(model.nu),
        velocities=int(model.nv),
    )
