"""Seeded damage: flips, cuts, splices, and lengths that lie."""

import io
import random
import zipfile

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, 1 << 63)
TOKENS = (
    b"nan", b"-inf", b"1e999", b"\0", b'"', b"'", b"{", b"[" * 200, b"]", b"..", b"/", b"\xff\xfe",
    b"9" * 40, b"&a *a", b"!!python/object", b",", b";", b"\n", b"\r", b"NaN", b"null", b"true",
)  # fmt: skip


def mutate(data, other, rng):
    """Damage bytes a few times; never returns them as they were."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_WAYS)(result, other, rng)
    if bytes(result) == data:
        result += b"\0"
    return bytes(result)


def mutate_members(data, other, rng):
    """Damage inside a ZIP archive, keeping its checksums right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError):
        return mutate(data, other, rng)
    chosen = rng.choice(list(members))
    members[chosen] = mutate(members[chosen], other, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def _at(data, rng):
    return rng.randrange(len(data)) if data else 0


def _flip(data, other, rng):
    if data:
        data[_at(data, rng)] ^= 1 << rng.randrange(8)


def _byte(data, other, rng):
    if data:
        data[_at(data, rng)] = rng.randrange(256)


def _cut(data, other, rng):
    del data[_at(data, rng) :]


def _remove(data, other, rng):
    begin = _at(data, rng)
    del data[begin : begin + rng.choice((1, 4, 16, 200))]


def _repeat(data, other, rng):
    begin = _at(data, rng)
    piece = data[begin : begin + rng.choice((1, 8, 64, 500))]
    data[begin:begin] = piece * rng.choice((1, 2, 20))


def _splice(data, other, rng):
    begin, source = _at(data, rng), _at(other, rng)
    size = rng.choice((4, 32, 300))
    data[begin : begin + size] = other[source : source + size]


def _length(data, other, rng):
    width = rng.choice((1, 2, 4, 4, 8, 8))
    value = rng.choice(INTERESTING) + rng.choice((-1, 0, 0, 1))
    begin = _at(data, rng)
    order = rng.choice(("little", "little", "big"))
    data[begin : begin + width] = (value % (1 << 8 * width)).to_bytes(width, order)


def _token(data, other, rng):
    begin = _at(data, rng)
    data[begin : begin + rng.choice((0, 1, 4))] = rng.choice(TOKENS)


def _zeros(data, other, rng):
    begin = _at(data, rng)
    size = min(rng.choice((4, 64, 4096)), len(data) - begin)
    data[begin : begin + size] = bytes(size)


_WAYS = (_flip, _byte, _cut, _remove, _repeat, _splice, _length, _length, _length, _token, _zeros)


def generator(seed):
    """A random source that gives the same damage for the same seed everywhere."""
    return random.Random(seed)
