"""Files are whole, strict and free of pickles."""

import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameworld.core.errors import StoreError
from sameworld.store.files import (
    hash_arrays,
    hash_file,
    parse_json,
    read_bytes,
    read_json,
    read_npz,
    read_text,
    replacing,
    write_bytes,
    write_json,
    write_npz,
    write_text,
)

_WRITER = """
import sys
from pathlib import Path
import numpy as np
from sameworld.store.files import write_json, write_npz
folder = Path(sys.argv[1])
(folder / "ready").touch()
n = 0
while True:
    n += 1
    write_json(folder / "a.json", {"n": n, "text": "x" * 20000, "end": n})
    write_npz(folder / "b.npz", {"n": np.full(20000, n), "m": np.full(20000, n)})
"""


def test_a_killed_writer_never_leaves_half_a_file(tmp_path):
    rng = random.Random(0)
    seen = 0
    for round_ in range(20):
        folder = tmp_path / str(round_)
        folder.mkdir()
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(folder)])
        try:
            while not (folder / "ready").exists():
                assert writer.poll() is None
                time.sleep(0.002)
            time.sleep(rng.uniform(0.005, 0.06))
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        if (folder / "a.json").exists():
            record = read_json(folder / "a.json")
            assert record["n"] == record["end"]
            seen += 1
        if (folder / "b.npz").exists():
            arrays = read_npz(folder / "b.npz")
            assert (arrays["n"] == arrays["m"]).all()
            assert np.ptp(arrays["n"]) == 0
    assert seen > 5, "the writer hardly ever got to write; the test shows nothing"


def test_a_failed_write_keeps_the_old_content_and_leaves_no_trace(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "a.txt") as file:
        file.write(b"ne")
        raise RuntimeError
    assert read_text(tmp_path / "a.txt") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_missing_folders_are_made(tmp_path):
    write_bytes(tmp_path / "a" / "b" / "c.bin", b"\0\1")
    assert read_bytes(tmp_path / "a" / "b" / "c.bin") == b"\0\1"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "file/below"])
def test_impossible_places_are_store_errors(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Cannot write"):
        write_bytes(tmp_path / name, b"")


def test_reading_says_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        read_bytes(tmp_path / "none")
    with pytest.raises(StoreError, match="not a regular file"):
        read_bytes(tmp_path)
    (tmp_path / "big").write_bytes(b"12345")
    with pytest.raises(StoreError, match="5 bytes, more than the limit of 4"):
        read_bytes(tmp_path / "big", limit=4)
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(StoreError, match="not UTF-8"):
        read_text(tmp_path / "latin")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
@settings(max_examples=40, deadline=None)
def test_json_survives_the_round_trip(tmp_path_factory, record):
    path = tmp_path_factory.getbasetemp() / "round.json"
    write_json(path, record)
    assert read_json(path) == record


def test_numpy_values_become_plain_json(tmp_path):
    record = {"a": np.arange(3), "b": np.float64(0.1), "c": (np.int64(2), np.bool_(True))}
    write_json(tmp_path / "a.json", record)
    assert read_json(tmp_path / "a.json") == {"a": [0, 1, 2], "b": 0.1, "c": [2, True]}


@pytest.mark.parametrize("value", [np.nan, np.inf, np.float32("nan"), np.array([1.0, -np.inf])])
def test_nan_is_an_error_unless_null_is_asked_for(tmp_path, value):
    with pytest.raises(StoreError, match=r"JSON has no .*at \$\.deep\[0\]"):
        write_json(tmp_path / "a.json", {"deep": [value]})
    assert not (tmp_path / "a.json").exists()
    write_json(tmp_path / "a.json", {"deep": [value]}, nan="null")
    assert None in np.ravel(np.array(read_json(tmp_path / "a.json")["deep"], dtype=object))


@pytest.mark.parametrize("value", [{1: 2}, object(), {"a": {1, 2}}, b"bytes"])
def test_what_json_cannot_hold_is_refused(tmp_path, value):
    with pytest.raises(StoreError, match="JSON"):
        write_json(tmp_path / "a.json", value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": NaN}', "holds NaN"),
        ('{"a": -Infinity}', "holds -Infinity"),
        ('{"a": 1, "a": 2}', "key 'a' twice"),
        ('{"a": 1', "line 1, column 8"),
        ("", "not JSON"),
        ("[" * 100000, "not usable JSON"),
        ("1" * 5000, "not usable JSON"),
    ],
)
def test_json_is_read_strictly(text, words):
    with pytest.raises(StoreError, match=words):
        parse_json(text, "some.json")


def test_arrays_survive_bit_exactly_and_reproducibly(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "file": rng.normal(size=(3, 4)),
        "self": np.array([np.nan, -0.0, np.inf]),
        "a/b": np.arange(5, dtype=np.uint64),
        "text": np.array(["é", "longer"]),
        "none": np.zeros((0, 3), bool),
        "scalar": np.array(3.0),
    }
    write_npz(tmp_path / "a.npz", arrays)
    back = read_npz(tmp_path / "a.npz")
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].tobytes() == array.tobytes()
    write_npz(tmp_path / "b.npz", arrays)
    assert hash_file(tmp_path / "a.npz") == hash_file(tmp_path / "b.npz")
    assert hash_arrays(arrays) == hash_arrays(dict(reversed(back.items())))


def test_objects_are_neither_written_nor_read(tmp_path):
    with pytest.raises(StoreError, match="Python objects"):
        write_npz(tmp_path / "a.npz", {"a": np.array([{}], dtype=object)})
    np.savez(tmp_path / "b.npz", a=np.array([{}], dtype=object))
    with pytest.raises(StoreError, match="not a usable"):
        read_npz(tmp_path / "b.npz")
    (tmp_path / "c.npz").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(StoreError, match=r"c\.npz"):
        read_npz(tmp_path / "c.npz")


def test_a_truncated_archive_is_named(tmp_path):
    write_npz(tmp_path / "a.npz", {"a": np.arange(1000)})
    content = (tmp_path / "a.npz").read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        (tmp_path / "a.npz").write_bytes(content[:cut])
        with pytest.raises(StoreError, match=r"a\.npz"):
            read_npz(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(content[:200] + b"\xff" + content[201:])
    with pytest.raises(StoreError, match=r"a\.npz"):
        read_npz(tmp_path / "a.npz")


def test_array_hash_sees_name_type_shape_and_content():
    base = {"a": np.zeros((2, 3))}
    others = [
        {"b": np.zeros((2, 3))},
        {"a": np.zeros((3, 2))},
        {"a": np.zeros((2, 3), np.float32)},
        {"a": np.ones((2, 3))},
        {},
    ]
    assert len({hash_arrays(x) for x in (base, *others)}) == 6


def test_json_files_are_plain_for_other_tools(tmp_path):
    write_json(tmp_path / "a.json", {"é": 1.5})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"é": 1.5}


def test_damaged_archives_are_refused_whatever_the_libraries_raise(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, n=np.arange(50.0), m=np.array(["x", "yy"]))
    whole, rng = buffer.getvalue(), np.random.default_rng(3)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        for at in rng.integers(len(whole), size=3):
            damaged[at] = rng.integers(256)
        (tmp_path / "a.npz").write_bytes(damaged)
        try:
            read_npz(tmp_path / "a.npz")
        except StoreError:
            refused += 1
    assert refused > 100
