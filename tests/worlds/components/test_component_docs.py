"""The tables of docs/components.md are those of the laws."""

import itertools
import json
import math
import re
from pathlib import Path

import pytest
from component_cases import FILTERED, FIRMWARE, IMPEDANCE, VOLTAGE, car, component, hinge

from sameworld.core import Component, Scene
from sameworld.store import load_scene
from sameworld.worlds.components import LAWS, Clock
from sameworld.worlds.explicit import explicit_world

PAGE = Path(__file__).parents[3] / "docs" / "components.md"
ROW = re.compile(r"^\| (`|(setting|action|input|output|start) )")
NEEDED = {
    "firmware_servo": FIRMWARE,
    "joint_impedance": IMPEDANCE,
    "filtered_pd": FILTERED,
    "voltage_motor": VOLTAGE,
}
PLACES = {"joint": "joint:elbow", "actuator": "actuator:motor", "body": "body:chassis"}


def laws_of(kind):
    """The law under every combination of its settings."""
    law = LAWS[kind]
    for words in itertools.product(*law.options.values()):
        chosen = dict(zip(law.options, words, strict=True))
        yield chosen, law(chosen, Clock(timestep=0.002, substeps=5))


def world_of(kind, chosen):
    law = LAWS[kind]
    settings = {**NEEDED.get(kind, {}), **chosen}
    if law.target == "body":
        return explicit_world(car(kind))
    return explicit_world(hinge(component("c", kind, PLACES[law.target], **settings)))


def bound(value):
    return "∞" if math.isinf(value) else f"{value:g}"


def parameter_rows(kind):
    """One table row per field: name, unit on a hinge, usual value, range, when it exists."""
    found = {}
    for chosen, law in laws_of(kind):
        units = {p.name.split(".")[1]: p.unit for p in world_of(kind, chosen).parameters.parameters}
        for field in law.fields():
            row = found.setdefault(field.name, {"field": field, "with": []})
            row["unit"] = units[field.name]
            row["with"].append(chosen)
    total = len(list(laws_of(kind)))
    rows = []
    for name, row in found.items():
        field, when = row["field"], "" if len(row["with"]) == total else needed(row["with"])
        usual = "–" if math.isnan(field.default) else f"{field.default:g}"
        low = "-∞" if math.isinf(field.low) else f"{field.low:g}"
        rows.append(
            f"| `{name}` | {row['unit'] or '–'} | {usual} | {low} to {bound(field.high)} | {when} |"
        )
    return rows


def needed(combinations):
    """The setting on which a field depends, with its words."""
    for name in combinations[0]:
        words = sorted({chosen[name] for chosen in combinations})
        if len(words) < len({w for k in LAWS.values() for w in k.options.get(name, ())}):
            return f"`{name}` = {', '.join(words)}"
    raise AssertionError("a field depends on several settings at once")


def signal_rows(kind):
    """What a law takes and shows beside the parameters."""
    rows = {}
    for _, law in laws_of(kind):
        for what, signals in (("action", law.actions()), ("input", law.inputs())):
            for s in signals:
                missing = what == "action" or math.isnan(s.default)
                rows[f"| {what} | `{s.name}` | {'–' if missing else f'{s.default:g}'} |"] = None
        rows |= {f"| output | `{s.name}` | – |": None for s in law.outputs()}
        rows |= {f"| start | `{f.name}` | {f.default:g} |": None for f in law.starts()}
    return list(rows)


def setting_rows(kind):
    return [
        f"| setting | `{name}`: {', '.join(f'`{w}`' for w in words)} | `{words[0]}` |"
        for name, words in LAWS[kind].options.items()
    ]


def section(kind):
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^### `{kind}`.*?(?=^##)", text, re.DOTALL | re.MULTILINE)
    assert found, f"docs/components.md has no section on {kind}"
    return found[0]


@pytest.mark.parametrize("kind", list(LAWS))
def test_the_page_lists_every_parameter_signal_and_setting(kind):
    listed = [line for line in section(kind).splitlines() if ROW.match(line)]
    assert listed == parameter_rows(kind) + setting_rows(kind) + signal_rows(kind)
    assert f"Acts on: {LAWS[kind].target}" in section(kind)


def test_the_page_lists_the_laws_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^### `(\w+)`", text, re.MULTILINE) == list(LAWS)


def test_the_file_written_by_hand_on_the_page_is_a_scene(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    record = re.search(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    bare = hinge()
    (tmp_path / "scene.xml").write_text(bare.mjcf)
    (tmp_path / "components.json").write_text(record)
    scene = load_scene(tmp_path)
    assert isinstance(scene, Scene)
    assert all(isinstance(c, Component) for c in scene.components)
    world = explicit_world(scene)
    for row in json.loads(record)["components"]:
        for name, value in row["settings"].items():
            if not isinstance(value, str):
                assert world.parameters[f"component:{row['name']}.{name}"].value == value
