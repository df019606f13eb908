"""Compiled programs over batches, kept by what they depend on.

Programs depend on shapes only. Lengths and batches are rounded up to buckets and the true numbers
are arguments, so that few programs serve all calls; ``compiles`` counts them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.worlds.differentiable.element import Element, Kept, Traced
from sameworld.worlds.differentiable.shelf import Shelf
from sameworld.worlds.differentiable.step import Carried
from sameworld.worlds.differentiable.typed import (
    Compiled,
    asarray,
    eval_shape,
    fori_loop,
    jit,
    tree_map,
    zeros,
)

__all__ = ["HostCarry", "HostRow", "HostTrace", "Programs", "bucket"]

#: Batches in numpy arrays, as programs give them back.
HostCarry: TypeAlias = Carried[NDArray[Any]]
HostRow: TypeAlias = Kept[NDArray[Any]]
HostTrace: TypeAlias = Traced[NDArray[Any]]

_Key: TypeAlias = tuple[Any, ...]
_KEPT = 64
#: Elements simulated side by side on a CPU.
_BLOCK = 8


def bucket(size: int) -> int:
    """Smallest bucket that holds ``size``: at most an eighth is wasted above 8."""
    if size <= 8:
        return max(size, 1)
    grain = 1 << (int(size - 1).bit_length() - 4)
    return -(-size // grain) * grain


def _room(count: int) -> int:
    """Batch that a loop has room for: what is not used costs memory only, a new size a compile."""
    return 1 if count == 1 else max(8, 1 << int(count - 1).bit_length())


class Programs:
    """Programs of one scene for one choice of dofs with dry friction.

    Args:
        element: Functions of one element.
        shelf: Where programs are kept between processes.
        vector: Whether elements run all at once; else one after the other.
        threads: Threads that share a batch.
    """

    def __init__(self, element: Element, shelf: Shelf, *, vector: bool, threads: int) -> None:
        self.element = element
        self._shelf = shelf
        self.compiles = 0
        self._vector = vector
        self._threads = 1 if vector else threads
        self._kept: OrderedDict[_Key, Compiled] = OrderedDict()

    # ---- calls ---------------------------------------------------------------------------

    def placed(self, values: Array, starts: Array) -> HostCarry:
        """States at starts [B, S] with parameters [B, P]."""
        return self._mapped("placed", self.element.placed, (values, starts), ())

    def simulated(self, values: Array, carry: HostCarry, actions: Array) -> HostTrace:
        """Traces [B, T+1, ...] under actions [B, T, A]."""
        ticks = actions.shape[1]
        extra = bucket(ticks) - ticks
        padded = np.pad(actions, ((0, 0), (0, extra), (0, 0)))
        found: HostTrace = self._mapped(
            "simulated",
            self.element.simulated,
            (values, carry, padded),
            (np.asarray(ticks),),
            block=_BLOCK,
        )
        return Traced(found.end, Kept(*(rows[:, : ticks + 1] for rows in found.rows)))

    def sensed(self, values: Array, rows: HostRow, time: Array) -> Array:
        """Sensor values [B, T, ns] of rows [B, T, ...] at times [B, T] s."""
        if not self.element.sensors.groups:
            return np.zeros((*rows.q.shape[:2], self.element.sensors.size))
        count = rows.q.shape[1]
        extra = bucket(count) - count

        def longer(array: NDArray[Any]) -> NDArray[Any]:
            padding = [(0, 0), (0, extra)] + [(0, 0)] * (array.ndim - 2)
            return np.pad(array, padding, mode="edge")

        given = values, Kept(*map(longer, rows)), longer(time)
        found = self._mapped("sensed", self.element.sensed, given, ())
        return found[:, :count]

    def custom(
        self,
        key: _Key,
        function: Callable[..., Any],
        batched: tuple[Any, ...],
        shared: tuple[Any, ...] = (),
        *,
        block: int = 1,
    ) -> Any:
        """Run any function of one element over a batch, ``block`` elements at a time.

        ``key`` names it for reuse.
        """
        return self._mapped(key, function, batched, shared, block)

    def temporary_memory(self, name: str) -> int:
        """Most bytes that a compiled program of a name needs beside arguments and results."""
        named = [p for k, p in self._kept.items() if k[0] == name or k[0][0] == name]
        return max((int(p.memory_analysis().temp_size_in_bytes) for p in named), default=0)

    # ---- batches -------------------------------------------------------------------------

    def _mapped(
        self,
        key: object,
        function: Callable[..., Any],
        batched: tuple[Any, ...],
        shared: tuple[Any, ...],
        block: int = 1,
    ) -> Any:
        """Map a function over leading axes, ``block`` elements at a time.

        Results are numpy arrays.
        """
        count = len(jax.tree.leaves(batched)[0])
        parts = np.array_split(np.arange(count), max(1, min(self._threads, count)))
        if len(parts) == 1:
            return self._run(key, function, batched, shared, block)
        with ThreadPoolExecutor(len(parts)) as pool:
            jobs = [
                pool.submit(self._run, key, function, _rows(batched, part), shared, block)
                for part in parts
            ]
            found = [job.result() for job in jobs]
        return jax.tree.map(_joined, *found)

    def _run(
        self,
        key: object,
        function: Callable[..., Any],
        batched: tuple[Any, ...],
        shared: tuple[Any, ...],
        block: int,
    ) -> Any:
        count = len(jax.tree.leaves(batched)[0])
        block = 1 if self._vector else min(block, 1 << (count - 1).bit_length())
        loops = -(-count // block)
        size = bucket(count) if self._vector else block * _room(loops)

        def filled(array: NDArray[Any]) -> NDArray[Any]:
            array = np.asarray(array)
            if size != count:
                array = np.concatenate([array, np.repeat(array[-1:], size - count, axis=0)])
            return array if block == 1 else array.reshape(size // block, block, *array.shape[1:])

        padded = jax.tree.map(filled, batched)
        shapes = [(a.shape, a.dtype.str) for a in jax.tree.leaves((padded, shared))]
        together = function if block == 1 else _side_by_side(function, len(shared))
        with jax.enable_x64(True):
            program = self._compiled((key, *shapes), together, padded, shared)
            found = program(np.asarray(loops), padded, shared)
            if block > 1:
                found = _flattened(found)
            return _rows(found, slice(count))

    def _compiled(
        self,
        key: _Key,
        function: Callable[..., Any],
        batched: tuple[Any, ...],
        shared: tuple[Any, ...],
    ) -> Compiled:
        found = self._kept.get(key)
        if found is None:
            over = _vectorised(function) if self._vector else _looped(function)
            arguments = np.asarray(1), batched, shared
            name = key[0] if isinstance(key[0], str) else key[0][0]
            program = self._shelf.program(name, (self._vector, *key), over, arguments)
            found = jit(program).lower(*arguments).compile()
            self.compiles += 1
            self._kept[key] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found


def _side_by_side(function: Callable[..., Any], shared: int) -> Callable[..., Any]:
    """Several elements in every operation: small arrays cost little more than smaller ones."""

    def run(*arguments: Any) -> Any:
        axes = (*[0] * (len(arguments) - shared), *[None] * shared)
        return jax.vmap(function, in_axes=axes)(*arguments)

    return run


def _flattened(tree: Any) -> Any:
    """Results [loops, block, ...] as [elements, ...]."""

    def flat(array: jax.Array) -> NDArray[Any]:
        return np.asarray(array).reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    return jax.tree.map(flat, tree)


def _joined(*parts: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate(parts)


def _rows(tree: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Some rows of every array, in numpy."""

    def taken(array: jax.Array) -> NDArray[Any]:
        return np.asarray(array)[rows]

    return jax.tree.map(taken, tree)


def _vectorised(function: Callable[..., Any]) -> Callable[..., Any]:
    """All elements at once; those that pad the bucket are computed, too."""

    def run(count: jax.Array, batched: tuple[Any, ...], shared: tuple[Any, ...]) -> Any:
        def element(*one: Any) -> Any:
            return function(*one, *shared)

        return jax.vmap(element)(*batched)

    return run


def _looped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Elements one after the other, as many as there are."""

    def run(count: jax.Array, batched: tuple[Any, ...], shared: tuple[Any, ...]) -> Any:
        size = len(jax.tree.leaves(batched)[0])

        def element(k: jax.Array) -> Any:
            return function(*tree_map(lambda a: a[k], batched), *shared)

        if size == 1:
            return tree_map(lambda a: asarray(a)[None], element(asarray(0)))
        shapes = eval_shape(element, asarray(0))
        empty = tree_map(lambda a: zeros((size, *a.shape), a.dtype), shapes)

        def once(k: jax.Array, found: Any) -> Any:
            return tree_map(lambda kept, new: kept.at[k].set(new), found, element(k))

        return fori_loop(0, count, once, empty)

    return run
