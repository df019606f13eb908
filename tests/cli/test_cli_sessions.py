"""Sessions from the command line."""

import numpy as np
import pytest

from sameworld.cli.main import main
from sameworld.core import Channel, Episode, Values, rollout
from sameworld.store import load_scene, save_episodes
from sameworld.zoo import AnalyticPendulum

MASSES = (0.4, 0.5, 0.65)
ROWS = 30


@pytest.fixture
def store(tmp_path):
    """Two driven swings in each of three sessions with other bobs."""
    world, rng, episodes = AnalyticPendulum(), np.random.default_rng(0), []
    drives = 0.3 * rng.standard_normal((6, ROWS, 1)).cumsum(axis=1)
    starts = Values.of({"start:pivot.pos": np.linspace(0.4, 1.2, 6)})
    bobs = Values.of({"body:bob.mass": np.repeat(MASSES, 2)})
    run = rollout(world, starts, drives, parameters=bobs)
    for k in range(6):
        values = run.signals["pivot.pos"][k] + 1e-3 * rng.standard_normal(ROWS + 1)
        motor = Channel(
            name="pivot_motor", time=run.time[:-1], values=drives[k, :, 0], role="action"
        )
        angle = Channel(name="pivot.pos", time=run.time, values=values, unit="rad")
        episodes.append(Episode(id=f"swing{k}", channels=(angle, motor), session_id=f"bob{k // 2}"))
    save_episodes(episodes, tmp_path / "swings")
    return tmp_path / "swings"


def test_values_per_session_are_printed_reported_and_believed(store, tmp_path, capsys):
    words = (
        f"identify pendulum {store} --out {tmp_path / 'run'} --free body:bob.mass "
        "--per-session *.mass --search none --film 0 --bootstrap 20 --test 0"
    )
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "Sessions: body:bob.mass" in printed and "Mean of all sessions" in printed
    assert all(f"bob{k}" in printed for k in range(3))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h3>Sessions</h3>" in page
    mass = load_scene(tmp_path / "run" / "scene").belief["body:bob.mass"]
    assert mass.value == pytest.approx(np.exp(np.mean(np.log(MASSES))), rel=0.03)
    assert mass.std > 0.1 * mass.value  # a new session may have another bob
