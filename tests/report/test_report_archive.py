import json

import pytest
from report_synthetic import report_data

from sameworld.core import StoreError
from sameworld.report import pack, report_html, unpack


def test_a_packed_report_renders_to_the_same_bytes():
    data = report_data(episodes=6)
    record, arrays = pack(data)
    again = unpack(json.loads(json.dumps(record, allow_nan=False)), arrays, data.scene)
    assert report_html(again) == report_html(data)


def test_unpack_refuses_other_schemas_and_damage():
    record, arrays = pack(report_data(episodes=2))
    scene = report_data(episodes=2).scene
    with pytest.raises(StoreError, match="schema 1"):
        unpack({**record, "schema": 99}, arrays, scene)
    with pytest.raises(StoreError, match="schema 1"):
        unpack([record], arrays, scene)
    del arrays["h1.after.cube.pos.error"]
    with pytest.raises(StoreError, match=r"h1\.after\.cube\.pos\.error"):
        unpack(record, arrays, scene)
