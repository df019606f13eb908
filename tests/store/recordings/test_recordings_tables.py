"""CSV, NPZ and Parquet: what is written comes back, whatever the dialect."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_files import arm_csv, arm_npz, arm_parquet, positions

from sameworld.core import StoreError
from sameworld.store.recordings import ReadOptions, open_recordings


def only(path, **options):
    (recording,) = open_recordings(path, options=ReadOptions(**options))
    return recording


def written(folder, text, name="log.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def rows(form="{t},{x}", count=10, step=0.1):
    return "".join(form.format(t=round(i * step, 6), x=i % 4 + 0.5) + "\n" for i in range(count))


# ---- CSV ----------------------------------------------------------------------------------


def test_columns_with_numbers_at_their_end_become_one_labelled_stream(tmp_path):
    recording = only(arm_csv(tmp_path / "arm.csv"))
    stream = recording["q"]
    assert stream.labels == ("0", "1", "2")
    assert stream.unit == "rad"
    np.testing.assert_allclose(stream.values, positions(), atol=5e-7)
    np.testing.assert_allclose(stream.time, 0.01 * np.arange(20), atol=1e-12)
    assert recording["effort"].values.ndim == 1
    assert recording.id == "arm"
    assert stream.source == "arm.csv:q"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separators_are_found(tmp_path, separator):
    path = written(tmp_path, f"t{separator}x\n" + rows("{t}" + separator + "{x}"))
    assert only(path)["x"].values.tolist() == [i % 4 + 0.5 for i in range(10)]


def test_decimal_commas_are_read_and_noted(tmp_path):
    path = written(tmp_path, "t;x\n" + rows("{t};{x}").replace(".", ","))
    recording = only(path)
    assert recording["x"].values[1] == 1.5
    assert "Numbers have a decimal comma." in recording.notes


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_byte_order_marks_do_not_enter_the_names(tmp_path, encoding):
    recording = only(written(tmp_path, "t,μ\n" + rows(), encoding=encoding))
    assert [s.name for s in recording.streams] == ["μ"]


def test_windows_text_is_read_and_noted(tmp_path):
    recording = only(written(tmp_path, "t,winkel [°]\n" + rows(), encoding="cp1252"))
    assert recording["winkel"].unit == "deg"
    assert any("Windows-1252" in note for note in recording.notes)


def test_comments_blank_lines_quotes_and_trailing_separators_are_no_data(tmp_path):
    text = '# logger 3\n\n"t [s]","x, raw (V)",\n# more\n' + rows("{t},{x},")
    recording = only(written(tmp_path, text))
    assert recording["x, raw"].unit == "V"
    assert len(recording["x, raw"].time) == 10


def test_a_commented_heading_as_numpy_writes_it_gives_the_names(tmp_path):
    table = np.column_stack([0.1 * np.arange(10), np.arange(10) % 3])
    np.savetxt(tmp_path / "n.csv", table, delimiter=",", header="time,gripper")
    assert only(tmp_path / "n.csv")["gripper"].values.tolist() == (np.arange(10) % 3).tolist()


def test_a_row_of_units_below_the_names_is_understood(tmp_path):
    recording = only(written(tmp_path, "t,angle\nms,deg\n" + rows(step=10)))
    assert recording["angle"].unit == "deg"
    assert recording["angle"].time[-1] == pytest.approx(0.09)


def test_without_a_heading_the_only_rising_column_is_the_time(tmp_path):
    recording = only(written(tmp_path, rows()))
    assert [s.name for s in recording.streams] == ["c1"]
    assert any("no heading" in note for note in recording.notes)


def test_missing_cells_become_nan_and_words_become_numbers(tmp_path):
    text = "t,a,on\n0,1,true\n0.1,,false\n0.2,NA,true\n0.3,4,true\n0.4,5,false\n"
    recording = only(written(tmp_path, text))
    assert np.isnan(recording["a"].values).tolist() == [False, True, True, False, False]
    assert recording["on"].values.tolist() == [1, 0, 1, 1, 0]


def test_ragged_rows_are_left_out_and_counted_with_their_lines(tmp_path):
    text = "t,a\n0,1\n0.1\n0.2,3\n0.3,4,5\n0.4,6\n"
    recording = only(written(tmp_path, text))
    assert recording["a"].values.tolist() == [1, 3, 6]
    assert any(
        note.startswith("2 row(s) have another number of fields than the 2")
        for note in recording.notes
    )


def test_text_among_numbers_is_missing_and_counted(tmp_path):
    recording = only(written(tmp_path, "t,a,s\n0,1,go\n0.1,err,go\n0.2,3,stop\n"))
    assert np.isnan(recording["a"].values[1])
    assert any("'a' holds text in 1 row(s), first 'err' at line" in n for n in recording.notes)
    assert any("Column(s) 's' hold text" in n for n in recording.notes)


def test_columns_merged_from_several_topics_keep_only_their_own_rows(tmp_path):
    text = "t,fast,slow\n" + "".join(
        f"{0.1 * i:.1f},{i},{i if i % 5 == 0 else ''}\n" for i in range(20)
    )
    recording = only(written(tmp_path, text))
    assert recording["slow"].time.tolist() == pytest.approx([0, 0.5, 1, 1.5])
    assert len(recording["fast"].time) == 20


def test_repeated_headings_are_told_apart(tmp_path):
    recording = only(written(tmp_path, "t,a,a\n0,1,2\n0.1,3,4\n0.2,5,6\n"))
    assert recording["a#2"].values.tolist() == [2, 4, 6]
    assert any("more than once" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("heading", "first", "step", "unit"),
    [
        ("time_ms", 0, 10, None),
        ("time [us]", 0, 10_000, None),
        ("stamp_ns", 0, 10_000_000, None),
        ("time", 1_700_000_000_000, 10, "ms"),
        ("time", 1_700_000_000_000_000, 10_000, "us"),
        ("time", 1_700_000_000_000_000_000, 10_000_000, "ns"),
        ("t", 0, 10, "ms"),
        ("t", 0, 10_000, "us"),
        ("t", 0, 10_000_000, "ns"),
    ],
)
def test_units_of_time_come_from_the_heading_or_the_magnitude(tmp_path, heading, first, step, unit):
    text = f"{heading},x\n" + "".join(f"{first + i * step},{i % 3}\n" for i in range(30))
    recording = only(written(tmp_path, text))
    assert recording["x"].time[-1] == pytest.approx(0.29, abs=1e-6)
    noted = any(f"is taken as {unit}" in note for note in recording.notes)
    assert noted == (unit is not None), "an assumption is noted, a statement is not"


def test_dates_are_times(tmp_path):
    text = "timestamp,x\n" + "".join(f"2024-05-01T10:00:0{i}.500Z,{i % 2}\n" for i in range(5))
    recording = only(written(tmp_path, text))
    assert recording["x"].time.tolist() == [0, 1, 2, 3, 4]
    assert any("2024-05-01 10:00:00 UTC" in note for note in recording.notes)


def test_the_time_can_be_named_and_its_unit_given(tmp_path):
    path = written(tmp_path, "k,x\n" + "".join(f"{i},{i % 3}\n" for i in range(10)))
    assert only(path, time="k", time_unit="ms")["x"].time[-1] == pytest.approx(0.009)


def test_stamps_are_kept_as_they_are(tmp_path):
    text = "t [s],x\n0,1\n0.1,2\n0.1,3\n0.05,4\nnan,5\n0.3,6\n"
    recording = only(written(tmp_path, text))
    assert recording["x"].time.tolist() == [0, 0.1, 0.1, 0.05, 0.3]
    assert any("1 row(s) without a finite time" in note for note in recording.notes)


def test_only_wanted_columns_are_read(tmp_path):
    path = written(tmp_path, "t,arm_q,arm_v,base_x\n0,1,2,3\n0.1,4,5,6\n0.3,4,5,6\n")
    assert {s.name for s in only(path, topics=("arm_*",)).streams} == {"arm_q", "arm_v"}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda x: x + 0.0), min_size=3, max_size=12),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_any_finite_numbers_survive_any_dialect(tmp_path_factory, values, separator, quoted):
    mark = '"' if quoted else ""
    body = "".join(
        f"{mark}{i / 8}{mark}{separator}{mark}{v!r}{mark}\n" for i, v in enumerate(values)
    )
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_text(f"time [s]{separator}signal\n{body}", encoding="utf-8")
    assert only(path)["signal"].values.tolist() == values


# ---- NPZ ----------------------------------------------------------------------------------


def test_arrays_as_long_as_the_time_become_streams(tmp_path):
    recording = only(arm_npz(tmp_path / "arm.npz"))
    np.testing.assert_array_equal(recording["q"].values, positions())
    assert {s.name for s in recording.streams} == {"q", "dq"}


def test_offsets_cut_pieces_with_a_clock_of_their_own(tmp_path):
    time = np.r_[0.1 * np.arange(5), 0.1 * np.arange(7)]
    np.savez(tmp_path / "runs.npz", t=time, x=np.arange(12.0), start=np.array([0, 5, 12]))
    first, second = open_recordings(tmp_path / "runs.npz")
    assert (first.id, second.id) == ("runs-0", "runs-1")
    assert first["x"].values.tolist() == [0, 1, 2, 3, 4]
    assert second["x"].time.tolist() == pytest.approx((0.1 * np.arange(7)).tolist())


def test_families_with_offsets_are_recordings_of_their_own(tmp_path):
    np.savez(
        tmp_path / "p.npz",
        a_t=np.arange(6) / 10, a_x=np.zeros((6, 2)), a_start=np.array([0, 3]),
        b_t=np.arange(4) / 10, b_x=np.ones((4, 2)), b_start=np.array([0, 2]),
    )  # fmt: skip
    ids = [r.id for r in open_recordings(tmp_path / "p.npz")]
    assert ids == ["p-a-0", "p-a-1", "p-b-0", "p-b-1"]


def test_families_without_offsets_share_a_recording_each_on_its_clock(tmp_path):
    np.savez(
        tmp_path / "p.npz",
        joint_t=5 + np.arange(6) / 10, joint_q=np.zeros((6, 2)),
        cam_t=5.25 + np.arange(4) / 5, cam_x=np.ones(4),
    )  # fmt: skip
    recording = only(tmp_path / "p.npz")
    assert recording["joint_q"].time[0] == 0
    assert recording["cam_x"].time[0] == pytest.approx(0.25)


def test_a_matrix_is_timed_by_its_named_column(tmp_path):
    grid = np.column_stack([0.1 * np.arange(8) + 3, np.arange(8.0), np.ones(8)])
    np.savez(tmp_path / "m.npz", log=grid, columns=np.array(["timestamp", "pos", "load"]))
    recording = only(tmp_path / "m.npz")
    assert recording["log"].labels == ("pos", "load")
    assert recording["log"].time[-1] == pytest.approx(0.7)


def test_a_constant_step_makes_the_clock_and_restarts_with_each_piece(tmp_path):
    np.savez(tmp_path / "d.npz", state=np.zeros((6, 3)), dt=0.02, start=np.array([0, 2, 6]))
    first, second = open_recordings(tmp_path / "d.npz")
    assert first["state"].time.tolist() == [0, 0.02]
    assert second["state"].time[0] == 0
    assert second.notes == ()


def test_arrays_without_a_time_are_named(tmp_path):
    np.savez(tmp_path / "x.npz", t=np.arange(5) / 10, x=np.ones(5), gain=np.ones(3))
    assert any("'gain' have no time" in note for note in only(tmp_path / "x.npz").notes)


# ---- Parquet and folders -------------------------------------------------------------------


def test_parquet_columns_become_streams(tmp_path):
    stream = only(arm_parquet(tmp_path / "a.parquet"))["q"]
    np.testing.assert_array_equal(stream.values, positions()[:, :2])


def test_a_folder_gives_every_file_and_warns_of_the_broken_ones(tmp_path):
    arm_csv(tmp_path / "b.csv")
    arm_npz(tmp_path / "a.npz")
    (tmp_path / "c.mcap").write_bytes(b"no")
    (tmp_path / "README.md").write_text("words")
    with pytest.warns(UserWarning, match=r"Left out: .*c\.mcap.*named like mcap"):
        ids = [r.id for r in open_recordings(tmp_path)]
    assert ids == ["a", "b"]


def test_names_that_lie_are_noted_and_the_content_counts(tmp_path):
    path = arm_npz(tmp_path / "arm.npz").rename(tmp_path / "arm.csv")
    recording = only(path)
    assert recording.notes[0] == "'arm.csv' is named like csv, its content is npz; read as npz."


def test_an_episode_store_is_recognised(tmp_path):
    (tmp_path / "episodes.jsonl").write_text("")
    with pytest.raises(StoreError, match="an episode store already"):
        list(open_recordings(tmp_path))
