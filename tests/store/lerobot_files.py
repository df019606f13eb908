"""Small LeRobot datasets, written straight from the description of the format."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sameworld.store.video_encoding import encode_video

FPS = 20
SIZE = (24, 32)
LABELS = ["shoulder.pos", "elbow.pos", "grip.pos"]
CAMERA = "observation.images.top"


def numbers(episode, rows):
    """State and action of an episode."""
    rng = np.random.default_rng(episode)
    return (
        rng.normal(size=(rows, 3)).astype(np.float32),
        rng.normal(size=(rows, 2)).astype(np.float32),
    )


def picture(episode, row):
    """A flat image whose grey says which row it is."""
    return np.full((*SIZE, 3), 20 + 8 * row + episode, np.uint8)


def table(episode, rows, first):
    state, action = numbers(episode, rows)
    return pa.table(
        {
            "observation.state": pa.array(list(state), pa.list_(pa.float32(), 3)),
            "action": pa.array(list(action), pa.list_(pa.float32())),
            "next.reward": pa.array(np.arange(rows, dtype=np.float32)),
            "next.done": pa.array(np.arange(rows) == rows - 1),
            "timestamp": pa.array((np.arange(rows) / FPS).astype(np.float32)),
            "frame_index": pa.array(np.arange(rows)),
            "episode_index": pa.array(np.full(rows, episode)),
            "index": pa.array(first + np.arange(rows)),
            "task_index": pa.array(np.full(rows, episode % 2)),
        }
    )


def info(version, lengths, video):
    new = version == "v3.0"
    features = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": {"motors": LABELS}},
        "action": {"dtype": "float32", "shape": [2], "names": ["a", "b"]},
        "next.reward": {"dtype": "float32", "shape": [1], "names": None},
        "next.done": {"dtype": "bool", "shape": [1], "names": None},
    }
    if video:
        features[CAMERA] = {
            "dtype": "video",
            "shape": [*SIZE, 3],
            "names": ["height", "width", "channels"],
        }
    for name in ("frame_index", "episode_index", "index", "task_index"):
        features[name] = {"dtype": "int64", "shape": [1], "names": None}
    features["timestamp"] = {"dtype": "float32", "shape": [1], "names": None}
    path = "chunk-{chunk_index:03d}/file-{file_index:03d}"
    old = "chunk-{episode_chunk:03d}"
    return {
        "codebase_version": version,
        "robot_type": "so101",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 2,
        "chunks_size": 1000,
        "fps": FPS,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": f"data/{path}.parquet"
        if new
        else f"data/{old}/episode_{{episode_index:06d}}.parquet",
        "video_path": (
            f"videos/{{video_key}}/{path}.mp4"
            if new
            else f"videos/{old}/{{video_key}}/episode_{{episode_index:06d}}.mp4"
        ),
        "features": features,
    }


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_text(json.dumps(content) if isinstance(content, dict) else content)


def film(path, episodes, lengths):
    path.parent.mkdir(parents=True, exist_ok=True)
    images = [picture(e, row) for e in episodes for row in range(lengths[e])]
    encode_video(path, images, np.arange(len(images)) / FPS)


def dataset_v3(folder: Path, lengths=(9, 7, 8, 6), files=((0, 1, 2), (3,)), films=((0, 1), (2, 3))):
    """Several episodes in a data file, and in a video file, which part otherwise."""
    write(folder / "meta/info.json", info("v3.0", lengths, bool(films)))
    tasks = pa.table({"task_index": [0, 1], "__index_level_0__": ["push", "pull"]})
    write(folder / "meta/tasks.parquet", tasks)
    first = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    rows = {e: {"episode_index": e, "length": n} for e, n in enumerate(lengths)}
    for number, members in enumerate(files):
        parts = [table(e, lengths[e], first[e]) for e in members]
        write(folder / f"data/chunk-000/file-{number:03d}.parquet", pa.concat_tables(parts))
        for e in members:
            rows[e] |= {"tasks": [["push", "pull"][e % 2]]}
            rows[e] |= {"data/chunk_index": 0, "data/file_index": number}
            rows[e] |= {"dataset_from_index": first[e], "dataset_to_index": first[e + 1]}
    for number, members in enumerate(films):
        film(folder / f"videos/{CAMERA}/chunk-000/file-{number:03d}.mp4", members, lengths)
        begin = 0
        for e in members:
            rows[e] |= {f"videos/{CAMERA}/chunk_index": 0, f"videos/{CAMERA}/file_index": number}
            rows[e] |= {f"videos/{CAMERA}/from_timestamp": begin / FPS}
            begin += lengths[e]
            rows[e] |= {f"videos/{CAMERA}/to_timestamp": begin / FPS}
    write(
        folder / "meta/episodes/chunk-000/file-000.parquet",
        pa.Table.from_pylist(list(rows.values())),
    )
    return folder


def dataset_v2(folder: Path, lengths=(9, 7, 8), version="v2.1", video=True):
    """One data file and one video file per episode."""
    write(folder / "meta/info.json", info(version, lengths, video))
    tasks = [{"task_index": 0, "task": "push"}, {"task_index": 1, "task": "pull"}]
    write(folder / "meta/tasks.jsonl", "".join(json.dumps(t) + "\n" for t in tasks))
    lines, first = [], 0
    for e, n in enumerate(lengths):
        lines.append({"episode_index": e, "tasks": [["push", "pull"][e % 2]], "length": n})
        write(folder / f"data/chunk-000/episode_{e:06d}.parquet", table(e, n, first))
        if video:
            film(folder / f"videos/chunk-000/{CAMERA}/episode_{e:06d}.mp4", [e], lengths)
        first += n
    write(folder / "meta/episodes.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return folder


# ---- damage --------------------------------------------------------------------------


def edit_info(folder, change):
    path = folder / "meta/info.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def edit(path, change):
    pq.write_table(change(pq.read_table(path)), path)


def edit_data(folder, change):
    edit(folder / "data/chunk-000/file-000.parquet", change)


def edit_episodes(folder, change):
    """Change rows of the table of episodes."""
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    rows = pq.read_table(path).to_pylist()
    rows = change(rows) or rows
    pq.write_table(pa.Table.from_pylist(rows), path)


def feature(dtype="float32", shape=(1,), names=None):
    return {"dtype": dtype, "shape": list(shape), "names": names}


def replaced(name, make):
    """Replace a column of the first data file, given its rows as numpy."""

    def change(table):
        old = table.column(name).to_numpy()
        return table.set_column(table.schema.get_field_index(name), name, pa.array(make(old)))

    return lambda folder: edit_data(folder, change)


def dropped(name):
    return lambda folder: edit_data(folder, lambda t: t.drop_columns([name]))


def set_row(rows, number, **fields):
    rows[number].update(fields)


def truncated(name):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def rewrite(name, text):
    return lambda folder: (folder / name).write_text(text)
