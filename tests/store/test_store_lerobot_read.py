"""LeRobot datasets come in whole; what is wrong with one is mended and said, or refused by name."""

import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lerobot_files import (
    CAMERA,
    FPS,
    LABELS,
    dataset_v2,
    dataset_v3,
    dropped,
    edit_data,
    edit_episodes,
    edit_info,
    feature,
    film,
    numbers,
    picture,
    replaced,
    set_row,
)

from sameworld.core import StoreError
from sameworld.store import lerobot_info, read_lerobot, stream_frames
from sameworld.store.lerobot.clock import row_clock

DATASETS = {"v3.0": (dataset_v3, (9, 7, 8, 6)), "v2.1": (dataset_v2, (9, 7, 8))}


@pytest.mark.parametrize("version", DATASETS)
def test_every_episode_comes_with_its_numbers_labels_clock_and_task(tmp_path, version):
    make, lengths = DATASETS[version]
    recordings = list(read_lerobot(make(tmp_path)))
    assert [r.id for r in recordings] == [f"episode_{e:06d}" for e in range(len(lengths))]
    for e, recording in enumerate(recordings):
        state, action = numbers(e, lengths[e])
        np.testing.assert_array_equal(recording["observation.state"].values, state)
        np.testing.assert_array_equal(recording["action"].values, action)
        assert recording["observation.state"].labels == tuple(LABELS)
        assert recording["next.done"].values.dtype == bool
        for stream in recording.streams:
            np.testing.assert_array_equal(stream.time, np.arange(lengths[e]) / FPS)
            assert stream.clock == "episode"
        assert recording.task == ["push", "pull"][e % 2]
        assert recording.notes == ()


@pytest.mark.parametrize("version", DATASETS)
def test_every_row_finds_its_own_frame(tmp_path, version):
    make, lengths = DATASETS[version]
    for e, recording in enumerate(read_lerobot(make(tmp_path))):
        images = list(stream_frames(tmp_path, recording[CAMERA]))
        assert len(images) == lengths[e]
        for row, image in enumerate(images):
            assert abs(image.astype(float).mean() - picture(e, row).mean()) < 2.5


def test_version_2_0_and_datasets_without_cameras_are_read(tmp_path):
    dataset_v2(tmp_path, version="v2.0", video=False)
    assert lerobot_info(tmp_path).version == "2.0"
    assert [len(r.streams) for r in read_lerobot(tmp_path)] == [4, 4, 4]


def test_chosen_episodes_come_in_the_order_asked(tmp_path):
    dataset_v3(tmp_path)
    assert [r.id for r in read_lerobot(tmp_path, [3, 0])] == ["episode_000003", "episode_000000"]
    with pytest.raises(StoreError, match=r"no episode 9\. It has '0', '1', '2', '3'"):
        read_lerobot(tmp_path, [9])


def test_info_says_what_the_dataset_claims(tmp_path):
    info = lerobot_info(dataset_v3(tmp_path))
    assert (info.version, info.fps, info.episodes, info.frames) == ("3.0", FPS, 4, 30)
    assert (info.tasks, info.robot, info.chunks_size) == (2, "so101", 1000)
    camera = info.features[-1]
    assert (camera.name, camera.dtype, camera.shape, camera.is_camera) == (
        CAMERA,
        "video",
        (24, 32, 3),
        True,
    )


def test_names_are_found_however_they_are_nested(tmp_path):
    dataset_v3(tmp_path, films=())
    for names in (LABELS, {"axes": LABELS}, {n: i for i, n in enumerate(LABELS)}, [LABELS]):
        edit_info(tmp_path, lambda r, n=names: r["features"]["observation.state"].update(names=n))
        assert next(read_lerobot(tmp_path))["observation.state"].labels == tuple(LABELS)


def test_matrices_and_named_scalars_keep_their_shape(tmp_path):
    dataset_v3(tmp_path, (4,), ((0,),), ())
    pose = np.arange(4 * 6, dtype=np.float64).reshape(4, 2, 3)
    nested = pa.array(pose.tolist(), pa.list_(pa.list_(pa.float64(), 3), 2))
    edit_data(tmp_path, lambda t: t.append_column("pose", nested))
    edit_info(tmp_path, lambda r: r["features"].update(pose=feature(shape=[2, 3])))
    edit_info(tmp_path, lambda r: r["features"]["next.reward"].update(names=["reward"]))
    (recording,) = read_lerobot(tmp_path)
    np.testing.assert_array_equal(recording["pose"].values, pose)
    assert recording["next.reward"].labels == ("reward",)
    assert recording["next.reward"].values.shape == (4, 1)
    assert recording.notes == ()


