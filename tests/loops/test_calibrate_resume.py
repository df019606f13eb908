"""A calibration that is killed again and again ends where an undisturbed one ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CHILD = Path(__file__).with_name("resume_child.py")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume") / "run"
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(CHILD), str(folder), "20", "0"],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder, folder.with_name("run-whole")


@pytest.mark.slow
def test_twenty_kills_leave_the_answer_unchanged(folders):
    killed, whole = folders
    for name in ("posterior.json", "config.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    mine, theirs = (json.loads((f / "metrics.json").read_text()) for f in folders)
    assert {k: v for k, v in mine.items() if k != "cpu_seconds"} == {
        k: v for k, v in theirs.items() if k != "cpu_seconds"
    }
    with np.load(killed / "predictions.npz") as a, np.load(whole / "predictions.npz") as b:
        assert set(a.files) == set(b.files)
        for name in a.files:
            np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.slow
def test_kills_leave_no_half_written_file_under_a_final_name(folders):
    killed, _ = folders
    for path in killed.rglob("*.json"):
        json.loads(path.read_text())
    for path in killed.rglob("*.npz"):
        with np.load(path) as arrays:
            assert all(np.asarray(arrays[name]).size >= 0 for name in arrays.files)
