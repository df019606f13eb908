import numpy as np

from sameworld.loops.film import FilmStrip
from sameworld.report.calibration import _film, _framed, _shrunk


def test_film_images_are_averaged_to_a_size_fit_for_a_page():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (2, 481, 640, 3)).astype(np.uint8)
    small = _shrunk(images)
    assert small.shape == (2, 160, 213, 3) and small.dtype == np.uint8
    assert small[1, 3, 5, 2] == np.round(images[1, 9:12, 15:18, 2].mean())
    assert (_shrunk(images[:, :240]) == images[:, :240]).all()


def test_film_shows_the_window_in_which_things_move():
    images = np.full((2, 3, 120, 160, 3), 90, np.uint8)
    for k in range(3):
        images[:, k, 40 + 5 * k : 52 + 5 * k, 100 + 8 * k : 112 + 8 * k] = 200
    cut = _framed(list(images))
    assert cut[0].shape == cut[1].shape == (3, 36, 48, 3)
    assert [int((c == 200).sum()) for c in cut] == [int((i == 200).sum()) for i in images]
    still = _framed([np.zeros((2, 12, 16, 3), np.uint8)])
    assert still[0].shape == (2, 12, 16, 3)
    assert _framed([]) == []


def test_film_shows_the_recorded_course_faintly_behind_the_simulated_ones():
    rng = np.random.default_rng(0)
    strips = [
        FilmStrip(
            label=label,
            time=np.arange(2.0),
            images=rng.integers(0, 255, (2, 40, 60, 3)).astype(np.uint8),
        )
        for label in ("recorded", "simulated")
    ]
    recorded, simulated = _film(strips)
    assert (recorded.images == strips[0].images).all()
    mixed = 0.7 * strips[1].images + 0.3 * strips[0].images
    assert np.abs(simulated.images - mixed).max() <= 0.5 + 1e-9
    same = _film([strips[0], strips[0]])
    assert (same[1].images == strips[0].images).all()
