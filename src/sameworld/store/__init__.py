"""Files to nouns and back."""

from sameworld.store.beliefs import load_belief, save_belief
from sameworld.store.episode_videos import episode_videos, save_video
from sameworld.store.episodes import episode_ids, iterate_episodes, load_episodes, save_episodes
from sameworld.store.files import (
    hash_arrays,
    hash_file,
    read_json,
    read_npz,
    read_text,
    write_bytes,
    write_json,
    write_npz,
    write_text,
)
from sameworld.store.lerobot import lerobot_info, read_lerobot, write_lerobot
from sameworld.store.runs import Checkpoint, RunFolder, StoreWarning, versions
from sameworld.store.scenes import load_scene, save_scene
from sameworld.store.urdf import parse_urdf, read_urdf
from sameworld.store.videos import open_video, stream_frames, video_frames

__all__ = [
    "Checkpoint",
    "RunFolder",
    "StoreWarning",
    "episode_ids",
    "episode_videos",
    "hash_arrays",
    "hash_file",
    "iterate_episodes",
    "lerobot_info",
    "load_belief",
    "load_episodes",
    "load_scene",
    "open_video",
    "parse_urdf",
    "read_json",
    "read_lerobot",
    "read_npz",
    "read_text",
    "read_urdf",
    "save_belief",
    "save_episodes",
    "save_scene",
    "save_video",
    "stream_frames",
    "versions",
    "video_frames",
    "write_bytes",
    "write_json",
    "write_lerobot",
    "write_npz",
    "write_text",
]
