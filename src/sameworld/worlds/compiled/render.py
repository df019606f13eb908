"""Pictures of a scene on a machine without a screen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.records import Camera
from sameworld.maths.rotations import quat_to_matrix
from sameworld.worlds.compiled.edits import Editor
from sameworld.worlds.compiled.engine import Data, Model, captured_warnings, mj
from sameworld.worlds.compiled.layout import INTEGRATION, Layout
from sameworld.worlds.compiled.models import Assignment

__all__ = ["Painter"]

_SIZE = (640, 480)
_KEPT = 4


class Painter:
    """Owns the offscreen renderers of one scene, one per image size.

    Shadows, reflections and multisampling are off: they cost most of the time on a CPU.

    Args:
        editor: Knows the scene's models.
        layout: Layout of the integration state.
    """

    def __init__(self, editor: Editor, layout: Layout) -> None:
        self._editor, self._layout = editor, layout
        self._model = editor.compiled.model
        self._data: dict[bool, Data] = {}
        self._renderers: dict[tuple[int, int], Any] = {}

    def images(
        self,
        rows: Array,
        models: Assignment,
        camera: Camera | str,
    ) -> NDArray[np.uint8]:
        """Images [B, H, W, 3] of integration states [B, size]; black where they are invalid."""
        width, height = self._size(camera)
        out = np.zeros((len(rows), height, width, 3), dtype=np.uint8)
        renderer = self._renderer(width, height)
        for element in np.flatnonzero(self._layout.runnable(rows)).tolist():
            edited = models[element]
            data = self._scratch(general=edited.general)
            with captured_warnings():
                mj.mj_setState(edited.model, data, rows[element], INTEGRATION)
                mj.mj_forward(edited.model, data)
            _compose(renderer.scene, edited.model, data, camera)
            out[element] = renderer.render()
        return out

    def _scratch(self, *, general: bool) -> Data:
        if general not in self._data:
            self._data[general] = mj.MjData(self._editor.general if general else self._model)
        return self._data[general]

    def close(self) -> None:
        """Free the OpenGL contexts; a later picture opens new ones."""
        while self._renderers:
            self._renderers.popitem()[1].close()

    def _size(self, camera: Camera | str) -> tuple[int, int]:
        if isinstance(camera, Camera):
            return camera.width, camera.height
        width, height = self._model.cam_resolution[_camera_id(self._model, camera)].tolist()
        return (width, height) if width > 1 and height > 1 else _SIZE

    def _renderer(self, width: int, height: int) -> Any:
        key = (width, height)
        if key not in self._renderers:
            while len(self._renderers) >= _KEPT:
                self._renderers.pop(next(iter(self._renderers))).close()
            self._renderers[key] = _opened(self._model, width, height)
        return self._renderers[key]


def _opened(model: Model, width: int, height: int) -> Any:
    model = mj.MjModel.__copy__(model)
    model.vis.quality.offsamples = 0
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    try:
        renderer = mj.Renderer(model, height=height, width=width)
    except Exception as cause:
        raise SceneError(
            "No offscreen OpenGL: set the environment variable MUJOCO_GL to 'egl' (Debian package "
            "libegl1, on a CPU with libgl1-mesa-dri) or 'osmesa' (package libosmesa6) before "
            f"Python starts. MuJoCo says: {cause}"
        ) from cause
    for flag in ("mjRND_SHADOW", "mjRND_REFLECTION"):
        renderer.scene.flags[int(getattr(mj.mjtRndFlag, flag))] = 0
    return renderer


def _camera_id(model: Model, name: str) -> int:
    index = int(mj.mj_name2id(model, mj.mjtObj.mjOBJ_CAMERA, name))
    if index < 0:
        names = [model.camera(k).name for k in range(model.ncam)]
        raise SceneError(
            f"No camera '{name}' among the scene's cameras, and the MJCF has {listed(names)}."
            f"{closest(name, names)}"
        )
    return index


def _compose(scene: Any, model: Model, data: Data, camera: Camera | str) -> None:
    """Fill MuJoCo's visual scene and aim both of its (stereo) cameras."""
    view = mj.MjvCamera()
    if isinstance(camera, str):
        view.type = int(mj.mjtCamera.mjCAMERA_FIXED)
        view.fixedcamid = _camera_id(model, camera)
    everything = int(mj.mjtCatBit.mjCAT_ALL)
    mj.mjv_updateScene(model, data, mj.MjvOption(), None, view, everything, scene)
    if isinstance(camera, Camera):
        for eye in scene.camera:
            _aim(eye, model, data, camera)


def _aim(eye: Any, model: Model, data: Data, camera: Camera) -> None:
    """Set the frustum of a pinhole camera; pixel centres are whole numbers (OpenCV)."""
    position, rotation = _pose(model, data, camera)
    near = max(float(eye.frustum_near), 1e-4)
    (fx, _, cx), (_, fy, cy), _ = camera.intrinsics.tolist()
    left, right = (-0.5 - cx) / fx * near, (camera.width - 0.5 - cx) / fx * near
    top, bottom = (0.5 + cy) / fy * near, (cy + 0.5 - camera.height) / fy * near
    eye.pos, eye.forward, eye.up = position, rotation[:, 2], -rotation[:, 1]
    eye.frustum_center, eye.frustum_width = 0.5 * (left + right), 0.5 * (right - left)
    eye.frustum_top, eye.frustum_bottom = top, bottom


def _pose(model: Model, data: Data, camera: Camera) -> tuple[Array, Array]:
    """Optical centre [3] m and camera-to-world matrix [3, 3]."""
    position, rotation = np.array(camera.position), quat_to_matrix(camera.quaternion)
    if not camera.parent:
        return position, rotation
    body = int(mj.mj_name2id(model, mj.mjtObj.mjOBJ_BODY, camera.parent))
    if body < 0:
        names = [model.body(k).name for k in range(model.nbody)]
        raise SceneError(
            f"Camera '{camera.name}' is fixed to body '{camera.parent}', which the scene lacks. "
            f"It has {listed(names)}.{closest(camera.parent, names)}"
        )
    frame = np.array(data.xmat[body]).reshape(3, 3)
    return np.array(data.xpos[body]) + frame @ position, frame @ rotation
