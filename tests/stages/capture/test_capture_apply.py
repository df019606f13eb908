import numpy as np
import pytest

from sameworld.core import (
    ChannelSpec,
    EpisodeError,
    Question,
    Recording,
    SignalMap,
    SignalMapping,
    Spec,
    Stream,
)
from sameworld.stages.capture import apply_mapping

SPEC = Spec(
    period=0.1,
    observations=(
        ChannelSpec(name="arm.pos", unit="rad"),
        ChannelSpec(name="box.pos", shape=(3,), unit="m"),
    ),
    actions=(ChannelSpec(name="drive", unit="N m"),),
)


def stream(name="log", values=None, time=None, labels=("a", "b", "c")):
    values = np.arange(12.0).reshape(4, 3) if values is None else values
    time = np.arange(len(values)) * 0.1 if time is None else time
    return Stream(name=name, time=time, values=values, labels=labels)


def signal(channel="arm.pos", column="a", **fields):
    fields = {"stream": "log", "unit": "rad"} | fields
    return SignalMap(channel=channel, column=column, **fields)


def applied(*signals, streams=None, **fields):
    streams = (stream(),) if streams is None else streams
    recording = Recording(id="r", streams=streams, session="monday")
    return apply_mapping(SPEC, recording, SignalMapping(signals=signals, **fields))


def test_scale_offset_and_delay_act_as_written():
    episode = applied(
        signal(scale=-2.0, offset=1.0, delay=0.05), signal("drive", "1", role="action", unit="N m")
    )
    channel = episode["arm.pos"]
    assert channel.values.tolist() == [1.0, -5.0, -11.0, -17.0]
    assert np.allclose(channel.time, np.arange(4) * 0.1 - 0.05)
    assert episode["drive"].role == "action" and episode["drive"].values.tolist() == [1, 4, 7, 10]
    assert (episode.id, episode.session_id) == ("r", "monday")


def test_components_make_a_vector_whatever_their_order():
    parts = [signal("box.pos", c, component=k, unit="m") for k, c in ((2, "a"), (0, "b"), (1, "c"))]
    assert applied(*parts)["box.pos"].values[0].tolist() == [1.0, 2.0, 0.0]


def test_components_on_other_stamps_are_brought_to_the_first():
    late = stream("other", np.arange(8.0)[:, None], np.arange(8) * 0.05, ("d",))
    parts = [signal("box.pos", "a", unit="m"), signal("box.pos", "b", component=1, unit="m")]
    parts.append(signal("box.pos", "d", component=2, unit="m", stream="other"))
    found = applied(*parts, streams=(stream(), late))["box.pos"]
    assert found.values[:, 2].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_bad_rows_are_left_out_sorted_and_not_repeated():
    values = np.array([[3.0], [1.0], [np.nan], [1.5], [0.0]])
    raw = stream(values=values, time=np.array([0.3, 0.1, 0.2, 0.1, 0.0]), labels=("a",))
    channel = applied(signal(), streams=(raw,))["arm.pos"]
    assert channel.time.tolist() == [0.0, 0.1, 0.3] and channel.values.tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ([signal(stream="lag")], "Did you mean 'log'"),
        ([signal(column="z")], "no column 'z'"),
        ([signal("box.pos", unit="m")], r"components \[0, 1, 2\], the mapping gives \[0\]"),
        ([signal(unit="deg")], "is in 'rad', the mapping says 'deg'"),
        ([], "is empty"),
    ],
)
def test_mappings_that_do_not_fit_say_what_exists(signals, message):
    with pytest.raises(EpisodeError, match=message):
        applied(*signals)


def test_images_and_empty_columns_are_refused():
    images = Stream(name="log", time=np.arange(4.0), values=np.arange(4), kind="images")
    with pytest.raises(EpisodeError, match="holds images"):
        applied(signal(column=""), streams=(images,))
    empty = stream(values=np.full((4, 1), np.nan), labels=("a",))
    with pytest.raises(EpisodeError, match="no finite number"):
        applied(signal(), streams=(empty,))


def test_open_questions_stop_it():
    with pytest.raises(EpisodeError, match="Which way"):
        applied(signal(), undecided=(Question(about="sign", text="Which way?"),))
