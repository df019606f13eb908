"""Worlds of one joint with exact derivatives: the yardstick for every other kind.

Integrated with the classical fourth-order Runge-Kutta method, actions held over a control period.
``gradient`` is the exact derivative of that discrete map (forward sensitivities carried through
all four stages), not a discretised sensitivity equation; ``pullback`` is its transpose.

Source: E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed.,
sections II.1 and I.14.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.scene import Scene
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Pullback, State, World
from sameworld.zoo.adjoint import Costate, Stages, carried_back
from sameworld.zoo.joint import JointSpec, start_belief
from sameworld.zoo.keys import advance, element_keys, standard_normal

__all__ = ["AnalyticWorld"]


@dataclass(frozen=True, kw_only=True)
class _Motion:
    """Position, velocity [B] and their sensitivities [B, N]."""

    pos: Array
    vel: Array
    dpos: Array
    dvel: Array

    def moved(self, slope: _Motion, step: float) -> _Motion:
        return _Motion(
            pos=self.pos + step * slope.pos,
            vel=self.vel + step * slope.vel,
            dpos=self.dpos + step * slope.dpos,
            dvel=self.dvel + step * slope.dvel,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AnalyticWorld(ABC):
    """One joint, numpy only, capabilities ``gradient`` and ``pullback``.

    Attributes:
        parameters: Belief over the physical parameters.
        scene: The same system for an engine.
        period: Control period [s].
        substeps: Runge-Kutta steps per control period.
        noise: Standard deviation of a random velocity change per control period [unit/s]; the
            world is stochastic if it is positive.
        spec: Contract, made from the fields above.
    """

    parameters: Belief
    scene: Scene
    period: float = 0.02
    substeps: int = 4
    noise: float = 0.0
    spec: Spec = field(init=False)

    def __post_init__(self) -> None:
        if self.substeps < 1 or not 0 <= self.noise < np.inf:
            raise SpecError(
                f"Analytic world has {self.substeps} substeps and noise {self.noise}; it needs at "
                "least one substep and a finite noise >= 0."
            )
        known = self.physical_names()
        if set(self.parameters.names) != set(known):
            raise SpecError(
                f"{type(self).__name__} has the parameters {listed(known)}; its belief names "
                f"{listed(self.parameters.names)}."
            )
        object.__setattr__(self, "spec", self._spec())

    # ---- what a system defines -----------------------------------------------------------

    @classmethod
    @abstractmethod
    def names(cls) -> JointSpec:
        """Names, units and limits."""

    @classmethod
    @abstractmethod
    def physical_names(cls) -> tuple[str, ...]:
        """Addresses of the parameters."""

    @abstractmethod
    def acceleration(self, pos: Array, vel: Array, effort: Array, values: Values) -> Array:
        """Joint acceleration [B]."""

    @abstractmethod
    def partials(
        self, pos: Array, vel: Array, effort: Array, values: Values
    ) -> tuple[Array, Array, Mapping[str, Array]]:
        """Partial derivatives of the acceleration [B].

        Returns:
            By position; by velocity; by parameter address, and by the effort under
            ``action:MOTOR``.
        """

    # ---- the World protocol --------------------------------------------------------------

    def with_belief(self, belief: Belief) -> World:
        """Return the same world believing something else."""
        return replace(self, parameters=belief)

    def reset(
        self, start: Values | Context, parameters: Values | None = None, *, seed: int = 0
    ) -> State:
        """Place a batch at its start.

        Raises:
            SpecError: A name is unknown, batches disagree, or a context was given.
        """
        if isinstance(start, Context):
            raise SpecError("This world starts from named values (spec.start), not a context.")
        given = Values.none() if parameters is None else parameters
        _check_known(start.names, self.spec.start.names, "start value")
        _check_known(given.names, self.parameters.names, "parameter")
        batch = max(start.batch, given.batch)
        begin = self.spec.start.mean.updated(start).broadcast(batch)
        values = self.parameters.mean.updated(given).broadcast(batch)
        joint = self.names().joint
        return State(
            arrays={k: begin.column(f"start:{joint}.{k}").copy() for k in ("pos", "vel")},
            time=np.zeros(batch),
            key=element_keys(seed, batch),
            parameters=values,
        )

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, 1]."""
        action = self._checked(state, action)
        rest = np.zeros((state.batch, 0))
        motion = _Motion(pos=state.arrays["pos"], vel=state.arrays["vel"], dpos=rest, dvel=rest)
        motion = self._advance(motion, action[:, 0], state.parameters, ())
        vel = motion.vel
        if self.noise > 0:
            vel = vel + self.noise * standard_normal(state.key)
        return replace(
            state,
            arrays={"pos": motion.pos, "vel": vel},
            time=state.time + self.period,
            key=advance(state.key) if self.noise > 0 else state.key,
        )

    def observe(self, state: State) -> Signals:
        """Joint position and velocity, each [B]."""
        joint = self.names().joint
        return {f"{joint}.{k}": state.arrays[k].copy() for k in ("pos", "vel")}

    # ---- capability gradient -------------------------------------------------------------

    def gradient(
        self, start: Values, actions: Array, parameters: Values, wrt: tuple[str, ...], *, seed: int
    ) -> Mapping[str, Array]:
        """Exact derivatives of both signals, ``{channel: [B, T+1, 1, N]}``.

        The random velocity changes do not depend on starts or parameters, so derivatives follow
        the noisy path of ``seed``.
        """
        _check_known(wrt, (*self.spec.start.names, *self.parameters.names), "name")
        actions = self.spec.check_actions(actions)
        batch = max(start.batch, parameters.batch, len(actions))
        actions = np.broadcast_to(actions, (batch, *actions.shape[1:]))
        state = self.reset(start.broadcast(batch), parameters, seed=seed)
        motion = self._first_motion(state, wrt)
        key, rows = state.key, [motion]
        for tick in range(actions.shape[1]):
            motion = self._advance(motion, actions[:, tick, 0], state.parameters, wrt)
            if self.noise > 0:
                motion = replace(motion, vel=motion.vel + self.noise * standard_normal(key))
                key = advance(key)
            rows.append(motion)
        joint = self.names().joint
        return {
            f"{joint}.pos": np.stack([m.dpos for m in rows], axis=1)[:, :, None, :],
            f"{joint}.vel": np.stack([m.dvel for m in rows], axis=1)[:, :, None, :],
        }

    def _first_motion(self, state: State, wrt: tuple[str, ...]) -> _Motion:
        joint = self.names().joint
        by_pos, by_vel = np.zeros((2, state.batch, len(wrt)))
        for column, name in enumerate(wrt):
            by_pos[:, column] = name == f"start:{joint}.pos"
            by_vel[:, column] = name == f"start:{joint}.vel"
        return _Motion(pos=state.arrays["pos"], vel=state.arrays["vel"], dpos=by_pos, dvel=by_vel)

    # ---- capability pullback -------------------------------------------------------------

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
        """Exact derivatives of a weighted sum of both signals, in reverse mode.

        Args:
            start: Starts [B, S].
            actions: Actions [B, T, 1].
            weights: Channel name to weights [B, T+1, 1].
            parameters: Values [B or 1, P'].
            wrt: Not used.
            seed: Seed of the random velocity changes, which nothing here moves.

        Raises:
            SpecError: An unknown channel or name.
        """
        _check_known(weights, tuple(c.name for c in self.spec.observations), "channel")
        actions = self.spec.check_actions(actions)
        batch = max(start.batch, len(actions), 1 if parameters is None else parameters.batch)
        actions = np.broadcast_to(actions, (batch, *actions.shape[1:]))
        state = self.reset(start.broadcast(batch), parameters, seed=seed)
        states = [state]
        for tick in range(actions.shape[1]):
            states.append(self.step(states[-1], actions[:, tick]))
        joint, rows = self.names().joint, (batch, actions.shape[1] + 1)
        pulls = [
            np.broadcast_to(weights.get(f"{joint}.{k}", np.zeros((1, 1, 1)))[..., 0], rows)
            for k in ("pos", "vel")
        ]
        by_action = np.zeros_like(actions)
        back = Costate.none(batch)
        for tick in reversed(range(actions.shape[1])):
            back = back.pulled(pulls[0][:, tick + 1], pulls[1][:, tick + 1])
            back, by_action[:, tick, 0] = self._carried(back, states[tick], actions[:, tick, 0])
        back = back.pulled(pulls[0][:, 0], pulls[1][:, 0])
        every = [self.observe(state) for state in states]
        seen = {name: [signals[name] for signals in every] for name in every[0]}
        order = {f"start:{joint}.pos": back.pos, f"start:{joint}.vel": back.vel}
        by_name = back.parameters
        return Pullback(
            starts=np.stack([order[n] for n in self.spec.start.names], axis=1),
            parameters=np.stack(
                [by_name.get(n, np.zeros(batch)) for n in self.parameters.names], axis=1
            ),
            actions=by_action,
            signals={name: np.stack(rows, axis=1) for name, rows in seen.items()},
        )

    def _carried(self, back: Costate, state: State, effort: Array) -> tuple[Costate, Array]:
        """A costate carried back over one control period, and the derivative by its action."""
        step, rest = self.period / self.substeps, np.zeros((state.batch, 0))
        motion = _Motion(pos=state.arrays["pos"], vel=state.arrays["vel"], dpos=rest, dvel=rest)
        passed = [motion]
        for _ in range(self.substeps - 1):
            passed.append(self._stepped(passed[-1], effort, state.parameters, (), step))
        by_effort = np.zeros(state.batch)
        for begun in reversed(passed):
            stages = self._stages(begun, effort, state.parameters, step)
            back, direct = carried_back(back, stages, step, f"action:{self.names().motor}")
            by_effort = by_effort + direct
        return back, by_effort

    def _stages(self, motion: _Motion, effort: Array, values: Values, step: float) -> Stages:
        """Partial derivatives of the acceleration at the four stages of a step."""
        found = [motion]
        for share in (0.5, 0.5, 1.0):
            slope = self._slope(found[-1], effort, values, ())
            found.append(motion.moved(slope, share * step))
        return tuple(self.partials(m.pos, m.vel, effort, values) for m in found)

    # ---- integration ---------------------------------------------------------------------

    def _advance(
        self, motion: _Motion, effort: Array, values: Values, wrt: tuple[str, ...]
    ) -> _Motion:
        step = self.period / self.substeps
        for _ in range(self.substeps):
            motion = self._stepped(motion, effort, values, wrt, step)
        return motion

    def _stepped(
        self, motion: _Motion, effort: Array, values: Values, wrt: tuple[str, ...], step: float
    ) -> _Motion:
        first = self._slope(motion, effort, values, wrt)
        second = self._slope(motion.moved(first, step / 2), effort, values, wrt)
        third = self._slope(motion.moved(second, step / 2), effort, values, wrt)
        fourth = self._slope(motion.moved(third, step), effort, values, wrt)
        middle = second.moved(third, 1.0)
        return motion.moved(first.moved(middle, 2.0).moved(fourth, 1.0), step / 6)

    def _slope(
        self, motion: _Motion, effort: Array, values: Values, wrt: tuple[str, ...]
    ) -> _Motion:
        rate = self.acceleration(motion.pos, motion.vel, effort, values)
        if not wrt:
            return _Motion(pos=motion.vel, vel=rate, dpos=motion.dvel, dvel=motion.dvel)
        by_pos, by_vel, by_name = self.partials(motion.pos, motion.vel, effort, values)
        none = np.zeros_like(rate)
        direct = np.stack([by_name.get(name, none) for name in wrt], axis=1)
        carried = by_pos[:, None] * motion.dpos + by_vel[:, None] * motion.dvel
        return _Motion(pos=motion.vel, vel=rate, dpos=motion.dvel, dvel=carried + direct)

    def _checked(self, state: State, action: Array) -> Array:
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (state.batch, 1):
            raise SpecError(
                f"Action needs shape [{state.batch}, 1] for '{self.names().motor}', got "
                f"{action.shape}."
            )
        if not np.isfinite(action).all():
            raise SpecError(f"Action '{self.names().motor}' holds NaN or infinite values.")
        return action

    def _spec(self) -> Spec:
        names = self.names()
        pos, vel = (f"start:{names.joint}.{part}" for part in ("pos", "vel"))
        return Spec(
            period=self.period,
            observations=(
                ChannelSpec(
                    name=f"{names.joint}.pos",
                    unit=names.unit,
                    tolerance=names.tolerance,
                    start=(pos,),
                    rate=(vel,),
                ),
                ChannelSpec(
                    name=f"{names.joint}.vel",
                    unit=f"{names.unit}/s",
                    tolerance=10 * names.tolerance,
                    start=(vel,),
                ),
            ),
            actions=(
                ChannelSpec(
                    name=names.motor, unit=names.effort, low=-names.limit, high=names.limit
                ),
            ),
            start=start_belief(names),
            stochastic=self.noise > 0,
            capabilities=frozenset({"gradient", "pullback"}),
        )


def _check_known(names: Iterable[str], known: tuple[str, ...], what: str) -> None:
    for name in names:
        if name not in known:
            raise SpecError(
                f"'{name}' is not a {what} of this world. It has {listed(known)}."
                f"{closest(name, known)}"
            )
