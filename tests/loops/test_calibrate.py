"""Calibration into a run folder: what it holds, and which folders it refuses."""

import json
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from calibrate_problem import TRUTH, config, episodes, run

from sameworld.core import AddressError, FitError, StoreError
from sameworld.loops.calibrate import CalibrateConfig, calibrate
from sameworld.stages.identify import IdentifyConfig
from sameworld.store import load_episodes, load_scene
from sameworld.zoo import scene


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A finished run."""
    return run(tmp_path_factory.mktemp("runs") / "undisturbed")


def numbers(folder):
    """Metrics without the time it took."""
    found = json.loads((folder / "metrics.json").read_text())
    assert found.pop("cpu_seconds") >= 0
    return found


def test_the_folder_holds_everything_that_the_run_found(undisturbed):
    found = undisturbed
    names = {p.name for p in found.folder.iterdir()}
    assert names >= {
        "config.json",
        "versions.json",
        "metrics.json",
        "result.json",
        "posterior.json",
        "predictions.npz",
        "scene",
        "episodes",
        "checkpoints",
    }
    for name in TRUTH:
        row = next(
            r
            for r in json.loads((found.folder / "posterior.json").read_text())["parameters"]
            if r["name"] == name
        )
        assert row["mean"] == pytest.approx(TRUTH[name], rel=0.1)
        assert row["distribution"] == "lognormal"
    verdicts = json.loads((found.folder / "result.json").read_text())["verdicts"]
    assert [v["name"] for v in verdicts] == list(TRUTH)


def test_the_calibrated_scene_and_the_placed_episodes_can_be_loaded(undisturbed):
    found = undisturbed
    loaded = load_scene(found.folder / "scene")
    for name in TRUTH:
        assert loaded.belief[name].value == found.after.parameters[name].value
        assert loaded.belief[name].source == "identified"
    assert [line.stage for line in loaded.history][-1] == "identify"
    placed = load_episodes(found.folder / "episodes")
    assert [e.id for e in placed] == [e.id for e in found.episodes]
    assert all(e.start.names for e in placed)


def test_tested_episodes_are_predicted_and_never_fitted(undisturbed):
    found = undisturbed
    fitted, tested = set(found.result.episodes), {e.id for e in found.test}
    assert len(tested) == 2 and not fitted & tested
    assert fitted | tested == {e.id for e in episodes()}
    with np.load(found.folder / "predictions.npz") as arrays:
        assert {name.split("/")[0] for name in arrays.files} == tested
        for name in tested:
            values = arrays[f"{name}/rail.pos/values"]
            assert (arrays[f"{name}/rail.pos/low"] < values).all()
            assert (values < arrays[f"{name}/rail.pos/high"]).all()
    metrics = numbers(found.folder)
    assert metrics["rail.pos.after"] < 0.5 * metrics["rail.pos.before"]
    assert metrics["test_episodes"] == 2 and metrics["gain_median"] > 0.3


def test_a_repeat_in_the_same_folder_gives_the_same_answer(undisturbed):
    found = undisturbed
    before = {p: p.read_bytes() for p in _answers(found.folder)}
    metrics = numbers(found.folder)
    again = run(found.folder)
    assert {p: p.read_bytes() for p in before} == before
    assert numbers(found.folder) == metrics
    assert again.metrics["rollouts"] == found.metrics["rollouts"]


def _answers(folder):
    return [folder / name for name in ("posterior.json", "predictions.npz")]


def test_a_folder_with_another_run_is_refused_and_untouched(undisturbed):
    found = undisturbed
    before = (found.folder / "metrics.json").read_bytes()
    with pytest.raises(StoreError, match="holds a run with other seed"):
        run(found.folder, seed=1)
    other = episodes(seed=5)
    with pytest.raises(StoreError, match="holds a run with other fitted episodes"):
        calibrate(scene("cart"), other, config=config(), out=found.folder)
    assert (found.folder / "metrics.json").read_bytes() == before


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="holds no run"):
        run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_test_episodes_may_be_given_and_must_be_others(tmp_path):
    every = episodes()
    with pytest.raises(FitError, match=r"both fitted and tested"):
        calibrate(scene("cart"), every, config=config(), out=tmp_path / "a", test=every[:1])
    found = calibrate(
        scene("cart"), every[:7], config=config(holdout=0.0), out=tmp_path / "b", test=every[7:]
    )
    assert [e.id for e in found.test] == [e.id for e in every[7:]]
    assert len(found.result.episodes) == 7


@pytest.mark.parametrize("options", [{"test": 1.0}, {"film": -1}, {"level": 0.0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(FitError):
        CalibrateConfig(identify=IdentifyConfig(free=tuple(TRUTH)), **options)


def test_a_refused_attempt_leaves_the_folder_free_for_the_corrected_one(tmp_path):
    wrong = replace(config(), identify=replace(config().identify, free=("joint:*.dampingg",)))
    with pytest.raises(AddressError, match="matches no parameter"):
        calibrate(scene("cart"), episodes(), config=wrong, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    found = calibrate(scene("cart"), episodes(), config=config(), out=tmp_path / "run")
    text = (found.folder / "calibrated.xml").read_text()
    raw = mujoco.MjModel.from_xml_string(text)
    assert raw.body("cart").mass[0] == pytest.approx(
        found.after.parameters["body:cart.mass"].value, rel=1e-5
    )
