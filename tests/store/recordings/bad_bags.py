"""Bad ROS 1 bags, databases and rosbag2 folders."""

import sqlite3
import struct

from bad_case_files import BadRecording, bytes_in, cut, edited
from recording_files import arm_bag, arm_bag2
from rosbags.rosbag1 import Writer as BagWriter

# ---- ROS 1 --------------------------------------------------------------------------------


def _bag(count=40, compression=None):
    return lambda folder: arm_bag(folder / "arm.bag", count, compression)


def _unindexed(content):
    at = content.index(b"index_pos=") + len(b"index_pos=")
    return content[:at] + bytes(8) + content[at + 8 :]


def _field_patched(name, value):
    def edit(content):
        at = content.index(name) + len(name)
        return content[:at] + value + content[at + len(value) :]

    return edit


def _chunk_spoiled(content):
    at = content.index(b"compression=") + 120
    return content[:at] + bytes(40) + content[at + 40 :]


BAGS = (
    BadRecording(
        name="bag: cut in its only chunk",
        make=cut(_bag(), 0.5),
        words="cut off or is damaged at byte",
        kept=(1, 39),
    ),
    BadRecording(
        name="bag: lz4 chunk cut",
        make=cut(_bag(4000, BagWriter.CompressionFormat.LZ4), 0.6),
        words="cut off or is damaged at byte",
        kept=(500, 3999),
    ),
    BadRecording(
        name="bag: cut in its index, nothing is lost",
        make=cut(_bag(), 0.98),
        words="Times count from",
        kept=(40, 40),
    ),
    BadRecording(
        name="bag: not closed by the recorder",
        make=edited(_bag(), _unindexed),
        words="has no index: the recorder did not close it",
        kept=(40, 40),
    ),
    BadRecording(
        name="bag: another version",
        make=edited(_bag(), lambda c: c.replace(b"V2.0", b"V1.2", 1)),
        words="only bags of version 2.0",
    ),
    BadRecording(
        name="bag: nothing but its first line",
        make=bytes_in("a.bag", b"#ROSBAG V2.0\n"),
        words="no stream of numbers",
    ),
    BadRecording(
        name="bag: a header of four gibibytes",
        make=bytes_in("a.bag", b"#ROSBAG V2.0\n\xff\xff\xff\xff" + bytes(100)),
        words="a header declares 4294967295 bytes where 100 are left",
    ),
    BadRecording(
        name="bag: encrypted",
        make=bytes_in(
            "a.bag",
            b"#ROSBAG V2.0\n"
            + struct.pack("<I", 27)
            + struct.pack("<I", 4) + b"op=\x03"
            + struct.pack("<I", 15) + b"encryptor=aes16"
            + struct.pack("<I", 0),
        ),
        words="is encrypted",
    ),
    BadRecording(
        name="bag: bz2 chunk with zeros in it",
        make=edited(_bag(400, BagWriter.CompressionFormat.BZ2), _chunk_spoiled),
        words="no stream of numbers .*is damaged: it cannot be unpacked",
    ),
    BadRecording(
        name="bag: a chunk that unpacks to more than it declares",
        make=edited(
            _bag(400, BagWriter.CompressionFormat.LZ4), _field_patched(b"size=", b"\x10\0\0\0")
        ),
        words="it unpacks to more than 16 bytes",
    ),
)  # fmt: skip


# ---- rosbag2 ------------------------------------------------------------------------------


def _file(folder):
    (file,) = folder.glob("*.db3")
    return file


def _database(count, spoil):
    """The database of a bag, taken out of its folder and spoilt."""

    def make(folder):
        file = _file(arm_bag2(folder / "whole", count))
        target = folder / "arm.db3"
        target.write_bytes(spoil(file.read_bytes()))
        for path in (folder / "whole").iterdir():
            path.unlink()
        (folder / "whole").rmdir()
        return target

    return make


def _sql(*statements):
    def make(folder):
        target = folder / "x.db3"
        with sqlite3.connect(target) as base:
            for statement in statements:
                base.execute(statement)
        base.close()
        return target

    return make


def _statements_on_bag(*statements):
    def make(folder):
        bag = arm_bag2(folder / "arm", 20)
        with sqlite3.connect(_file(bag)) as base:
            for statement in statements:
                base.execute(statement)
        base.close()
        return bag

    return make


def _wal(folder):
    bag = arm_bag2(folder / "arm", 20)
    file = _file(bag)
    file.with_name(f"{file.name}-wal").write_bytes(bytes(5000))
    return bag


def _yaml(edit, storage="sqlite3"):
    """A bag whose metadata went through ``edit``."""

    def make(folder):
        bag = arm_bag2(folder / "arm", 20, storage)
        file = bag / "metadata.yaml"
        file.write_text(edit(file.read_text()))
        return bag

    return make


def _linked(folder):
    bag = arm_bag2(folder / "arm", 20)
    file = _file(bag)
    file.rename(folder / "elsewhere.db3")
    file.symlink_to(folder / "elsewhere.db3")
    return bag


