"""Delay, gain and bias of signals: ``sensor:CHANNEL.delay``, ``.gain``, ``.bias``.

What is reported at time t is ``gain * signal(t - delay) + bias``. The delayed signal is
interpolated between control ticks; before the start it holds its first value. The ticks it needs
are part of the State, so that a world stays a pure function of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.spec import ChannelSpec
from sameworld.core.world import State
from sameworld.worlds.compiled.channels import Signal
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.past import delayed, lengthened, started
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.components.arrays import namespace

__all__ = ["Raw", "Sensing", "history_name", "sensor_slots"]

#: True signals [B, ...] of a state, before delay, gain and bias.
Raw: TypeAlias = Callable[[State], dict[str, Array]]

_LONGEST_DELAY = 0.5
_BIAS_SPAN = {"rad": 0.2, "m": 0.1, "rad/s": 1.0, "m/s": 1.0}
_AXES = ("x", "y", "z")
_HISTORY = "history:"


def sensor_slots(model: Model, signals: Sequence[Signal]) -> list[Slot]:
    """Slots of every channel; a sensor with MuJoCo's own history keeps MuJoCo's delay."""
    slots: list[Slot] = []
    for signal in signals:
        channel = signal.spec
        slots.append(_engine_delay(model, channel.name) or _slot(channel, "delay", "s", 0.0))
        if channel.manifold == "linear":
            slots.append(_slot(channel, "gain", "", 1.0))
            slots += [_slot(channel, part, channel.unit, 0.0) for part in _bias_parts(channel)]
    return slots


def _bias_parts(channel: ChannelSpec) -> tuple[str, ...]:
    if channel.shape == (3,):
        return tuple(f"bias.{axis}" for axis in _AXES)
    return ("bias",)


def _slot(channel: ChannelSpec, part: str, unit: str, value: float) -> Slot:
    span = _BIAS_SPAN.get(channel.unit, 10.0)
    bounds = {"delay": (0.0, _LONGEST_DELAY), "gain": (0.5, 2.0)}.get(part, (-span, span))
    return Slot(
        name=f"sensor:{channel.name}.{part}",
        unit=unit,
        value=value,
        bounds=bounds,
        group="sensor",
        owner=channel.name,
        part=part,
    )


def _engine_delay(model: Model, name: str) -> Slot | None:
    """The delay of a sensor that MuJoCo delays itself."""
    for sensor in range(model.nsensor):
        samples = int(model.sensor_history[sensor, 0])
        if model.sensor(sensor).name == name and samples > 0:
            return Slot(
                name=f"sensor:{name}.delay",
                unit="s",
                value=float(model.sensor_delay[sensor]),
                bounds=(0.0, samples * float(model.opt.timestep)),
                fields=(("sensor_delay", (sensor,), 1.0),),
                attrs=(("sensor", name, "delay", -1, 1.0),),
            )
    return None


def history_name(channel: str) -> str:
    """Name of the State array that keeps past ticks of a channel."""
    return f"{_HISTORY}{channel}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Chain:
    """What happens to one channel: columns of its parameters."""

    channel: ChannelSpec
    delay: int | None
    gain: int | None
    bias: tuple[int, ...]


class Sensing:
    """Applies the sensor parameters of all channels.

    Args:
        channels: The observation channels.
        slots: All slots, in the order of the parameter columns.
        period: Control period [s].
    """

    def __init__(
        self, channels: Sequence[ChannelSpec], slots: Sequence[Slot], period: float
    ) -> None:
        self._period = period
        columns = {(s.owner, s.part): k for k, s in enumerate(slots) if s.group == "sensor"}
        self._chains = tuple(_chain(channel, columns) for channel in channels)
        own = sorted(columns.values())
        self._columns = np.array(own, dtype=np.intp)
        self._neutral = np.array([slots[k].value for k in own], dtype=np.float64)

    def is_neutral(self, parameters: Array) -> bool:
        """Whether nothing is to be done for parameters [B, P]."""
        return bool((parameters[:, self._columns] == self._neutral).all())

    # ---- states --------------------------------------------------------------------------

    def begun(self, state: State, raw: Raw) -> State:
        """A state at its start with the past ticks that its delays need."""
        values = state.parameters.array
        if self.is_neutral(values):
            return state
        past = self.started(raw(state), self.depths(values))
        return replace(state, arrays={**state.arrays, **past})

    def followed(self, before: State, after: State, raw: Raw) -> State:
        """The state one tick ``after``, with the past ticks of the state ``before`` it moved on."""
        past = {name: a for name, a in before.arrays.items() if name.startswith(_HISTORY)}
        if not past:
            return after
        return replace(after, arrays={**after.arrays, **self.advanced(past, raw(after))})

    def observed(self, state: State, raw: Raw) -> dict[str, Array]:
        """Reported signals [B, ...] of a state."""
        true, values = raw(state), state.parameters.array
        if self.is_neutral(values):
            return true
        seen = {name: signal[:, None] for name, signal in true.items()}
        reported = self.applied(seen, state.arrays, values)
        return {name: signal[:, 0] for name, signal in reported.items()}

    def rolled(self, raw: dict[str, Array], state: State) -> dict[str, Array]:
        """Reported signals from true ones [B, T+1, ...] that begin at ``state``."""
        if self.is_neutral(state.parameters.array):
            return raw
        return self.applied(raw, state.arrays, state.parameters.array)

    # ---- arrays, also traced ones ---------------------------------------------------------
    # With a leading axis [B, ...], or for one element without it.

    def depths(self, parameters: Array, *, least: int = 0) -> dict[str, int]:
        """How many past ticks K each channel needs; known numbers, because they size arrays.

        Args:
            parameters: Parameter values [..., P], no traced ones.
            least: Ticks for channels that need fewer; 2 give a derivative by a delay of 0.

        Returns:
            Channel to ticks, for channels with any.
        """
        needed: dict[str, int] = {}
        for chain in self._chains:
            if chain.delay is None:
                continue
            ticks = max(least, _ticks(parameters[..., chain.delay] / self._period))
            if ticks:
                needed[chain.channel.name] = ticks
        return needed

    def started(self, raw: Mapping[str, Array], depths: Mapping[str, int]) -> dict[str, Array]:
        """Past ticks at a start: the first value, as often as delays need.

        Args:
            raw: Signals at the start [..., *shape].
            depths: Channel to its number of past ticks K.

        Returns:
            State arrays [..., K, *shape] of these channels, oldest tick first.
        """
        return {
            history_name(chain.channel.name): started(
                raw[chain.channel.name],
                depths[chain.channel.name],
                axes=len(chain.channel.shape),
            )
            for chain in self._chains
            if chain.channel.name in depths
        }

    def advanced(
        self, histories: Mapping[str, Array], raw: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Push the signals of a new tick [..., *shape] into the past ticks."""
        out: dict[str, Array] = {}
        for chain in self._chains:
            name = history_name(chain.channel.name)
            if name in histories:
                newest, axes = raw[chain.channel.name], len(chain.channel.shape)
                out[name] = lengthened(histories[name], newest, axes=axes)
        return out

    def applied(
        self, raw: Mapping[str, Array], histories: Mapping[str, Array], parameters: Array
    ) -> dict[str, Array]:
        """Reported signals.

        Args:
            raw: True signals [..., T, *shape] at consecutive ticks; the first of them is the
                newest entry of the histories.
            histories: Past ticks [..., K, *shape]; a channel without any is not delayed.
            parameters: Parameter values [..., P].
        """
        return {
            chain.channel.name: _reported(
                chain,
                raw[chain.channel.name],
                histories.get(history_name(chain.channel.name)),
                parameters,
                self._period,
            )
            for chain in self._chains
        }


