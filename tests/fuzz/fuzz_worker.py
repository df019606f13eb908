"""Reads mutated files until its time is up; run as a process of its own, with limits.

usage: python fuzz_worker.py FOLDER SEED SECONDS

Writes ``current`` before each case. Ends with 1 at the first case that raises anything but a
``SameworldError``, takes longer than ten seconds, or needs more than a gibibyte; what was read then
lies in ``FOLDER/case``.
"""

import resource
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path

SLOWEST = 10.0
MEMORY = 1 << 30


def main(folder, seed, seconds):
    from fuzz_seeds import make_seeds

    folder = Path(folder)
    seeds = make_seeds(folder / "seeds")
    for path in seeds:  # everything is imported, and every seed is readable, before limits count
        _use(path)
    _limit_memory()
    until, case = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        number = seed * 1_000_000_000 + case
        _case(folder, seeds, number)
        case += 1
    sys.stdout.write(f"{case} cases\n")
    return 0


def _case(folder, seeds, number):
    from fuzz_mutations import generator

    rng = generator(number)
    target, what = _mutated(folder, seeds, rng)
    (folder / "current").write_text(f"{number} {what}")
    began, high = time.monotonic(), _peak()
    error = ""
    try:
        _use(target)
    except BaseException:
        error = traceback.format_exc()
    spent, grown = time.monotonic() - began, _peak() - high
    if not error and spent > SLOWEST:
        error = f"it took {spent:.1f} s"
    if not error and grown > MEMORY:
        error = f"memory grew by {grown / 2**20:.0f} MiB"
    if error:
        sys.stderr.write(f"case {number}, {what}:\n{error}\n")
        sys.exit(1)
    shutil.rmtree(folder / "case")


def _mutated(folder, seeds, rng):
    """A copy of a seed with one damaged file in it."""
    from fuzz_mutations import mutate, mutate_members

    seed = rng.choice(seeds)
    target = folder / "case" / seed.name
    if seed.is_dir():
        shutil.copytree(seed, target)
        victim = rng.choice(sorted(p for p in target.rglob("*") if p.is_file()))
    else:
        target.parent.mkdir(parents=True)
        shutil.copy(seed, target)
        victim = target
    spare = rng.choice(seeds)
    other = spare.read_bytes() if spare.is_file() else victim.read_bytes()
    way = mutate_members if victim.suffix == ".npz" and rng.random() < 0.7 else mutate
    victim.write_bytes(way(victim.read_bytes(), other, rng))
    return target, victim.relative_to(folder / "case").as_posix()


def _use(path):
    """Read all there is, as the command line would."""
    from sameworld.core import SameworldError
    from sameworld.store import load_episodes
    from sameworld.store.recordings import (
        describe_recording,
        detect_format,
        open_recordings,
        unmapped_episode,
    )

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            if path.name == "episodes":
                load_episodes(path)
                return
            assert detect_format(path).path == path
            for recording in open_recordings(path):
                describe_recording(recording)
                unmapped_episode(recording)
        except SameworldError as error:
            assert str(error).strip(), "an error without words"


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _limit_memory():
    """Let address space grow by twice the allowed memory: a wild allocation fails at once."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
