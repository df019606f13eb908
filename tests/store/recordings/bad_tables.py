"""Bad CSV, NPZ and Parquet files, and things that are no recordings at all."""

import io
import os
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bad_case_files import BadRecording, bytes_in, cut, edited
from recording_files import arm_csv, arm_npz, arm_parquet

_BODY = "".join(f"{0.1 * i:.1f},{i % 3}\n" for i in range(10))


def _csv(text, name="log.csv"):
    return bytes_in(name, text)


def _arm(folder):
    return arm_csv(folder / "arm.csv", 40)


CSV = (
    BadRecording(name="csv: empty", make=_csv(""), words=r"is empty \(0 bytes\)"),
    BadRecording(
        name="csv: nothing but comments", make=_csv("# a\n\n# b\n"), words="holds no line of data"
    ),
    BadRecording(
        name="csv: a heading alone", make=_csv("t,x\n"), words="has no row of 2 fields like its"
    ),
    BadRecording(
        name="csv: binary junk",
        make=_csv(bytes(range(256)) * 4),
        words="named like a table but is binary: byte 0 is 0x00",
    ),
    BadRecording(
        name="csv: binary after a good beginning",
        make=_csv(f"t,x\n{_BODY}".encode() + b"\x01\x02"),
        words="is binary: byte 64 is 0x01",
    ),
    BadRecording(
        name="csv: text in no encoding",
        make=_csv(f"t,x\n{_BODY}".encode() + b"\x81\x8d\n"),
        words="text in no known encoding: byte .* is 0x81",
    ),
    BadRecording(
        name="csv: UTF-16 cut in a character",
        make=_csv(f"t,x\n{_BODY}".encode("utf-16")[:-1]),
        words="no valid utf-16 text|no known encoding",
    ),
    BadRecording(
        name="csv: no time",
        make=_csv("a,b\n1,5\n3,2\n2,2\n"),
        words="no column named like a time among 'a', 'b', and none of them always increases",
    ),
    BadRecording(
        name="csv: two columns that might be the time",
        make=_csv("a,b\n" + "".join(f"{i / 10},{i / 5}\n" for i in range(9))),
        words="'a', 'b' all increase. Name it with the option time",
    ),
    BadRecording(
        name="csv: a time that was misspelt",
        make=_csv(f"stamp,x\n{_BODY}"),
        words="no column 'stmap' for the time. It has 'stamp', 'x'. Did you mean 'stamp'",
        options={"time": "stmap"},
    ),
    BadRecording(
        name="csv: a time that counts 1, 2, 3",
        make=_csv("t,x\n" + "".join(f"{i},{i % 2}\n" for i in range(9))),
        words="counts 1, 2, 3, .*time_unit",
    ),
    BadRecording(
        name="csv: a time in parsecs",
        make=_csv(f"t [pc],x\n{_BODY}"),
        words="time column 't' is in 'pc'. Known: s, ms, us, ns",
    ),
    BadRecording(
        name="csv: a time of words",
        make=_csv("t,x\nnow,1\nthen,2\n"),
        words="no column named like a time among 'x'|holds no number",
    ),
    BadRecording(
        name="csv: NaN in every time",
        make=_csv("t,x\nnan,1\nnan,2\n"),
        words="the time column 't' holds no number",
    ),
    BadRecording(
        name="csv: NaN in some times",
        make=_csv("t [s],x\n0,1\nnan,2\n0.2,3\n"),
        words="1 row.s. without a finite time were left out, first data row 2",
        kept=(2, 2),
    ),
    BadRecording(
        name="csv: an infinite time",
        make=_csv("t [s],x\n0,1\ninf,2\n0.2,3\n"),
        words="1 row.s. without a finite time",
        kept=(2, 2),
    ),
    BadRecording(
        name="csv: a time beyond all clocks",
        make=_csv("t [s],x\n0,1\n1e300,2\n0.2,3\n"),
        words="the time column 't' reaches 1e",
    ),
    BadRecording(
        name="csv: nothing beside the time", make=_csv("t\n0.1\n0.2\n"), words="no column beside"
    ),
    BadRecording(
        name="csv: a quote left open",
        make=_csv(f't,x\n{_BODY}1.1,"5\n1.2,6\n'),
        words="Is a quote left open",
    ),
    BadRecording(
        name="csv: one endless line",
        make=_csv("1," * 1_000_000),
        words="line 1 is longer than 1048576 characters",
    ),
    BadRecording(
        name="csv: thirty thousand columns",
        make=_csv(",".join(f"c{i}" for i in range(30_000)) + "\n"),
        words="has 30000 columns; at most 20000",
    ),
    BadRecording(
        name="csv: more numbers than the limit",
        make=_arm,
        words="more numbers than the limit of 500 bytes",
        options={"limit": 500},
    ),
    BadRecording(
        name="csv: cut in a row",
        make=cut(_arm, 0.5),
        words="The last line has no end: the file may have been cut off",
        kept=(15, 21),
    ),
    BadRecording(
        name="csv: rows of other widths",
        make=_csv("t,x\n0,1\n0.1,2,3\n0.2\n0.3,4\n"),
        words="2 row.s. have another number of fields than the 2",
        kept=(2, 2),
    ),
    BadRecording(
        name="csv: words among the numbers",
        make=_csv("t,x\n0,1\n0.1,fail\n0.2,3\n"),
        words="'x' holds text in 1 row.s., first 'fail' at line",
        kept=(3, 3),
    ),
    BadRecording(
        name="csv: a column twice",
        make=_csv("t,x,x\n0,1,2\n0.1,3,4\n"),
        words="'x' appear more than once",
        kept=(2, 2),
    ),
    BadRecording(
        name="csv: one row only",
        make=_csv("t,x\n0.5,1\n"),
        words="is taken as s: there are no steps to go by",
        kept=(1, 1),
    ),
    BadRecording(
        name="csv: time going back",
        make=_csv("t [s],x\n0,1\n0.2,2\n0.1,3\n"),
        words="",
        kept=(3, 3),
    ),
)


