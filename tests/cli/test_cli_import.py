import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from sameworld.cli.main import main
from sameworld.store import episode_ids, load_episodes


def table(path, rows=20, heading="t [s],elbow.pos,pull", step=0.05):
    lines = [heading]
    lines += [f"{step * i:.3f},{0.1 * (i % 5):.2f},{i % 2}" for i in range(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


ARM = """<mujoco><worldbody><body name="arm" pos="0 0 1">
<joint name="elbow" axis="0 1 0" range="-90 90" limited="true"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody>
<actuator><motor name="pull" joint="elbow"/></actuator></mujoco>"""


def test_columns_become_channels_under_their_own_names(tmp_path, capsys):
    source = table(tmp_path / "run.csv")
    assert main(["import", str(source), str(tmp_path / "out")]) == 0
    (episode,) = load_episodes(tmp_path / "out")
    assert episode.id == "run"
    assert {c.name for c in episode.channels} == {"elbow.pos", "pull"}
    assert all(c.role == "observation" and c.unit == "" for c in episode.channels)
    assert "episodes  1" in capsys.readouterr().out


def test_with_a_scene_columns_called_like_its_signals_take_their_roles(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    source = table(tmp_path / "run.csv")
    words = ["import", str(source), str(tmp_path / "out"), "--scene", str(tmp_path / "arm.xml")]
    assert main(words) == 0
    (episode,) = load_episodes(tmp_path / "out")
    assert episode["pull"].role == "action"
    assert episode["elbow.pos"].role == "observation"


def test_labelled_columns_are_joined_by_a_dot(tmp_path):
    np.savez(tmp_path / "a.npz", t=0.1 * np.arange(5), q=np.zeros((5, 2)))
    assert main(["import", str(tmp_path / "a.npz"), str(tmp_path / "out")]) == 0
    (episode,) = load_episodes(tmp_path / "out")
    assert [c.name for c in episode.channels] == ["q.0", "q.1"]


def test_pieces_become_episodes_and_more_are_added_later(tmp_path):
    time_ = np.tile(0.1 * np.arange(5), 3)
    np.savez(tmp_path / "a.npz", t=time_, x=np.arange(15.0), start=np.array([0, 5, 10, 15]))
    out = str(tmp_path / "out")
    assert main(["import", str(tmp_path / "a.npz"), out]) == 0
    assert main(["import", str(table(tmp_path / "b.csv")), out]) == 0
    assert episode_ids(out) == ("a-0", "a-1", "a-2", "b")


def test_files_of_one_name_get_different_ids(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    table(logs / "a.csv")
    np.savez(logs / "a.npz", t=0.1 * np.arange(5), x=np.zeros(5))
    assert main(["import", str(logs), str(tmp_path / "out")]) == 0
    assert episode_ids(tmp_path / "out") == ("a", "a-2")


def test_the_time_column_can_be_named(tmp_path, capsys):
    source = table(tmp_path / "run.csv", heading="k,x,y", step=1)
    assert main(["import", str(source), str(tmp_path / "out"), "--time", "k"]) == 2
    assert "time_unit" in capsys.readouterr().err
    words = ["import", str(source), str(tmp_path / "out"), "--time", "k", "--time-unit", "ms"]
    assert main(words) == 0
    (episode,) = load_episodes(tmp_path / "out")
    assert episode.end == pytest.approx(0.019)


def test_what_was_lost_is_said_once_with_its_count(tmp_path, capsys):
    for name in "ab":
        text = (table(tmp_path / f"{name}.csv")).read_text()
        (tmp_path / f"{name}.csv").write_text(text + "2.0,nan,1\n2.1\n")
    assert main(["import", str(tmp_path), str(tmp_path / "out")]) == 0
    page = capsys.readouterr().out
    assert page.count("1 row(s) have another number of fields") == 1
    assert "Note (2 times like this): elbow.pos: 1 sample(s) are not finite" in page


def test_a_refused_import_leaves_nothing_behind(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", t=0.1 * np.arange(5), x=np.full(5, np.nan))
    assert main(["import", str(tmp_path / "a.npz"), str(tmp_path / "out")]) == 2
    assert "no column with two usable samples" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_mapping_needs_its_scene(tmp_path, capsys):
    (tmp_path / "m.json").write_text("{}")
    source = table(tmp_path / "run.csv")
    words = ["import", str(source), str(tmp_path / "out"), "--mapping", str(tmp_path / "m.json")]
    assert main(words) == 2
    assert "add --scene" in capsys.readouterr().err


def test_a_mapping_brings_columns_to_the_signals_of_the_scene(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    source = table(tmp_path / "run.csv", heading="t [s],a,b")
    signals = [
        {"channel": "elbow.pos", "stream": "a", "scale": -2.0, "unit": "rad"},
        {"channel": "pull", "stream": "b", "role": "action"},
    ]
    record = {"schema": 1, "signals": signals}
    (tmp_path / "m.json").write_text(json.dumps(record))
    words = ["import", str(source), str(tmp_path / "out"), "--scene", str(tmp_path / "arm.xml")]
    assert main([*words, "--mapping", str(tmp_path / "m.json")]) == 0
    (episode,) = load_episodes(tmp_path / "out")
    assert episode["elbow.pos"].values.ravel()[:3].tolist() == pytest.approx([0, -0.2, -0.4])
    assert episode["pull"].role == "action"


def test_a_killed_import_leaves_the_store_as_it_was(tmp_path):
    time_ = np.tile(0.1 * np.arange(20), 4000)
    starts = 20 * np.arange(4001)
    np.savez(tmp_path / "big.npz", t=time_, x=np.arange(80_000.0), start=starts)
    out = tmp_path / "out"
    assert main(["import", str(table(tmp_path / "first.csv")), str(out)]) == 0
    before = (out / "episodes.jsonl").read_bytes()
    words = [sys.executable, "-m", "sameworld.cli", "import", str(tmp_path / "big.npz"), str(out)]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("import: 0")
        time.sleep(0.2)
        running.send_signal(signal.SIGKILL)
        running.wait(timeout=60)
    assert (out / "episodes.jsonl").read_bytes() == before
    (episode,) = load_episodes(out)
    assert episode.id == "first"
