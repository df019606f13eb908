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
from sameworld.maths.rotations import slerp
from sameworld.worlds.compiled.channels import Signal
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.slots import Slot

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
        return replace(state, arrays={**state.arrays, **self.started(raw(state), values)})

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

    # ---- arrays --------------------------------------------------------------------------

    def started(self, raw: Mapping[str, Array], parameters: Array) -> dict[str, Array]:
        """Past ticks at a start: the first value, as many times as the longest delay needs.

        Args:
            raw: Signals at the start [B, ...].
            parameters: Parameter values [B, P].

        Returns:
            State arrays [B, K, ...] of the channels that are delayed, oldest tick first.
        """
        histories: dict[str, Array] = {}
        for chain in self._chains:
            longest = 0.0 if chain.delay is None else float(parameters[:, chain.delay].max())
            if longest > 0 and math.isfinite(longest):
                ticks = math.ceil(longest / self._period - 1e-9) + 1
                first = raw[chain.channel.name][:, None]
                name = history_name(chain.channel.name)
                histories[name] = np.repeat(first, ticks, axis=1)
        return histories

    def advanced(
        self, histories: Mapping[str, Array], raw: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Push the signals of a new tick [B, ...] into the past ticks."""
        out: dict[str, Array] = {}
        for chain in self._chains:
            name = history_name(chain.channel.name)
            if name in histories:
                newest = raw[chain.channel.name][:, None]
                out[name] = np.concatenate([histories[name][:, 1:], newest], axis=1)
        return out

    def applied(
        self, raw: Mapping[str, Array], histories: Mapping[str, Array], parameters: Array
    ) -> dict[str, Array]:
        """Reported signals.

        Args:
            raw: True signals [B, T, ...] at consecutive ticks; the first of them is the newest
                entry of the histories.
            histories: Past ticks [B, K, ...].
            parameters: Parameter values [B, P].
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


def _reported(
    chain: _Chain, raw: Array, history: Array | None, parameters: Array, period: float
) -> Array:
    signal = raw
    if history is not None and chain.delay is not None:
        lag = parameters[:, chain.delay] / period
        signal = _delayed(raw, history, lag, turns=chain.channel.manifold == "quaternion")
    if chain.gain is None:
        return signal
    extra = (1,) * (signal.ndim - 2)
    gain = parameters[:, chain.gain].reshape(-1, 1, *extra)
    bias = parameters[:, list(chain.bias)]
    bias = bias[:, None, :] if chain.channel.shape == (3,) else bias.reshape(-1, 1, *extra)
    if (gain == 1.0).all() and (bias == 0.0).all():
        return signal
    return gain * signal + bias


def _delayed(raw: Array, history: Array, lag: Array, *, turns: bool) -> Array:
    """Signals ``lag`` [B] ticks ago, for ticks [B, T, ...] with their past [B, K, ...]."""
    past = history.shape[1] - 1
    ticks = np.concatenate([history[:, :-1], raw], axis=1)
    whole = np.floor(lag + 1e-9).astype(np.intp)
    part = np.clip(lag - whole, 0.0, 1.0)
    element = np.arange(len(raw), dtype=np.intp)[:, None]
    rows = np.arange(raw.shape[1], dtype=np.intp)
    newer = past + rows[None] - np.minimum(whole, past)[:, None]
    older = np.maximum(newer - 1, 0)
    weight = part.reshape(-1, 1, *(1,) * (raw.ndim - 2))
    a, b = ticks[element, newer], ticks[element, older]
    if turns:
        return slerp(a, b, np.broadcast_to(part[:, None], a.shape[:2]))
    return (1 - weight) * a + weight * b