def _half_gone(folder):
    bag = arm_bag2(folder / "arm", 20)
    file = bag / "metadata.yaml"
    text = file.read_text()
    name = _file(bag).name
    file.write_text(text.replace(f"- {name}", f"- {name}\n  - arm_1.db3"))
    return bag


def _middle_zeroed(content):
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


_FOLDERS = "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT)"
_ENDLESS = (
    "CREATE VIEW messages AS WITH RECURSIVE c(id, topic_id, timestamp, data) AS "
    "(VALUES(1,1,1,x'00') UNION ALL SELECT id + 1, 1, 1, x'00' FROM c) SELECT * FROM c"
)
_ALIASES = "a: &a [1]\n" + "".join(f"k{i}: [*a, *a]\n" for i in range(30))

BAGS2 = (
    BadRecording(
        name="db3: cut in the middle",
        make=_database(600, lambda c: c[: len(c) // 2]),
        words="was cut off or is damaged: .*after|truncated or no usable SQLite",
        kept=(50, 599),
    ),
    BadRecording(
        name="db3: cut in its first page",
        make=_database(20, lambda c: c[:90]),
        words="truncated or no usable SQLite database",
    ),
    BadRecording(
        name="db3: zeros in the middle",
        make=_database(600, _middle_zeroed),
        words="was cut off or is damaged",
        kept=(20, 599),
    ),
    BadRecording(
        name="db3: another program's database",
        make=_sql("CREATE TABLE contacts(id INTEGER)"),
        words="SQLite database of 'contacts', not a rosbag2 one",
    ),
    BadRecording(
        name="db3: messages that are an endless query",
        make=_sql(_FOLDERS, _ENDLESS),
        words="not a rosbag2 one",
    ),
    BadRecording(
        name="db3: rows without bytes",
        make=_statements_on_bag("UPDATE messages SET data = 'text' WHERE id % 2 = 0"),
        words="10 row.s. hold no bytes or no time",
        kept=(10, 10),
    ),
    BadRecording(
        name="db3: messages of a topic that is not there",
        make=_statements_on_bag("UPDATE messages SET topic_id = 9 WHERE id > 15"),
        words="5 message.s. belong to no declared topic",
        kept=(15, 15),
    ),
    BadRecording(
        name="db3: a log that was not merged",
        make=_wal,
        words="holds 5000 bytes that were not merged",
        kept=(20, 20),
    ),
    BadRecording(
        name="rosbag2: metadata names a file outside",
        make=_yaml(lambda t: t.replace("- arm.db3", "- ../../etc/x.db3")),
        words="which lies outside the folder",
    ),
    BadRecording(
        name="rosbag2: metadata names an absolute path",
        make=_yaml(lambda t: t.replace("- arm.db3", "- /etc/passwd")),
        words="names the file '/etc/passwd', which lies outside",
    ),
    BadRecording(
        name="rosbag2: a link that leaves the folder",
        make=_linked,
        words="is a link that leaves the folder",
    ),
    BadRecording(
        name="rosbag2: a file is missing",
        make=_yaml(lambda t: t.replace("- arm.db3", "- other.db3")),
        words="'other.db3' is missing, although metadata.yaml names it",
    ),
    BadRecording(
        name="rosbag2: one part of two is missing",
        make=_half_gone,
        words="'arm_1.db3' is missing",
        kept=(20, 20),
    ),
    BadRecording(
        name="rosbag2: metadata promises more messages",
        make=_yaml(lambda t: t.replace("message_count: 20", "message_count: 500")),
        words="counts 500 messages, 20 were found",
        kept=(20, 20),
    ),
    BadRecording(
        name="rosbag2: metadata is no YAML",
        make=_yaml(lambda t: "a: [b\nc: }"),
        words="is no usable YAML",
    ),
    BadRecording(
        name="rosbag2: metadata builds Python objects",
        make=_yaml(lambda t: "!!python/object/apply:os.getcwd []\n"),
        words="is no usable YAML|lacks 'rosbag2_bagfile_information'",
    ),
    BadRecording(
        name="rosbag2: metadata is nested a thousand times",
        make=_yaml(lambda t: "[" * 5000),
        words="is no usable YAML",
    ),
    BadRecording(
        name="rosbag2: metadata full of aliases",
        make=_yaml(lambda t: _ALIASES),
        words="full of aliases",
    ),
    BadRecording(
        name="rosbag2: metadata of something else",
        make=_yaml(lambda t: "version: 3\n"),
        words="lacks 'rosbag2_bagfile_information'",
    ),
    BadRecording(
        name="rosbag2: metadata is empty",
        make=_yaml(lambda t: ""),
        words="lacks 'rosbag2_bagfile_information'",
    ),
    BadRecording(
        name="rosbag2: metadata names no files",
        make=_yaml(lambda t: t.replace("- arm.db3", "[]")),
        words="names no files|is no usable YAML",
    ),
    BadRecording(
        name="rosbag2: an unknown compression",
        make=_yaml(
            lambda t: t.replace("compression_format: ''", "compression_format: rar").replace(
                "compression_mode: ''", "compression_mode: message"
            )
        ),
        words="compression 'rar' is not supported",
    ),
)
