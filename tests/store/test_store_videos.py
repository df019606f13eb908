"""Frames by number equal frames decoded in order; stamps are kept; damage is named."""

from contextlib import suppress

import numpy as np
import pytest
from lerobot_files import picture

from sameworld.core import Channel, Episode, EpisodeError, StoreError, Stream
from sameworld.store import (
    episode_videos,
    open_video,
    save_episodes,
    save_video,
    stream_frames,
    video_frames,
)
from sameworld.store.video_encoding import encode_video
from sameworld.store.videos import VideoLimits

CODECS = {"libx264": "h264", "libx265": "hevc", "libsvtav1": "av1"}


def moving(count, height=48, width=64):
    """Pictures with motion, so that coders use frames between key frames."""
    across, down = np.arange(width), np.arange(height)[:, None]
    for i in range(count):
        red = np.broadcast_to((across * 2 + 3 * i) % 256, (height, width))
        green = np.broadcast_to((down + i) % 256, (height, width))
        yield np.stack([red, green, np.full((height, width), 2 * i % 256)], axis=2).astype(np.uint8)


def uneven(count, seed=0):
    return 3.0 + np.cumsum(np.random.default_rng(seed).uniform(0.01, 0.05, count))


@pytest.mark.parametrize("codec", CODECS)
def test_frames_in_any_order_equal_those_decoded_from_the_beginning(tmp_path, codec):
    time = uneven(80)
    encode_video(tmp_path / "film.mp4", moving(80), time, codec=codec)
    video = open_video(tmp_path / "film.mp4")
    assert (video.codec, video.width, video.height, len(video)) == (CODECS[codec], 64, 48, 80)
    np.testing.assert_allclose(video.time, time - time[0], atol=1e-6)
    slow = list(video_frames(video))
    worst = max(np.abs(a.astype(float) - b).mean() for a, b in zip(slow, moving(80), strict=True))
    assert worst < 6
    order = [*np.random.default_rng(1).integers(0, 80, 40).tolist(), 7, 7, 8, 6, 79, 0]
    for number, image in zip(order, video_frames(video, order), strict=True):
        np.testing.assert_array_equal(image, slow[number])


def test_key_frames_are_several_so_that_seeking_is_tested(tmp_path):
    encode_video(tmp_path / "film.mp4", moving(80), uneven(80))
    assert len(open_video(tmp_path / "film.mp4")._keys) > 2


def test_odd_sizes_and_single_frames_are_kept(tmp_path):
    encode_video(tmp_path / "film.mp4", moving(1, 31, 47), [5.0])
    (image,) = video_frames(tmp_path / "film.mp4")
    assert image.shape == (31, 47, 3)
    assert np.abs(image.astype(float) - next(moving(1, 31, 47))).mean() < 6
    assert open_video(tmp_path / "film.mp4").numbers_at([0.0, 9.0]).tolist() == [0, 0]


def test_the_nearest_frame_is_the_nearest(tmp_path):
    time = uneven(30)
    encode_video(tmp_path / "film.mp4", moving(30), time)
    video = open_video(tmp_path / "film.mp4")
    wanted = np.random.default_rng(2).uniform(-0.1, video.time[-1] + 0.1, 200)
    slow = [int(np.argmin(np.abs(video.time - t))) for t in wanted]
    assert video.numbers_at(wanted).tolist() == slow


# ---- images of stored episodes ------------------------------------------------------------


def store(folder, *ids):
    time = np.arange(10) / 10
    save_episodes(
        [Episode(id=i, channels=(Channel(name="x", time=time, values=time),)) for i in ids], folder
    )
    return folder


def test_images_of_an_episode_come_back_with_exact_stamps(tmp_path):
    folder, time = store(tmp_path / "store", "a", "b"), uneven(12)
    saved = save_video(folder, "a", "top / left", (picture(0, i) for i in range(12)), time)
    save_video(folder, "b", "top / left", [picture(1, i) for i in range(5)], time[:5])
    save_video(folder, "a", "wrist", [picture(2, 0)], [0.25], codec="libsvtav1")
    top, wrist = episode_videos(folder, "a")
    assert (top.name, wrist.name) == ("top / left", "wrist")
    assert top.time.tobytes() == saved.time.tobytes() == time.tobytes()
    shown = [round(float(image.mean())) for image in stream_frames(folder, top, [11, 0, 4])]
    assert np.abs(np.subtract(shown, [108, 20, 52])).max() <= 2
    assert len(list(stream_frames(folder, wrist))) == 1
    assert episode_videos(store(tmp_path / "other", "a"), "a") == ()


