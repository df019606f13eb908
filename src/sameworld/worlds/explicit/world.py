"""``ExplicitWorld``: MuJoCo behind the one interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError
from sameworld.core.records import Camera
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Mechanism, Rollout, State
from sameworld.worlds.compiled import inverse as dynamics
from sameworld.worlds.compiled.batches import (
    Failure,
    checked_action,
    checked_actions,
    rollout_of,
)
from sameworld.worlds.compiled.believed import Believed
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.sensing import Sensing
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
        return self.kernel.tables.spec

    @cached_property
    def _believed(self) -> Believed:
        return Believed(tables=self.kernel.tables, scene=self.scene, parameters=self.parameters)

    @property
    def _given(self) -> frozenset[str]:
        return self._believed.given

    @property
    def _sensing(self) -> Sensing:
        return self.kernel.tables.sensing

    def with_belief(self, belief: Belief) -> ExplicitWorld:
        """Return the same world believing something else; nothing is compiled again.

        Args:
            belief: Any subset of the parameters. What it changes also enters the scene's belief.

        Raises:
            AddressError: A name is no parameter of the scene.
        """
        believed = self._believed.updated(belief)
        return replace(self, scene=believed.scene, parameters=believed.parameters)

    def mjcf(self) -> str:
        """MJCF text with the means of the belief written into it, for any MuJoCo program.

        Elements without names get the generated ones, and contact pairs stand explicitly. Sensor
        delays, gains and biases have no place in MJCF and are left out. So are components; a
        comment at the top says which.

        Raises:
            SceneError: The means are physically impossible.
        """
        return self._believed.mjcf()

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
        starts, values = self._believed.asked(start, parameters)
        rows = self.kernel.placed(starts, values, self._given)
        state = self._believed.state({_STATE: rows}, values, seed=seed)
        return self._sensing.begun(state, self._raw)

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]; ``state`` is not changed."""
        action = checked_action(self.spec, action, state.batch)
        rows, values = state.arrays[_STATE], state.parameters.array
        new, failures = self.kernel.stepped(rows, values, self._given, action)
        self._guard(state, action[:, None], failures)
        after = replace(state, arrays={_STATE: new}, time=state.time + self.spec.period)
        return self._sensing.followed(state, after, self._raw)

    def observe(self, state: State) -> Signals:
        """Signals of the state, each [B, ...], evaluated at the state itself."""
        return self._sensing.observed(state, self._raw)

    def _raw(self, state: State) -> dict[str, Array]:
        """True signals, before delay, gain and bias."""
        kernel, rows = self.kernel, state.arrays[_STATE]
        tables, layout = kernel.tables, kernel.layout
        sensed = remembered = np.zeros((state.batch, 0))
        if tables.has_sensors:
            sensed = kernel.sensed(rows, state.parameters.array, self._given)
        if kernel.composed is not None:
            remembered = kernel.composed.memory_of(rows)
        signals = tables.signals(rows[:, layout.qpos], rows[:, layout.qvel], sensed, remembered)
        return {name: signal.copy() for name, signal in signals.items()}

    # ---- many ticks ----------------------------------------------------------------------

    def rollout(self, state: State, actions: Array) -> Rollout:
        """Simulate actions [B, T, A] from ``state`` by MuJoCo's batched rollout.

        Equal, bit by bit, to looping ``step`` and ``observe``.
        """
        actions = checked_actions(self.spec, actions, state.batch)
        kernel, values = self.kernel, state.parameters.array
        trace = kernel.simulated(state.arrays[_STATE], values, self._given, actions)
        signals = kernel.tables.signals(trace.qpos, trace.qvel, trace.sensordata, trace.memory)
        signals = self._sensing.rolled(signals, state)
        self._guard(state, actions, trace.failures)
        return rollout_of(self.spec, signals, actions, trace.failures)

    def _guard(self, state: State, actions: Array, failures: dict[int, Failure]) -> None:
        folder = self.kernel.config.guard
        if folder is None or not failures or self.kernel.tables.groups:
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
            substeps=self.kernel.tables.compiled.substeps,
            parameters=state.parameters.rows([element]),
            failure=failures[element],
        )

    # ---- without stepping ----------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """Names of velocities, moving bodies and torque channels."""
        return self.kernel.tables.mechanism

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
        values = self._believed.values(parameters)
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
        values = self._believed.values(parameters)
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
