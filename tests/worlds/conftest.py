"""Fixtures that tests of several worlds ask for by name."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def few_optimisations():
    """Compile with little optimisation: these programs run a few times."""
    jax = pytest.importorskip("jax")
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
