"""Programs of the differentiable world kept on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sameworld.core.rollout import rollout
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.worlds.differentiable import DifferentiableWorld, differentiable_world
from sameworld.worlds.differentiable.typed import config

SWING = """
<mujoco><option timestep="0.01"/><worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 {length}"/></body></worldbody></mujoco>
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SAMEWORLD_JAX_CACHE", raising=False)
    before = config.jax_compilation_cache_dir
    yield tmp_path / "sameworld" / "programs"
    config.update("jax_compilation_cache_dir", before)


def _world(length: float = -0.5) -> DifferentiableWorld:
    return differentiable_world(Scene(name="swing", mjcf=SWING.format(length=length)))


def _end(world: DifferentiableWorld) -> float:
    start = Values.of({"start:hinge.pos": 0.4})
    result = rollout(world, start, np.zeros((1, 20, 0)))
    return float(result.signals["hinge.pos"][0, -1])


def test_a_second_world_of_the_same_scene_finds_its_programs(cache: Path) -> None:
    first = _end(_world())
    kept = {file.name: file.stat().st_mtime_ns for file in cache.iterdir()}
    assert kept
    assert _end(_world()) == first
    assert {file.name: file.stat().st_mtime_ns for file in cache.iterdir()} == kept


def test_only_what_is_compiled_anew_is_announced(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="sameworld"):
        _end(_world())
        first = [record.getMessage() for record in caplog.records]
        _end(_world())
    assert "Compiling 'simulated'; it is kept for the next time" in first
    assert len(caplog.records) == len(first)


def test_another_scene_gets_programs_of_its_own(cache: Path) -> None:
    first = _end(_world())
    count = len(list(cache.iterdir()))
    assert _end(_world(length=-0.3)) != first
    assert len(list(cache.iterdir())) == 2 * count


@pytest.mark.parametrize("content", [b"", b"no program", b"\x00" * 4096])
def test_damaged_programs_are_made_again(cache: Path, content: bytes) -> None:
    first = _end(_world())
    for file in cache.iterdir():
        file.write_bytes(content)
    assert _end(_world()) == first
    assert all(file.read_bytes() != content for file in cache.iterdir())


def test_nothing_is_kept_where_the_user_says_so(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMEWORLD_JAX_CACHE", "off")
    _end(_world())
    assert not cache.exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where a folder should be")
    assert np.isfinite(_end(_world()))
