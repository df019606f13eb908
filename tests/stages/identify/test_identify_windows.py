"""Where episodes are cut, and where windows begin."""

import numpy as np
import pytest
from identify_recordings import DAMPING, MASS, PENDULUM_NOISE, quick, record

from sameworld.core import Channel, Episode, Values, rollout
from sameworld.stages.identify.windows import cut, jolts, trusted_length
from sameworld.worlds import build
from sameworld.zoo import AnalyticPendulum, scene

FRICTION = "pair:cube_box+floor.friction.slide"


@pytest.fixture(scope="module")
def cube():
    """A cube world, and tosses that tumble on the floor."""
    world = build(scene("cube"), "explicit")
    rng = np.random.default_rng(0)
    values = {
        "start:cube.pos.z": rng.uniform(0.2, 0.3, 4),
        "start:cube.vel.x": rng.uniform(0.5, 1.0, 4),
        "start:cube.omega.x": rng.normal(0, 6, 4),
        "start:cube.omega.y": rng.normal(0, 6, 4),
    }
    ticks = round(0.8 / world.spec.period)
    result = rollout(world, Values.of(values), np.zeros((4, ticks, world.spec.action_size)))
    episodes = [
        Episode(
            id=f"toss{i}",
            channels=tuple(
                Channel(name=n, time=result.time, values=v[i], noise=1e-3)
                for n, v in result.signals.items()
                if n in ("cube.pos", "cube.quat")
            ),
        )
        for i in range(4)
    ]
    return world, episodes


def test_a_tumbling_cube_forgets_its_start_and_a_damped_pendulum_does_not(cube):
    world, tosses = cube
    assert trusted_length(world, tosses, quick(FRICTION)) < 0.8
    swings = record(
        AnalyticPendulum(substeps=1), 6, truth={DAMPING: 0.3}, noise={"pivot.pos": 1e-3}, ticks=60
    )
    assert trusted_length(AnalyticPendulum(substeps=1), swings, quick(MASS)) == np.inf


def test_jolts_stand_out_where_the_cube_hits_the_floor(cube):
    world, tosses = cube
    time, size = jolts(world.spec, tosses[0])
    height = tosses[0]["cube.pos"].values[:, 2]
    falling = np.flatnonzero(np.diff(height) > 0)  # rises for the first time: it has bounced
    impact = time[falling[falling > 3][0]]
    assert size[np.abs(time - impact) < 0.05].max() > 6
    assert np.median(size) < 3


def test_no_length_leaves_episodes_whole():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 3, noise=PENDULUM_NOISE)
    for length in (np.inf, 2.0):
        windows = cut(world, episodes, quick(MASS), length)
        assert [w.piece.id for w in windows] == ["e0", "e1", "e2"]
        assert all(w.first for w in windows)


def test_windows_cover_their_episode_in_order_and_overlap_little():
    world = AnalyticPendulum(substeps=1)
    (episode,) = record(world, 1, noise=PENDULUM_NOISE, ticks=200)
    windows = cut(world, [episode], quick(MASS), 0.8)
    begins = [w.piece.begin for w in windows]
    assert begins[0] == episode.begin and windows[0].first
    assert not any(w.first for w in windows[1:])
    steps = np.diff(begins)
    assert (steps > 0.75 * 0.8 - 0.05).all() and (steps <= 0.8 + 1e-9).all()
    assert episode.end - windows[-1].piece.end < 0.4 + 1e-9
    assert all(w.piece.end - w.piece.begin <= 0.8 + 1e-9 for w in windows)
    assert len({w.piece.id for w in windows}) == len(windows)


def test_no_more_windows_than_asked_for():
    world = AnalyticPendulum(substeps=1)
    (episode,) = record(world, 1, noise=PENDULUM_NOISE, ticks=300)
    assert len(cut(world, [episode], quick(MASS, most_windows=3), 0.4)) == 3


def test_windows_begin_in_quiet_rows(cube):
    world, tosses = cube
    rows = 5
    for toss in tosses:
        time, size = jolts(world.spec, toss)
        windows = cut(world, [toss], quick(FRICTION, warmup=rows), 0.2)
        assert len(windows) > 1
        for window in windows[1:]:
            at = int(np.argmin(np.abs(time - window.piece.begin)))
            peak = size[at : at + rows].max()
            near = [
                size[i : i + rows].max()
                for i in np.flatnonzero(np.abs(time - window.piece.begin) < 0.05)
                if i + rows < len(time)
            ]
            assert peak < 6 or peak <= np.median(near)


def test_pieces_keep_the_action_that_was_held_when_they_began():
    world = AnalyticPendulum(substeps=1)
    (episode,) = record(world, 1, noise=PENDULUM_NOISE, ticks=200)
    for window in cut(world, [episode], quick(MASS), 0.8):
        motor = window.piece["pivot_motor"]
        whole = episode["pivot_motor"]
        at = np.array([window.piece.begin])
        assert motor.held(at) == whole.held(at)
