"""rosbag2 in SQLite (``.db3``): opened read-only, read row by row up to the first damage."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.decoders import Schema, make_topic
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.packed import unpack
from sameworld.store.recordings.topics import Collector, Topic

__all__ = ["collect_db3"]

_LARGEST = 1 << 28
_SQLITE_HEAD = 100
_PATIENCE = 10.0
_STEPS = 1_000_000


def collect_db3(
    path: Path, collector: Collector, options: ReadOptions, *, packed_messages: bool = False
) -> None:
    """Read the messages of a database into a collector; what is lost goes into its notes.

    Args:
        path: The file; nothing is written to it or beside it.
        collector: Takes the messages.
        options: Topics and limits.
        packed_messages: Whether every message is packed with zstd.

    Raises:
        StoreError: It is no rosbag2 database, or its first pages are damaged.
    """
    _note_journal(path, collector)
    try:
        with _whole(path, collector) as whole, _database(whole) as base:
            topics = _topics(path, base, collector, options)
            _messages(path, base, collector, topics, packed_messages)
    except (sqlite3.Error, OSError, UnicodeError, OverflowError) as cause:
        raise StoreError(
            f"'{path}' is truncated or no usable SQLite database: {cause}. "
            "Try: sqlite3 broken.db3 .recover | sqlite3 mended.db3"
        ) from cause


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as base:
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        base.execute("PRAGMA trusted_schema = OFF")
        base.execute("PRAGMA cell_size_check = ON")
        base.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        yield base


@contextmanager
def _whole(path: Path, collector: Collector) -> Iterator[Path]:
    """The file, or a copy that admits how short it is: SQLite opens no file that was cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SQLITE_HEAD)
    page = int.from_bytes(head[16:18], "big")
    page = 1 << 16 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    if len(head) < _SQLITE_HEAD or page < 512 or size >= page * pages or size < page:
        yield path
        return
    collector.notes.append(
        f"'{path.name}' was cut off: {size} of {page * pages} bytes are there; a copy was read."
    )
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "short.db3"
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            file.truncate(size // page * page)
            file.seek(28)
            file.write((size // page).to_bytes(4, "big"))
        yield copy


def _note_journal(path: Path, collector: Collector) -> None:
    journal = path.with_name(f"{path.name}-wal")
    if journal.is_file() and (size := journal.stat().st_size):
        collector.notes.append(
            f"'{journal.name}' beside it holds {size} bytes that were not merged and not read: "
            f'the recorder was killed. Merge them with: sqlite3 {path.name} "PRAGMA wal_checkpoint"'
        )


def _topics(
    path: Path, base: sqlite3.Connection, collector: Collector, options: ReadOptions
) -> dict[int, Topic | None]:
    rows = base.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchmany(1000)
    tables = {str(name) for (name,) in rows}
    if not {"topics", "messages"} <= tables:
        raise StoreError(
            f"'{path}' is a SQLite database of {listed(sorted(tables))}, not a rosbag2 one: that "
            "has the tables 'topics' and 'messages'."
        )
    definitions = _definitions(base) if "message_definitions" in tables else {}
    found: dict[int, Topic | None] = {}
    query = "SELECT id, name, type, serialization_format FROM topics"
    for number, name, kind, encoding in base.execute(query):
        wanted = collector.wants(str(name))
        schema = definitions.get(str(kind), Schema(name=str(kind), encoding="ros2msg", text=""))
        source = f"{path.name}:{name}"
        found[number] = (
            make_topic(str(name), str(encoding), schema, source, options.columns)
            if wanted
            else None
        )
    return found


def _definitions(base: sqlite3.Connection) -> dict[str, Schema]:
    query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
    return {
        str(kind): Schema(name=str(kind), encoding=str(encoding), text=str(text or ""))
        for kind, encoding, text in base.execute(query)
    }


@dataclass(kw_only=True)
class _Patience:
    """Stops a query that gives no row for too long: a damaged tree can lead in circles."""

    until: float = 0.0

    def __call__(self) -> int:
        return int(time.monotonic() > self.until)

    def renew(self) -> None:
        """A row came."""
        self.until = time.monotonic() + _PATIENCE


def _messages(
    path: Path,
    base: sqlite3.Connection,
    collector: Collector,
    topics: dict[int, Topic | None],
    packed: bool,
) -> None:
    patience = _Patience()
    patience.renew()
    base.set_progress_handler(patience, _STEPS)
    taken = orphans = odd = 0
    last = -1
    try:
        # By row number: the order of recording, and no index of the file has to be whole.
        query = "SELECT rowid, topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY rowid"
        for number, topic_id, stamp, data in base.execute(query):
            if number <= last:
                raise sqlite3.DatabaseError(f"row {number} follows row {last}")
            last = number
            patience.renew()
            taken += 1
            if not (isinstance(data, bytes) and isinstance(stamp, int)):
                odd += 1
            elif topic_id not in topics:
                orphans += 1
            elif (topic := topics[topic_id]) is not None:
                collector.add(topic, stamp, unpack(data, "zstd", _LARGEST).data if packed else data)
    except (sqlite3.Error, OverflowError) as cause:
        collector.notes.append(
            f"'{path.name}' was cut off or is damaged: {cause}, after {taken} message(s); those "
            "were read, later ones are lost."
        )
    if orphans:
        collector.notes.append(f"'{path.name}': {orphans} message(s) belong to no declared topic.")
    if odd:
        collector.notes.append(f"'{path.name}': {odd} row(s) hold no bytes or no time.")
