import numpy as np

from sameworld.report.calibration import _shrunk


def test_film_images_are_averaged_to_a_size_fit_for_a_page():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (2, 481, 640, 3)).astype(np.uint8)
    small = _shrunk(images)
    assert small.shape == (2, 160, 213, 3) and small.dtype == np.uint8
    assert small[1, 3, 5, 2] == np.round(images[1, 9:12, 15:18, 2].mean())
    assert (_shrunk(images[:, :240]) == images[:, :240]).all()
