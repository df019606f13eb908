"""What signals were some ticks ago, on numpy arrays and on traced ones.

Between ticks a signal is interpolated, orientations along the shortest turn. The derivative by the
lag is that of the piece in use; at a whole tick, the one of longer lags.
"""

from __future__ import annotations

from typing import Any, Literal

from sameworld.core.arrays import Array
from sameworld.worlds.components.arrays import namespace, slope

__all__ = ["delayed", "lengthened", "slerp", "started"]

#: Lags this little below a whole tick [ticks] count as the tick: periods are rarely exact.
_ROUNDING = 1e-9
_SMALL = 1e-8


def started(first: Array, ticks: int, *, axes: int) -> Array:
    """Past [..., K, *shape] that has always been as it is now.

    Args:
        first: The signal now [..., *shape].
        ticks: Number of ticks K.
        axes: Number of axes of one sample, the length of ``shape``.
    """
    xp = namespace(first)
    return xp.repeat(xp.expand_dims(first, -1 - axes), ticks, axis=-1 - axes)


def lengthened(past: Array, newest: Array, *, axes: int) -> Array:
    """Past [..., K, *shape] one tick later: the oldest sample gone, the newest [..., *shape] added.

    Args:
        past: Samples, oldest first.
        newest: The signal now.
        axes: Number of axes of one sample.
    """
    xp = namespace(past, newest)
    kept = past[(..., slice(1, None), *(slice(None),) * axes)]
    return xp.concatenate([kept, xp.expand_dims(newest, -1 - axes)], axis=-1 - axes)


def delayed(
    raw: Array, past: Array, lag: Array, *, axes: int, manifold: Literal["linear", "quaternion"]
) -> Array:
    """Signals ``lag`` ticks ago.

    Args:
        raw: Signals [..., T, *shape] at consecutive ticks.
        past: Signals [..., K, *shape] before, oldest first; the last one is the first of ``raw``.
        lag: Lag in ticks [...]; below 0 counts as 0, beyond the past as the past's; one that is
            not finite gives NaN.
        axes: Number of axes of one sample, the length of ``shape``.
        manifold: Whether samples are interpolated as numbers or as orientations wxyz.
    """
    xp = namespace(raw, past, lag)
    axis = -1 - axes
    oldest = past.shape[axis] - 1
    before = past[(..., slice(None, -1), *(slice(None),) * axes)]
    ticks = xp.concatenate([before, raw], axis=axis)
    whole, part = _split(lag, oldest)
    newer = oldest + xp.arange(raw.shape[axis]) - whole[..., None]
    older = xp.maximum(newer - 1, 0)
    a, b = (
        xp.take_along_axis(ticks, k.reshape(*k.shape, *(1,) * axes), axis=axis)
        for k in (newer, older)
    )
    if manifold == "quaternion":
        return slerp(a, b, part[..., None])
    weight = part.reshape(*part.shape, 1, *(1,) * axes)
    return (1 - weight) * a + weight * b


def _split(lag: Array, oldest: int) -> tuple[Any, Array]:
    """Whole ticks of lags [...], and the parts of a tick that remain, in [0, 1)."""
    xp = namespace(lag)
    finite = xp.isfinite(lag)
    lag = xp.where(finite & (lag >= 0), lag, 0.0)
    floor = xp.floor(lag + _ROUNDING)
    part = lag - floor
    part = xp.where(part < 0, slope(lag), part)
    part = xp.where(finite, xp.where(floor > oldest, 0.0, part), xp.nan)
    return xp.minimum(floor, oldest).astype(int), part


# ---- orientations ------------------------------------------------------------------------------


def slerp(a: Array, b: Array, share: Array) -> Array:
    """Orientations [..., 4] a ``share`` [...] of the shortest way from ``a`` to ``b``.

    The same numbers as ``maths.rotations.slerp``, with derivatives also where ``a`` and ``b`` are
    one.
    """
    xp = namespace(a, b, share)
    return _compose(a, _exp(share[..., None] * _log(_compose(a * xp.array(_CONJUGATE), b))))


_CONJUGATE = (1.0, -1.0, -1.0, -1.0)


def _compose(a: Array, b: Array) -> Array:
    xp = namespace(a, b)
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    w = aw * bw - xp.sum(av * bv, axis=-1, keepdims=True)
    return xp.concatenate([w, aw * bv + bw * av + xp.cross(av, bv)], axis=-1)


def _exp(v: Array) -> Array:
    xp = namespace(v)
    angle = _norm(v)
    half, small = 0.5 * angle, angle < _SMALL
    ratio = xp.where(small, 0.5 - angle**2 / 48, xp.sin(half) / xp.where(small, 1.0, angle))
    return xp.concatenate([xp.cos(half), ratio * v], axis=-1)


def _log(q: Array) -> Array:
    xp = namespace(q)
    q = xp.where(q[..., :1] < 0, -q, q)
    norm = _norm(q[..., 1:])
    small = norm < _SMALL
    ratio = 2 * xp.arctan2(norm, q[..., :1]) / xp.where(small, 1.0, norm)
    return q[..., 1:] * xp.where(small, 2.0, ratio)


def _norm(v: Array) -> Array:
    """Lengths [..., 1] of vectors, with derivative 0 at the origin."""
    xp = namespace(v)
    square = xp.sum(v * v, axis=-1, keepdims=True)
    nothing = square == 0
    return xp.where(nothing, 0.0, xp.sqrt(xp.where(nothing, 1.0, square)))
