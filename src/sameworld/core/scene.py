"""``Scene``: the one thing stages edit, by returning a new one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, cast

from sameworld.core.belief import Belief
from sameworld.core.errors import SceneError
from sameworld.core.records import Camera

__all__ = ["Component", "HistoryLine", "Scene"]


@dataclass(frozen=True, kw_only=True)
class Component:
    """A typed piece of dynamics that MJCF lacks, attached by address.

    Attributes:
        name: Component name, used in addresses ``component:name.field``.
        type: Type name, e.g. ``stribeck``.
        version: Version of the type's definition.
        target: Address-like name of what it acts on, e.g. ``joint:elbow``.
        settings: Constants that are not parameters.
    """

    name: str
    type: str
    version: int
    target: str
    settings: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])


@dataclass(frozen=True, kw_only=True)
class HistoryLine:
    """What one stage did to the scene.

    Attributes:
        stage: Stage or tool name.
        summary: One sentence in plain words.
        inputs: Names of inputs to their sha256.
        seed: Seed used, if any.
        version: Package version.
    """

    stage: str
    summary: str
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    seed: int | None = None
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {**vars(self), "inputs": dict(self.inputs)}

    @classmethod
    def from_json(cls, record: Any) -> HistoryLine:
        """Rebuild from ``to_json`` output.

        Raises:
            SceneError: Unknown or missing keys.
        """
        try:
            return cls(**cast("dict[str, Any]", record))
        except TypeError as cause:
            raise SceneError(f"History line is malformed: {cause}.") from cause


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A scene: physics description, assets, cameras and one belief.

    Attributes:
        name: Scene name.
        mjcf: MuJoCo XML text, the canonical physics description. The control period may stand in
            it as ``<custom><numeric name="control_period" data="0.02"/></custom>``.
        assets: Relative file names used by the MJCF to their bytes.
        components: Dynamics that MJCF lacks.
        cameras: Calibrated cameras.
        appearance: Relative names of meshes and splats to their bytes.
        belief: Belief over scene parameters.
        history: What happened so far, oldest first.
    """

    name: str
    mjcf: str
    assets: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    components: tuple[Component, ...] = ()
    cameras: tuple[Camera, ...] = ()
    appearance: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    belief: Belief = field(default_factory=Belief)
    history: tuple[HistoryLine, ...] = ()

    def __post_init__(self) -> None:
        for files in (self.assets, self.appearance):
            for path in files:
                _check_relative(path, self.name)
        foreign = [p.name for p in self.belief.parameters if p.scope != "scene"]
        if foreign:
            raise SceneError(
                f"Scene '{self.name}' believes in {foreign}, which are not of scope 'scene'. "
                "Starts belong to Episode.start, session parameters to Episode.session."
            )

    @property
    def id(self) -> str:
        """Content hash (first 16 hex digits of sha256) of physics, assets and components."""
        digest = hashlib.sha256(self.mjcf.encode())
        for path in sorted(self.assets):
            digest.update(path.encode() + hashlib.sha256(self.assets[path]).digest())
        for component in self.components:
            digest.update(_canonical(component).encode())
        return digest.hexdigest()[:16]

    def with_belief(self, belief: Belief, line: HistoryLine | None = None) -> Scene:
        """Return the scene with another belief and, if given, a further history line."""
        history = self.history if line is None else (*self.history, line)
        return replace(self, belief=belief, history=history)


def _canonical(component: Component) -> str:
    """Text of a component that a file gives back, whatever number types it was made with."""
    settings = {
        name: value if isinstance(value, str) else float(value)
        for name, value in component.settings.items()
    }
    return json.dumps({**vars(component), "settings": settings}, sort_keys=True)


def _check_relative(path: str, scene: str) -> None:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or not path or ":" in path:
        raise SceneError(
            f"Scene '{scene}': asset name '{path}' leaves the scene folder. Use a relative name "
            "without '..', for example 'assets/cube.stl'."
        )
