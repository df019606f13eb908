"""Episodes are written and read one at a time; killed writers leave a readable store."""

import os
import signal
import subprocess
import sys
import time as clock

import numpy as np
import pytest

from sameworld.core import Channel, Episode, StoreError
from sameworld.store import (
    episode_ids,
    episode_videos,
    iterate_episodes,
    load_episodes,
    save_episodes,
    stream_frames,
)
from sameworld.store.channel_files import ChannelReader

MANY = """
import resource, sys
import numpy as np
from sameworld.core import Channel, Episode
from sameworld.store import iterate_episodes, save_episodes

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def episodes(count):
    for i in range(count):
        rng = np.random.default_rng(i)
        time = np.arange(2000) / 100
        yield Episode(
            id=f"{i:05d}",
            channels=(
                Channel(name="wide", time=time, values=rng.normal(size=(2000, 40))),
                Channel(name="narrow", time=time[::10], values=rng.normal(size=200)),
            ),
        )

folder, count = sys.argv[1], int(sys.argv[2])
save_episodes(episodes(4), folder + "/warm")
assert sum(1 for _ in iterate_episodes(folder + "/warm")) == 4
before = peak()
save_episodes(episodes(count), folder + "/many")
wrote = peak()
assert sum(len(e["wide"]) for e in iterate_episodes(folder + "/many")) == 2000 * count
print(wrote - before, peak() - wrote)
"""


def grown(folder, count):
    """Growth of the largest memory while writing and while reading [MB]."""
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(folder), str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_episodes(tmp_path):
    few, many = grown(tmp_path / "few", 20), grown(tmp_path / "many", 200)
    more = 180 * 2000 * 40 * 8 / 2**20  # MB in the samples of 180 episodes
    assert more > 100
    assert many[0] - few[0] < 0.2 * more, (few, many)
    assert many[1] - few[1] < 0.2 * more, (few, many)


def small(name, seed=0, rows=30):
    rng = np.random.default_rng(seed)
    return Episode(
        id=name,
        channels=(
            Channel(name="x", time=np.arange(rows) / 10, values=rng.normal(size=(rows, 3))),
            Channel(name="u", time=[0.0], values=[float(seed)], role="action"),
        ),
    )


def test_a_generator_is_taken_one_episode_at_a_time(tmp_path):
    alive = []

    def episodes():
        for i in range(5):
            alive.append(i)
            yield small(str(i), i)

    save_episodes(episodes(), tmp_path)
    assert episode_ids(tmp_path) == ("0", "1", "2", "3", "4") and alive == [0, 1, 2, 3, 4]
    for i, episode in enumerate(iterate_episodes(tmp_path)):
        np.testing.assert_array_equal(episode["x"].values, small(str(i), i)["x"].values)


def test_an_error_of_the_generator_is_its_own_and_leaves_the_store_as_it_was(tmp_path):
    def broken():
        yield small("a")
        raise ValueError("the camera fell over")

    with pytest.raises(ValueError, match="the camera fell over"):
        save_episodes(broken(), tmp_path / "store")
    assert not (tmp_path / "store").exists()
    save_episodes([small("b")], tmp_path / "store")
    before = sorted(p.name for p in (tmp_path / "store").rglob("*"))
    with pytest.raises(ValueError, match="the camera fell over"):
        save_episodes(broken(), tmp_path / "store")
    assert sorted(p.name for p in (tmp_path / "store").rglob("*")) == before
    assert episode_ids(tmp_path / "store") == ("b",)


def test_a_store_may_be_copied_while_it_is_read(tmp_path):
    save_episodes((small(str(i), i) for i in range(20)), tmp_path / "one")
    save_episodes(iterate_episodes(tmp_path / "one"), tmp_path / "two")
    for a, b in zip(
        iterate_episodes(tmp_path / "one"), iterate_episodes(tmp_path / "two"), strict=True
    ):
        assert a.id == b.id and a["x"].values.tobytes() == b["x"].values.tobytes()


def test_many_appends_do_not_keep_their_files_open(tmp_path, monkeypatch):
    monkeypatch.setattr("sameworld.store.channel_files._FILES", 4)
    monkeypatch.setattr("sameworld.store.channel_files._KEPT", 1)
    for i in range(12):
        save_episodes([small(str(i), i)], tmp_path)
    opened = []
    original = ChannelReader._file

    def counted(self, path, name):
        found = original(self, path, name)
        opened.append(len(self._open))
        return found

    monkeypatch.setattr(ChannelReader, "_file", counted)
    order = [str(i) for i in np.random.default_rng(0).permutation(12)]
    for name, episode in zip(order, iterate_episodes(tmp_path, order), strict=True):
        np.testing.assert_array_equal(episode["x"].values, small(name, int(name))["x"].values)
    assert max(opened) == 4


def test_one_long_episode_spans_row_groups_of_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr("sameworld.store.channel_files._GROUP", 3000)
    episodes = [small(str(i), i, rows) for i, rows in enumerate((700, 2500, 2, 5000, 1023, 1024))]
    save_episodes(episodes, tmp_path)
    for a, b in zip(episodes, load_episodes(tmp_path), strict=True):
        assert a["x"].values.tobytes() == b["x"].values.tobytes()


def test_a_store_that_changes_while_it_is_read_is_noticed(tmp_path):
    save_episodes([small("a"), small("b", 1)], tmp_path)
    reading = iterate_episodes(tmp_path)
    index = (tmp_path / "episodes.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "episodes.jsonl").write_text("".join(reversed(index)))
    with pytest.raises(StoreError, match="changed while episodes were read"):
        next(reading)


APPENDER = """
import sys
import numpy as np
from sameworld.core import Channel, Episode
from sameworld.store import save_episodes, save_video

folder, first = sys.argv[1], int(sys.argv[2])
for i in range(first, first + 100000):
    rng = np.random.default_rng(i)
    x = Channel(name="x", time=np.arange(500) / 10, values=rng.normal(size=(500, 3)))
    save_episodes([Episode(id=str(i), channels=(x,))], folder)
    images = [np.full((16, 16, 3), i % 256, np.uint8)] * 3
    save_video(folder, str(i), "top", images, [0.0, 0.1, 0.2])
    print(i, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.011, 0.023])
def test_a_writer_killed_between_or_within_appends_leaves_every_finished_episode(tmp_path, delay):
    finished: list[str] = []
    for round_ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(tmp_path / "store"), str(1000 * round_)],
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            finished += [child.stdout.readline().strip() for _ in range(3 + 2 * round_)]
            clock.sleep(delay)
            os.kill(child.pid, signal.SIGKILL)
            finished += [line.strip() for line in child.stdout]
        assert set(finished) <= set(episode_ids(tmp_path / "store"))
        for episode in iterate_episodes(tmp_path / "store"):
            truth = np.random.default_rng(int(episode.id)).normal(size=(500, 3))
            assert episode["x"].values.tobytes() == truth.tobytes()
        for name in finished:
            (top,) = episode_videos(tmp_path / "store", name)
            assert len(list(stream_frames(tmp_path / "store", top))) == 3
    save_episodes([small("after")], tmp_path / "store")
    assert episode_ids(tmp_path / "store")[-1] == "after"


def test_what_a_writer_killed_at_its_first_episode_leaves_is_no_foreign_folder(tmp_path):
    (tmp_path / ".0123456789abcdef.tmp").write_bytes(b"half an index")
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / ".0123456789abcdef.tmp").write_bytes(b"half a channel")
    save_episodes([small("a")], tmp_path)
    assert episode_ids(tmp_path) == ("a",)
