import numpy as np
import pytest

from sameworld.core import Recording, Stream
from sameworld.store.recordings import describe_recording
from sameworld.store.recordings.doubts import unit_doubt

TIME = 0.01 * np.arange(200)
WAVE = np.sin(7 * TIME)


def report_of(values, name="q", time=TIME, **fields):
    stream = Stream(name=name, time=time, values=np.asarray(values), **fields)
    return describe_recording(Recording(id="r", streams=(stream,), notes=("said",))).streams[0]


def test_a_good_stream_raises_no_doubt():
    report = report_of(np.column_stack([WAVE, 2 * WAVE]), labels=("a", "b"), unit="rad")
    assert report.doubts == ()
    assert report.steps.rate == pytest.approx(100)
    assert [c.label for c in report.columns] == ["a", "b"]
    assert report.columns[1].high == pytest.approx(2 * WAVE.max())


def test_gaps_duplicates_and_jumps_back_are_said():
    time = TIME.copy()
    time[100:] += 0.5
    time[20] = time[19]
    time[50] = 0.1
    doubts = " | ".join(report_of(WAVE, time=time).doubts)
    assert "1 stamp(s) equal the one before" in doubts
    assert "time goes back 1 time(s)" in doubts
    assert "gap(s) longer than 3 steps, the longest 0.51 s" in doubts


def test_missing_samples_are_counted_per_column():
    values = np.column_stack([WAVE, WAVE])
    values[:50, 1] = np.nan
    values[50, 1] = np.inf
    report = report_of(values, labels=("a", "b"))
    assert report.columns[1].missing == pytest.approx(51 / 200)
    assert report.doubts == ("column 'b' is missing or not finite in 25.5 %",)


def test_columns_that_never_change_and_rows_that_repeat_are_said():
    assert report_of(np.ones(200)).doubts == ("it never changes",)
    two = np.column_stack([np.ones(200), WAVE])
    assert report_of(two, labels=("a", "b")).doubts == ("column(s) a never change",)
    stuck = np.repeat(WAVE[::4], 4)
    assert report_of(stuck).doubts == ("75 % of its rows repeat the row before",)


def test_samples_of_any_shape_and_pictures_are_described():
    assert len(report_of(np.zeros((200, 2, 3))).columns) == 6
    pictures = report_of(np.arange(200), kind="images")
    assert pictures.columns == () and pictures.doubts == ()


def test_the_report_names_streams_and_keeps_notes():
    streams = (
        Stream(name="late", time=TIME + 5, values=WAVE),
        Stream(name="flat", time=TIME, values=np.zeros(200)),
    )
    report = describe_recording(Recording(id="r", streams=streams, notes=("said",)))
    assert (report.begin, report.end) == (0, pytest.approx(6.99))
    assert report.doubts == ("flat: it never changes",)
    assert report.notes == ("said",)
    assert describe_recording(Recording(id="empty", streams=())).doubts == ()


@pytest.mark.parametrize(
    ("name", "unit", "values", "words"),
    [
        ("elbow.pos", "", 90 * WAVE, "degrees"),
        ("elbow.pos", "rad", 90 * WAVE, "degrees"),
        ("cube.pos.x", "m", 400 + 100 * WAVE, "millimetres"),
        ("tool.position.z", "", 400 + 100 * WAVE, "millimetres"),
        ("servo", "", np.round(2048 + 1500 * WAVE), "encoder ticks of 0 to 4095"),
        ("load", "", np.round(100 * WAVE) % 65536, "signed 16-bit number read as unsigned"),
        ("stamp", "", 1.7e9 + TIME, "a time stamp, not a signal"),
    ],
)
def test_units_that_do_not_fit_the_numbers_are_suspected(name, unit, values, words):
    assert words in unit_doubt(name, unit, np.asarray(values, dtype=float))


@pytest.mark.parametrize(
    ("name", "unit", "values"),
    [
        ("elbow.pos", "", 3 * WAVE),
        ("elbow.pos", "deg", 90 * WAVE),
        ("motor.current", "", 300 * WAVE),
        ("counter", "", np.arange(200.0)),
        ("gripper", "", np.round(WAVE)),
        ("empty", "", np.array([])),
    ],
)
def test_plausible_numbers_are_not_suspected(name, unit, values):
    assert unit_doubt(name, unit, np.asarray(values, dtype=float)) == ""
