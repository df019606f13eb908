"""Exports to one rate: nothing invented, every loss named and measured, whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time as clock

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lerobot_files import picture

from sameworld.core import Belief, Channel, Episode, EpisodeError, Parameter, StoreError
from sameworld.maths.rotations import angle_between
from sameworld.store import (
    episode_videos,
    lerobot_info,
    open_video,
    read_lerobot,
    save_episodes,
    save_video,
    stream_frames,
    write_lerobot,
)
from sameworld.store.lerobot import slowest_rate
from sameworld.store.lerobot.films import latest_rows
from sameworld.store.lerobot.resample import at_times, row_times, sample_errors


def episode(name="a", seed=0, extra=(), **fields):
    """Channels at 200, 100, 50 Hz, once; none of them on the clock of another."""
    rng = np.random.default_rng(seed)
    fast = np.cumsum(rng.uniform(0.004, 0.006, 300))
    turn = 0.012 + np.arange(140) / 100
    half = turn**2
    quaternion = np.stack([np.cos(half), 0 * half, np.sin(half), 0 * half], axis=1)
    quaternion[::7] *= -1
    held = np.arange(75) / 50
    return Episode(
        id=name,
        channels=(
            Channel(
                name="arm.pos",
                time=fast,
                values=np.stack([np.sin(3 * fast), np.cos(2 * fast)], 1),
                unit="rad",
                noise=0.01,
            ),
            Channel(name="cube.rot", time=turn, values=quaternion),
            Channel(
                name="motor", time=held, values=np.sign(np.sin(9 * held)), role="action", unit="V"
            ),
            Channel(name="enable", time=[0.0], values=[1.0], role="exogenous"),
            *extra,
        ),
        **fields,
    )


def three():
    return [episode(n, i) for i, n in enumerate("abc")]


# ---- rows ---------------------------------------------------------------------------------


def test_rows_lie_inside_the_span_in_which_everything_was_measured(tmp_path):
    write_lerobot(three(), tmp_path / "out", fps=30)
    for source, recording in zip(three(), read_lerobot(tmp_path / "out"), strict=True):
        begin = max(c.time[0] for c in source.channels)
        end = min(c.time[-1] for c in source.observations)
        rows = int(np.floor((end - begin) * 30)) + 1
        time = begin + np.arange(rows) / 30
        state = recording["observation.state"]
        assert state.labels[:3] == ("arm.pos[0]", "arm.pos[1]", "cube.rot[0]")
        np.testing.assert_array_equal(state.time, np.arange(rows) / 30)
        for column in range(2):  # slow twin: numpy's own interpolation of one component
            expected = np.interp(time, source["arm.pos"].time, source["arm.pos"].values[:, column])
            np.testing.assert_allclose(state.values[:, column], expected, atol=1e-7)
        motor = [source["motor"].values[source["motor"].time <= t + 1e-9][-1] for t in time]
        np.testing.assert_array_equal(recording["action"].values[:, 0], motor)
        assert recording["action"].labels == ("motor",)
        np.testing.assert_array_equal(recording["observation.exogenous"].values[:, 0], 1.0)


def test_quaternions_whose_sign_jumps_are_interpolated_along_the_rotation(tmp_path):
    report = write_lerobot(three(), tmp_path / "out", fps=30)
    recording = next(read_lerobot(tmp_path / "out"))
    found = recording["observation.state"].values[:, 2:].astype(float)
    time = recording["observation.state"].time + max(c.time[0] for c in three()[0].channels)
    half = time**2
    truth = np.stack([np.cos(half), 0 * half, np.sin(half), 0 * half], axis=1)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert angle_between(truth, found).max() < 1e-4
    assert report["cube.rot"].largest < 2e-3


@given(
    stamps=st.lists(st.floats(0.001, 0.3), min_size=2, max_size=30),
    fps=st.integers(1, 200),
    offset=st.floats(-5, 5),
)
@settings(deadline=None, max_examples=60)
def test_no_row_lies_outside_what_was_measured(stamps, fps, offset):
    time = offset + np.cumsum(stamps)
    channel = Channel(name="x", time=time, values=time)
    rows = row_times("e", [channel], [], fps)
    assert rows[0] >= time[0] and rows[-1] <= time[-1] + 2e-6 / fps + 1e-9
    assert rows[-1] + 1 / fps > time[-1] - 2e-6
    values = at_times(channel, rows)
    assert (values >= time[0] - 1e-9).all() and (values <= time[-1] + 1e-9).all()
    np.testing.assert_allclose(values, np.minimum(rows, time[-1]), atol=1e-9)


def test_channels_that_never_overlap_are_named(tmp_path):
    late = Channel(name="late", time=[7.0, 8.0], values=[0, 0])
    with pytest.raises(StoreError, match=r"'a': 'cube.rot' ends at 1.402 s, before 'late' begins"):
        write_lerobot([episode(extra=(late,))], tmp_path / "out", fps=10)
    assert list(tmp_path.iterdir()) == []


# ---- losses -------------------------------------------------------------------------------


def test_the_reported_error_is_the_one_found_by_comparing_by_hand(tmp_path):
    report = write_lerobot(three(), tmp_path / "out", fps=20)
    errors, squares = [], []
    for source, recording in zip(three(), read_lerobot(tmp_path / "out"), strict=True):
        begin = max(c.time[0] for c in source.channels)
        rows = recording["observation.state"].time + begin
        arm = source["arm.pos"]
        inside = (arm.time >= rows[0]) & (arm.time <= rows[-1])
        columns = [
            np.interp(arm.time[inside], rows, recording["observation.state"].values[:, c])
            for c in range(2)
        ]
        gap = np.abs(np.stack(columns, 1) - arm.values[inside]).max(axis=1)
        errors.append(gap.max())
        squares += list(gap**2)
    assert report["arm.pos"].largest == pytest.approx(max(errors), rel=1e-6)
    assert report["arm.pos"].rms == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-6)


def test_the_error_of_interpolation_is_what_theory_says_of_the_rate(tmp_path):
    for fps in (100, 20, 4):
        loss = write_lerobot(three(), tmp_path / str(fps), fps=fps)["arm.pos"]
        bound = 9 / (8 * fps**2)  # of sin(3 t): step squared over 8, times the second derivative
        own = 9 / (8 * 167**2)  # the samples are interpolated to the rows first
        assert 0.5 * bound < loss.largest < bound + own
        assert loss.rate == pytest.approx(200, rel=0.05)


def test_an_action_that_changes_between_rows_is_wrong_by_its_whole_step(tmp_path):
    report = write_lerobot(three(), tmp_path / "out", fps=20)
    assert (report["motor"].largest, report["motor"].method) == (2.0, "held")


def test_everything_without_a_place_is_named(tmp_path):
    start = Belief(
        parameters=(Parameter(name="start:cube.z", value=0.1, std=0.1, scope="episode"),)
    )
    extra = (Channel(name="lone", time=[0, 1], values=[0, 1]),)
    first = episode("a", extra=extra, start=start, scene="s", session_id="monday")
    other = episode("b", 1)
    report = write_lerobot([first, other], tmp_path / "out", fps=25)
    assert report["lone"].reason == "only 1 of 2 episodes have it"
    text = report.text()
    for words in (
        "2 episode(s), 70 rows at 25 a second",
        "arm.pos (observation): 198.4 Hz to",
        "25 Hz, interpolated, as observation.state; error at most",
        "motor (action): 50 Hz to 25 Hz, held, as action",
        "enable (exogenous): a single sample to 25 Hz",
        "lone (observation): dropped, only 1 of 2 episodes have it.",
        "Units are not kept",
        "noise of 'arm.pos'",
        "'cube.rot' hold unit quaternions",
        "The start beliefs of 1 episode(s)",
        "The scene ids of 1 episode(s)",
        "The session ids of 1 episode(s)",
        "Sources (real)",
    ):
        assert words in text
    assert (tmp_path / "out/meta/loss_report.txt").read_text() == text
    stored = json.loads((tmp_path / "out/meta/loss_report.json").read_text())
    assert stored == json.loads(json.dumps(report.to_json()))
    assert stored["episodes"] == ["a", "b"]


def test_time_cut_off_and_gaps_are_measured(tmp_path):
    time = np.concatenate([np.arange(0, 1, 0.01), np.arange(1.5, 2, 0.01)])
    late = Channel(name="late", time=np.arange(0.25, 1.75, 0.01), values=np.ones(150))
    source = Episode(id="e", channels=(Channel(name="x", time=time, values=time), late))
    report = write_lerobot([source], tmp_path / "out", fps=10)
    assert report["x"].gap == pytest.approx(0.51)
    assert report["x"].cut == pytest.approx(0.25 + 1.99 - 1.65)
    assert (report["late"].gap, report["late"].cut) == (0, pytest.approx(0.09))
    assert "longest gap 0.51 s" in report.text()


def test_roles_and_shapes_that_differ_are_dropped(tmp_path):
    def one(name, width, role):
        time = np.arange(10) / 10
        return Episode(
            id=name,
            channels=(
                Channel(name="x", time=time, values=time),
                Channel(name="wide", time=time, values=np.ones((10, width))),
                Channel(name="role", time=time, values=time, role=role),
                Channel(name="empty", time=time, values=np.ones((10, 0))),
            ),
        )

    report = write_lerobot(
        [one("a", 2, "action"), one("b", 3, "exogenous")], tmp_path / "out", fps=10
    )
    assert {c.name: c.reason for c in report.channels} == {
        "x": "",
        "wide": "its shape differs between episodes",
        "role": "its role differs between episodes",
        "empty": "its samples are empty",
    }
    assert "has no feature 'action'" in report.text()


# ---- files --------------------------------------------------------------------------------


def test_exporting_an_export_again_changes_nothing(tmp_path):
    write_lerobot(three(), tmp_path / "one", fps=30, task="push")
    again = [
        Episode(
            id=r.id,
            channels=(
                Channel(
                    name="s",
                    time=r["observation.state"].time,
                    values=r["observation.state"].values,
                ),
                Channel(name="a", time=r["action"].time, values=r["action"].values, role="action"),
                Channel(
                    name="x",
                    time=r["observation.exogenous"].time,
                    values=r["observation.exogenous"].values,
                    role="exogenous",
                ),
            ),
        )
        for r in read_lerobot(tmp_path / "one")
    ]
    report = write_lerobot(again, tmp_path / "two", fps=30, task="push")
    assert max(c.largest for c in report.channels) == 0
    place = "data/chunk-000/file-000.parquet"
    one, two = pq.read_table(tmp_path / "one" / place), pq.read_table(tmp_path / "two" / place)
    assert one.equals(two)
    assert all(s.notes == () for s in read_lerobot(tmp_path / "two"))


def test_tables_say_what_the_format_asks_for(tmp_path):
    tasks = {"a": "push", "b": "pull", "c": "push"}
    write_lerobot(three(), tmp_path / "out", fps=30, task=tasks, robot="so101")
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    rows = pq.read_table(tmp_path / "out/data/chunk-000/file-000.parquet").to_pylist()
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", 30, "so101")
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, len(rows), 2)
    assert info["splits"] == {"train": "0:3"} and info["video_path"] is None
    assert set(info["features"]) == set(rows[0])
    for name, feature in info["features"].items():
        cell = rows[0][name]
        assert feature["shape"] == [len(cell) if isinstance(cell, list) else 1]
        assert feature["names"] is None or len(feature["names"]) == feature["shape"][0]
    assert [row["index"] for row in rows] == list(range(len(rows)))
    episodes = pq.read_table(tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    for e, line in enumerate(episodes):
        own = rows[line["dataset_from_index"] : line["dataset_to_index"]]
        assert {row["episode_index"] for row in own} == {e} and len(own) == line["length"]
        assert [row["frame_index"] for row in own] == list(range(len(own)))
        assert own[-1]["timestamp"] == pytest.approx((len(own) - 1) / 30)
        assert line["tasks"] == [tasks["abc"[e]]]
        assert line["stats/observation.state/count"] == [len(own)]
    table = pq.read_table(tmp_path / "out/meta/tasks.parquet")
    assert table.to_pylist() == [
        {"task_index": 0, "task": "push"},
        {"task_index": 1, "task": "pull"},
    ]
    note = json.loads(table.schema.metadata[b"pandas"])
    assert note["index_columns"] == ["task"]
    assert {c["name"] for c in note["columns"]} == {"task_index", "task"}
    assert [r.task for r in read_lerobot(tmp_path / "out")] == ["push", "pull", "push"]


def test_statistics_of_the_dataset_are_those_of_its_rows(tmp_path):
    write_lerobot(three(), tmp_path / "out", fps=30)
    stats = json.loads((tmp_path / "out/meta/stats.json").read_text())
    table = pq.read_table(tmp_path / "out/data/chunk-000/file-000.parquet")
    assert set(stats) == set(table.column_names)
    for name, found in stats.items():
        values = np.array(table.column(name).to_pylist(), dtype=float).reshape(len(table), -1)
        assert found["count"] == [len(values)]
        for what in ("min", "max", "mean", "std"):
            slow = getattr(values, what)(axis=0)
            np.testing.assert_allclose(found[what], slow, rtol=1e-9, atol=1e-9)
        assert [k for k in found if k[0] == "q"] == ["q01", "q10", "q50", "q90", "q99"]


def test_large_exports_are_cut_into_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr("sameworld.store.lerobot.dataset_files._DATA_MB", 0)
    write_lerobot(three(), tmp_path / "out", fps=30)
    assert len(list((tmp_path / "out/data/chunk-000").iterdir())) == 3
    assert [len(r.streams) for r in read_lerobot(tmp_path / "out")] == [3, 3, 3]


# ---- cameras ------------------------------------------------------------------------------


def filmed(folder):
    episodes = three()
    save_episodes(episodes, folder)
    for number, e in enumerate(episodes):
        stamps = 0.005 + np.arange(18) * 0.07
        save_video(folder, e.id, "top", (picture(number, i) for i in range(18)), stamps)
    save_video(folder, "a", "wrist", [picture(0, 0)] * 2, [0.0, 1.2])
    return episodes, {e.id: episode_videos(folder, e.id) for e in episodes}


def test_every_row_shows_the_latest_picture_there_was(tmp_path):
    episodes, videos = filmed(tmp_path / "store")
    report = write_lerobot(
        episodes, tmp_path / "out", fps=30, videos=videos, video_folder=tmp_path / "store"
    )
    camera = "observation.images.top"
    for number, (source, recording) in enumerate(
        zip(episodes, read_lerobot(tmp_path / "out"), strict=True)
    ):
        begin = max([c.time[0] for c in source.channels] + [0.005])
        time = begin + recording[camera].time
        stamps = 0.005 + np.arange(18) * 0.07
        slow = [max(i for i, s in enumerate(stamps) if s <= t + 1e-9) for t in time]
        assert latest_rows(stamps, time).tolist() == slow
        for row, image in zip(
            slow, stream_frames(tmp_path / "out", recording[camera]), strict=True
        ):
            assert abs(image.astype(float).mean() - picture(number, row).mean()) < 3
        assert recording.notes == ()
    assert 0.03 < report["top"].largest < 0.07
    assert report["wrist"].reason == "only 1 of 3 episodes have it"
    assert lerobot_info(tmp_path / "out").features[-1].shape == (24, 32, 3)
    stats = json.loads((tmp_path / "out/meta/stats.json").read_text())[camera]
    assert np.shape(stats["mean"]) == (3, 1, 1) and 0 <= stats["min"][0][0][0] < 0.2


def test_videos_may_be_coded_as_av1(tmp_path):
    episodes, videos = filmed(tmp_path / "store")
    write_lerobot(
        episodes[:1],
        tmp_path / "out",
        fps=10,
        videos={"a": videos["a"]},
        video_folder=tmp_path / "store",
        codec="libsvtav1",
    )
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["features"]["observation.images.wrist"]["info"]["video.codec"] == "av1"
    place = "videos/observation.images.top/chunk-000/file-000.mp4"
    assert open_video(tmp_path / "out" / place).codec == "av1"


def test_cameras_of_another_size_or_another_episode_are_refused(tmp_path):
    episodes = three()[:2]
    save_episodes(episodes, tmp_path / "store")
    save_video(tmp_path / "store", "a", "top", [picture(0, 0)] * 2, [0, 1])
    save_video(tmp_path / "store", "b", "top", [picture(0, 0)[:16]] * 2, [0, 1])
    videos = {e.id: episode_videos(tmp_path / "store", e.id) for e in episodes}
    with pytest.raises(StoreError, match="'top' has 16x32 pixels in episode 'b'"):
        write_lerobot(
            episodes, tmp_path / "out", fps=9, videos=videos, video_folder=tmp_path / "store"
        )
    with pytest.raises(EpisodeError, match="given for 'b', which are not exported"):
        write_lerobot(episodes[:1], tmp_path / "out", fps=9, videos={"b": videos["b"]})
    with pytest.raises(StoreError, match=r"'.*mp4' is missing"):
        write_lerobot(episodes[:1], tmp_path / "out", fps=9, videos={"a": videos["a"]})
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


# ---- refused, killed ----------------------------------------------------------------------


@pytest.mark.parametrize("fps", [0, -3, 29.97, True, "30", 10**9])
def test_impossible_rates_are_refused(tmp_path, fps):
    with pytest.raises(StoreError, match="a whole number of rows a second"):
        write_lerobot(three(), tmp_path / "out", fps=fps)


def test_folders_that_hold_something_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(StoreError, match="is not empty"):
        write_lerobot(three(), tmp_path, fps=10)
    with pytest.raises(StoreError, match="is a file"):
        write_lerobot(three(), tmp_path / "thesis.tex", fps=10)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "empty").mkdir()
    write_lerobot(three(), tmp_path / "empty", fps=10)
    assert len(list(read_lerobot(tmp_path / "empty"))) == 3


def test_episodes_without_anything_in_common_are_refused(tmp_path):
    time = np.arange(5) / 5
    ones = [Episode(id=n, channels=(Channel(name=n, time=time, values=time),)) for n in "ab"]
    with pytest.raises(StoreError, match=r"No observation is in all 2 episodes.*a: only 1 of 2"):
        write_lerobot(ones, tmp_path / "out", fps=5)
    with pytest.raises(EpisodeError, match="'a' appear twice"):
        write_lerobot([ones[0], ones[0]], tmp_path / "out", fps=5)
    with pytest.raises(EpisodeError, match="no episode to export"):
        write_lerobot([], tmp_path / "out", fps=5)


def test_a_killed_export_leaves_no_dataset(tmp_path):
    script = """