# ---- NPZ ----------------------------------------------------------------------------------


def _npz(**arrays):
    def make(folder):
        np.savez(folder / "a.npz", **arrays)
        return folder / "a.npz"

    return make


def _zip(members, method=zipfile.ZIP_STORED):
    """An archive of raw members."""

    def make(folder):
        with zipfile.ZipFile(folder / "a.npz", "w", method) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
        return folder / "a.npz"

    return make


def _npy(array, pickled=False):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=pickled)
    return out.getvalue()


def _header(shape, kind="<f8", version=1):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = len(head).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + head


class _Boom:
    def __reduce__(self):
        return os.mkdir, ("pickle_was_opened",)


def _smaller_than_it_says(content):
    """The archive says its first member unpacks to 16 bytes."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 24] + (16).to_bytes(4, "little") + content[at + 28 :]


def _encrypted(content):
    at = content.index(b"PK\x01\x02")
    return content[: at + 8] + b"\x01\0" + content[at + 10 :]


def _pickled(folder):
    bombs = np.array([_Boom(), _Boom()], dtype=object)
    return _zip([("t.npy", _npy(np.arange(2.0))), ("x.npy", _npy(bombs, pickled=True))])(folder)


_T = 0.1 * np.arange(10)
_GARBLED = _npy(np.array(["ab", "cd"])).replace(b"a\0\0\0", b"\xff\xff\xff\x7f")

NPZ = (
    BadRecording(
        name="npz: cut in the middle",
        make=cut(lambda folder: arm_npz(folder / "a.npz"), 0.5),
        words="truncated or no usable .npz",
    ),
    BadRecording(
        name="npz: cut after ten bytes",
        make=cut(lambda folder: arm_npz(folder / "a.npz"), 0.005),
        words="truncated or no usable .npz|begins with",
    ),
    BadRecording(name="npz: pickled objects", make=_pickled, words="'x.npy' is pickled Python"),
    BadRecording(
        name="npz: a bomb of a hundred mebibytes",
        make=_zip([("t.npy", _npy(np.zeros(13_000_000)))], zipfile.ZIP_DEFLATED),
        words=r"unpacks from \d{6} to 104000128 bytes, more than the limit",
        options={"limit": 1 << 24},
    ),
    BadRecording(
        name="npz: a member larger than it says",
        make=edited(
            _zip([("t.npy", _npy(np.zeros(1_000_000)))], zipfile.ZIP_DEFLATED),
            _smaller_than_it_says,
        ),
        words="truncated or no usable|it is damaged|It is damaged",
    ),
    BadRecording(
        name="npz: a header of a thousand billion rows",
        make=_zip([("t.npy", _header("(1000000000000000,)") + bytes(80))]),
        words=r"declares shape \(1000000000000000,\) of float64",
    ),
    BadRecording(
        name="npz: a header of four gibibytes",
        make=_zip([("t.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff" + bytes(50))]),
        words="truncated or no usable",
    ),
    BadRecording(
        name="npz: a negative number of rows",
        make=_zip([("t.npy", _header("(-5,)") + bytes(80))]),
        words=r"declares shape \(-5,\)|truncated or no usable",
    ),
    BadRecording(
        name="npz: an array format of the future",
        make=_zip([("t.npy", b"\x93NUMPY\x09\0\x10\0" + bytes(50))]),
        words="has the array format|truncated or no usable",
    ),
    BadRecording(
        name="npz: characters that do not exist",
        make=_zip([("t.npy", _npy(_T)), ("x.npy", _npy(_T)), ("names.npy", _GARBLED)]),
        words="holds text that is none",
    ),
    BadRecording(
        name="npz: a member that climbs out",
        make=_zip([("../../t.npy", _npy(_T))]),
        words=r"member named '../../t.npy', which points outside",
    ),
    BadRecording(
        name="npz: a member with an absolute name",
        make=_zip([("/etc/t.npy", _npy(_T))]),
        words="points outside the archive",
    ),
    BadRecording(
        name="npz: an encrypted member",
        make=edited(_zip([("t.npy", _npy(_T))]), _encrypted),
        words="'t.npy' is encrypted",
    ),
    BadRecording(
        name="npz: an archive of something else",
        make=_zip([("word/document.xml", b"<w/>")]),
        words="an archive of 'word/document.xml', not of arrays",
    ),
    BadRecording(
        name="npz: no time",
        make=_npz(means=np.zeros((5, 3)), colors=np.zeros((7, 3))),
        words=r"holds 'means\[5, 3\]', 'colors\[7, 3\]' and no time",
    ),
    BadRecording(
        name="npz: a time of another length",
        make=_npz(t=_T[:3], x=np.zeros(10)),
        words="and no time",
    ),
    BadRecording(
        name="npz: NaN in every time",
        make=_npz(t=np.full(10, np.nan), x=np.zeros(10)),
        words="the time 't' holds no number",
    ),
    BadRecording(
        name="npz: NaN in some times",
        make=_npz(t=np.r_[_T[:9], np.nan], x=np.zeros(10)),
        words="1 row.s. without a finite time",
        kept=(9, 9),
    ),
    BadRecording(
        name="npz: pieces that run backwards",
        make=_npz(t=_T, x=np.zeros(10), start=np.array([0, 7, 3])),
        words="'start' must hold rising offsets of pieces within 10 rows",
    ),
    BadRecording(
        name="npz: pieces beyond the end",
        make=_npz(t=_T, x=np.zeros(10), start=np.array([0, 90])),
        words="rising offsets",
    ),
    BadRecording(
        name="npz: a step of zero",
        make=_npz(state=np.zeros((5, 2)), dt=0.0),
        words="the step dt is 0.0; it must be positive",
    ),
    BadRecording(
        name="npz: complex numbers",
        make=_npz(t=_T, x=np.zeros(10), z=np.zeros(10, complex)),
        words="'z' hold no plain numbers",
        kept=(10, 10),
    ),
)


# ---- Parquet and others -------------------------------------------------------------------


def _parquet(folder):
    return arm_parquet(folder / "a.parquet", 4000)


def _words_only(folder):
    pq.write_table(pa.table({"task": ["a", "b"]}), folder / "a.parquet")
    return folder / "a.parquet"


def _pipe(folder):
    os.mkfifo(folder / "a.csv")
    return folder / "a.csv"


def _empty_folder(folder):
    (folder / "a.csv").mkdir()
    return folder / "a.csv"


def _linked_out(folder):
    inside = folder / "logs"
    inside.mkdir()
    arm_csv(folder / "outside.csv")
    (inside / "a.csv").symlink_to(folder / "outside.csv")
    return inside


OTHERS = (
    BadRecording(
        name="parquet: cut in the middle",
        make=cut(_parquet, 0.5),
        words="truncated or no usable Parquet file",
    ),
    BadRecording(
        name="parquet: an index of four gibibytes",
        make=edited(_parquet, lambda c: c[:-8] + b"\xff\xff\xff\x7fPAR1"),
        words="truncated or no usable Parquet file",
    ),
    BadRecording(
        name="parquet: zeros in its pages",
        make=edited(_parquet, lambda c: c[:200] + bytes(2000) + c[2200:]),
        words="truncated or no usable Parquet file|holds no number",
    ),
    BadRecording(
        name="parquet: words", make=_words_only, words="no column of numbers among 'task'"
    ),
    BadRecording(
        name="parquet: more than the limit",
        make=_parquet,
        words="declares 4000 rows of 3 columns, more than the limit",
        options={"limit": 1000},
    ),
    BadRecording(name="nothing there", make=lambda f: f / "a.mcap", words="does not exist"),
    BadRecording(name="an empty folder", make=_empty_folder, words=r"holds \(none\) and no recor"),
    BadRecording(name="a pipe", make=_pipe, words="is no regular file"),
    BadRecording(
        name="a folder whose only file is a link out of it",
        make=_linked_out,
        words="is a link that leaves the folder",
    ),
    BadRecording(
        name="hdf5",
        make=bytes_in("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(99)),
        words="is HDF5: export",
    ),
    BadRecording(
        name="gzip", make=bytes_in("a.csv.gz", b"\x1f\x8b" + bytes(99)), words="gzip: unpack"
    ),
    BadRecording(
        name="a pickle",
        make=bytes_in("a.npz", pickle.dumps({"t": [1]}, protocol=4)),
        words="a Python pickle, which is never opened",
    ),
    BadRecording(
        name="one bare array", make=bytes_in("a.npy", _npy(_T)), words="one bare array: save it"
    ),
    BadRecording(
        name="matlab", make=bytes_in("a.mat", b"MATLAB 5.0 MAT-file"), words="a MATLAB file"
    ),
    BadRecording(
        name="zstd of something",
        make=bytes_in("a.zst", b"\x28\xb5\x2f\xfd" + bytes(20)),
        words="compressed with zstd and not named",
    ),
    BadRecording(
        name="a file without a name that helps",
        make=bytes_in("a.xyz", b"hello there"),
        words="begins with the bytes 68 65 6c 6c",
    ),
    BadRecording(
        name="text named like an archive",
        make=bytes_in("a.npz", "t,x\n0,1\n"),
        words="named like npz but begins with",
    ),
)
