"""Files to nouns and back."""

from sameworld.store.beliefs import load_belief, save_belief
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
from sameworld.store.runs import Checkpoint, RunFolder, StoreWarning, versions
from sameworld.store.scenes import load_scene, save_scene
from sameworld.store.urdf import parse_urdf, read_urdf

__all__ = [
    "Checkpoint",
    "RunFolder",
    "StoreWarning",
    "episode_ids",
    "hash_arrays",
    "hash_file",
    "iterate_episodes",
    "load_belief",
    "load_episodes",
    "load_scene",
    "parse_urdf",
    "read_json",
    "read_npz",
    "read_text",
    "read_urdf",
    "save_belief",
    "save_episodes",
    "save_scene",
    "versions",
    "write_bytes",
    "write_json",
    "write_npz",
    "write_text",
]
