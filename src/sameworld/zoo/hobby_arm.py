"""A six-joint hobby arm played by a simulation: a URDF and a LeRobot dataset to try things on.

The dataset looks as such arms are recorded: 30 rows a second, joints in degrees, the gripper in
percent, commands under the same names as positions, encoders of 4096 ticks a turn, a camera. What
moves it is hidden: servos that differ from their data sheet, commands that act late.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode, Stream
from sameworld.core.errors import EpisodeError
from sameworld.core.values import Values
from sameworld.policies import MultiSine
from sameworld.robots import StandIn, record
from sameworld.stages.actuate import ActuateConfig, actuate
from sameworld.store import (
    parse_urdf,
    read_json,
    save_episodes,
    save_video,
    write_json,
    write_lerobot,
    write_text,
)
from sameworld.worlds.explicit import ExplicitConfig, ExplicitWorld, explicit_world
from sameworld.worlds.explicit.urdf import UrdfConfig, scene_from_urdf

__all__ = ["HOBBY_ARM_TRUTH", "hobby_arm_urdf", "write_hobby_arm"]

_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
#: What the hidden servos have in place of a data sheet's numbers, in the order of the joints.
_HIDDEN = {
    "actuator:{}.kp": (15.1, 20.9, 19.2, 16.0, 14.3, 21.6),  # N m/rad
    "joint:{}.damping": (0.71, 0.52, 0.66, 0.49, 0.58, 0.73),  # N m s/rad
    "joint:{}.frictionloss": (0.062, 0.081, 0.043, 0.058, 0.036, 0.070),  # N m
}
#: True values of the servo parameters behind the recordings, by address.
HOBBY_ARM_TRUTH: Mapping[str, float] = MappingProxyType(
    {
        pattern.format(joint): value
        for pattern, values in _HIDDEN.items()
        for joint, value in zip(_JOINTS, values, strict=True)
    }
)

_FPS = 30
_FINER = 4  # ticks of the stand-in per row
_DELAY = 3  # ticks by which commands act late
_TICK = 2 * np.pi / 4096  # rad
_GRIPPER = (-0.17, 1.75)  # rad at 0 and 100 %
_CENTRE = np.array([0.0, -0.2, 0.3, 0.2, 0.0, 0.8])
_SWING = np.array([1.5, 0.9, 1.0, 1.2, 1.8, 0.9])
_PICTURE = (72, 96)  # pixel
_PAINT, _PAPER = np.array([200, 90, 30]), np.array([235, 235, 230])


def hobby_arm_urdf() -> str:
    """The robot description: links of boxes with masses, joint limits, no actuators."""
    path = files("sameworld.zoo").joinpath("data", "hobby_arm.urdf")
    return path.read_text(encoding="utf-8")


def write_hobby_arm(
    folder: str | Path,
    *,
    episodes: int = 16,
    seconds: float = 3.0,
    camera: bool = True,
    seed: int = 0,
) -> None:
    """Write ``arm.urdf`` and ``dataset/``, a LeRobot dataset of the arm under random sines.

    Args:
        folder: Where to; made if it does not exist. It must not hold a dataset yet.
        episodes: How many.
        seconds: Length of each [s].
        camera: Whether to draw what a camera at the side would see.
        seed: Seed of motions and noise.

    Raises:
        EpisodeError: No episode, or episodes shorter than a second.
        StoreError: The folder cannot be written.
    """
    if episodes < 1 or seconds < 1:
        raise EpisodeError("The arm needs at least one episode of at least a second.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    world = _reality()
    recorded = [_recorded(world, round(seconds * _FPS), seed + k, k) for k in range(episodes)]
    with tempfile.TemporaryDirectory() as work:
        films = _films(world, recorded, Path(work)) if camera else {}
        write_lerobot(
            [_columns(e) for e in recorded],
            folder / "dataset",
            fps=_FPS,
            task="Wave.",
            videos=films,
            video_folder=work,
            robot="hobby_arm",
        )
    _name_like_lerobot(folder / "dataset")
    write_text(folder / "arm.urdf", hobby_arm_urdf())


def _reality() -> ExplicitWorld:
    """The arm, integrated finely; its hidden numbers are not in it."""
    config = UrdfConfig(timestep=1 / (_FPS * _FINER * 4))
    scene, _ = scene_from_urdf(parse_urdf(hobby_arm_urdf()), config=config)
    scene, _ = actuate(scene, config=ActuateConfig(preset="hobby_servo"))
    fine = replace(scene, mjcf=scene.mjcf.replace('"implicitfast"', '"RK4"'))
    return explicit_world(fine, ExplicitConfig(period=1 / (_FPS * _FINER)))


def _recorded(world: ExplicitWorld, rows: int, seed: int, number: int) -> Episode:
    """Positions as the encoders give them, and commands, 30 times a second, in SI."""
    robot = StandIn(
        world,
        parameters=Values.of(dict(HOBBY_ARM_TRUTH)),
        noise={f"{joint}.pos": 0.3 * _TICK for joint in _JOINTS},
        delay=_DELAY,
        seed=seed,
    )
    robot.connect()
    episode = record(robot, np.repeat(_commands(rows, seed), _FINER, axis=0))
    robot.close()
    kept = {f"{joint}.pos" for joint in _JOINTS} | set(_JOINTS)
    channels = [
        replace(c, time=c.time[::_FINER][:rows], values=c.values[::_FINER][:rows])
        for c in episode.channels
        if c.name in kept
    ]
    encoded = [
        replace(c, values=_TICK * np.round(c.values / _TICK)) if c.role == "observation" else c
        for c in channels
    ]
    return Episode(id=f"episode_{number:03d}", channels=tuple(encoded), source="mujoco")


def _commands(rows: int, seed: int) -> Array:
    """Sums of sines from rest at zero, slow ones and fast ones [T, A] rad."""
    sines = MultiSine(
        amplitude=_SWING, centre=_CENTRE, period=1 / _FPS, low=0.2, high=1.2, seed=seed
    )
    carry, found = sines.init(1), list[Array]()
    for _ in range(rows):
        carry, action = sines.act(carry, {})
        found.append(action[0])
    rising = np.clip(np.arange(rows) / _FPS, 0.0, 1.0)[:, None]
    return rising**2 * (3 - 2 * rising) * np.array(found)


# ---- as a LeRobot dataset --------------------------------------------------------------------


def _columns(episode: Episode) -> Episode:
    """Degrees and percent, without units, as the format has them."""
    return replace(episode, channels=tuple(_column(c) for c in episode.channels))


def _column(channel: Channel) -> Channel:
    values = np.degrees(channel.values)
    if channel.name.startswith("gripper"):
        low, high = _GRIPPER
        values = 100 * (channel.values - low) / (high - low)
    return replace(channel, values=values, unit="")


def _name_like_lerobot(dataset: Path) -> None:
    """Give positions and commands the same names, which channels of an episode cannot have."""
    info = cast("dict[str, Any]", read_json(dataset / "meta" / "info.json"))
    for feature in ("observation.state", "action"):
        info["features"][feature]["names"] = [f"{joint}.pos" for joint in _JOINTS]
    write_json(dataset / "meta" / "info.json", info)
    for name in ("loss_report.json", "loss_report.txt"):
        (dataset / "meta" / name).unlink()


# ---- the camera ------------------------------------------------------------------------------


def _films(
    world: ExplicitWorld, episodes: Sequence[Episode], folder: Path
) -> dict[str, tuple[Stream, ...]]:
    save_episodes(episodes, folder)
    films: dict[str, tuple[Stream, ...]] = {}
    for episode in episodes:
        q = np.stack([episode[f"{joint}.pos"].values for joint in _JOINTS], axis=1)
        time = episode[f"{_JOINTS[0]}.pos"].time
        films[episode.id] = (save_video(folder, episode.id, "side", _pictures(world, q), time),)
    return films


def _pictures(world: ExplicitWorld, q: Array) -> NDArray[np.uint8]:
    """Drawings [N, H, W, 3] of the arm as lines from body to body, seen from the side."""
    poses = world.poses(q)
    links = ("base", "shoulder", "upper_arm", "forearm", "wrist", "hand", "jaw")
    spots = np.stack([poses[f"body:{name}"][0][:, ::2] for name in links], axis=1)
    height, width = _PICTURE
    rows, columns = np.mgrid[0:height, 0:width]
    scene = np.stack([(columns - width / 2) / 110, (height - 12 - rows) / 110], axis=-1)
    ink = np.zeros((len(q), height, width), dtype=np.bool_)
    for begin, end in zip(np.moveaxis(spots, 1, 0)[:-1], np.moveaxis(spots, 1, 0)[1:], strict=True):
        along = (end - begin)[:, None, None]
        offset = scene[None] - begin[:, None, None]
        share = (offset * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-9)
        nearest = np.clip(share, 0, 1)[..., None] * along
        ink |= ((offset - nearest) ** 2).sum(-1) < 0.014**2
    return np.where(ink[..., None], _PAINT, _PAPER).astype(np.uint8)
