import json
import re
import sys

import numpy as np
import pytest

from sameworld.cli import machine
from sameworld.cli.main import main


def test_doctor_json_tells_versions_hardware_and_extras(capsys):
    assert main(["doctor", "--json", "--no-render"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["python"] == sys.version.split()[0]
    assert float(found["hardware"]["usable cores"]) > 0
    assert re.fullmatch(r"[\d.]+ GiB free of [\d.]+ GiB|unknown", found["hardware"]["memory"])
    names = {e["name"] for e in found["extras"]}
    assert "dev" in names
    for extra in found["extras"]:
        line = f"pip install 'sameworld[{extra['name']}]'"
        assert extra["remedy"] == (line if extra["missing"] else "")


def test_doctor_text_names_a_working_renderer_or_why_there_is_none(capsys, monkeypatch):
    probes = {
        "egl": machine.RendererProbe(backend="egl", works=False, detail="no display"),
        "osmesa": machine.RendererProbe(backend="osmesa", works=True, detail="llvmpipe (Mesa)"),
        "glfw": machine.RendererProbe(backend="glfw", works=False, detail="no window"),
    }
    monkeypatch.setattr(machine, "probe_renderer", probes.__getitem__)
    assert main(["doctor"]) == 0
    page = capsys.readouterr().out
    assert "Use MUJOCO_GL=osmesa." in page
    assert "llvmpipe (Mesa)" in page and "no display" in page


@pytest.mark.render
def test_a_backend_that_works_says_who_drew():
    probes = [machine.probe_renderer(backend) for backend in ("egl", "osmesa")]
    if not any(p.works for p in probes):
        pytest.skip(f"no offscreen OpenGL: {[p.detail for p in probes]}")
    drawn = next(p for p in probes if p.works)
    assert re.search(r"\(.+\), OpenGL \d", drawn.detail)


def test_a_backend_that_does_not_exist_gives_the_reason():
    probe = machine.probe_renderer("nonsense")
    assert not probe.works
    assert "nonsense" in probe.detail


def test_missing_libraries_are_debian_packages(monkeypatch):
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    assert set(machine.missing_libraries()) == {"libegl1", "libosmesa6", "libgl1"}
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}.so")
    assert machine.missing_libraries() == {}
