"""LeRobot datasets that cannot be read are refused with their file and what is wrong."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lerobot_files import (
    CAMERA,
    dataset_v2,
    dataset_v3,
    dropped,
    edit_episodes,
    edit_info,
    feature,
    replaced,
    rewrite,
    truncated,
    write,
)

from sameworld.core import StoreError
from sameworld.store import read_lerobot

STATE = "observation.state"


def set_info(**fields):
    return lambda folder: edit_info(folder, lambda r: r.update(fields))


def set_feature(**fields):
    return lambda folder: edit_info(folder, lambda r: r["features"][STATE].update(fields))


DATA = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
REFUSED = {
    "no info": (lambda f: (f / "meta/info.json").unlink(), "has no 'meta/info.json'"),
    "info is no JSON": (rewrite("meta/info.json", "{fps: 30}"), "info.json' is not JSON"),
    "info is empty": (rewrite("meta/info.json", ""), "info.json' is not JSON"),
    "info is a list": (rewrite("meta/info.json", "[]"), "must hold a JSON object, got list"),
    "another version": (set_info(codebase_version="v1.6"), "codebase_version 'v1.6'.*2.0, 2.1 and"),
    "no version": (set_info(codebase_version=None), "codebase_version None"),
    "fps 0": (set_info(fps=0), "fps = 0; it must be a positive number"),
    "fps negative": (set_info(fps=-30), "fps = -30"),
    "fps text": (set_info(fps="30"), "fps = '30'"),
    "fps true": (set_info(fps=True), "fps = True"),
    "fps NaN": (set_info(fps=float("nan")), "info.json' holds NaN"),
    "fps huge": (set_info(fps=1e300), r"fps = 1e\+300"),
    "no features": (set_info(features={}), "under 'features'"),
    "feature without dtype": (set_feature(dtype=3), "'observation.state' has no dtype"),
    "negative shape": (set_feature(shape=[-1]), r"'observation.state' has the shape \[-1\]"),
    "shape text": (set_feature(shape="3"), "has the shape '3'"),
    "count text": (set_info(total_episodes="4"), "total_episodes = '4'"),
    "template leads up": (
        set_info(data_path="../../{chunk_index}/{file_index}.parquet"),
        r"data_path leads to '\.\./\.\./.*outside the dataset",
    ),
    "template is absolute": (set_info(data_path="/etc/passwd"), "leads to '/etc/passwd'"),
    "template of another drive": (set_info(data_path="C:/x.parquet"), "outside the dataset"),
    "template reads attributes": (
        set_info(data_path="{file_index.__class__}"),
        "asks for 'file_index.__class__'",
    ),
    "template asks for more": (
        set_info(video_path="{video_keys}/{file_index}.mp4"),
        "asks for 'video_keys'.*Did you mean 'video_key'",
    ),
    "template of a gigabyte": (
        set_info(data_path="{file_index:01000000000d}"),
        "formats 'file_index' in an odd way",
    ),
    "template is broken": (set_info(data_path="data/{file_index"), "is no template"),
    "camera leads up": (
        lambda f: (
            edit_info(
                f, lambda r: r["features"].update({"../../../x": feature("video", (24, 32, 3))})
            )
            or edit_episodes(
                f,
                lambda rows: [
                    row
                    | {f"videos/../../../x/{k}": 0 for k in ("chunk_index", "file_index")}
                    | {"videos/../../../x/from_timestamp": 0.0}
                    for row in rows
                ],
            )
        ),
        "video_path leads to 'videos/../../../x/chunk-000/file-000.mp4'",
    ),
    "cut data": (truncated(DATA), "file-000.parquet' is damaged"),
    "no data": (lambda f: (f / DATA).unlink(), f"{DATA}' is missing"),
    "data of other episodes": (
        replaced("episode_index", lambda e: e + 40),
        "has no row of episode 0; it has '40', '41', '42'",
    ),
    "no column of episodes": (dropped("episode_index"), "has no column 'episode_index'"),
    "cut table of episodes": (truncated(EPISODES), "file-000.parquet' is damaged"),
    "no table of episodes": (
        lambda f: (f / EPISODES).unlink(),
        "meta/episodes' holds no table of episodes",
    ),
    "episode twice": (
        lambda f: edit_episodes(f, lambda rows: [*rows, rows[1]]),
        "lists episode 1 a second time",
    ),
    "negative place": (
        lambda f: edit_episodes(f, lambda rows: [r | {"data/file_index": -1} for r in rows]),
        "data/file_index = -1; it must be a count",
    ),
    "index of an episode is text": (
        lambda f: edit_episodes(f, lambda rows: [r | {"episode_index": "0"} for r in rows]),
        "episode_index = '0'",
    ),
    "begin of a video NaN": (
        lambda f: edit_episodes(
            f, lambda rows: [r | {f"videos/{CAMERA}/from_timestamp": float("nan")} for r in rows]
        ),
        "episode 0 begins at nan",
    ),
    "cut table of tasks": (truncated("meta/tasks.parquet"), "tasks.parquet' is damaged"),
    "tasks without text": (
        lambda f: write(f / "meta/tasks.parquet", pa.table({"task_index": [0]})),
        "no columns of task texts",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_mended_is_refused_with_its_file(tmp_path, kind):
    damage, words = REFUSED[kind]
    damage(dataset_v3(tmp_path))
    with pytest.raises(StoreError, match=words):
        list(read_lerobot(tmp_path))


OLD = {
    "cut line": (
        rewrite("meta/episodes.jsonl", '{"episode_in'),
        "line 1' is not JSON",
    ),
    "a line of another kind": (rewrite("meta/episodes.jsonl", "3\n"), "line 1' must hold a JSON"),
    "no table": (lambda f: (f / "meta/episodes.jsonl").unlink(), "episodes.jsonl' does not exist"),
    "task twice as wrong": (
        rewrite("meta/tasks.jsonl", '{"task_index": "a", "task": 3}\n'),
        "a task has an index and text",
    ),
    "no data": (
        lambda f: (f / "data/chunk-000/episode_000001.parquet").unlink(),
        "episode_000001.parquet' is missing",
    ),
}


@pytest.mark.parametrize("kind", OLD)
def test_damage_of_old_datasets_is_named(tmp_path, kind):
    damage, words = OLD[kind]
    damage(dataset_v2(tmp_path))
    with pytest.raises(StoreError, match=words):
        list(read_lerobot(tmp_path))


def test_other_episodes_are_read_although_one_is_damaged(tmp_path):
    (dataset_v3(tmp_path) / DATA).unlink()
    assert [r.id for r in read_lerobot(tmp_path, [3])] == ["episode_000003"]


def test_tables_that_declare_more_than_the_limit_take_no_memory(tmp_path):
    dataset_v3(tmp_path, (5,), ((0,),), ())
    rows = 3_000_000  # run-length coded: a small file, a large table
    flat = pa.table(
        {n: pa.array(np.zeros(rows, np.int64)) for n in ("episode_index", "next.reward")}
    )
    pq.write_table(flat, tmp_path / DATA)
    assert (tmp_path / DATA).stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    with pytest.raises(StoreError, match=r"declares .* bytes, more than the limit of 10000000"):
        list(read_lerobot(tmp_path, limit=10_000_000))
    assert pa.total_allocated_bytes() - before < 1_000_000
    texts = pa.table({"task_index": np.arange(500), "task": ["x" * 100_000] * 500})
    pq.write_table(texts, tmp_path / "meta/tasks.parquet")
    with pytest.raises(StoreError, match=r"tasks\.parquet' declares .* more than the limit"):
        list(read_lerobot(tmp_path, limit=10_000_000))


FUZZ = """
import sys
from pathlib import Path
from sameworld.core import StoreError
from sameworld.store import read_lerobot

folder, refused = Path(sys.argv[1]), 0
path = folder / "data/chunk-000/file-000.parquet"
content = path.read_bytes()
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for place in range(footer, len(content), 11):
    path.write_bytes(content[:place] + bytes([content[place] ^ 0x2A]) + content[place + 1 :])
    try:
        next(read_lerobot(folder))
    except StoreError:
        refused += 1
print(refused)
"""


def test_a_damaged_footer_is_refused_or_harmless_but_never_ends_the_process(tmp_path):
    dataset_v3(tmp_path, (5,), ((0,),), ())
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