def png(image):
    height, width, _ = image.shape
    body = b"".join(b"\0" + row.tobytes() for row in image)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(body)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def with_pictures(folder, cells):
    dataset_v3(folder, (4, 3), ((0, 1),), ())
    column = pa.array([{"bytes": c, "path": None} for c in cells])
    edit_data(folder, lambda t: t.append_column("observation.image", column))
    edit_info(
        folder,
        lambda r: r["features"].update(
            {"observation.image": {"dtype": "image", "shape": [24, 32, 3], "names": None}}
        ),
    )
    return folder


def test_pictures_inside_parquet_are_decoded_exactly(tmp_path):
    with_pictures(tmp_path, [png(picture(0, i)) for i in range(7)])
    _, second = read_lerobot(tmp_path)
    stream = second["observation.image"]
    assert stream.values.tolist() == [4, 5, 6]
    (image,) = stream_frames(tmp_path, stream, [1])
    np.testing.assert_array_equal(image, picture(0, 5))


def test_damaged_and_huge_pictures_inside_parquet_are_named(tmp_path):
    huge = bytearray(png(picture(0, 0)))
    huge[16:24] = struct.pack(">II", 60000, 60000)
    with_pictures(tmp_path, [png(picture(0, 0))[:60], b"GIF89a", bytes(huge), None] + [b""] * 3)
    stream = next(read_lerobot(tmp_path))["observation.image"]
    for row, words in ((0, "damaged"), (1, "no PNG"), (2, "damaged or has more"), (3, "no PNG")):
        with pytest.raises(StoreError, match=rf"row {row} of 'observation\.image'.*{words}"):
            list(stream_frames(tmp_path, stream, [row]))


# ---- clock --------------------------------------------------------------------------------


def test_single_precision_is_undone_only_where_it_is_the_reason():
    frames = np.arange(5000.0)
    exact, notes = row_clock((frames / 30).astype(np.float32), frames, 30)
    np.testing.assert_array_equal(exact, frames / 30)
    assert notes == ()
    shaken = frames / 30 + np.random.default_rng(0).normal(0, 1e-3, 5000)
    shaken[0] = 0
    measured, notes = row_clock(shaken, frames, 30)
    np.testing.assert_array_equal(measured, shaken)
    assert notes == ()


# ---- mended and said ----------------------------------------------------------------------


def ragged(folder):
    lists = [[1.0] * (1 + i % 2) for i in range(24)]
    edit_data(
        folder,
        lambda t: t.set_column(t.schema.get_field_index("action"), "action", pa.array(lists)),
    )


def short_film(folder):
    (folder / f"videos/{CAMERA}/chunk-000/file-000.mp4").unlink()
    film(folder / f"videos/{CAMERA}/chunk-000/file-000.mp4", [0], [5])


def cut_film(folder):
    path = folder / f"videos/{CAMERA}/chunk-000/file-000.mp4"
    path.write_bytes(path.read_bytes()[:400])


def odd_codec(folder):
    path = folder / f"videos/{CAMERA}/chunk-000/file-000.mp4"
    content = path.read_bytes()
    place = content.index(b"avc1", content.index(b"stsd"))
    path.write_bytes(content[:place] + b"zzzz" + content[place + 4 :])


def text_feature(folder):
    edit_data(folder, lambda t: t.append_column("note", pa.array(["hello"] * len(t))))
    edit_info(folder, lambda r: r["features"].update(note=feature("string")))


