"""MCAP and ROS bags: messages become streams, the same whatever container carried them."""

import json
import sqlite3
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType
from recording_files import (
    EPOCH,
    JOINT_STATE,
    JOINTS,
    NS,
    STEP,
    TEXT_HEADER,
    Cdr,
    arm_bag,
    arm_bag2,
    arm_mcap,
    joint_state,
    json_mcap,
    positions,
    stamps,
    write_mcap,
)
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.rosbag2 import CompressionMode

from sameworld.core import StoreError
from sameworld.store.recordings import ReadOptions, open_recordings


def only(path, **options):
    (recording,) = open_recordings(path, options=ReadOptions(**options))
    return recording


CONTAINERS = {
    "mcap zstd": lambda d: arm_mcap(d / "arm.mcap"),
    "mcap lz4": lambda d: arm_mcap(d / "arm.mcap", compression=CompressionType.LZ4),
    "mcap plain": lambda d: arm_mcap(d / "arm.mcap", compression=CompressionType.NONE),
    "mcap without chunks": lambda d: arm_mcap(d / "arm.mcap", use_chunking=False),
    "bag": lambda d: arm_bag(d / "arm.bag"),
    "bag bz2": lambda d: arm_bag(d / "arm.bag", compression=BagWriter.CompressionFormat.BZ2),
    "bag lz4": lambda d: arm_bag(d / "arm.bag", compression=BagWriter.CompressionFormat.LZ4),
    "rosbag2 sqlite": lambda d: arm_bag2(d / "arm"),
    "rosbag2 mcap": lambda d: arm_bag2(d / "arm", storage="mcap"),
    "rosbag2 packed file": lambda d: arm_bag2(d / "arm", compression=CompressionMode.FILE),
    "rosbag2 packed messages": lambda d: arm_bag2(d / "arm", compression=CompressionMode.MESSAGE),
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_joint_states_come_out_the_same_of_every_container(tmp_path, make):
    recording = only(make(tmp_path))
    assert {s.name for s in recording.streams} == {
        "/joint_states.position",
        "/joint_states.velocity",
    }
    stream = recording["/joint_states.position"]
    assert stream.labels == JOINTS
    assert stream.clock == "header"
    np.testing.assert_array_equal(stream.values, positions())
    np.testing.assert_allclose(stream.time, 0.01 * np.arange(20), atol=1e-9)
    assert any("unix 1699999999.998000000 s" in note for note in recording.notes)
    assert recording.id == "arm"


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_log_times_are_an_option(tmp_path, make):
    stream = only(make(tmp_path), stamps="log")["/joint_states.position"]
    assert stream.clock == "log"
    assert stream.time[0] == 0


def test_the_lag_between_header_and_log_is_noted(tmp_path):
    recording = only(arm_mcap(tmp_path / "a.mcap"))
    assert any("log times are 2 ms later" in note for note in recording.notes)


def test_a_folder_of_numbered_parts_without_metadata_is_one_recording(tmp_path):
    folder = arm_bag2(tmp_path / "arm")
    (folder / "metadata.yaml").unlink()
    recording = only(folder)
    assert len(recording["/joint_states.position"].time) == 20
    assert any("has no metadata.yaml" in note for note in recording.notes)


def test_topics_are_chosen_by_pattern(tmp_path):
    path = arm_mcap(tmp_path / "a.mcap")
    assert only(path, topics=("/joint*",)).streams
    with pytest.raises(StoreError, match="no stream of numbers"):
        only(path, topics=("/camera*",))


# ---- joints -------------------------------------------------------------------------------


def _states(folder, states):
    messages = [(t, joint_state(t, *s)) for t, s in zip(stamps(len(states)), states, strict=True)]
    schema = ("sensor_msgs/msg/JointState", "ros2msg", JOINT_STATE, "cdr", messages)
    return only(write_mcap(folder / "j.mcap", {"/j": schema}))


def test_joints_are_matched_by_name_when_their_order_changes(tmp_path):
    recording = _states(
        tmp_path, [(("a", "b"), (1, 2)), (("b", "a"), (4, 3)), (("a", "b"), (5, 6))]
    )
    assert recording["/j.position"].labels == ("a", "b")
    assert recording["/j.position"].values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert any("order of columns changes" in note for note in recording.notes)


def test_joints_missing_in_some_messages_are_nan_there(tmp_path):
    recording = _states(tmp_path, [(("a", "b"), (1, 2)), (("b",), (4,)), (("a", "b"), (5, 6))])
    values = recording["/j.position"].values
    assert np.isnan(values[1, 0]) and values[1, 1] == 4
    assert any("1 message(s) lack some of its 2 columns" in note for note in recording.notes)


def test_joints_named_twice_are_told_apart_by_place(tmp_path):
    recording = _states(tmp_path, [(("a", "a"), (1, 2)), (("a", "a"), (3, 4))])
    assert recording["/j.position"].labels == ("0", "1")


# ---- other messages -----------------------------------------------------------------------


def _one(folder, name, text, bodies, encoding="cdr", language="ros2msg"):
    messages = list(zip(stamps(len(bodies)), bodies, strict=True))
    return only(write_mcap(folder / "m.mcap", {"/m": (name, language, text, encoding, messages)}))


def test_imu_has_units_and_a_quaternion_in_wxyz_order(tmp_path):
    quaternion = "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
    vector = "float64 x\nfloat64 y\nfloat64 z\n"
    line = "=" * 80
    text = (
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
        "float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
        f"{TEXT_HEADER}{line}\nMSG: geometry_msgs/Quaternion\n{quaternion}"
        f"{line}\nMSG: geometry_msgs/Vector3\n{vector}"
    )
    bodies = []
    for i in range(3):
        cdr = Cdr().header(EPOCH + i)
        for value in (0.1, 0.2, 0.3, 0.4, *range(9), 7, 8, 9):
            cdr.number(value, "f8")
        bodies.append(cdr.bytes())
    recording = _one(tmp_path, "sensor_msgs/msg/Imu", text, bodies)
    assert recording["/m.orientation"].labels == ("w", "x", "y", "z")
    assert recording["/m.orientation"].values[0].tolist() == [0.4, 0.1, 0.2, 0.3]
    assert recording["/m.angular_velocity"].unit == "rad/s"
    assert recording["/m.orientation_covariance"].values.shape == (3, 9)


def test_arrays_of_changing_length_are_padded_with_nan(tmp_path):
    bodies = [Cdr().numbers([1.0] * n).bytes() for n in (2, 3, 2)]
    recording = _one(tmp_path, "x/msg/Many", "float64[] data\n", bodies)
    assert recording["/m.data"].values.shape == (3, 3)
    assert np.isnan(recording["/m.data"].values[0, 2])


def test_single_numbers_are_streams_without_columns(tmp_path):
    bodies = [Cdr().number(i, "f8").bytes() for i in range(4)]
    recording = _one(tmp_path, "std_msgs/msg/Float64", "float64 data\n", bodies)
    assert recording["/m"].values.tolist() == [0, 1, 2, 3]


def test_transforms_are_told_apart_by_child_frame(tmp_path):
    def transform(child, x):
        return {
            "header": {"stamp": {"sec": 1_700_000_000, "nanosec": 5}, "frame_id": "base"},
            "child_frame_id": child,
            "transform": {"translation": {"x": x, "y": 0, "z": 0}},
        }

    trees = [
        {"transforms": [transform("tool", 1), transform("cam", 2)]},
        {"transforms": [transform("cam", 3), transform("tool", 4)]},
    ]
    recording = only(json_mcap(tmp_path / "tf.mcap", trees, topic="/tf"))
    assert recording["/tf.transforms[tool].transform.translation"].values[:, 0].tolist() == [1, 4]
    assert recording["/tf.transforms[cam].transform.translation"].clock == "header"


def test_json_is_flattened_and_durations_are_seconds(tmp_path):
    trees = [
        {"timestamp": {"sec": 1_700_000_000 + i, "nsec": 0}, "q": [1, i],
         "took": {"sec": 0, "nsec": 5}, "ok": True, "mode": "auto", "none": None,
         "deep": {"a": {"b": 2.5}}}
        for i in range(3)
    ]  # fmt: skip
    recording = only(json_mcap(tmp_path / "j.mcap", trees))
    assert recording["/state"].labels == ("took", "ok")
    assert recording["/state"].values[0].tolist() == [5e-9, 1.0]
    assert recording["/state.q"].time.tolist() == [0, 1, 2]
    assert recording["/state.deep.a"].labels == ("b",)


def test_definitions_in_idl_are_understood(tmp_path):
    inner = (
        f"{'=' * 80}\nIDL: geometry_msgs/msg/Vector3\nmodule geometry_msgs {{ module msg {{\n"
        "  struct Vector3 { double x; double y; double z; };\n}; };\n"
    )
    outer = (
        f'{"=" * 80}\nIDL: pkg/msg/Outer\n#include "geometry_msgs/msg/Vector3.idl"\n'
        "module pkg { module msg {\n  struct Outer {\n    float gain;\n"
        "    sequence<double> data;\n    geometry_msgs::msg::Vector3 v;\n  };\n}; };\n"
    )
    bodies = [
        Cdr()
        .number(0.5, "f4")
        .numbers([1, i])
        .number(7, "f8")
        .number(8, "f8")
        .number(9, "f8")
        .bytes()
        for i in range(3)
    ]
    recording = _one(tmp_path, "pkg/msg/Outer", outer + inner, bodies, language="ros2idl")
    assert recording["/m"].values[:, 0].tolist() == [0.5] * 3
    assert recording["/m.data"].values.tolist() == [[1, 0], [1, 1], [1, 2]]
    assert recording["/m.v"].values[0].tolist() == [7, 8, 9]


def test_pictures_are_counted_not_decoded(tmp_path):
    text = (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
        f"uint8 is_bigendian\nuint32 step\nuint8[] data\n{TEXT_HEADER}"
    )
    bodies = [Cdr().header(EPOCH + i * STEP).bytes() + bytes(200) for i in range(4)]
    recording = _one(tmp_path, "sensor_msgs/msg/Image", text, bodies)
    stream = recording["/m"]
    assert (stream.kind, stream.clock, stream.source) == ("images", "header", "m.mcap:/m")
    assert stream.values.tolist() == [0, 1, 2, 3]


def test_other_encodings_are_named_and_the_rest_is_read(tmp_path):
    messages = [(t, b"\x08\x01") for t in stamps(3)]
    numbers = [(t, json.dumps({"x": 1}).encode()) for t in stamps(3)]
    path = write_mcap(
        tmp_path / "p.mcap",
        {
            "/pb": ("foxglove.Pose", "protobuf", "", "protobuf", messages),
            "/ok": ("", "", "", "json", numbers),
        },
    )
    recording = only(path)
    assert [s.name for s in recording.streams] == ["/ok"]
    assert any(
        "/pb: 3 message(s) were left out" in n and "'protobuf'" in n for n in recording.notes
    )


def test_scans_longer_than_the_limit_of_columns_are_named(tmp_path):
    bodies = [Cdr().numbers(np.zeros(50)).number(3, "f8").bytes() for _ in range(2)]
    messages = list(zip(stamps(2), bodies, strict=True))
    text = "float64[] ranges\nfloat64 rate\n"
    path = write_mcap(tmp_path / "s.mcap", {"/s": ("x/msg/S", "ros2msg", text, "cdr", messages)})
    recording = only(path, columns=20)
    assert recording["/s"].labels == ("rate",)
    assert any("/s.ranges was left out: it holds 50 numbers" in note for note in recording.notes)


def test_header_stamps_of_another_epoch_are_moved_and_noted(tmp_path):
    messages = [(t, joint_state(5 * NS + i * STEP, ("a",), (i,))) for i, t in enumerate(stamps(3))]
    text = ("sensor_msgs/msg/JointState", "ros2msg", JOINT_STATE, "cdr", messages)
    recording = only(write_mcap(tmp_path / "u.mcap", {"/j": text}))
    assert recording["/j.position"].time == pytest.approx([0, 0.01, 0.02])
    assert any("count from another beginning" in note for note in recording.notes)


def test_topics_without_stamps_use_log_times(tmp_path):
    messages = [(t, joint_state(0 if i else t, ("a",), (i,))) for i, t in enumerate(stamps(3))]
    text = ("sensor_msgs/msg/JointState", "ros2msg", JOINT_STATE, "cdr", messages)
    recording = only(write_mcap(tmp_path / "u.mcap", {"/j": text}))
    assert recording["/j.position"].clock == "log"
    assert any("2 of 3 messages have no stamp" in note for note in recording.notes)


def test_bags_without_definitions_fall_back_on_the_messages_ros_ships(tmp_path):
    folder = arm_bag2(tmp_path / "arm")
    (file,) = folder.glob("*.db3")
    with sqlite3.connect(file) as base:
        base.execute("DROP TABLE message_definitions")
    base.close()
    assert only(folder)["/joint_states.position"].labels == JOINTS


# ---- the decoder against the libraries ----------------------------------------------------

_BASES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float32",
    "float64",
)
_field = st.tuples(
    st.sampled_from((*_BASES, "string", "Inner")), st.sampled_from(("", "[]", "[3]"))
)


