"""Bad MCAP files and bad messages inside them."""

import zstandard
from bad_case_files import (
    BadRecording,
    bytes_in,
    chunks_edited,
    cut,
    edited,
    mcap_of,
    mcap_records,
    record,
)
from mcap.writer import CompressionType
from recording_files import (
    JOINT_STATE,
    arm_mcap,
    joint_state,
    json_mcap,
    stamps,
    write_mcap,
)

_PLAIN = {"compression": CompressionType.NONE, "enable_crcs": False}
_LZ4 = {"compression": CompressionType.LZ4}


def _arm(name="arm.mcap", count=40, **options):
    return lambda folder: arm_mcap(folder / name, count, **options)


def _json(trees):
    return lambda folder: json_mcap(folder / "j.mcap", trees)


def _bodies(text, bodies, name="x/msg/T", good=True):
    """A topic of given bytes beside a good one."""

    def make(folder):
        messages = list(zip(stamps(len(bodies)), bodies, strict=True))
        channels = {"/bad": (name, "ros2msg", text, "cdr", messages)}
        if good:
            lines = [(t, b'{"x": 1}') for t in stamps(5)]
            channels = {"/good": ("", "", "", "json", lines), **channels}
        return write_mcap(folder / "m.mcap", channels)

    return make


def _raw_json(bodies):
    def make(folder):
        good = [(t, b'{"x": 1}') for t in stamps(5)]
        bad = list(zip(stamps(len(bodies)), bodies, strict=True))
        channels = {"/good": ("", "", "", "json", good), "/bad": ("", "", "", "json", bad)}
        return write_mcap(folder / "m.mcap", channels)

    return make


def _sizeless(begin, end, size, crc, kind, data):
    packer = zstandard.ZstdCompressor(write_content_size=False)
    return begin, end, size, crc, "zstd", packer.compress(zstandard.decompress(data, size))


def _bomb(begin, end, size, crc, kind, data):
    bomb = zstandard.compress(bytes(300 << 20))
    return begin, end, 300 << 20, 0, "zstd", bomb


def _quiet_bomb(begin, end, size, crc, kind, data):
    return begin, end, 1000, 0, "zstd", zstandard.compress(bytes(300 << 20))


def _packed(folder):
    path = arm_mcap(folder / "arm.mcap", 4000, compression=CompressionType.NONE)
    whole = zstandard.compress(path.read_bytes())
    path.unlink()
    target = folder / "arm.mcap.zstd"
    target.write_bytes(whole[: int(0.7 * len(whole))])
    return target


def _longest_length(content):
    records = mcap_records(content)
    body = mcap_of([r for r in records if r[0] != 15][:8])[:-8]
    return body + record(6, b"", (1 << 64) - 1) + bytes(100)


def _orphans(content):
    return mcap_of([(op, body) for op, body in mcap_records(content) if op != 4])


def _late(folder):
    path = arm_mcap(folder / "arm.mcap", 10, use_chunking=False)
    records = mcap_records(path.read_bytes())
    late = [
        (op, body[:6] + b"\xff" * 8 + body[14:]) if op == 5 and i % 2 else (op, body)
        for i, (op, body) in enumerate(records)
    ]
    path.write_bytes(mcap_of(late))
    return path


def _protobuf_only(folder):
    messages = [(t, b"\x08\x01") for t in stamps(3)]
    return write_mcap(folder / "p.mcap", {"/p": ("a.B", "protobuf", "", "protobuf", messages)})


_LINE = "=" * 80
_NESTED = (
    f"A[1000] a\n{_LINE}\nMSG: x/A\nB[1000] b\n{_LINE}\nMSG: x/B\nC[1000] c\n{_LINE}\nMSG: x/C\n"
)
_DEEP_JSON = b'{"a":' * 100 + b"1" + b"}" * 100

