"""Small valid files and folders of every format, the starting points of the mutations."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import numpy as np

from sameworld.core import Channel, Episode
from sameworld.store import save_episodes

_WRITERS = Path(__file__).parents[1] / "store" / "recordings" / "recording_files.py"


def _writers():
    """The writers of the reader tests, which stand in another folder."""
    if "recording_files" not in sys.modules:
        spec = importlib.util.spec_from_file_location("recording_files", _WRITERS)
        module = importlib.util.module_from_spec(spec)
        sys.modules["recording_files"] = module
        spec.loader.exec_module(module)
    return sys.modules["recording_files"]


def make_seeds(folder):
    """Write every seed into a folder of its own below ``folder``; returns their paths."""
    from mcap.writer import CompressionType
    from rosbags.rosbag1 import Writer as BagWriter
    from rosbags.rosbag2 import CompressionMode

    files = _writers()
    trees = [{"q": [1, 2.5], "pose": {"x": 1, "y": [None, True]}, "name": ["a", "b"]}] * 5
    plain = {"compression": CompressionType.NONE, "enable_crcs": False}
    makers = {
        "zstd.mcap": lambda p: files.arm_mcap(p, 8),
        "lz4.mcap": lambda p: files.arm_mcap(p, 8, compression=CompressionType.LZ4),
        "plain.mcap": lambda p: files.arm_mcap(p, 8, **plain),
        "bare.mcap": lambda p: files.arm_mcap(p, 8, use_chunking=False, enable_crcs=False),
        "json.mcap": lambda p: files.json_mcap(p, trees, **plain),
        "arm.bag": lambda p: files.arm_bag(p, 8),
        "lz4.bag": lambda p: files.arm_bag(p, 8, BagWriter.CompressionFormat.LZ4),
        "bz2.bag": lambda p: files.arm_bag(p, 8, BagWriter.CompressionFormat.BZ2),
        "sqlite": lambda p: files.arm_bag2(p, 8),
        "messages": lambda p: files.arm_bag2(p, 8, compression=CompressionMode.MESSAGE),
        "packed": lambda p: files.arm_bag2(p, 8, compression=CompressionMode.FILE),
        "arm.csv": lambda p: files.arm_csv(p, 8),
        "dialect.csv": _dialect,
        "arm.npz": lambda p: files.arm_npz(p, 8),
        "pieces.npz": _pieces,
        "arm.parquet": lambda p: files.arm_parquet(p, 8),
        "episodes": _episodes,
        "lerobot": _lerobot,
    }
    seeds = []
    for name, make in makers.items():
        place = Path(folder) / name.replace(".", "-")
        place.mkdir(parents=True)
        make(place / name)
        seeds.append(place / name)
    return seeds


def _dialect(path):
    path.write_text(
        '\ufeff# log\nZeit [ms];"q [°]";mode;x\n0;1,5;an;\n10;"2,5";aus;3\n'
        "20;-3,5;an;nan\n30;1;an;4\n",
        encoding="utf-8",
    )


def _pieces(path):
    grid = np.column_stack([0.1 * np.arange(8), np.arange(16.0).reshape(8, 2)])
    np.savez_compressed(
        path, log=grid, columns=np.array(["time", "a", "b"]), start=np.array([0, 3, 8])
    )


def _episode(name):
    time = 0.1 * np.arange(6)
    return Episode(
        id=name,
        channels=(
            Channel(name="q", time=time, values=np.ones((6, 2)), unit="rad"),
            Channel(name="u", time=time, values=np.arange(6.0), role="action"),
        ),
    )


def _episodes(path):
    save_episodes([_episode("a"), _episode("b")], path)


def _lerobot(path):
    from sameworld.store.lerobot import write_lerobot

    write_lerobot([_episode("a"), _episode("b")], path, fps=10)


def rezipped(path, arrays):
    """An NPZ whose checksums are right although its members are not."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(name), content)
