"""Compiled programs on disk, so that a second process starts fast."""

from __future__ import annotations

import os
from pathlib import Path

from sameworld.worlds.differentiable.typed import config

__all__ = ["keep_compiled"]


def keep_compiled() -> Path | None:
    """Let JAX keep compiled programs on disk, unless its user decided about that already.

    JAX's folder is ``JAX_COMPILATION_CACHE_DIR``, else ``sameworld/jax`` in the user's cache
    folder. ``SAMEWORLD_JAX_CACHE=off`` keeps nothing.

    Returns:
        The folder for traced programs, ``None`` if nothing is kept.
    """
    if os.environ.get("SAMEWORLD_JAX_CACHE", "").lower() in ("off", "0", "no"):
        return None
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sameworld"
    if not config.jax_compilation_cache_dir:
        config.update("jax_compilation_cache_dir", str(base / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return base / "programs"