def test_more_episodes_can_be_added_beside_images(tmp_path):
    folder = store(tmp_path, "a")
    save_video(folder, "a", "top", [picture(0, 0)], [0.0])
    store(tmp_path, "b")
    assert len(episode_videos(folder, "a")) == 1


BAD_IMAGES = {
    "too few images": ([picture(0, 0)], [0.0, 0.1], StoreError, "2 stamps, but only 1 images"),
    "too many images": ([picture(0, 0)] * 3, [0.0, 0.1], StoreError, "more images than the 2"),
    "sizes": (
        [picture(0, 0), picture(0, 0)[:8]],
        [0, 1],
        StoreError,
        r"image 1 has shape \(8, 32, 3\)",
    ),
    "grey": ([picture(0, 0)[..., 0]], [0.0], StoreError, r"RGB \[H, W, 3\], got shape \(24, 32\)"),
    "floats": ([picture(0, 0) / 255], [0.0], StoreError, "float64"),
    "stamps go back": ([picture(0, 0)] * 2, [1.0, 0.5], StoreError, "frame 1 comes at 0.5 s"),
    "stamps too close": ([picture(0, 0)] * 2, [0, 1e-8], StoreError, "at least a microsecond"),
    "stamp NaN": ([picture(0, 0)], [np.nan], EpisodeError, "NaN"),
    "no image": ([], [], StoreError, "stamps of frames"),
}


@pytest.mark.parametrize("kind", BAD_IMAGES)
def test_images_that_do_not_fit_leave_nothing_behind(tmp_path, kind):
    images, time, error, words = BAD_IMAGES[kind]
    folder = store(tmp_path, "a")
    before = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    with pytest.raises(error, match=words):
        save_video(folder, "a", "top", images, time)
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == before


def test_unknown_episodes_and_names_given_twice_are_refused(tmp_path):
    folder = store(tmp_path, "toss_1")
    with pytest.raises(EpisodeError, match=r"no episode 'toss_2'.*Did you mean 'toss_1'"):
        save_video(folder, "toss_2", "top", [picture(0, 0)], [0.0])
    save_video(folder, "toss_1", "top", [picture(0, 0)], [0.0])
    with pytest.raises(EpisodeError, match="already has images 'top'"):
        save_video(folder, "toss_1", "top", [picture(0, 0)], [0.0])


INDEX = {
    '{"schema": 1}': "object with the keys",
    '{"schema": 2, "episode": "a", "name": "t", "file": "videos/0000-t.mp4", "frames": 1}': "sche",
    '{"schema": 1, "episode": "a", "name": "t", "file": "../x.mp4", "frames": 1}': r"\.\./x\.mp4",
    '{"schema": 1, "episode": "a", "name": "t", "file": "videos/0000-t.mp4", "frames": -1}': "-1",
    '{"schema": 1, "episode": "a", "name": "t", "file": "videos/0009-t.mp4", "frames": 1}': "miss",
}


@pytest.mark.parametrize("line", INDEX)
def test_a_damaged_index_of_videos_is_named(tmp_path, line):
    (store(tmp_path, "a") / "videos.jsonl").write_text(line + "\n")
    with pytest.raises(StoreError, match=INDEX[line]):
        episode_videos(tmp_path, "a")


# ---- damage -------------------------------------------------------------------------------


def film(folder):
    encode_video(folder / "film.mp4", moving(40), uneven(40))
    return folder / "film.mp4"


