"""Statistics of a dataset equal those of its numbers, however they are gathered."""

import numpy as np

from sameworld.store.lerobot.stats import PictureCounts, merged_stats, row_stats


def test_merged_statistics_equal_those_of_all_rows_but_for_quantiles():
    rng = np.random.default_rng(0)
    parts = [rng.normal(i, 1 + i, size=(20 + 10 * i, 4)) for i in range(4)]
    merged, direct = merged_stats([row_stats(p) for p in parts]), row_stats(np.concatenate(parts))
    for what in ("min", "max", "mean", "std", "count"):
        np.testing.assert_allclose(merged[what], direct[what], rtol=1e-12)
    same = [row_stats(parts[0])] * 3
    np.testing.assert_allclose(merged_stats(same)["q10"], row_stats(parts[0])["q10"])


def test_statistics_of_pictures_equal_those_of_their_numbers():
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 200 + 10 * i, (30, 40, 3)).astype(np.uint8) for i in range(3)]
    counts = PictureCounts.empty()
    for image in images:
        counts.add(image)
    values = np.stack(images).reshape(-1, 3) / 255
    stats = counts.stats()
    for what in ("min", "max", "mean", "std"):
        assert stats[what].shape == (3, 1, 1)
        np.testing.assert_allclose(stats[what].ravel(), getattr(values, what)(axis=0), rtol=1e-9)
    slow = np.quantile(values, 0.5, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(stats["q50"].ravel(), slow)
    assert stats["count"].tolist() == [3]
