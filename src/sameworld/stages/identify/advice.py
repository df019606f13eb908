"""What to record next, from what the verdicts lack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.address import Address
from sameworld.stages.identify.result import DelayAudit, ParameterVerdict

__all__ = ["advise"]

_MOTIONS: tuple[tuple[str, str, str], ...] = (
    ("pair", "friction.slide", "let it slide farther, at several speeds"),
    ("pair", "friction.spin", "let it spin about the contact normal while it touches"),
    ("pair", "friction.roll", "let it roll freely until it stops"),
    ("pair", "solref", "record impacts at several speeds, with samples close to the impact"),
    ("pair", "solimp", "record impacts and resting contact under different loads"),
    ("geom", "pos", "record resting contact at several places"),
    ("geom", "friction", "let it slide farther, at several speeds"),
    ("joint", "damping", "move this joint fast and let it coast"),
    ("joint", "frictionloss", "move this joint slowly and reverse it often"),
    ("joint", "armature", "accelerate and reverse this joint sharply"),
    ("joint", "stiffness", "hold this joint at several deflections"),
    ("tendon", "damping", "let what hangs on this tendon swing or bounce, and settle"),
    ("tendon", "frictionloss", "pull this tendon slowly back and forth"),
    ("tendon", "stiffness", "hold this tendon at several lengths, or let known loads bounce on it"),
    ("tendon", "springlength", "record lengths to both sides of where this tendon begins to pull"),
    ("tendon", "range", "drive this tendon to its end stops"),
    ("actuator", "", "command steps of several sizes on this actuator"),
    ("body", "mass", "record forces or torques: passive motion gives mass ratios only"),
    ("body", "com", "move the body through several orientations against gravity"),
    ("body", "inertia", "rotate the body fast about several axes"),
    ("sensor", "delay", "record sharp reversals, where a delay shows"),
)


def advise(
    verdicts: Sequence[ParameterVerdict],
    delays: Sequence[DelayAudit],
    *,
    episodes: int,
    determined: float,
    relative: Sequence[float],
) -> tuple[str, ...]:
    """Sentences that say what further recordings would settle.

    Args:
        verdicts: The verdict table.
        delays: The delay audit.
        episodes: Number of fitted episodes.
        determined: Spread at which a parameter counts as determined.
        relative: Spread of each parameter in the optimiser's coordinates.
    """
    lines = [f"{d.channel}: {d.text}" for d in delays if d.suspicious]
    for row, spread in zip(verdicts, relative, strict=True):
        line = _line(row, spread, episodes, determined)
        if line:
            lines.append(line)
    if not lines:
        lines.append(_narrowing(verdicts, relative, episodes))
    return tuple(lines)


def _line(row: ParameterVerdict, spread: float, episodes: int, determined: float) -> str:
    motion = _motion(row.name)
    if row.verdict == "at bound":
        return f"For {row.name}: widen its bounds, or look for physics that the scene lacks."
    if row.verdict == "zero gradient":
        return f"For {row.name}: leave it out, or {motion}."
    if row.verdict == "only in combination":
        others = ", ".join(row.partners) or "the others"
        return f"To settle {row.name}: give a measured value of one of {others}, or {motion}."
    if row.verdict == "not excited":
        more = (spread / determined) ** 2 * episodes if np.isfinite(spread) else np.inf
        enough = float(f"{more:.2g}") if more < 50 * episodes else 0.0
        hope = f", or record about {enough:.0f} episodes like these in all" if enough else ""
        return f"To settle {row.name}: {motion}{hope}."
    return ""


def _motion(name: str) -> str:
    address = Address.parse(name)
    for kind, field, motion in _MOTIONS:
        here = address.field.startswith(field) or address.field.endswith(f".{field}")
        if address.kind == kind and here:
            return motion
    return "record a motion that depends on it"


def _narrowing(
    verdicts: Sequence[ParameterVerdict], relative: Sequence[float], episodes: int
) -> str:
    if not verdicts:
        return "Nothing to add."
    worst = int(np.argmax(relative))
    return (
        f"Every parameter is determined. The loosest is {verdicts[worst].name}; "
        f"{3 * episodes} more episodes like these would halve its interval."
    )
