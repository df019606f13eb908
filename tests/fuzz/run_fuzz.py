"""Starts a worker, watches that it does not hang, and keeps the case that broke it.

usage: python tests/fuzz/run_fuzz.py [SECONDS [SEED]]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HANG = 30.0
HERE = Path(__file__).resolve().parent


def fuzz(seconds, seed, keep):
    """Run one worker; returns what went wrong, empty if nothing, and the cases it ran.

    Args:
        seconds: Time for cases.
        seed: First random seed; another one gives other cases.
        keep: Folder for the breaking case.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        command = [sys.executable, str(HERE / "fuzz_worker.py"), place, str(seed), str(seconds)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as worker:
            hung = _watch(worker, folder / "current")
            out, errors = worker.communicate()
        if worker.returncode == 0:
            return "", out.strip()
        if (folder / "case").exists():
            shutil.copytree(folder / "case", Path(keep) / f"seed-{seed}", dirs_exist_ok=True)
        current = folder / "current"
        last = current.read_text() if current.exists() else "(before the first case)"
        words = f"it hung for {HANG:g} s" if hung else errors[-4000:] or f"code {worker.returncode}"
        return f"{last}: {words}", out.strip()


def _watch(worker, current):
    """Kill a worker that stays with one case for too long."""
    seen, since = None, time.monotonic()
    while worker.poll() is None:
        time.sleep(0.05)
        now = current.stat().st_mtime_ns if current.exists() else None
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > HANG:
            worker.kill()
            return True
    return False


def main(words):
    seconds = float(words[0]) if words else 600.0
    seed = int(words[1]) if len(words) > 1 else int(time.time())
    keep = Path("out") / "fuzz"
    wrong, cases = fuzz(seconds, seed, keep)
    sys.stdout.write(f"seed {seed}: {cases or 'stopped'}\n")
    if wrong:
        sys.stdout.write(f"{wrong}\nThe file lies in {keep}.\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
