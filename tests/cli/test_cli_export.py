"""``sameworld export``: the dataset, the table of losses, refusals."""

import json

import numpy as np

from sameworld.cli.main import main
from sameworld.core import Channel, Episode
from sameworld.store import read_lerobot, save_episodes, save_video


def store(folder):
    time = np.arange(60) / 20
    pull = Channel(name="pull", time=time[::2], values=np.sign(np.sin(time[::2])), role="action")
    angle = Channel(name="angle", time=time, values=np.sin(3 * time), unit="rad")
    save_episodes([Episode(id=n, channels=(angle, pull)) for n in "ab"], folder)
    for name in "ab":
        save_video(folder, name, "top", [np.full((16, 24, 3), 90, np.uint8)] * 30, time[::2])
    return str(folder)


def test_an_episode_store_with_images_becomes_a_dataset(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", store(tmp_path / "store"), str(out), "--task", "swing"]) == 0
    text = capsys.readouterr().out
    assert "2 episode(s), 118 rows at 20 a second" in text
    for words in ("angle", "interpolated", "pull", "held", "latest frame", "Units are not kept"):
        assert words in text
    recordings = list(read_lerobot(out))
    assert [r.task for r in recordings] == ["swing", "swing"]
    names = ["observation.state", "action", "observation.images.top"]
    assert [s.name for s in recordings[0].streams] == names
    assert recordings[0].notes == ()


def test_the_report_comes_as_json(tmp_path, capsys):
    words = ["export", "cube_tosses:3", str(tmp_path / "out"), "--fps", "50", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["fps"] == 50 and len(report["episodes"]) == 3
    assert report["channels"][0]["name"] == "cube.pos"


def test_what_cannot_be_exported_ends_with_2(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("precious")
    assert main(["export", "cube_tosses:2", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    assert "no episode store" in capsys.readouterr().err
    assert main(["export", "cube_tosses:2", str(tmp_path / "out"), "--fps", "0"]) == 2
    assert "whole number of rows" in capsys.readouterr().err