def _chain(channel: ChannelSpec, columns: Mapping[tuple[str, str], int]) -> _Chain:
    bias = tuple(
        columns[channel.name, part]
        for part in _bias_parts(channel)
        if (channel.name, part) in columns
    )
    return _Chain(
        channel=channel,
        delay=columns.get((channel.name, "delay")),
        gain=columns.get((channel.name, "gain")),
        bias=bias,
    )


def _ticks(lags: Array) -> int:
    """Past ticks that lags in ticks need; one that is not finite needs a tick to show it."""
    late = lags[np.isfinite(lags) & (lags > 0)]
    if late.size:
        return math.ceil(float(late.max()) - 1e-9) + 1
    return int(not np.isfinite(lags).all())


def _reported(
    chain: _Chain, raw: Array, history: Array | None, parameters: Array, period: float
) -> Array:
    signal, axes = raw, len(chain.channel.shape)
    if history is not None and chain.delay is not None:
        lag = parameters[..., chain.delay] / period
        manifold = chain.channel.manifold
        signal = delayed(raw, history, lag, axes=axes, manifold=manifold)
    if chain.gain is None:
        return signal
    gain = _per_sample(parameters[..., chain.gain], axes)
    if chain.channel.shape == (3,):
        bias = parameters[..., np.array(chain.bias)][..., None, :]
    else:
        bias = _per_sample(parameters[..., chain.bias[0]], axes)
    known = namespace(signal, parameters) is np
    if known and (gain == 1.0).all() and (bias == 0.0).all():
        return signal
    return gain * signal + bias


def _per_sample(values: Array, axes: int) -> Array:
    """Values [...] beside samples [..., T, *shape]."""
    return values.reshape(*values.shape, *(1,) * (1 + axes))
