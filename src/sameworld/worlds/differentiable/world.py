"""``DifferentiableWorld``: MuJoCo's physics in JAX, with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.records import Camera
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Pullback, Rollout, State
from sameworld.worlds.compiled.batches import (
    Failure,
    checked_action,
    checked_actions,
    rollout_of,
)
from sameworld.worlds.compiled.believed import Believed
from sameworld.worlds.compiled.models import Models
from sameworld.worlds.compiled.sensing import Sensing
from sameworld.worlds.differentiable.element import Kept
from sameworld.worlds.differentiable.kernel import Kernel
from sameworld.worlds.differentiable.programs import HostCarry, HostRow, HostTrace, Programs, bucket
from sameworld.worlds.differentiable.step import Carried
from sameworld.worlds.differentiable.tangents import Direction, Tangents

__all__ = ["DifferentiableWorld"]


@dataclass(frozen=True, kw_only=True, eq=False)
class DifferentiableWorld:
    """A scene whose physics is differentiated.

    Equations, parameters, signals and starts are those of the explicit world; results agree with it
    to rounding where contacts are pyramids, and to MuJoCo's own solver residual where they are
    elliptic. Elements that diverge, whose parameters no body can have, or whose constraint solver
    did not converge, are invalid with a reason; they never raise.

    Attributes:
        scene: The scene it simulates.
        parameters: Belief over every parameter of the scene.
        kernel: Compiled scene and programs, shared by worlds that differ in belief only.
        weights: Weights of the kernel's residual [W]; none without one.
    """

    scene: Scene
    parameters: Belief
    kernel: Kernel
    weights: Array = field(default_factory=lambda: np.zeros(0))

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

    def with_belief(self, belief: Belief) -> DifferentiableWorld:
        """Return the same world believing something else.

        Raises:
            AddressError: A name is no parameter of the scene.
        """
        believed = self._believed.updated(belief)
        return replace(self, scene=believed.scene, parameters=believed.parameters)

    def mjcf(self) -> str:
        """MJCF text with the means of the belief written into it, for any MuJoCo program.

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
        carry = self._programs(values).placed(self._numbers(values), starts)
        bad = [k for k, reason in enumerate(self._problems(values)) if reason]
        bad += np.flatnonzero(~np.isfinite(starts).all(axis=1)).tolist()
        arrays = _arrays(carry)
        for name in ("q", "v"):
            arrays[name] = arrays[name].copy()
            arrays[name][bad] = np.nan
        return self._sensing.begun(self._believed.state(arrays, values, seed=seed), self._raw)

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]; ``state`` is not changed."""
        action = checked_action(self.spec, action, state.batch)
        trace = self._simulated(state, action[:, None])
        arrays = _arrays(trace.end)
        bad = self._failures(state, trace)
        for name in ("q", "v"):
            arrays[name] = arrays[name].copy()
            arrays[name][list(bad)] = np.nan
        after = replace(state, arrays=arrays, time=state.time + self.spec.period)
        return self._sensing.followed(state, after, self._raw)

    def observe(self, state: State) -> Signals:
        """Signals of the state, each [B, ...], evaluated at the state itself."""
        return self._sensing.observed(state, self._raw)

    def _raw(self, state: State) -> dict[str, Array]:
        """True signals, before delay, gain and bias."""
        carry = _carry(state.arrays)
        fine = np.asarray(np.isfinite(carry.q).all(axis=1))
        parts = (carry.q, carry.v, carry.memory, carry.control, fine, carry.converged)
        rows = Kept(*(part[:, None] for part in parts))
        signals = self._signals(state, rows)
        return {name: signal[:, 0].copy() for name, signal in signals.items()}

    # ---- many ticks ----------------------------------------------------------------------

    def rollout(self, state: State, actions: Array) -> Rollout:
        """Simulate actions [B, T, A] from ``state`` in one compiled program."""
        actions = checked_actions(self.spec, actions, state.batch)
        trace = self._simulated(state, actions)
        failures = self._failures(state, trace)
        signals = self._signals(state, trace.rows)
        for element, failure in failures.items():
            for signal in signals.values():
                signal[element, failure.row :] = np.nan
        signals = self._sensing.rolled(signals, state)
        return rollout_of(self.spec, signals, actions, failures)

    def _programs(self, values: Array, wanted: Sequence[str] = ()) -> Programs:
        return self.kernel.programs(values, self._given, wanted)

    def _numbers(self, values: Array) -> Array:
        """Parameters [B, P] as programs take them, with the weights of a residual behind."""
        if not self.weights.size:
            return values
        return np.hstack([values, np.tile(self.weights, (len(values), 1))])

    def _simulated(self, state: State, actions: Array) -> HostTrace:
        values, carry = state.parameters.array, _carry(state.arrays)
        return self._programs(values).simulated(self._numbers(values), carry, actions)

    def _signals(self, state: State, rows: HostRow) -> dict[str, Array]:
        """True signals [B, T, ...] of rows [B, T, ...] that begin at a state."""
        values, tables = state.parameters.array, self.kernel.tables
        ticks = np.arange(len(rows.q[0]))
        time = state.time[:, None] + self.spec.period * ticks
        sensordata = self._programs(values).sensed(self._numbers(values), rows, time)
        signals = tables.signals(rows.q, rows.v, sensordata, rows.memory)
        return {name: np.array(signal) for name, signal in signals.items()}

    # ---- what goes wrong -----------------------------------------------------------------

    def _problems(self, values: Array) -> list[str]:
        """Why parameters [B, P] are impossible, per element; empty where they are not."""
        tables = self.kernel.tables
        unique, where = np.unique(values[:, : tables.edits], axis=0, return_inverse=True)
        reasons = [tables.editor.problem(row, self._given) for row in unique]
        laws = [(k, s.name) for k, s in enumerate(tables.slots) if s.group == "component"]
        found = [reasons[int(k)] for k in where.reshape(-1)]
        for column, name in laws:
            for element in np.flatnonzero(~np.isfinite(values[:, column])).tolist():
                found[element] = found[element] or f"{name} is not finite"
        return found

    def _failures(self, state: State, trace: HostTrace) -> dict[int, Failure]:
        """Where elements failed, and why."""
        fine, converged = trace.rows.fine, trace.rows.converged
        failures: dict[int, Failure] = {}
        problems: list[str] | None = None
        for element in np.flatnonzero(~(fine & converged).all(axis=1)).tolist():
            row = int(np.argmin((fine & converged)[element]))
            if row == 0:
                problems = problems or self._problems(state.parameters.array)
                reason = problems[element] or "its start is not finite"
            elif not fine[element, row]:
                reason = "the simulation became NaN or huge"
            else:
                reason = (
                    f"the constraint solver did not converge in {self.kernel.config.iterations}"
                )
                reason += " Newton steps"
            failures[element] = Failure(row=row, reason=reason)
        return failures

    # ---- derivatives ---------------------------------------------------------------------

    def gradient(
        self, start: Values, actions: Array, parameters: Values, wrt: tuple[str, ...], *, seed: int
    ) -> Mapping[str, Array]:
        """Exact derivatives of every signal, in forward mode.

        Args:
            start: Starts [B, S].
            actions: Actions [B, T, A].
            parameters: Values [B, P'] of any subset of the parameters.
            wrt: Names of starts and parameters, or ``action:NAME`` for an offset of a scalar
                action over all ticks.
            seed: Not used; this world draws nothing.

        Returns:
            Channel name to [B, T+1, D, N]: D tangent components, N names in ``wrt``.

        Raises:
            SpecError: An unknown name, or shapes that disagree.
        """
        starts, values = self._believed.asked(start, parameters)
        actions = checked_actions(self.spec, actions, len(values))
        ticks, count = actions.shape[1], len(wrt)
        directions = self._directions(wrt)
        padded = np.pad(actions, ((0, 0), (0, bucket(ticks) - ticks), (0, 0)))
        programs = self._programs(values, wrt)
        tangents = Tangents(element=programs.element, depths=self._depths(values, wrt))
        key = ("forward", *sorted(tangents.depths.items()))
        _, slopes, _ = programs.custom(
            key,
            tangents.forward,
            (starts, self._numbers(values), padded),
            (directions, np.asarray(ticks)),
        )
        return {name: slope[:, : ticks + 1, :, :count] for name, slope in slopes.items()}

    def pullback(
        self,
        start: Values,
        actions: Array,
        weights: Mapping[str, Array],
        parameters: Values | None = None,
        *,
        wrt: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Pullback:
        """Derivative of a weighted sum of signals by everything, in reverse mode.

        One pass costs a few rollouts, however many starts, parameters and actions there are.

        Args:
            start: Starts [B, S].
            actions: Actions [B, T, A].
            weights: Channel to weights of its tangent components [B, T+1, D]; channels left out
                count nothing.
            parameters: Values [B or 1, P'] of any subset of the parameters.
            wrt: Parameters whose derivatives are wanted; without it all of them, but that by dry
                friction at zero only if it is named. With none of them, their derivatives are NaN,
                which costs less.
            seed: Not used; this world draws nothing.

        Raises:
            SpecError: An unknown channel or shapes that disagree.
        """
        starts, values = self._believed.asked(start, parameters)
        actions = checked_actions(self.spec, actions, len(values))
        pulls = self._weights(weights, actions.shape[:2])
        named = [self.kernel.tables.aliases.get(name, name) for name in wrt or ()]
        programs, depths = self._programs(values, named), self._depths(values, named)
        motion_only = wrt is not None and not {*self._believed.names} & {*named}
        tangents = Tangents(element=programs.element, depths=depths, motion_only=motion_only)
        found = self._pulled("backward", programs, tangents, (starts, values, actions, pulls))
        signals, by_starts, by_values, by_actions = found
        return Pullback(by_starts, by_values[:, : values.shape[1]], by_actions, signals)

    def _pulled(
        self,
        key: str,
        programs: Programs,
        tangents: Tangents,
        given: tuple[Array, Array, Array, dict[str, NDArray[np.float64]]],
        *,
        block: int = 1,
    ) -> tuple[dict[str, Array], Array, Array, Array]:
        """Signals, and derivatives by starts, numbers and actions, from a program of a bucket."""
        starts, values, actions, pulls = given
        ticks = actions.shape[1]
        later = (0, 0), (0, bucket(ticks) - ticks), (0, 0)
        padded = {name: np.pad(pull, later) for name, pull in pulls.items()}
        signals, by_starts, by_values, by_actions = programs.custom(
            (key, tangents.motion_only, *sorted(tangents.depths.items())),
            tangents.backward,
            (starts, self._numbers(values), np.pad(actions, later), padded),
            (np.asarray(ticks),),
            block=block,
        )
        seen = {name: signal[:, : ticks + 1] for name, signal in signals.items()}
        return seen, by_starts, by_values, by_actions[:, :ticks]

    def motion(
        self, start: Values, actions: Array, parameters: Values | None = None
    ) -> tuple[Array, Array, Array]:
        """Positions, velocities and controls of all valid rows [N, ...] of a simulation."""
        state = self.reset(start, parameters)
        rows = self._simulated(state, checked_actions(self.spec, actions, state.batch)).rows
        fine = rows.fine & rows.converged
        return rows.q[fine], rows.v[fine], rows.control[fine]

    def weights_pullback(
        self,
        start: Values,
        actions: Array,
        weights: Mapping[str, Array],
        parameters: Values | None = None,
    ) -> Array:
        """As ``pullback``, by the weights of the kernel's residual alone [B, W]; costs less."""
        starts, values = self._believed.asked(start, parameters)
        actions = checked_actions(self.spec, actions, len(values))
        pulls = self._weights(weights, actions.shape[:2])
        programs, depths = self._programs(values), self._depths(values, ())
        tangents = Tangents(element=replace(programs.element, fixed=True), depths=depths)
        given = starts, values, actions, pulls
        found = self._pulled("weights", programs, tangents, given, block=8)
        return found[2][:, values.shape[1] :]

    def _depths(self, values: Array, wrt: Sequence[str]) -> dict[str, int]:
        """Past ticks of channels; enough for a derivative where one is wanted."""
        late = {n.removeprefix("sensor:").rpartition(".")[0] for n in wrt if n.endswith(".delay")}
        usual = self._sensing.depths(values)
        least = self._sensing.depths(values, least=2)
        return usual | {name: least[name] for name in late if name in least}

    def _weights(
        self, weights: Mapping[str, Array], shape: tuple[int, ...]
    ) -> dict[str, NDArray[np.float64]]:
        names = [c.name for c in self.spec.observations]
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise SpecError(
                f"There is no channel '{unknown[0]}'. Channels: {listed(names)}."
                f"{closest(unknown[0], names)}"
            )
        found: dict[str, NDArray[np.float64]] = {}
        for channel in self.spec.observations:
            wanted = (shape[0], shape[1] + 1, channel.tangent)
            given = np.asarray(weights.get(channel.name, np.zeros(wanted)), dtype=np.float64)
            if given.shape != wanted:
                raise SpecError(
                    f"Weights of '{channel.name}' need shape {wanted}, got {given.shape}."
                )
            if not np.isfinite(given).all():
                raise SpecError(
                    f"Weights of '{channel.name}' hold NaN or infinite values. Leave out elements "
                    "whose simulation failed: Rollout.valid says which."
                )
            found[channel.name] = given
        return found

    def _directions(self, wrt: Sequence[str]) -> Direction[Array]:
        """One unit direction per name, and zeros up to the bucket."""
        spec, size = self.spec, bucket(len(wrt))
        starts = np.zeros((size, len(spec.start.names)))
        values = np.zeros((size, len(self._believed.names) + self.weights.size))
        offset = np.zeros((size, spec.action_size))
        acts = [f"action:{c.name}" for c in spec.actions for _ in range(c.size)]
        places = (
            (starts, {n: k for k, n in enumerate(spec.start.names)}),
            (values, {n: k for k, n in enumerate(self._believed.names)}),
            (offset, {n: k for k, n in enumerate(acts)}),
        )
        for row, name in enumerate(wrt):
            name = self.kernel.tables.aliases.get(name, name)
            found = [(array, known[name]) for array, known in places if name in known]
            if not found:
                every = [n for _, known in places for n in known]
                raise SpecError(
                    f"Cannot differentiate by '{name}'.{closest(name, every)} "
                    f"Known: {listed(every)}."
                )
            array, column = found[0]
            array[row, column] = 1.0
        return Direction(starts, values, offset)

    # ---- pictures ------------------------------------------------------------------------

    @cached_property
    def _models(self) -> Models:
        return Models(self.kernel.tables.editor, limit=8)

    def render(self, state: State, camera: Camera | str) -> NDArray[np.uint8]:
        """Images [B, H, W, 3] of every element; black where an element is invalid.

        Raises:
            SceneError: Unknown camera, or no offscreen OpenGL on this machine.
        """
        layout = self.kernel.tables.layout
        rows = np.zeros((state.batch, layout.size))
        rows[:, layout.qpos], rows[:, layout.qvel] = state.arrays["q"], state.arrays["v"]
        models = self._models.assign(state.parameters.array, self._given)
        named = {c.name: c for c in self.scene.cameras}
        view = named.get(camera, camera) if isinstance(camera, str) else camera
        return self.kernel.painter.images(rows, models, view)


def _arrays(carry: HostCarry) -> dict[str, NDArray[np.generic]]:
    return dict(carry._asdict())


def _carry(arrays: Mapping[str, NDArray[np.generic]]) -> HostCarry:
    return Carried(**{name: arrays[name] for name in Carried._fields})