STATE = "observation.state"
MENDED = {
    "stamps do not restart": (
        replaced("timestamp", lambda t: t + np.float32(3)),
        "Stamps begin at 3 s instead of 0; they were shifted",
    ),
    "stamps go back": (
        replaced("timestamp", lambda t: np.where(np.arange(len(t)) == 4, 0, t)),
        "Stamps do not increase at row 4 (0.15 s, then 0 s); times are frame numbers over fps",
    ),
    "stamps NaN": (
        replaced("timestamp", lambda t: np.where(np.arange(len(t)) == 4, np.nan, t)),
        "1 stamps are null, NaN or infinite; times are frame numbers over fps",
    ),
    "stamps jump": (
        replaced("timestamp", lambda t: t + np.where(np.arange(len(t)) > 4, 2, 0)),
        "Stamps jump 1 time(s), first from 0.2 s to 2.25 s at 20 rows a second",
    ),
    "no stamps": (dropped("timestamp"), "There is no usable column 'timestamp'"),
    "no frame numbers": (
        dropped("frame_index"),
        "There is no usable column 'frame_index'; rows were counted",
    ),
    "frame numbers stand still": (
        replaced("frame_index", lambda f: 0 * f),
        "The column 'frame_index' does not increase",
    ),
    "rows miscounted": (
        lambda f: edit_episodes(f, lambda rows: set_row(rows, 0, length=12)),
        "The tables claim 12 rows, 'data/chunk-000/file-000.parquet' holds 9",
    ),
    "wrong totals": (
        lambda f: edit_info(f, lambda r: r.update(total_episodes=7, total_frames=99)),
        "The file info.json claims 7 episodes, the tables list 4",
    ),
    "wrong number of rows": (
        lambda f: edit_info(f, lambda r: r.update(total_frames=99)),
        "The file info.json claims 99 rows, the tables list 30",
    ),
    "holes in the indices": (
        lambda f: edit_episodes(f, lambda rows: [rows[0], rows[2]]),
        "Episode indices have holes: 2 episodes up to index 2",
    ),
    "no table of tasks": (
        lambda f: (f / "meta/tasks.parquet").unlink(),
        "The dataset has no table of tasks",
    ),
    "an unknown task": (
        replaced("task_index", lambda t: t + 7),
        "The task_index 7 is not in the table of tasks",
    ),
    "shape is a lie": (
        lambda f: edit_info(f, lambda r: r["features"][STATE].update(shape=[7])),
        "Feature 'observation.state' claims the shape (7,), its samples have (3,)",
    ),
    "names do not fit": (
        lambda f: edit_info(f, lambda r: r["features"][STATE].update(names=["a", "b"])),
        "Feature 'observation.state' has 2 names for samples of shape (3,)",
    ),
    "lists of several lengths": (
        ragged,
        "double> is no array of numbers of one shape",
    ),
    "a feature without column": (dropped("action"), "'action' was left out: 'data/chunk-000"),
    "text": (text_feature, "'note' was left out: it holds text"),
    "NaN in numbers": (
        replaced("next.reward", lambda v: np.where(v == 2, np.nan, v)),
        "Feature 'next.reward' holds 1 null, NaN or infinite numbers",
    ),
    "no video": (
        lambda f: (f / f"videos/{CAMERA}/chunk-000/file-000.mp4").unlink(),
        f"'{CAMERA}' was left out: The video '",
    ),
    "cut video": (cut_film, "is damaged or no video file that is read"),
    "odd codec": (odd_codec, "is coded in a way that no decoder here reads"),
    "short video": (short_film, f"'{CAMERA}': 4 of 9 rows have no frame in 'videos/{CAMERA}/chunk"),
    "sizes of a camera": (
        lambda f: edit_info(f, lambda r: r["features"][CAMERA].update(shape=[480, 640, 3])),
        f"Camera '{CAMERA}' claims the shape (480, 640, 3), 'file-000.mp4' has 24x32 pixels",
    ),
    "no template of videos": (
        lambda f: edit_info(f, lambda r: r.update(video_path=None)),
        "The file info.json has cameras but no video_path",
    ),
}


@pytest.mark.parametrize("kind", MENDED)
def test_what_can_be_mended_is_mended_and_said(tmp_path, kind):
    damage, words = MENDED[kind]
    damage(dataset_v3(tmp_path))
    recording = next(read_lerobot(tmp_path))
    assert any(words in note for note in recording.notes), recording.notes
    assert len(recording[STATE].time) == 9
    assert (np.diff(recording[STATE].time) > 0).all() and recording[STATE].time[0] == 0
    np.testing.assert_array_equal(recording[STATE].values, numbers(0, 9)[0])


def test_rows_are_found_by_their_episode_not_by_claimed_ranges(tmp_path):
    dataset_v3(tmp_path)
    edit_episodes(
        tmp_path, lambda rows: set_row(rows, 1, dataset_from_index=900, dataset_to_index=3)
    )
    edit_data(
        tmp_path,
        lambda t: t.take(pa.array(np.argsort(-t["episode_index"].to_numpy(), kind="stable"))),
    )
    for e, recording in enumerate(read_lerobot(tmp_path, [0, 1, 2])):
        np.testing.assert_array_equal(recording[STATE].values, numbers(e, (9, 7, 8)[e])[0])


def test_rows_in_several_row_groups_are_put_together(tmp_path):
    dataset_v3(tmp_path)
    path = tmp_path / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=4)
    for e, recording in enumerate(read_lerobot(tmp_path)):
        np.testing.assert_array_equal(recording[STATE].values, numbers(e, (9, 7, 8, 6)[e])[0])


def test_links_as_the_hub_makes_them_are_followed(tmp_path):
    dataset_v3(tmp_path / "blobs")
    (tmp_path / "snapshot").mkdir()
    for name in ("meta", "data", "videos"):
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / name)
    assert len(list(read_lerobot(tmp_path / "snapshot"))) == 4