MCAP = (
    BadRecording(
        name="mcap: cut inside its first bytes",
        make=bytes_in("a.mcap", b"\x89MCA"),
        words="named like mcap but begins with the bytes 89 4d 43 41",
    ),
    BadRecording(
        name="mcap: nothing but its first bytes",
        make=bytes_in("a.mcap", b"\x89MCAP0\r\n"),
        words="no stream of numbers .* ends without a footer",
    ),
    BadRecording(
        name="mcap: zstd cut in the middle",
        make=cut(_arm(), 0.5),
        words=r"cut off or is damaged at byte \d+.* of \d+ bytes could not be used",
        kept=(10, 30),
    ),
    BadRecording(
        name="mcap: lz4 cut late",
        make=cut(_arm(**_LZ4), 0.7),
        words="cut off or is damaged",
        kept=(15, 39),
    ),
    BadRecording(
        name="mcap: uncompressed chunk cut; its messages before the cut are read",
        make=cut(_arm(chunk_size=1 << 20, **_PLAIN), 0.5),
        words=r"the last chunk, cut off, reached 0\.\d+ s further than the last message",
        kept=(10, 30),
    ),
    BadRecording(
        name="mcap: cut without chunks",
        make=cut(_arm(use_chunking=False), 0.5),
        words="a record declares",
        kept=(10, 30),
    ),
    BadRecording(
        name="mcap: cut in its summary, nothing is lost",
        make=cut(_arm(), 0.97),
        words="Times count from",
        kept=(40, 40),
    ),
    BadRecording(
        name="mcap: zstd chunks without content size",
        make=edited(_arm(), chunks_edited(_sizeless)),
        words="Times count from",
        kept=(40, 40),
    ),
    BadRecording(
        name="mcap: a length of 16 EiB",
        make=edited(_arm(), _longest_length),
        words="a record declares 18446744073709551615 bytes where",
        kept=(1, 39),
    ),
    BadRecording(
        name="mcap: a chunk that declares 1 EiB",
        make=edited(_arm(), chunks_edited(lambda b, e, s, c, k, d: (b, e, 1 << 60, c, k, d), 1)),
        words="it declares 1152921504606846976 bytes",
        kept=(10, 39),
    ),
    BadRecording(
        name="mcap: a chunk that unpacks to 300 MiB",
        make=edited(_arm(), chunks_edited(_bomb, 1)),
        words="is damaged: it declares 314572800 bytes",
        kept=(10, 39),
    ),
    BadRecording(
        name="mcap: a chunk that unpacks to far more than it declares",
        make=edited(_arm(), chunks_edited(_quiet_bomb, 1)),
        words="it unpacks to more than 1000 bytes",
        kept=(10, 39),
    ),
    BadRecording(
        name="mcap: a chunk with a wrong checksum",
        make=edited(_arm(), chunks_edited(lambda b, e, s, c, k, d: (b, e, s, c ^ 1, k, d), 0)),
        words=r"its checksum is wrong; its messages were left out",
        kept=(10, 39),
    ),
    BadRecording(
        name="mcap: an unknown compression",
        make=edited(_arm(), chunks_edited(lambda b, e, s, c, k, d: (b, e, s, c, "brotli", d), 1)),
        words="its compression 'brotli' is unknown",
        kept=(10, 39),
    ),
    BadRecording(
        name="mcap: zeros where a record should be",
        make=edited(_arm(use_chunking=False), lambda c: c[: len(c) // 2] + bytes(len(c) // 2)),
        words="what follows is no record|is malformed|could not be decoded|are malformed",
        kept=(10, 30),
    ),
    BadRecording(
        name="mcap: messages of no declared topic",
        make=edited(_arm(use_chunking=False), _orphans),
        words="40 message.s. belong to no declared topic",
    ),
    BadRecording(
        name="mcap: packed as a whole and cut",
        make=_packed,
        words="it ends without a footer|a record declares|ends inside",
        kept=(1000, 3999),
    ),
    BadRecording(
        name="mcap: log times beyond all clocks",
        make=_late,
        words="could not be decoded, the first because its log time 18446744073709551615 ns",
        kept=(3, 7),
    ),
    BadRecording(
        name="mcap: nothing but protobuf",
        make=_protobuf_only,
        words="in the encoding 'protobuf' are not supported .*convert the topic",
    ),
    BadRecording(
        name="mcap: junk with the right name",
        make=bytes_in("a.mcap", bytes(range(256)) * 10),
        words="named like mcap but begins with",
    ),
    BadRecording(
        name="cdr: messages that end early",
        make=_bodies(JOINT_STATE, [joint_state(5, ("a",), (1,))[:-9]] * 3, "x/msg/JointState"),
        words="/bad: 3 of 3 message.s. could not be decoded, the first because it",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: an array of four billion numbers",
        make=_bodies("float64[] data\n", [b"\0\1\0\0\xff\xff\xff\xff" + bytes(20)]),
        words="an array of 4294967295 float64 in",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: a list of four billion structs",
        make=_bodies(f"E[] e\n{_LINE}\nMSG: x/E\n", [b"\0\1\0\0\xff\xff\xff\xff"]),
        words="a list of 4294967295 structs",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: a text of four billion bytes",
        make=_bodies("string s\nfloat64 x\n", [b"\0\1\0\0\xff\xff\xff\xff" + bytes(8)]),
        words="a text of 4294967295 bytes",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: fixed lists inside fixed lists, a billion structs from ten bytes",
        make=_bodies(_NESTED, [b"\0\1\0\0" + bytes(10)]),
        words="more than 200000 values",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: a struct that contains itself",
        make=_bodies(f"N n\n{_LINE}\nMSG: x/N\nN n\nfloat64 v\n", [b"\0\1\0\0" + bytes(64)]),
        words="nested more than 32 levels",
        kept=(5, 5),
    ),
    BadRecording(
        name="cdr: an encapsulation nobody knows",
        make=_bodies("float64 x\n", [b"\xab\xcd\0\0" + bytes(8)]),
        words="CDR representation 0xabcd",
        kept=(5, 5),
    ),
    BadRecording(
        name="definition: no language at all",
        make=_bodies("float64 ]x[\n", [b"\0\1\0\0" + bytes(8)]),
        words="its definition cannot be parsed",
        kept=(5, 5),
    ),
    BadRecording(
        name="definition: a type that is not defined",
        make=_bodies("Missing m\n", [b"\0\1\0\0" + bytes(8)]),
        words="the type 'x/msg/Missing' is not defined",
        kept=(5, 5),
    ),
    BadRecording(
        name="definition: a megabyte of fields",
        make=_bodies("float64 x\n" * 100_000, [b"\0\1\0\0" + bytes(8)]),
        words="its definition has 1000000 characters",
        kept=(5, 5),
    ),
    BadRecording(
        name="json: a hundred thousand brackets",
        make=_raw_json([b"[" * 100_000]),
        words="it is no JSON",
        kept=(5, 5),
    ),
    BadRecording(
        name="json: a hundred levels",
        make=_raw_json([_DEEP_JSON]),
        words="nested more than 32 levels",
        kept=(5, 5),
    ),
    BadRecording(
        name="json: cut off, and no text at all",
        make=_raw_json([b'{"x": 1', b"\xff\xfe\xfd"]),
        words="/bad: 2 of 2 message.s. could not be decoded",
        kept=(5, 5),
    ),
    BadRecording(
        name="json: an integer beyond floats",
        make=_raw_json([b'{"x": 1' + b"0" * 400 + b"}"]),
        words="int too large",
        kept=(5, 5),
    ),
    BadRecording(
        name="json: other columns in every message",
        make=_json([{f"k{i}": 1.0} for i in range(30)]),
        words="30 message.s. lack some of its 30 columns",
        kept=(30, 30),
    ),
    BadRecording(
        name="json: other columns in every message, beyond the limit",
        make=_json([{f"k{i}_{j}": 1.0 for j in range(60)} for i in range(60)]),
        words="different columns in|more numbers than the limit",
        options={"limit": 1_000_000},
    ),
)
