import json

import numpy as np
import pytest

from sameworld.cli.main import main
from sameworld.core import Belief, Channel, Episode, Parameter
from sameworld.store import RunFolder, save_belief, save_episodes


@pytest.fixture
def inspect(capsys):
    def run(source, code=0):
        assert main(["inspect", str(source), "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def episode(name, **channels):
    return Episode(id=name, channels=tuple(channels.values()))


def channel(name, time, values, unit="m", role="observation"):
    return Channel(name=name, time=time, values=values, unit=unit, role=role)


def test_streams_show_rate_jitter_gaps_and_repeats(tmp_path, inspect):
    rng = np.random.default_rng(0)
    time = np.arange(200) * 0.01
    time[100:] += 0.5
    held = np.repeat(rng.standard_normal(100), 2)
    jittered = time + rng.uniform(-0.002, 0.002, 200)
    run = episode(
        "one",
        a=channel("a", time, rng.standard_normal((200, 3))),
        b=channel("b", jittered, held, unit="rad"),
    )
    save_episodes([run], tmp_path / "store")
    found = inspect(tmp_path / "store")
    assert found["kind"] == "episodes" and found["facts"]["episodes"] == "1"
    a, b = found["tables"]["Channels"]
    assert (a["rate [Hz]"], a["shape"], a["gaps"]) == ("100", "3", "1")
    assert a["longest gap [s]"] == "0.510" and a["repeats"] == "0\u00a0%"
    assert a["jitter"] == "0\u00a0%" and b["jitter"] != "0\u00a0%"
    assert b["repeats"] == "50\u00a0%"
    assert any("'b' repeats its last sample" in d for d in found["doubts"])


def test_degrees_declared_as_radians_are_doubted(tmp_path, inspect):
    time = np.arange(50) * 0.1
    angle = channel("elbow", time, 170 * np.sin(time), unit="rad")
    save_episodes([episode("one", a=angle)], tmp_path / "store")
    assert any("degrees" in d for d in inspect(tmp_path / "store")["doubts"])


def test_beliefs_show_every_parameter(tmp_path, inspect):
    mass = Parameter(name="body:cube.mass", value=0.371, std=0.012, low=0, unit="kg")
    slide = Parameter(name="pair:a+b.friction.slide", value=0.2, low=0)
    save_belief(Belief(parameters=(mass, slide)), tmp_path / "belief.json")
    found = inspect(tmp_path / "belief.json")
    assert found["kind"] == "belief" and found["facts"]["parameters"] == "2"
    rows = {row["parameter"]: row for row in found["tables"]["Parameters"]}
    assert rows["body:cube.mass"]["value"] == "0.371"
    assert rows["body:cube.mass"]["± 1 sd"] == "0.012"
    assert rows["pair:a+b.friction.slide"]["± 1 sd"] == "unknown"


def test_unfinished_runs_are_said_to_be_unfinished(tmp_path, inspect):
    run = RunFolder.create(tmp_path / "run")
    found = inspect(run.path)
    assert found["kind"] == "run" and "did not finish" in found["doubts"][0]
    run.save_metrics({"cube.pos.after": 0.0041, "gone": float("nan")})
    found = inspect(run.path)
    assert found["doubts"] == []
    assert {"metric": "cube.pos.after", "value": "0.004100"} in found["tables"]["Metrics"]


def test_bundled_recordings_can_be_inspected_by_name(capsys):
    assert main(["inspect", "cube_tosses:3"]) == 0
    page = capsys.readouterr().out
    assert "cube.quat" in page and "longest gap [s]" in page


@pytest.mark.parametrize(
    ("name", "text", "fragment"),
    [
        ("belief.json", "{", "belief.json"),
        ("belief.json", '{"schema": 1}', "parameters"),
        ("scene.xml", "<mujoco", "scene.xml"),
        ("notes.txt", "hello", "nothing known"),
    ],
)
def test_bad_files_give_a_readable_error(tmp_path, capsys, name, text, fragment):
    (tmp_path / name).write_text(text)
    assert main(["inspect", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sameworld: ") and fragment in error


def test_unknown_names_show_what_exists(capsys):
    assert main(["inspect", "cube_toss"]) == 2
    assert "Did you mean 'cube_tosses'?" in capsys.readouterr().err
    assert main(["inspect", "cube_tosses:many"]) == 2
    assert "number of episodes" in capsys.readouterr().err
