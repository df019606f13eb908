"""``sameworld excite``: commands on disk, what they teach, refusals."""

import json

import numpy as np
import pytest

from sameworld.cli.main import main

LIMIT = "j*.pos:low=-1.2,high=1.2,speed=2,acceleration=12"


def words(out, *more):
    return [
        "excite", "arm", "--free", "body:link5.mass", "actuator:a4.kp", "--noise", "*.pos", "0.001",
        "--limit", LIMIT, "--duration", "0.6", "--terms", "2", "--evaluations", "0",
        "--out", str(out), *more,
    ]  # fmt: skip


def test_motions_are_written_as_tables_of_commands(tmp_path, capsys):
    assert main(words(tmp_path, "--motions", "2")) == 0
    text = capsys.readouterr().out
    assert "body:link5.mass" in text and "Tightest limits" in text
    head = (tmp_path / "motion2.csv").read_text().splitlines()[0]
    assert head == "time,a1,a2,a3,a4,a5,a6,a7"
    table = np.loadtxt(tmp_path / "motion2.csv", delimiter=",", skiprows=1)
    assert table.shape == (60, 8)
    assert np.abs(np.diff(table[:, 1:], axis=0)).max() <= 2 * 0.01 + 1e-6
    record = json.loads((tmp_path / "result.json").read_text())
    assert record["logdet"] < record["logdet_before"]


@pytest.mark.parametrize(
    ("limit", "said"),
    [("j1.pos:spede=2", "Did you mean 'speed'"), ("j1.pos:low=a", "not a number"), ("j1.pos", "=")],
)
def test_limits_that_cannot_be_read_are_refused_with_an_example(tmp_path, capsys, limit, said):
    assert main(words(tmp_path, "--limit", limit)) == 2
    assert said in capsys.readouterr().err
