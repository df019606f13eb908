"""``StandIn``: a world that plays reality, so that everything can be tried without a robot."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import final

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, listed
from sameworld.core.manifolds import compose, quat_exp
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import State, World
from sameworld.robots.errors import RobotError

__all__ = ["StandIn"]


@final
class StandIn:
    """A ``Robot`` backed by a world with hidden parameters.

    Like reality it moves on and cannot be set to a state: it is put back to a start by ``place``
    (a ``ResetProcedure``), it limits actions, delays them and measures with noise. One ``command``
    takes one control period.
    """

    def __init__(
        self,
        world: World,
        *,
        parameters: Values | None = None,
        noise: Mapping[str, float] | None = None,
        delay: int = 0,
        start: Belief | None = None,
        seed: int = 0,
    ) -> None:
        """Choose what is hidden.

        Args:
            world: A world that starts from named values.
            parameters: Hidden parameter values, one element; the rest keeps the world's means.
            noise: Standard deviation of white noise by channel [unit; rad for quaternions].
            delay: Control periods from a command to its effect, on top of what the world contains.
            start: Where ``place`` puts it; ``connect`` puts it at the mean. Start values that are
                not named keep the world's defaults.
            seed: Seed of noise and world.

        Raises:
            SpecError: Something does not fit the world.
        """
        _check(world, noise or {}, delay, parameters, start)
        self._world = world
        self._parameters = parameters
        self._noise = dict(noise or {})
        self._delay = delay
        self._start = Belief() if start is None else start
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._state: State | None = None
        self._waiting: deque[Array] = deque()
        self._measured: dict[str, Array] = {}
        self._reset(self._start.mean)
        self._state = None

    @property
    def spec(self) -> Spec:
        """The world's contract."""
        return self._world.spec

    def connect(self) -> None:
        """Open the connection, at the mean start; raises RobotError if it is open already."""
        if self._state is not None:
            raise RobotError("The stand-in is connected already; close() it first.")
        self._rng = np.random.default_rng(self._seed)
        self._reset(self._start.mean)

    def place(self, seed: int) -> Mapping[str, float]:
        """Bring the scene back to a start drawn from the start belief.

        Returns:
            The drawn values by address, as exactly as a person would know them here.

        Raises:
            RobotError: Not connected.
        """
        self._connected()
        drawn = self._start.sample(1, seed=seed)
        self._rng = np.random.default_rng([self._seed, seed])
        self._reset(drawn)
        return {name: float(drawn.column(name)[0]) for name in drawn.names}

    def observe(self) -> Signals:
        """Newest noisy signals, each without batch axis; the same until the next command.

        Raises:
            RobotError: Not connected.
        """
        self._connected()
        return {name: values.copy() for name, values in self._measured.items()}

    def command(self, action: Array) -> Array:
        """Send an action [A], wait one control period, and return what was sent after limits.

        Raises:
            RobotError: Not connected.
            SpecError: Wrong shape or NaN.
        """
        state = self._connected()
        wanted = np.asarray(action, dtype=np.float64)
        self.spec.check_actions(wanted[None, None] if wanted.ndim == 1 else wanted)
        sent = np.clip(wanted, *_limits(self.spec))
        self._waiting.append(sent)
        self._state = self._world.step(state, self._waiting.popleft()[None])
        self._measure()
        return sent.copy()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._state = None

    def _connected(self) -> State:
        if self._state is None:
            raise RobotError("The stand-in is not connected; call connect() first.")
        return self._state

    def _reset(self, start: Values) -> None:
        begin = start if start.names else Values.none()
        self._state = self._world.reset(begin, self._parameters, seed=self._seed)
        rest = np.zeros(self.spec.action_size)
        self._waiting = deque(rest.copy() for _ in range(self._delay))
        self._measure()

    def _measure(self) -> None:
        exact = self._world.observe(self._connected())
        self._measured = {c.name: self._noisy(c, exact[c.name][0]) for c in self.spec.observations}

    def _noisy(self, channel: ChannelSpec, values: Array) -> Array:
        spread = self._noise.get(channel.name, 0.0)
        if spread == 0:
            return np.array(values)
        if channel.manifold == "quaternion":
            return compose(values, quat_exp(spread * self._rng.standard_normal(3)))
        return np.array(values + spread * self._rng.standard_normal(channel.shape))


def _check(
    world: World,
    noise: Mapping[str, float],
    delay: int,
    parameters: Values | None,
    start: Belief | None,
) -> None:
    spec = world.spec
    if spec.starts_from != "start":
        raise SpecError("A stand-in needs a world that starts from named values, not a context.")
    for name, spread in noise.items():
        spec.observation(name)
        if not (np.isfinite(spread) and spread >= 0):
            raise SpecError(f"Noise of '{name}' is {spread}; it must be finite and >= 0.")
    if delay < 0:
        raise SpecError(f"Delay is {delay} ticks; it must be >= 0.")
    if parameters is not None and parameters.batch != 1:
        raise SpecError(f"Reality has one set of parameters, {parameters.batch} were given.")
    unknown = sorted(set(() if start is None else start.names) - set(spec.start.names))
    if unknown:
        raise SpecError(f"The world has no start {listed(unknown)}: {listed(spec.start.names)}.")


def _limits(spec: Spec) -> tuple[Array, Array]:
    low = [np.full(c.size, c.low) for c in spec.actions]
    high = [np.full(c.size, c.high) for c in spec.actions]
    empty = [np.zeros(0)]
    return np.concatenate(low or empty), np.concatenate(high or empty)
