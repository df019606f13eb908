"""Parameter addresses: ``kind:target.field``, e.g. ``pair:cube+floor.friction.slide``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from sameworld.core.errors import AddressError, closest, listed

__all__ = ["KINDS", "Address", "match_names"]

KINDS = (
    "body",
    "geom",
    "pair",
    "joint",
    "tendon",
    "actuator",
    "sensor",
    "option",
    "component",
    "start",
    "model",
)


@dataclass(frozen=True, kw_only=True)
class Address:
    """A parsed parameter address.

    Attributes:
        kind: What the address points at, one of ``KINDS``.
        target: Name of the element; a contact pair is ``geom1+geom2``.
        field: Dotted path inside the element, e.g. ``friction.slide``.
    """

    kind: str
    target: str
    field: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Split ``kind:target.field``.

        The field starts at the first dot, so names of addressed elements hold none.

        Raises:
            AddressError: The text has no kind, an unknown kind, or no field.
        """
        kind, colon, rest = text.partition(":")
        if not colon or kind not in KINDS:
            raise AddressError(
                f"Address '{text}' does not start with a known kind. Kinds: {listed(KINDS)}."
                f"{closest(kind, KINDS)} Example: 'body:cube.mass'."
            )
        target, dot, field = rest.partition(".")
        if not (target and dot and field):
            raise AddressError(
                f"Address '{text}' needs a target and a field: '{kind}:<target>.<field>', "
                "for example 'body:cube.mass' or 'pair:cube+floor.friction.slide'."
            )
        return cls(kind=kind, target=target, field=field)

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}.{self.field}"


def match_names(patterns: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Expand shell-style patterns over names, keeping the order of ``names``.

    Args:
        patterns: Addresses or patterns such as ``joint:*.damping``.
        names: Names that exist.

    Raises:
        AddressError: A pattern matches nothing.
    """
    names = list(names)
    chosen: set[str] = set()
    for pattern in patterns:
        hits = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if not hits:
            raise AddressError(
                f"'{pattern}' matches no parameter. Existing: {listed(names)}."
                f"{closest(pattern, names)}"
            )
        chosen.update(hits)
    return tuple(name for name in names if name in chosen)
