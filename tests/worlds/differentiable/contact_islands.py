"""A scene with one island per pair of shapes: a fixed or sliding geom, and a free body near it."""

from __future__ import annotations

import mujoco
import numpy as np
from diff_cases import States
from scipy.spatial.transform import Rotation

from sameworld.worlds.differentiable.collide import FUNCTIONS

PLANE = 0
NAMES = {0: "plane", 2: "sphere", 3: "capsule", 5: "cylinder", 6: "box", 7: "mesh"}
PAIRS = tuple(FUNCTIONS)
LABELS = tuple("-".join(NAMES[kind] for kind in pair) for pair in PAIRS)

_SIZES = {
    "plane": 'size="1 1 1"',
    "sphere": 'size=".11"',
    "capsule": 'size=".06 .12"',
    "cylinder": 'size=".12 .1"',
    "box": 'size=".12 .08 .1"',
    "mesh": 'mesh="rock"',
}
_ROCK = "0 0 .1 .1 0 0 0 .1 0 -.1 0 0 0 -.1 0 .02 .03 -.12"

#: Attributes of the first geom, of the second one, of a ``<pair>`` element if there is one.
SETTINGS = (
    ('condim="3"', 'condim="3"', ""),
    ('condim="4" margin=".004" solimp=".8 .99 .01 .3 1"', 'friction=".3 .02 .005"', ""),
    ('condim="6" friction="1.2 .02 .03" solref="-3000 -50"', 'solref="-4000 -30"', ""),
    ('condim="1" solimp=".8 .99 .01 .3 3"', 'condim="1" solimp=".7 .9 .02 .6 3"', ""),
    ('condim="4" priority="2" friction=".2 .1 .1" solref=".03 .8"', 'condim="6"', ""),
    ('condim="6" solref="-3000 -50" solmix=".2"', 'solref=".01 .7" solmix=".7" gap=".002"', ""),
    ("", "", 'condim="6" friction="1 .5 .02 .01 .005" margin=".01" solref=".01 1.3"'),
)


def scene(*, cone: str, impratio: float, shift: int) -> mujoco.MjModel:
    """Islands for every pair; ``shift`` moves the contact settings on from pair to pair."""
    bodies, pairs = [], []
    for k, pair in enumerate(PAIRS):
        first, second, element = SETTINGS[(k + shift) % len(SETTINGS)]
        bodies.append(_island(k, pair, first, second))
        if element:
            pairs.append(f'<pair geom1="a{k}" geom2="b{k}" {element}/>')
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
        <option cone="{cone}" impratio="{impratio}" timestep=".002"/>
        <asset><mesh name="rock" vertex="{_ROCK}"/></asset>
        <worldbody>{"".join(bodies)}</worldbody>
        <contact>{"".join(pairs)}</contact></mujoco>""")


def _island(k: int, pair: tuple[int, int], first: str, second: str) -> str:
    kinds = [NAMES[kind] for kind in pair]
    bits = f'contype="{1 << k}" conaffinity="{1 << k}"'
    one, two = (
        f'<geom name="{name}{k}" type="{kind}" {_SIZES[kind]} {bits} {rest}/>'
        for name, kind, rest in zip("ab", kinds, (first, second), strict=True)
    )
    slides = k % 2 == 1 and kinds[0] != "plane"
    joint = f'<joint name="slide{k}" type="slide" axis="1 .3 .2"/>' if slides else ""
    return f"""<body pos="0 {2 * k} 0" euler="{10 * k} 20 0">{joint}{one}</body>
        <body name="free{k}" pos="0 {2 * k} 1"><freejoint/>{two}
        <geom size=".02" pos=".03 .02 0" contype="0" conaffinity="0"/></body>"""


def island_dofs(model: mujoco.MjModel, k: int) -> np.ndarray:
    """Dofs of an island: those of its free body."""
    first = int(model.body_dofadr[model.body(f"free{k}").id])
    return np.arange(first, first + 6)


def touching_states(
    model: mujoco.MjModel, count: int, seed: int, *, tilt: float | None = None
) -> States:
    """States in which every pair is between 1 cm deep and 1 mm apart along a random direction.

    Args:
        model: A model of ``scene``.
        count: Number of states.
        seed: Seed.
        tilt: Angle between the axes of both geoms [rad]; any if not given.
    """
    rng = np.random.default_rng(seed)
    data, q = mujoco.MjData(model), np.repeat(model.qpos0[None], count, axis=0)
    for row in q:
        for k, pair in enumerate(PAIRS):
            _place(model, data, row, k, pair[0] == PLANE, rng, tilt)
    v = 0.3 * rng.normal(size=(count, model.nv))
    return States(q=q, v=v, control=np.zeros((count, 0)))


def _place(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    q: np.ndarray,
    k: int,
    plane: bool,
    rng: np.random.Generator,
    tilt: float | None,
) -> None:
    at = int(model.jnt_qposadr[model.body(f"free{k}").jntadr[0]])
    body = model.geom_bodyid[model.geom(f"a{k}").id]
    frame = Rotation.from_quat(np.roll(model.body_quat[body], -1))
    turn = Rotation.random(rng=rng)
    if tilt is not None:
        turn = frame * Rotation.from_rotvec(tilt * rng.normal(size=3))
    direction = rng.normal(size=3)
    direction = frame.apply([0.0, 0.0, 1.0]) if plane else direction / np.linalg.norm(direction)
    q[at + 3 : at + 7] = np.roll(turn.as_quat(), 1)
    place, wanted = model.body_pos[body] + direction, rng.uniform(-0.01, 0.001)
    for _ in range(8):
        q[at : at + 3] = place
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        gap = mujoco.mj_geomDistance(
            model, data, model.geom(f"a{k}").id, model.geom(f"b{k}").id, 10.0, None
        )
        place = place - direction * (gap - wanted)