def _value(draw, base, holder, inner):
    if holder:
        count = 3 if holder == "[3]" else draw(st.integers(0, 4))
        return [_value(draw, base, "", inner) for _ in range(count)]
    if base == "Inner":
        return {name: _value(draw, kind, form, ()) for name, kind, form in inner}
    if base == "string":
        return draw(st.text("abcé", max_size=5))
    if base == "bool":
        return draw(st.booleans())
    if base.startswith("float"):
        return draw(st.floats(-1000, 1000, width=32))
    low = 0 if base.startswith("u") else -100
    return draw(st.integers(low, 100))


@st.composite
def _messages(draw):
    inner = tuple(
        (f"a{i}", base, holder)
        for i, (base, holder) in enumerate(
            draw(st.lists(_field.filter(lambda f: f[0] != "Inner"), min_size=1, max_size=3))
        )
    )
    outer = tuple(
        (f"b{i}", base, holder)
        for i, (base, holder) in enumerate(draw(st.lists(_field, min_size=1, max_size=5)))
    )
    tree = {name: _value(draw, base, holder, inner) for name, base, holder in outer}

    def text(fields):
        return "".join(f"{base}{holder} {name}\n" for name, base, holder in fields)

    return f"{text(outer)}{'=' * 80}\nMSG: pkg/Inner\n{text(inner)}", tree


