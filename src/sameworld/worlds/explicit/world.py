"""``ExplicitWorld``: MuJoCo behind the one interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.records import Camera
from sameworld.core.rollout import finite_so_far
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Mechanism, Rollout, State
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.explicit import inverse as dynamics
from sameworld.worlds.explicit.failures import Failure
from sameworld.worlds.explicit.guard import dump_failure
from sameworld.worlds.explicit.kernel import Kernel

__all__ = ["ExplicitWorld"]

_STATE = "integration"


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplicitWorld:
    """A scene simulated by MuJoCo.

    Parameters are every address of the scene; ``State`` carries MuJoCo's integration state with
    warm start, so that it clones, saves and resumes bit-exactly. Elements that diverge, or whose
    parameters no body can have, turn NaN and invalid with a reason; they never raise.

    One world belongs to one thread (``ExplicitConfig.threads`` parallelises inside a rollout).

    Attributes:
        scene: The scene it simulates.
        parameters: Belief over every parameter of the scene.
        kernel: Compiled scene and caches, shared by worlds that differ in belief only.
    """

    scene: Scene
    parameters: Belief
    kernel: Kernel

    @property
    def spec(self) -> Spec:
        """What the world takes and gives."""
        return self.kernel.spec

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return self.parameters.names

    @cached_property
    def _mean(self) -> Array:
        return self.parameters.mean.array

    @cached_property
    def _given(self) -> frozenset[str]:
        """Moments of inertia that the scene's belief speaks of: they do not follow the mass."""
        return frozenset(
            n for n in self.scene.belief.names if n[:5] == "body:" and ".inertia." in n
        )

    def with_belief(self, belief: Belief) -> ExplicitWorld:
        """Return the same world believing something else; nothing is compiled again.

        Args:
            belief: Any subset of the parameters. What it changes also enters the scene's belief.

        Raises:
            AddressError: A name is no parameter of the scene.
        """
        belief = self.kernel.canonical(belief)
        current = {p.name: p for p in self.parameters.parameters}
        news = [p for p in belief.parameters if p != current[p.name] and p.scope == "scene"]
        own = belief.marginal(p.name for p in news)
        scene = self.scene.with_belief(self.scene.belief.updated(own))
        return replace(self, scene=scene, parameters=self.parameters.updated(belief))

    def mjcf(self) -> str:
        """MJCF text with the means of the belief written into it, for any MuJoCo program.

        Elements without names get the generated ones, and contact pairs stand explicitly. Sensor
        delays, gains and biases have no place in MJCF and are left out. So are components; a
        comment at the top says which.

        Raises:
            SceneError: The means are physically impossible.
        """
        return _unseen(self.scene) + self.kernel.models.mjcf(self._mean[0], self._given)

    # ---- one tick ------------------------------------------------------------------------

    def reset(
        self, start: Values | Context, parameters: Values | None = None, *, seed: int = 0
    ) -> State:
        """Place a batch at its start.

        Args:
            start: Start values [B, S], any subset of ``spec.start``.
            parameters: Values [B or 1, P'] of any subset of the parameters.
            seed: Seed of the keys in the state (this world draws nothing).

        Raises:
            SpecError: A context, an unknown name, or batches that disagree.
        """
        if isinstance(start, Context):
            raise SpecError(
                "This world starts from named values (spec.start), not from a context. Give "
                "Values, or find them from the context's first rows."
            )
        parameters = Values.none() if parameters is None else parameters
        batch = max(start.batch, parameters.batch)
        starts = self._filled(self.spec.start.names, self.spec.start.mean.array, start, batch)
        values = self._filled(self._names, self._mean, parameters, batch)
        rows = self.kernel.placed(starts, values, self._given)
        keys = np.random.SeedSequence(seed).generate_state(batch, np.uint64).astype(np.uint64)
        state = State(
            arrays={_STATE: rows},
            time=np.zeros(batch),
            key=keys,
            parameters=Values(names=self._names, array=values),
        )
        return self._with_history(state)

    def _filled(self, names: tuple[str, ...], mean: Array, given: Values, batch: int) -> Array:
        """Values [B, N] of all names, from the given ones and the means."""
        given = given.broadcast(batch)
        array = np.repeat(mean, batch, axis=0)
        if given.names == names:
            return given.array
        places = {name: k for k, name in enumerate(names)}
        for column, name in enumerate(given.names):
            place = places.get(self.kernel.aliases.get(name, name))
            if place is None:
                raise SpecError(
                    f"'{name}' is neither a start nor a parameter this call takes. Known: "
                    f"{listed(names)}.{closest(name, names)}"
                )
            array[:, place] = given.array[:, column]
        return array

    def _with_history(self, state: State) -> State:
        values = state.parameters.array
        if self.kernel.sensing.is_neutral(values):
            return state
        histories = self.kernel.sensing.started(self._raw(state), values)
        return replace(state, arrays={**state.arrays, **histories})

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]; ``state`` is not changed."""
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (state.batch, self.spec.action_size):
            raise SpecError(
                f"Action needs shape [{state.batch}, {self.spec.action_size}] for "
                f"{listed(c.name for c in self.spec.actions)}, got {action.shape}."
            )
        action = self.spec.check_actions(action[:, None])[:, 0]
        kernel, rows = self.kernel, state.arrays[_STATE]
        new, failures = kernel.stepped(rows, state.parameters.array, self._given, action)
        self._guard(state, action[:, None], failures)
        moved = replace(state, arrays={_STATE: new}, time=state.time + self.spec.period)
        histories = {name: a for name, a in state.arrays.items() if name != _STATE}
        if histories:
            histories = kernel.sensing.advanced(histories, self._raw(moved))
            moved = replace(moved, arrays={_STATE: new, **histories})
        return moved

    def observe(self, state: State) -> Signals:
        """Signals of the state, each [B, ...], evaluated at the state itself."""
        raw, sensing = self._raw(state), self.kernel.sensing
        values = state.parameters.array
        if sensing.is_neutral(values):
            return raw
        seen = {name: signal[:, None] for name, signal in raw.items()}
        reported = sensing.applied(seen, state.arrays, values)
        return {name: signal[:, 0] for name, signal in reported.items()}

    def _raw(self, state: State) -> dict[str, Array]:
        """True signals, before delay, gain and bias."""
        kernel, rows = self.kernel, state.arrays[_STATE]
        layout = kernel.layout
        sensed = remembered = np.zeros((state.batch, 0))
        if kernel.has_sensors:
            sensed = kernel.sensed(rows, state.parameters.array, self._given)
        if kernel.composed is not None:
            remembered = kernel.composed.memory_of(rows)
        signals = kernel.signals(rows[:, layout.qpos], rows[:, layout.qvel], sensed, remembered)
        return {name: signal.copy() for name, signal in signals.items()}

    # ---- many ticks ----------------------------------------------------------------------

    def rollout(self, state: State, actions: Array) -> Rollout:
        """Simulate actions [B, T, A] from ``state`` by MuJoCo's batched rollout.

        Equal, bit by bit, to looping ``step`` and ``observe``.
        """
        actions = self.spec.check_actions(actions)
        if len(actions) != state.batch:
            raise SpecError(f"Actions hold {len(actions)} elements, the state {state.batch}.")
        kernel, values = self.kernel, state.parameters.array
        trace = kernel.simulated(state.arrays[_STATE], values, self._given, actions)
        signals = kernel.signals(trace.qpos, trace.qvel, trace.sensordata, trace.memory)
        valid = np.ones((state.batch, actions.shape[1] + 1), dtype=np.bool_)
        for element, failure in trace.failures.items():
            valid[element, failure.row :] = False
        if not kernel.sensing.is_neutral(values):
            signals = kernel.sensing.applied(signals, state.arrays, values)
        if not all(np.isfinite(signal[:, -1]).all() for signal in signals.values()):
            valid &= finite_so_far(signals)
        self._guard(state, actions, trace.failures)
        return Rollout(
            time=self.spec.period * np.arange(valid.shape[1], dtype=np.float64),
            signals=signals,
            valid=valid,
            trust=np.full(valid.shape, np.nan),
            reason=_reasons(valid, trace.failures),
            actions=actions,
        )

    def _guard(self, state: State, actions: Array, failures: dict[int, Failure]) -> None:
        folder = self.kernel.config.guard
        if folder is None or not failures or self.kernel.groups:
            return  # a plain MuJoCo replay would not show what components did
        element = min(failures)
        models = self.kernel.models.assign(
            state.parameters.array[element : element + 1], self._given
        )
        dump_failure(
            folder,
            scene=self.scene,
            model=models[0].model,
            row=state.arrays[_STATE][element],
            actions=actions[element],
            substeps=self.kernel.compiled.substeps,
            parameters=state.parameters.rows([element]),
            failure=failures[element],
        )

    # ---- without stepping ----------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """Names of velocities, moving bodies and torque channels."""
        return self.kernel.mechanism

    def inverse(
        self,
        q: Array,
        v: Array,
        a: Array,
        parameters: Values | None = None,
        *,
        passive: bool = False,
    ) -> Array:
        """Torques [N, nv] that rigid bodies under gravity need to move so.

        Contacts, limits, equalities, tendons, fluid and components are left out. Rows of values
        that no body can have are NaN.

        Args:
            q: Positions [N, nq] rad, m or unit quaternions, in MuJoCo's order.
            v: Velocities [N, nv].
            a: Accelerations [N, nv].
            parameters: Values [1 or N, P'] of any subset of the parameters.
            passive: Whether to add armature, damping, springs and dry friction
                (``frictionloss * sign(v)``) of the joints.

        Raises:
            SpecError: Shapes that do not fit, or values that are not finite.
        """
        q, v, a = dynamics.checked_motion(self.kernel.model, q, v, a)
        given = Values.none() if parameters is None else parameters
        values = self._filled(self._names, self._mean, given, given.batch)
        if len(values) not in (1, len(q)):
            raise SpecError(f"{len(values)} sets of parameters for {len(q)} rows of motion.")
        models = self.kernel.models.assign(values, self._given)
        return dynamics.inverse_rows(models, q, v, a, passive=passive)

    def regressor(
        self,
        q: Array,
        v: Array,
        a: Array,
        bodies: Sequence[str],
        parameters: Values | None = None,
    ) -> Array:
        """Derivative [N, nv, B, 10] of ``inverse`` by the inertial vectors of bodies.

        Args:
            q: Positions [N, nq].
            v: Velocities [N, nv].
            a: Accelerations [N, nv].
            bodies: Names among ``mechanism.bodies``.
            parameters: One element; geometry and gravity matter, inertia does not.

        Raises:
            SpecError: Shapes that do not fit, or a body that does not exist.
        """
        q, v, a = dynamics.checked_motion(self.kernel.model, q, v, a)
        dynamics.check_bodies(self.mechanism, bodies)
        return dynamics.inverse_regressor(self._one(parameters), q, v, a, bodies)

    def inertias(self, bodies: Sequence[str], parameters: Values | None = None) -> Array:
        """Inertial vectors [B, 10] of bodies: mass, first moments, inertia about the origin.

        In kg, kg m and kg m^2 (xx, yy, zz, xy, xz, yz), in the frame of each body.
        """
        dynamics.check_bodies(self.mechanism, bodies)
        return dynamics.inertial_vectors(self._one(parameters), bodies)

    def poses(self, q: Array, parameters: Values | None = None) -> dict[str, tuple[Array, Array]]:
        """Where bodies and sites are at positions [N, nq].

        Returns:
            ``body:NAME`` and ``site:NAME`` to positions [N, 3] m and quaternions [N, 4] wxyz, in
            the world frame.
        """
        return dynamics.body_poses(self._one(parameters), q)

    def _one(self, parameters: Values | None) -> Model:
        """The model of one element of parameters.

        Raises:
            SpecError: Several elements, or values that no body can have.
        """
        given = Values.none() if parameters is None else parameters
        values = self._filled(self._names, self._mean, given, given.batch)
        edited = self.kernel.models.assign(values, self._given)
        if len(values) != 1 or edited[0].reason:
            raise SpecError(
                f"This call takes one set of parameters, got {len(values)}."
                if len(values) != 1
                else f"The parameters are impossible: {edited[0].reason}."
            )
        return edited[0].model

    # ---- pictures ------------------------------------------------------------------------

    def render(self, state: State, camera: Camera | str) -> NDArray[np.uint8]:
        """Images [B, H, W, 3] of every element; black where an element is invalid.

        Args:
            state: What to show.
            camera: A calibrated camera, the name of one of the scene's cameras, or of a camera in
                the MJCF (640 x 480 pixels unless its ``resolution`` says otherwise).

        Raises:
            SceneError: Unknown camera, or no offscreen OpenGL on this machine.
        """
        rows = state.arrays[_STATE][:, : self.kernel.layout.size]
        models = self.kernel.models.assign(state.parameters.array, self._given)
        named = {c.name: c for c in self.scene.cameras}
        view = named.get(camera, camera) if isinstance(camera, str) else camera
        return self.kernel.painter.images(rows, models, view)


def _unseen(scene: Scene) -> str:
    """XML comment on what a MuJoCo program does not run; empty if there is nothing."""
    if not scene.components:
        return ""
    lines = [f"  {c.type} '{c.name}' on {c.target}" for c in scene.components]
    told = "\n".join(["MuJoCo alone does not run these components:", *lines]).replace("--", "- -")
    return f"<!-- {told}\n-->\n"


def _reasons(valid: NDArray[np.bool_], failures: dict[int, Failure]) -> tuple[str, ...]:
    reasons = ["" if fine else "signals became NaN or infinite" for fine in valid[:, -1]]
    for element, failure in failures.items():
        reasons[element] = failure.reason
    return tuple(reasons)