import sys, numpy as np
from sameworld.core import Channel, Episode
from sameworld.store import write_lerobot
time = np.arange(2000) / 100
wide = np.random.default_rng(0).normal(size=(2000, 60))
many = [
    Episode(id=str(i), channels=(Channel(name="x", time=time, values=wide),)) for i in range(400)
]
print("ready", flush=True)
write_lerobot(many, sys.argv[1], fps=100)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "ready\n"
        until = clock.monotonic() + 30
        while not list(tmp_path.glob(".out.*.tmp/data/*/*.parquet")):
            assert clock.monotonic() < until and child.poll() is None
            clock.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    write_lerobot(three(), tmp_path / "out", fps=10)
    assert len(list(read_lerobot(tmp_path / "out"))) == 3


def test_a_rate_below_one_row_per_episode_still_gives_one(tmp_path):
    report = write_lerobot(three(), tmp_path / "out", fps=1)
    assert report.rows == 6
    short = Episode(id="s", channels=(Channel(name="x", time=[0.1, 0.2], values=[1, 2]),))
    assert write_lerobot([short], tmp_path / "short", fps=1).rows == 1
    (recording,) = read_lerobot(tmp_path / "short")
    assert recording["observation.state"].values.tolist() == [[1.0]]
    with pytest.raises(StoreError, match=r"no channel 'y'.*It has 'x'"):
        write_lerobot([short], tmp_path / "again", fps=1)["y"]


def test_texts_for_episodes_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(EpisodeError, match="Tasks are given for 'z'"):
        write_lerobot(three(), tmp_path / "out", fps=10, task={"a": "push", "z": "pull"})


def test_the_slowest_observation_gives_the_rate():
    assert slowest_rate(three()) == 100
    slow = Channel(name="slow", time=[0.0, 9.0], values=[0, 0])
    assert slowest_rate([episode(extra=(slow,))]) == 1


def test_errors_of_samples_between_rows_are_none_where_nothing_lies_between():
    one = Channel(name="x", time=[0.0, 1.0], values=[0, 1])
    rows = Channel(name="x", time=[0.4, 0.6], values=[0.4, 0.6])
    assert sample_errors(one, rows).shape == (0,)
