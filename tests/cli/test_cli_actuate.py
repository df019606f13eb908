"""``sameworld actuate``: from a robot description to a scene that the other verbs take."""

import json

import pytest

from sameworld.cli.main import main
from sameworld.store import load_scene

LINK = (
    '<link name="{0}"><inertial><mass value="1"/><inertia ixx="{1}" iyy="1e-3" izz="1.2e-3" '
    'ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.1 0.1 0.1"/></geometry>'
    "</collision></link>"
)


def description(moment="1.1e-3"):
    return (
        f'<robot name="r"><link name="base"/>{LINK.format("arm", moment)}'
        '<joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint></robot>'
    )


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(description())
    return path


def test_a_robot_description_becomes_a_scene_folder_for_every_verb(urdf, tmp_path, capsys):
    out = tmp_path / "scene"
    assert (
        main(["actuate", str(urdf), "--preset", "position", "--joints", "*", "--out", str(out)])
        == 0
    )
    told = capsys.readouterr().out
    assert "Assumed:" in told and "Measure:" in told and "sameworld inspect" in told
    assert main(["check", str(out)]) == 0
    assert main(["inspect", str(out)]) == 0
    assert "actuator:elbow.kp" in capsys.readouterr().out
    assert load_scene(out).belief["actuator:elbow.kp"].source == "assumed"


def test_other_verbs_take_a_robot_description_as_it_is(urdf, capsys):
    assert main(["inspect", str(urdf)]) == 0
    assert "joint:elbow.damping" in capsys.readouterr().out


def test_json_holds_the_gains_and_no_infinities(urdf, tmp_path, capsys):
    words = ["actuate", str(urdf), "--preset", "torque", "--out", str(tmp_path / "s"), "--json"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["preset"] == "torque"
    assert record["drives"][0]["force"] == 5


def test_bad_inertias_are_refused_and_repaired_on_request(tmp_path, capsys):
    path = tmp_path / "robot.urdf"
    path.write_text(description("9"))
    out = tmp_path / "scene"
    assert main(["actuate", str(path), "--out", str(out)]) == 2
    assert "triangle inequality" in capsys.readouterr().err
    assert not out.exists()
    assert main(["actuate", str(path), "--repair", "--out", str(out)]) == 0
    assert "with the given 1 kg" in capsys.readouterr().out
    assert load_scene(out).belief["body:arm.inertia.x"].value == pytest.approx(1 / 600)


def test_an_existing_scene_is_replaced_on_request_only(urdf, tmp_path):
    words = ["actuate", str(urdf), "--out", str(tmp_path / "scene")]
    assert [main(words), main(words), main([*words, "--overwrite"])] == [0, 2, 0]


def test_options_of_descriptions_are_refused_for_other_scenes(tmp_path, capsys):
    words = ["actuate", "arm", "--drop-visuals", "--out", str(tmp_path / "s")]
    assert main(words) == 2
    assert "are for URDF files" in capsys.readouterr().err
