"""Small files of every format, written by the libraries that own them."""

import io
import json
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType, Writer

NS = 1_000_000_000
EPOCH = 1_700_000_000 * NS
STEP = 10_000_000
JOINTS = ("shoulder", "elbow", "wrist")

TEXT_HEADER = """
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
JOINT_STATE = f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{TEXT_HEADER}"""
JOINT_STATE_1 = """Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
"""


def stamps(count=20):
    return [EPOCH + i * STEP for i in range(count)]


def positions(count=20):
    return np.random.default_rng(5).normal(size=(count, 3))


class Cdr:
    """Writes little-endian CDR, independently of the reader under test."""

    def __init__(self):
        self._out = io.BytesIO(b"\0\1\0\0")
        self._out.seek(4)

    def _put(self, value, kind):
        array = np.array(value, dtype=f"<{kind}")
        while (self._out.tell() - 4) % array.dtype.itemsize:
            self._out.write(b"\0")
        self._out.write(array.tobytes())
        return self

    def number(self, value, kind):
        return self._put(value, kind)

    def text(self, value):
        self._put(len(value.encode()) + 1, "u4")
        self._out.write(value.encode() + b"\0")
        return self

    def numbers(self, values, kind="f8"):
        self._put(len(values), "u4")
        return self._put(values, kind) if len(values) else self

    def texts(self, values):
        self._put(len(values), "u4")
        for value in values:
            self.text(value)
        return self

    def header(self, stamp):
        return self.number(stamp // NS, "i4").number(stamp % NS, "u4").text("base")

    def bytes(self):
        return self._out.getvalue()


def joint_state(stamp, names, position, velocity=(), effort=()):
    cdr = Cdr().header(stamp).texts(names)
    return cdr.numbers(position).numbers(velocity).numbers(effort).bytes()


def write_mcap(path, channels, *, compression=CompressionType.ZSTD, chunk_size=1024, **options):
    """``channels``: topic -> (schema name, schema encoding, text, message encoding, messages).

    Messages are ``(log time [ns], bytes)``.
    """
    with Path(path).open("wb") as file:
        writer = Writer(file, compression=compression, chunk_size=chunk_size, **options)
        writer.start("ros2", "tests")
        queue = []
        for topic, (name, language, text, encoding, messages) in channels.items():
            schema = writer.register_schema(name, language, text.encode()) if name else 0
            channel = writer.register_channel(topic, encoding, schema)
            queue += [(stamp, channel, data) for stamp, data in messages]
        for stamp, channel, data in sorted(queue, key=lambda entry: entry[0]):
            writer.add_message(channel, stamp, data, stamp)
        writer.finish()
    return Path(path)


def arm_mcap(path, count=20, **options):
    """Joint states whose header stamps are 2 ms before their log times."""
    rows = positions(count)
    messages = [
        (t, joint_state(t - 2_000_000, JOINTS, row, 2 * row))
        for t, row in zip(stamps(count), rows, strict=True)
    ]
    channels = {
        "/joint_states": ("sensor_msgs/msg/JointState", "ros2msg", JOINT_STATE, "cdr", messages)
    }
    return write_mcap(path, channels, **options)


def json_mcap(path, trees, topic="/state", **options):
    messages = [
        (t, json.dumps(tree).encode()) for t, tree in zip(stamps(len(trees)), trees, strict=True)
    ]
    return write_mcap(path, {topic: ("State", "jsonschema", "{}", "json", messages)}, **options)


def arm_bag(path, count=20, compression=None):
    """The same joint states as a ROS 1 bag."""
    from rosbags.rosbag1 import Writer as BagWriter
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    with_bag = BagWriter(path)
    if compression is not None:
        with_bag.set_compression(compression)
    with with_bag as writer:
        kind = "sensor_msgs/msg/JointState"
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for index, (stamp, row) in enumerate(zip(stamps(count), positions(count), strict=True)):
            at = stamp - 2_000_000
            time = types["builtin_interfaces/msg/Time"](sec=at // NS, nanosec=at % NS)
            header = types["std_msgs/msg/Header"](seq=index, stamp=time, frame_id="base")
            message = types[kind](
                header=header, name=list(JOINTS), position=row, velocity=2 * row, effort=np.zeros(0)
            )
            writer.write(connection, stamp, store.serialize_ros1(message, kind))
    return Path(path)


def arm_bag2(folder, count=20, storage="sqlite3", compression=None):
    """The same joint states as a rosbag2 folder."""
    from rosbags.rosbag2 import CompressionFormat, StoragePlugin
    from rosbags.rosbag2 import Writer as BagWriter
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    plugin = StoragePlugin.SQLITE3 if storage == "sqlite3" else StoragePlugin.MCAP
    bag = BagWriter(folder, version=8, storage_plugin=plugin)
    if compression is not None:
        bag.set_compression(compression, CompressionFormat.ZSTD)
    with bag as writer:
        kind = "sensor_msgs/msg/JointState"
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for stamp, row in zip(stamps(count), positions(count), strict=True):
            data = joint_state(stamp - 2_000_000, JOINTS, row, 2 * row)
            writer.write(connection, stamp, data)
    return Path(folder)


def arm_csv(path, count=20):
    lines = ["time [s],q_0 [rad],q_1 [rad],q_2 [rad],effort"]
    lines += [
        f"{0.01 * i:.3f},{a:.6f},{b:.6f},{c:.6f},{a * b:.6f}"
        for i, (a, b, c) in enumerate(positions(count))
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(path)


def arm_npz(path, count=20):
    q = positions(count)
    np.savez(path, t=0.01 * np.arange(count), q=q, dq=2 * q)
    return Path(path)


def arm_parquet(path, count=20):
    import pyarrow as pa
    import pyarrow.parquet as pq

    q = positions(count)
    table = pa.table({"time": 0.01 * np.arange(count), "q_0": q[:, 0], "q_1": q[:, 1]})
    pq.write_table(table, path)
    return Path(path)
