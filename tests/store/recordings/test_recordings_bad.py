"""A corpus of bad recordings: each is refused in words, or what can be had is kept and noted."""

import hashlib
import re
import resource
import tempfile
import tracemalloc
import warnings

import pytest
from bad_bags import BAGS, BAGS2
from bad_mcap import MCAP
from bad_tables import CSV, NPZ, OTHERS

from sameworld.core import SameworldWarning
from sameworld.store.recordings import (
    ReadOptions,
    describe_recording,
    open_recordings,
    unmapped_episode,
)

CORPUS = (*MCAP, *BAGS, *BAGS2, *CSV, *NPZ, *OTHERS)
MEMORY = 64 << 20


def read(path, bad):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)  # files left out of folders
        return list(open_recordings(path, options=ReadOptions(**bad.options)))


def content(folder):
    """Every file below a folder, with the hash of what is in it."""
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_bad_recordings_are_refused_in_words_or_read_as_far_as_they_go(bad, tmp_path, monkeypatch):
    source, empty, spare = (tmp_path / name for name in ("source", "empty", "spare"))
    for folder in (source, empty, spare):
        folder.mkdir()
    path = bad.make(source)
    before = content(source)
    monkeypatch.chdir(empty)
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    if bad.kept is None:
        with pytest.raises(bad.error, match=bad.words) as caught:
            read(path, bad)
        assert type(caught.value) is bad.error
    else:
        recording = read(path, bad)[0]
        notes = " | ".join(recording.notes)
        assert re.search(bad.words, notes), notes
        least, most = bad.kept
        assert least <= len(recording.streams[0].time) <= most
    assert content(source) == before, "reading changed the recording"
    assert list(empty.iterdir()) == [], "something was written into the working folder"
    assert list(spare.iterdir()) == [], "something was left in the temporary folder"


HUNGRY = re.compile(
    "EiB|MiB|GiB|gibi|mebi|billion|bomb|endless|thousand|hundred|length|unpacks|aliases|inside|limit"
)


@pytest.mark.parametrize(
    "bad", [b for b in CORPUS if HUNGRY.search(b.name)], ids=lambda bad: bad.name
)
def test_declared_sizes_are_never_believed(bad, tmp_path):
    path = bad.make(tmp_path)
    high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        read(path, bad)
    except bad.error:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - high) << 10
    assert peak < MEMORY
    assert grown < 2 * MEMORY


def test_pickles_are_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (pickled,) = [b for b in NPZ if "pickled" in b.name]
    with pytest.raises(pickled.error):
        read(pickled.make(tmp_path), pickled)
    assert not (tmp_path / "pickle_was_opened").exists()


def test_recordings_that_are_read_can_be_described_and_imported(tmp_path):
    (back,) = [b for b in CSV if "going back" in b.name]
    (recording,) = read(back.make(tmp_path), back)
    assert describe_recording(recording).doubts == ("x: time goes back 1 time(s)",)
    episode, notes = unmapped_episode(recording)
    assert episode["x"].values.tolist() == [1, 2]
    assert notes == ("x: 1 sample(s) are not later than one before them and were left out.",)


def test_the_corpus_is_large_and_its_names_are_unique():
    names = [bad.name for bad in CORPUS]
    assert len(set(names)) == len(names) >= 100
