"""Five seconds of ``make fuzz``, with a fixed seed, in every run of the tests."""

import subprocess
import sys
from pathlib import Path

from fuzz_mutations import generator, mutate
from run_fuzz import fuzz


def test_damaged_files_are_read_or_refused_in_words_within_limits(tmp_path):
    wrong, cases = fuzz(5.0, 7, tmp_path / "kept")
    assert wrong == ""
    assert int(cases.split()[0]) > 20


def test_damage_is_the_same_for_the_same_seed_and_never_none():
    data = bytes(range(200))
    for seed in range(300):
        damaged = mutate(data, b"other" * 9, generator(seed))
        assert damaged == mutate(data, b"other" * 9, generator(seed))
        assert damaged != data


def test_a_worker_whose_reader_breaks_is_reported(tmp_path):
    worker = Path(__file__).parent / "fuzz_worker.py"
    code = (
        "import sys, runpy\n"
        f"sys.path.insert(0, {str(worker.parent)!r})\n"
        "import fuzz_worker, sameworld.store.recordings as readers\n"
        "def broken(recording): raise KeyError('lost')\n"
        "seeds = fuzz_worker._limit_memory\n"
        "def arm():\n    readers.describe_recording = broken\n"
        "fuzz_worker._limit_memory = arm\n"
        f"fuzz_worker.main({str(tmp_path)!r}, 1, 5)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "KeyError: 'lost'" in ran.stderr and ran.stderr.startswith("case 1000000")
