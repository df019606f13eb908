import json

import numpy as np
import pytest

from sameworld import zoo
from sameworld.cli.main import main
from sameworld.core import Channel, Episode, Values, rollout
from sameworld.report import load_report
from sameworld.store import load_scene, save_episodes
from sameworld.worlds import build

TRUTH = 0.06
ROWS = 60


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Six noisy swings of a pendulum with more damping than the zoo's."""
    world = build(zoo.scene("pendulum"))
    rng = np.random.default_rng(0)
    drives = 0.3 * rng.standard_normal((6, ROWS, world.spec.action_size)).cumsum(axis=1)
    clock = np.arange(ROWS + 1) * world.spec.period
    damped = Values.of({"joint:pivot.damping": TRUTH})
    angles = np.linspace(0.4, 1.4, 6)
    names = [n for n in world.spec.start.names if n.endswith(".pos")]
    run = rollout(world, Values.of({names[0]: angles}), drives, parameters=damped)
    episodes = [
        Episode(
            id=f"swing-{k}",
            source="mujoco",
            channels=(
                *(
                    Channel(
                        name=c.name,
                        time=clock,
                        values=s + 1e-3 * rng.standard_normal(s.shape),
                        unit=c.unit,
                    )
                    for c in world.spec.observations
                    for s in [run.signals[c.name][k]]
                ),
                *(
                    Channel(
                        name=a.name,
                        time=clock[:-1],
                        values=drives[k].reshape(ROWS, *a.shape),
                        unit=a.unit,
                        role="action",
                    )
                    for a in world.spec.actions
                ),
            ),
        )
        for k in range(6)
    ]
    folder = tmp_path_factory.mktemp("recordings") / "swings"
    save_episodes(episodes, folder)
    return folder


@pytest.fixture(scope="module")
def run_folder(recordings, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "swings"
    assert identify(recordings, out) == 0
    return out


def identify(recordings, out):
    options = "--free joint:pivot.damping --search none --rounds 1 --film 0 --bootstrap 50"
    return main(["identify", "pendulum", str(recordings), "--out", str(out), *options.split()])


def test_identify_leaves_a_report_and_a_scene_that_knows_the_damping(run_folder):
    damping = load_scene(run_folder / "scene").belief["joint:pivot.damping"]
    assert damping.source == "identified"
    assert damping.value == pytest.approx(TRUTH, rel=0.05)
    page = (run_folder / "report.html").read_text(encoding="utf-8")
    assert "damping of pivot" in page and "<svg" in page


def test_the_same_command_resumes_and_gives_the_same_numbers(recordings, run_folder, capsys):
    before = json.loads((run_folder / "metrics.json").read_text())
    assert identify(recordings, run_folder) == 0
    after = json.loads((run_folder / "metrics.json").read_text())
    before.pop("cpu_seconds"), after.pop("cpu_seconds")
    assert after == before
    printed = capsys.readouterr().out
    assert "1 of 1 parameter could be determined" in printed
    report, headline = printed.splitlines()[-2:]
    assert report == f"Report: {run_folder / 'report.html'}"
    assert headline.startswith("Compared with the world as given, on 1 recording that the fit")
    assert headline.count(" to ") >= 2


def test_other_options_in_the_same_folder_are_refused(recordings, run_folder, capsys):
    words = ["identify", "pendulum", str(recordings), "--out", str(run_folder), "--free", "*.mass"]
    assert main(words) == 2
    assert "holds a run with other" in capsys.readouterr().err


def test_report_renders_again_from_the_folder(run_folder, capsys):
    page = run_folder / "report.html"
    before = page.read_bytes()
    assert main(["report", str(run_folder)]) == 0
    assert page.read_bytes() == before
    assert main(["report", str(run_folder), "--title", "Other <title>"]) == 0
    assert "<h1>Other &lt;title&gt;</h1>" in page.read_text(encoding="utf-8")
    assert load_report(run_folder).title != "Other <title>"


def test_predict_scores_a_calibrated_scene_with_intervals(recordings, run_folder, tmp_path, capsys):
    out = tmp_path / "predictions.npz"
    words = ["predict", str(run_folder / "scene"), str(recordings), "--out", str(out)]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert "from measured errors" in page and "6 of 6" in page
    with np.load(out) as arrays:
        names = {name.split("/")[0] for name in arrays.files}
    assert names == {f"swing-{k}" for k in range(6)}


def test_check_passes_for_the_calibrated_scene(run_folder, capsys):
    assert main(["check", str(run_folder / "scene"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] and len(found["rows"]) > 20


def test_a_pattern_that_matches_nothing_is_a_readable_error(recordings, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["identify", "pendulum", str(recordings), "--out", out, "--free", "joint:x*"]) == 2
    assert "matches no parameter" in capsys.readouterr().err