def _plain(node):
    """Trees of the library as mappings, lists and numbers."""
    if isinstance(node, (bool, int, float, str)):
        return node
    if isinstance(node, (bytes, list, tuple, np.ndarray)):
        return [_plain(x) for x in node]
    return {name: _plain(getattr(node, name)) for name in node.__slots__}


def _without_octets(node, own):
    """The library's tree where the reader skipped over bytes."""
    if isinstance(own, dict):
        return {key: _without_octets(node[key], own[key]) for key in own}
    if isinstance(own, (list, tuple)):
        return [_without_octets(a, b) for a, b in zip(node, own, strict=True)]
    return own if own.__class__.__name__ == "Skipped" and own.count == len(node) else node


@settings(max_examples=150, deadline=None)
@given(_messages())
def test_cdr_is_decoded_as_by_the_ros2_library_of_mcap(case):
    from mcap_ros2._dynamic import generate_dynamic, serialize_dynamic

    from sameworld.store.recordings.definitions import parse_definitions
    from sameworld.store.recordings.wire import decode_message

    text, tree = case
    data = serialize_dynamic("pkg/msg/Outer", text)["pkg/msg/Outer"](tree)
    reference = _plain(generate_dynamic("pkg/msg/Outer", text)["pkg/msg/Outer"](data))
    definitions = parse_definitions(text, "pkg/msg/Outer", "msg")
    own = decode_message(data, "pkg/msg/Outer", definitions, "cdr", 100)
    expected = _without_octets(reference, own)
    assert json.dumps(own, default=repr) == json.dumps(expected, default=repr)


