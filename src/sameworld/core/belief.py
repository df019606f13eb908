"""``Belief``: what is known about a set of parameters, jointly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from sameworld.core.arrays import Array, finite_array, read_only
from sameworld.core.discrepancy import Discrepancy
from sameworld.core.errors import BeliefError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.sampling import truncated_normal
from sameworld.core.values import Values

__all__ = ["Belief", "Block"]

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Block:
    """Opaque numbers of a learned world (network weights), never named one by one.

    Attributes:
        name: Block name, e.g. ``dynamics``.
        sha256: Hash of the stored bytes.
        representation: How the uncertainty is held: ``point``, ``ensemble:5``, ...
    """

    name: str
    sha256: str
    representation: str = "point"


@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """Named parameters with a joint Gaussian, truncated to their bounds.

    Attributes:
        parameters: The parameters; names are unique. Their ``std`` is the marginal spread.
        correlation: Correlation matrix [P, P]; identity if not given.
        blocks: Opaque weight blocks of learned worlds.
        discrepancy: How far the world's predictions are off, learned from held-out residuals.
    """

    parameters: tuple[Parameter, ...] = ()
    correlation: Array = field(default=cast(Array, None))
    blocks: tuple[Block, ...] = ()
    discrepancy: Discrepancy | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(self.parameters))
        names = [p.name for p in self.parameters]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise BeliefError(f"Belief names a parameter twice: {listed(twice)}.")
        size = len(names)
        given = cast("Array | None", self.correlation)
        matrix = np.eye(size) if given is None else given
        object.__setattr__(self, "correlation", _checked_correlation(matrix, size))

    # ---- reading -------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Addresses, in order."""
        return tuple(p.name for p in self.parameters)

    @property
    def mean(self) -> Values:
        """Means as one batch element."""
        return Values(names=self.names, array=np.array([[p.value for p in self.parameters]]))

    @property
    def std(self) -> Array:
        """Marginal standard deviations [P]; ``inf`` where there is no opinion."""
        return np.array([p.std for p in self.parameters])

    @property
    def covariance(self) -> Array:
        """Covariance [P, P]; infinite on the diagonal where there is no opinion."""
        finite = np.where(np.isfinite(self.std), self.std, 0.0)
        covariance = self.correlation * np.outer(finite, finite)
        covariance[np.diag_indices(len(finite))] = self.std**2
        return covariance

    def __len__(self) -> int:
        return len(self.parameters)

    def __getitem__(self, name: str) -> Parameter:
        return self.parameters[self.index(name)]

    def index(self, name: str) -> int:
        """Position of a name.

        Raises:
            BeliefError: The name is not there.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise BeliefError(
                f"Belief has no '{name}'. It has {listed(self.names)}.{closest(name, self.names)}"
            ) from None

    # ---- operations ----------------------------------------------------------------------

    def marginal(self, names: Iterable[str]) -> Belief:
        """Keep some parameters with their joint spread."""
        index = [self.index(name) for name in names]
        return replace(
            self,
            parameters=tuple(self.parameters[i] for i in index),
            correlation=self.correlation[np.ix_(index, index)],
        )

    def without(self, names: Iterable[str]) -> Belief:
        """Drop some parameters."""
        dropped = set(names)
        return self.marginal(name for name in self.names if name not in dropped)

    def with_values(self, values: Mapping[str, float]) -> Belief:
        """Move some means, keeping spreads and correlations."""
        for name in values:
            self.index(name)
        moved = tuple(
            p.with_value(float(values[p.name])) if p.name in values else p for p in self.parameters
        )
        return replace(self, parameters=moved)

    def updated(self, other: Belief) -> Belief:
        """Let ``other`` replace shared parameters and add new ones.

        Correlations between a replaced and a kept parameter are dropped: ``other`` says nothing
        of them.
        """
        kept = [p for p in self.parameters if p.name not in other.names]
        names = tuple(p.name for p in kept)
        size = len(kept) + len(other)
        matrix = np.eye(size)
        matrix[: len(kept), : len(kept)] = self.marginal(names).correlation
        matrix[len(kept) :, len(kept) :] = other.correlation
        merged = Belief(
            parameters=(*kept, *other.parameters),
            correlation=matrix,
            blocks=other.blocks or self.blocks,
            discrepancy=other.discrepancy or self.discrepancy,
        )
        order = [*self.names, *(n for n in other.names if n not in self.names)]
        return merged.marginal(order)

    def condition(self, values: Mapping[str, float]) -> Belief:
        """Belief about the rest once some parameters are known exactly.

        Uses the Gaussian conditional and then clips means to the bounds.

        Raises:
            BeliefError: A name is unknown or a value lies outside its bounds.
        """
        known = [self.index(name) for name in values]
        rest = [i for i in range(len(self)) if i not in known]
        fixed = tuple(
            self.parameters[i].with_value(float(v), std=0.0)
            for i, v in zip(known, values.values(), strict=True)
        )
        gap = np.array([p.value for p in fixed]) - self.mean.array[0, known]
        mean, covariance = self._conditional(known, rest, gap)
        free = _with_moments(tuple(self.parameters[i] for i in rest), mean, covariance)
        merged = replace(
            self,
            parameters=(*fixed, *free.parameters),
            correlation=_block_diagonal(np.eye(len(fixed)), free.correlation),
        )
        return merged.marginal(self.names)

    def _conditional(self, known: list[int], rest: list[int], gap: Array) -> tuple[Array, Array]:
        finite = np.where(np.isfinite(self.std), self.std, 0.0)
        joint = self.correlation * np.outer(finite, finite)
        gain = joint[np.ix_(rest, known)] @ np.linalg.pinv(joint[np.ix_(known, known)])
        mean = self.mean.array[0, rest] + gain @ gap
        covariance = joint[np.ix_(rest, rest)] - gain @ joint[np.ix_(known, rest)]
        loose = ~np.isfinite(self.std[rest])
        covariance[loose, loose] = np.inf
        return mean, covariance

    def sample(self, count: int, *, seed: int) -> Values:
        """Draw joint samples inside the bounds.

        A parameter without an opinion (``std = inf``) is drawn uniformly between finite bounds.

        Args:
            count: Number of draws B.
            seed: Seed of the generator.

        Returns:
            Values of shape [B, P].

        Raises:
            BeliefError: A parameter has neither a finite std nor finite bounds.
        """
        rng = np.random.default_rng(seed)
        low = np.array([p.low for p in self.parameters])
        high = np.array([p.high for p in self.parameters])
        loose = ~np.isfinite(self.std)
        homeless = loose & ~np.isfinite(high - low)
        if homeless.any():
            names = [n for n, bad in zip(self.names, homeless, strict=True) if bad]
            raise BeliefError(
                f"Cannot sample {listed(names)}: no std and no finite bounds. Give one of them."
            )
        finite = np.where(loose, 0.0, self.std)
        covariance = self.correlation * np.outer(finite, finite)
        draws = truncated_normal(self.mean.array[0], covariance, low, high, count, rng)
        draws[:, loose] = rng.uniform(low[loose], high[loose], size=(count, int(loose.sum())))
        return Values(names=self.names, array=draws)

    @classmethod
    def gaussian(
        cls, parameters: Iterable[Parameter], mean: Array, covariance: Array, **marks: Any
    ) -> Belief:
        """Belief with moments [P], [P, P]; ``marks`` are fields set on every parameter."""
        marked = tuple(replace(p, **marks) for p in parameters)
        return _with_moments(marked, np.asarray(mean, float), np.asarray(covariance, float))

    # ---- serialisation -------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "schema": _SCHEMA,
            "parameters": [p.to_json() for p in self.parameters],
            "correlation": self.correlation.tolist(),
            "blocks": [vars(block) for block in self.blocks],
            "discrepancy": None if self.discrepancy is None else self.discrepancy.to_json(),
        }

    @classmethod
    def from_json(cls, record: Any) -> Belief:
        """Rebuild from ``to_json`` output.

        Raises:
            BeliefError: Wrong schema, or a part that does not fit.
        """
        if not isinstance(record, dict) or "parameters" not in record:
            raise BeliefError("A belief must be a JSON object with a 'parameters' list.")
        fields = cast("dict[str, Any]", record)
        if fields.get("schema") != _SCHEMA:
            raise BeliefError(
                f"Belief schema is {fields.get('schema')!r}, this version reads {_SCHEMA}."
            )
        if not isinstance(fields["parameters"], list):
            raise BeliefError("Belief 'parameters' must be a list.")
        discrepancy = fields.get("discrepancy")
        try:
            blocks = tuple(Block(**block) for block in fields.get("blocks", ()))
        except TypeError as cause:
            raise BeliefError(f"Belief block: {cause}.") from cause
        return cls(
            parameters=tuple(
                Parameter.from_json(p) for p in cast("list[Any]", fields["parameters"])
            ),
            correlation=fields.get("correlation"),  # type: ignore[arg-type]
            blocks=blocks,
            discrepancy=None if discrepancy is None else Discrepancy.from_json(discrepancy),
        )


def _checked_correlation(matrix: Any, size: int) -> Array:
    array = finite_array(matrix, "Belief correlation", error=BeliefError)
    if size == 0:
        return read_only(np.zeros((0, 0)))
    if array.shape != (size, size):
        raise BeliefError(f"Correlation of {size} parameters has shape {array.shape}.")
    if not np.allclose(np.diag(array), 1, atol=1e-9) or not np.allclose(array, array.T, atol=1e-9):
        raise BeliefError("Correlation must be symmetric with a unit diagonal.")
    coupled = np.flatnonzero((array != np.eye(size)).any(axis=1))
    block = array[np.ix_(coupled, coupled)]
    smallest = float(np.linalg.eigvalsh(block)[0]) if len(coupled) else 1.0
    if smallest < -1e-8:
        raise BeliefError(f"Correlation is not positive semidefinite (eigenvalue {smallest:.3g}).")
    return read_only(array)


def _with_moments(parameters: tuple[Parameter, ...], mean: Array, covariance: Array) -> Belief:
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where((std > 0) & np.isfinite(std), std, 1.0)
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    correlation = np.clip(finite / np.outer(scale, scale), -1, 1)
    correlation = 0.5 * (correlation + correlation.T)
    correlation[np.diag_indices(len(std))] = 1.0
    placed = tuple(
        p.with_value(min(max(float(m), p.low), p.high), std=float(s) if not math.isnan(s) else None)
        for p, m, s in zip(parameters, mean, std, strict=True)
    )
    return Belief(parameters=placed, correlation=correlation)


def _block_diagonal(a: Array, b: Array) -> Array:
    out = np.zeros((len(a) + len(b), len(a) + len(b)))
    out[: len(a), : len(a)], out[len(a) :, len(a) :] = a, b
    return out
