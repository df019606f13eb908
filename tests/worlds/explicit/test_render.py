"""Pictures: skipped with the reason where no offscreen OpenGL works."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sameworld.core import Camera, Scene, SceneError, Values
from sameworld.worlds import build

BALL = """<mujoco><asset><material name="red" rgba="1 0 0 1" emission="1"/></asset><worldbody>
  <geom type="plane" size="3 3 1" rgba="0 0 0 1"/>
  <body name="ball" pos="0 0 1"><freejoint/>
    <geom name="g" type="sphere" size=".1" material="red"/></body>
  <camera name="top" pos="0 0 3" resolution="80 60"/>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def world():
    world = build(Scene(name="ball", mjcf=BALL))
    try:
        world.render(world.reset(Values.none()), "top")
    except SceneError as cause:
        pytest.skip(f"no offscreen OpenGL: {cause}")
    yield world
    world.kernel.painter.close()


def centre(image):
    v, u = np.nonzero(image[..., 0] > 100)
    return u.mean(), v.mean()


@pytest.mark.render
def test_a_named_camera_gives_one_image_per_element(world):
    state = world.reset(Values.of({"start:ball.pos.x": [0.0, 0.3, np.nan]}))
    images = world.render(state, "top")
    assert images.shape == (3, 60, 80, 3) and images.dtype == np.uint8
    assert np.allclose(centre(images[0]), (39.5, 29.5), atol=0.6)
    assert centre(images[1])[0] > 45
    assert not images[2].any()


@pytest.mark.render
def test_a_pinhole_camera_projects_like_its_matrix(world):
    """Non-square pixels and a principal point off the centre, OpenCV conventions."""
    matrix = np.array([[100.0, 0, 60], [0, 120, 20], [0, 0, 1]])
    camera = Camera(
        name="calibrated",
        width=100,
        height=80,
        intrinsics=matrix,
        position=np.array([0.2, 0.0, 3.0]),
        quaternion=np.array([0.0, 1.0, 0.0, 0.0]),
    )
    places = np.array([[0.0, 0.0, 1.0], [0.3, 0.1, 1.0], [0.1, -0.2, 1.2]])
    columns = {f"start:ball.pos.{a}": places[:, k] for k, a in enumerate("xyz")}
    images = world.render(world.reset(Values.of(columns)), camera)
    seen = np.array([centre(image) for image in images])
    rays = (places - camera.position) @ np.diag([1.0, -1.0, -1.0]) @ matrix.T
    assert np.allclose(seen, rays[:, :2] / rays[:, 2:], atol=0.5)


@pytest.mark.render
def test_a_camera_on_a_body_moves_with_it(world):
    camera = Camera(
        name="riding",
        width=60,
        height=60,
        intrinsics=np.array([[60.0, 0, 29.5], [0, 60, 29.5], [0, 0, 1]]),
        position=np.array([0.0, 0.0, 1.0]),
        quaternion=np.array([0.0, 1.0, 0.0, 0.0]),
        parent="ball",
    )
    images = world.render(world.reset(Values.of({"start:ball.pos.x": [0.0, 0.7]})), camera)
    for image in images:
        assert np.allclose(centre(image), (29.5, 29.5), atol=0.6)


@pytest.mark.render
def test_pictures_show_edited_geometry(world):
    state = world.reset(Values.none(), Values.of({"geom:g.size.0": [0.1, 0.2]}))
    small, large = (int((i[..., 0] > 100).sum()) for i in world.render(state, "top"))
    assert large > 3 * small


@pytest.mark.render
def test_an_unknown_camera_names_those_that_exist(world):
    with pytest.raises(SceneError, match=r"No camera 'topp'.*Did you mean 'top'"):
        world.render(world.reset(Values.none()), "topp")


def test_missing_opengl_says_what_to_install():
    code = (
        "from sameworld.core import Scene, Values\nfrom sameworld.worlds import build\n"
        f"w = build(Scene(name='b', mjcf='''{BALL}'''))\nw.render(w.reset(Values.none()), 'top')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MUJOCO_GL": "off"},
    )
    assert run.returncode != 0
    for word in ("SceneError", "MUJOCO_GL", "libegl1", "libosmesa6"):
        assert word in run.stderr
