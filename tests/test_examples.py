"""Every example runs and its outcome holds."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SLOW = {"01_cube_tosses", "02_pendulum_three_kinds", "05_your_robot"} | {
    "pendulum_gradient",
    "tensegrity",
    "throw",
}


def _example(path: Path) -> object:
    marks = [pytest.mark.slow] if path.stem in SLOW else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [_example(p) for p in sorted(EXAMPLES.glob("*.py"))])
def test_example_gives_the_outcome_it_promises(path: Path):
    runpy.run_path(str(path))["check"]()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_example_is_short_and_says_what_it_shows(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 81
    assert lines[0].startswith('"""')
