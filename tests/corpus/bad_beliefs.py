"""Beliefs that must be refused, each as a file."""

import json

from bad_case import Bad

from sameworld.core import Belief, BeliefError, Scene, SceneError, StoreError
from sameworld.store import load_belief

MASS = {"name": "body:cube.mass", "value": 1.0}
SLIDE = {"name": "pair:cube+floor.friction.slide", "value": 0.5, "low": 0.0, "high": 1.0}


def _file(name, content, words, error=BeliefError):
    """A file that loading must refuse; mappings are written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)

    def attempt(folder):
        (folder / "belief.json").write_text(text)
        return load_belief(folder / "belief.json")

    return Bad(name=f"belief: {name}", attempt=attempt, error=error, words=words)


def _of(*parameters, **fields):
    return {"schema": 1, "parameters": list(parameters), **fields}


def _parameter(name, change, words):
    return _file(name, _of({**MASS, **change}), r"belief\.json.*" + words)


def _correlation(name, matrix, words):
    return _file(name, _of(MASS, SLIDE, correlation=matrix), words)


def _in_scene(scope):
    def attempt(folder):
        belief = Belief.from_json(_of({**MASS, "scope": scope}))
        return Scene(name="s", mjcf="<mujoco/>", belief=belief)

    return Bad(
        name=f"belief: {scope} parameter in a scene",
        attempt=attempt,
        error=SceneError,
        words=r"not of scope 'scene'.*Episode\.start",
    )


BELIEFS = (
    _parameter("value above its bound", {"high": 0.5}, "outside its bounds"),
    _parameter("value below its bound", {"low": 2}, "outside its bounds"),
    _parameter("bounds crossed", {"low": 2, "high": 1}, r"bounds \[2\.0, 1\.0\]"),
    _parameter("negative std", {"std": -0.1}, "must be >= 0"),
    _parameter("value missing its meaning", {"value": None}, "float"),
    _parameter("value in words", {"value": "heavy"}, "could not convert"),
    _parameter("value as a list", {"value": [1]}, "float"),
    _parameter("unknown address kind", {"name": "thing:cube.mass"}, "known kind"),
    _parameter("address without a field", {"name": "body:cube"}, "needs a target and a field"),
    _parameter("address without a kind", {"name": "cube.mass"}, "known kind"),
    _parameter("address that is a number", {"name": 7}, "7"),
    _parameter("unknown key", {"valeu": 1}, r"unknown keys \['valeu'\]"),
    _parameter("unknown scope", {"scope": "galaxy"}, "scope 'galaxy'"),
    _parameter("unknown source", {"source": "rumour"}, "source 'rumour'"),
    _parameter("log with a negative bound", {"transform": "log", "low": -1}, "'log' but its low"),
    _parameter("logit without bounds", {"transform": "logit"}, "two finite bounds"),
    _file("name twice", _of(MASS, MASS), "twice: 'body:cube.mass'"),
    _file("value missing", _of({"name": "body:cube.mass"}), r"missing keys \['value'\]"),
    _file("parameter that is a number", _of(3), "must be a JSON object, got int"),
    _file("NaN", '{"schema": 1, "parameters": [{"value": NaN}]}', "holds NaN", StoreError),
    _file("infinity", '{"schema": 1, "x": -Infinity}', "holds -Infinity", StoreError),
    _file("key twice", '{"schema": 1, "schema": 1}', "'schema' twice", StoreError),
    _file("cut off", '{"schema": 1, "parameters": [', "is not JSON", StoreError),
    _file("empty file", "", "is not JSON", StoreError),
    _file("a list", [], "'parameters' list"),
    _file("no parameters", {"schema": 1}, "'parameters' list"),
    _file("parameters in a mapping", {"schema": 1, "parameters": {}}, "must be a list"),
    _file("another schema", {**_of(MASS), "schema": 2}, "schema is 2, this version reads 1"),
    _file("no schema", {"parameters": []}, "schema is None"),
    _correlation("correlation too small", [[1]], r"2 parameters has shape \(1, 1\)"),
    _correlation("correlation as a list", [1, 0, 0, 1], r"shape \(4,\)"),
    _correlation("correlation that is ragged", [[1, 0], [0]], "not numeric"),
    _correlation("correlation in words", [["a", "b"], ["b", "a"]], "not numeric"),
    _correlation("correlation asymmetric", [[1, 0.2], [0.3, 1]], "symmetric"),
    _correlation("correlation without unit diagonal", [[2, 0], [0, 2]], "unit diagonal"),
    _correlation("correlation above one", [[1, 1.2], [1.2, 1]], "positive semidefinite"),
    _file(
        "three that contradict each other",
        _of(
            MASS,
            SLIDE,
            {"name": "joint:j.damping", "value": 1},
            correlation=[[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]],
        ),
        "positive semidefinite",
    ),
    _file("block with an unknown key", _of(blocks=[{"name": "n", "size": 3}]), "Belief block"),
    _file("discrepancy without channels", _of(discrepancy={"episodes": 1}), "Discrepancy record"),
    _file(
        "discrepancy of a wrong shape",
        _of(
            discrepancy={
                "episodes": 1,
                "warmup": 1,
                "channels": {
                    "x": {
                        "horizon": [0.1],
                        "levels": [0.5],
                        "quantiles": [[[1]]],
                        "magnitude": [[1], [2]],
                    }
                },
            }
        ),
        "magnitude has shape",
    ),
    _in_scene("episode"),
    _in_scene("session"),
)
