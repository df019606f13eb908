"""Measurements: one command each, a table on the screen, flat numbers in a file.

CPU time is compared on one thread. XLA (``NPROC``) and BLAS would otherwise start as many as there
are cores, which takes more CPU time, and how much more depends on what else runs.
"""

import os

for _pool in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")
