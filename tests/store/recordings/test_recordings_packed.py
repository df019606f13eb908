import bz2

import lz4.frame
import numpy as np
import pytest
import zstandard

from sameworld.store.recordings.packed import unpack

DATA = np.random.default_rng(0).integers(0, 60, 3_000_000, dtype=np.uint8).tobytes()
PACK = {
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
    "bz2": bz2.compress,
    "none": bytes,
}


@pytest.mark.parametrize("kind", PACK)
def test_whole_blocks_come_out_as_they_went_in(kind):
    found = unpack(PACK[kind](DATA), kind, len(DATA))
    assert found.data == DATA
    assert found.why == ""


@pytest.mark.parametrize("kind", PACK)
def test_several_frames_are_one_block(kind):
    found = unpack(PACK[kind](DATA) + PACK[kind](b"more"), kind, 1 << 24)
    assert found.data == DATA + b"more"


@pytest.mark.parametrize("kind", PACK)
def test_a_block_cut_off_gives_its_beginning(kind):
    packed = PACK[kind](DATA)
    found = unpack(packed[: 2 * len(packed) // 3], kind, len(DATA))
    assert len(DATA) // 4 < len(found.data) < len(DATA)
    assert DATA.startswith(found.data)


@pytest.mark.parametrize("kind", ["zstd", "lz4", "bz2"])
def test_nothing_comes_out_beyond_the_limit(kind):
    found = unpack(PACK[kind](DATA), kind, len(DATA) - 1)
    assert found.data == b""
    assert found.why == f"it unpacks to more than {len(DATA) - 1} bytes"


@pytest.mark.parametrize("kind", ["zstd", "lz4", "bz2"])
def test_junk_says_that_it_cannot_be_unpacked(kind):
    found = unpack(b"\x01\x02\x03junk junk junk", kind, 1000)
    assert found.why.startswith("it cannot be unpacked (")


def test_unknown_kinds_are_named():
    assert unpack(b"x", "brotli", 10).why == "its compression 'brotli' is unknown"
