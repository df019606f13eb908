"""Two geoms posed at random, collided by MuJoCo's C code and by ours."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from sameworld.worlds.differentiable.collide import ABSENT, FUNCTIONS, Contacts, Hull, Shape

PLANE, SPHERE, CAPSULE, CYLINDER, BOX, MESH = 0, 2, 3, 5, 6, 7
NAMES = {
    PLANE: "plane",
    SPHERE: "sphere",
    CAPSULE: "capsule",
    CYLINDER: "cylinder",
    BOX: "box",
    MESH: "mesh",
}
PAIRS = tuple(pair for pair in FUNCTIONS if MESH not in pair)

QUICK = {"xla_backend_optimization_level": 0}
"""Compiler options that halve the time to compile."""

QUARTERS = Rotation.create_group("O").as_matrix()
"""The 24 rotations that bring the axes onto each other."""


@dataclass(frozen=True, kw_only=True)
class Poses:
    """Poses and sizes of B pairs: positions [B, 2, 3], rotations [B, 2, 3, 3], sizes [B, 2, 3]."""

    positions: np.ndarray
    rotations: np.ndarray
    sizes: np.ndarray
    margin: float = 0.0

    def __len__(self) -> int:
        return len(self.positions)

    def shapes(self, index: int) -> Shape:
        """All of the first (0) or of the second (1) geoms, with a leading axis B."""
        return Shape(self.positions[:, index], self.rotations[:, index], self.sizes[:, index])


def sizes_of(kind: int, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random MuJoCo sizes [count, 3]."""
    size = rng.uniform(0.1, 0.6, (count, 3))
    used = {PLANE: 3, SPHERE: 1, CAPSULE: 2, CYLINDER: 2, BOX: 3, MESH: 3}[kind]
    size[:, used:] = 0.0
    return size


def extent(kind: int, size: np.ndarray) -> np.ndarray:
    """Rough radius of geoms [B], 0 for planes."""
    return 0.0 * size[:, 0] if kind == PLANE else np.linalg.norm(size, axis=-1)


def near_poses(pair: tuple[int, int], rng: np.random.Generator, count: int) -> Poses:
    """Random orientations, distances from deep to just apart, a margin of 2 cm."""
    sizes = np.stack([sizes_of(kind, rng, count) for kind in pair], axis=1)
    rotations = Rotation.random(2 * count, rng=rng).as_matrix().reshape(count, 2, 3, 3)
    reach = extent(pair[0], sizes[:, 0]) + extent(pair[1], sizes[:, 1])
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    if pair[0] == PLANE:
        direction = rotations[:, 0, :, 2]
    first = rng.uniform(-1, 1, (count, 3))
    second = first + direction * (reach * rng.uniform(0.0, 0.9, count))[:, None]
    return Poses(
        positions=np.stack([first, second], axis=1), rotations=rotations, sizes=sizes, margin=0.02
    )


def aligned_poses(
    pair: tuple[int, int], rng: np.random.Generator, count: int, tilt: float
) -> Poses:
    """Axes of the two geoms parallel but for ``tilt`` rad, as things rest on each other."""
    poses = near_poses(pair, rng, count)
    turned = Rotation.from_rotvec(rng.normal(size=(count, 3)) * tilt).as_matrix()
    quarter = QUARTERS[rng.integers(0, len(QUARTERS), count)]
    spin = Rotation.from_rotvec(rng.uniform(0, 6.3, (count, 1)) * [0.0, 0.0, 1.0]).as_matrix()
    second = poses.rotations[:, 0] @ turned @ spin @ quarter
    return Poses(
        positions=poses.positions,
        rotations=np.stack([poses.rotations[:, 0], second], axis=1),
        sizes=poses.sizes,
        margin=poses.margin,
    )


def rotated(vector: list[float]) -> np.ndarray:
    """Rotation matrix of a rotation vector [rad]."""
    return Rotation.from_rotvec(vector).as_matrix()


