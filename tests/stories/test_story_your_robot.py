"""The tutorial: every command on the page runs, on fewer recordings, and its table adds up."""

import re
import shlex
import subprocess
import warnings
from pathlib import Path

import pytest

from sameworld.cli.main import main
from sameworld.core import SameworldWarning
from sameworld.store import load_scene, read_json, read_lerobot
from sameworld.zoo import HOBBY_ARM_TRUTH

PAGE = (Path(__file__).parents[2] / "docs" / "your_robot.md").read_text(encoding="utf-8")
#: What makes the commands quick; every text on the left must stand on the page.
QUICK = {
    "sameworld doctor": "sameworld doctor --no-render",
    "write_hobby_arm('.')": "write_hobby_arm('.', episodes=5, seconds=2)",
    "'later', episodes=4": "'later', episodes=2, seconds=2",
    "--threads 0": "--rounds 1 --evaluations 2 --holdout 0",
}
ROW = re.compile(r"^\| `(\S+)` \| \S+ \| (\S+) \| (\S+) to (\S+) \| .* \| (\S+) \|$", re.MULTILINE)


def commands():
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
    for full, quick in QUICK.items():
        assert full in text
        text = text.replace(full, quick)
    return [line for line in text.splitlines() if line]


def run(line):
    words = shlex.split(line)
    if words[0] == "sameworld":
        return main(words[1:])
    if words[0] == "python":
        exec(words[2], {})
        return 0
    return subprocess.run(words, check=False).returncode


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """The folder after all commands, and their exit codes by line."""
    folder, codes = tmp_path_factory.mktemp("robot"), {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)  # a fit cut short
        patch.chdir(folder)
        for line in commands():
            codes[line] = run(line)
    return folder, codes


@pytest.mark.slow
def test_every_command_of_the_page_runs_and_only_open_questions_give_one(walk):
    _, codes = walk
    bad = [line for line, code in codes.items() if code]
    assert [line.split()[:3] for line in bad] == [["sameworld", "inspect", "dataset"]]


@pytest.mark.slow
def test_the_walk_leaves_what_the_page_promises(walk):
    folder, _ = walk
    mapping = read_json(folder / "runs" / "arm" / "mapping.json")
    scales = {s["channel"]: s["scale"] for s in mapping["signals"]}
    assert scales["gripper.pos"] == scales["gripper"] == pytest.approx(1.92 / 100)
    assert mapping["undecided"] == []
    belief = load_scene(folder / "runs" / "arm" / "scene").belief
    assert {p.name for p in belief.parameters if p.source == "identified"} >= set(HOBBY_ARM_TRUTH)
    assert (folder / "runs" / "arm" / "calibrated.xml").is_file()
    assert len(list(read_lerobot(folder / "fitted_dataset"))) == 3


def test_as_many_intervals_of_the_table_hold_the_hidden_value_as_the_page_says():
    rows = ROW.findall(PAGE)
    hidden = {name: float(truth) for name, _, _, _, truth in rows}
    assert {n: t for n, t in hidden.items() if n in HOBBY_ARM_TRUTH} == dict(HOBBY_ARM_TRUTH)
    held = sum(float(low) <= float(truth) <= float(high) for _, _, low, high, truth in rows)
    assert f"{held} of {len(rows)} intervals hold the hidden value" in PAGE