def test_a_missing_or_cut_file_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"film\.mp4' is missing"):
        open_video(tmp_path / "film.mp4")
    content = film(tmp_path).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match=r"cut\.mp4' is damaged"):
        open_video(tmp_path / "cut.mp4")
    (tmp_path / "empty.mp4").write_bytes(b"")
    with pytest.raises(StoreError, match=r"empty\.mp4' is damaged"):
        open_video(tmp_path / "empty.mp4")


def noisy_film(folder):
    rng = np.random.default_rng(3)
    images = [rng.integers(0, 256, (48, 64, 3)).astype(np.uint8) for _ in range(12)]
    encode_video(folder / "film.mp4", images, uneven(12))
    return (folder / "film.mp4").read_bytes()


def test_overwritten_frames_are_named(tmp_path):
    content = bytearray(noisy_film(tmp_path))
    begin = content.index(b"mdat") + 8
    middle = (begin + content.index(b"moov", begin)) // 2
    content[middle : middle + 4000] = bytes(4000)
    (tmp_path / "garbled.mp4").write_bytes(content)
    with pytest.raises(StoreError, match=r"garbled\.mp4'.*(cannot be decoded|damaged)"):
        list(video_frames(tmp_path / "garbled.mp4"))


@pytest.mark.parametrize("seed", range(12))
def test_random_damage_is_an_error_of_this_package_or_a_picture(tmp_path, seed):
    content, rng = bytearray(noisy_film(tmp_path)), np.random.default_rng(seed)
    for place in rng.integers(0, len(content), 60):
        content[place] = rng.integers(256)
    content[-1500:] = bytes(
        b if rng.random() > 0.01 else int(rng.integers(256)) for b in content[-1500:]
    )
    (tmp_path / "garbled.mp4").write_bytes(content)
    with suppress(StoreError):
        for image in video_frames(tmp_path / "garbled.mp4"):
            assert image.shape == (48, 64, 3)


def test_a_coding_without_decoder_is_named(tmp_path):
    content = film(tmp_path).read_bytes()
    assert content.count(b"avc1") >= 1
    place = content.index(b"avc1", content.index(b"stsd"))
    (tmp_path / "odd.mp4").write_bytes(content[:place] + b"zzzz" + content[place + 4 :])
    with pytest.raises(StoreError, match=r"odd\.mp4' is coded in a way that no decoder"):
        list(video_frames(tmp_path / "odd.mp4"))


def test_a_playlist_that_names_other_files_is_not_followed(tmp_path):
    film(tmp_path)
    (tmp_path / "list.mp4").write_text(
        "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nfilm.mp4\n#EXT-X-ENDLIST\n"
    )
    with pytest.raises(StoreError, match=r"list\.mp4'"):
        open_video(tmp_path / "list.mp4")
    (tmp_path / "concat.mp4").write_text("ffconcat version 1.0\nfile film.mp4\n")
    with pytest.raises(StoreError, match=r"concat\.mp4'"):
        open_video(tmp_path / "concat.mp4")


def test_absurd_sizes_are_refused_before_decoding(tmp_path):
    with pytest.raises(StoreError, match="64x48 pixels, more than the limit of 1000"):
        open_video(film(tmp_path), limits=VideoLimits(pixels=1000))
    with pytest.raises(StoreError, match="claims 40 frames, more than the limit of 30"):
        open_video(tmp_path / "film.mp4", limits=VideoLimits(frames=30))
    video = open_video(tmp_path / "film.mp4")
    with pytest.raises(StoreError, match="more than the limit of 1000"):
        next(video_frames(video, [0], limits=VideoLimits(pixels=1000)))
    with pytest.raises(StoreError, match="must be positive"):
        VideoLimits(pixels=0)


def test_frames_that_do_not_exist_are_named(tmp_path):
    with pytest.raises(StoreError, match="frames 0 to 39, not 40"):
        video_frames(film(tmp_path), [3, 40])
    numbers = Stream(name="x", time=[0.0], values=np.zeros(1))
    with pytest.raises(StoreError, match="'x' holds numbers"):
        stream_frames(tmp_path, numbers)


def test_an_unknown_encoder_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"no codec 'mpeg1'.*libx264"):
        encode_video(tmp_path / "x.mp4", moving(1), [0.0], codec="mpeg1")
