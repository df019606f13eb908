"""Functions of JAX whose own annotations leave types open, with closed ones.

Nothing is wrapped: every name below is the function of JAX itself, seen through a protocol that
states what is used of it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, cast, overload

import jax
import jax.numpy as jnp
from jax import custom_batching as _custom_batching
from jax import export as _export
from jax.typing import ArrayLike, DTypeLike

__all__ = [
    "Compiled",
    "CustomVmap",
    "arange",
    "asarray",
    "checkpoint",
    "config",
    "custom_vmap",
    "jit",
    "diagonal",
    "einsum",
    "export",
    "eye",
    "fori_loop",
    "in_turn",
    "full",
    "jacfwd",
    "jvp",
    "optimization_barrier",
    "pad",
    "solve",
    "eval_shape",
    "tree_map",
    "vjp",
    "zeros",
    "zeros_like",
]

_T = TypeVar("_T")
_Tree = TypeVar("_Tree")
_P = ParamSpec("_P")
_Aux = TypeVar("_Aux")
_Shape = int | tuple[int, ...]


class Compiled(Protocol):
    """A program for given shapes."""

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        ...

    def memory_analysis(self) -> Any:
        """What it needs beside arguments and results."""
        ...


class _Lowered(Protocol):
    def compile(self) -> Compiled: ...


class _Jitted(Protocol):
    def lower(self, *arguments: Any) -> _Lowered: ...


class _Numpy(Protocol):
    def arange(self, stop: int, *, dtype: DTypeLike | None = None) -> jax.Array: ...
    def asarray(self, a: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array: ...
    def diagonal(self, a: jax.Array) -> jax.Array: ...
    def einsum(self, subscripts: str, *operands: ArrayLike) -> jax.Array: ...
    def eye(self, N: int) -> jax.Array: ...
    def full(self, shape: _Shape, fill_value: ArrayLike) -> jax.Array: ...
    def pad(self, array: jax.Array, pad_width: tuple[tuple[int, int], ...]) -> jax.Array: ...
    def zeros(self, shape: _Shape, dtype: DTypeLike | None = None) -> jax.Array: ...
    def zeros_like(self, a: jax.Array) -> jax.Array: ...


class _Linalg(Protocol):
    def solve(self, a: jax.Array, b: jax.Array) -> jax.Array: ...


class _Lax(Protocol):
    def map(self, f: Callable[[jax.Array], jax.Array], xs: jax.Array) -> jax.Array: ...
    def fori_loop(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        body_fun: Callable[[jax.Array, _T], _T],
        init_val: _T,
    ) -> _T: ...
    def optimization_barrier(self, operand: _T) -> _T: ...


class _Trees(Protocol):
    @overload
    def map(self, f: Callable[[jax.Array], jax.Array], tree: _Tree) -> _Tree: ...
    @overload
    def map(
        self, f: Callable[[jax.Array, jax.Array], jax.Array], tree: _Tree, rest: _Tree
    ) -> _Tree: ...


class _Jax(Protocol):
    def checkpoint(self, fun: Callable[_P, _T]) -> Callable[_P, _T]: ...
    def eval_shape(self, fun: Callable[[jax.Array], _T], argument: jax.Array) -> _T: ...
    def jacfwd(self, fun: Callable[_P, jax.Array]) -> Callable[_P, jax.Array]: ...
    def jit(self, fun: Callable[..., Any]) -> _Jitted: ...
    def jvp(
        self,
        fun: Callable[..., tuple[_T, _Aux]],
        primals: tuple[Any, ...],
        tangents: tuple[Any, ...],
        *,
        has_aux: Literal[True],
    ) -> tuple[_T, _T, _Aux]: ...
    def vjp(
        self, fun: Callable[..., _T], *primals: _Tree
    ) -> tuple[_T, Callable[[_T], tuple[_Tree, ...]]]: ...


class _Config(Protocol):
    @property
    def jax_compilation_cache_dir(self) -> str | None: ...
    def update(self, name: str, val: Any) -> None: ...


class _Exported(Protocol):
    @property
    def call(self) -> Callable[..., Any]: ...
    def serialize(self) -> bytearray: ...


class _Export(Protocol):
    def export(self, fun_jit: _Jitted) -> Callable[..., _Exported]: ...
    def deserialize(self, blob: bytearray) -> _Exported: ...
    def register_namedtuple_serialization(self, nodetype: type, *, serialized_name: str) -> Any: ...


class CustomVmap(Protocol):
    """A function of one array, whose batches follow a rule of their own."""

    def __call__(self, array: jax.Array, /) -> jax.Array:
        """The function itself."""
        ...

    def def_vmap(self, rule: Callable[[int, Any, jax.Array], tuple[jax.Array, bool]]) -> Any:
        """Set what a batch does: size and array in, array out and whether it is a batch."""
        ...


class _Batching(Protocol):
    def custom_vmap(self, fun: Callable[[jax.Array], jax.Array]) -> CustomVmap: ...


_numpy = cast("_Numpy", jnp)
_linalg = cast("_Linalg", jnp.linalg)
_lax = cast("_Lax", jax.lax)
_tree = cast("_Trees", jax.tree)
_jax = cast("_Jax", jax)
_batching = cast("_Batching", _custom_batching)

arange = _numpy.arange
asarray = _numpy.asarray
diagonal = _numpy.diagonal
einsum = _numpy.einsum
eye = _numpy.eye
full = _numpy.full
pad = _numpy.pad
zeros = _numpy.zeros
zeros_like = _numpy.zeros_like

solve = _linalg.solve

fori_loop = _lax.fori_loop
in_turn = _lax.map
optimization_barrier = _lax.optimization_barrier

tree_map = _tree.map

checkpoint = _jax.checkpoint
eval_shape = _jax.eval_shape
jacfwd = _jax.jacfwd
jit = _jax.jit
jvp = _jax.jvp
vjp = _jax.vjp

custom_vmap = _batching.custom_vmap

config = cast("_Config", jax.config)
export = cast("_Export", _export)
