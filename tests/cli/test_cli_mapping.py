import json
import math

import numpy as np
import pytest

from sameworld import zoo
from sameworld.cli.main import main
from sameworld.core import SignalMapping, Values, rollout
from sameworld.store import load_episodes, save_episodes, save_scene
from sameworld.worlds import build

ROWS = 120
HEADER = "time,angle [deg],speed,motor_torque"


def write_csv(path, time, columns, header=HEADER):
    rows = [",".join(f"{x:.9g}" for x in row) for row in np.column_stack([time, columns])]
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture(scope="module")
def swings():
    """Five swings of the zoo's pendulum: stamps and columns in degrees, rad/s, N m."""
    world = build(zoo.scene("pendulum"))
    rng = np.random.default_rng(0)
    drives = 0.3 * rng.standard_normal((5, ROWS, 1)).cumsum(axis=1)
    start = next(n for n in world.spec.start.names if n.endswith(".pos"))
    damped = Values.of({"joint:pivot.damping": 0.06})
    run = rollout(world, Values.of({start: np.linspace(0.4, 1.4, 5)}), drives, parameters=damped)
    clock = np.arange(ROWS + 1) * world.spec.period
    found = []
    for k in range(5):
        angle = run.signals["pivot.pos"][k] + 1e-3 * rng.standard_normal(ROWS + 1)
        speed = run.signals["pivot.vel"][k] + 1e-3 * rng.standard_normal(ROWS + 1)
        drive = np.append(drives[k, :, 0], drives[k, -1, 0])
        found.append((clock, np.column_stack([np.rad2deg(angle), speed, drive])))
    return found


@pytest.fixture
def folder(tmp_path, swings):
    logs = tmp_path / "logs"
    logs.mkdir()
    for k, (time, columns) in enumerate(swings):
        write_csv(logs / f"swing{k}.csv", time, columns)
    return logs


@pytest.fixture
def scene(tmp_path):
    save_scene(zoo.scene("pendulum"), tmp_path / "scene")
    return tmp_path / "scene"


def test_recordings_are_described_stream_by_stream(folder, capsys):
    assert main(["inspect", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "recordings" and found["facts"]["recordings"] == "5"
    assert {row["samples"] for row in found["tables"]["Streams"]} == {str(5 * (ROWS + 1))}


def test_a_mapping_is_proposed_written_and_shown(folder, scene, tmp_path, capsys):
    out = tmp_path / "mapping.json"
    assert main(["inspect", str(folder), "--scene", str(scene), "--out", str(out)]) == 0
    page = capsys.readouterr().out
    assert "pivot.pos" in page and "π/180 x" in page
    mapping = SignalMapping.from_json(json.loads(out.read_text()))
    assert mapping["pivot.pos"].scale == pytest.approx(math.pi / 180)
    assert mapping["pivot.vel"].scale == 1.0 and mapping.undecided == ()
    assert main(["inspect", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "mapping"


def test_identify_takes_raw_recordings_and_keeps_the_mapping(folder, scene, tmp_path, capsys):
    out = tmp_path / "run"
    words = ["identify", str(scene), str(folder), "--out", str(out), "--film", "0"]
    words += ["--free", "joint:pivot.damping", "--search", "none", "--rounds", "1"]
    assert main(words) == 0
    assert "pivot.pos [rad] = π/180 x" in capsys.readouterr().out
    mapping = SignalMapping.from_json(json.loads((out / "mapping.json").read_text()))
    assert mapping["pivot.pos"].role == "observation"
    (fitted,) = json.loads((out / "result.json").read_text())["posterior"]["parameters"]
    assert fitted["value"] == pytest.approx(0.06, abs=0.01)
    assert {c.name for c in load_episodes(out / "episodes")[0].channels} >= {"pivot.pos"}


def test_ambiguous_columns_are_refused_until_answered(swings, scene, tmp_path, capsys):
    logs = tmp_path / "logs"
    logs.mkdir()
    for k, (time, columns) in enumerate(swings):
        wrong = columns * np.array([1.0, -1.0, 1.0])
        write_csv(logs / f"{k}.csv", time, wrong[:, :2], "time,angle [deg],speed")
    out = tmp_path / "mapping.json"
    assert main(["inspect", str(logs), "--scene", str(scene), "--out", str(out)]) == 1
    assert "opposite signs" in capsys.readouterr().out
    words = ["identify", str(scene), str(logs), "--out", str(tmp_path / "run")]
    words += ["--free", "joint:pivot.damping"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "Which is flipped?" in error and "--mapping mapping.json" in error
    assert not (tmp_path / "run").exists()
    record = json.loads(out.read_text())
    record["undecided"][0]["answer"] = "the velocity"
    out.write_text(json.dumps(record))
    assert SignalMapping.from_json(record)["pivot.vel"].scale == -1.0


def test_named_episodes_take_no_mapping(tmp_path, scene, capsys):
    save_episodes(zoo.recordings.cube_tosses(2), tmp_path / "store")
    words = ["identify", str(scene), str(tmp_path / "store"), "--mapping", "m.json"]
    assert main([*words, "--free", "x"]) == 2
    assert "--mapping is for raw recordings" in capsys.readouterr().err
    words = ["predict", str(scene), str(tmp_path / "store"), "--mapping", "m.json"]
    assert main(words) == 2 and "--mapping is for raw recordings" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "store"), "--scene", str(scene)]) == 2
    assert "no raw recording" in capsys.readouterr().err


def test_match_limits_the_parameters_that_are_shown(scene, capsys):
    assert main(["inspect", str(scene), "--match", "joint:*", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["Parameters"]
    assert rows and all(row["parameter"].startswith("joint:") for row in rows)
    assert main(["inspect", str(scene), "--match", "nothing:*"]) == 2
    assert "matches no parameter" in capsys.readouterr().err


def test_a_file_for_the_mapping_needs_a_scene(folder, capsys):
    assert main(["inspect", str(folder), "--out", "mapping.json"]) == 2
    assert "add --scene" in capsys.readouterr().err


def test_a_doubt_about_many_columns_is_said_once(tmp_path, capsys):
    for k in range(3):
        time = np.arange(0, 2, 0.02)
        angles = 100 * np.sin(time[:, None] + [k, 1.0])
        write_csv(tmp_path / f"{k}.csv", time, angles, "time,a_pos,b_pos")
    assert main(["inspect", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert page.count("looks like degrees") == 1 and "(5 more like this)" in page
    assert "no gaps, no duplicates, no backward" in page and "longest gap" not in page