def snapped_poses(pair: tuple[int, int], rng: np.random.Generator, count: int) -> Poses:
    """Everything on a grid of 1/8 m with axes aligned and no margin: full of exact ties."""
    poses = near_poses(pair, rng, count)
    offset = np.round((poses.positions[:, 1] - poses.positions[:, 0]) * 8) / 8
    sizes = np.where(poses.sizes > 0, np.maximum(np.round(poses.sizes * 8) / 8, 0.125), 0.0)
    first = np.broadcast_to(np.eye(3), (count, 3, 3))
    second = np.round(QUARTERS[rng.integers(0, len(QUARTERS), count)])
    return Poses(
        positions=np.stack([np.zeros_like(offset), offset], axis=1),
        rotations=np.stack([first, second], axis=1),
        sizes=sizes,
    )


def label(pair: tuple[int, int]) -> str:
    """Name of a pair in test ids."""
    return "-".join(NAMES[kind] for kind in pair)


def model_of(pair: tuple[int, int], mesh: str = "") -> mujoco.MjModel:
    """Two geoms on bodies that can be put anywhere."""
    one, two = (
        f'<geom name="{name}" type="{NAMES[kind]}" size="0.1 0.1 0.1"/>'
        for name, kind in zip("ab", pair, strict=True)
    )
    if pair[1] == MESH:
        two = '<geom name="b" type="mesh" mesh="hull"/>'
    free = "<freejoint/>"
    fixed = pair[0] == PLANE
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset>{mesh}</asset><worldbody>
        <body name="a" {'mocap="true"' if fixed else ""}>{"" if fixed else free}{one}</body>
        <body name="b">{free}{two}</body>
        </worldbody><contact><pair geom1="a" geom2="b"/></contact></mujoco>"""
    )


def in_c(model: mujoco.MjModel, poses: Poses) -> list[np.ndarray]:
    """Active contacts of every pose as rows of distance, point and frame [n, 13]."""
    data = mujoco.MjData(model)
    fixed = model.nmocap == 1
    meshed = model.nmesh > 0
    model.pair_margin[0] = poses.margin
    found: list[np.ndarray] = []
    for position, rotation, size in zip(poses.positions, poses.rotations, poses.sizes, strict=True):
        if not meshed:
            model.geom_size[:] = size
            model.geom_rbound[:] = [0.0 if fixed else 10.0, 10.0]
        mujoco.mj_kinematics(model, data)
        data.geom_xpos[:] = position
        data.geom_xmat[:] = rotation.reshape(2, 9)
        mujoco.mj_collision(model, data)
        active = [c for c in data.contact if c.dist < c.includemargin]
        rows = [np.concatenate([[c.dist], c.pos, c.frame]) for c in active]
        found.append(np.array(rows).reshape(-1, 13))
    return found


def ours(pair: tuple[int, int], batches: list[Poses], hull: Hull | None = None) -> list[list]:
    """The same rows of every batch, all of one size, from the function of the pair."""
    more = {} if hull is None else {k: v[0] for k, v in hull._asdict().items()}
    with jax.enable_x64(True):

        def function(first: Shape, second: Shape, margin: float) -> Contacts:
            return FUNCTIONS[pair][0](first, second._replace(**more), margin)

        batched = jax.jit(jax.vmap(function, in_axes=(0, 0, None)), compiler_options=QUICK)
        return [rows_of(batched(p.shapes(0), p.shapes(1), p.margin)) for p in batches]


def rows_of(batch: Contacts) -> list[np.ndarray]:
    """Present contacts of each element as rows [n, 13]."""
    distance, point, frame = (np.asarray(x) for x in batch)
    flat = np.concatenate([distance[..., None], point, frame.reshape(*distance.shape, 9)], axis=-1)
    return [rows[rows[:, 0] < ABSENT] for rows in flat]


def worst(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of two sets of contacts in any order; inf if their numbers differ."""
    if len(mine) != len(theirs):
        return float("inf")
    left, largest = list(range(len(theirs))), 0.0
    for row in mine:
        errors = [np.abs(row - theirs[i]).max() for i in left]
        largest = max(largest, min(errors))
        left.pop(int(np.argmin(errors)))
    return largest


def differences(mine: list[np.ndarray], theirs: list[np.ndarray]) -> np.ndarray:
    """``worst`` of every pose [B]."""
    return np.array([worst(a, b) for a, b in zip(mine, theirs, strict=True)])
