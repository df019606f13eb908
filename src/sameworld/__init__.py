"""One World interface for explicit, differentiable and learned worlds, fitted to recordings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sameworld.core import *  # noqa: F403

__version__ = "0.1.0"

#: Public verbs and where they live; imported on first use, so ``import sameworld`` stays light.
_VERBS = {
    "ActuateConfig": "sameworld.stages.actuate",
    "ActuateResult": "sameworld.stages.actuate",
    "CaptureConfig": "sameworld.stages.capture",
    "CaptureResult": "sameworld.stages.capture",
    "ExciteConfig": "sameworld.stages.excite",
    "ExciteResult": "sameworld.stages.excite",
    "IdentifyConfig": "sameworld.stages.identify",
    "IdentifyResult": "sameworld.stages.identify",
    "Limit": "sameworld.stages.excite",
    "TorqueConfig": "sameworld.stages.identify.torque",
    "actuate": "sameworld.stages.actuate",
    "UrdfConfig": "sameworld.worlds.explicit.urdf",
    "UrdfReport": "sameworld.worlds.explicit.urdf",
    "apply_mapping": "sameworld.stages.capture",
    "build": "sameworld.worlds",
    "check_mapping": "sameworld.stages.capture",
    "check_world": "sameworld.worlds",
    "excite": "sameworld.stages.excite",
    "identify": "sameworld.stages.identify",
    "load_episodes": "sameworld.store",
    "load_scene": "sameworld.store",
    "open_recordings": "sameworld.store.recordings",
    "propose_mapping": "sameworld.stages.capture",
    "read_urdf": "sameworld.store",
    "save_episodes": "sameworld.store",
    "save_scene": "sameworld.store",
    "scene_from_urdf": "sameworld.worlds.explicit.urdf",
}

_core = import_module("sameworld.core")

__all__ = [*_core.__all__, *_VERBS, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return getattr(import_module(_VERBS[name]), name)
    return getattr(_core, name)


def __dir__() -> list[str]:
    return sorted(__all__)
