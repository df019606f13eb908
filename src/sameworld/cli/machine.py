"""What this machine offers: versions, renderers, extras, cores, memory."""

from __future__ import annotations

import ctypes.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

__all__ = [
    "Extra",
    "RendererProbe",
    "extras",
    "hardware",
    "missing_libraries",
    "package_versions",
    "probe_renderer",
    "working_renderer",
]

_PACKAGES = ("sameworld", "numpy", "scipy", "mujoco", "pyarrow", "av", "matplotlib", "tyro", "rich")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: Shared library to the Debian package that brings it, and what needs it.
_LIBRARIES = {
    "EGL": ("libegl1", "egl"),
    "OSMesa": ("libosmesa6", "osmesa"),
    "GL": ("libgl1", "glfw"),
}
_PROBE_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class RendererProbe:
    """Whether one way of offscreen rendering really draws.

    Attributes:
        backend: Value of ``MUJOCO_GL``.
        works: Whether a picture came back.
        detail: OpenGL renderer and vendor if it works, else the reason.
    """

    backend: str
    works: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Extra:
    """An optional set of packages.

    Attributes:
        name: Name of the extra.
        missing: Packages of it that are not installed.
    """

    name: str
    missing: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """The pip line that installs it, empty if nothing is missing."""
        return f"pip install 'sameworld[{self.name}]'" if self.missing else ""


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages at the core; ``missing`` where one is."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def extras() -> tuple[Extra, ...]:
    """Every extra of this package, with what it still lacks."""
    needs: dict[str, list[str]] = {}
    for line in metadata.requires("sameworld") or []:
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if extra and name:
            needs.setdefault(extra.group(1), []).append(name.group())
    return tuple(
        Extra(name=extra, missing=tuple(n for n in names if _version(n) == "missing"))
        for extra, names in sorted(needs.items())
    )


def probe_renderer(backend: str) -> RendererProbe:
    """Draw a tiny picture in a process of its own, so that a crash there stays there."""
    environment = {**os.environ, "MUJOCO_GL": backend}
    environment.pop("PYOPENGL_PLATFORM", None)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sameworld.cli.gl_probe"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"no picture within {_PROBE_SECONDS} s"
        return RendererProbe(backend=backend, works=False, detail=reason)
    if done.returncode != 0:
        return RendererProbe(backend=backend, works=False, detail=_reason(done))
    found: Mapping[str, str] = json.loads(done.stdout.splitlines()[-1])
    detail = f"{found['renderer']} ({found['vendor']}), OpenGL {found['version']}"
    return RendererProbe(backend=backend, works=True, detail=detail)


def working_renderer() -> str | None:
    """The first backend that draws without a display, ``None`` if there is none."""
    return next((b for b in ("egl", "osmesa") if probe_renderer(b).works), None)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    last = (errors or lines or [""])[0 if errors else -1]
    return last[:200] or f"ended with code {done.returncode}"


def missing_libraries() -> dict[str, str]:
    """Debian packages to install, each with what it would enable."""
    return {
        package: f"rendering with MUJOCO_GL={backend}"
        for library, (package, backend) in _LIBRARIES.items()
        if ctypes.util.find_library(library) is None
    }


def hardware() -> dict[str, str]:
    """Cores and memory this process may use, and how many threads numerics will take."""
    threads = {name: os.environ[name] for name in _THREADS if name in os.environ}
    return {
        "platform": platform.platform(),
        "usable cores": f"{_cores():g}",
        "memory": _memory(),
        "BLAS": _blas(),
        "BLAS threads": ", ".join(f"{n}={v}" for n, v in threads.items()) or "all cores (unset)",
        "XLA threads": f"NPROC={os.environ['NPROC']}"
        if "NPROC" in os.environ
        else "all cores (unset)",
    }


def _cores() -> float:
    """Cores by affinity, cut by the quota of a container."""
    count = float(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return count if quota == "max" else min(count, float(quota) / float(period))
    except (OSError, ValueError):
        return count


def _memory() -> str:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return "unknown"
    sizes = {n: int(kib) / 2**20 for n, kib in re.findall(r"(\w+):\s+(\d+) kB", text)}
    if not {"MemTotal", "MemAvailable"} <= set(sizes):
        return "unknown"
    return f"{sizes['MemAvailable']:.1f} GiB free of {sizes['MemTotal']:.1f} GiB"


def _blas() -> str:
    import numpy as np

    config = np.show_config(mode="dicts")
    blas = (config or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
