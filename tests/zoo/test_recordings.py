from importlib.resources import files

import mujoco
import numpy as np
import pytest

from sameworld.core import StoreError
from sameworld.zoo import cube_tosses, read_cube_tosses, scene


def written(folder, **changes):
    state = np.zeros((10, 13), dtype=np.float32)
    state[:, 3] = 1.0
    arrays = {"state": state, "start": np.array([0, 4, 10], dtype=np.int32)} | changes
    np.savez(folder / "tosses.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder


def test_bundled_tosses_come_in_their_documented_order():
    order = np.random.default_rng(0).permutation(570)[:100]
    assert [e.id for e in cube_tosses()] == [f"toss_{i:04d}" for i in order]
    assert [e.id for e in cube_tosses(7)] == [f"toss_{i:04d}" for i in order[:7]]


def test_bundled_tosses_are_poses_at_148_hz():
    for episode in cube_tosses():
        pos, quat = episode["cube.pos"], episode["cube.quat"]
        assert pos.values.shape == (len(quat), 3) and len(pos) >= 80
        assert np.allclose(np.diff(pos.time), 1 / 148)
        assert np.abs(np.linalg.norm(quat.values, axis=1) - 1).max() < 1e-12
        assert pos.unit == "m" and pos.noise is None and episode.source == "real"


def test_bundled_tosses_fall_and_come_to_rest_on_the_board():
    episodes = cube_tosses()
    falls = [np.diff(e["cube.pos"].values[:8, 2], n=2).mean() * 148**2 for e in episodes]
    assert np.median(falls) == pytest.approx(-9.7, abs=0.4)
    resting = np.median([e["cube.pos"].values[-1, 2] for e in episodes])
    assert resting == pytest.approx(0.0524, abs=0.0025)


def test_the_nominal_scene_predicts_the_tosses_as_well_as_published():
    model = mujoco.MjModel.from_xml_string(scene("cube").mjcf)
    data = mujoco.MjData(model)
    errors = []
    for episode in cube_tosses(30):
        pos, quat = episode["cube.pos"].values, episode["cube.quat"].values
        mujoco.mj_resetData(model, data)
        data.qpos[:] = [*pos[0], *quat[0]]
        turn = np.zeros(3)
        mujoco.mju_subQuat(turn, quat[1], quat[0])
        data.qvel[:3] = (pos[1] - pos[0]) * 148 + [0, 0, 9.81 / 148 / 2]
        data.qvel[3:] = turn * 148
        path = [data.qpos[:3].copy()]
        for _ in range(20):
            mujoco.mj_step(model, data, nstep=4)
            path.append(data.qpos[:3].copy())
        errors.append(np.linalg.norm(np.array(path) - pos[:21], axis=1).mean() / 0.1048)
    assert np.median(errors) < 0.06


def test_the_excerpt_is_small_and_carries_its_licence():
    data = files("sameworld.zoo").joinpath("data")
    assert len(data.joinpath("cube_toss.npz").read_bytes()) < 600_000
    assert "BSD 3-Clause" in data.joinpath("cube_toss.LICENSE").read_text()
    assert "body-to-world" in data.joinpath("README.md").read_text()


@pytest.mark.parametrize("count", [0, 101, -3])
def test_impossible_counts_are_refused(count):
    with pytest.raises(StoreError, match="1 to 100"):
        cube_tosses(count)


def test_a_data_folder_is_read_whole(tmp_path):
    episodes = read_cube_tosses(written(tmp_path))
    assert [e.id for e in episodes] == ["toss_0000", "toss_0001"]
    assert [len(e["cube.pos"]) for e in episodes] == [4, 6]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"tosses\.npz"):
        read_cube_tosses(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x93NUMPY garbage"])
def test_a_broken_file_is_refused(tmp_path, content):
    (tmp_path / "tosses.npz").write_bytes(content)
    with pytest.raises(StoreError):
        read_cube_tosses(tmp_path)


def test_a_bare_array_is_refused(tmp_path):
    with (tmp_path / "tosses.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(StoreError, match="single array"):
        read_cube_tosses(tmp_path)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"start": None}, "'start'"),
        ({"state": np.zeros((10, 5))}, r">= 7"),
        ({"state": np.zeros((10, 13), dtype=int)}, "floats"),
        ({"start": np.array([0.0, 4.0])}, "integers"),
        ({"start": np.array([0, 6, 4])}, "increase"),
        ({"start": np.array([0, 11])}, "10 rows"),
        ({"start": np.array([-2, 4])}, "increase"),
        ({"state": np.zeros((10, 13))}, "length 0"),
        ({"state": np.full((10, 13), np.nan)}, "length nan"),
        ({"start": np.array([{}], dtype=object)}, "npz"),
    ],
)
def test_arrays_that_are_no_tosses_are_refused(tmp_path, changes, word):
    with pytest.raises(StoreError, match=word):
        read_cube_tosses(written(tmp_path, **changes))