@settings(max_examples=60, deadline=None)
@given(_messages())
def test_ros1_wire_is_decoded_as_by_rosbags(case):
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    from sameworld.store.recordings.definitions import parse_definitions
    from sameworld.store.recordings.wire import decode_message

    text, tree = case
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(text, "pkg/msg/Outer"))
    data = bytes(store.serialize_ros1(_typed(store, "pkg/msg/Outer", tree), "pkg/msg/Outer"))
    definitions = parse_definitions(text, "pkg/msg/Outer", "msg")
    own = decode_message(data, "pkg/msg/Outer", definitions, "ros1", 100)
    assert json.dumps(own, default=repr) == json.dumps(_without_octets(tree, own), default=repr)


def _typed(store, name, tree):
    """A tree as the objects that rosbags serialises."""
    found = {}
    for key, (node, inner) in store.fielddefs[name][1]:
        value = tree[key]
        if node == 2:
            found[key] = _typed(store, inner, value)
        elif node in (3, 4) and inner[0][0] == 2:
            found[key] = [_typed(store, inner[0][1], item) for item in value]
        elif node in (3, 4) and inner[0][1][0] != "string":
            found[key] = np.array(value, dtype=inner[0][1][0])
        else:
            found[key] = value
    return store.types[name](**found)


def test_bags_are_scanned_as_by_the_index_of_rosbags(tmp_path):
    from rosbags.rosbag1 import Reader

    from sameworld.store.recordings.bag_files import collect_bag

    @dataclass
    class Kept:
        notes: list = field(default_factory=list)
        got: list = field(default_factory=list)
        messages = 0

        def wants(self, topic):
            return True

        def add(self, topic, logged, data):
            self.got.append((topic.name, logged, data))

    path = arm_bag(tmp_path / "a.bag", compression=BagWriter.CompressionFormat.LZ4)
    kept = Kept()
    collect_bag(path, kept, ReadOptions())
    with Reader(path) as reader:
        expected = [(c.topic, t, bytes(d)) for c, t, d in reader.messages()]
    assert kept.got == expected
