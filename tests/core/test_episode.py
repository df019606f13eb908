"""Episodes hold channels with their own clocks, and refuse what is no trajectory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import Channel, Episode, EpisodeError, Recording, Stream


def _episode():
    return Episode(
        id="run",
        channels=(
            Channel(name="pos", time=np.arange(10) * 0.1 + 0.05, values=np.arange(10.0)),
            Channel(name="slow", time=[0.1, 0.5, 0.9], values=np.eye(3)),
            Channel(name="torque", time=[0.0, 0.3, 0.6], values=[1.0, 2.0, 3.0], role="action"),
            Channel(name="enable", time=[0.0], values=[1.0], role="exogenous"),
        ),
    )


def _channel(**fields):
    return Channel(**{"name": "x", "time": [0.0, 1.0, 2.0], "values": [1.0, 2.0, 3.0], **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "needs a name"),
        ({"role": "reward"}, "role 'reward'"),
        ({"time": [0, 1]}, r"2 time stamps and values of shape \(3,\)"),
        ({"values": 3.0}, r"shape \(\)"),
        ({"time": [], "values": []}, "no samples"),
        ({"time": [[0, 1, 2]]}, "1 axes"),
        ({"time": [0, 2, 1]}, "does not increase at sample 2"),
        ({"time": [0, 1, 1]}, "drop duplicates"),
        ({"time": [0, np.nan, 2]}, "time holds 1 NaN"),
        ({"values": [1, np.inf, 3]}, "values holds 1 NaN or infinite"),
        ({"values": ["a", "b", "c"]}, "not numeric"),
        ({"values": [[1], [1, 2], [1]]}, "not numeric"),
        ({"noise": 0.0}, "noise 0.0"),
        ({"noise": np.nan}, "noise nan"),
    ],
)
def test_an_impossible_channel_says_why(fields, words):
    with pytest.raises(EpisodeError, match=words):
        _channel(**fields)


def test_samples_are_a_read_only_copy():
    values = np.ones(3)
    channel = _channel(values=values)
    values[0] = 9
    assert channel.values[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        channel.values[0] = 2


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ((), "no observation channel"),
        ((_channel(role="action"),), "no observation channel"),
        ((_channel(), _channel()), "'x' twice"),
    ],
)
def test_an_impossible_episode_says_why(channels, words):
    with pytest.raises(EpisodeError, match=words):
        Episode(id="e", channels=channels)


def test_an_unknown_source_is_refused():
    with pytest.raises(EpisodeError, match="source 'dream'"):
        Episode(id="e", channels=(_channel(),), source="dream")


def test_a_missing_channel_suggests_the_nearest():
    episode = _episode()
    assert "pos" in episode
    assert "vel" not in episode
    with pytest.raises(EpisodeError, match="Did you mean 'slow'"):
        _ = episode["slwo"]


def test_an_episode_spans_its_observations():
    episode = _episode()
    assert (episode.begin, episode.end) == (0.05, pytest.approx(0.95))
    assert [c.name for c in episode.observations] == ["pos", "slow"]


def test_actions_are_held_from_their_stamp_on():
    torque = _episode()["torque"]
    times = np.array([-1.0, 0.0, 0.299, 0.3, 0.59, 0.6, 99.0])
    np.testing.assert_array_equal(torque.held(times), [1, 1, 1, 2, 2, 3, 3])


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8, unique=True), st.floats(-1, 11))
def test_held_is_the_last_sample_not_later(stamps, at):
    stamps = np.sort(stamps)
    if (np.diff(stamps) < 1e-6).any() or np.abs(stamps - at).min() < 1e-6:
        return
    channel = Channel(name="u", time=stamps, values=np.arange(len(stamps)), role="action")
    earlier = np.flatnonzero(stamps <= at)
    expected = earlier[-1] if len(earlier) else 0
    assert channel.held(np.array([at]))[0] == expected


def test_a_window_keeps_samples_inside_and_the_action_held_at_its_begin():
    piece = _episode().window(0.4, 0.7, id="piece")
    assert piece.id == "piece"
    np.testing.assert_allclose(piece["pos"].time, [0.45, 0.55, 0.65])
    assert "slow" not in piece, "one sample is no trajectory"
    np.testing.assert_array_equal(piece["torque"].time, [0.3, 0.6])
    np.testing.assert_array_equal(piece["enable"].values, [1.0])
    inside = np.linspace(0.4, 0.7, 20)
    whole = _episode()["torque"].held(inside)
    np.testing.assert_array_equal(piece["torque"].held(inside), whole)


@given(st.floats(0.0, 0.9), st.floats(0.0, 0.9))
def test_actions_in_a_window_are_those_of_the_whole(a, b):
    begin, end = min(a, b), max(a, b)
    if end - begin < 0.25:
        return
    episode = _episode()
    piece = episode.window(begin, end)
    at = np.linspace(begin, end, 30)
    np.testing.assert_array_equal(piece["torque"].held(at), episode["torque"].held(at))
    assert piece.begin >= begin - 1e-9
    assert piece.end <= end + 1e-9


def test_an_empty_window_is_an_error():
    with pytest.raises(EpisodeError, match="no observation channel"):
        _episode().window(5.0, 6.0)


def test_head_cuts_observations_alone():
    head = _episode().head(2)
    assert [len(c) for c in head.channels] == [2, 2, 3, 1]


def test_channels_are_replaced_by_name_and_appended():
    episode = _episode()
    fresh = Channel(name="pos", time=[0, 1], values=[5, 6])
    extra = Channel(name="extra", time=[0, 1], values=[5, 6])
    changed = episode.with_channels([extra, fresh])
    assert [c.name for c in changed.channels] == ["pos", "slow", "torque", "enable", "extra"]
    assert changed["pos"] is fresh
    assert len(episode["pos"]) == 10


def test_between_includes_its_ends_and_may_be_empty():
    channel = _channel()
    np.testing.assert_array_equal(channel.between(1.0, 2.0).time, [1, 2])
    assert channel.between(0.1, 0.9) is None
    np.testing.assert_array_equal(channel.rows(slice(1, None)).values, [2, 3])


def test_streams_keep_raw_stamps_but_not_unequal_lengths():
    stream = Stream(name="imu", time=[0, 2, 1], values=np.zeros((3, 6)))
    assert Recording(id="r", streams=(stream,)).streams[0].clock == "host"
    with pytest.raises(EpisodeError, match="3 stamps and 2 values"):
        Stream(name="imu", time=[0, 1, 2], values=np.zeros((2, 6)))
    with pytest.raises(EpisodeError, match="NaN"):
        Stream(name="imu", time=[0, np.nan], values=np.zeros(2))
