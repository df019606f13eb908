"""File names that any file system takes, made from names that nobody checked."""

from __future__ import annotations

import re

__all__ = ["slug"]

_LENGTH = 40


def slug(name: str) -> str:
    """Lower-case ASCII letters, digits and dashes from any name; ``x`` if none is left.

    Different names may give the same slug, so a number must stand beside it; the real name belongs
    inside the file.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name[:1000].lower()).strip("-")
    return plain[:_LENGTH].strip("-") or "x"
