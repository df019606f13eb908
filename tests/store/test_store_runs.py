"""A run's folder tells how it was made, and long work resumes from it."""

import warnings

import numpy as np
import pytest

from sameworld.core.errors import StoreError
from sameworld.store import RunFolder, StoreWarning
from sameworld.store.files import write_json, write_npz


def test_a_run_folder_holds_what_was_saved(tmp_path):
    run = RunFolder.create(tmp_path / "run")
    run.save_config({"seed": 3})
    run.save_metrics({"rms": 0.1, "skill": float("nan")})
    run.save_report("<html></html>")
    names = {p.name for p in run.path.iterdir()}
    assert names == {"config.json", "versions.json", "metrics.json", "report.html"}
    assert run.read("metrics.json") == {"rms": 0.1, "skill": None}
    assert {"python", "numpy", "mujoco", "sameworld"} <= set(run.read("versions.json"))


def test_a_config_with_nan_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="JSON has no nan"):
        RunFolder.create(tmp_path / "run").save_config({"tolerance": float("nan")})


def test_a_run_may_be_reopened_but_nothing_else_is_touched(tmp_path):
    RunFolder.create(tmp_path / "run").save_config({"a": 1})
    assert RunFolder.create(tmp_path / "run").read("config.json") == {"a": 1}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(StoreError, match="holds no run"):
        RunFolder.create(tmp_path / "other")
    with pytest.raises(StoreError, match="is a file"):
        RunFolder.create(tmp_path / "other" / "thesis.tex")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", "a/b", "a\0b", "x" * 200, ".hidden"])
def test_names_cannot_leave_the_folder(tmp_path, name):
    run = RunFolder.create(tmp_path / "run")
    with pytest.raises(StoreError, match="cannot name"):
        run.file(name)
    with pytest.raises(StoreError, match="cannot name"):
        run.checkpoint(name)


def test_a_checkpoint_comes_back_and_only_the_newest_is_kept(tmp_path):
    checkpoint = RunFolder.create(tmp_path / "run").checkpoint("search")
    assert checkpoint.load() is None
    for n in range(3):
        checkpoint.save({"x": np.full(5, float(n))}, {"step": np.int64(n), "pair": (n, None)})
    arrays, state = checkpoint.load()
    np.testing.assert_array_equal(arrays["x"], np.full(5, 2.0))
    assert state == {"step": 2, "pair": [2, None]}
    assert len(list(checkpoint.folder.glob("*.npz"))) == 1


def test_checkpoints_do_not_disturb_each_other(tmp_path):
    run = RunFolder.create(tmp_path / "run")
    first, second = run.checkpoint("a"), run.checkpoint("a-b")
    first.save({"x": np.zeros(1)}, {})
    second.save({"x": np.ones(1)}, {})
    first.save({"x": np.full(1, 2.0)}, {})
    assert second.load()[0]["x"] == 1
    assert first.load()[0]["x"] == 2


def _damage_arrays(checkpoint):
    file = next(checkpoint.folder.glob("*.npz"))
    file.write_bytes(file.read_bytes()[:-7])


def _lose_arrays(checkpoint):
    next(checkpoint.folder.glob("*.npz")).unlink()


def _swap_arrays(checkpoint):
    write_npz(next(checkpoint.folder.glob("*.npz")), {"x": np.full(3, 7.0)})


def _edit_state(checkpoint):
    checkpoint.path.write_text(checkpoint.path.read_text().replace('"step": 1', '"step": 9'))


def _cut_record(checkpoint):
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:30])


def _foreign_record(checkpoint):
    write_json(checkpoint.path, {"epoch": 3})


def _list_record(checkpoint):
    write_json(checkpoint.path, [1, 2])


def _escape_record(checkpoint):
    record = {"schema": 1, "arrays": "../" * 20, "state": {}, "digest": ""}
    write_json(checkpoint.path, record)


@pytest.mark.parametrize(
    "damage",
    [
        _damage_arrays,
        _lose_arrays,
        _swap_arrays,
        _edit_state,
        _cut_record,
        _foreign_record,
        _list_record,
        _escape_record,
    ],
)
def test_a_damaged_or_foreign_checkpoint_is_ignored_with_a_warning(tmp_path, damage):
    checkpoint = RunFolder.create(tmp_path / "run").checkpoint("search")
    checkpoint.save({"x": np.zeros(3)}, {"step": 1})
    damage(checkpoint)
    with pytest.warns(StoreWarning, match="starts afresh"):
        assert checkpoint.load() is None
    checkpoint.save({"x": np.ones(3)}, {"step": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint.load()[1] == {"step": 2}


def test_a_save_that_breaks_off_before_the_pointer_keeps_the_previous_state(tmp_path):
    checkpoint = RunFolder.create(tmp_path / "run").checkpoint("search")
    checkpoint.save({"x": np.zeros(3)}, {"step": 1})
    with pytest.raises(StoreError):  # the arrays are on the disk, the record is refused
        checkpoint.save({"x": np.ones(3)}, {"step": float("nan")})
    arrays, state = checkpoint.load()
    assert state == {"step": 1}
    np.testing.assert_array_equal(arrays["x"], 0)
