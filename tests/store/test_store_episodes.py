"""Episodes come back bit-exactly; whatever is wrong with a store is named with its file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sameworld.core import Belief, Channel, Episode, Parameter
from sameworld.core.errors import EpisodeError, StoreError
from sameworld.store import episode_ids, iterate_episodes, load_episodes, save_episodes


def _episode(name="toss", seed=0, rows=20, **fields):
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.001, 0.02, rows))
    return Episode(
        id=name,
        channels=(
            Channel(
                name="cube.pos", time=time, values=rng.normal(size=(rows, 3)), unit="m", noise=1 / 3
            ),
            Channel(name="angle", time=time[::2] + 1e-9, values=rng.normal(size=(rows + 1) // 2)),
            Channel(name="torque", time=[0.0], values=rng.normal(size=(1, 2, 3)), role="action"),
            Channel(name="voltage", time=[0.0, 5.0], values=[-0.0, 5e-324], role="exogenous"),
        ),
        **fields,
    )


def _assert_same(a, b):
    for field in ("id", "source", "scene", "session_id"):
        assert getattr(a, field) == getattr(b, field)
    assert a.start.parameters == b.start.parameters
    assert a.session.parameters == b.session.parameters
    for one, two in zip(a.channels, b.channels, strict=True):
        assert (one.name, one.unit, one.role, one.noise) == (
            two.name,
            two.unit,
            two.role,
            two.noise,
        )
        assert one.values.shape == two.values.shape
        assert one.time.tobytes() == two.time.tobytes()
        assert one.values.tobytes() == two.values.tobytes()


def _file(folder, number=0):
    return next((folder / "channels").glob(f"{number:04d}-*"))


def test_episodes_survive_bit_exactly(tmp_path):
    start = Belief(
        parameters=(Parameter(name="start:cube.z", value=0.1, std=0.1, scope="episode"),)
    )
    session = Belief(parameters=(Parameter(name="model:m.v", value=12, scope="session"),))
    first = _episode(
        "a", start=start, session=session, source="mujoco", scene="ab", session_id="monday"
    )
    episodes = [first, _episode("b", 1, rows=7), _episode("c", 2, rows=3)]
    save_episodes(episodes, tmp_path / "e")
    for a, b in zip(episodes, load_episodes(tmp_path / "e"), strict=True):
        _assert_same(a, b)
    assert len(list((tmp_path / "e" / "channels").iterdir())) == 4


def test_chosen_episodes_come_in_the_order_asked(tmp_path):
    save_episodes([_episode(str(i), i) for i in range(5)], tmp_path)
    assert episode_ids(tmp_path) == ("0", "1", "2", "3", "4")
    three, one = load_episodes(tmp_path, ids=["3", "1"])
    _assert_same(three, _episode("3", 3))
    _assert_same(one, _episode("1", 1))
    with pytest.raises(EpisodeError, match="no episode '7'"):
        load_episodes(tmp_path, ids=["7"])


def test_long_channels_span_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    episodes = [
        Episode(
            id=str(i),
            channels=(
                Channel(name="x", time=np.arange(900.0), values=rng.normal(size=(900, 40, 30))),
            ),
        )
        for i in range(3)
    ]
    save_episodes(episodes, tmp_path)
    assert pq.ParquetFile(_file(tmp_path)).num_row_groups > 1
    _assert_same(next(iterate_episodes(tmp_path, ["1"])), episodes[1])


def test_shapes_may_differ_between_episodes(tmp_path):
    one = Episode(id="1", channels=(Channel(name="x", time=[0, 1], values=np.ones((2, 3))),))
    two = Episode(id="2", channels=(Channel(name="x", time=[0, 1], values=np.ones(2)),))
    three = Episode(id="3", channels=(Channel(name="x", time=[0, 1], values=np.ones((2, 0))),))
    save_episodes([one, two, three], tmp_path)
    for a, b in zip((one, two, three), load_episodes(tmp_path), strict=True):
        _assert_same(a, b)


HOSTILE = ["../../x", "/etc/passwd", "a\0b", "x" * 5000, "..", "", "CON", "a\nb", "日本", "C:\\x"]


@pytest.mark.parametrize("name", [n for n in HOSTILE if n])
def test_hostile_channel_names_stay_inside_the_folder(tmp_path, name):
    episode = Episode(id="e", channels=(Channel(name=name, time=[0, 1], values=[1, 2]),))
    save_episodes([episode], tmp_path / "deep" / "e")
    _assert_same(load_episodes(tmp_path / "deep" / "e")[0], episode)
    written = {p.relative_to(tmp_path).parts[:2] for p in tmp_path.rglob("*") if p.is_file()}
    assert written == {("deep", "e")}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_episode_ids_are_just_text(tmp_path, name):
    save_episodes([_episode(name)], tmp_path)
    _assert_same(load_episodes(tmp_path, ids=[name])[0], _episode(name))


def test_names_that_look_alike_stay_apart(tmp_path):
    channels = tuple(
        Channel(name=n, time=[0, 1], values=[i, i]) for i, n in enumerate(["a.b", "a-b", "A b"])
    )
    save_episodes([Episode(id="e", channels=channels)], tmp_path)
    _assert_same(load_episodes(tmp_path)[0], Episode(id="e", channels=channels))


def test_saving_again_adds_and_touches_nothing(tmp_path):
    save_episodes([_episode("a")], tmp_path)
    before = {p: p.read_bytes() for p in (tmp_path / "channels").iterdir()}
    save_episodes([_episode("b", 1)], tmp_path)
    assert episode_ids(tmp_path) == ("a", "b")
    assert all(p.read_bytes() == content for p, content in before.items())
    _assert_same(load_episodes(tmp_path)[0], _episode("a"))
    with pytest.raises(EpisodeError, match="already stored"):
        save_episodes([_episode("a", 2)], tmp_path)
    _assert_same(load_episodes(tmp_path, ["a"])[0], _episode("a"))


def test_files_of_a_killed_writer_are_neither_read_nor_overwritten(tmp_path):
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "0000-cube-pos.parquet").write_bytes(b"orphan")
    save_episodes([_episode("a")], tmp_path)
    assert (tmp_path / "channels" / "0000-cube-pos.parquet").read_bytes() == b"orphan"
    _assert_same(load_episodes(tmp_path)[0], _episode("a"))


def test_a_save_that_breaks_off_leaves_the_store_as_it_was(tmp_path):
    save_episodes([_episode("a")], tmp_path)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="cannot be stored"):
        save_episodes([_episode("b"), _episode("\ud800", 1)], tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    _assert_same(load_episodes(tmp_path)[0], _episode("a"))


def test_ids_must_be_unique(tmp_path):
    with pytest.raises(EpisodeError, match="'a' appear twice"):
        save_episodes([_episode("a"), _episode("a", 1)], tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_foreign_folders_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(StoreError, match=r"thesis\.tex.*Nothing was written"):
        save_episodes([_episode()], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(StoreError, match="is a file"):
        save_episodes([_episode()], tmp_path / "thesis.tex")
    with pytest.raises(StoreError, match="no episode store"):
        load_episodes(tmp_path)


# ---- damage -------------------------------------------------------------------------------


def _truncated(folder):
    content = _file(folder).read_bytes()
    _file(folder).write_bytes(content[: len(content) // 2])


def _garbled(folder):
    content = bytearray(_file(folder).read_bytes())
    content[4:60] = bytes(56)
    _file(folder).write_bytes(content)


def _empty(folder):
    _file(folder).write_bytes(b"")


def _missing(folder):
    _file(folder).unlink()


def _rewritten(folder, **columns):
    table = pq.read_table(_file(folder))
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, column(table))
    pq.write_table(table, _file(folder))


def _other_columns(folder):
    pq.write_table(
        pq.read_table(_file(folder)).rename_columns(["episode", "t", "v"]), _file(folder)
    )


def _other_type(folder):
    _rewritten(folder, time=lambda t: t["time"].cast(pa.string()))


def _other_width(folder):
    _rewritten(
        folder, value=lambda t: pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * len(t))), 2)
    )


def _nulls(folder):
    _rewritten(folder, value=lambda t: pa.nulls(len(t), pa.list_(pa.float64(), 3)))


def _null_time(folder):
    _rewritten(folder, time=lambda t: pa.nulls(len(t), pa.float64()))


def _null_label(folder):
    _rewritten(folder, episode=lambda t: pa.nulls(len(t), pa.string()))


def _nan(folder):
    values = np.ones(60)
    values[4] = np.nan
    _rewritten(folder, value=lambda t: pa.FixedSizeListArray.from_arrays(pa.array(values), 3))


def _backwards(folder):
    _rewritten(folder, time=lambda t: pa.array(np.arange(20.0)[::-1].copy()))


def _short(folder):
    pq.write_table(pq.read_table(_file(folder)).slice(0, 5), _file(folder))


def _foreign_rows(folder):
    _rewritten(folder, episode=lambda t: pa.array(["other"] * len(t)))


def _edit_index(change):
    def damage(folder):
        record = json.loads((folder / "episodes.jsonl").read_text())
        change(record)
        (folder / "episodes.jsonl").write_text(json.dumps(record) + "\n")

    return damage


def _channel(**fields):
    return _edit_index(lambda record: record["channels"][0].update(fields))


def _doubled_line(folder):
    text = (folder / "episodes.jsonl").read_text()
    (folder / "episodes.jsonl").write_text(text + text)


def _cut_line(folder):
    text = (folder / "episodes.jsonl").read_text()
    (folder / "episodes.jsonl").write_text(text[: len(text) // 2])


def _twice_channel(record):
    record["channels"].append(record["channels"][0])


DAMAGE = {
    "truncated": (_truncated, StoreError, "0000-cube-pos.parquet.*damaged"),
    "garbled": (_garbled, StoreError, "0000-cube-pos.parquet.*damaged"),
    "empty": (_empty, StoreError, "0000-cube-pos.parquet.*damaged"),
    "missing": (_missing, StoreError, "0000-cube-pos.parquet' is missing"),
    "columns": (_other_columns, StoreError, "0000-cube-pos.parquet.*columns 'episode', 't', 'v'"),
    "type": (_other_type, StoreError, "column 'time' is string"),
    "width": (_other_width, StoreError, "need a list of 3 doubles"),
    "nulls": (_nulls, StoreError, "'value' has nulls"),
    "null time": (_null_time, StoreError, "20 null"),
    "null label": (_null_label, StoreError, "labelled 'None'"),
    "NaN": (_nan, EpisodeError, r"0000-cube-pos.parquet.*NaN .*index \(1, 1\)"),
    "backwards": (_backwards, EpisodeError, "0000-cube-pos.parquet.*time does not increase"),
    "short": (_short, StoreError, "has 5 rows, the index places"),
    "foreign rows": (_foreign_rows, StoreError, "labelled 'other'"),
    "id twice": (_doubled_line, EpisodeError, "line 2' has the id 'toss' a second time"),
    "cut line": (_cut_line, StoreError, r"episodes.jsonl, line 1' is not JSON"),
    "line of another kind": (
        lambda folder: (folder / "episodes.jsonl").write_text("[1]\n"),
        StoreError,
        "must hold a JSON object",
    ),
    "schema": (_edit_index(lambda r: r.update(schema=9)), StoreError, "schema 9; this version"),
    "unknown key": (
        _edit_index(lambda r: r.update(channel=[])),
        StoreError,
        "unknown key 'channel'. Did you mean 'channels'",
    ),
    "missing key": (_edit_index(lambda r: r.pop("scene")), StoreError, "lacks the key 'scene'"),
    "id type": (_edit_index(lambda r: r.update(id=3)), StoreError, "id = 3"),
    "source": (_edit_index(lambda r: r.update(source="dream")), EpisodeError, "source 'dream'"),
    "belief": (
        _edit_index(lambda r: r["start"].update(schema=0)),
        EpisodeError,
        "Belief schema is 0",
    ),
    "channel twice": (_edit_index(_twice_channel), EpisodeError, "'cube.pos' twice"),
    "path": (_channel(file="../../etc/passwd"), StoreError, "file = '../../etc/passwd'"),
    "absolute path": (_channel(file="/etc/passwd"), StoreError, "file = '/etc/passwd'"),
    "negative begin": (_channel(begin=-1), StoreError, "begin = -1"),
    "huge rows": (_channel(rows=1 << 39), StoreError, "has 20 rows"),
    "shape": (_channel(shape=[-3]), StoreError, "shape = "),
    "huge shape": (_channel(shape=[1 << 38]), StoreError, "more than the limit"),
    "shape type": (_channel(shape="3"), StoreError, "shape = '3'"),
    "noise": (_channel(noise="low"), StoreError, "noise = 'low'"),
    "negative noise": (_channel(noise=-1.0), EpisodeError, "noise -1"),
    "role": (_channel(role="reward"), EpisodeError, "role 'reward'"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_with_its_file_and_kind(tmp_path, kind):
    damage, error, words = DAMAGE[kind]
    save_episodes([_episode()], tmp_path)
    damage(tmp_path)
    with pytest.raises(error, match=words):
        load_episodes(tmp_path)


def test_a_link_out_of_the_store_is_not_followed(tmp_path):
    save_episodes([_episode()], tmp_path / "mine")
    save_episodes([_episode()], tmp_path / "other")
    _file(tmp_path / "mine").unlink()
    (tmp_path / "mine" / "channels" / "0000-cube-pos.parquet").symlink_to(_file(tmp_path / "other"))
    with pytest.raises(StoreError, match="leaves the store"):
        load_episodes(tmp_path / "mine")


def test_other_tools_read_the_files(tmp_path):
    save_episodes([_episode("a"), _episode("b", 1)], tmp_path)
    table = pq.read_table(_file(tmp_path), filters=[("episode", "==", "b")])
    np.testing.assert_array_equal(table["time"].to_numpy(), _episode("b", 1)["cube.pos"].time)
    assert json.loads(table.schema.metadata[b"sameworld"])["channel"] == "cube.pos"
