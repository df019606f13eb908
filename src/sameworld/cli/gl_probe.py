"""Render one tiny picture and say by whom: ``MUJOCO_GL=egl python -m sameworld.cli.gl_probe``."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

__all__ = ["probe"]

_MJCF = """
<mujoco>
  <visual><quality offsamples="0"/></visual>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="eye" pos="0 -1 0.5" xyaxes="1 0 0 0 0.4 1"/>
    <geom type="sphere" size="0.3" rgba="0.9 0.2 0.1 1"/>
  </worldbody>
</mujoco>
"""


def probe() -> dict[str, str]:
    """Vendor, renderer and version strings of the OpenGL that drew a picture.

    Raises:
        RuntimeError: A picture came back, but it is blank.
    """
    mujoco: Any = import_module("mujoco")
    gl: Any = import_module("OpenGL.GL")

    model = mujoco.MjModel.from_xml_string(_MJCF)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with mujoco.Renderer(model, 32, 48) as renderer:
        renderer.update_scene(data, camera="eye")
        pixels = renderer.render()
        names = {"vendor": gl.GL_VENDOR, "renderer": gl.GL_RENDERER, "version": gl.GL_VERSION}
        found = {name: gl.glGetString(code).decode() for name, code in names.items()}
    if float(pixels.std()) < 1:
        raise RuntimeError("the picture is blank")
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()) + "\n")
